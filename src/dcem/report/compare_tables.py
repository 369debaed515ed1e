"""The tables of a comparison: methods by target, groups, what a lender asks, every other number.

Counts pass through `dcem.table.disclosure` first, so that no small cell is shown or follows from
what is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dcem.compare.results import MethodResult, TableComparison, estimates, shown_group_counts
from dcem.estimation.measures import WHEN_ACTING
from dcem.estimation.results import EVERYBODY
from dcem.methods.choosing import SIMPLE_RIVALS
from dcem.metrics.estimate import Estimate
from dcem.report import document as doc
from dcem.text import group, percent


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
    if comparison.shown:
        return [dict(row) for row in comparison.shown]
    names = [*(group.name for group in groups), *["all together"] * (len(groups) > 1)]
    counts = shown_group_counts(groups)
    return [{"name": name, **shown} for name, shown in zip(names, counts, strict=False)]


def groups_table(comparison: TableComparison) -> doc.Table:
    """Who was tested in each group and what was seen."""
    # what is counted -> its heading, and of what it is a share
    kinds = {
        "people": ("rows", ""),
        "tested": ("tested", "people"),
        "positives_seen": ("positive, of the tested", "tested"),
        "positives": ("positive in truth", "people"),
    }
    rows = []
    for row in shown_groups(comparison):
        known = {kind: heading for kind, heading in kinds.items() if kind in row}
        cells = {
            heading: doc.count_cell(row[kind], row.get(of)) for kind, (heading, of) in known.items()
        }
        rows.append({"group": doc.Name(str(row["name"])), **cells})
    note = "Counts under 10, and counts that would reveal one, are not shown."
    return doc.listing("", rows, note=note)


def code(name: str, comparison: TableComparison) -> doc.Code:
    """A method by its name, marked if it was given the truth."""
    oracle = any(m.name == name and m.uses_truth for m in comparison.methods)
    return doc.Code(name, "given the truth" if oracle else "")


# What a judgement holds -> the caption of its table, and the form of its numbers.
CAPTIONS: Mapping[str, tuple[str, str]] = {
    "auc": ("AUC", "score"),
    "auc_gain": ("Gain in AUC over `{reference}`, on the same people", "gain"),
    "auc_differences": ("AUC difference: {of[0]} minus {of[1]}", "gain"),
    "auc_against": ("AUC of {of} minus that of {reference_group}, for all groups at once", "gain"),
    "roc_gap": ("ROC gap, beside what it would be under equal curves", "score"),
    "group_auc": ("AUC within {of}", "score"),
    "xauc": ("xAUC: positives of {of[0]} over negatives of {of[1]}", "score"),
    "calibration_error": (
        "Calibration error: mean absolute difference of predicted and estimated risk, beyond what "
        "chance alone shows",
        "error",
    ),
    "calibration_in_the_large": ("Mean score minus mean risk, {of}", "gain"),
    "calibration_slope": ("Calibration slope, {of}: below 1, risks are too extreme", "ratio"),
    "precision_at_capacity": (
        "Precision among the {of} with the highest scores, in the population of each column",
        "score",
    ),
    "gini": ("Gini: twice the AUC, minus 1", "score"),
    "ks": ("KS: the largest distance between positives and negatives, over cut-offs", "score"),
    "kickout": ("Kickout: whom it rejects of those whom `{reference}` would select", "gain"),
    "net_benefit": ("Net benefit of acting at a risk of {of}", "fine score"),
    **{
        name: (f"{measure.words.capitalize()}, {{of}}, acting on {{decision}}", "score")
        for name, measure in WHEN_ACTING.items()
    },
}
# What a reader looks up -> the metrics that say it, apart from those a lender asks for.
ABOUT: Mapping[str, tuple[str, ...]] = {
    "AUC by group": ("auc", "group_auc"),
    "differences in ranking": ("auc_differences", "auc_against", "xauc", "auc_gain", "roc_gap"),
    "acting on the scores": (*WHEN_ACTING, "precision_at_capacity", "net_benefit"),
    "calibration": ("calibration_error", "calibration_in_the_large", "calibration_slope"),
}
Key = tuple[str, Any]  # a metric, and of whom or at what
LENDING: tuple[Key, ...] = (("gini", ""), ("ks", ""), ("kickout", ""))  # what a lender asks
WHO = {
    "kept": "tested now, and by the score",
    "swapped out": "tested now, not by the score (swapped out)",
    "swapped in": "untested now, tested by the score (swapped in)",
    "left out": "untested now, and by the score",
}
DOUBLED = "the same, if those who decided knew something that doubles the odds"


def _first_shown(comparison: TableComparison) -> list[Key]:
    """What a reader wants first: AUC, the gain over the reference, difference and gap of groups."""
    gains = len(comparison.methods) > 1 and comparison.reference in SIMPLE_RIVALS
    keys: list[Key] = [("auc", ""), *[("auc_gain", "")] * gains]
    pair = main_pair(comparison)
    return keys if pair is None else [*keys, ("auc_differences", pair), ("roc_gap", "")]


def _caption(comparison: TableComparison, key: Key, pair: tuple[str, str] | None = None) -> str:
    """What a number is; the `pair` of the two largest groups is called so."""
    metric, of = key
    whose = tuple(map(group, of)) if isinstance(of, tuple) else group(str(of))
    if isinstance(of, float) or of == EVERYBODY:
        whose = percent(of) if isinstance(of, float) else "all together"
    named = {"of": whose, "reference_group": group(comparison.reference_group)}
    caption = CAPTIONS[metric][0].format(**(vars(comparison) | named))
    return caption + " (the two largest groups)" * (of == pair is not None)


def _numbers(method: MethodResult) -> dict[str, dict[Key, Estimate]]:
    """Every number of a method, by target."""
    return {
        target: {(metric, of): e for metric, of, e in estimates(judged)}
        for target, judged in method.judgements.items()
    }


def _cells(
    comparison: TableComparison, numbers: Mapping[str, Mapping[Key, Estimate]], key: Key
) -> list[doc.Cell]:
    """One number of a method, as each target sees it."""
    found: list[doc.Cell] = []
    for target in comparison.targets:
        known = numbers[target.key]
        nothing: doc.Cell = "reference" if key[0] in ("auc_gain", "kickout") else doc.NOTHING
        shown = doc.estimate(known[key], CAPTIONS[key[0]][1]) if key in known else nothing
        found.append(shown if target.available else doc.NOTHING)
    return found


def headline_numbers(
    comparison: TableComparison, keys: Iterable[Key] | None = None
) -> Iterator[doc.Dots]:
    """What a reader wants first, a picture each: one row per method, one column per target."""
    pair = main_pair(comparison)
    numbers = {method.name: _numbers(method) for method in comparison.methods}
    for key in _first_shown(comparison) if keys is None else keys:
        rows = []
        for method in comparison.methods:
            chance = [method.judgements[t.key].gap_by_chance for t in comparison.targets]
            references = tuple(map(doc.estimate, chance)) if key[0] == "roc_gap" else ()
            colour = "muted" if method.uses_truth else "ink"
            values = tuple(_cells(comparison, numbers[method.name], key))
            rows.append(doc.DotRow(code(method.name, comparison), values, references, colour))
        yield doc.Dots(
            _caption(comparison, key, pair),
            tuple(target.name for target in comparison.targets),
            tuple(rows),
            f"With {100 * comparison.level:g} % intervals.",
            "limit of chance (95 %)" if key[0] == "roc_gap" else "",
            one_axis=True,
        )


def other_tables(comparison: TableComparison) -> Iterator[tuple[str, list[doc.Table]]]:
    """All other numbers, by what they are about: a table per group, pair, capacity, threshold."""
    judged = [j for method in comparison.methods for j in method.judgements.values()]
    keys = dict.fromkeys((metric, of) for j in judged for metric, of, _ in estimates(j))
    shown = [*_first_shown(comparison), *LENDING]
    pair = main_pair(comparison)
    numbers = {method.name: _numbers(method) for method in comparison.methods}
    for about, metrics in ABOUT.items():
        yield (
            about,
            [
                doc.table(
                    _caption(comparison, key, pair),
                    ("method", *(target.name for target in comparison.targets)),
                    [
                        (code(m.name, comparison), *_cells(comparison, numbers[m.name], key))
                        for m in comparison.methods
                    ],
                )
                for key in keys
                if key[0] in metrics
                and key not in shown
                # of two groups, what one is against the other has been shown
                and not (key[0] == "auc_against" and len(comparison.groups) == 2)
            ],
        )


def lending(comparison: TableComparison) -> Iterator[doc.Block]:
    """Gini, KS and kickout, and whom each method would have tested instead."""
    if all(method.swaps is None for method in comparison.methods):
        return
    several = len(comparison.methods) > 1
    yield doc.Fold(
        "Gini, KS and kickout",
        (
            *headline_numbers(comparison, LENDING if several else LENDING[:2]),
            doc.Text(
                (
                    "KS: the mean of two values, one at a cut-off found on other people and one at "
                    "the best cut-off for these people.",
                    "Kickout (Kozodoi et al. 2019): of those whom "
                    f"`{comparison.reference}` would select, the share of positives whom the "
                    "method rejects, minus that of the negatives. Above 0, it rejects the right "
                    "ones.",
                ),
                bullets=True,
            ),
        ),
    )
    views = tuple(
        doc.View(method.name, tuple(_swaps(method)))
        for method in comparison.methods
        if method.swaps is not None
    )
    yield doc.Fold("Swap sets: who would be tested instead", (doc.Views("swaps", "By", views),))


def _swaps(method: MethodResult) -> Iterator[doc.Block]:
    swaps = method.swaps
    assert swaps is not None
    if swaps.reason:
        yield doc.Text((f"No swap set can be estimated: {swaps.reason}.",))
        return
    rows: list[tuple[doc.Cell, ...]] = [
        (who, doc.estimate(swaps.share[name], "percent"), doc.estimate(swaps.rate[name], "percent"))
        for name, who in WHO.items()
    ]
    rows.insert(3, (DOUBLED, "", doc.estimate(swaps.doubled, "percent")))
    yield doc.table(
        f"If the lowest scores of `{method.name}` were tested, as many as are now",
        ("who", "share of people", "have the outcome"),
        rows,
        note="Outcomes of the tested are known. Those of the untested are estimated, doubly "
        "robust: right if features and group explain who is tested, and one of the two models is "
        "right."
        + f" This covers the {percent(swaps.reach)} of the swapped in who are within reach of "
        "the tests." * (swaps.reach < 1),
    )
    yield doc.table(
        "Of all who are tested",
        ("", "have the outcome"),
        [
            ("now", doc.estimate(swaps.now, "percent")),
            ("by the score", doc.estimate(swaps.then, "percent")),
            ("change", doc.estimate(swaps.change, "points")),
        ],
    )
    if len(swaps.groups) > 1:
        yield doc.table(
            "Share tested",
            ("group", "now", "by the score"),
            [(doc.Name(name), *map(doc.share, both)) for name, both in swaps.groups.items()],
        )
