"""Benchmark files: which tasks, which methods, which metrics, in TOML.

    name = "my-table"
    about = "What this is for, in a sentence."
    metrics = ["auc", "roc_gap"]           # shown first; all are always computed

    [[tasks]]                              # lists are crossed: 2 x 2 x 12 x 5 tasks
    kind = "sinusoid"
    k = ["1/2", 1]                         # fractions may be written as such
    q_t = [0.5, 2]
    phase = "all"                          # degrees; "all" is 0, 30, ..., 330
    stream = "independent"
    seed = [0, 1, 2, 3, 4]

    [[methods]]
    name = ["dcem", "tested-only"]         # as in `dcem.methods.names()`
    [[methods]]
    name = "dcem"
    published = true                       # every published choice at once
    params = {start = "tested-only"}       # parameters of the estimator
    grid = {temperature = [0.1, 1, 10]}    # parameters to be crossed
    label = "{temperature:g}"              # its name in tables

Group-only models are written `group-0-only` and `group-1-only`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import product
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from dcem.metrics import RANKING
from dcem.table.messages import InputError, did_you_mean

MEASURED = (*RANKING, "n_iter")  # of every cell
_PRESETS = resources.files("dcem.benchmark") / "presets"
_TOP = ("name", "about", "metrics", "tasks", "methods")
_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
_WORDS |= {list: "a list"}
_METHOD = ("name", "published", "params", "grid", "label", "seed")


@dataclass(frozen=True)
class MethodInFile:
    """One method with its parameters, as a file names it."""

    name: str
    label: str
    published: bool = False
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: every task is run with every method."""

    name: str
    about: str
    tasks: tuple[dict[str, Any], ...]  # plain parameters; see `dcem.benchmark.cells`
    methods: tuple[MethodInFile, ...]
    metrics: tuple[str, ...] = ("auc", "roc_gap")

    def only(self, methods: list[str] | None) -> Benchmark:
        """The same with these methods (names or labels) alone."""
        if not methods:
            return self
        known = sorted({name for entry in self.methods for name in (entry.name, entry.label)})
        for name in methods:
            if name not in known:
                raise _unknown("method", name, known, f"benchmark {self.name!r}")
        kept = tuple(m for m in self.methods if m.name in methods or m.label in methods)
        return replace(self, methods=kept)


def preset_names() -> list[str]:
    """Names of the benchmarks that come with the package."""
    return sorted(Path(file.name).stem for file in _PRESETS.iterdir() if ".toml" in file.name)


def load_benchmark(source: str | Path, **overrides: Any) -> Benchmark:
    """A benchmark from a TOML file, or a preset by its name.

    `overrides` replace task parameters (`cohort="cohort.parquet"`); None leaves a parameter alone.
    """
    path = Path(source)
    where = str(path)
    if path.suffix == ".toml":
        text = path.read_bytes()
    elif where in preset_names():
        text = (_PRESETS / f"{where}.toml").read_bytes()
    else:
        raise _unknown("preset", where, preset_names(), "dcem", "A file ends in .toml. ")
    try:
        content = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not valid TOML: {error}") from None
    changes = {name: value for name, value in overrides.items() if value is not None}
    benchmark = _benchmark_of({"name": path.stem} | content, where, changes)
    if path.suffix == ".toml":  # presets are right, and listing them need not import every method
        for entry in benchmark.methods:
            _check_parameters(entry, where)
    return benchmark


def _benchmark_of(content: dict[str, Any], where: str, changes: dict[str, Any]) -> Benchmark:
    for key in content:
        if key not in _TOP:
            raise _unknown("entry", key, _TOP, where)
    _require(content, where, name=str, about=str, metrics=list)
    for part in ("tasks", "methods"):
        entries = content.get(part)
        if not isinstance(entries, list) or {type(one) for one in entries} != {dict}:
            raise InputError(f"{where} names no {part}: write at least one [[{part}]].")
    metrics = tuple(content.get("metrics", ("auc", "roc_gap")))
    for name in metrics:
        if name not in MEASURED:
            raise _unknown("metric", str(name), MEASURED, where)
    tasks = [task for entry in content["tasks"] for task in _tasks(entry | changes, where)]
    methods = [method for entry in content["methods"] for method in _methods(entry, where)]
    labels = [method.label for method in methods]
    twice = {label for label in labels if labels.count(label) > 1}
    if twice:
        raise InputError(
            f"{where}: two methods are called {sorted(twice)[0]!r}. Give each its own label."
        )
    about = " ".join(str(content.get("about", "")).split())
    return Benchmark(str(content["name"]), about, tuple(tasks), tuple(methods), metrics)


def _tasks(entry: dict[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """Cross the lists of one [[tasks]] entry."""
    from dcem.tasks.registry import KINDS

    name = str(entry.get("kind", "sinusoid"))
    if name not in KINDS:
        raise _unknown("task", name, list(KINDS), where)
    kind = KINDS[name]
    entry = kind.defaults | {key: value for key, value in entry.items() if key != "kind"}
    crossed = []
    for key, value in entry.items():
        if key not in kind.parameters:
            known = sorted({*kind.parameters, "kind"})
            raise _unknown(f"parameter of {name} tasks", key, known, where)
        values = kind.every.get(key, value) if value == "all" else value
        values = list(values) if isinstance(values, list | tuple) else [values]
        if not values:
            raise InputError(f"{where}: {key} is an empty list, which leaves no task.")
        try:
            crossed.append([kind.value(key, one) for one in values])
        except ValueError as error:
            raise InputError(f"{where}: {key} = {value!r} {error}") from None
    for combination in product(*crossed):
        yield {"kind": name} | dict(zip(entry, combination, strict=True))


def _methods(entry: dict[str, Any], where: str) -> Iterator[MethodInFile]:
    """One [[methods]] entry: its names times its parameter grid."""
    for key in entry:
        if key not in _METHOD:
            raise _unknown("parameter of a method", key, _METHOD, where)
    if entry.get("name", []) == []:
        raise InputError(f"{where}: a method has no name.")
    _require(entry, where, published=bool, label=str)
    names = entry["name"] if isinstance(entry["name"], list) else [entry["name"]]
    for name in names:
        _require({"name": name}, where, name=str)
    grid, fixed = entry.get("grid", {}), entry.get("params", {})
    for part, content in (("grid", grid), ("params", fixed)):
        if not isinstance(content, dict):
            raise InputError(
                f"{where}: {part} of method {names[0]!r} should be a table, as in "
                f"{part} = {{steps = {'[100, 200]' if part == 'grid' else 100}}}."
            )
    for key, values in grid.items():
        if not isinstance(values, list):
            raise InputError(
                f"{where}: {key} = {values!r} in grid of method {names[0]!r} should be a list; "
                "single values belong into params."
            )
    seed = entry.get("seed")
    if seed is not None and type(seed) is not int:
        raise InputError(
            f"{where}: seed = {seed!r} of method {names[0]!r} should be a whole number."
        )
    for name, combination in product(names, product(*grid.values())):
        varied = dict(zip(grid, combination, strict=True))
        params = {key: tupled(value) for key, value in (fixed | varied).items()}
        if "label" in entry:
            label = _label(str(entry["label"]), where, {"name": name} | params)
        else:
            tail = ", ".join(f"{key} {value}" for key, value in varied.items())
            label = f"{name} ({tail})" if tail else name
        yield MethodInFile(name, label, bool(entry.get("published")), params, seed)


def _label(template: str, where: str, values: dict[str, Any]) -> str:
    try:
        return template.format(**values)
    except (KeyError, IndexError, ValueError, AttributeError, TypeError) as error:
        raise InputError(
            f"{where}: the label {template!r} cannot be filled in ({error}). It may use "
            f"{', '.join('{' + name + '}' for name in values)}."
        ) from None


def _require(entries: dict[str, Any], where: str, **types: type) -> None:
    """Refuse entries that are not of these types."""
    for key, kind in types.items():
        if key in entries and not isinstance(entries[key], kind):
            raise InputError(f"{where}: {key} = {entries[key]!r} should be {_WORDS[kind]}.")


def tupled(value: Any) -> Any:
    """What TOML and JSON can only say as a list, as estimators take it."""
    return tuple(value) if isinstance(value, list) else value


def _unknown(what: str, given: str, known: Any, where: str, note: str = "") -> InputError:
    hint = did_you_mean(given, known)
    return InputError(f"{where} has no {what} {given!r}.{hint} {note}Known: {', '.join(known)}.")


def _check_parameters(entry: MethodInFile, where: str) -> None:
    """Refuse a value of a type that the method cannot take; unknown names are refused later.

    A slip such as `steps = "many"` is named before anything runs, with the file, the method and the
    parameter. The classes say themselves what they take: their fields are annotated.
    """
    from dcem.methods.registry import METHODS

    hints = get_type_hints(METHODS[entry.name]) if entry.name in METHODS else {}
    for parameter, value in entry.params.items():
        hint = hints.get(parameter, Any)
        if not _has_type(value, hint):
            given = list(value) if isinstance(value, tuple) else value
            raise InputError(
                f"{where}: {parameter} = {given!r} of method {entry.name!r} should be "
                f"{_words(hint)}."
            )


def _has_type(value: Any, hint: Any) -> bool:
    if get_origin(hint) is UnionType:
        return any(_has_type(value, one) for one in get_args(hint))
    if get_origin(hint) in (tuple, Sequence):
        return isinstance(value, tuple) and all(_has_type(one, get_args(hint)[0]) for one in value)
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
