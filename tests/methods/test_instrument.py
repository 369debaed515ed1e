"""Learning from how deciders differ."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from scipy.special import expit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dcem import methods
from dcem.estimation.instrument import Instrument
from dcem.methods.instrument import InstrumentClassifier, found_by_more_tests
from dcem.saving import load_model
from dcem.table.messages import DataWarning, InputError


@pytest.fixture(scope="module")
def world():
    """Features, label (NaN if untested), decider and the risk at the features.

    Deciders see a cause of the outcome that the table lacks, and heed it where X[:, 1] < 0.
    """
    rng = np.random.default_rng(0)
    n = 2400
    X, seen = rng.normal(size=(n, 2)), rng.normal(size=n)
    who = rng.integers(4, size=n)
    y = rng.random(n) < expit(-0.5 + X[:, 0] + 2 * seen)
    tests = 3 * seen * (X[:, 1] < 0) + rng.logistic(size=n) + np.array([-2, -1, 1, 3])[who]
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    risk = expit((-0.5 + X[:, 0])[:, None] + 2 * nodes) @ weights / weights.sum()
    return X, np.where(tests > 0, y, np.nan), who.astype(str), risk


@pytest.mark.parametrize("learner", ["linear", "forest"])
def test_it_is_not_misled_by_what_deciders_see(world, learner, tmp_path):
    X, y, who, risk = world
    told = methods.make("instrument", learner=learner, random_state=0).fit(X, y, decider=who)
    plain = methods.make("tested-only", learner=learner, random_state=0).fit(X, y)
    off = [np.abs(one.predict_proba(X)[:, 1] - risk).mean() for one in (told, plain)]
    assert off[0] < 0.8 * off[1]
    assert ((told.bounds_[:, 0] <= told.risk_) & (told.risk_ <= told.bounds_[:, 1])).all()
    assert "4 levels" in told.deciders_
    told.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert np.array_equal(again.predict_proba(X), told.predict_proba(X))


def test_partial_identification_takes_the_middle(world):
    X, y, who, _ = world
    made = InstrumentClassifier(identification="partial", learner="linear", random_state=0)
    made.fit(X, y, decider=who)
    np.testing.assert_allclose(made.risk_, made.bounds_.mean(axis=1))
    with pytest.raises(InputError, match="partial"):
        made.set_params(identification="both").fit(X, y, decider=who)


def test_one_more_test_is_the_ratio_of_covariances():
    chance = np.array([[0.2, 0.3, 0.5]])
    found, cleared = np.array([[0.05, 0.1, 0.3]]), np.array([[0.15, 0.4, 0.6]])
    none = np.zeros(1)
    made = Instrument(("a", "b", "c"), np.array([-1]), chance, found, cleared, none, none)
    rng = np.random.default_rng(0)
    who = rng.choice(3, size=400_000, p=chance[0])
    u = rng.random(len(who))
    positive = u < found[0][who]
    tested = u < (found + cleared)[0][who]
    rate = (found + cleared)[0][who]
    ratio = np.cov(positive, rate)[0, 1] / np.cov(tested, rate)[0, 1]
    assert found_by_more_tests(made, np.zeros(1))[0] == pytest.approx(ratio, rel=0.05)


def test_deciders_go_through_a_pipeline_and_are_asked_for(world):
    X, y, who, _ = world
    X, y, who = X[:1500], y[:1500], who[:1500]
    made = InstrumentClassifier(learner="linear", random_state=0)
    with pytest.warns(DataWarning, match="decider"):
        alone = sklearn.base.clone(made).fit(X, y)
    assert alone.deciders_ == ""
    with sklearn.config_context(enable_metadata_routing=True):
        piped = make_pipeline(StandardScaler(), made).fit(X, y, decider=who)
    assert "levels" in piped[-1].deciders_
    with pytest.warns(DataWarning, match="too few"):
        few = sklearn.base.clone(made).fit(X[:60], y[:60], decider=who[:60])
    assert few.deciders_ == ""
