"""The tables of a comparison: methods by target, groups, and every other number.

Counts pass through `dcem.table.disclosure` first, so that no small cell is shown or follows from
what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import isnan
from typing import Any

from dcem.compare.results import Judgement, TableComparison
from dcem.estimation.measures import WHEN_ACTING
from dcem.metrics.estimate import Estimate
from dcem.report.cells import plain
from dcem.report.document import (
    NOTHING,
    Cell,
    Code,
    Count,
    Missing,
    Name,
    Table,
    estimate,
    table,
)
from dcem.table.disclosure import hide_small
from dcem.text import percent


def main_pair(comparison: TableComparison) -> tuple[str, str] | None:
    """The two largest groups: fixed before any result is seen, so that no pair is picked for it."""
    judged = next(iter(comparison.methods[0].judgements.values()))
    size = {group.name: group.people for group in comparison.groups}
    return max(
        judged.auc_differences, key=lambda pair: sum(size.get(g, 0) for g in pair), default=None
    )


def shown_groups(comparison: TableComparison) -> list[dict[str, int | str]]:
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
    rows = shown_groups(comparison)
    kinds = [kind for kind in columns if kind in rows[0]]
    return table(
        "",
        ("group", *(columns[kind] for kind in kinds)),
        [(Name(str(row["name"])), *(cell(row, kind) for kind in kinds)) for row in rows],
        note="Counts under 10, and counts that would reveal one, are not shown.",
    )


def code(name: str, comparison: TableComparison) -> Code:
    """A method by its name, marked if it was given the truth."""
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
        rows.append((code(method.name, comparison), *cells))
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
