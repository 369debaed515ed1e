"""Who counts how often: people drawn with replacement, and groups dealt out again.

Rows of one person are not independent, so the unit drawn is the person. People are drawn within
their group: the size of a group is a fact of the study, not something that could have come out
differently. A resample is never written out; it is a count per person, which serves as a weight.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dcem.metrics._inputs import Groups, Rows, split_by_code
from dcem.metrics._staircase import Ranked, area_between, roc_treads


class People:
    """The people behind the rows, numbered so that those of one group are neighbours."""

    def __init__(self, rows: Rows, groups: Groups, person: np.ndarray | None) -> None:
        n_groups = len(groups.levels)
        if person is None:
            person = np.arange(len(rows))
        first_row = np.unique(person, return_index=True)[1]
        group = groups.code[first_row]  # [people]
        elsewhere = np.bincount(person, groups.code != group[person]) > 0
        # people seen in several groups are a stratum of their own: with all their rows or without
        stratum = np.where(elsewhere, n_groups, group)
        order = np.argsort(stratum, kind="stable")
        number = np.empty_like(order)
        number[order] = np.arange(len(order))
        self.of_row = number[person]  # [n] the person of each row
        self.group = group[order]  # [people]
        self.in_several_groups = int(elsewhere.sum())
        self.sizes = np.bincount(stratum, minlength=n_groups + 1)
        self.ever_positive = np.bincount(self.of_row, rows.positive, minlength=len(order)) > 0

    def __len__(self) -> int:
        return len(self.group)

    def resample(self, rng: np.random.Generator, n_replicates: int) -> np.ndarray:
        """How often each person was drawn: [replicates, people]."""
        counts = []
        for size in self.sizes[self.sizes > 0]:
            drawn = rng.integers(size, size=(n_replicates, size))
            drawn += size * np.arange(n_replicates)[:, None]
            flat = np.bincount(drawn.ravel(), minlength=n_replicates * size)
            counts.append(flat.reshape(n_replicates, size))
        return np.concatenate(counts, axis=1).astype(np.float64)

    def deal_groups(self, rng: np.random.Generator) -> np.ndarray:
        """The groups dealt out anew, among the ever and the never positive separately."""
        dealt = np.empty_like(self.group)
        for people in (self.ever_positive, ~self.ever_positive):
            dealt[people] = rng.permutation(self.group[people])
        return dealt


def permuted_gaps(
    rows: Rows, groups: Groups, people: People, rng: np.random.Generator, n_permutations: int
) -> np.ndarray:
    """The largest ROC gap after dealing out the groups at random: [permutations].

    What the gap would look like if the score knew nothing of the group. Groups are exchanged among
    people of the same class only, so that each group keeps its number of positives and negatives
    (with several rows per person: about), and with them the noise of its curve.
    """
    n_groups = len(groups.levels)
    sides = [_sorted_side(rows, people, chosen) for chosen in (rows.positive, ~rows.positive)]
    gaps = np.empty(n_permutations)
    for i in range(n_permutations):
        dealt = people.deal_groups(rng)
        positives, negatives = (_split_side(side, dealt, n_groups) for side in sides)
        curves = [roc_treads(*cell) for cell in zip(positives, negatives, strict=True)]
        gaps[i] = np.max([area_between(curves[a], curves[b]) for a, b in groups.pairs()])
    return gaps


_Side = tuple[np.ndarray, np.ndarray, np.ndarray | None]  # sorted key, person and weight


def _sorted_side(rows: Rows, people: People, chosen: np.ndarray) -> _Side:
    members = rows.take(chosen)
    order = np.argsort(-members.score)
    weight = None if members.weight is None else members.weight[order]
    return -members.score[order], people.of_row[chosen][order], weight


def _split_side(side: _Side, dealt: np.ndarray, n_groups: int) -> Iterator[Ranked]:
    key, person, weight = side
    for members in split_by_code(dealt[person], n_groups):
        passed = (
            np.arange(len(members) + 1, dtype=np.float64)
            if weight is None
            else np.concatenate([[0.0], np.cumsum(weight[members])])
        )
        yield Ranked(key[members], passed)
