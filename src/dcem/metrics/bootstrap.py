"""How far to trust each metric: intervals from resampled people, and the chance of a gap.

**Resamples.** People are drawn again, with replacement, within their group and with all their rows,
and every metric is computed for each resample. The intervals describe the sampling of people for a
*fixed* score: they do not know how much the score itself would change if the model were trained on
other people.

**Areas under a curve** are probabilities and their noise is lopsided near 1, most of all in small
groups. Their intervals are made on the log-odds scale, from the spread of the resamples, with
Student's quantile for as many people as the smaller class has. A difference of two areas puts
together the lower arm of one and the upper arm of the other (MOVER).

**Absolute values are pushed up by noise**: the ROC gap, the calibration error. `absolute` and `gap`
say what is done about it. Beside the gap stand its chance, the p-value of a gap as large if all
groups had one curve, and the signed AUC difference, which says in which direction groups differ.
The calibration error is given without its upward bias, so it is below that of the plain function.

**Extremes are pushed outwards**: the worst of several groups looks worse than it is. The interval
of the worst AUC reaches from the lowest lower limit of any group to the lowest upper limit, which
is taken far enough out for all groups together (Bonferroni).

**Not estimable is an answer.** A group with one class has no curve, and three people are not a
sample: the value, or only its interval, is then NaN, and `reason` says why.

References: Davison and Hinkley, "Bootstrap Methods and their Application", 1997, sections 3.2 and
3.8 (resampling within groups and by person); Zou and Donner, "Construction of confidence limits
about effect measures: a general approach", Statistics in Medicine 2008 (MOVER); Qin and Hotilovac,
"Comparison of non-parametric confidence intervals for the area under the ROC curve", Statistical
Methods in Medical Research 2008 (the log-odds scale).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import combinations
from math import nan, sqrt
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import stdtrit

from dcem.metrics import absolute
from dcem.metrics._inputs import (
    Checked,
    Label,
    Membership,
    read_groups,
    read_identifiers,
    read_rows,
)
from dcem.metrics._statistics import GroupedPeople, Key, Statistics
from dcem.metrics.estimate import Estimate, GapEstimate, share_interval
from dcem.metrics.gap import compare_curves
from dcem.metrics.groups import exact_gaps
from dcem.table.messages import InputError, formerly, notice, require_share

MIN_PEOPLE = 5  # of each class needed: with fewer, resamples miss the class too often
_NO_PROBABILITIES = "scores are not probabilities"


@dataclass(frozen=True, repr=False)
class BootstrapResult:
    """Intervals of all metrics; each field has the name of the function it belongs to."""

    auc: Estimate
    group_auc: Mapping[Label, Estimate]
    worst_group_auc: Estimate
    auc_differences: Mapping[tuple[Label, Label], Estimate]
    roc_gap: GapEstimate
    roc_gaps: Mapping[tuple[Label, Label], GapEstimate]  # each interval is that of its pair alone
    xauc: Mapping[tuple[Label, Label], Estimate]
    xauc_difference: Estimate
    calibration_error: Estimate
    group_calibration_error: Mapping[Label, Estimate]
    worst_group_calibration_error: Estimate

    def items(self) -> Iterator[tuple[str, Any, Estimate]]:
        """(metric, group or pair or None, estimate), one after the other, for tables."""
        for metric in fields(self):
            value = getattr(self, metric.name)
            entries = value.items() if isinstance(value, Mapping) else [(None, value)]
            for of, estimate in entries:
                yield metric.name, of, estimate

    def __repr__(self) -> str:
        rows = [(metric, _who(of), estimate) for metric, of, estimate in self.items()]
        width = max(len(who) for _, who, _ in rows)
        return "\n".join(
            f"{metric:<29} {who:<{width}} {estimate}" for metric, who, estimate in rows
        )


def _who(of: Any) -> str:
    """A group, or a pair of them, in words; nothing for everybody."""
    if isinstance(of, tuple):
        return " / ".join(map(str, of))
    return "" if of is None else str(of)


@formerly(n_replicates="n_resamples")
def bootstrap(
    y: Any,
    score: Any,
    group: Any = None,
    *,
    id: Any = None,
    weight: Any = None,
    n_resamples: int = 1000,
    level: float = 0.95,
    n_bins: int = 10,
    random_state: int | np.random.Generator = 0,
) -> BootstrapResult:
    """Intervals for every metric, and the chance of the ROC gap under equal curves.

    Parameters
    ----------
    y, score, group
        True label, score and group of each row.
    id
        The person of each row: a person's rows are drawn together. Default: all distinct.
    weight
        How much each row counts.
    n_resamples
        Resamples of people.
    level
        Of the intervals.
    n_bins
        For the calibration error, whose bins stay those of the observed sample.
    random_state
        Same state, same result.
    """
    require_share("level", level, 0.95)
    if not (isinstance(n_resamples, Integral) and n_resamples >= 2):
        raise InputError(f"n_resamples must be a whole number from 2 on; got {n_resamples!r}.")
    rng = np.random.default_rng(random_state)
    rows = read_rows(y, score, weight, group=group, id=id)
    if group is None:
        groups = Membership(np.zeros(len(rows), dtype=np.intp), ("all",))
    else:
        groups = read_groups(group, rows)
    people = GroupedPeople(groups.code, None if id is None else read_identifiers(id, rows))
    probabilities = bool(rows.score.min() >= 0 and rows.score.max() <= 1)

    statistics = Statistics(rows, groups, people, n_bins=n_bins, calibration=probabilities)
    observed = statistics(np.ones((1, len(people))))
    drawn: dict[Key, list[np.ndarray]] = {key: [] for key in (*observed, *statistics.calibration)}
    for counts in people.resamples(rng, n_resamples, len(rows)):
        for key, values in statistics(counts).items():
            drawn[key].append(values)
        for key, error in statistics.calibration.items():
            drawn[key].append(error(counts))
    support = _Support(rows, groups, people)
    for label in groups.levels:
        lacking = support.lacking(("group_auc", label))
        if lacking:
            notice(f"Not everything is estimable: {lacking}. See `reason` in the result.")

    def areas(name: str, level: float = level) -> dict[Any, Estimate]:
        return {
            key[1]: _area(float(value[0]), np.concatenate(drawn[key]), *support.of(key), level)
            for key, value in observed.items()
            if key[0] == name
        }

    def errors(name: str, level: float = level) -> dict[Any, Estimate]:
        found = {}
        for key, error in statistics.calibration.items():
            if key[0] == name:
                seen = error(np.ones((1, len(people))))[0]
                noise = np.concatenate(drawn[key]) - seen
                found[key[1]] = _error(seen, noise, chances[key], support.lacking(key), level)
        return found

    gap, gaps = _gap_estimates(rows, groups, people, support, n_resamples, level, rng)
    chances = {
        key: error.by_chance(rng, n_resamples) for key, error in statistics.calibration.items()
    }
    each, calibrated = areas("group_auc"), errors("group_calibration_error")
    # limits that hold for all groups at once, for the worst of them
    together = 1 - (1 - level) / len(groups.levels)
    return BootstrapResult(
        auc=areas("auc")[None],
        group_auc=each,
        worst_group_auc=_worst(each, areas("group_auc", together), np.min),
        auc_differences={(a, b): each[a].minus(each[b]) for a, b in combinations(each, 2)},
        roc_gap=gap,
        roc_gaps=gaps,
        xauc=areas("xauc"),
        xauc_difference=_turn(observed, drawn, support, level),
        calibration_error=errors("calibration_error").get(
            None, Estimate(nan, reason=_NO_PROBABILITIES)
        ),
        group_calibration_error=calibrated,
        worst_group_calibration_error=_worst(
            calibrated, errors("group_calibration_error", together), np.max
        ),
    )


# -- areas under curves ------------------------------------------------------------------------


def _area(value: float, resamples: np.ndarray, lacking: str, people: int, level: float) -> Estimate:
    """An area with its interval on the log-odds scale; `people` of the smaller class."""
    usable = resamples[~np.isnan(resamples)]
    if lacking or len(usable) < 2:
        return Estimate(value, reason=lacking or "no resample held both classes")
    spread = float(usable.std(ddof=1)) * sqrt(people / (people - 1))
    # at 0 or 1 no resample moves it; the variance of a share of so many people still does
    centre = (people * value + 0.5) / (people + 1) if value in (0.0, 1.0) else value
    spread = max(spread, sqrt(centre * (1 - centre) / people) if centre != value else 0.0)
    low, high = share_interval(centre, float(stdtrit(people - 1, (1 + level) / 2)) * spread)
    return Estimate(value, min(low, value), max(high, value))


def _turn(
    observed: Mapping[Key, np.ndarray],
    drawn: Mapping[Key, list[np.ndarray]],
    support: _Support,
    level: float,
) -> Estimate:
    """The largest xAUC difference: noise pushes it up, so it reaches as far down as up."""
    key = ("xauc_difference", None)
    if key not in observed:
        return Estimate(nan, reason="there is only one group")
    value, resamples = float(observed[key][0]), np.concatenate(drawn[key])
    usable = resamples[~np.isnan(resamples)]
    lacking = support.lacking(key)
    if lacking or not len(usable):
        return Estimate(value, reason=lacking or "no resample held both classes")
    high = max(float(np.quantile(usable, (1 + level) / 2)), value)
    return Estimate(value, max(0.0, 2 * value - high), high)


def _worst(alone: Mapping[Any, Estimate], together: Mapping[Any, Estimate], pick: Any) -> Estimate:
    """The lowest (or highest) of several groups, from limits alone and for all together."""
    if not alone:
        return Estimate(nan, reason=_NO_PROBABILITIES)
    value = float(pick([one.value for one in alone.values()]))
    lacking = next((one.reason for one in alone.values() if one.reason), "")
    if lacking:
        return Estimate(value, reason=lacking)
    lowest = pick is np.min
    outer = [one.low if lowest else one.high for one in alone.values()]
    inner = [one.high if lowest else one.low for one in together.values()]
    ends = sorted((float(pick(outer)), float(pick(inner))))
    return Estimate(value, ends[0], ends[1])


# -- absolute values ---------------------------------------------------------------------------


def _error(
    seen: np.ndarray, noise: np.ndarray, chance: np.ndarray, lacking: str, level: float
) -> Estimate:
    """A calibration error [bins], without its upward bias."""
    noise = noise[~np.isnan(noise).any(axis=1)]
    if lacking or not len(noise):
        return Estimate(float(absolute.size(seen)), reason=lacking or "no resample held anybody")
    return absolute.debiased(seen, noise, level, chance)


def _gap_estimates(
    rows: Checked,
    groups: Membership,
    people: GroupedPeople,
    support: _Support,
    n_resamples: int,
    level: float,
    rng: np.random.Generator,
) -> tuple[GapEstimate, dict[Any, GapEstimate]]:
    """The largest ROC gap, and that of every pair."""
    if len(groups.levels) < 2:
        return GapEstimate(nan, reason="there is only one group"), {}
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    names = groups.levels
    gaps = {
        pair: GapEstimate(value, reason=support.lacking(("roc_gaps", pair)))
        for pair, value in exact_gaps(rows, groups).items()
    }
    largest = GapEstimate(
        float(np.max([one.value for one in gaps.values()])),
        reason=support.lacking(("roc_gap", None)),
    )
    usable = [g for g, label in enumerate(names) if not support.lacking(("group_auc", label))]
    if len(usable) < 2:
        return largest, gaps
    chosen = np.flatnonzero(np.isin(groups.code, usable))
    judged = compare_curves(
        rows.score[chosen],
        (weight * rows.positive)[chosen],
        (weight * ~rows.positive)[chosen],
        np.searchsorted(usable, groups.code[chosen]),
        np.unique(people.of_row[chosen], return_inverse=True)[1],
        n_resamples=n_resamples,
        level=level,
        rng=rng,
    )

    def around(value: float, low: float, high: float, p: float, chance: np.ndarray) -> GapEstimate:
        # limits are those of curves on a grid, the value is exact
        return GapEstimate(
            value, min(low, value), max(high, value), p_value=float(p), reference=chance
        )

    for k, (a, b) in enumerate(judged.pairs):
        limits = float(judged.low[k]), float(judged.high[k])
        pair = names[usable[a]], names[usable[b]]
        gaps[pair] = around(gaps[pair].value, *limits, judged.p_value[k], judged.chance[k])
    if len(usable) == len(names):
        largest = around(largest.value, *judged.largest, judged.p_value.min(), judged.by_chance)
    return largest, gaps


# -- who stands behind a value -----------------------------------------------------------------


class _Support:
    """How many people stand behind each value."""

    def __init__(self, rows: Checked, groups: Membership, people: GroupedPeople) -> None:
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

    def of(self, key: Key) -> tuple[str, int]:
        """What is lacking, and how many people the smallest class needed for a value has."""
        return self.lacking(key), min(self._people[needed] for needed in self._needed(*key))

    def lacking(self, key: Key) -> str:
        """Why a value has no interval; empty where enough people stand behind it."""
        for side, label in self._needed(*key):
            n_people = self._people[side, label]
            if n_people < MIN_PEOPLE:
                who = "the sample" if label is None else f"group {label!r}"
                if not n_people:
                    return f"{who} has no {side}"
                return f"{who} has {side} from {n_people} of at least {MIN_PEOPLE} people"
        return ""

    def _needed(self, metric: str, of: Any) -> list[tuple[str, Any]]:
        if metric == "xauc":
            return [("positives", of[0]), ("negatives", of[1])]
        if metric in ("auc", "calibration_error"):
            labels: Iterable[Any] = [None]  # no level is None: a missing one has a name
        elif of is None:
            labels = self._levels
        else:
            labels = of if metric == "roc_gaps" else [of]
        sides = ("rows",) if "calibration" in metric else ("positives", "negatives")
        return [(side, label) for label in labels for side in sides]
