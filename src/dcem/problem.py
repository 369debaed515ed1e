"""The problem: rows, whose label somebody decided to collect or not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dcem import checks


@dataclass(frozen=True, eq=False, repr=False)
class SelectiveLabels:
    """One selectively labelled table; every column has one role."""

    X: np.ndarray
    y_obs: np.ndarray
    tested: np.ndarray
    group: np.ndarray
    id: np.ndarray | None
    weight: np.ndarray | None
    feature_names: tuple[str, ...]
    group_names: tuple[str, ...]
    row: np.ndarray

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                view = value.view()
                view.setflags(write=False)
                object.__setattr__(self, field.name, view)

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        tested: Any = None,
        group: Any = None,
        id: Any = None,
        weight: Any = None,
        feature_names: Sequence[str] | None = None,
        group_names: Sequence[str] | None = None,
    ) -> SelectiveLabels:
        """From arrays with one entry (or row) per person-row."""
        if feature_names is None:
            feature_names = (
                [str(c) for c in X.columns]
                if isinstance(X, pd.DataFrame)
                else [f"x{j}" for j in range(np.shape(X)[1])]
            )
        X = np.asarray(X, dtype=float)
        y_obs, looked = checks.resolve_tested(y, tested)
        if group is None:
            codes, names = np.zeros(len(X), np.int64), ["all"]
        else:
            values = np.asarray(group).astype(str)
            names = list(group_names) if group_names is not None else sorted(set(values))
            codes = np.array([names.index(v) for v in values], dtype=np.int64)
        return cls(
            X=X,
            y_obs=y_obs,
            tested=looked,
            group=codes,
            id=None if id is None else np.asarray(id),
            weight=None if weight is None else np.asarray(weight, dtype=float),
            feature_names=tuple(feature_names),
            group_names=tuple(names),
            row=np.arange(len(X)),
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        label: str,
        tested: str | None = None,
        group: str | Sequence[str] | None = None,
        id: str | None = None,
        weight: str | None = None,
        features: Sequence[str] | None = None,
        group_names: Sequence[str] | None = None,
    ) -> SelectiveLabels:
        """From a data frame, by column names."""
        if not isinstance(frame, pd.DataFrame):
            import pyarrow

            frame = pyarrow.table(frame).to_pandas()
        groups = [group] if isinstance(group, str) else list(group or [])
        roles = [c for c in [label, tested, id, weight, *groups] if c is not None]
        features = [c for c in frame.columns if c not in roles] if features is None else features
        checks.require_columns(frame.columns, [*roles, *features])
        crossed = frame[groups].astype(str).agg(" & ".join, axis=1) if groups else None
        return cls.from_arrays(
            frame[list(features)],
            frame[label],
            tested=None if tested is None else frame[tested],
            group=crossed,
            id=None if id is None else frame[id],
            weight=None if weight is None else frame[weight],
            group_names=group_names,
        )

    @classmethod
    def from_file(cls, path: str | Path, **roles: Any) -> SelectiveLabels:
        """From a CSV (also gzipped) or Parquet file; `roles` as in `from_frame`."""
        path = Path(path)
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
        return cls.from_frame(frame, **roles)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def n_groups(self) -> int:
        """Number of group levels, empty ones included."""
        return len(self.group_names)

    @property
    def y_imputed(self) -> np.ndarray:
        """Labels with 0 where nobody looked: what is usually, and wrongly, called the label."""
        return np.where(self.tested, self.y_obs, 0.0)

    def subset(self, rows: Any) -> SelectiveLabels:
        """These rows (mask, positions or slice), with the same group levels."""
        return SelectiveLabels(
            X=self.X[rows],
            y_obs=self.y_obs[rows],
            tested=self.tested[rows],
            group=self.group[rows],
            id=None if self.id is None else self.id[rows],
            weight=None if self.weight is None else self.weight[rows],
            feature_names=self.feature_names,
            group_names=self.group_names,
            row=self.row[rows],
        )

    def split(self, shares: Sequence[float], random_state: Any) -> tuple[SelectiveLabels, ...]:
        """Random parts; a person's rows stay together."""
        rng = np.random.default_rng(random_state)
        person = np.arange(len(self)) if self.id is None else pd.factorize(self.id)[0]
        rank = rng.permutation(person.max() + 1)[person]
        order = np.sort(rank)
        edges = np.round(np.cumsum(shares) * len(self)).astype(int)
        starts = np.concatenate([[0], edges[:-1]])
        cuts = [order[s] for s in starts] + [order[-1] + 1]
        return tuple(self.subset((rank >= lo) & (rank < hi)) for lo, hi in itertools.pairwise(cuts))


class Truth(Mapping[str, np.ndarray]):
    """The true labels of each split, kept apart from what anybody may train on."""

    def __init__(self, splits: Mapping[str, Any]) -> None:
        self._splits = {}
        for name, values in splits.items():
            array = np.array(values, dtype=np.int64)
            array.setflags(write=False)
            self._splits[name] = array

    def __getitem__(self, split: str) -> np.ndarray:
        return self._splits[split]

    def __iter__(self) -> Iterator[str]:
        return iter(self._splits)

    def __len__(self) -> int:
        return len(self._splits)
