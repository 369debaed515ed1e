"""The tables of a comparison on a user's table: texts in cells, for the page and for Markdown.

Counts pass through `dcem.table.disclosure` first, so that no small cell is shown or follows from
what is shown. A number that is not estimable says so; the reason stands beside it, or once under
its target if nothing of that target is estimable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import isnan
from typing import Any

from dcem.compare.results import Judgement, PlantedScore, TableComparison
from dcem.estimation.results import Target
from dcem.metrics.estimate import Estimate
from dcem.report.words import number, percent, with_interval
from dcem.table.disclosure import hide_small

Row = tuple[str, ...]
PREFERRED = ("truth", "dr", "ipw", "tested")  # the first that is available is shown first


@dataclass(frozen=True)
class Table:
    """A table of texts with its heading; `words` are the columns that hold sentences."""

    caption: str
    columns: Row
    rows: list[Row]
    words: tuple[int, ...] = ()


def shown_targets(comparison: TableComparison) -> list[Target]:
    """The targets that have numbers, the most telling first."""
    available = {target.key: target for target in comparison.targets if target.available}
    return [available[key] for key in PREFERRED if key in available]


def main_pair(comparison: TableComparison) -> tuple[str, str] | None:
    """The two largest groups: fixed before any result is seen, so that no pair is picked for it."""
    judged = next(iter(comparison.methods[0].judgements.values()))
    size = {group.name: group.people for group in comparison.groups}
    return max(
        judged.auc_differences, key=lambda pair: sum(size.get(g, 0) for g in pair), default=None
    )


def groups_table(comparison: TableComparison) -> Table:
    """Who was tested in each group and what was seen, small counts hidden."""
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
        for row, count in enumerate([*parts, sum(parts)]):
            counts[f"{row}:{kind}"] = count
        sums.append((f"{everyone}:{kind}", tuple(f"{row}:{kind}" for row in range(everyone))))
    for row in range(everyone + 1):
        for whole, part in rests:  # what a reader can subtract is a count too
            rest = f"{row}:{whole} but {part}"
            counts[rest] = counts[f"{row}:{whole}"] - counts[f"{row}:{part}"]
            sums.append((f"{row}:{whole}", (f"{row}:{part}", rest)))
    shown = hide_small(counts, sums)

    def cell(row: int, kind: str, of: str) -> str:
        count, whole = shown[f"{row}:{kind}"], shown[f"{row}:{of}"]
        if isinstance(count, str):
            return count
        share = f" ({percent(count, whole)})" if isinstance(whole, int) and kind != of else ""
        return f"{count:,}{share}"

    of = {"people": "people", "tested": "people", "positives_seen": "tested", "positives": "people"}
    columns = ("group", "rows", "tested", "positive, of the tested", "positive in truth")
    return Table(
        "Who was tested, and what was seen. Counts under 10, and counts that would reveal one, "
        "are not shown.",
        columns[: 1 + len(kinds)],
        [
            (name, *(cell(row, kind, of[kind]) for kind in kinds))
            for row, name in enumerate(
                [*(group.name for group in groups), *["all together"] * (len(groups) > 1)]
            )
        ],
    )


def targets_table(comparison: TableComparison) -> Table:
    """Whom each number is about, and what has to hold for it."""
    return Table(
        "Whom the numbers are about, and what has to hold for them",
        ("target", "right if", "here"),
        [
            (t.name, t.assumption, "estimated" if t.available else f"not estimable: {t.reason}")
            for t in comparison.targets
        ],
        words=(1, 2),
    )


def by_target(
    comparison: TableComparison, caption: str, of: Callable[[Judgement], str | None]
) -> Table:
    """One row a method, one column a target; a cell is what `of` says about the judgement."""
    return Table(
        caption,
        ("method", *(target.name for target in comparison.targets)),
        [
            (
                f"`{method.name}`",
                *(
                    (of(method.judgements[t.key]) or "reference") if t.available else "–"
                    for t in comparison.targets
                ),
            )
            for method in comparison.methods
        ],
    )


def headline_tables(comparison: TableComparison) -> Iterator[Table]:
    """What a reader wants first: AUC, the gain over the reference, difference and gap of groups."""
    reference = comparison.methods[0].name
    yield by_target(comparison, "AUC", lambda judged: with_interval(judged.auc))
    yield by_target(
        comparison,
        f"Gain in AUC over `{reference}`, on the same people",
        lambda judged: with_interval(judged.auc_gain) if judged.auc_gain else None,
    )
    pair = main_pair(comparison)
    if pair is not None:
        yield by_target(
            comparison,
            f"AUC difference: {pair[0]} minus {pair[1]} (the two largest groups)",
            partial(_entry, "auc_differences", pair, 3),
        )
        yield by_target(comparison, "ROC gap, with what it would be by chance", _gap)


def other_tables(comparison: TableComparison) -> Iterator[Table]:
    """Everything else: by group, by pair, by capacity and by threshold."""
    first = next(iter(comparison.methods[0].judgements.values()))
    by_key: list[tuple[str, str, Any]] = [
        *((f"AUC within group {name}", "group_auc", name) for name in first.group_auc),
        *(
            (f"AUC difference: {pair[0]} minus {pair[1]}", "auc_differences", pair)
            for pair in first.auc_differences
            if pair != main_pair(comparison)
        ),
        *(
            (f"Mean score minus mean risk, {name}", "calibration_in_the_large", name)
            for name in first.calibration_in_the_large
        ),
        *(
            (
                f"Precision among the {percent(share, 1)} with the highest scores",
                "precision_at_capacity",
                share,
            )
            for share in first.precision_at_capacity
        ),
        *(
            (f"Net benefit of acting at a risk of {percent(risk, 1)}", "net_benefit", risk)
            for risk in first.net_benefit
        ),
    ]
    yield by_target(
        comparison,
        "Calibration error: mean absolute difference of predicted and estimated risk",
        lambda judged: with_interval(judged.calibration_error),
    )
    for caption, attribute, key in by_key:
        digits = 4 if attribute == "net_benefit" else 3
        yield by_target(comparison, caption, partial(_entry, attribute, key, digits))


def without_numbers(table: Table) -> str | None:
    """Why a table holds not one number, in a sentence that can stand in its place; else None."""
    cells = [cell for row in table.rows for cell in row[1:]]
    if not all(cell.startswith("not estimable") or cell in ("–", "reference") for cell in cells):
        return None
    reasons = dict.fromkeys(cell for cell in cells if cell.startswith("not estimable"))
    return f"{table.caption}: {'; '.join(reasons) or 'not estimable'}."


def nuisance_table(comparison: TableComparison) -> Table:
    """The models that the population estimates lean on, judged out of fold."""
    return Table(
        "The models behind the population estimates, judged out of fold. A log loss no better "
        "than that of the rate means that the features say nothing.",
        ("model of", "kind", "log loss", "log loss of the rate", "AUC"),
        [
            (m.name, m.chosen, number(m.log_loss), number(m.log_loss_of_rate), number(m.auc))
            for m in comparison.nuisances
        ],
        words=(1,),
    )


def planted_tables(comparison: TableComparison) -> Iterator[Table]:
    """What was planted, and how well each method recovered it."""
    planted = comparison.planted
    if planted is None:
        return
    yield Table(
        "What was planted",
        ("family", "what it is", "testing depends on the outcome"),
        [(f.name, f.what, "yes" if f.outcome_dependent else "no") for f in planted.families],
        words=(1,),
    )
    found = {(score.method, score.family): score for score in planted.scores}
    methods = list(dict.fromkeys(score.method for score in planted.scores))
    families = [family.name for family in planted.families]
    titles: Mapping[str, Callable[[PlantedScore], Estimate]] = {
        "AUC against the planted truth of everybody": lambda score: score.auc,
        "ROC gap against the planted truth": lambda score: score.roc_gap,
        f"Gain in AUC over `{comparison.methods[0].name}`": lambda score: score.auc_gain,
    }
    for caption, of in titles.items():
        rows = [
            (
                f"`{m}`",
                *(with_interval(of(found[m, f])) if (m, f) in found else "–" for f in families),
            )
            for m in methods
        ]
        yield Table(caption, ("method", *families), rows)


def _entry(attribute: str, key: object, digits: int, judged: Judgement) -> str:
    found: Mapping[Any, Estimate] = getattr(judged, attribute)
    return with_interval(found[key], digits) if key in found else "–"


def _gap(judged: Judgement) -> str:
    if not judged.roc_gap.estimable or isnan(judged.gap_by_chance):
        return with_interval(judged.roc_gap)
    return f"{with_interval(judged.roc_gap)}; by chance ≤ {number(judged.gap_by_chance)}"
