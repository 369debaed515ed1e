"""Selectively labelled tables on their way into a fleet: split, preprocessed, stacked, padded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dcem.engine import Rows
from dcem.methods.preprocess import Preprocessor
from dcem.table.checks import notice
from dcem.table.labels import SelectiveLabels

# The most rows held out: enough to choose a stopping point, however long the table.
MAX_VALIDATION = 50_000


@dataclass(frozen=True)
class Table:
    """Rows of one problem as a network reads them, and their roles; all arrays `[n, ...]`."""

    X: np.ndarray
    y: np.ndarray  # observed label, 0 where nobody looked
    tested: np.ndarray
    group: np.ndarray
    weight: np.ndarray
    truth: np.ndarray | None = None
    person: np.ndarray | None = None  # codes from 0; None where every row is a person of its own

    @classmethod
    def of(
        cls,
        problem: SelectiveLabels,
        preprocessor: Preprocessor,
        truth: np.ndarray | None,
        dtype: str = "float32",
        rows: np.ndarray | None = None,
    ) -> Table:
        """Preprocess the rows of a problem at the positions `rows` (None: all)."""
        chosen = slice(None) if rows is None else rows
        person = None
        if problem.id is not None:
            person = np.unique(problem.id[chosen], return_inverse=True)[1]
        weight = problem.weight if problem.weight is not None else np.ones(len(problem))
        return cls(
            X=preprocessor.transform(problem.X, dtype, rows),
            y=problem.y_imputed[chosen].astype(dtype),
            tested=problem.tested[chosen].astype(dtype),
            group=problem.group[chosen],
            weight=np.asarray(weight[chosen], dtype=dtype),
            truth=None if truth is None else np.asarray(truth[chosen], dtype=dtype),
            person=person,
        )

    def columns(self) -> dict[str, np.ndarray]:
        """Everything but the features, by the name the methods use."""
        named = {"y": self.y, "tested": self.tested, "group": self.group, "weight": self.weight}
        optional = {"truth": self.truth, "person": self.person}
        return named | {name: column for name, column in optional.items() if column is not None}


def hold_out(problem: SelectiveLabels, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of training and of validation rows; a person's rows stay together.

    Rows are drawn within strata of tested and label, so that both parts hold tested positives and
    negatives. Where there are too few for that, all rows serve as both, with a warning.
    """
    everything = np.arange(len(problem))
    if not 0 < fraction < 1:
        raise ValueError(f"validation_fraction must lie between 0 and 1, got {fraction}")
    fraction = min(fraction, MAX_VALIDATION / len(problem))
    rng = np.random.default_rng(seed)
    stratum = np.where(problem.tested, 1 + np.nan_to_num(problem.y_obs), 0).astype(np.int64)
    if problem.id is not None:
        people, person = np.unique(problem.id, return_inverse=True)
        of_person = np.zeros(len(people), np.int64)
        np.maximum.at(of_person, person, stratum)  # a person is as informative as her best row
        held = _draw(of_person, fraction, rng)[person]
    else:
        held = _draw(stratum, fraction, rng)
    for part in (held, ~held):
        if len(np.unique(stratum[part & problem.tested])) < 2:
            notice(
                "Too few tested rows of each class to hold some out: stopping is decided on the "
                "training rows themselves, which favours overfitting. Pass `validation`, or "
                "gather more labels."
            )
            return everything, everything
    return everything[~held], everything[held]


def _draw(stratum: np.ndarray, fraction: float, rng: np.random.Generator) -> np.ndarray:
    """A boolean mask with about `fraction` of each stratum."""
    held = np.zeros(len(stratum), dtype=bool)
    for level in np.unique(stratum):
        members = rng.permutation(np.flatnonzero(stratum == level))
        held[members[: round(fraction * len(members))]] = True
    return held


def stack(tables: Sequence[Table], members: int, device: torch.device) -> Rows:
    """Rows of a fleet: one network for each table and member, tables padded to one length.

    A single table is stored once, whatever the number of members: `X [N, d]`, columns `[N]`.
    Several give `X [M, N, d]` and columns `[M, N]`; padding has weight 0.
    """

    def tensor(array: np.ndarray) -> Tensor:
        array = np.ascontiguousarray(array)
        return torch.from_numpy(array if array.flags.writeable else array.copy()).to(device)

    if len(tables) == 1:
        table = tables[0]
        return Rows(tensor(table.X), {k: tensor(v) for k, v in table.columns().items()})
    longest = max(len(table.y) for table in tables)

    def padded(arrays: list[np.ndarray]) -> Tensor:
        out = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), dtype=arrays[0].dtype)
        for row, array in zip(out, arrays, strict=True):
            row[: len(array)] = array
        return tensor(out).repeat_interleave(members, dim=0) if members > 1 else tensor(out)

    columns = [table.columns() for table in tables]
    names = set.intersection(*(set(column) for column in columns))
    X = padded([table.X for table in tables])
    return Rows(X, {name: padded([column[name] for column in columns]) for name in sorted(names)})


def select(rows: Rows, keep: Tensor) -> Rows:
    """The rows where `keep` (`[N]` or `[M, N]`, 0/1) is set; each network's own, in their order.

    Networks keep different numbers of rows: shorter selections are filled up with rows of weight 0.
    """
    if keep.dim() == 1 and all(column.dim() == 1 for column in rows.columns.values()):
        chosen = keep > 0
        X = rows.X[..., chosen, :]
        return Rows(X, {name: column[chosen] for name, column in rows.columns.items()})
    n_networks = max(
        [keep.shape[0]] * (keep.dim() == 2)
        + [column.shape[0] for column in rows.columns.values() if column.dim() == 2]
    )
    keep = (keep > 0).expand(n_networks, -1)
    longest = max(1, int(keep.sum(1).max()))
    index = torch.argsort((~keep).to(torch.uint8), dim=1, stable=True)[:, :longest]
    chosen_rows = rows.take(index)
    chosen_rows.columns["weight"] = chosen_rows["weight"] * keep.gather(1, index)
    return chosen_rows
