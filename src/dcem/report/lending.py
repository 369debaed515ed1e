"""What a lender asks of a comparison, as blocks of its page."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from dcem.compare.results import MethodResult, TableComparison
from dcem.report.compare_tables import LENDING, headline_numbers
from dcem.report.document import (
    WITHHELD,
    Block,
    Cell,
    Fold,
    Name,
    Text,
    View,
    Views,
    estimate,
    table,
)
from dcem.text import percent

WHO = {
    "kept": "tested now, and by the score",
    "swapped out": "tested now, not by the score (swapped out)",
    "swapped in": "untested now, tested by the score (swapped in)",
    "left out": "untested now, and by the score",
}

DOUBLED = "the same, if those who decided knew what doubles the odds"


def lending(comparison: TableComparison) -> Iterator[Block]:
    """Gini, KS and kickout, and whom each method would have tested instead."""
    if all(method.swaps is None for method in comparison.methods):
        return
    several = len(comparison.methods) > 1
    yield Fold(
        "Gini, KS and kickout",
        (
            *headline_numbers(comparison, LENDING if several else LENDING[:2]),
            Text(
                (
                    "KS: the cut-off is the best one that can be found without looking at those "
                    "it is judged by, and the best of all, on average.",
                    "Kickout (Kozodoi et al. 2019): of those whom "
                    f"`{comparison.reference}` would select, the share of positives whom the "
                    "method leaves out, minus that of the negatives. Above 0, the right ones go.",
                ),
                bullets=True,
            ),
        ),
    )
    views = tuple(
        View(method.name, tuple(_swaps(method)))
        for method in comparison.methods
        if method.swaps is not None
    )
    yield Fold("Swap sets: who would be tested instead", (Views("swaps", "By", views),))


def _swaps(method: MethodResult) -> Iterator[Block]:
    swaps = method.swaps
    assert swaps is not None
    if swaps.reason:
        yield Text((f"No swap set can be told: {swaps.reason}.",))
        return
    rows: list[tuple[Cell, ...]] = [
        (WHO[name], estimate(swaps.share[name], "percent"), estimate(swaps.rate[name], "percent"))
        for name in WHO
    ]
    rows.insert(3, (DOUBLED, "", estimate(swaps.doubled, "percent")))
    change = estimate(swaps.change, "points")
    yield table(
        f"If the lowest scores of `{method.name}` were tested, as many as are now",
        ("who", "share of people", "have the outcome"),
        rows,
        note="Outcomes of the tested are known. Those of the untested are estimated, doubly "
        "robust: right if features and group explain who is tested, and one of the two models is "
        f"right. It speaks for the {percent(swaps.reach)} of the swapped in who are within reach "
        "of the tests.",
    )
    yield table(
        "Of all who are tested",
        ("", "have the outcome"),
        [
            ("now", estimate(swaps.now, "percent")),
            ("by the score", estimate(swaps.then, "percent")),
            ("change", change),
        ],
    )
    if len(swaps.groups) > 1:
        yield table(
            "Share tested",
            ("group", "now", "by the score"),
            [
                (
                    Name(name),
                    *(WITHHELD if isnan(one) else estimate(one, "percent") for one in both),
                )
                for name, both in swaps.groups.items()
            ],
        )
