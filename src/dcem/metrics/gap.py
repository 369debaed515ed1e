"""Do the groups' ROC curves differ by more than chance, and by how much?

The ROC gap is an area between curves, so noise makes it positive where the true curves coincide,
the more so in small groups (`absolute`). Two questions need two kinds of resamples of people. Both
are answered here for rows that stand for any *mass* of positives and negatives: whole ones where
the truth is known, weighted or fractional ones where it was estimated.

**Is it more than chance?** What would the gap be if all groups had one curve? Draw the groups' mean
curve and move the positives of every group until the group's own curve is that one: a positive that
stood where 30 % of its group's positives were caught goes to where the mean curve has caught 30 %.
Rows keep their weights and their number, so resampling them shows the noise of each group under
equal curves. Without weights this is the idea of Venkatraman's test: a group's empirical curve
depends on its true curve and its counts alone. Permuting the groups instead would also exchange the
weights, which differ between groups wherever one is tested less than another.

**How large is it?** The resampled curves of each group as they are tell the noise around the
differences seen, and `absolute` makes limits of them.

With more than two groups, pairs differ in noise: a group with fifteen positives shows large gaps
whatever the score. Each pair's gap is counted in units of its own mean under equal curves, the
largest of these is the test statistic, and the p-values of pairs are adjusted by its distribution
(single-step maximum). So the noise of a small group does not hide a clear pair.

References: E. Venkatraman, "A permutation test to compare receiver operating characteristic
curves", Biometrics 2000; P. Westfall and S. Young, "Resampling-Based Multiple Testing", 1993.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import ndtri, stdtrit

from dcem.metrics import absolute
from dcem.metrics._statistics import GroupedPeople

GRID = (np.arange(200) + 0.5) / 200  # false positive rates at which curves are compared


@dataclass(frozen=True)
class Gaps:
    """The gaps of all pairs of groups, each with its interval and its chance."""

    pairs: tuple[tuple[int, int], ...]  # positions of the two groups
    value: np.ndarray  # [pairs] area between the curves
    low: np.ndarray  # [pairs] interval of each pair alone
    high: np.ndarray
    p_value: np.ndarray  # [pairs] adjusted for the number of pairs
    largest: tuple[float, float]  # interval of the largest gap of any pair
    chance: np.ndarray  # [pairs, resamples] the gap under equal curves

    @property
    def by_chance(self) -> np.ndarray:
        """The largest gap of any pair under equal curves [resamples]."""
        return self.chance.max(axis=0)

    @property
    def pair(self) -> tuple[int, int]:
        """The pair that has the largest gap."""
        return self.pairs[int(np.argmax(self.value))]


class Ranking:
    """One group's people in order of falling score, ready to be counted under any weights."""

    def __init__(
        self, score: np.ndarray, positive: np.ndarray, negative: np.ndarray, person: np.ndarray
    ) -> None:
        """From the score, both masses and the person (code into counts) of each row [n]."""
        order = np.argsort(-score, kind="stable")
        self.positive, self.negative = positive[order], negative[order]
        self.person = person[order]
        ordered = score[order]
        # a curve bends between scores, not within one
        self._ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1)

    @property
    def information(self) -> float:
        """Precision of the curve, from its effective numbers of positives and negatives."""
        return 1 / sum(mass @ mass / mass.sum() ** 2 for mass in (self.positive, self.negative))

    @property
    def caution(self) -> float:
        """By how much resampling understates the noise of the curve: a factor of at least 1.

        Few rows, or few that carry most of the weight, are resampled too evenly. The factor is that
        of the area under the curve, from each row's influence on it: influences divided by one
        minus the row's share of its class (as a jackknife would), and Student's instead of the
        normal quantile, at the degrees of freedom that the kurtosis of the influences leaves.
        """
        caught, alarmed = self._middles()
        p, q = (mass / mass.sum() for mass in (self.positive, self.negative))
        area = p @ (1 - alarmed)
        moved = p * (1 - alarmed - area) + q * (caught - area)
        # people, not rows: those of one person move it together
        code = np.unique(self.person, return_inverse=True)[1]
        influence, p, q = (np.bincount(code, one) for one in (moved, p, q))
        share = np.minimum(np.maximum(np.abs(p), np.abs(q)), 0.5)
        square = influence**2
        total = square.sum()
        if total == 0:
            return 1.0
        cut_off = np.sqrt((square / (1 - share) ** 2).sum() / total)
        excess = (square @ square) / total**2 - 1 / len(square)
        freedom = max(2 / excess, 2.0) if excess > 0 else np.inf
        return float(cut_off * stdtrit(freedom, 0.975) / ndtri(0.975))

    def _middles(self) -> tuple[np.ndarray, np.ndarray]:
        """Shares of positives and of negatives passed at the middle of each row's own step."""
        masses = np.stack([self.positive, self.negative])
        passed = _rising(np.cumsum(masses, axis=1), steps_back=True)
        caught, alarmed = passed - np.diff(passed, axis=1, prepend=0.0) / 2
        return caught, alarmed

    def curve(self) -> np.ndarray:
        """True positive rate on `GRID` [200]."""
        return self.curves(np.ones((1, int(self.person.max()) + 1)))[0]

    def curves(self, counts: np.ndarray) -> np.ndarray:
        """The same where people count as often as `counts` [resamples, people] says."""
        weight = counts.take(self.person, axis=1)
        rates = []
        for mass in (self.positive, self.negative):
            cumulated = np.cumsum(weight * mass, axis=1).take(self._ends, axis=1)
            share = _rising(cumulated, steps_back=bool((mass < 0).any()))
            rates.append(np.concatenate([np.zeros((len(share), 1)), share], axis=1))
        return np.stack([np.interp(GRID, fpr, tpr) for tpr, fpr in zip(*rates, strict=True)])

    def moved_to(self, curve: np.ndarray) -> Ranking:
        """The same people with their positive masses moved so that the group's curve is `curve`."""
        caught, alarmed = self._middles()
        rates = np.concatenate([[0.0], GRID, [1.0]])
        heights = np.maximum.accumulate(np.concatenate([[0.0], curve, [1.0]]))
        heights += np.linspace(0, 1e-9, len(heights))  # strictly rising, so that it can be inverted
        p, q = np.flatnonzero(self.positive), np.flatnonzero(self.negative)
        return Ranking(
            -np.concatenate([np.interp(caught[p], heights, rates), alarmed[q]]),
            np.concatenate([self.positive[p], np.zeros(len(q))]),
            np.concatenate([np.zeros(len(p)), self.negative[q]]),
            np.concatenate([self.person[p], self.person[q]]),
        )


def compare_curves(
    score: np.ndarray,
    positive: np.ndarray,
    negative: np.ndarray,
    group: np.ndarray,
    person: np.ndarray | None = None,
    *,
    n_resamples: int,
    level: float,
    rng: np.random.Generator,
    rescored: np.ndarray | None = None,
    moved: Sequence[tuple[Sequence[np.ndarray], Sequence[np.ndarray], np.ndarray]] = (),
) -> Gaps:
    """Gaps of all pairs of at least two groups, with intervals and p-values.

    Parameters
    ----------
    score, positive, negative
        Score and masses of each row [n].
    group
        Code of each row's group [n], 0 to G - 1, each with positives and negatives.
    person
        Code of each row's person [n]; None: every row is a person.
    n_resamples
        Resamples of people, within their group.
    level
        Of the intervals; pairs are clear where p < 1 - level.
    rng
        Of the resamples.
    rescored
        The same rows as scored by a model of which one part was left out [parts, left out, n]: how
        far curves move tells the luck of training (a jackknife), which is added to the noise.
    moved
        Both masses where something else that is uncertain is one step more, and less, and what
        moves it, in steps: each row [n], and behind them whatever else, in standard errors. What
        that does to the curves is added to the noise too.
    """
    people = GroupedPeople(group, person)

    def rank(score: np.ndarray, p: np.ndarray, q: np.ndarray) -> list[Ranking]:
        chosen = (
            np.flatnonzero((group == code) & (p + q != 0)) for code in range(int(group.max()) + 1)
        )
        return [Ranking(score[rows], p[rows], q[rows], people.of_row[rows]) for rows in chosen]

    rankings = rank(score, positive, negative)
    curves = np.stack([one.curve() for one in rankings])  # [groups, 200]
    precision = np.array([one.information for one in rankings])
    mean = precision @ curves / precision.sum()
    equal = [one.moved_to(mean) for one in rankings]
    own, null = [], []
    steps: list[np.ndarray] = []
    n_people = int(people.of_row.max()) + 1
    pulls = [np.bincount(people.of_row, by[: len(score)], n_people) for *_, by in moved]
    for counts in people.resamples(rng, n_resamples, sum(len(one.person) for one in rankings)):
        if pulls:
            steps.append(np.stack([(counts - 1) @ pull for pull in pulls], axis=1))
        own.append(np.stack([one.curves(counts) for one in rankings]))
        null.append(np.stack([one.curves(counts) for one in equal]))
    pairs = tuple(combinations(range(len(rankings)), 2))
    seen = _differences_of_pairs(curves, pairs)  # [pairs, 200]
    caution = np.array([one.caution for one in rankings])[:, None, None]
    noise, null_noise = (
        _differences_of_pairs(caution * (np.concatenate(drawn, axis=1) - around), pairs)
        for drawn, around in ((own, curves[:, None]), (null, mean))
    )
    shifts = []  # [causes, groups, 200]: how far curves move, for other reasons than who was drawn
    if rescored is not None and len(rescored):
        without = np.array(
            [
                [[one.curve() for one in rank(again, positive, negative)] for again in part]
                for part in rescored
            ]
        )  # [parts, left out, groups, 200]
        shift = without - without.mean(axis=1, keepdims=True)
        shift *= np.sqrt(1 - 1 / shift.shape[1])
        shifts.append(shift.reshape(-1, *curves.shape))
    draws = [rng.normal(size=(n_resamples, sum(map(len, shifts))))] if shifts else []
    for place, (*ends, by) in enumerate(moved):
        up, down = ([one.curve() for one in rank(score, *masses)] for masses in ends)
        shifts.append((np.array([up]) - down) / 2)
        behind = rng.normal(size=(n_resamples, len(by) - len(score))) @ by[len(score) :]
        draws.append((np.concatenate(steps)[:, place] + behind)[:, None])
    if shifts:
        luck = np.tensordot(np.concatenate(draws, axis=1), np.concatenate(shifts), axes=1)
        luck = _differences_of_pairs(np.moveaxis(luck, 1, 0), pairs)
        noise, null_noise = noise + luck, null_noise + luck
    there = ~np.isnan(noise + null_noise).any(axis=(0, 2))  # resamples may miss a class
    noise, null_noise = noise[:, there], null_noise[:, there]  # [pairs, resamples, 200]
    chance = absolute.size(null_noise)  # [pairs, resamples]

    # above 0: groups that are told apart perfectly have no noise, and no gap either
    value, unit = absolute.size(seen), np.maximum(chance.mean(axis=1), 1e-12)
    standing_out = int(np.argmax(value / unit))
    most_by_chance = (chance / unit[:, None]).max(axis=0)
    p_value = np.array([absolute.as_large(most_by_chance, one) for one in value / unit])
    # Groups that happen to look steady have little noise of their own: for the lower limits it is
    # mixed with that under the mean curve.
    both = np.concatenate([noise, null_noise], axis=1)
    limits = [
        absolute.size_limits(*one, level) for one in zip(seen, noise, both, chance, strict=True)
    ]
    low, high = np.array(limits).T
    # The largest gap is at least that of the pair that stands out most.
    tail, least = (1 - level) / 2, 0.0
    if p_value[standing_out] < 1 - level:
        least = float(value[standing_out]) * absolute.multiple(seen, both, unit, tail)
    resampled = absolute.size(seen[:, None] + noise).max(axis=0)
    most = max(float(np.quantile(resampled, 1 - tail)), float(value.max()))
    return Gaps(pairs, value, low, high, p_value, (least, most), chance)


def _rising(cumulated: np.ndarray, *, steps_back: bool) -> np.ndarray:
    """Shares of the total along the last axis, rising from 0 to 1; NaN where the total is 0.

    Estimated masses can be negative, and the sums then step back: they are replaced by the mean of
    their running maximum and (backward) running minimum, which leaves rising sums as they are.
    """
    total = cumulated[..., -1:]
    share: np.ndarray = cumulated / np.where(total > 0, total, np.nan)
    if not steps_back:
        return share
    share = np.clip(share, 0.0, 1.0)
    upper = np.maximum.accumulate(share, axis=-1)
    lower = np.minimum.accumulate(share[..., ::-1], axis=-1)[..., ::-1]
    return (upper + lower) / 2


def _differences_of_pairs(curves: np.ndarray, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Differences of pairs, [pairs, ..., 200], of curves [groups, ..., 200]."""
    return np.stack([curves[a] - curves[b] for a, b in pairs])
