"""A comparison of methods as a document, whether the truth is known or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from dcem.compare.findings import concerns, recommended
from dcem.compare.results import Planted, PlantedFamily, TableComparison
from dcem.estimation.findings import Finding, by_severity
from dcem.estimation.results import EXTRAPOLATION, Target
from dcem.report import bounds
from dcem.report import document as doc
from dcem.report.compare_opening import opening, shown_targets
from dcem.report.compare_tables import (
    code,
    groups_table,
    headline_numbers,
    lending,
    other_tables,
    shown_groups,
)
from dcem.report.deciders import by_deciders
from dcem.report.drivers import driver_blocks
from dcem.report.figures import curves, people
from dcem.report.shared import comparison_page, rows_used
from dcem.report.style import Drawing
from dcem.text import capitalised, count, in_short

MOST_REASONS = 40  # why numbers cannot be determined
CARE = (
    "Numbers beyond the tested assume that the features explain the decision to test. A cause of "
    "both testing and outcome that is not in the table biases all of them.",
    f"If nobody like a person was ever tested, that person's score is {EXTRAPOLATION}.",
    "The tested are not everybody: a method can rank the tested well and others badly.",
    "The intervals cover chance: who happens to be in the table. They do not cover a wrong "
    "assumption.",
    "A difference between groups in these numbers does not prove unfairness, nor does its absence "
    "prove fairness: both depend on what the label measures.",
)


def compare_document(
    comparison: TableComparison,
    title: str = "",
    lead: str = "",
    about_data: Sequence[doc.Figure] = (),
) -> doc.Document:
    """The comparison as a document; `about_data` are figures of who is tested.

    Of findings that are equally serious, those about the method to take, or all, come first.
    """
    taken = getattr(recommended(comparison), "name", "")
    made = comparison_page(
        comparison,
        title,
        lead or what_was_done(comparison),
        opening(comparison),
        by_severity(
            sorted(
                [*comparison.warnings, *_findings(comparison, urgent=True)],
                key=lambda one: not concerns(one, taken),
            )
        ),
        _sections(comparison, about_data),
        [
            *(group.name for group in comparison.groups),
            *(method.name for method in comparison.methods),
            *(effect.column for effect in comparison.testing_effects),
            *(name for one in comparison.warnings for name in one.values.get("columns", ())),
        ],
    )
    data = {name: value for name, value in made.data.items() if name != "shown"}
    return replace(made, data=data | {"groups": shown_groups(comparison)})


def _findings(comparison: TableComparison, *, urgent: bool) -> list[Finding]:
    """What a reader must know first, or all else."""
    return [
        one for one in comparison.findings if (one.severity in ("serious", "caution")) == urgent
    ]


def _sections(
    comparison: TableComparison, about_data: Sequence[doc.Figure]
) -> Iterator[tuple[str, str, Iterable[doc.Block]]]:
    more = tuple(one.headline for one in _findings(comparison, urgent=False))
    yield "more", "What else was found", [doc.Text(more, bullets=True)] if more else []
    yield "tested", "Who is tested, and what is seen", [*about_data, *_testing_section(comparison)]
    yield "side", "Methods side by side", _side_by_side(comparison)
    yield "lending", "What a lender asks", lending(comparison)
    yield "deciders", "What deciders allow, whoever is tested", by_deciders(comparison)
    for key, heading, name, draw in CURVES:
        yield key, heading, _by_target(comparison, name, draw)
    yield "bounds", bounds.HEADING, bounds.compared_methods(comparison)
    yield "drivers", "What drives the score, and what drives testing", _drivers(comparison)
    if comparison.planted is not None:
        heading = "Which method recovers planted outcomes?"
        yield "planted", heading, _planted(comparison, comparison.planted)
    yield "inside", "Inside the methods", _inside(comparison)
    yield "numbers", "All numbers", _every_number(comparison)
    care = doc.Fold("What every number here assumes", (doc.Text(CARE, bullets=True),))
    yield "care", "Read this with care", [care]


def what_was_done(comparison: TableComparison) -> str:
    """One sentence on the work behind the numbers."""
    column = comparison.data.get("group", "")
    groups = f", in {len(comparison.groups)} groups (`{column}`)" if column else ""
    several = comparison.people != comparison.rows_used
    who = f" ({count(comparison.people)} people)" if several else ""
    folds = f" ({comparison.folds}-fold cross-validation)" if comparison.folds else ""
    whose = f"somebody the model was not fitted to{folds}"
    if any(finding.key == "judged-later" for finding in comparison.warnings):
        whose = "a row later than all that the model was fitted to"
    methods = f"{len(comparison.methods)} methods on {rows_used(comparison)}"
    return f"{methods}{who}{groups}. Every score is for {whose}."


def _testing_section(comparison: TableComparison) -> Iterator[doc.Block]:
    yield groups_table(comparison)
    # the one that models testing first
    views = tuple(
        doc.View(f"by {m.name}", (doc.Figure(partial(people.who_is_tested, comparison, m)),))
        for m in sorted(comparison.methods, key=lambda method: method.name != "dcem")
        if any(len(curve.score) > 1 for curve in m.testing_by_score.values())
    )
    if views:
        yield doc.Fold(
            "Who is tested at equal risk?", (doc.Views("testing", "Risk predicted by", views),)
        )
    if comparison.overlap is not None:
        inside: tuple[doc.Block, ...] = (
            doc.Figure(partial(people.probability_figure, comparison)),
        )
        if not comparison.overlap.estimable:
            why = comparison.overlap.reason
            said = f"What holds for everybody cannot be estimated from the tests: {why}"
            inside = (doc.Text((said,)), *inside)
        yield doc.Fold("Could everybody have been tested?", inside)


def _side_by_side(comparison: TableComparison) -> Iterator[doc.Block]:
    yield from headline_numbers(comparison)
    targets = doc.listing(
        "Whom the numbers are about, and what has to hold for them",
        [
            {
                "target": t.name,
                "right if": t.assumption,
                "here": "estimated" if t.available else doc.Missing(t.reason),
            }
            for t in comparison.targets
        ],
        words=(1, 2),
    )
    terms = tuple((code(m.name, comparison), m.what_it_does) for m in comparison.methods)
    yield doc.Fold("What the methods do, and what the numbers assume", (doc.Terms(terms), targets))


DrawCurve = Callable[[TableComparison, Target], Drawing | None]

# Section of curves -> its heading, what they are called, and who draws them.
CURVES: tuple[tuple[str, str, str, DrawCurve], ...] = (
    ("curves", "How well each group is ranked", "ROC curves", curves.roc_curves),
    (
        "calibration",
        "Are the risks calibrated?",
        "Calibration curves",
        curves.calibration_curves,
    ),
    ("decisions", "Would acting on the scores help?", "Decision curves", curves.decision_curves),
)


def _by_target(comparison: TableComparison, name: str, draw: DrawCurve) -> list[doc.Block]:
    """A fold with a view for each target that has these curves."""
    views = tuple(
        doc.View(target.name, (doc.Figure(partial(draw, comparison, target)),))
        for target in shown_targets(comparison)
        if any(getattr(m.judgements[target.key], draw.__name__) for m in comparison.methods)
    )
    where = draw.__name__.replace("_", "-")
    return (
        [doc.Fold(f"{name} by method and group", (doc.Views(where, name, views),))] if views else []
    )


def _drivers(comparison: TableComparison) -> Iterator[doc.Block]:
    best = recommended(comparison) or comparison.methods[0]
    yield from driver_blocks(
        comparison.testing_effects,
        best.effects,
        f"the score of `{best.name}`",
        {method.name: method.effects for method in comparison.methods},
    )


def _planted(comparison: TableComparison, planted: Planted) -> Iterator[doc.Block]:
    yield doc.Text(
        (
            "Outcomes were simulated from the features of this table, and hidden for everybody "
            "whom the estimated policy would not have tested. Here the truth is known, so recovery "
            "can be measured.",
        )
    )
    yield doc.Text(tuple(one.headline for one in planted.findings), bullets=True)

    def recovered(family: PlantedFamily) -> doc.Dots:
        intervals = f"with intervals over {planted.repetitions} repetitions."
        fails = " Here an assumption of dcem is violated." * bool(family.violates)
        return doc.Dots(
            f"Recovered where planted: {family.name}",
            ("AUC", "ROC gap", f"gain in AUC over `{comparison.reference}`"),
            tuple(
                doc.DotRow(
                    code(one.method, comparison),
                    (
                        doc.estimate(one.auc),
                        doc.estimate(one.roc_gap),
                        doc.estimate(one.auc_gain, "gain"),
                    ),
                )
                for one in planted.scores
                if one.family == family.name
            ),
            f"Judged by everybody's planted outcome, {intervals}{fails}",
        )

    views = tuple(doc.View(family.name, (recovered(family),)) for family in planted.families)
    what = doc.table(
        "What was planted",
        ("family", "what it is", "assumption of dcem that fails"),
        [(f.name, f.what, f.violates or "none") for f in planted.families],
        words=(1, 2),
    )
    both = (doc.Views("planted-views", "Planted", views), what)
    yield doc.Fold("How well each method recovered them", both)


def _inside(comparison: TableComparison) -> Iterator[doc.Block]:
    inside: list[doc.Block] = []
    if any(method.pseudo_labels is not None for method in comparison.methods):
        inside.append(doc.Figure(partial(people.pseudo_label_figure, comparison)))
    inside += [
        doc.Figure(partial(people.em_history, m.name, m.history))
        for m in comparison.methods
        if m.history is not None
    ]
    if comparison.nuisances:
        inside.append(
            doc.table(
                "The models behind the population estimates, judged out of fold. A log loss no "
                "better than that of the rate means that the features say nothing.",
                ("model of", "kind", "log loss", "log loss of the rate", "AUC"),
                [
                    (m.name, m.chosen, *map(doc.estimate, (m.log_loss, m.log_loss_of_rate, m.auc)))
                    for m in comparison.nuisances
                ],
                words=(1,),
            )
        )
    if inside:
        yield doc.Fold(
            "What the methods believe, how they converged, what they rely on", tuple(inside)
        )


def _every_number(comparison: TableComparison) -> Iterator[doc.Block]:
    """Tables with numbers, by what they are about; those without one are told with their reason."""
    views, total = [], 0
    lacking: dict[str, list[str]] = {}
    for label, tables in other_tables(comparison):
        numeric = [t for t in tables if any(isinstance(c, doc.Number) for r in t.rows for c in r)]
        views += [doc.View(label, tuple(numeric))] * bool(numeric)
        total += len(numeric)
        for one in tables:
            if one not in numeric:
                lacking.setdefault(_why_without(one), []).append(one.caption)
    if views:
        yield doc.Fold(
            f"Every other number with its interval ({total} tables)",
            (doc.Views("every-number", "Show", tuple(views)),),
        )
    unknown = tuple(
        f"{capitalised(why)}: {in_short(of, joint='; ')}." for why, of in lacking.items()
    )
    if left := len(unknown) - MOST_REASONS:
        unknown = (*unknown[:MOST_REASONS], *[f"And {left:,} more reasons."] * (left > 0))
    if unknown:
        yield doc.Fold("What cannot be determined", (doc.Text(unknown, bullets=True),))


def _why_without(empty: doc.Table) -> str:
    reasons = dict.fromkeys(
        cell.reason
        for row in empty.rows
        for cell in row
        if isinstance(cell, doc.Missing) and cell.reason
    )
    return "; ".join(reasons) or "not estimable"
