"""All metrics but the ROC gap (`gap`) at once, for a whole batch of resamples.

The rows are sorted a single time. A resample only changes how much each person counts, and every
metric here is a function of cumulative weights along the sorted rows.

*Who counts how often.* Rows of one person are not independent, so the unit drawn is the person.
People are drawn within their group: the size of a group is a fact of the study, not something that
could have come out differently. A resample is never written out; it is a count per person, which
serves as a weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from dcem.metrics._inputs import Checked, Membership, split_by_code
from dcem.metrics.calibration import bin_of
from dcem.metrics.roc import Staircase

_BATCH = 2**19  # weights held at a time: few enough to stay in the processor's cache
Key = tuple[str, Any]  # name of the metric's function; the group, pair of groups or None


class GroupedPeople:
    """The people behind the rows, numbered so that those of one group are neighbours."""

    def __init__(self, group: np.ndarray, person: np.ndarray | None = None) -> None:
        """From the codes of group and person of each row [n]; None: each row is a person."""
        n_groups = int(group.max()) + 1
        if person is None:
            person = np.arange(len(group))
        first_row = np.unique(person, return_index=True)[1]
        of_person = group[first_row]  # [people]
        elsewhere = np.bincount(person, group != of_person[person]) > 0
        # people seen in several groups are a stratum of their own: with all their rows or without
        stratum = np.where(elsewhere, n_groups, of_person)
        order = np.argsort(stratum, kind="stable")
        number = np.empty_like(order)
        number[order] = np.arange(len(order))
        self.of_row = number[person]  # [n] the person of each row
        self.group = of_person[order]  # [people]
        self.sizes = np.bincount(stratum, minlength=n_groups + 1)

    def __len__(self) -> int:
        return len(self.group)

    def resamples(
        self, rng: np.random.Generator, n_resamples: int, n_rows: int
    ) -> Iterator[np.ndarray]:
        """`resample` in batches."""
        batch = max(1, _BATCH // n_rows)
        for done in range(0, n_resamples, batch):
            yield self.resample(rng, min(batch, n_resamples - done))

    def resample(self, rng: np.random.Generator, n_resamples: int) -> np.ndarray:
        """How often each person was drawn: [resamples, people]."""
        counts = []
        for size in self.sizes[self.sizes > 0]:
            drawn = rng.integers(size, size=(n_resamples, size))
            drawn += size * np.arange(n_resamples)[:, None]
            flat = np.bincount(drawn.ravel(), minlength=n_resamples * size)
            counts.append(flat.reshape(n_resamples, size))
        return np.concatenate(counts, axis=1).astype(np.float64)


class Statistics:
    """The metrics of fixed rows as a function of how often each person counts."""

    def __init__(
        self,
        rows: Checked,
        groups: Membership,
        people: GroupedPeople,
        *,
        n_bins: int,
        calibration: bool,
    ) -> None:
        self._groups = groups
        everybody = np.arange(len(rows))
        cells = split_by_code(2 * groups.code + rows.positive, 2 * len(groups.levels))
        cells = [cell[np.argsort(-rows.score[cell])] for cell in cells]
        negatives, positives = cells[::2], cells[1::2]
        self._positives = [_Weights(rows, people, cell) for cell in positives]
        self._negatives = [_Weights(rows, people, cell) for cell in negatives]
        self._staircases = [
            [Staircase(-rows.score[above], -rows.score[below]) for below in negatives]
            for above in positives
        ]
        self.calibration: dict[Key, BinnedError] = {}
        if calibration:
            parts = [(("calibration_error", None), everybody)]
            parts += [
                (("group_calibration_error", label), members)
                for label, members in zip(groups.levels, groups.members(), strict=True)
            ]
            self.calibration = {
                key: BinnedError(rows, people, members, n_bins) for key, members in parts
            }

    @np.errstate(invalid="ignore", divide="ignore")  # a class may be absent: NaN
    def __call__(self, counts: np.ndarray) -> dict[Key, np.ndarray]:
        """Metrics of ranking, [resamples] each, from the counts [resamples, people]."""
        levels, each = self._groups.levels, range(len(self._groups.levels))
        positives = [cell.cumulative(counts) for cell in self._positives]
        negatives = [cell.cumulative(counts) for cell in self._negatives]
        concordant = {
            (a, b): self._staircases[a][b].draw(positives[a], negatives[b]).area()
            for a in each
            for b in each
        }
        total = [(positives[g][:, -1], negatives[g][:, -1]) for g in each]
        crossed = {
            (a, b): area / (total[a][0] * total[b][1]) for (a, b), area in concordant.items()
        }
        n_positive, n_negative = np.sum(total, axis=0)
        values: dict[Key, np.ndarray] = {
            ("auc", None): np.sum(list(concordant.values()), axis=0) / (n_positive * n_negative),
        }
        values |= {("group_auc", levels[g]): crossed[g, g] for g in each}
        values |= {
            ("xauc", (levels[a], levels[b])): area for (a, b), area in crossed.items() if a != b
        }
        turns = [np.abs(crossed[a, b] - crossed[b, a]) for a, b in combinations(each, 2)]
        if turns:
            values["xauc_difference", None] = np.max(turns, axis=0)
        return values


class _Weights:
    """The rows of one class of one group in sorted order, weighted by how often a person counts."""

    def __init__(self, rows: Checked, people: GroupedPeople, sorted_rows: np.ndarray) -> None:
        self._person = people.of_row[sorted_rows]
        self._weight = None if rows.weight is None else rows.weight[sorted_rows]

    def cumulative(self, counts: np.ndarray) -> np.ndarray:
        weights = counts.take(self._person, axis=1)
        if self._weight is not None:
            weights *= self._weight
        passed = np.zeros((len(counts), len(self._person) + 1))
        np.cumsum(weights, axis=1, out=passed[:, 1:])
        return passed


class BinnedError:
    """How far predictions are off in each bin of the sample as it was observed."""

    def __init__(
        self, rows: Checked, people: GroupedPeople, members: np.ndarray, n_bins: int
    ) -> None:
        chosen = rows.take(members)
        bins = bin_of(chosen, n_bins, "quantile")
        order = np.argsort(bins, kind="stable")
        weight = np.ones(len(chosen)) if chosen.weight is None else chosen.weight
        self._person = people.of_row[members][order]
        self._excess = (weight * (chosen.score - chosen.positive))[order]
        self._weight = weight[order]
        self._score = chosen.score[order]
        self._together = _together(chosen.positive[order] - self._score, self._score, self._person)
        self._first = np.flatnonzero(np.diff(bins[order], prepend=-1))

    @np.errstate(invalid="ignore")  # nobody may count: NaN
    def __call__(self, counts: np.ndarray) -> np.ndarray:
        """Predicted minus observed risk [resamples, bins], so that the mean |.| is the error."""
        drawn = counts.take(self._person, axis=1)
        in_bins = np.add.reduceat(drawn * self._excess, self._first, axis=1)
        return len(self._first) * in_bins / (drawn @ self._weight)[:, None]

    def by_chance(self, rng: np.random.Generator, n_resamples: int) -> np.ndarray:
        """The same [resamples, bins] of outcomes drawn with the predicted risks: were they right.

        Resampling shows no noise in a bin whose few people all turned out alike. All rows of a
        person are drawn alike as often as their outcomes were seen to go together.
        """
        drawn = np.empty((n_resamples, len(self._first)))
        for i in range(n_resamples):
            luck = rng.random(len(self._score))
            if self._together:
                alike, one = rng.random((2, int(self._person.max()) + 1))[:, self._person]
                luck = np.where(alike < self._together, one, luck)
            excess = self._weight * (self._score - (luck < self._score))
            drawn[i] = np.add.reduceat(excess, self._first)
        return len(self._first) * drawn / max(self._weight.sum(), np.finfo(float).tiny)


def _together(left: np.ndarray, risk: np.ndarray, person: np.ndarray) -> float:
    """The correlation of what is left over of outcomes [n] within people, from 0 to 1."""
    code = np.unique(person, return_inverse=True)[1]
    spread = np.sqrt(risk * (1 - risk))
    shared, most = (np.sum(np.bincount(code, one) ** 2) - one @ one for one in (left, spread))
    return float(np.clip(shared / most, 0, 1)) if most > 1e-9 else 0.0
