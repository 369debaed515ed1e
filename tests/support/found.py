"""Tables that know only who was found positive."""

import numpy as np
from scipy.special import expit

from dcem.table.labels import SelectiveLabels

NAMES = np.array(["<65", "b", "c", "d", "e"])


def found_table(n=4_000, rates=(0.6, 0.2), seed=0, intercept=-1.5, bent=0.0, shares=None, **more):
    """A problem of found positives, and everybody's truth.

    `bent`: by how much a feature counts more in the second group than in the others.
    """
    rng = np.random.default_rng(seed)
    sizes = np.arange(2 * len(rates), len(rates), -1) if shares is None else np.array(shares)
    group = rng.choice(len(rates), n, p=sizes / sizes.sum())  # the first is the largest
    X = rng.normal(size=(n, 3))
    X[:, 0] += 0.5 * group
    y = rng.random(n) < expit(intercept + X[:, 0] + (0.6 + bent * (group == 1)) * X[:, 1])
    found = y & (rng.random(n) < np.array(rates)[group])
    more = {"positives_only": True} | more
    return SelectiveLabels.from_arrays(X, found * 1, group=NAMES[group], **more), y
