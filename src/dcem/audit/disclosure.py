"""An audit that can be shared: small counts hidden, and the rates that would give them away.

Counts of rows, tested and positive of each group and of everybody are hidden together by
`dcem.table.disclosure`. A plain rate is withheld unless both of its counts are shown: 3 positives
of 40 tested can be read off "7.5 %" as well. Of a group with a small count nothing else is told
either; of one whose count is withheld for another's sake, what rests on models stays. Histograms
and curves are computed without bins of under ten people from the start.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import nan
from typing import Any, TypeVar

from dcem.audit.advice import with_conclusions
from dcem.audit.deciders import shareable
from dcem.audit.results import (
    HIDDEN,
    Audit,
    GroupCounts,
    KnownRate,
    Prevalence,
    TestErrors,
    TestingRate,
    Yield,
)
from dcem.estimation.results import WITHHELD, Overlap
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import MANY_GROUPS, Shown, hide_groups

CELLS = ("rows", "tested", "positive")
BY_CHANCE = 0.75  # an AUC of about five tests, if nothing could predict them

Item = TypeVar("Item", TestingRate, Yield, Prevalence, KnownRate)


def without_small_cells(audit: Audit) -> Audit:
    """The same audit; what would show a count under ten is NaN with the reason."""
    items = {item.group: item for item in (*audit.counts, audit.total)}
    exact = {name: {cell: getattr(item, cell) for cell in CELLS} for name, item in items.items()}
    found = hide_groups(
        [exact[item.group] for item in audit.counts], [item.few for item in items.values()]
    )
    shown = dict(zip(items, found, strict=True))

    # Of many groups one is shown whole or not at all: any number of it would tell of its size.
    crowd = {
        one.group
        for one in audit.counts
        if len(audit.counts) > MANY_GROUPS and isinstance(shown[one.group]["rows"], str)
    }

    def hidden(group: str, *cells: str) -> bool:
        # An empty cell is nobody's: a rate of exactly 0 or 1 may be told, unless of a small group.
        return group in shown and any(
            isinstance(shown[group][cell], str) and (exact[group][cell] > 0 or few(group, cell))
            for cell in cells
        )

    def few(group: str, *cells: str) -> bool:
        return group in crowd or (group in items and not items[group].few.isdisjoint(cells))

    def testing_of(rate: TestingRate) -> TestingRate:
        if few(rate.group, "rows", "tested", "untested"):
            return replace(_withholding(rate, *_names_of_estimates(rate)), p_value=nan, each={})
        return _withholding(rate, *["crude"] * hidden(rate.group, "rows", "tested"))

    def yield_of(item: Yield) -> Yield:
        if few(item.group, "rows", "tested", "positive", "negative"):
            return replace(
                _withholding(item, *_names_of_estimates(item)), p_value=nan, p_value_equal=nan
            )
        others = hidden(item.group, *outcome) or hidden(
            audit.reference or audit.total.group, *outcome
        )
        return _withholding(
            item, *["rate"] * hidden(item.group, *outcome), *["difference"] * others
        )

    def prevalence_of(item: Prevalence) -> Prevalence:
        item = _with_reason(item, audit.overlap.get(item.group), overlap.get(item.group))
        if few(item.group, *CELLS, "untested", "negative"):
            item = _withholding(item, *_names_of_estimates(item))
        elif hidden(item.group, *CELLS):
            item = _withholding(item, "recorded", "tested_only", "hidden")
        else:
            return item
        return replace(item, bounds=(nan, nan), limits=(nan, nan))

    outcome = ("tested", "positive")
    overlap = {}
    for name, item in audit.overlap.items():
        if not hidden(name, "rows"):
            item = item.shareable(exact.get(name, exact[audit.total.group])["rows"])
        if hidden(name, "rows", "tested"):
            item = _without_shares(item, everything=hidden(name, "rows"))
        if name in crowd:
            item = replace(item, reach=round(item.reach, 1))
        overlap[name] = item
    withheld = tuple(item.group for item in audit.counts if hidden(item.group, *CELLS))
    a, b, c = (
        audit.testing_sensitivity,
        audit.prevalence_sensitivity,
        audit.performance_sensitivity,
    )
    calibration = audit.calibration
    if calibration is not None and hidden(audit.total.group, "tested"):
        # all digits of an AUC, and how far chance moves it, tell of how many tests it is
        rounded = round(calibration.auc, 2)
        calibration = replace(calibration, auc=rounded, auc_by_chance=BY_CHANCE)
    masked = replace(
        audit,
        testing=tuple(map(testing_of, audit.testing)),
        yields=tuple(map(yield_of, audit.yields)),
        prevalence=tuple(map(prevalence_of, audit.prevalence)),
        # Shares of all parts of a group add up to its own.
        risk_curves=tuple(
            item for item in audit.risk_curves if not hidden(item.group, "rows", "tested")
        ),
        testing_sensitivity=None if a and few(a.group, "rows", "tested", "untested") else a,
        # Margins of a hidden cell would give it away: what rests on models stays, counts do not.
        by_attribute={
            name: tuple(replace(rate, crude=WITHHELD) for rate in rates) if withheld else rates
            for name, rates in audit.by_attribute.items()
        },
        calibration=calibration,
        needed=tuple(item for item in audit.needed if not hidden(item.group, *CELLS)),
        counts=tuple(_masked(item, shown[item.group], bool(withheld)) for item in audit.counts),
        total=_masked(audit.total, shown[audit.total.group], False),
        overlap=overlap,
        # The limits of a group's curve are its recorded rate, and that plus its untested.
        prevalence_sensitivity=b
        and replace(b, curves={n: v for n, v in b.curves.items() if not hidden(n, *CELLS)}),
        performance_sensitivity=c
        and replace(c, auc={n: v for n, v in c.auc.items() if not hidden(n, *outcome)}),
        known=tuple(
            replace(
                _withholding(item, "estimated", "difference", "odds_ratio"),
                p_value=nan,
                detectable=(nan, nan),
            )
            if hidden(item.group, *CELLS)
            else item
            for item in audit.known
        ),
        test_errors=_shareable(audit, withheld, hidden(audit.total.group, *CELLS)),
        preference=None if hidden(audit.total.group, *CELLS) else audit.preference,
        deciders=shareable(audit.deciders, {name: hidden(name, *CELLS) for name in items}),
        hidden_cause=None if hidden(audit.total.group, *CELLS) else audit.hidden_cause,
        withheld=withheld or (audit.total.group,) * hidden(audit.total.group, *CELLS),
    )
    return with_conclusions(masked)


def _shareable(audit: Audit, withheld: Collection[str], total: bool) -> TestErrors | None:
    """What is reported of an imperfect test: where everybody was tested its numbers are counts."""
    found = audit.test_errors
    if found is None or (not withheld and not total):
        return found
    if audit.extent == "everybody":
        return replace(
            found, as_shown=WITHHELD, points=(), pair=None, p_value=nan, equal_at=nan, prevalence={}
        )
    if found.pair is None or not set(found.pair) & set(withheld):
        return found
    points = tuple(replace(point, difference=nan) for point in found.points)
    return replace(found, points=points, pair=None, p_value=nan, equal_at=nan, prevalence={})


def _names_of_estimates(item: Any) -> list[str]:
    return [name for name, value in vars(item).items() if isinstance(value, Estimate)]


def _withholding(item: Item, *names: str) -> Item:
    """Without these estimates, unless there was nothing to withhold."""
    lost: Any = {name: WITHHELD for name in names if getattr(item, name).estimable}
    return replace(item, **lost)


def _with_reason(item: Prevalence, exact: Overlap | None, shown: Overlap | None) -> Prevalence:
    """With the same share out of reach as the overlap is shown with, which is in tens of people."""
    if exact is None or shown is None:
        return item
    said: Any = {
        name: replace(getattr(item, name), reason=shown.beyond)
        for name in _names_of_estimates(item)
        if getattr(item, name).reason == exact.beyond
    }
    return replace(item, **said)


def _masked(item: GroupCounts, cells: dict[str, Shown], some: bool) -> GroupCounts:
    """Counts with `HIDDEN` in place of the hidden ones.

    `people` is another count of the rows; where they differ, it is told if nothing is withheld.
    """
    numbers: Any = {name: HIDDEN if isinstance(cell, str) else cell for name, cell in cells.items()}
    people = numbers["rows"] if item.people == item.rows else HIDDEN if some else item.people
    return replace(item, people=people, few=frozenset(), **numbers)


def _without_shares(overlap: Overlap, *, everything: bool) -> Overlap:
    found = replace(overlap, tested=HIDDEN, effective=nan, heaviest=nan)
    if not everything:
        return found
    return replace(
        found,
        quantiles=(nan,) * len(overlap.quantiles),
        under=dict.fromkeys(overlap.under, nan),
        histogram=overlap.histogram * 0,
    )
