"""A task: a selectively labelled problem in three splits, with the truth kept apart from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from dcem.table.checks import check_binary
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError
from dcem.text import percent

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False, repr=False)
class Truth(Mapping[str, np.ndarray]):
    """The true labels of each split, kept apart from what anybody may train on.

    A read-only mapping from split ("train", "validation", "test") to an array of 0 and 1 [n], in
    the row order of the split it belongs to.
    """

    splits: Mapping[str, np.ndarray]

    def __post_init__(self) -> None:
        checked = {}
        for split, values in self.splits.items():
            array = check_binary(values, f"truth[{split!r}]").astype(np.int64)
            array.setflags(write=False)
            checked[str(split)] = array
        object.__setattr__(self, "splits", MappingProxyType(checked))

    def __getitem__(self, split: str) -> np.ndarray:
        if split not in self.splits:
            raise KeyError(f"no split {split!r}; there are {', '.join(map(repr, self.splits))}")
        return self.splits[split]

    def __iter__(self) -> Iterator[str]:
        return iter(self.splits)

    def __len__(self) -> int:
        return len(self.splits)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self.splits),)

    def __repr__(self) -> str:
        parts = (f"{name}: {y.sum():,} ({percent(y.mean(), 1)})" for name, y in self.splits.items())
        return f"Truth(positive in {', '.join(parts)})"


@dataclass(frozen=True)
class Task:
    """What a method may see, and beside it what only an evaluation may.

    Attributes
    ----------
    train, validation, test
        What a method receives. Labels of untested rows are absent.
    truth
        Split name -> int array [n] of true outcomes, for evaluation and the oracle alone.
    kind
        Which maker it came from ("sinusoid", "censored", "sepsis", "nhanes").
    params
        The arguments that made it, as plain values, its table aside: with both, its maker draws the
        same task again. Of sepsis also what was found: thresholds, rates, and the cohort's build.
    process
        The known law of the simulation (probabilities of outcome and testing), where there is one;
        for evaluation and plots, never for a method.
    """

    train: SelectiveLabels
    validation: SelectiveLabels
    test: SelectiveLabels
    truth: Mapping[str, np.ndarray]
    kind: str
    params: dict[str, Any] = field(default_factory=dict)
    process: Any = None

    @classmethod
    def of(
        cls,
        parts: Sequence[SelectiveLabels],
        truth: np.ndarray,
        kind: str,
        params: dict[str, Any],
        process: Any = None,
    ) -> Task:
        """From three splits whose `row` says where in `truth [n]` theirs is."""
        known = {name: truth[part.row] for name, part in zip(SPLITS, parts, strict=True)}
        train, validation, test = parts
        return cls(train, validation, test, Truth(known), kind, params, process)

    def split(self, name: str) -> SelectiveLabels:
        """The split called "train", "validation" or "test"."""
        if name not in SPLITS:
            raise KeyError(f"no split named {name!r}; the splits are {', '.join(SPLITS)}")
        return getattr(self, name)

    def to_frame(self, truth: bool = False) -> pd.DataFrame:
        """All splits as one table: features, group, tested, label, [truth,] split.

        The label is missing where nobody tested. The truth is included on request only.
        """
        taken = {"group", "tested", "label", "truth", "split"} & set(self.train.feature_names)
        if taken:
            raise InputError(
                f"Features named {', '.join(sorted(taken))} clash with the columns of the table. "
                "Rename them before making the task."
            )
        parts = []
        for name in SPLITS:
            problem = self.split(name)
            part = pd.DataFrame(problem.X, columns=list(problem.feature_names))
            part["group"] = np.asarray(problem.group_names, dtype=object)[problem.group]
            part["tested"] = problem.tested.astype(np.int8)
            part["label"] = pd.array(problem.y_obs, dtype="Float64").astype("Int8")
            if truth:
                part["truth"] = self.truth[name].astype(np.int8)
            part["split"] = name
            parts.append(part)
        return pd.concat(parts, ignore_index=True)


def seed_from(random_state: int | np.random.Generator | None) -> int:
    """One integer that names the draws, whatever was given."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if not isinstance(random_state, int | np.integer) or random_state < 0:
        raise InputError(
            "`random_state` must be a whole number from 0 on, a NumPy Generator, or None; got "
            f"{random_state!r}."
        )
    return int(random_state)
