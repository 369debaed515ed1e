"""Who counts how often: people drawn with replacement.

Rows of one person are not independent, so the unit drawn is the person. People are drawn within
their group: the size of a group is a fact of the study, not something that could have come out
differently. A resample is never written out; it is a count per person, which serves as a weight.
"""

from __future__ import annotations

import numpy as np


class People:
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

    def resample(self, rng: np.random.Generator, n_replicates: int) -> np.ndarray:
        """How often each person was drawn: [replicates, people]."""
        counts = []
        for size in self.sizes[self.sizes > 0]:
            drawn = rng.integers(size, size=(n_replicates, size))
            drawn += size * np.arange(n_replicates)[:, None]
            flat = np.bincount(drawn.ravel(), minlength=n_replicates * size)
            counts.append(flat.reshape(n_replicates, size))
        return np.concatenate(counts, axis=1).astype(np.float64)
