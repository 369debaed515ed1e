"""An audit that can be shared: small counts hidden, and the rates that would give them away.

Counts of rows, tested, untested, positive and negative of each group are hidden together by
`dcem.table.disclosure`. A rate is withheld with its count: 3 positives of 40 tested can be read off
"7.5 %" as well. Where a group's count is hidden, totals are rounded to hundreds, so that
subtracting the other groups from them shows nothing. Histograms and curves are computed without
bins of under ten people from the start.
"""

from __future__ import annotations

from dataclasses import replace
from math import nan

from dcem.audit.advice import conclude
from dcem.audit.results import HIDDEN, Audit, GroupCounts, TestingRate
from dcem.estimation.results import EVERYBODY, Overlap
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import THRESHOLD, Shown, hide_small

WITHHELD = Estimate(nan, reason=f"withheld: it would show a count under {THRESHOLD}")


def shown_counts(audit: Audit, *, show_all: bool = False) -> dict[str, dict[str, Shown]]:
    """Group -> rows, tested, positive (and untested, negative) as a page may show them."""
    counts: dict[str, int] = {}
    sums: list[tuple[str, tuple[str, ...]]] = []
    for item in audit.counts:
        name = item.group
        counts |= {f"{name}\0{key}": value for key, value in _cells(item).items()}
        sums.append((f"{name}\0rows", (f"{name}\0tested", f"{name}\0untested")))
        sums.append((f"{name}\0tested", (f"{name}\0positive", f"{name}\0negative")))
    shown = hide_small(counts, sums, show_all=show_all)
    return {
        item.group: {key: shown[f"{item.group}\0{key}"] for key in _cells(item)}
        for item in audit.counts
    }


def without_small_cells(audit: Audit) -> Audit:
    """The same audit; what would show a count under ten is NaN with the reason."""
    shown = shown_counts(audit)

    exact = {item.group: _cells(item) for item in audit.counts}

    def hidden(group: str, *cells: str) -> bool:
        # An empty cell is nobody's: a rate of exactly 0 or 1 may be told. Everybody is not a group.
        return group in shown and any(
            isinstance(shown[group][cell], str) and exact[group][cell] > 0 for cell in cells
        )

    def testing_of(rate: TestingRate) -> TestingRate:
        if not hidden(rate.group, "rows", "tested", "untested"):
            return rate
        return replace(
            rate,
            crude=_withheld(rate.crude),
            equal=_withheld(rate.equal),
            others=_withheld(rate.others),
            difference=_withheld(rate.difference),
            ratio=_withheld(rate.ratio),
            p_value=nan,
            each={},
        )

    outcome = ("tested", "positive", "negative")
    withheld = tuple(
        item.group for item in audit.counts if hidden(item.group, "rows", "untested", *outcome)
    )
    b, c = audit.prevalence_sensitivity, audit.performance_sensitivity
    masked = replace(
        audit,
        testing=tuple(map(testing_of, audit.testing)),
        yields=tuple(
            replace(
                item,
                rate=WITHHELD,
                difference=_withheld(item.difference),
                at_equal_probability=_withheld(item.at_equal_probability),
                marginal=_withheld(item.marginal),
                p_value=nan,
                p_value_equal=nan,
            )
            if hidden(item.group, *outcome)
            else item
            for item in audit.yields
        ),
        prevalence=tuple(
            replace(
                item,
                recorded=WITHHELD,
                tested_only=_withheld(item.tested_only),
                weighted=_withheld(item.weighted),
                doubly_robust=_withheld(item.doubly_robust),
                hidden=_withheld(item.hidden),
                bounds=(nan, nan),
                within=_withheld(item.within),
                limits=(nan, nan),
            )
            if hidden(item.group, "rows", "untested", *outcome)
            else item
            for item in audit.prevalence
        ),
        # Margins of a hidden cell would give it away: what rests on models stays, counts do not.
        by_attribute={
            name: tuple(replace(rate, crude=WITHHELD) for rate in rates) if withheld else rates
            for name, rates in audit.by_attribute.items()
        },
        needed=tuple(
            item for item in audit.needed if not hidden(item.group, "rows", "untested", *outcome)
        ),
        counts=tuple(_masked(item, shown) for item in audit.counts),
        total=_rounded(audit.total) if withheld else audit.total,
        configuration={**audit.configuration, **_about(audit.total)}
        if withheld
        else audit.configuration,
        overlap={
            name: _without_shares(item, everything=hidden(name, "rows"))
            if hidden(name, "rows", "tested")
            else _without_few(item, exact.get(name, _cells(audit.total))["rows"], bool(withheld))
            for name, item in audit.overlap.items()
        },
        # The limits of a group's curve are its recorded rate, and that plus its untested.
        prevalence_sensitivity=b
        and replace(
            b, curves={n: v for n, v in b.curves.items() if not hidden(n, "untested", *outcome)}
        ),
        performance_sensitivity=c
        and replace(c, auc={n: v for n, v in c.auc.items() if not hidden(n, *outcome)}),
        withheld=withheld,
    )
    return conclude(masked)


def _withheld(estimate: Estimate) -> Estimate:
    """Withheld, unless there was nothing to withhold."""
    return WITHHELD if estimate.estimable else estimate


def _cells(item: GroupCounts) -> dict[str, int]:
    return {
        "rows": item.rows,
        "tested": item.tested,
        "untested": item.rows - item.tested,
        "positive": item.positive,
        "negative": item.tested - item.positive,
    }


def _masked(item: GroupCounts, shown: dict[str, dict[str, Shown]]) -> GroupCounts:
    """Counts with `HIDDEN` in place of the hidden ones; `people` follows the rows."""
    cells = shown[item.group]

    def number(key: str) -> int:
        value = cells[key]
        return value if isinstance(value, int) else HIDDEN

    rows = number("rows")
    enough = rows >= 0 and item.people >= THRESHOLD
    people = item.people if enough else HIDDEN
    return GroupCounts(item.group, rows, people, number("tested"), number("positive"))


def _rounded(total: GroupCounts) -> GroupCounts:
    numbers = (total.rows, total.people, total.tested, total.positive)
    return GroupCounts(total.group, *map(_hundreds, numbers))


def _hundreds(number: int) -> int:
    return max(round(number, -2), 100)


def _about(total: GroupCounts) -> dict[str, str]:
    rounded = _rounded(total)
    return {"rows": f"about {rounded.rows:,}", "people": f"about {rounded.people:,}"}


def _without_few(overlap: Overlap, rows: int, rounded: bool) -> Overlap:
    """Shares of fewer than ten people withheld; of everybody, what follows a rounded total."""
    under = {
        level: nan if 0 < share * rows < THRESHOLD else share
        for level, share in overlap.under.items()
    }
    if overlap.group != EVERYBODY or not rounded or overlap.tested <= 0:
        return replace(overlap, under=under)
    tested = _hundreds(overlap.tested)
    effective = overlap.effective * tested / overlap.tested  # the share it is of the tests stays
    return replace(overlap, under=under, tested=tested, effective=effective)


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
