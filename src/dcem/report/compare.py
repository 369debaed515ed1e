"""A comparison of methods as a document, whether the truth is known or not.

Counts pass through `dcem.table.disclosure` first, so that no small cell is shown or follows from
what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import isnan
from typing import Any

from dcem.compare.results import Judgement, PlantedScore, TableComparison
from dcem.estimation.findings import Finding as Found
from dcem.estimation.findings import in_order
from dcem.estimation.measures import WHEN_ACTING
from dcem.metrics.estimate import Estimate
from dcem.report.cells import plain
from dcem.report.compare_opening import opening, shown_targets
from dcem.report.document import (
    NOTHING,
    Block,
    Cell,
    Code,
    Count,
    Document,
    Facts,
    Figure,
    Fold,
    Missing,
    Name,
    Number,
    Section,
    Table,
    Terms,
    Text,
    View,
    Views,
    estimate,
    table,
)
from dcem.report.figures import curves, forest, people
from dcem.report.findings import TO_DO_WITH_METHODS, listed_findings
from dcem.table.disclosure import hide_small
from dcem.text import count, percent

CARE = (
    "What is said of everybody leans on the features explaining the decision to test. A cause of "
    "both testing and outcome that is not in the table biases every number but the truth.",
    "Where people like someone were never tested, a score for that person is extrapolation.",
    "Among the tested is not among everybody: a method can rank the tested well and others badly.",
    "The intervals cover the luck of who is in the table. They do not cover a wrong assumption.",
    "A difference between groups in these numbers is not yet unfairness, and its absence is not "
    "yet fairness: both depend on what the label measures.",
)


def compare_document(
    comparison: TableComparison,
    title: str = "",
    lead: str = "",
    about_data: Sequence[Figure] = (),
) -> Document:
    """The comparison as a document; `about_data` are figures of who is tested."""
    file = comparison.data.get("file", "")
    facts = _facts(comparison)
    return Document(
        title=title or (f"Methods compared on {file}" if file else "Methods compared on a table"),
        lead=lead or what_was_done(comparison),
        opening=opening(comparison),
        findings=listed_findings(in_order(_urgent(comparison)), TO_DO_WITH_METHODS),
        sections=(
            *(
                Section(key, heading, tuple(blocks))
                for key, heading, blocks in _sections(comparison, about_data)
                if blocks
            ),
            Section("made", "How it was made", (Facts(facts),)),
        ),
        footer=f"Made with dcem {comparison.versions['dcem']}. It shows sums over people; no row "
        "or score of a person is on it.",
        names=frozenset(group.name for group in comparison.groups),
        data={"made": facts, **vars(comparison), "groups": _shown_groups(comparison)},
    )


def _sections(
    comparison: TableComparison, about_data: Sequence[Figure]
) -> Iterator[tuple[str, str, list[Block]]]:
    yield "short", "In short", [Text(_said(comparison.findings), bullets=True)]
    yield "tested", "Who is tested, and what is seen", [*about_data, *_tested(comparison)]
    yield "side", "Methods side by side", [*_side_by_side(comparison)]
    for key, heading, what in (
        ("curves", "How well each group is ranked", "roc"),
        ("calibration", "Can the risks be taken at their word?", "calibration"),
        ("decisions", "Would acting on the scores help?", "decisions"),
    ):
        yield key, heading, _by_target(comparison, what)
    if comparison.planted is not None:
        yield "planted", "Which method recovers planted outcomes?", [*_planted(comparison)]
    yield "inside", "Inside the methods", [*_inside(comparison)]
    yield "numbers", "All numbers", [*_numbers(comparison)]
    yield (
        "care",
        "Read this with care",
        [Fold("What every number here leans on", (Text(CARE, bullets=True),))],
    )


def _urgent(comparison: TableComparison) -> list[Found]:
    """What a reader must know first; all else is said in short."""
    found = [one for one in comparison.findings if one.severity in ("serious", "caution")]
    return [*comparison.warnings, *found]


def _said(findings: Sequence[Found]) -> tuple[str, ...]:
    """Findings as points of a list."""
    return tuple(one.headline for one in findings)


def what_was_done(comparison: TableComparison) -> str:
    """One sentence on the work behind the numbers."""
    used = f"{count(comparison.rows_used)} rows"
    if comparison.rows_used != comparison.rows:
        used = f"{count(comparison.rows_used)} of {count(comparison.rows)} rows, drawn at random"
    several = comparison.people != comparison.rows_used
    who = f" ({count(comparison.people)} people)" if several else ""
    folds = f" ({comparison.folds}-fold cross-validation)" if comparison.folds else ""
    return (
        f"{len(comparison.methods)} methods on {used}{who}. Every score is of somebody the "
        f"model was not fitted to{folds}."
    )


def main_pair(comparison: TableComparison) -> tuple[str, str] | None:
    """The two largest groups: fixed before any result is seen, so that no pair is picked for it."""
    judged = next(iter(comparison.methods[0].judgements.values()))
    size = {group.name: group.people for group in comparison.groups}
    return max(
        judged.auc_differences, key=lambda pair: sum(size.get(g, 0) for g in pair), default=None
    )


# ------------------------------------------------------------------------ who is tested
def _shown_groups(comparison: TableComparison) -> list[dict[str, int | str]]:
    """Counts of every group, then of all together, small ones hidden."""
    groups = comparison.groups
    known = all(group.positives is not None for group in groups)
    kinds = ["people", "tested", "positives_seen"] + ["positives"] * known
    rests = [("people", "tested"), ("tested", "positives_seen")]
    rests += [("positives", "positives_seen")] * known
    everyone = len(groups)  # rows of the table are groups by position; the last row is their sum
    counts: dict[str, int] = {}
    sums = []
    for kind in kinds:
        parts = [getattr(group, kind) for group in groups]
        for row, value in enumerate([*parts, sum(parts)]):
            counts[f"{row}:{kind}"] = value
        sums.append((f"{everyone}:{kind}", tuple(f"{row}:{kind}" for row in range(everyone))))
    for row in range(everyone + 1):
        for whole, part in rests:  # what a reader can subtract is a count too
            rest = f"{row}:{whole} but {part}"
            counts[rest] = counts[f"{row}:{whole}"] - counts[f"{row}:{part}"]
            sums.append((f"{row}:{whole}", (f"{row}:{part}", rest)))
    shown = hide_small(counts, sums)
    names = [*(group.name for group in groups), *["all together"] * (len(groups) > 1)]
    return [
        {"name": name, **{kind: shown[f"{row}:{kind}"] for kind in kinds}}
        for row, name in enumerate(names)
    ]


def groups_table(comparison: TableComparison) -> Table:
    """Who was tested in each group and what was seen."""
    of = {"tested": "people", "positives_seen": "tested", "positives": "people"}

    def cell(row: Mapping[str, int | str], kind: str) -> Cell:
        value, whole = row[kind], row[of[kind]] if kind in of else None
        if isinstance(value, str):
            return Missing(what=value)
        return Count(value, whole if isinstance(whole, int) else None)

    columns = {
        "people": "rows",
        "tested": "tested",
        "positives_seen": "positive, of the tested",
        "positives": "positive in truth",
    }
    rows = _shown_groups(comparison)
    kinds = [kind for kind in columns if kind in rows[0]]
    return table(
        "",
        ("group", *(columns[kind] for kind in kinds)),
        [(Name(str(row["name"])), *(cell(row, kind) for kind in kinds)) for row in rows],
        note="Counts under 10, and counts that would reveal one, are not shown.",
    )


def _tested(comparison: TableComparison) -> Iterator[Block]:
    yield groups_table(comparison)
    scored = [
        m for m in comparison.methods if any(len(s.score) > 1 for s in m.testing_by_score.values())
    ]
    scored.sort(key=lambda method: method.name != "dcem")  # the one that models testing first
    views = tuple(
        View(f"by {m.name}", (Figure(partial(people.who_is_tested, comparison, m)),))
        for m in scored
    )
    if views:
        yield Fold("Who is tested at equal risk?", (Views("testing", "Risk predicted by", views),))
    if comparison.overlap is not None:
        inside: list[Block] = [Figure(partial(people.overlap, comparison))]
        if not comparison.overlap.estimable:
            why = comparison.overlap.reason
            inside.insert(
                0, Text((f"What holds for everybody cannot be estimated from the tests: {why}",))
            )
        yield Fold("Could everybody have been tested?", tuple(inside))


# --------------------------------------------------------------------- methods side by side
def _code(name: str, comparison: TableComparison) -> Code:
    oracle = any(m.name == name and m.uses_truth for m in comparison.methods)
    return Code(name, "given the truth" if oracle else "")


def by_target(
    comparison: TableComparison, caption: str, of: Callable[[Judgement], Cell | None]
) -> Table:
    """One row per method, one column per target; a cell is what `of` finds in the judgement."""
    rows = []
    for method in comparison.methods:
        cells = [
            (of(method.judgements[t.key]) or "reference") if t.available else NOTHING
            for t in comparison.targets
        ]
        rows.append((_code(method.name, comparison), *cells))
    return table(caption, ("method", *(target.name for target in comparison.targets)), rows)


def headline_tables(comparison: TableComparison) -> Iterator[Table]:
    """What a reader wants first: AUC, the gain over the reference, difference and gap of groups."""
    yield by_target(comparison, "AUC", lambda judged: estimate(judged.auc))
    if len(comparison.methods) > 1:
        yield by_target(
            comparison,
            f"Gain in AUC over `{comparison.reference}`, on the same people",
            lambda judged: estimate(judged.auc_gain, "gain") if judged.auc_gain else None,
        )
    pair = main_pair(comparison)
    if pair is not None:
        yield by_target(
            comparison,
            f"AUC difference: {pair[0]} minus {pair[1]} (the two largest groups)",
            partial(_entry, "auc_differences", pair, "gain"),
        )
        if len(comparison.groups) > 2:
            for name in next(iter(comparison.methods[0].judgements.values())).auc_against:
                yield by_target(
                    comparison,
                    f"AUC of {name} minus that of {comparison.reference_group}, for all groups at "
                    "once",
                    partial(_entry, "auc_against", name, "gain"),
                )
        yield by_target(comparison, "ROC gap, with what it would be under equal curves", _gap)


def _entry(attribute: str, key: object, form: str, judged: Judgement) -> Cell:
    found: Mapping[Any, Estimate] = getattr(judged, attribute)
    return estimate(found[key], form) if key in found else NOTHING


def _gap(judged: Judgement) -> Cell:
    chance = judged.gap_by_chance
    beside = "" if isnan(chance) else f"by chance ≤ {plain(estimate(chance))}"
    return estimate(judged.roc_gap, beside=beside)


def _side_by_side(comparison: TableComparison) -> Iterator[Block]:
    yield Views(
        "side-views",
        "Show",
        (
            View("Tables", tuple(headline_tables(comparison))),
            View("Figure", (Figure(partial(forest.forest, comparison, main_pair(comparison))),)),
        ),
    )
    targets = table(
        "Whom the numbers are about, and what has to hold for them",
        ("target", "right if", "here"),
        [
            (t.name, t.assumption, "estimated" if t.available else Missing(t.reason))
            for t in comparison.targets
        ],
        words=(1, 2),
    )
    told = tuple((_code(m.name, comparison), m.what_it_does) for m in comparison.methods)
    yield Fold("What the methods do, and what the numbers assume", (Terms(told), targets))


_DRAW = {
    "roc": curves.roc_curves,
    "calibration": curves.calibration,
    "decisions": curves.decision_curves,
}


def _by_target(comparison: TableComparison, what: str) -> list[Block]:
    """A fold with a view for each target that has this figure."""
    attribute = {"roc": "roc_curves", "calibration": "calibration_curves"}.get(
        what, "decision_curve"
    )
    views = tuple(
        View(target.name, (Figure(partial(_DRAW[what], comparison, target)),))
        for target in shown_targets(comparison)
        if any(getattr(m.judgements[target.key], attribute) for m in comparison.methods)
    )
    name = {"roc": "ROC curves", "calibration": "Calibration curves"}.get(what, "Decision curves")
    return [Fold(f"{name} by method and group", (Views(what, name, views),))] if views else []


# -------------------------------------------------------------------------------- planted
def _planted(comparison: TableComparison) -> Iterator[Block]:
    planted = comparison.planted
    assert planted is not None
    yield Text(
        (
            "Outcomes that we made up, from the features of this table, were hidden from everybody "
            "whom the estimated policy would not have tested. Here the truth is known, so recovery "
            "can be measured.",
        )
    )
    yield Text(_said(planted.findings), bullets=True)
    found = {(score.method, score.family): score for score in planted.scores}
    methods = list(dict.fromkeys(score.method for score in planted.scores))
    families = [family.name for family in planted.families]
    titles: Mapping[str, tuple[str, Callable[[PlantedScore], Estimate]]] = {
        "AUC against the planted truth of everybody": ("score", lambda score: score.auc),
        "ROC gap against the planted truth": ("score", lambda score: score.roc_gap),
        f"Gain in AUC over `{comparison.reference}`": ("gain", lambda score: score.auc_gain),
    }
    tables = [
        table(
            caption,
            ("method", *families),
            [
                (
                    _code(m, comparison),
                    *(
                        estimate(of(found[m, f]), form) if (m, f) in found else NOTHING
                        for f in families
                    ),
                )
                for m in methods
            ],
        )
        for caption, (form, of) in titles.items()
    ]
    what = table(
        "What was planted",
        ("family", "what it is", "assumption of dcem that fails"),
        [(f.name, f.what, f.violates or "none") for f in planted.families],
        words=(1, 2),
    )
    yield Fold(
        "How well each method recovered them",
        (Figure(partial(forest.planted_forest, comparison)), *tables, what),
    )


# ------------------------------------------------------------------------- all the rest
def _inside(comparison: TableComparison) -> Iterator[Block]:
    inside: list[Block] = []
    if any(method.pseudo_labels is not None for method in comparison.methods):
        inside.append(Figure(partial(people.pseudo_labels, comparison)))
    inside += [
        Figure(partial(people.em_history, m.name, m.history))
        for m in comparison.methods
        if m.history is not None
    ]
    if comparison.nuisances:
        inside.append(
            table(
                "The models behind the population estimates, judged out of fold. A log loss no "
                "better than that of the rate means that the features say nothing.",
                ("model of", "kind", "log loss", "log loss of the rate", "AUC"),
                [
                    (m.name, m.chosen, *map(estimate, (m.log_loss, m.log_loss_of_rate, m.auc)))
                    for m in comparison.nuisances
                ],
                words=(1,),
            )
        )
    if inside:
        yield Fold("What the methods believe, how they converged, what they lean on", tuple(inside))


def other_tables(comparison: TableComparison) -> Iterator[Table]:
    """By group, by pair, by capacity and by threshold."""
    first = next(iter(comparison.methods[0].judgements.values()))
    main = main_pair(comparison)
    by_key: list[tuple[str, str, Any, str]] = [
        *((f"AUC within group {name}", "group_auc", name, "score") for name in first.group_auc),
        *(
            (f"AUC difference: {pair[0]} minus {pair[1]}", "auc_differences", pair, "gain")
            for pair in first.auc_differences
            if pair != main
        ),
        *(
            (f"xAUC: positives of {a} over negatives of {b}", "xauc", (a, b), "score")
            for a, b in first.xauc
        ),
        *(
            (f"Mean score minus mean risk, {name}", "calibration_in_the_large", name, "gain")
            for name in first.calibration_in_the_large
        ),
        *(
            (f"Precision among the {percent(share)} with the highest scores",
             "precision_at_capacity", share, "score")
            for share in first.precision_at_capacity
        ),
        *(
            (f"Net benefit of acting at a risk of {percent(risk)}",
             "net_benefit", risk, "fine score")
            for risk in first.net_benefit
        ),
    ]  # fmt: skip
    if any(
        j.calibration_error.estimable for m in comparison.methods for j in m.judgements.values()
    ):
        yield by_target(
            comparison,
            "Calibration error: mean absolute difference of predicted and estimated risk",
            lambda judged: estimate(judged.calibration_error),
        )
    for caption, attribute, key, form in by_key:
        yield by_target(comparison, caption, partial(_entry, attribute, key, form))
    for name, groups in first.when_acting.items():
        for group in groups:
            words = f"{WHEN_ACTING[name].words} in group {group}"
            yield by_target(
                comparison,
                f"{words[0].upper()}{words[1:]}, acting on {comparison.decision}",
                partial(_when_acting, name, group),
            )


def _when_acting(name: str, group: str, judged: Judgement) -> Cell:
    found = judged.when_acting.get(name, {})
    return estimate(found[group]) if group in found else NOTHING


def _numbers(comparison: TableComparison) -> Iterator[Block]:
    """Tables with numbers; those without one become a sentence each."""
    every = list(other_tables(comparison))
    told = [t for t in every if any(isinstance(c, Number) for row in t.rows for c in row)]
    if told:
        yield Fold(f"Every other number with its interval ({len(told)} tables)", tuple(told))
    unknown = tuple(_without_numbers(t) for t in every if t not in told)
    if unknown:
        yield Fold(f"What cannot be told ({len(unknown)})", (Text(unknown, bullets=True),))


def _without_numbers(empty: Table) -> str:
    reasons = dict.fromkeys(
        plain(cell)
        for row in empty.rows
        for cell in row
        if isinstance(cell, Missing) and cell.reason
    )
    return f"{empty.caption}: {'; '.join(reasons) or 'not estimable'}."


def _facts(comparison: TableComparison) -> dict[str, str]:
    versions = ", ".join(f"{name} {version}" for name, version in comparison.versions.items())
    return {**comparison.data, **comparison.configuration, "versions": versions}
