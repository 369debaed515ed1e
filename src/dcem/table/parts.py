"""Random parts of a table of people; a person's rows stay in one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dcem.table.messages import InputError


def parts(person: np.ndarray, shares: Sequence[float], random_state: Any) -> Iterator[np.ndarray]:
    """Masks [n] of parts that hold these shares of the rows; `person` [n] says whose each is."""
    shares = [float(share) for share in shares]
    if not shares or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
        raise InputError(
            f"Shares must be positive and sum to 1; {tuple(shares)} sum to {sum(shares):g}."
        )
    sizes = np.bincount(person)
    order = np.random.default_rng(random_state).permutation(len(sizes))
    # A person goes where the middle of their rows falls, all rows laid in random order.
    middle = np.cumsum(sizes[order]) - sizes[order] / 2
    inner = np.searchsorted(middle, np.cumsum(shares[:-1]) * len(person))
    for start, stop in pairwise([0, *inner, len(sizes)]):
        if start >= stop:
            raise InputError(
                f"Shares {tuple(shares)} leave a part empty: there are only {len(sizes)} "
                f"{'rows' if len(sizes) == len(person) else 'people'} to share out. Use larger "
                "shares."
            )
        chosen = np.zeros(len(sizes), bool)
        chosen[order[start:stop]] = True
        yield chosen[person]
