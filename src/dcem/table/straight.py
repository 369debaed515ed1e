"""Functions of labels that take a table as it is: a frame or a file, with its roles by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from dcem.table.labels import SelectiveLabels
from dcem.table.load import UserTable, read_table
from dcem.table.messages import InputError, InputTypeError, did_you_mean, quoted
from dcem.table.roles import Roles, as_list

T = TypeVar("T")
OF_FILE = ("query", "sample_rows")  # how a file is read


def takes_tables(
    about: Callable[[UserTable], Mapping[str, Any]],
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """A function of `SelectiveLabels`, its first argument, that takes other forms of a table too.

    It also takes a frame or a path, with roles as keywords, and what `read_table` returns. `about`
    gives the arguments that follow from a table that was read, for those that were not given.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        own = inspect.signature(function).parameters

        @wraps(function)
        def either(problem: Any, *given: Any, **how: Any) -> T:
            known = {*own, *Roles.settable(), *OF_FILE}
            if unknown := [name for name in how if name not in known]:
                hint = did_you_mean(unknown[0], known)
                raise InputTypeError(f"{function.__name__} has no argument {unknown[0]!r}.{hint}")
            if isinstance(problem, SelectiveLabels):
                _refuse_roles(how, own, "SelectiveLabels, which have their roles")
                return function(problem, *given, **how)
            if isinstance(problem, UserTable):
                _refuse_roles(how, own, "a table that was read with its roles")
                table = problem
            else:
                table = _read(problem, function.__name__, how)
            return function(table.problem, *given, **{**about(table), **how})

        return either

    return decorate


def _refuse_roles(how: Mapping[str, Any], own: Mapping[str, Any], what: str) -> None:
    stray = [name for name in how if name not in own]
    if stray:
        raise InputError(
            f"{quoted(stray)} cannot be given with {what} already. Pass the frame or the path of "
            "the file instead, or read it with other roles."
        )


def _read(source: Any, name: str, how: dict[str, Any]) -> UserTable:
    """The table of a frame or a file; its roles are taken from the arguments."""
    roles = {role: how.pop(role) for role in Roles.settable() if role in how}
    reading = {argument: how.pop(argument) for argument in OF_FILE if argument in how}
    columns = Roles.named("column", "columns")
    for role in [role for role in roles if role in columns and roles[role] is not None]:
        value = roles[role]
        names = [value] if role in Roles.named("column") or hasattr(value, "shape") else value
        if not all(isinstance(name, str | int) for name in as_list(names)):
            raise InputError(
                f"`{role}` takes the name of a column: {role}='...', not its values. To pass "
                "arrays, make `dcem.SelectiveLabels.from_arrays(X, y, ...)`."
            )
    if not isinstance(source, str | Path) and not _has_columns(source):
        raise InputTypeError(
            f"{name} takes a data frame or the path of a file with its roles, such as {name}(frame,"
            f' label="flu", group="race"); what `dcem.read_table` returns; or SelectiveLabels. Got '
            f"{type(source).__name__}."
        )
    if reading and not isinstance(source, str | Path):
        raise InputError(f"{quoted(reading)}: only for files. Select the rows of a frame yourself.")
    if not roles.get("label"):
        raise InputError(
            f"Which column holds the observed outcome? Name it: {name}(frame, label=...). Its "
            "columns may have other roles too: tested=..., group=..., id=..."
        )
    return read_table(source, Roles(**roles), **reading)


def _has_columns(source: Any) -> bool:
    """Whether it is a frame of some library: columns with names."""
    return any(hasattr(type(source), name) for name in ("columns", "column_names", "schema"))
