"""Ends of risk intervals and sets of outcomes, learnt from a table whose truth is known."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from dcem.estimation import conformal
from dcem.estimation.conformal import measure_coverage
from dcem.estimation.outcomes import Unseen
from dcem.estimation.risk_limits import LearntEnds, learn_ends
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError

GAMMA = 4.0


def people(n, seed, gamma=GAMMA):
    """Features, tested, outcome, risk; the untested's odds are gamma times the tested's."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    e, z = expit(-0.3 + 0.8 * X[:, 0] - 0.5 * X[:, 1]), -1 + 0.8 * X[:, 0] + 0.6 * X[:, 2]
    m, u = expit(z), expit(z + np.log(gamma))
    tested = rng.random(n) < e
    y = (rng.random(n) < np.where(tested, m, u)).astype(float)
    return X, tested, y, e * m + (1 - e) * u


@pytest.fixture(scope="module")
def learnt():
    X, tested, y, _ = people(2000, 0)
    X[::50, 1] = np.nan
    return learn_ends(SelectiveLabels.from_arrays(X, y * tested, tested=tested))


def test_intervals_hold_the_risk_at_the_stated_strength_and_miss_it_below(learnt):
    ends, _ = learnt
    X, _, _, risk = people(4000, 1)
    low, high = ends.interval(X, GAMMA)
    assert ((low <= risk) & (risk <= high)).mean() > 0.97
    assert (risk > (low + high) / 2).mean() > 0.6  # the truth is at the upper end
    narrow = ends.interval(X, 1.0)
    assert (risk > narrow[1]).mean() > 0.3


def test_intervals_nest_and_depend_on_the_strength_without_steps(learnt):
    ends, _ = learnt
    X = people(500, 2)[0]
    found = [np.stack(ends.interval(X, gamma)) for gamma in (1.0, 1.5, 1.5001, 2.0, 6.0, 10.0)]
    for narrow, wide in pairwise(found):
        assert (wide[0] <= narrow[0] + 1e-4).all()
        assert (wide[1] >= narrow[1] - 1e-4).all()
    assert np.abs(found[1] - found[2]).max() < 1e-3


def test_sets_hold_the_outcome_of_each_kind(learnt):
    ends, seen = learnt
    X, tested, y, _ = people(8000, 3)
    for gamma, among in ((GAMMA, np.ones(len(y), bool)), (None, tested)):
        found = conformal.covered(y, ends.sets(X, gamma))
        for label in (0, 1):
            assert found[among & (y == label)].mean() > 0.86
    either = [(ends.sets(X, gamma) == 3).mean() for gamma in (1.0, 2.0, 5.0)]
    assert either == sorted(either)
    assert len(seen.predicted) == 2000


def test_as_saved(learnt):
    ends, _ = learnt
    described, arrays = ends.to_plain()
    again = LearntEnds.from_plain(described, arrays, 3)
    X = people(200, 4)[0]
    np.testing.assert_array_equal(again.interval(X, 1.7), ends.interval(X, 1.7))
    np.testing.assert_array_equal(again.sets(X, 1.7), ends.sets(X, 1.7))
    with pytest.raises(ValueError, match="inconsistent"):
        LearntEnds.from_plain(described, arrays | {"coefficients": np.zeros((2, 2))}, 3)


def test_a_cut_by_hand():
    """Ten people who count alike: nine tenths of eleven needs all of them; three more, less."""
    strange = np.linspace(0.05, 0.5, 10)
    one = np.ones(10)
    assert conformal.cut(strange, one, one) == pytest.approx(0.5)  # 10 / 11 are enough
    assert conformal.cut(strange, one, one, level=0.5) == pytest.approx(0.3)  # 6 / 11
    assert conformal.cut(strange, one, one, level=0.95) == 1.0
    assert conformal.cut(strange[:0], one[:0], one[:0]) == 1.0


def test_weights_of_the_unmeasured():
    e, m = np.array([0.5]), np.array([0.2])
    low, high = conformal.weight_limits(1, e, m, 1.0)
    assert (low[0], high[0]) == pytest.approx((2.0, 2.0))  # 1 / e
    low, high = conformal.weight_limits(1, e, m, 4.0)
    assert high[0] == pytest.approx((0.5 + 0.5 * 0.5 / 0.2) / 0.5)  # odds 1/4 become 1
    low, high = conformal.weight_limits(0, e, m, 4.0)
    assert low[0] == pytest.approx((0.5 + 0.5 * 0.5 / 0.8) / 0.5)


def test_tables_that_cannot_have_bounds():
    X, tested, y, _ = people(300, 5)
    with pytest.warns(match="Everybody is tested"):
        everybody = SelectiveLabels.from_arrays(X, y, tested=np.ones(300, bool))
    with pytest.raises(InputError, match="untested people"):
        learn_ends(everybody)
    y_few = np.where(np.cumsum(y * tested) <= 5, y * tested, 0)
    with pytest.raises(InputError, match="positives"):
        learn_ends(SelectiveLabels.from_arrays(X, y_few, tested=tested))


def test_stated_rates_move_the_ends_to_the_truth_and_their_doubt_widens_them():
    X, tested, y, risk = people(1200, 6)
    luck = np.random.default_rng(7).random(len(y))
    result = np.where(y == 1, luck < 0.7, luck > 0.95) * tested
    rate = people(100_000, 8)[2].mean()
    widths = []
    for prevalence in (rate, f"{rate - 0.05:.3f}-{rate + 0.05:.3f}"):
        problem = SelectiveLabels.from_arrays(
            X,
            result,
            tested=tested,
            prevalence=prevalence,
            test_sensitivity=0.7,
            test_specificity=0.95,
        )
        ends, seen = learn_ends(problem)
        low, high = ends.interval(X, 1.0)
        assert ((low <= risk) & (risk <= high)).mean() > 0.95
        widths.append((high - low).mean())
    assert widths[1] > 1.02 * widths[0]
    assert seen.predicted.mean() == pytest.approx(rate, abs=0.03)  # of results alone: under half
    covered = conformal.covered(y, ends.sets(X, 1.0))
    assert covered[y == 1].mean() == pytest.approx(0.9, abs=0.1)
    measured = measure_coverage(seen)[0]
    assert measured.positives.value == pytest.approx(0.9, abs=0.1)
    assert measured.everybody.value == pytest.approx(0.9, abs=0.05)
    described, arrays = ends.to_plain()
    again = LearntEnds.from_plain(described, arrays, 3)
    np.testing.assert_array_equal(again.interval(X, 1.5), ends.interval(X, 1.5))


def test_how_few_sets_of_a_group_miss_does_not_follow_from_the_others():
    rng = np.random.default_rng(0)
    group = np.where(rng.random(600) < 0.15, "b", "a")
    x = rng.normal(size=600)
    risk, half = expit(2 * x - 0.5), np.full(600, 0.5)
    y = np.where(rng.random(600) < 0.5, rng.random(600) < risk, np.nan)
    problem = SelectiveLabels.from_arrays(x[:, None], y, group=group)
    unseen = Unseen.of(problem, risk, half)
    seen = conformal.OutOfPart(problem, np.arange(600) % 3, half, risk, risk, unseen)
    found = {one.group: one.tested for one in measure_coverage(seen)}
    assert found["everybody"].estimable
    assert "withheld" in found["a"].reason
    assert "withheld" in found["b"].reason


def test_probabilities_of_a_design_have_no_floor(monkeypatch):
    X, tested, y, _ = people(400, 6)
    chance = np.where(tested, 1e-4, 0.9)
    problem = SelectiveLabels.from_arrays(X, y * tested, tested=tested, testing_probability=chance)
    asked, of = [], Unseen.of
    monkeypatch.setattr(Unseen, "of", lambda *given: asked.append(given[2]) or of(*given))
    learn_ends(problem)
    np.testing.assert_array_equal(asked[0], chance)
