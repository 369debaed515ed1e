"""Columns that may have been recorded after the labelling decision.

Such a column (the result of a follow-up test, the drug that the result led to) lets a model read
the decision, or its outcome, off a value that does not exist when the model is to be used. A table
has no clock, but it gives hints, each about one column alone. The kinds of a `Leak`:

* ``"tested"``: the column nearly determines who was tested; its AUC for `tested` is .9 or more.
  What drives testing in practice (symptoms, age, the ward) stays below; results of the test do not;
* ``"only-tested"``: some of its values hardly ever occur without the test, or it is hardly ever
  filled in without it: the test filled them in;
* ``"label"``: among the tested, the column nearly determines the label; its AUC is .95 or more, or
  .85 of a column with two values (but for missing and odd ones). Risk factors do not reach that;
  the label in other words does, also if it was copied with errors in one row of ten;
* ``"implies-label"``: under some of its values everybody tested is positive, and these cover a
  good part of the positives: a diagnosis, a treatment, a code that follows a positive result;
* ``"follows"``: one person in five tested, or fewer, is positive; under some of its values half of
  the tested are, and these cover half of the positives; and nine in ten people with such a value
  were tested, of all at most half. Either would be a risk factor; both together are what a positive
  result led to, such as a procedure, that a few had without it;
* ``"after"``: a date that lies after the decision itself, where the table says when that was;
* ``"truth"``: the column nearly determines the true outcome of everybody, where that is known.

A hint is not a proof, and its absence proves nothing: a drug that is changed *because of* the
result may be only weakly related to testing. Only a person who knows when each column is written
can tell.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import lgamma, log
from typing import NamedTuple

import numpy as np

from dcem.table.values import spell
from dcem.text import number, percent

AUC_LIMIT = 0.9
LABEL_AUC_LIMIT = 0.95
TWO_VALUES_AUC_LIMIT = 0.85  # hardly any yes-or-no risk factor tells so many of both apart
TWO_VALUES = 0.9  # share of the filled rows that two values need for a column to have two
LABEL_FEWEST = 20  # positives, and negatives, among the tested: cells cannot fit so many by chance
EXACT = 0.9999
BINS = 20
ROWS_PER_CELL = 10  # with fewer, cells can predict anything by chance
FEWEST = 50  # rows that a value needs to be called tested only
FEWEST_POSITIVE = 20  # positives that a value needs to be said to imply the label
NEARLY_ALL = 0.995  # share of a value's rows that is tested, or positive
MOSTLY, HALF, RARELY = 0.9, 0.5, 0.2  # shares of what follows a positive result
PART = 0.1  # of all tested rows, or positives, that such values must cover
UNLIKELY = log(1e-6)  # how rarely chance may do the same
UNLIKELY_COPY = log(1e-4)  # the same, of a column that errs nowhere
NEIGHBOURS = 6  # values next to a gap, on each side
WIDE_GAP = 3  # a gap is wide if it is so many times the widest step between these
NO_VALUE, ANY_VALUE = "no value", "any value"
AFTER = 0.02  # share of a column's dates that may lie after the decision, by mistakes of typing
AFTER_ROWS = 10


class Cells(NamedTuple):
    """A column cut into cells: levels, or values and bands of numbers; missing is one of them."""

    codes: np.ndarray  # [n]
    names: list[str]
    single: int  # the first so many cells are single values, not bands
    measured: np.ndarray | None = None  # the numbers themselves [n]; None for a category

    def first(self, chosen: np.ndarray) -> tuple[str, ...]:
        """The names of the first three of the cells that are chosen."""
        return tuple(self.names[i] for i in np.flatnonzero(chosen)[:3])


@dataclass(frozen=True)
class Leak:
    """A sign that a column was recorded after the decision to test.

    Attributes
    ----------
    column
        Its name.
    kind
        "tested", "only-tested", "label", "implies-label", "follows", "after" or "truth"; see the
        module.
    strength
        For "tested", "label" and "truth" an AUC, where 1 is certainty; otherwise the share of the
        tested, of the positives, or of the dates that `values` cover.
    values
        The values that give the sign, if single values do; at most three.
    found_only
        Whether nobody recorded who was tested; then `sentence` does not mention testing.
    is_rule
        Whether the size of a measurement shows who was tested. A testing rule may use it; without
        this column the tested would seem to represent people whom the rule leaves out. A rule cuts
        through a measurement: where a gap parts the tested from the untested, it is no rule.
    """

    column: str
    kind: str
    strength: float
    values: tuple[str, ...] = ()
    found_only: bool = False
    is_rule: bool = False

    @property
    def sentence(self) -> str:
        """What was seen, to follow the name of the column."""
        which = ", ".join(map(repr, self.values))
        reveals = "reveals" if self.strength >= 0.98 else "nearly reveals"
        if self.kind == "tested":
            if self.strength > EXACT:
                itself = "" if self.is_rule else " (it may be the decision itself)"
                return f"it shows exactly who was tested{itself}"
            auc = number(self.strength, 2)
            return f"it alone predicts who was tested with an AUC of {auc}"
        auc = f"AUC {number(self.strength, 2)}"
        among, tested = ("it", "") if self.found_only else ("among the tested it", "tested ")
        occurs = f"{which} hardly ever occur{'s' if len(self.values) == 1 else ''}"
        if self.values == (ANY_VALUE,):
            occurs = "it is hardly ever filled in"
        return {
            "only-tested": f"{occurs} without the test",
            "label": f"{among} {reveals} the label ({auc})",
            "implies-label": f"everybody {tested}with {which} is positive, and these are "
            f"{percent(self.strength)} of the positives",
            "follows": f"{percent(self.strength)} of the positives have {which}, which is rare "
            "without the test",
            "after": f"{percent(self.strength)} of its dates lie after the decision",
            "truth": f"it {reveals} the true outcome ({auc})",
        }[self.kind]


def find_leaks(
    column: str,
    cells: Cells,
    tested: np.ndarray,
    label: np.ndarray | None = None,
    truth: np.ndarray | None = None,
) -> tuple[Leak, ...]:
    """The signs that a column gives.

    `label [n]` is 0 or 1 where somebody was tested, `truth [n]` of all.
    """
    found = list(_about_testing(column, cells, tested))
    if label is not None:
        among = cells._replace(codes=cells.codes[tested])
        found += _about_outcome(column, "label", among, label[tested] == 1)
        found += [] if found else _about_both(column, cells, tested, tested & (label == 1))
    if truth is not None and not any(leak.kind == "label" for leak in found):
        about = _about_outcome(column, "truth", cells, truth == 1)
        found += [leak for leak in about if leak.kind == "truth"]
    return tuple(found)


def recorded_after(column: str, days: np.ndarray, decided: np.ndarray) -> tuple[Leak, ...]:
    """The sign that a column of dates gives, against the day of each row's decision (both [n]).

    The time of day does not count: many columns of dates do not have it.
    """
    given = ~np.isnan(days)
    later = np.floor(days[given]) > np.floor(decided[given])
    if later.sum() < AFTER_ROWS or later.mean() < AFTER:
        return ()
    return (Leak(column, "after", float(later.mean())),)


def _about_testing(column: str, cells: Cells, tested: np.ndarray) -> Iterator[Leak]:
    rate = float(tested.mean())
    if not 0 < rate < 1:
        return
    rows, looked = _count(cells, tested)
    share = looked / np.maximum(rows, 1)
    area = _auc_of_cells(share, looked, rows - looked)
    # Measured on both sides: what a test leaves behind has one value, or none, without it.
    bands = slice(cells.single, -1)
    is_rule = all(one[bands].sum() > one.sum() / 2 for one in (looked, rows - looked))
    is_rule = is_rule and not _parted(cells.measured, tested)
    exactly = area > EXACT and _beyond_chance(rows, int(tested.sum()))
    if exactly or (area >= AUC_LIMIT and len(tested) >= ROWS_PER_CELL * (rows > 0).sum()):
        yield Leak(column, "tested", area, is_rule=is_rule)
    if exactly:
        return
    only = (rows >= FEWEST) & (share >= NEARLY_ALL)
    # Where almost everybody is tested, a value among the tested alone is not surprising.
    surprising = only & (rows * log(max(rate, 1e-12)) < UNLIKELY)
    covered = looked[surprising].sum() / looked.sum()
    if covered >= PART:
        is_rule = is_rule and not surprising[: cells.single].any()
        telling = cells.first(surprising)
        yield Leak(column, "only-tested", float(covered), telling, is_rule=is_rule)
        return
    # Filled in for the tested alone, however many values it has: all but "no value" together.
    given, given_tested = rows[:-1].sum(), looked[:-1].sum()
    mostly = given >= FEWEST and given_tested >= NEARLY_ALL * given
    covered = given_tested / looked.sum()
    if mostly and given * log(max(rate, 1e-12)) < UNLIKELY and covered >= PART:
        yield Leak(column, "only-tested", float(covered), (ANY_VALUE,))


def _parted(measured: np.ndarray | None, tested: np.ndarray) -> bool:
    """Whether a gap lies between the tested and the untested, wider than any between neighbours."""
    if measured is None:
        return False
    given = ~np.isnan(measured)
    sides = sorted((np.unique(measured[given & part]) for part in (tested, ~tested)), key=np.max)
    below, above = (side[-NEIGHBOURS:] for side in (sides[0], sides[1][::-1]))
    gap = above[-1] - below[-1]
    return bool(gap > WIDE_GAP * max(*np.abs(np.diff(below)), *np.abs(np.diff(above)), 0.0, 0.0))


def _about_outcome(column: str, kind: str, cells: Cells, positive: np.ndarray) -> Iterator[Leak]:
    """Signs of the label (among the tested) or of the truth (among all)."""
    ill, well = int(positive.sum()), int((~positive).sum())
    if min(ill, well) == 0:
        return
    rows, cases = _count(cells, positive)
    share = cases / np.maximum(rows, 1)
    area = _auc_of_cells(share, cases, rows - cases)
    enough = min(ill, well) >= LABEL_FEWEST
    if (area >= LABEL_AUC_LIMIT and enough) or (area > EXACT and _beyond_chance(rows, ill)):
        yield Leak(column, kind, area)
        return
    filled = rows.copy()
    if (rows > 0).sum() > 2:
        filled[-1] = 0  # "no value" is one of two values only where there is one other
    two = np.argsort(-filled, kind="stable")[:2]
    hits, misses = cases[two], (rows - cases)[two]
    nearly_all = filled[two].sum() >= TWO_VALUES * filled.sum()
    if nearly_all and min(hits.sum(), misses.sum()) >= LABEL_FEWEST:
        area = _auc_of_cells(share[two], hits, misses)
        if area >= TWO_VALUES_AUC_LIMIT:
            yield Leak(column, kind, area)
            return
    implies = (cases >= FEWEST_POSITIVE) & (share >= NEARLY_ALL)
    implies &= rows * log(ill / (ill + well)) < UNLIKELY
    implies[cells.single :] = False  # the highest band of a strong risk factor may do so
    covered = cases[implies].sum() / ill
    if covered >= PART:
        yield Leak(column, "implies-label", float(covered), cells.first(implies))


def _about_both(
    column: str, cells: Cells, tested: np.ndarray, positive: np.ndarray
) -> Iterator[Leak]:
    """Values that go with the test and with its positive result."""
    rows, looked = _count(cells, tested)
    cases = _count(cells, positive)[1]
    telling = (rows >= FEWEST) & (looked >= MOSTLY * rows)
    telling &= cases >= np.maximum(FEWEST_POSITIVE, HALF * looked)
    telling[cells.single :] = False
    rare = tested.mean() <= HALF and cases.sum() <= RARELY * looked.sum()
    if rare and cases[telling].sum() >= HALF * max(cases.sum(), 1):
        covered = float(cases[telling].sum() / cases.sum())
        yield Leak(column, "follows", covered, cells.first(telling))


def _beyond_chance(rows: np.ndarray, positives: int) -> bool:
    """Whether cells that separate two classes without an error could hardly do so by chance.

    With `used` cells there are at most 2^used ways to call them, and C(n, positives) ways in which
    the classes could have fallen.
    """
    n, used = int(rows.sum()), int((rows > 0).sum())
    ways = lgamma(n + 1) - lgamma(positives + 1) - lgamma(n - positives + 1)
    return used * log(2) - ways < UNLIKELY_COPY


def _count(cells: Cells, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of each cell, and those of them that are chosen."""
    many = len(cells.names)
    rows = np.bincount(cells.codes, minlength=many).astype(float)
    return rows, np.bincount(cells.codes[chosen], minlength=many).astype(float)


def _rounded(value: float) -> str:
    return spell(float(f"{value:.3g}"))


def number_cells(
    values: np.ndarray,
    written: Callable[[float], str] = spell,
    roughly: Callable[[float], str] = _rounded,
) -> Cells:
    """Numbers [n] in cells: each frequent value its own, the others in at most `BINS` bands.

    A value is frequent if it has at least one row in `BINS`, or if there are not more than `BINS`
    values in all: 0 and 1 are two cells, and so is a -1 for "not measured" beside measurements.
    Missing values are a cell of their own, the last. A value is named as it is `written`, the ends
    of a band `roughly`.
    """
    absent = np.isnan(values)
    present = values[~absent]
    found, codes, counts = np.unique(present, return_inverse=True, return_counts=True)
    frequent = counts >= len(present) / BINS if len(found) > BINS else np.ones(len(found), bool)
    names = [written(value) for value in found[frequent]]
    single = len(names)
    place = np.cumsum(frequent) - 1  # [distinct]
    rest = present[~frequent[codes]]
    if len(rest):
        edges = np.unique(np.quantile(rest, np.linspace(0, 1, BINS + 1)))
        band = np.clip(np.searchsorted(edges, found, side="right") - 1, 0, max(len(edges) - 2, 0))
        place = np.where(frequent, place, len(names) + band)
        bands = [f"{roughly(low)} to {roughly(high)}" for low, high in itertools.pairwise(edges)]
        names += bands or ["others"]
    out = np.full(len(values), len(names))
    out[~absent] = place[codes]
    return Cells(out, [*names, NO_VALUE], single, values)


def level_cells(codes: np.ndarray, names: tuple[str, ...]) -> Cells:
    """Codes with missing (-1) as a level of its own, rare levels in one."""
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    few = len(names) <= BINS
    kept = np.flatnonzero(counts >= (1 if few else FEWEST))
    place = np.full(len(names) + 1, len(kept))  # all rare ones together
    place[kept] = np.arange(len(kept))
    place[-1] = len(kept) + 1  # what the code -1 finds
    shown = [*(names[i] for i in kept), "a rare value", NO_VALUE]
    return Cells(place[codes], shown, len(kept))


def _auc_of_cells(score: np.ndarray, positives: np.ndarray, negatives: np.ndarray) -> float:
    """AUC of cells with this score that hold so many positives and negatives; ties count half."""
    place = np.unique(score, return_inverse=True)[1]
    p, n = np.bincount(place, positives), np.bincount(place, negatives)
    below = np.cumsum(n) - n
    return float((p * (below + n / 2)).sum() / (p.sum() * n.sum()))
