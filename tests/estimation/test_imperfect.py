"""Numbers corrected for an imperfect test, against formulas written down by others."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dcem.estimation.evaluator import Evaluator
from dcem.estimation.folds import person_folds
from dcem.estimation.nuisances import fit_nuisances
from dcem.estimation.outcomes import behind
from dcem.metrics import auc
from dcem.table.labels import SelectiveLabels

RECORDED = Path(__file__).resolve().parents[2] / "results" / "wrong_tests.csv"
S, C = 0.6, 0.95
pytestmark = pytest.mark.filterwarnings("ignore:Everybody is tested")


def world(n=6000, sensitivity=(S, S), specificity=C, seed=0, all_tested=False):
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(n, 2)), (rng.random(n) < 0.4).astype(int)
    risk = expit(-1.2 + X[:, 0] + 0.5 * X[:, 1])
    y = (rng.random(n) < risk).astype(float)
    positive = np.where(y == 1, np.array(sensitivity)[group], 1 - specificity)
    result = (rng.random(n) < positive).astype(float)
    tested = rng.random(n) < (1 if all_tested else expit(X[:, 0] - 0.3 * group))
    return X, np.where(tested, result, np.nan), np.array(["a", "b"])[group], y, risk


def judged(X, result, group, **rates):
    tested = ~np.isnan(result)
    problem = SelectiveLabels.from_arrays(X, result, tested=tested, group=group, **rates)
    fold = person_folds(problem, 2, 0)
    models = fit_nuisances(
        problem, fold, learners=lambda classes, seed: {"linear": LogisticRegression()}
    )
    return Evaluator(problem, fold=fold, nuisances=models)


def test_all_tested_is_rogan_and_gladen():
    X, result, group, *_ = world(all_tested=True)
    n = len(result)
    error = 0.03
    low, high = S - 1.959964 * error, S + 1.959964 * error
    judge = judged(X, result, group, test_sensitivity=f"{low}-{high}", test_specificity=C)
    s = judge.problem.imperfect_test.rates[0, 0]
    seen = result.mean()
    prevalence = (seen + C - 1) / (s + C - 1)
    variance = (seen * (1 - seen) / n + (prevalence * error) ** 2) / (s + C - 1) ** 2
    found = judge.prevalence_of("tested", np.ones(n, bool))
    assert found.value == pytest.approx(prevalence, abs=1e-12)
    assert found.standard_error(judge.person) == pytest.approx(np.sqrt(variance), rel=0.01)


def test_prevalence_auc_and_rates_when_acting_come_near_the_truth():
    X, result, group, y, risk = world(n=40_000, sensitivity=(0.5, 0.8))
    plain = judged(X, result, group)
    judge = judged(X, result, group, test_sensitivity="a=.5,b=.8", test_specificity=C)
    assert judge.prevalence("dr").value == pytest.approx(y.mean(), abs=0.01)
    assert abs(plain.prevalence("dr").value - y.mean()) > 0.04
    assert judge.auc("dr", risk).value == pytest.approx(auc(y, risk), abs=0.012)
    acted = risk > 0.4
    caught = judge.when_acting("dr", acted)["true_positive_rate"]["a"].value
    mine = group == "a"
    assert caught == pytest.approx(acted[mine & (y == 1)].mean(), abs=0.03)
    # equal prevalence; a test that misses more in a makes it look rarer there
    gap = judge.prevalence("dr", "a").minus(judge.prevalence("dr", "b"))
    seen = plain.prevalence("dr", "a").minus(plain.prevalence("dr", "b"))
    assert gap.low < 0 < gap.high
    assert seen.high < -0.03


def test_auc_of_common_rates_has_a_closed_form():
    X, result, group, _, risk = world(all_tested=True)
    found = judged(X, result, group, test_sensitivity=S, test_specificity=C).auc("tested", risk)
    seen = result.mean()
    p = (seen + C - 1) / (S + C - 1)
    scale = seen * (1 - seen) / ((S + C - 1) * p * (1 - p))
    assert found.value == pytest.approx(0.5 + scale * (auc(result, risk) - 0.5), abs=1e-3)


def test_rates_of_one_change_nothing():
    X, result, group, _, risk = world(n=800)
    plain = judged(X, result, group)
    told = judged(X, result, group, test_sensitivity=1.0, test_specificity="a=1,b=1")
    for target in ("tested", "ipw", "dr"):
        assert told.auc(target, risk) == plain.auc(target, risk)
        assert told.prevalence(target) == plain.prevalence(target)


def test_below_nobody_is_cut_off_with_a_valid_interval():
    X, _, group, *_ = world(n=600)
    rng = np.random.default_rng(1)
    result = (rng.random(600) < 0.04).astype(float)  # false alarms, by chance fewer than expected
    found = judged(X, result, group, test_sensitivity=0.8, test_specificity=0.95).prevalence("dr")
    assert found.value == found.low == 0
    assert 0 < found.high < 0.05


def test_uncertain_rates_widen_intervals():
    X, result, group, _, risk = world()
    exact = judged(X, result, group, test_sensitivity=S, test_specificity=C)
    unsure = judged(X, result, group, test_sensitivity=".5-.7", test_specificity=C)
    for find in (lambda j: j.prevalence("dr"), lambda j: j.auc("dr", risk, "a")):
        narrow, wide = (find(judge) for judge in (exact, unsure))
        assert wide.high - wide.low > narrow.high - narrow.low
    # a rate that is wrong is wrong for both groups: their difference knows it
    both = [unsure.prevalence_of("dr", unsure.rows_of(g)) for g in "ab"]
    alone = [one.standard_error(unsure.person) for one in both]
    assert (both[0] - both[1]).standard_error(unsure.person) < np.hypot(*alone)


def test_the_record_holds():
    recorded = pd.read_csv(RECORDED).set_index(["world", "told"])
    right = recorded[recorded.index.isin(["the rates", "an interval"], level="told")]
    assert len(right) == 4
    for name in ("prevalence", "auc", "calibration", "gap"):
        assert right[f"{name}_holds"].between(0.9, 0.99).all()
    assert (right["false_difference"] < 0.1).all()
    unequal = recorded.loc["misses more in one group"]
    assert unequal.loc["nothing", "false_difference"] > 0.9


@pytest.mark.parametrize("place", [0, 1])
def test_the_doubt_about_a_rate_is_nobodys_who_has_a_row(place):
    X, result, group, *_ = world(n=20)
    problem = SelectiveLabels.from_arrays(X, result, group=group)
    assert behind(problem, place).tolist() == [0.0] * (20 + place) + [1.0]
