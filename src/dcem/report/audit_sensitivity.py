"""What could overturn an audit, as blocks of its document: the unseen, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import inf, isnan

import numpy as np

from dcem.audit.results import Audit, Breakdown
from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate
from dcem.report.document import NOTHING, Block, Cell, Figure, Fold, Missing, Table, estimate, table
from dcem.report.figures import audit as draw

MOST_STEPS = 16  # of a slider


def sensitivity(audit: Audit) -> Iterator[Block]:
    """What would overturn it: a slider, three breakdown values, and the curves."""
    yield from filter(None, [_unmeasured(audit), _odds(audit)])
    rows: list[tuple[Cell, ...]] = []
    for name, found in (
        ("disparity in testing", audit.testing_sensitivity),
        ("how common the outcome is", audit.prevalence_sensitivity),
        ("how well scores rank everybody", audit.performance_sensitivity),
    ):
        if found is None:
            rows.append((name, Missing(what="not possible here"), NOTHING, NOTHING))
            continue
        b = found.breakdown
        rows.append((name, b.conclusion, _strength(b, b.value), _strength(b, b.with_interval)))
    yield table(
        "How strong would something unseen have to be?",
        ("about", "conclusion", "breaks down at", "its interval at"),
        rows,
        words=(1,),
        note="Partial R²: the share of what the features leave open, of the group and of testing, "
        "that an unmeasured cause would have to explain. Odds ratio: between the odds of the "
        "outcome of untested and of tested people with the same features; every row may have its "
        "own, up to this one or its inverse, chosen to overturn the conclusion."
        + " Where a prevalence is known it counts from the odds that meet it."
        * bool(audit.known),
    )
    yield Fold(
        "The curves",
        tuple(Figure(partial(make, audit)) for make in draw.SENSITIVITY),
    )


def _strength(b: Breakdown, value: float) -> Cell:
    if isnan(value):
        return Missing(b.reason)
    if value == inf:
        return "nothing does"
    if b.unit == "odds ratio":
        return "unclear from the start" if value <= 1 else estimate(value, "ratio", b.unit)
    return "unclear from the start" if value == 0 else estimate(value, "percent", b.unit)


def _thinned(points: np.ndarray, end: float) -> list[int]:
    """Positions of a few steps along a curve, up to an end; 1 is one of them if it is there."""
    shown = np.flatnonzero(points <= end)
    few = np.linspace(0, shown[-1], min(MOST_STEPS, len(shown))).round().astype(int)
    return sorted({*few.tolist(), *np.flatnonzero(np.isclose(points, 1.0)).tolist()})


def _unmeasured(audit: Audit) -> Table | None:
    """The difference in testing that could remain, step by step."""
    found = audit.testing_sensitivity
    if found is None:
        return None
    end = max(2.5 * found.breakdown.value, 0.02)
    rows = []
    for i in _thinned(found.strength, end):
        low, high = found.low[i], found.high[i]
        rows.append(
            (
                estimate(found.strength[i], "percent"),
                estimate(low, "points"),
                estimate(high, "points"),
                "there could be none" if low <= 0 <= high else "a difference remains",
            )
        )
    return table(
        f"What if something unrecorded drives testing and differs for group {found.group}?",
        ("its strength (partial R²)", "difference at least", "at most", "so"),
        rows,
        start=0,
    )


def _odds(audit: Audit) -> Table | None:
    """Prevalence along the odds ratio, step by step."""
    found = audit.prevalence_sensitivity
    curve = None if found is None else found.curves.get(EVERYBODY)
    if found is None or curve is None or curve.reason:
        return None
    steps = _thinned(found.gamma, inf)
    known = [one.odds_ratio.value for one in audit.known if one.group == EVERYBODY]
    start = known[0] if known and np.isfinite(known[0]) else 1.0
    alike = min(range(len(steps)), key=lambda place: abs(np.log(found.gamma[steps[place]] / start)))
    return table(
        "What if the untested differ from tested people with the same features?",
        ("odds of the outcome, untested over tested", "share with the outcome, everybody"),
        [
            (
                estimate(found.gamma[i], "ratio"),
                estimate(Estimate(curve.value[i], curve.low[i], curve.high[i]), "percent"),
            )
            for i in steps
        ],
        start=alike,
    )
