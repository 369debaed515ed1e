"""A comparison on a user's table as one page, and as Markdown for those who paste it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from dcem.compare.results import TableComparison
from dcem.report import compare_tables as tables
from dcem.report.compare_tables import Table
from dcem.report.figures import curves as curve_figures
from dcem.report.figures import forest as forest_figures
from dcem.report.figures import people as people_figures
from dcem.report.figures.comparison import em_history
from dcem.report.page import render_page
from dcem.report.style import Drawing

CARE = (
    "What is said of everybody leans on the features explaining the decision to test. A cause of "
    "both testing and outcome that is not in the table biases every number but the truth.",
    "Where people like someone were never tested, a score for that person is extrapolation.",
    "Among the tested is not among everybody: a method can rank the tested well and others badly.",
    "The intervals cover the luck of who is in the table. They do not cover a wrong assumption.",
    "A difference between groups in these numbers is not yet unfairness, and its absence is not "
    "yet fairness: both depend on what the label measures.",
)


def render_comparison(comparison: TableComparison, title: str = "") -> str:
    """The comparison as one HTML document."""
    drawings = {drawing.name: drawing for drawing in _drawings(comparison)}
    targets = [t for t in tables.shown_targets(comparison) if f"roc-{t.key}" in drawings]
    return render_page(
        "compare.html",
        list(drawings.values()),
        title=title or _title(comparison),
        done=what_was_done(comparison),
        comparison=comparison,
        targets=targets,
        groups=tables.groups_table(comparison),
        about_targets=tables.targets_table(comparison),
        headline=list(tables.headline_tables(comparison)),
        others=_numbers(comparison),
        unknown=_unknown(comparison),
        nuisances=tables.nuisance_table(comparison),
        planted=list(tables.planted_tables(comparison)),
        scorers=_scorers(comparison, drawings),
        care=CARE,
        facts=_facts(comparison),
    )


def comparison_to_markdown(comparison: TableComparison, title: str = "") -> str:
    """The whole comparison as Markdown: the page without its pictures."""
    lines = [f"# {title or _title(comparison)}", "", what_was_done(comparison), ""]
    lines += [f"> **Note.** {warning}\n" for warning in comparison.warnings]
    lines += ["## In short", "", *(f"- {_plain(s)}" for s in comparison.sentences), ""]
    lines += ["## Who is tested, and what is seen", ""]
    lines += _markdown(tables.groups_table(comparison))
    lines += ["## Methods side by side", ""]
    lines += _markdown(tables.targets_table(comparison))
    for table in tables.headline_tables(comparison):
        lines += _markdown(table)
    lines += [f"- `{m.name}`: {m.what_it_does}" for m in comparison.methods]
    if comparison.planted is not None:
        lines += ["", "## Planted outcomes", ""]
        lines += [f"- {sentence}" for sentence in comparison.planted.sentences] + [""]
        for table in tables.planted_tables(comparison):
            lines += _markdown(table)
    lines += ["", "## All numbers", ""]
    for table in [*_numbers(comparison), tables.nuisance_table(comparison)]:
        lines += _markdown(table)
    lines += [*(f"- {_plain(sentence)}" for sentence in _unknown(comparison)), ""]
    lines += ["## Read this with care", "", *(f"- {sentence}" for sentence in CARE), ""]
    lines += ["## How it was made", ""]
    lines += [f"- {_plain(key)}: {_plain(value)}" for key, value in _facts(comparison).items()]
    return "\n".join([*lines, ""])


def what_was_done(comparison: TableComparison) -> str:
    """One sentence on the work behind the numbers."""
    used = (
        f"{comparison.rows_used:,} rows"
        if comparison.rows_used == comparison.rows
        else f"{comparison.rows_used:,} of {comparison.rows:,} rows, drawn at random"
    )
    several = comparison.people != comparison.rows_used
    people = f" ({comparison.people:,} people)" if several else ""
    return (
        f"{len(comparison.methods)} methods on {used}{people}. Every score is of somebody the "
        f"model was not fitted to ({comparison.folds}-fold cross-validation)."
    )


def _title(comparison: TableComparison) -> str:
    name = comparison.data.get("file", "")
    return f"Methods compared on {name}" if name else "Methods compared on a table"


def _drawings(comparison: TableComparison) -> Iterator[Drawing]:
    """Every figure that this comparison has the numbers for."""
    yield people_figures.overlap(comparison)
    yield forest_figures.forest(comparison)
    for method in comparison.methods:
        yield from filter(None, [people_figures.who_is_tested(comparison, method)])
        if method.history is not None:
            yield em_history(method.name, method.history)
    yield from filter(None, [people_figures.pseudo_labels(comparison)])
    yield from filter(None, [forest_figures.planted_forest(comparison)])
    for target in tables.shown_targets(comparison):
        for draw in (
            curve_figures.roc_curves,
            curve_figures.calibration,
            curve_figures.decision_curves,
        ):
            yield from filter(None, [draw(comparison, target)])


def _numbers(comparison: TableComparison) -> list[Table]:
    every = tables.other_tables(comparison)
    return [table for table in every if tables.without_numbers(table) is None]


def _unknown(comparison: TableComparison) -> list[str]:
    return list(filter(None, map(tables.without_numbers, tables.other_tables(comparison))))


def _scorers(comparison: TableComparison, drawn: Collection[str]) -> list[str]:
    """Whose risk to show testing against: the method that models testing first, if it is there."""
    names = [m.name for m in comparison.methods if f"testing-{m.name}" in drawn]
    return sorted(names, key=lambda name: name != "dcem")


def _facts(comparison: TableComparison) -> Mapping[str, str]:
    versions = ", ".join(f"{name} {version}" for name, version in comparison.versions.items())
    return {**comparison.data, **comparison.configuration, "versions": versions}


def _markdown(table: Table) -> list[str]:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(map(_plain, cells)) + " |"

    head = [
        f"**{_plain(table.caption)}**",
        "",
        line(table.columns),
        "|" + "---|" * len(table.columns),
    ]
    return [*head, *map(line, table.rows), ""]


def _plain(text: str) -> str:
    """Names from a user's table can neither end a cell nor open a tag."""
    return re.sub(r"<(?=[a-zA-Z/!?])", r"\\<", text.replace("|", r"\|"))
