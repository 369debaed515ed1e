"""The default: what its parts learn, how they are weighed, and whether scores are risks."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit, softmax
from scipy.stats import rankdata

import dcem
from dcem.methods import ensemble_parts, make
from dcem.methods.em_networks import mstep_rows
from dcem.methods.ensemble import (
    FEWEST_FOR_SLOPE,
    LEAST_SLOPE,
    STEEPEST,
    _errors_above_best,
    _intercept,
    _noise,
    _recalibration,
    _recent,
    _shares,
    _shrinkage,
    _stretched,
)
from dcem.methods.minibatches import _half_tested, first_guess, loss_of_tested, mstep_slope
from dcem.methods.training_table import TrainingTable
from dcem.table.labels import SelectiveLabels

SMALL = {"steps": 120, "random_state": 0}


def world(n=1500, seed=0, risk=lambda X: X[:, 0] - 1, chance=lambda X: X[:, 1] - 0.5):
    """People whose tests depend on the second feature, and their truth."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    truth = (rng.random(n) < expit(risk(X))).astype(float)
    tested = rng.random(n) < expit(chance(X))
    y = np.where(tested, truth, np.nan)
    return SelectiveLabels.from_arrays(X, y, group=np.where(X[:, 2] > 0, "a", "b")), truth


@pytest.fixture(scope="module")
def fitted():
    problem, truth = world()
    return problem, truth, make("ensemble", **SMALL).fit_problem(problem)


# -- the networks -------------------------------------------------------------------------------


def test_slope_and_loss_of_the_m_step_are_those_of_dcem():
    rng = np.random.default_rng(0)
    z, u = rng.normal(size=(2, 40)) * 3
    y = rng.integers(0, 2, 40).astype(float)
    q = np.where(rng.random(40) < 0.5, y, rng.random(40) * (1 - y) + y)
    margin = torch.tensor(z[None], requires_grad=True)
    given = [torch.tensor(value[None]) for value in (q, y, u)]
    mstep_rows(margin, *given).sum().backward()
    ours = mstep_slope(z, q, y, -np.logaddexp(0, u))
    np.testing.assert_allclose(ours, margin.grad[0].numpy(), atol=1e-12)
    labels = torch.tensor(y[None])
    theirs = mstep_rows(torch.tensor(z[None]), labels, labels, given[2]).mean()
    assert loss_of_tested(z, y, u, np.ones(40)) == pytest.approx(float(theirs))


def test_batches_count_as_the_table_does():
    tested = np.arange(1000) < 100
    inside = [np.arange(1000) % 4 == k for k in range(4)]
    batches, n_tested, factors = _half_tested(inside, tested, 200, [0, 1, 2, 3])
    rows = next(batches)
    assert n_tested == 100
    assert tested[rows[:, :100]].all()
    assert not tested[rows[:, 100:]].any()
    assert not any(inside[k][rows[k]].any() for k in range(4))
    assert factors.mean() == pytest.approx(1)
    assert factors[:100].sum() / factors.sum() == pytest.approx(tested.mean())


# -- weights and recalibration ------------------------------------------------------------------


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize(
    ("rate", "trend", "told"),
    [(0.03, 1.0, True), (0.03, 0.0, False), (0.03, -1.0, False), (0.3, 1.0, False)],
)
def test_networks_begin_at_even_odds_unless_tests_speak_clearly_against_it(rate, trend, told, flip):
    rng = np.random.default_rng(0)
    u = rng.normal(size=4000)  # log-odds of a test
    y = (rng.random(4000) < expit(np.log(rate / (1 - rate)) + trend * u)).astype(float)
    tested = (rng.random(4000) < expit(u)).astype(float)
    y = np.where(tested == 1, 1 - y if flip else y, 0)
    table = TrainingTable(u[:, None], y, tested, np.zeros(4000), np.ones(4000))
    share = y[tested == 1].mean()
    assert first_guess(table, u) == pytest.approx(np.log(share / (1 - share)) if told else 0)


def test_the_rows_of_one_person_are_one_person_where_networks_begin():
    u = np.repeat([2.0, 0.0, -2.0], [40, 400, 40])
    y = np.zeros(480)
    y[:20] = 1  # all of them of the first person
    table = TrainingTable(u[:, None], y, np.ones(480), np.zeros(480), np.ones(480))
    assert first_guess(table, u) < -2
    assert first_guess(replace(table, person=np.repeat(np.arange(12), 40)), u) == 0


def test_networks_of_a_rare_outcome_that_high_risks_are_tested_for_rank_the_others():
    problem, truth = world(4000, risk=lambda X: 1.5 * X[:, 1] - 4, chance=lambda X: 4 * X[:, 1] - 2)
    network = make("ensemble", parts=("network",), steps=300, random_state=0).fit_problem(problem)
    score = network.predict_proba(problem.X)[:, 1]
    assert dcem.metrics.auc(truth, score) > 0.7  # .62 from even odds


def test_networks_count_more_than_tests_can_tell():
    least = 0.3 * np.array([1, 0, 0])
    level, behind, far = (_shares(np.array([z, 0, 1]), least) for z in (0.0, 2.0, 40.0))
    np.testing.assert_allclose(level, softmax([0, 0, -1]))  # .42: tests give it more than .3
    given = 0.3 * np.exp(-0.5)
    np.testing.assert_allclose(behind, [given, *(1 - given) * softmax([0, -1])])
    np.testing.assert_allclose(far, [0, *softmax([0, -1])], atol=1e-4)
    np.testing.assert_allclose(_shares(np.array([0.0, 2.0]), np.zeros(2)), softmax([0, -2]))
    assert _shares(np.zeros(1), np.array([0.3])) == 1  # alone


@pytest.mark.parametrize("positives", [60, 500])
def test_the_least_share_of_networks_is_the_same_however_few_tests_are_positive(positives):
    n = 1000
    y = (np.arange(n) < positives).astype(float)
    y[-1] = np.nan
    z = np.random.default_rng(0).normal(size=n)
    problem = SelectiveLabels.from_arrays(z[:, None], y)
    fitted = ensemble_parts.Parts(
        {}, dict.fromkeys(ensemble_parts.PARTS, z), np.ones(n), None, z[:0], {}
    )
    made = make("ensemble")  # of five parts that say the same
    made.calibrated_ = False
    made._weigh(problem, fitted, problem.tested, honest=True)
    assert list(made.weights_.values()) == pytest.approx([0.3] + [0.7 / 4] * 4)


def test_a_part_that_cannot_learn_the_world_hardly_counts():
    problem, _ = world(risk=lambda X: 3 * np.sign(X[:, 0] * X[:, 1]))
    weights = make("ensemble", parts=("boost", "linear"), **SMALL).fit_problem(problem).weights_
    assert weights["linear"] < 0.01
    assert sum(weights.values()) == pytest.approx(1)


def test_standard_errors_above_the_best():
    rng = np.random.default_rng(0)
    best = rng.random(400)
    losses = np.stack([best + rng.normal(0.1, 1, 400), best])
    rows = _errors_above_best(losses, np.ones(400), np.arange(400))
    difference = losses[0] - losses[1]
    assert rows[1] == 0
    assert rows[0] == pytest.approx(difference.mean() / (difference.std() / 20))
    twice = _errors_above_best(np.repeat(losses, 2, axis=1), np.ones(800), np.arange(800) // 2)
    assert twice[0] == pytest.approx(rows[0])  # a person seen twice is one person


def test_recalibration_finds_its_line_however_far_it_is():
    """Where the log-odds of a rare outcome vary little, intercept and slope have to go together."""
    rng = np.random.default_rng(0)
    for middle, spread, slope in ((-3.3, 0.5, 4.0), (-6.6, 0.9, 3.0), (-2.4, 0.1, 0.6)):
        z = rng.normal(middle, spread, 20_000)
        y = (rng.random(len(z)) < expit(middle + 2 + slope * (z - middle))).astype(float)
        intercept, found = _recalibration(z, y, np.ones(len(z)))
        residual = y - expit(intercept + found * z)
        pull = (found - 1) / len(z)  # of one more test of each kind
        assert residual.mean() == pytest.approx(0, abs=1e-4)
        assert (residual * z).mean() == pytest.approx(pull, abs=1e-4)


def test_recalibration_recovers_a_line():
    rng = np.random.default_rng(0)
    z = rng.normal(size=100_000)
    y = (rng.random(100_000) < expit(-0.5 + 0.7 * z)).astype(float)
    assert _recalibration(z, y, np.ones(len(z))) == pytest.approx((-0.5, 0.7), abs=0.03)


@pytest.mark.parametrize("z", [np.zeros(40), np.linspace(-3, 3, 40), np.linspace(3, -3, 40)])
def test_recalibration_keeps_ranks_whatever_comes(z):
    y = (np.arange(40) >= 20).astype(float)  # separated, not informative, or the wrong way round
    intercept, slope = _recalibration(z, y, np.ones(40))
    assert np.isfinite(intercept)
    assert LEAST_SLOPE <= slope < 100
    if slope == LEAST_SLOPE:
        assert expit(intercept + slope * z).mean() == pytest.approx(y.mean())


def test_what_one_model_teaches_is_turned_into_a_line_for_the_mean_of_all():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=40_000)
    models = mean + rng.normal(size=(4, 40_000))
    models += mean - models.mean(axis=0)  # four noisy models around their mean
    y = (rng.random(40_000) < expit(0.8 * mean - 1)).astype(float)
    weight = np.ones(40_000)
    one = np.array(_recalibration(models[0], y, weight))
    assert one[1] < 0.55
    line = _stretched(one, models[0].mean(), _noise(models))
    assert line == pytest.approx(_recalibration(mean, y, weight), abs=0.07)
    assert _noise(np.ones((4, 9))) == _noise(models[:1]) == 1


def by_hand(z, y, weight):
    """Recalibration: the weighted log loss, and a pull to slope 1 as of one test of each kind."""
    share = weight / weight.sum()

    def loss(line):
        at = line[0] + line[1] * z
        pull = 1e-6 * line[0] ** 2 + (line[1] - 1) ** 2 / len(z)
        return share @ (np.logaddexp(0, at) - y * at) + pull / 2

    return minimize(loss, [0.0, 1.0], tol=1e-12).x


def left_by_hand(z, y, weight, numbers):
    """What is left of a slope: chi² compares the line with the same risk for everybody."""
    share = weight / weight.sum()
    intercept, slope = by_hand(z, y, weight)
    at, rate = intercept + slope * z, share @ y
    flat = -rate * np.log(rate) - (1 - rate) * np.log(1 - rate)
    chi2 = 2 / (share @ share) * (flat - share @ (np.logaddexp(0, at) - y * at))
    assert 0.01 < numbers / chi2 < 0.2
    return 1 - numbers / chi2


@pytest.mark.parametrize("designed", [False, True])
def test_shares_losses_and_the_line_by_hand(designed):
    rng = np.random.default_rng(0)
    n = 600
    risk = rng.normal(size=n)
    chance = rng.uniform(0.01, 0.9, n)  # some under the floor
    tested = rng.random(n) < np.maximum(chance, 0.1)
    y = np.where(tested, rng.random(n) < expit(risk - 1), np.nan)
    own = rng.uniform(0.5, 1.5, n)
    problem = SelectiveLabels.from_arrays(
        risk[:, None], y, weight=own, testing_probability=chance if designed else None
    )
    z = {"boost": 2 * risk, "linear": risk + 0.3 * rng.normal(size=n)}
    asked = {name: values[:50] + rng.normal(size=(3, 50)) for name, values in z.items()}
    fitted = ensemble_parts.Parts({}, z, chance, None, np.arange(0), asked)
    made = make("ensemble", parts=tuple(z))
    made.calibrated_ = True
    made._weigh(problem, fitted, tested, honest=True)

    weight = (own / (chance if designed else np.maximum(chance, 0.05)))[tested]
    y, counted = y[tested], [weight] if designed else [own[tested], weight]
    shares = []
    for one in counted:
        share, losses = one / one.sum(), []
        for values in z.values():
            line = by_hand(values[tested], y, one)
            at = line[0] + line[1] * values[tested]
            losses.append(np.logaddexp(0, at) - y * at)
        more = losses[1] - losses[0]
        error = np.sqrt(((share * (more - share @ more)) ** 2).sum())
        shares.append(expit([share @ more / error, -share @ more / error]))
    assert list(made.losses_.values()) == pytest.approx([share @ one for one in losses], rel=1e-5)
    shares = np.mean(shares, axis=0)
    assert min(shares) > 0.02  # both count
    assert list(made.weights_.values()) == pytest.approx(shares, rel=1e-3)

    mean = shares[0] * z["boost"][tested] + shares[1] * z["linear"][tested]
    intercept, slope = np.mean([by_hand(mean, y, one) for one in counted], axis=0)
    each = shares[0] * asked["boost"] + shares[1] * asked["linear"]
    times = each.var(axis=1).mean() / each.mean(axis=0).var()
    assert times > 1.1
    times *= left_by_hand(mean, y, counted[0], 1 / sum(shares**2))
    assert made.calibration_["slope"] == pytest.approx(slope * times, rel=1e-3)
    center = share @ mean  # where both lines say the same
    assert made.calibration_["intercept"] == pytest.approx(
        intercept + slope * center - slope * times * center, abs=2e-3
    )
    assert made.calibration_["weighted"]


def shrinkage(z, y, person, numbers):
    weight = np.ones(len(z))
    return _shrinkage(z, _recalibration(z, y, weight), y, weight, person, numbers)


def test_little_is_left_of_a_slope_where_tests_cannot_tell_people_apart():
    left = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        left.append(shrinkage(rng.normal(size=300), rng.random(300) < 0.3, np.arange(300), 3.0))
    assert np.median(left) == 0
    z = np.linspace(-3, 3, 300)
    assert 0.95 < shrinkage(z, (z > np.tile([-1, 1], 150)) * 1.0, np.arange(300), 3.0) < 1


def test_rows_of_a_person_say_less_of_the_slope_than_as_many_people():
    rng = np.random.default_rng(0)
    z = rng.normal(size=100)
    y = (rng.random(100) < expit(0.7 * z)).astype(float)
    thrice, persons = [np.tile(one, 3) for one in (z, y)], np.tile(np.arange(100), 3)
    once = shrinkage(z, y, np.arange(100), 2.0)
    assert 0 < once < shrinkage(*thrice, np.arange(300), 2.0) < 1
    assert shrinkage(*thrice, persons, 2.0) == pytest.approx(once, abs=0.01)


def test_risks_of_a_useless_table_hardly_vary():
    spread = []
    for seed in range(4):
        problem, _ = world(500, seed, risk=lambda X: np.zeros(len(X)) - 1)
        spread.append(make("ensemble", parts=("linear", "boost"), **SMALL).fit_problem(problem))
    risks = [model.predict_proba(world(500, 9)[0].X)[:, 1].std() for model in spread]
    assert np.median(risks) < 0.03


def test_models_that_contradict_each_other_are_not_stretched_without_end():
    x = np.random.default_rng(0).normal(size=500)
    assert _noise(np.stack([x, 1e-6 - 0.99 * x])) == 2
    constant = np.full((4, 500), [[-0.1], [-0.2], [-0.3], [-0.7]])  # but for rounding
    assert 1 <= _noise(constant) <= 4


def test_a_share_of_positives_below_none_does_not_make_risks_vanish():
    y = np.where(np.arange(1000) < 40, 1.2, -0.06)  # results of an imperfect test, corrected
    shift = _intercept(np.zeros(1000), y, np.full(1000, 1 / 1000))
    assert expit(shift) == pytest.approx(0.0005)


def test_scores_are_risks_of_everybody_not_of_the_tested():
    # the ill are tested more often, through a feature that is known
    problem, truth = world(4000, risk=lambda X: 2 * X[:, 0] - 1, chance=lambda X: 1.5 * X[:, 0])
    model = make("ensemble", parts=("boost", "linear"), **SMALL).fit_problem(problem)
    assert model.calibrated
    assert model.calibration_["weighted"]
    risk = model.predict_proba(problem.X)[:, 1]
    assert problem.y_obs[problem.tested].mean() > truth.mean() + 0.1
    assert risk.mean() == pytest.approx(truth.mean(), abs=0.02)
    assert dcem.metrics.calibration_error(truth, risk) < 0.03


# -- the estimator ------------------------------------------------------------------------------


def test_a_known_design_calibrates_where_features_do_not_explain_testing():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=3000)  # in no column: drives testing and outcome
    chance = expit(-0.5 + hidden)
    truth = rng.random(3000) < expit(-1 + 1.5 * hidden)
    y = np.where(rng.random(3000) < chance, truth, np.nan)
    X = rng.normal(size=(3000, 2))
    risk = {}
    for known in (chance, None):
        problem = SelectiveLabels.from_arrays(X, y, testing_probability=known)
        model = make("ensemble", parts=("linear",), **SMALL).fit_problem(problem)
        risk[known is None] = model.predict_proba(X)[:, 1].mean()
    assert abs(risk[False] - truth.mean()) < 0.03
    assert risk[True] > truth.mean() + 0.08


def test_the_number_of_threads_changes_nothing(fitted):
    problem, _, model = fitted
    for n_jobs in (1, 16):  # few, and enough for all parts at once
        again = make("ensemble", n_jobs=n_jobs, **SMALL).fit_problem(problem)
        np.testing.assert_allclose(
            again.predict_proba(problem.X), model.predict_proba(problem.X), atol=1e-6
        )


@pytest.mark.slow  # starts processes
def test_networks_in_processes_of_their_own_are_the_same(fitted, monkeypatch):
    problem, _, alone = fitted
    monkeypatch.setattr(ensemble_parts, "ROWS_FOR_PROCESSES", 1000)
    monkeypatch.setattr(ensemble_parts, "CORES_FOR_PROCESSES", 2)
    apart = make("ensemble", n_jobs=2, **SMALL).fit_problem(problem)
    np.testing.assert_array_equal(apart.predict_proba(problem.X), alone.predict_proba(problem.X))


def test_a_process_that_trains_a_network_imports_little():
    code = "import sys, dcem.methods.minibatches; print({'pandas', 'sklearn'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_the_score_is_the_weighted_mean_of_the_parts_log_odds(fitted):
    problem, _, model = fitted
    parts = model.member_scores(problem.X)
    weights = np.array(list(model.weights_.values()))
    z = weights @ np.log(parts / (1 - parts))
    np.testing.assert_allclose(model.predict_proba(problem.X)[:, 1], expit(z), atol=1e-12)
    np.testing.assert_allclose(model.spread(problem.X), parts.std(axis=0))


def test_each_part_can_be_had_alone(fitted):
    problem, truth, model = fitted
    for part in model.weights_:
        alone = make("ensemble", parts=(part,), **SMALL).fit_problem(problem)
        assert alone.weights_ == {part: 1.0}
        score = alone.predict_proba(problem.X)[:, 1]
        assert dcem.metrics.auc(truth, score) > 0.6
        place = list(model.weights_).index(part)
        together = model.member_scores(problem.X)[place]
        np.testing.assert_array_equal(rankdata(score), rankdata(together))


def test_support_knows_the_chance_of_a_test(fitted):
    problem, _, model = fitted
    seen = model.support(problem.X)["testing_probability"]
    assert seen.between(0, 1).all()
    assert np.corrcoef(seen, problem.X[:, 1])[0, 1] > 0.8


def test_a_single_untested_person_is_learnt_without():
    """All untested rows are in one fold: its network has none to learn from."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = (rng.random(80) < expit(2 * X[:, 0])).astype(float)
    y[7] = np.nan
    model = make("ensemble", parts=("network",), n_folds=2, steps=5, random_state=0)
    assert np.isfinite(model.fit(X, y).predict_proba(X)).all()


def test_with_hardly_any_tests_scores_are_not_called_risks():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.full(60, np.nan)
    y[:6] = [1, 0, 0, 0, 0, 0]  # a single positive cannot be held out
    model = make("ensemble", **SMALL).fit(X, y)
    assert not model.calibrated
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("n_jobs", [None, -1])
def test_all_cores_work_unless_told_otherwise(monkeypatch, n_jobs):
    threads = []

    class Counted(ensemble_parts.Threads):
        def __init__(self, number):
            threads.append(number)
            super().__init__(number)

    monkeypatch.setattr(ensemble_parts, "cpu_count", lambda: 3)
    monkeypatch.setattr(ensemble_parts, "Threads", Counted)
    make("ensemble", parts=("linear",), n_jobs=n_jobs, **SMALL).fit_problem(world(200)[0])
    assert threads == [3]


@pytest.mark.parametrize(("heavy", "called_risks"), [(1e6, False), (2.0, True)])
def test_a_few_people_who_outweigh_all_others_are_few_tests(heavy, called_risks):
    problem, _ = world()
    weight = np.where(np.cumsum(problem.y_obs == 1) <= 2, heavy, 1.0)  # two of them positive
    model = make("ensemble", **SMALL).fit_problem(replace(problem, weight=weight))
    assert model.calibrated == called_risks


def test_the_rows_of_a_person_do_not_make_others_fewer():
    problem, _ = world(400)
    many = replace(problem, id=np.maximum(np.arange(400), 250).astype(str))
    for weight in (None, np.full(400, 0.3)):
        fold = ensemble_parts.folds_of(replace(many, weight=weight), 4, 0)
        assert len(np.unique(fold)) == 4


@pytest.mark.parametrize("seed", range(3))
def test_few_tests_do_not_make_risks_more_extreme(seed):
    """Two dozen tests are often separated by chance; the line of best fit is then too steep."""
    problem, _ = world(60, seed, risk=lambda X: 1.5 * X[:, 0], chance=lambda X: -0.4 + X[:, 1])
    fewest = np.bincount(problem.y_obs[problem.tested].astype(int)).min()
    assert 4 <= fewest < FEWEST_FOR_SLOPE
    model = make("ensemble", **SMALL).fit_problem(problem)
    assert model.calibrated
    assert model.calibration_["slope"] <= STEEPEST
    again, _ = world(4000, seed=9, risk=lambda X: 1.5 * X[:, 0])
    plain = make("ensemble", recalibrate=False, **SMALL).fit_problem(problem)
    risk, score = (one.predict_proba(again.X)[:, 1] for one in (model, plain))
    assert risk.std() < 1.6 * score.std()


@pytest.mark.parametrize(
    "wrong",
    [
        {"parts": ("boost", "trees")},
        {"parts": ()},
        {"parts": None},
        {"n_folds": 1},
        {"n_folds": 2.5},
        {"steps": 0},
        {"n_jobs": 0},
        {"n_jobs": -2},
        {"n_jobs": 1.5},
        {"n_jobs": "2"},
    ],
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(dcem.InputError, match=next(iter(wrong))):
        make("ensemble", **wrong).fit_problem(world(200)[0])


@pytest.mark.parametrize(("negatives", "enough"), [(49, False), (50, True)])
def test_the_latest_tests_decide_only_with_enough_of_both_results(negatives, enough) -> None:
    late = np.r_[np.zeros(negatives), np.ones(220 - negatives)]
    y = np.r_[np.tile([0.0, 1.0], 190), late, np.nan]
    X = np.random.default_rng(0).normal(size=(len(y), 1))
    problem = SelectiveLabels.from_arrays(X, y, time=np.repeat([1, 2], [380, 221]))
    recent = _recent(problem, problem.tested)
    assert recent.sum() == (220 if enough else 600)
