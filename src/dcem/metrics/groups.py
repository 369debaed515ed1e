"""How differently a score ranks people in different groups.

Four looks at the same question, from coarse to fine:

* `group_auc`, `worst_group_auc`, `auc_differences`: the area under each group's own ROC curve.
  Signed and simple, but two curves that cross can have equal areas and still treat the groups
  differently at every threshold.
* `roc_gap`: the area *between* the curves, which sees that. It is 0 only if at each false positive
  rate both groups get the same true positive rate. Also known as ABROCA (Gardner, Brooks and Baker
  2019) and, as a constraint, ROC fairness (Vogel, Bellet and Clémençon 2021). It is an absolute
  value: estimated from a finite sample it is above 0 even for a perfectly fair score, the more so
  the smaller the groups. Read it next to what equal curves would show (`bootstrap`).
* `xauc`: positives of one group against negatives of *another* (Kallus and Zhou 2019). A score can
  rank each group perfectly and still put every positive of one below the negatives of the other.

A group with one class has no ROC curve. Its values are NaN and a warning names it; a summary over
groups (worst, largest) is then NaN too, because the missing group may well be the worst. Leave the
group out or merge it with another one, and say so, to get a number for the rest.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np

from dcem.metrics._inputs import (
    Checked,
    Label,
    Membership,
    absent_class,
    read_groups,
    read_rows,
    split_by_code,
)
from dcem.metrics.roc import (
    Ranked,
    RocCurve,
    Treads,
    area_between,
    auc_of,
    corners,
    rank,
    roc_treads,
)
from dcem.table.messages import notice, require_one_of

Pair = tuple[Label, Label]
GapMethod = Literal["exact", "grid"]

# The published computation: 0, 0.0001, ..., 0.9999; the last step, to 1, is not integrated.
_GRID_STEP = 1e-4
_GRID = np.arange(0.0, 1.0, _GRID_STEP)  # 10,000 points


def group_auc(y: Any, score: Any, group: Any, *, weight: Any = None) -> dict[Label, float]:
    """The AUC within each group."""
    return _areas(Sorted.of(y, score, group, weight, "AUC").curves)


def worst_group_auc(y: Any, score: Any, group: Any, *, weight: Any = None) -> float:
    """The lowest AUC of any group; NaN if a group has none."""
    return float(np.min(list(group_auc(y, score, group, weight=weight).values())))


def auc_differences(y: Any, score: Any, group: Any, *, weight: Any = None) -> dict[Pair, float]:
    """AUC of a minus AUC of b for every pair (a, b): positive where a is ranked better."""
    return _all_differences(group_auc(y, score, group, weight=weight))


def group_roc_curves(
    y: Any, score: Any, group: Any, *, weight: Any = None
) -> dict[Label, RocCurve]:
    """The ROC curve of each group; a rate that does not exist is NaN."""
    rows, groups = _read(y, score, group, weight)
    curves = {}
    for label, members in groups.split(rows):
        _has_curve(label, members.absent(), "ROC curve")
        curves[label] = corners(members)
    return curves


def roc_gap(
    y: Any, score: Any, group: Any, *, weight: Any = None, method: GapMethod = "exact"
) -> float:
    """Area between the groups' ROC curves, in [0, 1]; with several groups, of the widest pair.

    ``method="exact"`` integrates |ROC_a - ROC_b| piece by piece over all corners and crossings of
    the two curves. ``method="grid"`` is the computation behind the published figures: both curves
    at 10,000 false positive rates 0, 0.0001, ..., 0.9999 and the trapezoid rule. The two
    differ by less than 2e-4.

        >>> roc_gap([0, 1, 0, 1], [0.2, 0.8, 0.7, 0.3], ["a", "a", "b", "b"])
        1.0
    """
    return _widest(roc_gaps(y, score, group, weight=weight, method=method))


def roc_gaps(
    y: Any, score: Any, group: Any, *, weight: Any = None, method: GapMethod = "exact"
) -> dict[Pair, float]:
    """The ROC gap of every pair of groups."""
    require_one_of("method", method, ("exact", "grid"))
    return _gaps(Sorted.of(y, score, group, weight, "ROC gap").curves, method)


def xauc(y: Any, score: Any, group: Any, *, weight: Any = None) -> dict[Pair, float]:
    """For each ordered pair (a, b): P(a positive of a scores higher than a negative of b).

    Ties count half. The pair (a, b) asks whether positives of a stand out from negatives of b; if
    it is much lower than (b, a), people of group a are passed over for people of group b.
    """
    rows, groups = _read(y, score, group, weight)
    return _xauc(_ranked_cells(rows, groups), groups)


def xauc_difference(y: Any, score: Any, group: Any, *, weight: Any = None) -> float:
    """The largest |xAUC(a, b) - xAUC(b, a)| over all pairs of groups; NaN if a pair has none."""
    return _largest_difference(xauc(y, score, group, weight=weight))


class Sorted(NamedTuple):
    """A score sorted once, for all that is asked of it; see `dcem.metrics.registry`."""

    rows: Checked
    groups: Membership
    cells: list[tuple[Ranked, Ranked]]  # positives and negatives of each group
    curves: Curves

    @classmethod
    def of(cls, y: Any, score: Any, group: Any, weight: Any, what: str = "ROC curve") -> Sorted:
        """Read and sorted; a warning names `what` is asked for and the groups without a curve."""
        rows, groups = _read(y, score, group, weight)
        cells = _ranked_cells(rows, groups)
        return cls(rows, groups, cells, _curves(cells, groups, what))

    def auc(self) -> float:
        """Of everybody."""
        return auc_of(self.rows)

    def roc_gap(self, method: GapMethod = "exact") -> float:
        """Of the widest pair of groups."""
        return _widest(_gaps(self.curves, method))

    def xauc_difference(self) -> float:
        """The largest of all pairs of groups."""
        return _largest_difference(_xauc(self.cells, self.groups))

    def auc_difference(self) -> float:
        """Of the first pair of groups."""
        return next(iter(_all_differences(_areas(self.curves)).values()), float("nan"))


def _xauc(cells: list[tuple[Ranked, Ranked]], groups: Membership) -> dict[Pair, float]:
    values = {}
    for a, label in enumerate(groups.levels):
        for b, other in enumerate(groups.levels):
            if a != b:
                values[label, other] = _area_or_nan(cells[a][0], cells[b][1])
    for label, (positives, negatives) in zip(groups.levels, cells, strict=True):
        for side, name in ((positives, "positives"), (negatives, "negatives")):
            if values and not side.passed[-1]:
                notice(
                    f"xAUC: group {label!r} has no {name}, so its pairs that need them are not "
                    "estimable: NaN."
                )
    return values


def _largest_difference(values: dict[Pair, float]) -> float:
    if not values:
        notice("The xAUC difference is not estimable: there is only one group. It is NaN.")
        return float("nan")
    return float(np.max([abs(value - values[b, a]) for (a, b), value in values.items()]))


def _read(y: Any, score: Any, group: Any, weight: Any) -> tuple[Checked, Membership]:
    rows = read_rows(y, score, weight, group=group)
    return rows, read_groups(group, rows)


def _has_curve(label: Label, lacking: str | None, what: str) -> bool:
    if lacking:
        notice(f"The {what} is not estimable for group {label!r}, which has {lacking}: NaN.")
    return lacking is None


def _ranked_cells(rows: Checked, groups: Membership) -> list[tuple[Ranked, Ranked]]:
    """Positives and negatives of each group, sorted: every later step only merges them."""
    n_groups = len(groups.levels)
    cells = [
        rank(members.score, members.weight)
        for members in map(rows.take, split_by_code(2 * groups.code + rows.positive, 2 * n_groups))
    ]
    return [(cells[2 * g + 1], cells[2 * g]) for g in range(n_groups)]


Curves = dict[Label, Treads | None]  # None where a class is absent


def exact_gaps(rows: Checked, groups: Membership) -> dict[Pair, float]:
    """The ROC gap of every pair in rows that have been read; NaN without a warning."""
    return _gaps(_curves(_ranked_cells(rows, groups), groups), "exact")


def _curves(cells: list[tuple[Ranked, Ranked]], groups: Membership, what: str = "") -> Curves:
    """The ROC curve of each group; a warning that names `what`, if given, where there is none."""
    curves: Curves = {}
    for label, (positives, negatives) in zip(groups.levels, cells, strict=True):
        n_rows = len(positives.key) + len(negatives.key)
        lacking = absent_class(n_rows, positives.passed[-1], negatives.passed[-1])
        there = _has_curve(label, lacking, what) if what else not lacking
        curves[label] = roc_treads(positives, negatives) if there else None
    return curves


def _areas(curves: Curves) -> dict[Label, float]:
    return {
        label: float("nan") if curve is None else float(curve.area())
        for label, curve in curves.items()
    }


def _all_differences(values: dict[Label, float]) -> dict[Pair, float]:
    return {(a, b): values[a] - values[b] for a, b in combinations(values, 2)}


def _gaps(curves: Curves, method: GapMethod) -> dict[Pair, float]:
    between = area_between if method == "exact" else _area_on_grid
    gaps = {}
    for a, b in combinations(curves, 2):
        one, other = curves[a], curves[b]
        if one is None or other is None:
            gaps[a, b] = float("nan")
        else:
            gaps[a, b] = float(between(one, other))
    return gaps


def _widest(gaps: dict[Pair, float]) -> float:
    if not gaps:
        notice("The ROC gap is not estimable: there is only one group. The result is NaN.")
        return float("nan")
    return float(np.max(list(gaps.values())))


def _area_or_nan(positives: Ranked, negatives: Ranked) -> float:
    if not (positives.passed[-1] and negatives.passed[-1]):
        return float("nan")
    return float(roc_treads(positives, negatives).area())


def _area_on_grid(one: Treads, other: Treads) -> np.ndarray:
    return np.trapezoid(np.abs(_on_grid(one) - _on_grid(other)), dx=_GRID_STEP)


def _on_grid(curve: Treads) -> np.ndarray:
    """Heights at all points of the grid. Of repeated abscissae, the ends of a riser, np.interp
    takes the last: the upper one."""
    along = np.repeat(curve.edge, 2)[1:-1]  # both ends of each tread
    return np.interp(_GRID, along, np.stack([curve.start, curve.end], -1).ravel())
