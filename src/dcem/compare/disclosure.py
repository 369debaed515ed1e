"""A comparison that can be shared: what would give a small count of a group away is left out.

Counts of the groups are hidden by the rule of `dcem.table.disclosure`. Where one of a group is,
the plain numbers about it (among the tested, and against the truth) are withheld too: shares and
the steps of a curve are counts in other words. What rests on models of everybody stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Any

from dcem.compare.results import GroupCounts, Judgement
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import THRESHOLD, Shown, hide_groups

PLAIN = ("tested", "truth")  # targets whose numbers are ratios of counts
WITHHELD = Estimate(nan, reason=f"withheld: it would show a count under {THRESHOLD}")


def shown_counts(groups: Sequence[GroupCounts]) -> list[dict[str, Shown]]:
    """Counts of every group, then of all together, small ones hidden."""
    known = all(group.positives is not None for group in groups)
    names = {"rows": "people", "tested": "tested", "positive": "positives_seen"}
    names |= {"positive in truth": "positives"} if known else {}
    together = frozenset.intersection(*(group.few for group in groups))
    found = hide_groups(
        [{cell: getattr(group, name) for cell, name in names.items()} for group in groups],
        [*(group.few for group in groups), together],
    )
    return [{names[cell]: value for cell, value in one.items()} for one in found]


def withheld_groups(groups: Sequence[GroupCounts]) -> frozenset[str]:
    """Groups some of whose counts are hidden, though there is somebody to count."""
    return frozenset(
        group.name
        for group, shown in zip(groups, shown_counts(groups)[:-1], strict=True)
        if any(isinstance(value, str) and getattr(group, key) for key, value in shown.items())
    )


def without_small_cells(judged: Judgement, withheld: Collection[str]) -> Judgement:
    """The same judgement without what would give away a count of these groups."""
    if judged.target not in PLAIN or not withheld:
        return judged

    def about(key: Any) -> bool:
        return not set(withheld).isdisjoint(key if isinstance(key, tuple) else (key,))

    def lost(found: Mapping[Any, Estimate]) -> dict[Any, Estimate]:
        return {k: WITHHELD if about(k) and e.estimable else e for k, e in found.items()}

    def rounded(found: Mapping[Any, Estimate]) -> dict[Any, Estimate]:
        return {k: _to_hundredths(e) if about(k) else e for k, e in found.items()}

    return replace(
        judged,
        group_auc=rounded(judged.group_auc),
        auc_differences=rounded(judged.auc_differences),
        auc_against=rounded(judged.auc_against),
        xauc=rounded(judged.xauc),
        when_acting={name: lost(found) for name, found in judged.when_acting.items()},
        calibration_in_the_large=lost(judged.calibration_in_the_large),
        calibration_slope=lost(judged.calibration_slope),
        roc_curves={k: v for k, v in judged.roc_curves.items() if not about(k)},
        calibration_curves={k: v for k, v in judged.calibration_curves.items() if not about(k)},
        decision_curves={k: v for k, v in judged.decision_curves.items() if not about(k)},
    )


def _to_hundredths(one: Estimate) -> Estimate:
    """Finer, an AUC tells how many pairs it was counted from."""
    return replace(one, value=round(one.value, 2), low=round(one.low, 2), high=round(one.high, 2))
