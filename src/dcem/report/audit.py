"""The audit of a table as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import isnan

from dcem.audit import without_small_cells
from dcem.audit.results import HIDDEN, Audit, GroupCounts, Prevalence, Yield
from dcem.estimation.findings import SEVERITIES
from dcem.estimation.overlap import HARDLY, SELDOM
from dcem.estimation.results import EVERYBODY
from dcem.report import bounds
from dcem.report import document as doc
from dcem.report.audit_opening import opening
from dcem.report.deciders import deciders
from dcem.report.drivers import shares_side_by_side
from dcem.report.figures import people as draw
from dcem.report.sensitivity import sensitivity
from dcem.report.shared import advice, audit_page, counted_rows
from dcem.text import capitalised, count, groups, listed, number, p_value, percent, points

MOST_DRIVERS = 12


def audit_document(
    audit: Audit,
    title: str = "Audit of the labels",
    data: Mapping[str, str] | None = None,
    *,
    small_cells: bool = False,
) -> doc.Document:
    """The audit as a document; counts under ten are withheld unless `small_cells` is true.

    `data` is what is known of the table beyond the audit: file, hash, roles.
    """
    if not (small_cells or audit.withheld):
        audit = without_small_cells(audit)
    made = ((key, heading, make(audit)) for key, heading, make in SECTIONS)
    columns = [driver.column for driver in audit.drivers]
    first = opening(audit)
    first = replace(first, verdict=_with_attributes(first.verdict, audit))
    return audit_page(audit, title, data or {}, first, made, columns, of="tested")


def _with_attributes(verdict: doc.Verdict, audit: Audit) -> doc.Verdict:
    """The verdict on groups of crossed attributes, with what is clear of each attribute alone.

    An attribute has more people in each of its groups, so it may differ where no crossed group
    does: then that is the answer.
    """
    clear = [
        (f"group {rate.group} of {attribute}", rate)
        for attribute, rates in audit.clear_by_attribute.items()
        for rate in rates
    ]
    if not clear:
        return verdict
    shares = listed(
        [
            f"{percent(rate.equal.value)} in {name}, {percent(rate.others.value)} in others"
            for name, rate in clear
        ]
    )
    told = f"Of people with the same recorded features, these are tested: {shares}."
    if audit.clear(audit.testing):
        return replace(verdict, sentences=(*verdict.sentences, f"By attribute: {told}"))
    name, worst = max(clear, key=lambda one: abs(one[1].difference.value))
    found = [
        item.severity
        for item in audit.findings
        if item.key in ("tested-less", "tested-more") and "attribute" in item.values
    ]
    by_way: dict[str, list[str]] = {}
    for other, rate in clear:
        by_way.setdefault("less" if rate.difference.value < 0 else "more", []).append(other)
    answer = " and ".join(
        f"{listed(names)} {'is' if len(names) == 1 else 'are'} tested {how}"
        for how, names in by_way.items()
    )
    gap = worst.difference
    crossed = listed([*audit.by_attribute])
    return doc.Verdict(
        min(found, key=SEVERITIES.index, default="caution"),
        capitalised(f"{answer} than others like them", [rate.group for _, rate in clear]),
        (
            told,
            f"No single group of {crossed} crossed differs clearly.",
            *verdict.sentences[1:],
        ),
        f"Chance does not explain it: the difference for {name} is {points(gap.value)} percentage "
        f"points, 95 % interval {points(gap.low)} to {points(gap.high)}. Something unrecorded "
        "could.",
    )


def testing_section(audit: Audit) -> Iterator[doc.Block]:
    """Counts and rates per group."""
    by_name = {item.group: item for item in audit.testing}

    def row(item: GroupCounts) -> dict[str, doc.Cell]:
        found, hidden = by_name[item.group], HIDDEN in (item.tested, item.rows)
        beside = "" if hidden else f"{count(item.tested)} of {count(item.rows)}"
        cells = {
            "group": doc.whose(item.group),
            "crude rate": doc.estimate(found.crude, "percent", beside),
        }
        if audit.grouped:
            known = found.difference.estimable
            cells["at equal features"] = (
                doc.estimate(found.equal, "percent") if known else doc.NOTHING
            )
            cells[audit.others] = doc.estimate(found.others, "percent") if known else doc.NOTHING
            cells["difference"] = doc.estimate(found.difference, "points")
        return cells

    note = (
        f"At equal features: the group, {audit.others}, and the difference between them, averaged "
        "over the features that both have (overlap weights)."
    )
    yield doc.listing("", map(row, audit.counts), note=note if audit.grouped else "")
    if sum(one.difference.estimable for one in audit.testing) > 1 and not audit.mirrored:
        clear = groups([one.group for one in audit.clear(audit.testing)])
        yield doc.Text(
            (
                "Each interval is for one group alone. Clearly different, given how many groups "
                f"are compared: {clear}.",
            )
        )
    if audit.risk_curves:
        yield doc.Figure(partial(draw.risk_figure, audit))


def prevalence_section(audit: Audit) -> Iterator[doc.Block]:
    """How common the outcome is, by assumption."""
    if not audit.prevalence:
        return
    beyond = any(item.within.estimable for item in audit.prevalence)

    def estimates(item: Prevalence) -> dict[str, doc.Cell]:
        if not beyond:
            return {
                "weighted": doc.estimate(item.weighted, "percent"),
                "doubly robust": doc.estimate(item.doubly_robust, "percent"),
            }
        found = item.within if item.within.estimable else item.doubly_robust
        ends = doc.NOTHING if isnan(item.limits[0]) else " to ".join(map(percent, item.limits))
        return {"within reach": doc.estimate(found, "percent"), "then of all": ends}

    rows = [
        {
            "group": doc.whose(item.group),
            "recorded": doc.estimate(item.recorded, "percent"),
            "tested only": doc.estimate(item.tested_only, "percent"),
            **estimates(item),
            "at least": doc.share(item.bounds[0]),
            "at most": doc.share(item.bounds[1]),
        }
        for item in audit.prevalence
    ]
    corrected, within = "", ", within what is known" * bool(audit.known)
    whose, rest = "Weighted and doubly robust", ""
    explained = "features and group explain who was tested"
    if beyond:
        whose = "Within reach (of the tests), doubly robust"
        rest = f"Then of all: from all out of reach negative to all positive{within}. "
    if audit.from_known:
        explained = "as below, known prevalence included"
    if audit.stated_rates:
        corrected = f" All but the recorded share is corrected for the test: {audit.stated_rates}."
    yield doc.listing(
        "",
        rows,
        note="Recorded: the untested count as negative. Tested only: the tested represent "
        f"everybody. {whose}: {explained}. {rest}At least and at most: without assumptions, "
        f"all untested negative or all positive{within}.{corrected}",
    )
    yield doc.Figure(partial(draw.prevalence_figure, audit))
    yield from _known(audit)
    yield from _test_errors(audit)


def _known(audit: Audit) -> Iterator[doc.Block]:
    """Known prevalence, beside what it would be if features explained who is tested."""
    if not audit.known:
        return
    yield doc.listing(
        "Known prevalence",
        [
            {
                "group": doc.whose(one.group),
                "known": doc.estimate(one.stated, "percent"),
                "if features explain testing": doc.estimate(one.estimated, "percent"),
                "difference": doc.estimate(one.difference, "points"),
                "p-value": doc.chance(one.p_value),
                "odds, untested over tested": doc.estimate(one.odds_ratio, "ratio"),
            }
            for one in audit.known
        ],
        note="If features explain testing: the doubly robust estimate that assumes this, to be "
        "compared with the known rate. Odds: those of untested people over those of tested people "
        "with the same features that give the known rate"
        + ("; weighted and doubly robust numbers use these odds." if audit.from_known else "."),
    )


def _test_errors(audit: Audit) -> Iterator[doc.Block]:
    """What if the test errs: a grid of its rates, where none are stated."""
    found = audit.test_errors
    if found is None or not found.points:
        return

    def grid(caption: str, what: str, form: str, note: str = "") -> doc.Table:
        rows: dict[float, dict[str, doc.Cell]] = {}
        for point in found.points:
            row = rows.setdefault(
                point.sensitivity, {"test sensitivity": number(point.sensitivity, 2)}
            )
            row[f"specificity {number(point.specificity, 2)}"] = doc.estimate(
                getattr(point, what), form
            )
        return doc.listing(caption, rows.values(), note=note)

    note = (
        "Doubly robust, if the test has these rates in every group, whatever the features. A dash: "
        "these rates could not have given the results. State what is known of the test, and all "
        "numbers are corrected for it."
    )
    blocks = [grid(f"Share with the outcome, {audit.whom}", "prevalence", "percent", note)]
    if found.pair is not None:
        more, less = found.pair
        caption = f"The same, group {more} minus group {less}"
        blocks.append(grid(caption, "difference", "points"))
    blocks.append(grid("AUC of the model of what a test would show", "auc", "score"))
    yield doc.Fold("What if the test errs?", tuple(blocks))


def over_time_section(audit: Audit) -> Iterator[doc.Block]:
    """Testing and its results, period by period."""
    found = audit.over_time
    if found is None:
        return

    whom = list(dict.fromkeys(one.group for one in found.shown))
    left_out = ""
    if audit.grouped and whom == [EVERYBODY]:
        left_out = " Groups are left out: in two periods, some of their counts are below ten."

    def dots(group: str) -> doc.Dots:
        rows = tuple(
            doc.DotRow(
                f"from {one.since}",
                (doc.estimate(one.tested, "percent"), doc.estimate(one.positive, "percent")),
            )
            for one in found.shown
            if one.group == group
        )
        whose = "Everybody" if group == EVERYBODY else f"Group {group}"
        return doc.Dots(
            whose,
            ("tested", "positive of tested"),
            rows,
            f"Rows from {found.begins} to {found.ends}, in periods of about equal size, so long "
            f"that no count is below ten.{left_out}",
        )

    yield from map(dots, whom[:1])
    if whom[1:]:
        yield doc.Fold("By group", tuple(map(dots, whom[1:])))
    for caption, head, others, rates in (
        ("At equal features, period by period", "period", "periods", found.testing),
        ("At equal features, by earlier results", "last result", "people", found.earlier),
    ):
        if rates:
            rows = [(doc.Name(one.group), doc.estimate(one.difference, "points")) for one in rates]
            yield doc.Fold(
                caption, (doc.table("", (head, f"tested, against other {others}"), rows),)
            )


def yields_section(audit: Audit) -> Iterator[doc.Block]:
    """The outcome test."""
    if not audit.yields:
        return
    head = "have it, of the tested" if audit.stated_rates else "positive of tested"

    def row(item: Yield) -> dict[str, doc.Cell]:
        cells = {"group": doc.whose(item.group), head: doc.estimate(item.rate, "percent")}
        if audit.grouped:
            cells[f"against {audit.others}"] = doc.estimate(item.difference, "points")
            nearer = doc.estimate(item.at_equal_probability, "points")
            cells["at equal testing probability"] = nearer
        return cells | {"least expected fifth": doc.estimate(item.marginal, "percent")}

    note = (
        "A difference in rates alone does not show bias. Rates average over everybody tested, not "
        "over those at the margin, and groups whose risk is distributed differently have different "
        "rates under the same rule (infra-marginality). Two numbers are closer to the margin: the "
        "difference among people who were equally likely to be tested, and the rate among the "
        "fifth of a group's tests that were least expected."
    )
    if audit.prefers_low_risk:
        note += (
            " Here testing prefers low risk: fewer tests and a lower rate together point to a "
            "stricter bar for a group."
        )
    yield doc.Fold("Positive tests by group", (doc.listing("", map(row, audit.yields), note=note),))


def overlap_section(audit: Audit) -> Iterator[doc.Block]:
    """Testing probabilities per group, and whether the model of them is right."""
    if not audit.overlap:
        return
    rows = [
        {
            "group": doc.whose(name),
            "5 %": doc.share(o.quantiles[0]),
            "median": doc.share(o.quantiles[2]),
            "95 %": doc.share(o.quantiles[4]),
            "under 1 %": doc.share(o.under[HARDLY]),
            "under 5 %": doc.share(o.under[SELDOM]),
            "tested": counted_rows(o.tested),
            "effective sample size": doc.share(o.effective, "count"),
            "heaviest": doc.share(o.heaviest),
        }
        for name, o in audit.overlap.items()
    ]
    note = (
        "Quantiles of the probability of being tested, and the share of people for whom it is "
        "under 1 % or 5 %, so that hardly anybody like them was tested. Effective sample size "
        "(Kish): that of the tests, weighted to represent those within reach. Heaviest: the share "
        "of the total weight on the one per cent of tests with the largest weights."
    )
    pictures = (
        doc.Figure(partial(make, audit)) for make in (draw.overlap_figure, draw.calibration_figure)
    )
    yield doc.Fold(
        "Who could have been tested, by group", (doc.listing("", rows, note=note), *pictures)
    )


def drivers_section(audit: Audit) -> Iterator[doc.Block]:
    """Raw columns by what the predictions of testing, and of the outcome, owe to them."""
    if not audit.drivers:
        return
    rows = tuple(
        doc.DotRow(
            doc.Name(item.column),
            (doc.estimate(item.loss, "ratio"), doc.estimate(item.share, "percent"), item.direction),
        )
        for item in audit.drivers[:MOST_DRIVERS]
    )
    picture = doc.Dots(
        "What drives testing",
        ("permutation importance", "share of all", "predicted share tested"),
        rows,
        "How much worse testing is predicted when the column is permuted (log loss, in thousandths "
        "of a nat per row), and as a share of the sum over all columns. Columns with the same "
        "information share their importance. Prediction is not causation, and a column that was "
        "filled in after the decision can lead the list. `(group)` is the group itself, `(time)` "
        "the time of the decision.",
    )
    both: tuple[doc.Block, ...] = ()
    if audit.outcome_drivers:
        both = (
            shares_side_by_side(
                {item.column: item.share for item in audit.drivers},
                {item.column: item.share for item in audit.outcome_drivers},
                "what a test would show",
                "Each column's share of the permutation importances, in the model of who is tested "
                "and in that of what a test would show, out of fold.",
            ),
        )
    yield doc.Fold("Columns by permutation importance", (*both, picture))


def independence_section(audit: Audit) -> Iterator[doc.Block]:
    """Odds ratios of the outcome by group at equal features."""
    found = audit.independence
    if found is None:
        return
    joint = f"all groups jointly: {p_value(found.p_value)}"
    rows = [
        (doc.Name(name), doc.estimate(odds, "ratio"), doc.estimate(found.detectable[name], "ratio"))
        for name, odds in found.odds_ratio.items()
    ]
    note = (
        f"Among the tested; {found.reason if isnan(found.p_value) else joint}. Would have been "
        "seen: the odds ratio, up or down, that this many tests detect four times out of five. An "
        "interval around 1 does not prove independence, and the untested are not included."
    )
    heads = ("group", f"odds ratio against {audit.others}", "would have been seen")
    yield doc.Fold("Odds ratios by group", (doc.table("", heads, rows, note=note),))


def assumptions_section(audit: Audit) -> Iterator[doc.Block]:
    """The checklist."""
    checked = {"tested": "yes", "partly": "partly", "untestable": "no"}
    if audit.assumptions:
        rows = [(a.name, checked[a.testable], a.severity, a.says) for a in audit.assumptions]
        heads = ("assumption", "can it be checked?", "verdict", "what the data say")
        yield doc.Fold("The checklist", (doc.table("", heads, rows, words=(1, 2, 3)),))


SECTIONS: tuple[tuple[str, str, Callable[[Audit], Iterator[doc.Block]]], ...] = (
    ("testing", "Who is tested", testing_section),
    ("deciders", "How much depends on who decides", deciders),
    ("prevalence", "How common is the outcome?", prevalence_section),
    ("sensitivity", "What could overturn these results?", sensitivity),
    ("bounds", bounds.HEADING, bounds.of_audit),
    ("methods", "Which methods are defensible here?", lambda audit: advice(audit.methods)),
    ("yields", "How often tests are positive", yields_section),
    ("overlap", "Do the tested represent the untested?", overlap_section),
    ("drivers", "What drives testing", drivers_section),
    ("time", "Over time", over_time_section),
    (
        "independence",
        "Does the outcome depend on the group, given the features?",
        independence_section,
    ),
    ("assumptions", "What these results assume", assumptions_section),
)
