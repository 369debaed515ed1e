"""Gini, KS and kickout against scipy, scikit-learn and the published formula."""

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.metrics import roc_auc_score

from dcem import DataWarning
from dcem.metrics import gini, kickout, ks
from dcem.table.messages import InputError


@pytest.mark.parametrize("decimals", [1, 8])
def test_they_are_those_of_scipy_and_scikit_learn(decimals):
    rng = np.random.default_rng(0)
    y = rng.random(300) < 0.3
    score = np.round(rng.normal(size=300) + y, decimals)
    assert ks(y, score) == pytest.approx(ks_2samp(score[~y], score[y], "greater").statistic)
    assert gini(y, score) == pytest.approx(2 * roc_auc_score(y, score) - 1)
    twice = np.repeat(np.arange(300), 1 + (np.arange(300) % 3 == 0))
    weight = 1 + (np.arange(300) % 3 == 0)
    assert ks(y, score, weight=weight) == pytest.approx(ks(y[twice], score[twice]))


def test_kickout_is_the_published_formula():
    rng = np.random.default_rng(1)
    y = (rng.random(400) < 0.3).astype(float)
    first, second = rng.random((2, 400)) < 0.5
    y[~first] = np.nan  # declined: nobody knows
    bad, good = first & (y == 1), first & (y == 0)
    share = bad.sum() / first.sum()
    out = ~second
    expected = ((bad & out).sum() / share - (good & out).sum() / (1 - share)) / (bad.sum() / share)
    assert kickout(y, first, second) == pytest.approx(expected)
    assert kickout([1, 0], [1, 1], [0, 1]) == 1
    assert kickout([1, 0], [1, 1], [1, 0]) == -1
    assert kickout([1, 0, 1, 0], [1, 1, 1, 1], [0, 0, 1, 1]) == 0


def test_what_has_no_answer():
    with pytest.warns(DataWarning, match="KS is not estimable"):
        assert np.isnan(ks([0, 0], [0.1, 0.2]))
    with pytest.warns(DataWarning, match="lacks a class"):
        assert np.isnan(kickout([0, 0], [1, 1], [0, 1]))
    with pytest.raises(InputError, match="0 or 1 for everybody in `first`"):
        kickout([np.nan, 1], [1, 1], [0, 1])
    with pytest.raises(InputError, match="0 or 1, or boolean, for everybody"):
        kickout([0, 1], [1, np.nan], [0, 1])
    with pytest.raises(InputError, match="same people"):
        kickout([0, 1], [1, 1, 1], [0, 1])
