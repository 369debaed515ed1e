"""A known prevalence and what it says of the untested, against plain recomputation."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq, linprog
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from dcem.estimation.evaluator import Evaluator
from dcem.estimation.folds import person_folds
from dcem.estimation.known_rates import meet
from dcem.estimation.nuisances import fit_nuisances
from dcem.estimation.outcomes import Unseen, tilted
from dcem.estimation.ranking import RankedScore
from dcem.metrics import auc
from dcem.table.labels import SelectiveLabels

RECORDED = Path(__file__).resolve().parents[2] / "results" / "known_rates.csv"
TOLD = ("the rate", "nothing")


def world(n=4000, ratios=(2.0, 0.5), seed=1, sensitivity=1.0):
    """Features, result, group, truth and risk; the untested differ by an odds ratio per group."""
    rng = np.random.default_rng(seed)
    X, code = rng.normal(size=(n, 2)), (rng.random(n) < 0.4).astype(int)
    testing, shown = expit(0.8 * X[:, 0] - 0.3 * code), expit(-1.2 + X[:, 0] + 0.5 * X[:, 1])
    tested = rng.random(n) < testing
    unseen = tilted(shown, np.array(ratios)[code])
    truth = (rng.random(n) < np.where(tested, shown, unseen)).astype(float)
    result = truth * (rng.random(n) < sensitivity)
    risk = testing * shown + (1 - testing) * unseen
    return X, np.where(tested, result, np.nan), np.array(["a", "b"])[code], truth, risk


def judged(X, result, group, **stated):
    tested = ~np.isnan(result)
    problem = SelectiveLabels.from_arrays(X, result, tested=tested, group=group, **stated)
    fold = person_folds(problem, 2, 0)
    models = fit_nuisances(
        problem, fold, learners=lambda classes, seed: {"linear": LogisticRegression()}
    )
    return Evaluator(problem, fold=fold, nuisances=models)


def test_it_is_the_estimator_of_robins_rotnitzky_and_scharfstein():
    X, result, group, *_ = world()
    judge = judged(X, result, group, prevalence=0.3)
    e, m = judge.nuisances.truncated_testing, judge.nuisances.outcome
    tested, y = ~np.isnan(result), np.nan_to_num(result)
    for one in "ab":  # tests of a group stand for as many as there are
        mine = group == one
        e = np.where(mine, e * (tested / e)[mine].sum() / mine.sum(), e)

    def plain(log_ratio):
        weight = np.exp(log_ratio * y)  # of the selection: exp(log_ratio y), normalised at x
        normal = np.exp(log_ratio) * m + 1 - m
        unseen = np.exp(log_ratio) * m / normal
        rest = (1 - tested) * unseen + tested * (1 / e - 1) * weight / normal * (y - unseen)
        return (tested * y + rest).mean()

    log_ratio = brentq(lambda one: plain(one) - 0.3, -5, 5)
    assert judge.tilts.log_ratio[0] == pytest.approx(log_ratio, abs=1e-6)
    assert judge.prevalence_of("dr", np.ones(len(y), bool)).value == pytest.approx(0.3)
    # its own standard error is 0: the rate is known
    assert judge.prevalence("dr").high == pytest.approx(0.3, abs=1e-3)


def test_influences_are_what_a_row_moves():
    rng = np.random.default_rng(0)
    n, rate = 400, 0.3
    risk, tested = expit(rng.normal(-1, 1, n)), rng.random(n) < 0.5
    y = np.where(tested, rng.random(n) < risk, 0.0)
    X = rng.normal(size=(n, 1))
    problem = SelectiveLabels.from_arrays(X, y, tested=tested, prevalence=f"{rate - 0.05}-.355")
    (stated,) = problem.known_prevalence
    unseen = Unseen.of(problem, risk, np.full(n, 0.5))
    found = unseen.known.statistic(0)
    plain = replace(unseen, tilt=1.0)
    for row in (0, 5, 77):
        ends = []
        for more in (1e-4, -1e-4):
            share = np.ones(n)
            share[row] += more
            ends.append(meet(plain, share / share.sum(), stated.value)[0])
        assert found.influence[row] == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-3)
    ends = [
        meet(plain, np.full(n, 1 / n), stated.value + s * stated.error / 10)[0] for s in (1, -1)
    ]
    assert found.influence[n] == pytest.approx(5 * (ends[0] - ends[1]), rel=0.01)


def test_odds_ratios_and_numbers_come_near_the_truth():
    X, result, group, truth, risk = world(n=20_000)
    rates = {name: float(truth[group == name].mean()) for name in "ab"}
    plain, judge = judged(X, result, group), judged(X, result, group, prevalence=rates)
    assert np.exp(judge.tilts.log_ratio) == pytest.approx([2.0, 0.5], rel=0.15)
    acted = risk >= 0.4
    benefit = float(np.mean(acted * (truth - (1 - truth) * 0.4 / 0.6)))
    for find, is_true in (
        (lambda j: j.prevalence("dr").value, truth.mean()),
        (lambda j: j.prevalence("ipw").value, truth.mean()),
        (lambda j: j.auc("dr", risk).value, auc(truth, risk)),
        (lambda j: j.auc("ipw", risk).value, auc(truth, risk)),
        (lambda j: j.net_benefit("dr", risk, 0.4).value, benefit),
    ):
        assert find(judge) == pytest.approx(is_true, abs=0.012)
    assert abs(plain.prevalence("dr", "a").value - rates["a"]) > 0.05
    # what is known of a group alone leaves the other as it was
    some = judged(X, result, group, prevalence={"a": rates["a"]})
    assert some.prevalence("dr", "b") == plain.prevalence("dr", "b")


def test_one_rate_for_all_gives_one_ratio_and_groups_keep_their_uncertainty():
    X, result, group, truth, risk = world(n=20_000, ratios=(2.0, 2.0))
    exact = judged(X, result, group, prevalence=float(truth.mean()))
    middle = truth.mean()
    unsure = judged(X, result, group, prevalence=f"{middle - 0.02}-{middle + 0.02}")
    assert np.exp(exact.tilts.log_ratio) == pytest.approx([2.0], rel=0.15)
    assert exact.prevalence("dr", "a").value == pytest.approx(truth[group == "a"].mean(), abs=0.02)
    for find in (lambda j: j.prevalence("dr", "a"), lambda j: j.auc("dr", risk)):
        narrow, wide = find(exact), find(unsure)
        assert wide.high - wide.low > narrow.high - narrow.low
    known = unsure.prevalence("dr")
    assert (known.low, known.high) == pytest.approx((middle - 0.02, middle + 0.02), abs=0.001)


def test_a_rate_that_features_explain_changes_nothing():
    X, result, group, _, risk = world(n=2000, ratios=(1.0, 1.0))
    plain = judged(X, result, group)
    found = plain.prevalence("dr").value
    told = judged(X, result, group, prevalence=found)
    assert told.tilts.log_ratio[0] == pytest.approx(0, abs=1e-8)
    assert told.auc("dr", risk).value == pytest.approx(plain.auc("dr", risk).value)


def test_with_a_test_that_errs():
    X, result, group, truth, risk = world(n=40_000, ratios=(2.0, 2.0), sensitivity=0.6)
    rates = {"test_sensitivity": 0.6, "prevalence": float(truth.mean())}
    judge = judged(X, result, group, **rates)
    assert np.exp(judge.tilts.log_ratio) == pytest.approx([2.0], rel=0.2)
    assert judge.auc("dr", risk).value == pytest.approx(auc(truth, risk), abs=0.015)
    unsure = judged(X, result, group, **rates | {"test_sensitivity": ".5-.7"})
    narrow, wide = (one.auc("dr", risk) for one in (judge, unsure))
    assert wide.high - wide.low > narrow.high - narrow.low
    assert unsure.prevalence("dr").high < truth.mean() + 0.001  # known, whatever the test does


def test_out_of_reach_nothing_is_solved():
    X, result, group, *_ = world()
    result = np.where(X[:, 0] < -0.8, np.nan, result)
    judge = judged(X, result, group, prevalence=0.3)
    assert judge.tilts is None
    assert "out of reach" in judge.unseen.known.reasons[0]


def test_people_out_of_reach_are_as_the_model_has_them_and_unsure():
    X, result, group, truth, _ = world(n=8000, ratios=(2.0, 2.0))
    rate = float(truth.mean())
    whole = judged(X, result, group, prevalence=rate)
    judge = judged(X, np.where(X[:, 0] < -1.4, np.nan, result), group, prevalence=rate)
    assert not judge.reach.within.all()
    assert whole.tilts.errors[0] == 0 < judge.tilts.errors[0] < 0.02
    found = judge.tilts.statistic(0).estimate(judge.person)
    assert found.low < np.log(2) < found.high
    assert "within reach" in judge.targets[2].assumption


def test_logit_shift():
    assert tilted(np.array([0.2]), 3.0) == pytest.approx(expit(logit(0.2) + np.log(3)))


def test_no_outcomes_of_the_same_sum_beat_the_adversary():
    rng = np.random.default_rng(3)
    n = 12
    low, score = rng.random(n) / 3, rng.random(n)
    high = low + rng.random(n) / 2
    middle, mine = (low + high) / 2, np.ones(n, bool)
    ranked = RankedScore(score, np.ones(n))
    for up in (True, False):
        best = ranked.adversary(low, high, mine, up, middle)
        assert best.sum() == pytest.approx(middle.sum())
        assert (best >= low - 1e-12).all()
        assert (best <= high + 1e-12).all()
        found = _area(score, best)
        programme = linprog(  # at a given sum the AUC is linear in the outcomes
            -score.argsort().argsort() if up else score.argsort().argsort(),
            A_eq=np.ones((1, n)),
            b_eq=[middle.sum()],
            bounds=np.column_stack([low, high]),
        )
        assert found == pytest.approx(_area(score, programme.x))


def _area(score, outcome):
    """All pairs, a row with itself included as half."""
    wins = (score[:, None] > score) + 0.5 * (score[:, None] == score)
    return outcome @ wins @ (1 - outcome) / (outcome.sum() * (1 - outcome).sum())


def test_the_record_holds():
    recorded = pd.read_csv(RECORDED).set_index(["world", "told"])
    assumed = [world for world in recorded.index.levels[0] if "ratio of" in world]
    right = recorded.loc[assumed].drop(["nothing", "a third too high"], level="told")
    assert len(right) == 12
    for name in ("ratio0", "ratio1", "prevalence", "auc", "calibration", "gap"):
        assert right[f"{name}_holds"].dropna().between(0.9, 1).all()
    wrong = recorded.xs("a third too high", level="told")
    assert (wrong["calibration_holds"] < 0.05).all()
    for one in ("one ratio of 2", "a ratio of 2, rare outcome"):
        told, not_told = (recorded.loc[one, told]["prevalence_error"] for told in TOLD)
        assert abs(told) < 0.2 * abs(not_told)
