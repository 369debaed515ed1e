"""The audit of a table as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import isnan

from dcem.audit import without_small_cells
from dcem.audit.results import HIDDEN, AtRates, Audit
from dcem.estimation.overlap import HARDLY, SELDOM
from dcem.estimation.results import EVERYBODY
from dcem.extras import made_with
from dcem.report import bounds
from dcem.report.audit_deciders import deciders
from dcem.report.audit_opening import opening
from dcem.report.audit_sensitivity import sensitivity
from dcem.report.document import (
    NOTHING,
    WITHHELD,
    Block,
    Cell,
    Code,
    Count,
    Document,
    DotRow,
    Dots,
    Facts,
    Figure,
    Fold,
    Name,
    Section,
    Table,
    Terms,
    Text,
    estimate,
    table,
)
from dcem.report.drivers import side_by_side
from dcem.report.figures import audit as draw
from dcem.report.findings import listed_findings, no_milder
from dcem.text import count, number, p_value

MOST_DRIVERS = 12


def audit_document(
    audit: Audit,
    title: str = "Audit of the labels",
    data: Mapping[str, str] | None = None,
    *,
    small_cells: bool = False,
) -> Document:
    """The audit as a document; counts under ten are withheld unless `small_cells` is true.

    `data` is what is known of the table beyond the audit: file, hash, roles.
    """
    if not (small_cells or audit.withheld):
        audit = without_small_cells(audit)
    facts = _facts(audit, data or {})
    findings, first = listed_findings(audit.findings), opening(audit)
    columns = [*(driver.column for driver in audit.drivers), *audit.suspicious]
    return Document(
        title=title,
        lead=lead(audit, (data or {}).get("group", "")),
        opening=replace(first, verdict=no_milder(first.verdict, findings)),
        findings=findings,
        sections=(
            *(
                Section(key, heading, tuple(blocks))
                for key, heading, make in SECTIONS
                if (blocks := [block for block in make(audit) if block is not None])
            ),
            Section("made", "How it was made", (Facts(facts),)),
        ),
        footer="Made with dcem. No individual row is on this page.",
        names=frozenset([*(item.group for item in audit.counts), *columns]),
        data={"made": facts, **vars(audit)},
    )


def _facts(audit: Audit, data: Mapping[str, str]) -> dict[str, str]:
    """What made this audit."""
    return {
        **data,
        **audit.configuration,
        "learners": "; ".join(f"{what}: {who}" for what, who in audit.learners.items()),
        "versions": data.get("versions") or made_with(),
    }


def lead(audit: Audit, column: str = "") -> str:
    """What was looked at, in one line; `column` says the group."""
    total = audit.total
    groups = f" in {len(audit.counts)} groups" if audit.grouped else ""
    groups += f" (`{column}`)" * bool(groups and column)
    tested = "" if total.tested == HIDDEN else f", {count(total.tested)} tested"
    hidden = " Counts under ten are withheld, and what would give them away." * bool(audit.withheld)
    return f"{count(total.rows)} rows{groups}{tested}.{hidden}"


def _figure(make: Callable[[Audit], object], audit: Audit) -> Figure:
    return Figure(partial(make, audit))


def _count(value: int) -> Cell:
    return WITHHELD if value == HIDDEN else Count(value)


def testing(audit: Audit) -> Iterator[Block]:
    """Counts and rates per group."""
    by_name = {item.group: item for item in audit.testing}
    rows: list[tuple[Cell, ...]] = []
    for item in audit.counts:
        found = by_name[item.group]
        hidden = HIDDEN in (item.tested, item.rows)
        counted = "" if hidden else f"{count(item.tested)} of {count(item.rows)}"
        cells = [Name(item.group), estimate(found.crude, "percent", counted)]
        if audit.grouped:
            lost = not found.difference.estimable
            cells += [
                NOTHING if lost else estimate(found.equal, "percent"),
                NOTHING if lost else estimate(found.others, "percent"),
                estimate(found.difference, "points"),
            ]
        rows.append(tuple(cells))
    columns: tuple[str, ...] = ("group", "crude rate")
    if audit.grouped:
        columns += ("at equal features", audit.others, "difference")
    note = (
        f"Equal features: the group and {audit.others}, averaged over the features that both "
        "have (overlap weights), and the difference between them."
    )
    yield table("", columns, rows, note=note if audit.grouped else "")
    if audit.risk_curves:
        yield _figure(draw.risk, audit)


def prevalence(audit: Audit) -> Iterator[Block]:
    """How common the outcome is, by assumption."""
    if not audit.prevalence:
        return
    rows = [
        (
            Name(item.group),
            estimate(item.recorded, "percent"),
            estimate(item.tested_only, "percent"),
            estimate(item.weighted, "percent"),
            estimate(item.doubly_robust, "percent"),
            *(WITHHELD if isnan(bound) else estimate(bound, "percent") for bound in item.bounds),
        )
        for item in audit.prevalence
    ]
    corrected, within, explained = "", "", "features and group explain who was tested"
    if audit.known:
        explained, within = "as below, known prevalence included", ", within what is known"
    if audit.stated_rates:
        corrected = f" All but what is recorded is corrected for the test: {audit.stated_rates}."
    yield table(
        "",
        ("group", "recorded", "tested only", "weighted", "doubly robust", "at least", "at most"),
        rows,
        note="Recorded: the untested count as negative. Tested only: the tested stand for "
        f"everybody. Weighted and doubly robust: {explained}. At least and at most: nothing "
        f"assumed, all untested negative or all positive{within}.{corrected}",
    )
    yield _figure(draw.prevalence, audit)
    yield from _known(audit)
    yield from _test_errors(audit)


def _known(audit: Audit) -> Iterator[Block]:
    """Known prevalence, beside what it would be if features explained who is tested."""
    if not audit.known:
        return
    yield table(
        "Known prevalence",
        (
            "group",
            "known",
            "if features explain testing",
            "difference",
            "p-value",
            "odds, untested over tested",
        ),
        [
            (
                Name(one.group),
                estimate(one.stated, "percent"),
                estimate(one.estimated, "percent"),
                estimate(one.difference, "points"),
                NOTHING if isnan(one.p_value) else p_value(one.p_value),
                estimate(one.odds_ratio, "ratio"),
            )
            for one in audit.known
        ],
        note="If features explain testing: the doubly robust estimate that assumes it, held "
        "against the known rate. Odds: of untested people over those of tested people with the "
        "same features, as the known rate has them; weighted and doubly robust numbers are at "
        "these odds.",
    )


def _test_errors(audit: Audit) -> Iterator[Block]:
    """What if the test errs: a grid of its rates, where none are stated."""
    found = audit.test_errors
    if found is None or not found.points:
        return
    specificities = sorted({point.specificity for point in found.points}, reverse=True)
    heads = ("test sensitivity", *(f"specificity {number(c, 2)}" for c in specificities))

    def grid(caption: str, value: Callable[[AtRates], float], form: str, note: str = "") -> Table:
        rows: dict[float, list[Cell]] = {}
        for point in found.points:
            cell = value(point)
            row = rows.setdefault(point.sensitivity, [number(point.sensitivity, 2)])
            row.append(NOTHING if isnan(cell) else estimate(cell, form))
        return table(caption, heads, list(rows.values()), note=note)

    blocks = [
        grid(
            "Share with the outcome, everybody",
            lambda point: point.prevalence,
            "percent",
            "Doubly robust, if the test has these rates in every group, whatever the features. A "
            "dash: the results could not have come about. State what is known of the test, and all "
            "numbers are corrected for it.",
        )
    ]
    if found.pair is not None:
        more, less = found.pair
        caption = f"The same, group {more} minus group {less}"
        blocks.append(grid(caption, lambda point: point.difference, "points"))
    caption = "AUC of the model of what a test would show"
    blocks.append(grid(caption, lambda point: point.auc, "score"))
    yield Fold("What if the test errs?", tuple(blocks))


def over_time(audit: Audit) -> Iterator[Block]:
    """Testing and its results, period by period."""
    found = audit.over_time
    if found is None:
        return

    def dots(group: str) -> Dots:
        rows = tuple(
            DotRow(
                f"from {one.since}",
                (estimate(one.tested, "percent"), estimate(one.positive, "percent")),
            )
            for one in found.shown
            if one.group == group
        )
        whose = "Everybody" if group == EVERYBODY else f"Group {group}"
        return Dots(
            whose,
            ("tested", "positive of tested"),
            rows,
            f"Rows from {found.begins} to {found.ends}; each period has about as many. Shares that "
            "would show a count under ten, of this group or another, are withheld.",
        )

    whom = list(dict.fromkeys(one.group for one in found.shown))
    yield dots(whom[0])
    if whom[1:]:
        yield Fold("By group", tuple(dots(name) for name in whom[1:]))
    for caption, head, rates in (
        ("At equal features, period by period", "period", found.testing),
        ("At equal features, by earlier results", "last result", found.earlier),
    ):
        if rates:
            rows = [(Name(one.group), estimate(one.difference, "points")) for one in rates]
            compared = table("", (head, "tested, against others"), rows)
            yield Fold(caption, (compared,))


def yields(audit: Audit) -> Iterator[Block]:
    """The outcome test."""
    if not audit.yields:
        return
    rows: list[tuple[Cell, ...]] = []
    for item in audit.yields:
        cells = [Name(item.group), estimate(item.rate, "percent")]
        if audit.grouped:
            cells += [
                estimate(item.difference, "points"),
                estimate(item.at_equal_probability, "points"),
            ]
        rows.append((*cells, estimate(item.marginal, "percent")))
    head = "have it, of the tested" if audit.stated_rates else "positive of tested"
    low = (
        " Here testing prefers low risk: fewer tests and a lower rate together point to a stricter "
        "bar for a group."
    )
    columns: tuple[str, ...] = ("group", head)
    if audit.grouped:
        columns += (f"against {audit.others}", "at equal testing probability")
    yield Fold(
        "Positive tests by group",
        (
            table(
                "",
                (*columns, "least expected fifth"),
                rows,
                note="A difference in rates alone is not yet bias: rates average over everybody "
                "tested, not over those at the margin, and groups whose risk is distributed "
                "differently have different rates under one and the same rule (infra-marginality). "
                "Nearer to the margin: the difference among people who were equally likely to be "
                "tested, and the rate among the fifth of a group's tests that was least to be "
                "expected." + low * audit.prefers_low_risk,
            ),
        ),
    )


def overlap(audit: Audit) -> Iterator[Block]:
    """Testing probabilities per group, and whether the model of them is right."""
    if not audit.overlap:
        return

    def share(value: float) -> Cell:
        return WITHHELD if isnan(value) else estimate(value, "percent")

    rows = [
        (
            Name(name),
            *map(share, (*o.quantiles[::2], o.under[HARDLY], o.under[SELDOM])),
            _count(o.tested),
            WITHHELD if isnan(o.effective) else estimate(o.effective, "count"),
            share(o.heaviest),
        )
        for name, o in audit.overlap.items()
    ]
    heads = ("group", "5 %", "median", "95 %", "under 1 %", "under 5 %", "tested")
    yield Fold(
        "Who could have been tested, by group",
        (
            table(
                "",
                (*heads, "effective sample size", "heaviest"),
                rows,
                note="Quantiles of the probability of being tested, and the share of people for "
                "whom it is under 1 % or 5 %: hardly anybody like them was tested. Effective "
                "sample size (Kish): of the tests, when they are weighted to represent everybody. "
                "Heaviest: the share of the weight that the heaviest hundredth of the tests "
                "carries.",
            ),
            _figure(draw.overlap, audit),
            _figure(draw.calibration, audit),
        ),
    )


def drivers(audit: Audit) -> Iterator[Block]:
    """Raw columns by what the predictions of testing, and of the outcome, owe to them."""
    if not audit.drivers:
        return
    rows = tuple(
        DotRow(
            Name(item.column),
            (estimate(item.loss, "ratio"), estimate(item.share, "percent"), item.direction),
        )
        for item in audit.drivers[:MOST_DRIVERS]
    )
    picture = Dots(
        "What drives testing",
        ("permutation importance", "share of all", "predicted share tested"),
        rows,
        "How much worse testing is predicted when the column is permuted (log loss, in thousandths "
        "of a nat per row), and as a share of the sum over all columns. Columns that say the same "
        "share their importance. Prediction is not cause, and a column that was filled in after "
        "the decision can lead the list. `(group)` is the group itself, `(time)` the "
        "time of the decision.",
    )
    both: tuple[Block, ...] = ()
    if audit.outcome_drivers:
        both = (
            side_by_side(
                {item.column: item.share for item in audit.drivers},
                {item.column: item.share for item in audit.outcome_drivers},
                "what a test would show",
                "Each column's share of the permutation importances, in the model of who is tested "
                "and in that of what a test would show, out of fold.",
            ),
        )
    yield Fold("Columns by permutation importance", (*both, picture))


def independence(audit: Audit) -> Iterator[Block]:
    """Odds ratios of the outcome by group at equal features."""
    found = audit.independence
    if found is None:
        return
    joint = (
        found.reason if isnan(found.p_value) else f"all groups jointly: {p_value(found.p_value)}"
    )
    rows = [
        (Name(name), estimate(e, "ratio"), estimate(found.detectable[name], "ratio"))
        for name, e in found.odds_ratio.items()
    ]
    yield Fold(
        "Odds ratios by group",
        (
            table(
                "",
                ("group", "odds ratio against others", "would have been seen"),
                rows,
                note=f"Among the tested; {joint}. Would have been seen: the odds ratio, up or "
                "down, that this many tests notice four times out of five. An interval around 1 is "
                "not a proof of independence, and untested people could not be asked.",
            ),
        ),
    )


def assumptions(audit: Audit) -> Iterator[Block]:
    """The checklist."""
    checked = {"tested": "yes", "partly": "partly", "untestable": "no"}
    rows = [(a.name, checked[a.testable], a.severity, a.says) for a in audit.assumptions]
    if rows:
        heads = ("assumption", "can it be checked?", "verdict", "what the data say")
        yield Fold("The checklist", (table("", heads, rows, words=(1, 2, 3)),))


def methods(audit: Audit) -> Iterator[Block]:
    """Which methods are defensible."""
    if not audit.methods:
        return
    for verdict in ("defensible", "with care"):
        named = [f"`{advice.name}`" for advice in audit.methods if advice.verdict == verdict]
        yield Text((f"{verdict.capitalize()}: {', '.join(named) or 'none'}.",))
    told = tuple((Code(m.name), f"{m.verdict}: {m.reason}") for m in audit.methods)
    yield Fold("Why", (Terms(told),))


SECTIONS: tuple[tuple[str, str, Callable[[Audit], Iterator[Block | None]]], ...] = (
    ("testing", "Who is tested", testing),
    ("deciders", "How much hangs on who decides", deciders),
    ("prevalence", "How common is the outcome?", prevalence),
    ("sensitivity", "What could overturn it?", sensitivity),
    ("bounds", bounds.HEADING, bounds.of_audit),
    ("methods", "Which methods are defensible here", methods),
    ("yields", "How often tests are positive", yields),
    ("overlap", "Can the tested speak for the untested?", overlap),
    ("drivers", "What drives testing", drivers),
    ("time", "Over time", over_time),
    ("independence", "Does the outcome depend on the group, given the features?", independence),
    ("assumptions", "What all this rests on", assumptions),
)
