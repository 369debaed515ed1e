"""The kinds of task by name, and all that a benchmark must know of each.

A benchmark file names a kind and gives plain values: `kind = "sinusoid"`, `k = "1/2"`, `phase =
"all"`. Which parameters there are and what they may hold is read off the signature of the maker, so
a new kind of task is its module and one entry of `KINDS`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from math import radians
from pathlib import Path
from typing import Any, get_args, get_type_hints

from dcem.table.messages import InputError, did_you_mean
from dcem.table.read import file_hash
from dcem.tasks.diabetes import RACES, load_diabetes_readmission, read_encounters
from dcem.tasks.nhanes import load_nhanes
from dcem.tasks.rates import rates_of_testing
from dcem.tasks.sepsis.task import BETAS, load_sepsis, read_cohort
from dcem.tasks.sinusoid.make import DEFAULT_STREAM, DEGREES, make_sinusoid
from dcem.tasks.task import Task

Values = dict[str, Any]  # the parameters of one task, as a file gives them


@dataclass(frozen=True)
class TaskKind:
    """One kind of task.

    Attributes
    ----------
    make
        The function that makes it. Its annotations say which parameters are whole numbers, numbers,
        files or words; its `random_state` is called `seed` in files and result tables.
    defaults
        What a file need not say.
    population
        Prevalence and share of group 0 that k and q_t refer to, which decides which settings can
        exist; None where all can.
    everybody
        Whether k beyond 1 / prevalence means that everybody is tested; otherwise it is refused.
    every
        Parameter -> what "all" stands for.
    degrees
        Angles, which are degrees in files and radians in Python.
    needs
        Parameter without a default -> what it is, for the message where it is missing.
    fixed
        Fills in what the maker would decide by itself, so that a cell says how its rows were drawn.
    """

    make: Callable[..., Task]
    defaults: Values
    population: Callable[[Values], tuple[float, float]] | None = None
    everybody: bool = False
    every: Mapping[str, Sequence[float]] = field(default_factory=dict)
    degrees: tuple[str, ...] = ()
    needs: Mapping[str, str] = field(default_factory=dict)
    fixed: Callable[[Values], Values] = dict

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Parameter -> its type, by the names that files use."""
        hints = get_type_hints(self.make)
        names = inspect.signature(self.make).parameters
        found = {name: hints[name] for name in names if name != "random_state"}
        return found | ({"seed": int} if "random_state" in names else {})

    @property
    def files(self) -> list[str]:
        """Parameters that name a file; a task is known by its content, wherever it lies."""
        return [name for name, hint in self.parameters.items() if Path in _types(hint)]

    def value(self, name: str, given: Any) -> Any:
        """What a file says of a parameter, as the maker takes it; ValueError says what it lacks."""
        types = _types(self.parameters[name])
        words = [one for one in types if isinstance(one, str)]
        if words and given not in words:
            raise ValueError(f"should be one of {', '.join(words)}.{did_you_mean(given, words)}")
        if bool in types and not isinstance(given, bool):
            raise ValueError("should be true or false.")
        if int in types and float not in types:
            if not isinstance(given, int) or isinstance(given, bool):
                raise ValueError("should be a whole number.")
            return given
        if float not in types:
            return given
        try:
            if isinstance(given, bool):
                raise TypeError
            return float(Fraction(given))
        except (ValueError, TypeError, ZeroDivisionError, OverflowError):
            raise ValueError("is not a number. Write 0.5 or '1/2'.") from None

    def infeasible(self, task: Values) -> str | None:
        """Why a setting cannot exist: a group would be tested more often than always."""
        if self.population is None:
            return None
        prevalence, share = self.population(task)
        if self.everybody and task["k"] * prevalence >= 1:
            return None
        try:
            rates_of_testing(prevalence, task["k"], task["q_t"], share)
        except InputError as error:
            return f"k {task['k']:g}, q_t {task['q_t']:g}: {error}"
        return None

    def draw(self, task: Values) -> Task:
        """The task itself."""
        values = {name: radians(v) if name in self.degrees else v for name, v in task.items()}
        if "seed" in values:
            values["random_state"] = values.pop("seed")
        return self.make(**values)


def _types(hint: Any) -> tuple[Any, ...]:
    """The members of a union, the words of a literal, or the type itself."""
    return tuple(part for one in get_args(hint) for part in _types(one)) or (hint,)


def _released(task: Values) -> Values:
    """The simulation draws the published rows unless a seed asks for others."""
    task = {"preset": "as-released"} | task
    if "stream" not in task:
        task["stream"] = "independent" if "seed" in task else DEFAULT_STREAM[task["preset"]]
    return {"seed": 0} | task if task["stream"] == "independent" else task


@lru_cache(maxsize=4)
def _cohort(path: str) -> tuple[float, float]:
    frame, _ = read_cohort(path)
    return float(frame["y"].mean()), float((frame["a"] == 0).mean())


@lru_cache(maxsize=4)
def _encounters(path: str) -> tuple[float, float]:
    table = read_encounters(path)
    return float((table["readmitted"] != "NO").mean()), float((table["race"] == RACES[0]).mean())


KINDS: dict[str, TaskKind] = {
    "sinusoid": TaskKind(
        make_sinusoid,
        {"q_y": 0.5, "k": 1.0, "q_t": 2.0, "phase": 0.0},
        lambda task: (task.get("prevalence", 0.25), task.get("group_share", 0.5)),
        every={"phase": DEGREES},
        degrees=("phase",),
        fixed=_released,
    ),
    "sepsis": TaskKind(
        load_sepsis,
        {"k": 4.0, "q_t": 1.5, "beta": 0.5},
        lambda task: _cohort(task["cohort"]),
        everybody=True,
        every={"beta": BETAS},
        needs={"cohort": "the Parquet file that 'dcem sepsis build' wrote"},
    ),
    "diabetes": TaskKind(
        load_diabetes_readmission,
        {"k": 0.5, "q_t": 2.0, "beta": 0.5, "seed": 0},
        lambda task: _encounters(task["path"]),
        every={"beta": BETAS},
        needs={"path": "the table diabetes130.csv.gz of the UCI repository"},
    ),
    "nhanes": TaskKind(
        load_nhanes,
        {"outcome": "diabetes", "seed": 0},
        needs={"path": "the survey's files merged into one CSV"},
    ),
}


def kind_of(task: Values) -> tuple[TaskKind, Values]:
    """The kind of a task, and its other parameters; refused where one that it needs is missing."""
    kind = KINDS[task["kind"]]
    values = {name: value for name, value in task.items() if name != "kind"}
    for name, what in kind.needs.items():
        if name not in values:
            raise InputError(
                f"{task['kind'].capitalize()} tasks need a `{name}`, {what}. Name it when running "
                f'the benchmark, or write {name} = "FILE" under [[tasks]].'
            )
    return kind, values


def possible(tasks: Iterable[Values]) -> tuple[list[Values], list[str]]:
    """The tasks whose settings can exist; and why the others cannot, each reason once."""
    feasible, notes = [], []
    for task in tasks:
        kind, values = kind_of(task)
        reason = kind.infeasible(values)
        if reason is None:
            feasible.append(task)
        elif reason not in notes:
            notes.append(reason)
    return feasible, notes


def completed(task: Values) -> Values:
    """The task with everything said that decides its rows."""
    kind, values = kind_of(task)
    return {"kind": task["kind"]} | kind.fixed(values)


def file_hashes(task: Values) -> dict[str, str]:
    """Parameter -> hash, of every file that the task reads."""
    kind, values = kind_of(task)
    return {name: _hash_of_file(Path(values[name])) for name in kind.files if name in values}


_hash_of_file = lru_cache(maxsize=8)(file_hash)


def make_task(task: Values) -> Task:
    """The task that a benchmark's plain values describe."""
    kind, values = kind_of(task)
    return kind.draw(values)
