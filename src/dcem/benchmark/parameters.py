"""Do the values that a benchmark file gives fit the parameters of its methods?

A slip such as `steps = "many"` should be named before anything runs, with the file, the method and
the parameter. The classes say themselves what they take: their fields are annotated.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from dcem.table.checks import InputError

if TYPE_CHECKING:
    from dcem.benchmark.file import MethodEntry

_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def check_parameters(entry: MethodEntry, where: str) -> None:
    """Refuse a value of a type that the method cannot take; unknown names are refused later."""
    from dcem.methods.registry import METHODS

    name = "group-only" if entry.name in ("group-0-only", "group-1-only") else entry.name
    hints = get_type_hints(METHODS[name]) if name in METHODS else {}
    for parameter, value in entry.params.items():
        hint = hints.get(parameter, Any)
        if not _fits(value, hint):
            given = list(value) if isinstance(value, tuple) else value
            raise InputError(
                f"{where}: {parameter} = {given!r} of method {entry.name!r} should be "
                f"{_words(hint)}."
            )


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is UnionType:
        return any(_fits(value, one) for one in get_args(hint))
    if get_origin(hint) in (tuple, Sequence):
        return isinstance(value, tuple) and all(_fits(one, get_args(hint)[0]) for one in value)
    if hint in (int, float):  # Python takes True for a number, and no whole number for a float
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    if hint is Any:
        return True
    return not isinstance(hint, type) or isinstance(value, hint)


def _words(hint: Any) -> str:
    if get_origin(hint) is UnionType:  # TOML has no None: leave a parameter out instead
        return " or ".join(_words(one) for one in get_args(hint) if one is not NoneType)
    if get_origin(hint) in (tuple, Sequence):
        return f"a list, each {_words(get_args(hint)[0])}"
    return _WORDS.get(hint, str(getattr(hint, "__name__", hint)))
