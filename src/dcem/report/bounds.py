"""Bounds as blocks of a page: what they assume, for whom a decision holds, what remains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import isnan

from dcem.audit.results import Audit
from dcem.compare.results import TableComparison
from dcem.estimation.bounds import ACT, ASSUMPTION, FROM_KNOWN, LEAVE, OPEN, Bounds
from dcem.estimation.conformal import LEVEL
from dcem.estimation.coverage import Coverage
from dcem.estimation.results import EVERYBODY
from dcem.report.compare_tables import code
from dcem.report.document import (
    NOTHING,
    Block,
    Cell,
    Figure,
    Fold,
    Missing,
    Name,
    Table,
    Text,
    estimate,
    table,
)
from dcem.report.figures import bounds as draw
from dcem.text import number, percent

COLUMNS_TOLD = 5
HEADING = "Would decisions hold if something is unmeasured?"
LIMITS = (
    "Whether a strength is realistic no table can say: it is stated. Limits are of a person "
    "with these features of whom it is not known yet whether they will be tested."
)


PLAIN = "Limits as estimated; errors of sampling come on top."
WIDENED = "Limits are widened by 1.96 standard errors, so that with few tests little is certain."


def assumed(found: Bounds) -> Text:
    """What has to hold."""
    rests = ASSUMPTION + FROM_KNOWN * found.known
    return Text((f"{rests} Here gamma is {found.stated:g}. {LIMITS}",))


def people(found: Bounds, note: str = PLAIN) -> Iterator[Block]:
    """For whom the decision at a risk holds; `note` says what the limits count."""
    yield _decisions(found, note)
    yield Figure(partial(draw.undecided, found))
    yield Figure(partial(draw.bands, found))
    if found.columns:
        strongest = sorted(found.columns.items(), key=lambda one: -one[1])[:COLUMNS_TOLD]
        columns = table(
            "How strong measured columns would be, had nobody recorded them",
            ("column", "gamma, about"),
            [(Name(name), estimate(strength, "ratio")) for name, strength in strongest],
            note="By how much the odds of untested people would differ from those of tested people "
            "who are equal in all other columns, if log-odds are linear: a scale for gamma.",
        )
        yield Fold("How strong is that?", (columns,))


def _decisions(found: Bounds, note: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, one in found.shares.items():
        shown = [float(part[found.at]) for part in (one.act, one.leave, one.open)]
        cells = [
            Missing("too few people") if isnan(share) else estimate(share, "percent")
            for share in shown
        ]
        rows.append(("everybody" if name == EVERYBODY else Name(name), *cells))
    return table(
        f"Acting from a risk of {percent(found.cut)} on, at gamma = {found.stated:g}",
        ("group", f"certain: {ACT}", f"certain: {LEAVE}", OPEN),
        rows,
        note=f"Shares of people, counted in tens. {note}",
    )


def of_audit(audit: Audit) -> Iterator[Block]:
    """The bounds of an audit."""
    if audit.bounds is not None:
        yield assumed(audit.bounds)
        yield from people(audit.bounds)


def methods(comparison: TableComparison) -> Iterator[Block]:
    """The bounds of a comparison: what remains of each method, and of its lead."""
    found = comparison.bounds
    if found is None:
        return
    at = found.people.at
    yield assumed(found.people)
    rows: list[tuple[Cell, ...]] = []
    for one in found.methods:
        rows.append(
            (
                code(one.name, comparison),
                estimate(float(one.holds[EVERYBODY][at]), "percent"),
                estimate(float(one.against[at]), "percent"),
                _range(one.auc_low[at], one.auc_high[at]),
                _range(one.benefit_low[at], one.benefit_high[at]),
                estimate(one.lead[at], "gain") if one.lead else NOTHING,
            )
        )
    yield table(
        f"Methods at gamma = {found.people.stated:g}",
        ("method", "decision right", "decision wrong", "AUC between", "net benefit between",
         f"least lead of `{found.best}`"),
        rows,
        note=f"Decisions on {comparison.decision}, against a risk of "
        f"{percent(found.people.cut)}: right or wrong whatever the unmeasured is like at this "
        "strength; of the others one cannot say. AUC, net benefit and lead: at the outcomes "
        "that are worst (or best) for each number; the interval of the lead is that of sampling.",
    )  # fmt: skip
    yield from people(found.people)


def _range(low: float, high: float) -> Cell:
    return f"{number(float(low))} to {number(float(high))}"


def coverage(found: Sequence[Coverage]) -> Iterator[Block]:
    """How often sets of outcomes hold the outcome, by group."""
    if not found:
        return
    yield table(
        f"Sets of outcomes made to hold the true one in {percent(LEVEL)}: how often they do",
        ("group", "among the tested", "everybody", "with the outcome", "sets of both outcomes"),
        [
            (
                "everybody" if one.group == EVERYBODY else Name(one.group),
                estimate(one.tested, "percent"),
                estimate(one.everybody, "percent"),
                estimate(one.positives, "percent"),
                NOTHING if isnan(one.either) else estimate(one.either, "percent"),
            )
            for one in found
        ],
        note="Conformal sets, measured on people whose labels did not make them. For everybody, "
        "each tested person stands for others like them: right if features explain testing.",
    )
