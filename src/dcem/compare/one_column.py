"""Columns that alone predict the outcome: usually the result in other words.

A column that clearly reaches an AUC over .9 by itself, and without which the other columns fall
short by more than .1, carries the score. On a table of five columns or more that is seldom a risk
factor. It is the diagnosis, its treatment, or a code that followed. The leak may also be spread:
over the dummies of one category, over columns of which each is filled in for other people, over a
column and the mark of its gaps, or over two copies, of which either can be spared. So columns that
share out people among them count as one, and where a strong column can be spared, all strong
columns, and those that say the same, are taken away together.

All figures are of the tested, out of fold, on a few thousand rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from dcem.estimation.findings import ABOVE_ALL, Finding
from dcem.estimation.folds import person_folds, within_budget
from dcem.learners import Sample, make_learner
from dcem.metrics.roc import auc
from dcem.table.encoder import Encoder, Encoding
from dcem.table.labels import SelectiveLabels
from dcem.table.leaks import number_cells
from dcem.text import listed, number

ROWS = 4_000  # tested rows that are looked at, at most
FEWEST_COLUMNS = 5
FEWEST = 10  # people with each result
STRONG, COST = 0.9, 0.1  # the AUC of a column alone, and what is lost without it
SURE = 1.0  # standard errors by which the AUC of a column has to exceed `STRONG`
ALIKE = 0.7  # rank correlation of two columns' risks from which on they say the same
PRESENT = 0.2  # share of rows with one value, or none, that makes another value an event
FOLDS = 2
MOST_NAMED = 6


@dataclass(frozen=True)
class Dominant:
    """Columns that carry the score, and the AUC with and without them, among the tested."""

    columns: tuple[str, ...]
    alone: float
    whole: float
    without: float


def find_dominant(problem: SelectiveLabels, encoder: Encoder | None = None) -> Dominant | None:
    """The columns that carry the score of a table, or None.

    Without an `encoder` a feature is a column.
    """
    encodings = (
        tuple(Encoding(name, "number") for name in problem.feature_names)
        if encoder is None
        else encoder.encodings
    )
    if len(encodings) < FEWEST_COLUMNS or problem.positives_only:
        return None
    tested = problem.subset(np.flatnonzero(problem.tested))
    tested = tested.subset(within_budget(tested, ROWS, 0))
    positive = tested.y_obs == 1
    if min(len(np.unique(tested.person[rows])) for rows in (positive, ~positive)) < FEWEST:
        return None
    ends = np.cumsum([0, *(len(one.features) for one in encodings)])
    features = {
        one.name: np.arange(first, last)
        for one, first, last in zip(encodings, ends[:-1], ends[1:], strict=True)
    }
    return _Search(tested, features).dominant()


class _Search:
    """The columns of tested rows, each with the risk that it alone predicts, out of fold."""

    def __init__(self, tested: SelectiveLabels, features: Mapping[str, np.ndarray]) -> None:
        self.X, self.y, self.person = tested.X, tested.y_obs, tested.person
        self.features = features
        self.fold = person_folds(tested, FOLDS, 0)
        blocks = {name: self.X[:, own] for name, own in features.items()}
        self.risk: dict[tuple[str, ...], np.ndarray] = {
            (name,): self._risk_alone(block) for name, block in blocks.items()
        }
        for family, code in _families(blocks):
            self.risk[family] = self._risk_of_cells(code)
        self.auc = {names: float(auc(self.y, risk)) for names, risk in self.risk.items()}

    def dominant(self) -> Dominant | None:
        """The strongest column, or those that say the same, if the others cannot replace them."""
        strong = [names for names, area in self.auc.items() if self._is_strong(area)]
        if not strong:
            return None
        strongest = max(strong, key=lambda names: self.auc[names])
        alone = self.auc[strongest]
        whole = max(alone, self._fitted_auc(()))
        echoes = {name for names in (*strong, *self._alike(strongest)) for name in names}
        for chosen in ({*strongest}, echoes):
            columns = tuple(name for name in self.features if name in chosen)
            without = self._fitted_auc(columns)
            if whole - without > COST:
                return Dominant(columns, alone, whole, without)
        return None

    def _is_strong(self, area: float) -> bool:
        """True if an AUC is clearly above `STRONG` (standard error of Hanley and McNeil)."""
        n, m = (len(np.unique(self.person[self.y == value])) for value in (1, 0))
        both, same = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
        variance = (area * (1 - area) + (n - 1) * both + (m - 1) * same) / (n * m)
        return area > STRONG + SURE * max(variance, 0.0) ** 0.5

    def _alike(self, strongest: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Columns whose risks go with those of the strongest one."""
        rank = rankdata(self.risk[strongest])
        return [
            names
            for names, risk in self.risk.items()
            if np.ptp(risk) > 0 and np.corrcoef(rankdata(risk), rank)[0, 1] >= ALIKE
        ]

    def _fitted_auc(self, without: Sequence[str]) -> float:
        """The AUC of boosted trees on all other columns, a half .5 where none is left."""
        kept = [own for name, own in self.features.items() if name not in without]
        if not kept:
            return 0.5
        X, score = self.X[:, np.concatenate(kept)], np.zeros(len(self.y))
        for k in range(FOLDS):
            held = self.fold == k
            learnt = Sample(X[~held], self.y[~held], np.ones((~held).sum()), self.person[~held])
            model = make_learner("boost", 0, quick=True).fit(learnt)
            score[held] = model.predict_logit(X[held])
        areas = [auc(self.y[self.fold == k], score[self.fold == k]) for k in range(FOLDS)]
        return float(np.nanmean(areas))

    def _risk_alone(self, block: np.ndarray) -> np.ndarray:
        """The risk by one column: by its cells or, if that ranks better, by its size."""
        if block.shape[1] > 1:
            return self._risk_of_cells(_codes(block))
        values = block[:, 0]
        if np.isnan(values).all():
            return np.zeros(len(values))
        cells = self._risk_of_cells(number_cells(values).codes)
        size = np.where(np.isnan(values), np.nanmedian(values), values)
        size = size if auc(self.y, size) >= 0.5 else -size
        return max(cells, size, key=lambda risk: auc(self.y, risk))

    def _risk_of_cells(self, codes: np.ndarray) -> np.ndarray:
        """Share of positives in the same cell, among people of the other folds [n]."""
        risk, many = np.zeros(len(codes)), int(codes.max()) + 1
        for k in range(FOLDS):
            held = self.fold == k
            rows = np.bincount(codes[~held], minlength=many)
            cases = np.bincount(codes[~held], self.y[~held], minlength=many)
            base = self.y[~held].mean()
            risk[held] = ((cases + base) / (rows + 1))[codes[held]]
        return risk


def _codes(block: np.ndarray) -> np.ndarray:
    """The pattern of indicators of each row, as a number from 0 on."""
    return np.unique(np.nan_to_num(block, nan=-1.0), axis=0, return_inverse=True)[1].ravel()


def _families(blocks: Mapping[str, np.ndarray]) -> list[tuple[tuple[str, ...], np.ndarray]]:
    """Columns that share out people among them, and the column that each person has.

    Dummies of one category never hold for the same person; nor are columns of which each is
    recorded for people of its own filled in together.
    """
    events = {name: event for name, block in blocks.items() if (event := _event(block)) is not None}
    waiting = sorted(events, key=lambda name: -events[name].sum())
    families = []
    while waiting:
        family, seen = [waiting[0]], events[waiting[0]].copy()
        for name in waiting[1:]:
            if not (seen & events[name]).any():
                family.append(name)
                seen |= events[name]
        waiting = [name for name in waiting if name not in family]
        if len(family) > 1:
            code = np.zeros(len(seen), np.int64)
            for place, name in enumerate(family, 1):
                code[events[name]] = place
            families.append((tuple(family), code))
    return families


def _event(block: np.ndarray) -> np.ndarray | None:
    """The rows in which something is there, if a column has a usual value, or none, elsewhere."""
    values = block[:, 0]
    if block.shape[1] > 1:
        return None
    missing = np.isnan(values)
    if missing.mean() >= PRESENT:
        return ~missing
    present, counts = np.unique(values[~missing], return_counts=True)
    if not len(present):
        return None
    zero = 0.0 if 0.0 in present else present[counts.argmax()]
    event = ~missing & (values != zero)
    usual = np.mean(values == zero) >= PRESENT
    return event if usual and event.any() else None


def about_dominant(problem: SelectiveLabels, encoder: Encoder | None = None) -> Finding | None:
    """The finding about the columns that carry the score of a table, or None."""
    dominant = find_dominant(problem, encoder)
    if dominant is None:
        return None
    several = len(dominant.columns) > 1
    names = listed([f"`{name}`" for name in dominant.columns], MOST_NAMED)
    what = f"{names} alone reach{'es' * (not several)} an AUC of {number(dominant.alone, 2)}"
    if several:
        what = f"{names} carry the score: alone, their AUC is {number(dominant.alone, 2)}"
    left = f"without {'them' if several else 'it'}, all others reach {number(dominant.without, 2)}"
    text = (
        f"With all columns the AUC is {number(dominant.whole, 2)} (boosted trees, among the "
        "tested). So strong a column is often the result in other words, or was recorded after it. "
        "Then nobody can reach these numbers at the time of the decision."
    )
    remedy = (
        f"Ask when {'they are' if several else 'it is'} recorded. Known before the decision to "
        f"test: keep {'them' if several else 'it'}. Recorded later: leave "
        f"{'them' if several else 'it'} out (`exclude`) and run this again."
    )
    return Finding(
        ABOVE_ALL,
        "serious",
        "features",
        values={"columns": list(dominant.columns), **_measured(dominant)},
        headline=f"{what}; {left}.",
        text=text,
        remedy=remedy,
    )


def _measured(dominant: Dominant) -> dict[str, float]:
    return {
        "alone": round(dominant.alone, 3),
        "whole": round(dominant.whole, 3),
        "without": round(dominant.without, 3),
    }
