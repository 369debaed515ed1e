"""An audit as tables of text: for the terminal, the page and Markdown alike."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isnan
from typing import NamedTuple

from dcem.audit.overlap import HARDLY, SELDOM
from dcem.audit.results import HIDDEN, Audit, Breakdown, Estimate


class TextTable(NamedTuple):
    """A heading, columns and rows of text; `words` are the columns that hold sentences."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""
    words: tuple[int, ...] = ()


def rate(estimate: Estimate, sign: bool = False) -> str:
    """`16.2 % [15.9, 16.5]`, or that it is not estimable and why; `sign` for differences."""
    if not estimate.estimable:
        return _absent(estimate)
    plus = "+" if sign else ""
    low, high = (f"{100 * v:{plus}.1f}" for v in (estimate.low, estimate.high))
    return f"{100 * estimate.value:{plus}.1f} % [{low}, {high}]"


def ratio(estimate: Estimate) -> str:
    """`1.21 [1.10, 1.33]`."""
    if not estimate.estimable:
        return _absent(estimate)
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _absent(estimate: Estimate) -> str:
    withheld = estimate.reason.startswith("withheld")
    return "withheld" if withheld else f"not estimable: {estimate.reason}"


def count(value: int) -> str:
    """A count, or that it is withheld."""
    return "withheld" if value == HIDDEN else f"{value:,}"


def testing(audit: Audit) -> TextTable:
    """Counts and rates per group."""
    by_name = {item.group: item for item in audit.testing}
    rows = []
    for item in audit.counts:
        found = by_name[item.group]
        counted = f"{count(item.tested)} of {count(item.rows)}"
        if item.tested == HIDDEN and item.rows == HIDDEN:
            counted = "withheld"
        cells = [item.group, counted, rate(found.crude)]
        if audit.grouped:
            lost = not found.difference.estimable
            cells += [
                "–" if lost else rate(found.equal),
                "–" if lost else rate(found.others),
                rate(found.difference, sign=True),
            ]
        rows.append(tuple(cells))
    columns: tuple[str, ...] = ("group", "tested", "crude rate")
    if audit.grouped:
        columns += ("equal features", "others", "difference")
    note = (
        "Equal features: the group and all others together, averaged over the features that both "
        "have (overlap weights), and the difference between them."
        if audit.grouped
        else ""
    )
    return TextTable("Who is tested", columns, rows, note)


def drivers(audit: Audit, most: int = 12) -> TextTable:
    """Raw columns by what the prediction of testing owes to them."""
    rows = [
        (
            item.column,
            f"{item.loss.value:.2f} [{item.loss.low:.2f}, {item.loss.high:.2f}]",
            "–" if isnan(item.share) else f"{100 * item.share:.0f} %",
            item.direction,
        )
        for item in audit.drivers[:most]
    ]
    return TextTable(
        "What drives testing",
        ("column", "rise of the loss", "share of all rises", "predicted share tested"),
        rows,
        "How much worse testing is predicted when the column is shuffled (log loss, in thousandths "
        "of a nat a row), and as a share of the sum over all columns. Columns that say the same "
        "share their importance. Prediction is not cause.",
        words=(3,),
    )


def overlap(audit: Audit) -> TextTable:
    """Testing probabilities per group."""
    rows = [
        (
            name,
            *(
                "withheld" if isnan(share) else f"{100 * share:.1f} %"
                for share in (*o.quantiles[::2], o.under[HARDLY], o.under[SELDOM])
            ),
            count(o.tested),
            "withheld" if isnan(o.effective) else f"{o.effective:,.0f}",
            "withheld" if isnan(o.heaviest) else f"{100 * o.heaviest:.0f} %",
        )
        for name, o in audit.overlap.items()
    ]
    return TextTable(
        "Can the tested speak for the untested?",
        ("group", "5 %", "median", "95 %", "under 1 %", "under 5 %", "tested", "worth", "heaviest"),
        rows,
        "Quantiles of the probability of being tested, and the share of people for whom it is "
        "under 1 % or 5 %: hardly anybody like them was tested. Worth: Kish's effective sample "
        "size of the tests when they are weighted to represent everybody. Heaviest: the share of "
        "the weight that the heaviest hundredth of the tests carries.",
    )


def yields(audit: Audit) -> TextTable:
    """The outcome test."""
    rows = [
        (
            item.group,
            rate(item.rate),
            *(
                (rate(item.difference, sign=True), rate(item.at_equal_probability, sign=True))
                if audit.grouped
                else ()
            ),
            rate(item.marginal),
        )
        for item in audit.yields
    ]
    columns: tuple[str, ...] = ("group", "positive of tested")
    if audit.grouped:
        columns += ("against others", "at equal testing probability")
    return TextTable(
        "How often tests are positive",
        (*columns, "least expected fifth"),
        rows,
        "A difference in rates alone is not yet bias: rates average over everybody tested, not "
        "over those at the margin, and groups whose risk is distributed differently have different "
        "rates under one and the same rule (infra-marginality). Nearer to the margin: the "
        "difference among people who were equally likely to be tested, and the rate among the "
        "fifth of a group's tests that was least to be expected.",
    )


def prevalence(audit: Audit) -> TextTable:
    """How common the outcome is, by assumption."""
    rows = [
        (
            item.group,
            rate(item.recorded),
            rate(item.tested_only),
            rate(item.weighted),
            rate(item.doubly_robust),
            "withheld"
            if isnan(item.bounds[0])
            else f"{100 * item.bounds[0]:.1f} to {100 * item.bounds[1]:.1f} %",
        )
        for item in audit.prevalence
    ]
    return TextTable(
        "How common is the outcome?",
        ("group", "recorded", "tested only", "weighted", "doubly robust", "limits"),
        rows,
        "Recorded: the untested count as negative. Tested only: the tested stand for everybody. "
        "Weighted and doubly robust: features and group explain who was tested. Limits: nothing "
        "assumed, all untested negative or all positive.",
    )


def independence(audit: Audit) -> TextTable | None:
    """Odds ratios of the outcome by group at equal features."""
    found = audit.independence
    if found is None:
        return None
    rows = [
        (
            name,
            ratio(e),
            "–" if isnan(found.detectable[name]) else f"{found.detectable[name]:.2f}",
        )
        for name, e in found.odds_ratio.items()
    ]
    joint = found.reason if isnan(found.p_value) else f"all groups jointly: p = {found.p_value:.2g}"
    return TextTable(
        "Does the outcome depend on the group, given the features?",
        ("group", "odds ratio against others", "would have been seen"),
        rows,
        f"Among the tested; {joint}. Would have been seen: the odds ratio, up or down, that this "
        "many tests notice four times out of five. An interval around 1 is no proof of "
        "independence, and untested people could not be asked.",
    )


def sensitivity(audit: Audit) -> TextTable:
    """The three analyses with their breakdown values."""
    rows = []
    for name, what, found in (
        ("Disparity in testing", "difference at equal features", audit.testing_sensitivity),
        ("Prevalence", "share with the outcome, everybody", audit.prevalence_sensitivity),
        ("Performance", "AUC in the whole population", audit.performance_sensitivity),
    ):
        if found is None:
            rows.append((name, what, "not possible here", "–", "–"))
            continue
        b = found.breakdown
        rows.append(
            (name, what, b.conclusion, _strength(b, b.value), _strength(b, b.with_interval))
        )
    return TextTable(
        "What could overturn it?",
        ("analysis", "estimand", "conclusion", "breaks down at", "its interval at"),
        rows,
        "Partial R²: the share of what the features leave open, of the group and of testing, that "
        "an unmeasured cause would have to explain. Odds ratio: between the odds of the outcome of "
        "untested and of tested people with the same features; every row may have its own, up to "
        "this one or its inverse, chosen to overturn the conclusion.",
        words=(1, 2),
    )


def _strength(b: Breakdown, value: float) -> str:
    if isnan(value):
        return f"not estimable: {b.reason}"
    if value == inf:
        return "nothing does"
    if b.unit == "odds ratio":
        if value <= 1:
            return "unclear from the start"
        return f"odds ratio {value:.2f}" if value < 100 else f"odds ratio {value:,.0f}"
    return "unclear from the start" if value == 0 else f"{b.unit} {100 * value:.2f} %"


def assumptions(audit: Audit) -> TextTable:
    """The checklist."""
    rows = [(a.name, a.testable, a.severity, a.says) for a in audit.assumptions]
    return TextTable(
        "What all this rests on",
        ("assumption", "can it be tested?", "verdict", "what the data say"),
        rows,
        words=(1, 2, 3),
    )


def methods(audit: Audit) -> TextTable:
    """Which methods are defensible."""
    rows = [(f"`{m.name}`", m.verdict, m.reason) for m in audit.methods]
    return TextTable(
        "Which methods are defensible here", ("method", "verdict", "why"), rows, words=(1, 2)
    )


def all_tables(audit: Audit) -> dict[str, TextTable]:
    """Every table that has something to show, by name, in the order of the page."""
    found = {
        "testing": testing(audit),
        "drivers": drivers(audit),
        "overlap": overlap(audit),
        "yields": yields(audit),
        "prevalence": prevalence(audit),
        "independence": independence(audit),
        "sensitivity": sensitivity(audit),
        "assumptions": assumptions(audit),
        "methods": methods(audit),
    }
    return {name: table for name, table in found.items() if table is not None and table.rows}


def to_markdown(audit: Audit, title: str, facts: dict[str, str]) -> str:
    """The whole audit as Markdown, for those who paste it into another document."""
    lines = [f"# {title}", "", lead(audit), "", "## Findings", ""]
    lines += [f"- **{f.severity}: {f.headline}.** {f.text}" for f in audit.findings]
    for table in all_tables(audit).values():
        lines += ["", f"## {table.title}", "", "| " + " | ".join(table.columns) + " |"]
        lines += ["|" + "---|" * len(table.columns)]
        lines += [
            "| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in table.rows
        ]
        lines += ["", table.note] if table.note else []
    lines += ["", "## How it was made", ""]
    lines += [f"- {key}: {value}" for key, value in facts.items()]
    return "\n".join(lines) + "\n"


def lead(audit: Audit) -> str:
    """The first sentence."""
    total = audit.total
    groups = f" in {len(audit.counts)} groups" if audit.grouped else ""
    hidden = (
        " Counts under ten are withheld, and with them whatever would give them away."
        if audit.withheld
        else ""
    )
    about = "About " if audit.withheld else ""
    return (
        f"{about}{count(total.rows)} rows{groups}, {count(total.tested)} tested. Who was tested, "
        f"can the tested speak for everybody, and what could overturn the answer?{hidden}"
    )
