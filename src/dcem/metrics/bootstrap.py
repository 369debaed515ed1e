"""How far to trust each metric: bootstrap intervals, and a reference for the gap.

**Intervals.** People are drawn again, with replacement, within their group and with all their
rows, and every metric is computed for each resample. The interval describes the sampling of people
for a *fixed* score: it does not know how much the score itself would change if the model were
trained on other people.

**Absolute values are pushed one way.** Noise makes the ROC gap, the xAUC difference and the
calibration error larger, and the AUC of the worst group smaller; resampling adds the noise a
second time. The usual percentile interval of the gap of a fair score *never* contains 0. So the
intervals of these metrics reach as far to the other side of the estimate as the resamples reach to
the side noise pushes them. In simulations with two normal classes and a nominal 95 % this covers
the true gap in 93 to 98 % of samples, fair or not (`tests/metrics/test_bootstrap.py`).

**The gap needs a reference too.** Beside it stands its distribution after the groups were dealt
out at random, with a p-value, and the signed AUC difference with an interval of its own, which says
in which direction the groups differ. A gap well inside its reference is what a score that ignores
the group would show.

**Not estimable is an answer.** A group with one class has no curve, and three people are not a
sample: the value, or only its interval, is then NaN, and `reason` says why.

References: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 8, 13 and 15;
for resampling within groups and by person, Davison and Hinkley, "Bootstrap Methods and their
Application", 1997, sections 3.2 and 3.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from dcem.metrics._inputs import Groups, Rows, read_groups, read_identifiers, read_rows
from dcem.metrics._intervals import BootstrapResult, GapInterval, Interval
from dcem.metrics._resampling import People, permuted_gaps
from dcem.metrics._statistics import Key, Statistics
from dcem.table.checks import InputError, notice

MIN_PEOPLE = 5  # of each class needed: with fewer, resamples miss the class too often
_BATCH = 2**19  # weights held at a time: few enough to stay in the processor's cache
_PUSHED_UP = {
    "roc_gap",
    "roc_gaps",
    "xauc_difference",
    "calibration_error",
    "group_calibration_error",
    "worst_group_calibration_error",
}
_PUSHED_DOWN = {"worst_group_auc"}


def bootstrap(
    y: Any,
    score: Any,
    group: Any = None,
    *,
    id: Any = None,
    weight: Any = None,
    n_replicates: int = 1000,
    n_permutations: int | None = None,
    level: float = 0.95,
    n_bins: int = 10,
    random_state: int | np.random.Generator = 0,
) -> BootstrapResult:
    """Intervals for every metric, and the permutation reference of the ROC gap.

    `id` names the person of each row: a person's rows are drawn, and change groups, together.
    `n_permutations` defaults to `n_replicates`; 0 leaves the reference out. `n_bins` is for the
    calibration error, whose bins stay those of the observed sample. Same `random_state`, same
    result.

    The permutation tests whether, *given the label, the score is unrelated to the group*. Groups
    whose scores are shifted against each other but ranked equally well violate that and still have
    a gap of 0; for them the reference is a fair, if not exact, picture of the noise.
    """
    if not 0 < level < 1:
        raise InputError(f"level={level!r} must lie between 0 and 1, such as 0.95.")
    if n_replicates < 1:
        raise InputError(f"n_replicates={n_replicates!r} must be at least 1.")
    rng = np.random.default_rng(random_state)
    rows = read_rows(y, score, weight)
    if group is None:
        groups = Groups(np.zeros(len(rows), dtype=np.intp), ("all",))
    else:
        groups = read_groups(group, rows, y)
    people = People(rows, groups, None if id is None else read_identifiers(id, rows, y))
    probabilities = bool(rows.score.min() >= 0 and rows.score.max() <= 1)

    statistics = Statistics(rows, groups, people, n_bins=n_bins, calibration=probabilities)
    observed = statistics(np.ones((1, len(people))))
    batch = max(1, _BATCH // len(rows))
    batches = [
        statistics(people.resample(rng, min(batch, n_replicates - done)))
        for done in range(0, n_replicates, batch)
    ]
    support = _Support(rows, groups, people)
    for label in groups.levels:
        lacking = support.lacking(("group_auc", label))
        if lacking:
            notice(f"Not everything is estimable: {lacking}. See `reason` in the result.")
    intervals = {
        key: _interval(
            key[0],
            float(value[0]),
            np.concatenate([part[key] for part in batches]),
            level,
            support.lacking(key),
        )
        for key, value in observed.items()
    }

    def one(name: str) -> Interval:
        why = "scores are not probabilities" if "calibration" in name else "there is only one group"
        return intervals.get((name, None), Interval(np.nan, np.nan, np.nan, level, 0, why))

    def each(name: str) -> Mapping[Any, Interval]:
        return {of: interval for (metric, of), interval in intervals.items() if metric == name}

    n_permutations = n_replicates if n_permutations is None else n_permutations
    return BootstrapResult(
        auc=one("auc"),
        group_auc=each("group_auc"),
        worst_group_auc=one("worst_group_auc"),
        auc_differences=each("auc_differences"),
        roc_gap=_with_reference(one("roc_gap"), rows, groups, people, rng, n_permutations),
        roc_gaps=each("roc_gaps"),
        xauc=each("xauc"),
        xauc_difference=one("xauc_difference"),
        calibration_error=one("calibration_error"),
        group_calibration_error=each("group_calibration_error"),
        worst_group_calibration_error=one("worst_group_calibration_error"),
    )


class _Support:
    """How many people stand behind each value."""

    def __init__(self, rows: Rows, groups: Groups, people: People) -> None:
        counted = slice(None) if rows.weight is None else rows.weight > 0
        person, positive = people.of_row[counted], rows.positive[counted]
        group = groups.code[counted]

        def distinct(code: np.ndarray, n_codes: int) -> list[int]:
            pairs = np.unique(person * n_codes + code)
            return np.bincount(pairs % n_codes, minlength=n_codes).tolist()

        self._levels = groups.levels
        n_groups = len(groups.levels)
        in_group, in_class = distinct(group, n_groups), distinct(positive, 2)
        in_cell = distinct(2 * group + positive, 2 * n_groups)
        self._people: dict[tuple[str, Any], int] = {
            ("rows", None): len(np.unique(person)),
            ("negatives", None): in_class[0],
            ("positives", None): in_class[1],
        }
        for g, label in enumerate(groups.levels):
            self._people["rows", label] = in_group[g]
            self._people["negatives", label] = in_cell[2 * g]
            self._people["positives", label] = in_cell[2 * g + 1]

    def lacking(self, key: Key) -> str | None:
        """Why a value has no interval, or None where enough people stand behind it."""
        for side, label in self._needed(*key):
            n_people = self._people[side, label]
            if n_people < MIN_PEOPLE:
                who = "the sample" if label is None else f"group {label!r}"
                if not n_people:
                    return f"{who} has no {side}"
                return f"{who} has {side} from {n_people} of at least {MIN_PEOPLE} people"
        return None

    def _needed(self, metric: str, of: Any) -> list[tuple[str, Any]]:
        if metric == "xauc":
            return [("positives", of[0]), ("negatives", of[1])]
        if metric in ("auc", "calibration_error"):
            labels: Iterable[Any] = [None]  # no level is None: a missing one has a name
        elif of is None:
            labels = self._levels
        else:
            labels = of if metric in ("auc_differences", "roc_gaps") else [of]
        sides = ("rows",) if "calibration" in metric else ("positives", "negatives")
        return [(side, label) for label in labels for side in sides]


def _interval(
    metric: str, estimate: float, replicates: np.ndarray, level: float, lacking: str | None
) -> Interval:
    usable = replicates[~np.isnan(replicates)]
    if lacking or not len(usable):
        reason = lacking or "no resample held both classes"
        return Interval(estimate, np.nan, np.nan, level, len(usable), reason)
    low, high = np.quantile(usable, [(1 - level) / 2, (1 + level) / 2])
    if metric in _PUSHED_UP:
        low = max(0.0, 2 * estimate - high)
    elif metric in _PUSHED_DOWN:
        high = min(1.0, 2 * estimate - low)
    return Interval(estimate, float(low), float(high), level, len(usable))


def _with_reference(
    gap: Interval,
    rows: Rows,
    groups: Groups,
    people: People,
    rng: np.random.Generator,
    n_permutations: int,
) -> GapInterval:
    known = asdict(gap)
    if np.isnan(gap.estimate):
        return GapInterval(**known, reference_reason=gap.reason)
    if not n_permutations:
        return GapInterval(**known, reference_reason="not asked for")
    if people.in_several_groups:
        why = f"{people.in_several_groups} people are in several groups and cannot be dealt out"
        return GapInterval(**known, reference_reason=why)
    gaps = permuted_gaps(rows, groups, people, rng, n_permutations)
    gaps = gaps[~np.isnan(gaps)]
    as_large = np.sum(gaps >= gap.estimate - 1e-12)  # ties up to rounding count as large
    return GapInterval(**known, p_value=float((1 + as_large) / (1 + len(gaps))), reference=gaps)
