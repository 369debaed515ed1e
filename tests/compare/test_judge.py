"""Differences between methods count the luck of training, and the number of methods."""

import numpy as np
from scipy.special import expit

from dcem.compare.fitting import Scored
from dcem.compare.judge import Decision, Judge, Ranks, seed_variance
from dcem.compare.results import Judgement
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.nuisances import Nuisances
from dcem.estimation.results import EVERYBODY
from dcem.table.labels import SelectiveLabels


def table(seed: int, n: int = 500) -> tuple[Evaluator, np.ndarray, np.random.Generator]:
    """People whose models of testing and outcome are known, and their true log-odds."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = (rng.random(n) < expit(x)).astype(float)
    problem = SelectiveLabels.from_arrays(
        x[:, None], np.where(rng.random(n) < 0.5, y, np.nan), group=rng.integers(2, size=n)
    )
    models = Nuisances(np.full(n, 0.5), expit(x), ())  # type: ignore[arg-type]
    return Evaluator(problem, truth=y, nuisances=models, random_state=seed), x, rng


def method(x: np.ndarray, rng: np.random.Generator, members: int = 3) -> Scored:
    """An ensemble whose members err independently, in each fold anew."""
    fold = np.arange(len(x)) % 5
    # one random tilt per member and fold: a model that came out differently, not noise per row
    tilt = rng.normal(0, 0.6, (members, 5))[:, fold]
    scores = expit(x + tilt * np.sin(3 * x))
    return Scored(scores, fold)


def test_a_method_is_seldom_different_from_itself_with_another_seed() -> None:
    called, without_luck = [], []
    for seed in range(40):
        evaluator, x, rng = table(seed)
        pair = {"one": method(x, rng), "other": method(x, rng)}
        called.append(Ranks(evaluator, "truth", pair).gain("one", "other").excludes(0))
        single = {name: Scored(s.members.mean(axis=0)[None], s.fold) for name, s in pair.items()}
        without_luck.append(Ranks(evaluator, "truth", single).gain("one", "other").excludes(0))
    assert np.mean(called) <= 0.1
    assert np.mean(called) < np.mean(without_luck)


def test_a_model_alone_tells_no_luck() -> None:
    evaluator, x, rng = table(0)
    masses = evaluator.masses["truth"]
    assert seed_variance(masses, method(x, rng, members=1)) == 0
    assert seed_variance(masses, method(x, rng, members=3)) > 0


def test_equal_methods_are_level_and_a_bad_one_is_behind() -> None:
    evaluator, x, rng = table(0, 2000)
    methods = {name: method(x, rng) for name in "abc"}
    methods["bad"] = method(rng.normal(size=len(x)), rng)
    standing = Ranks(evaluator, "dr", methods).standing(list(methods), 0.005)
    assert standing is not None
    assert standing.best in "abc"
    assert set(standing.level_with) == set("abc") - {standing.best}
    assert standing.ahead_of["bad"].low > 0
    # a floor above every difference leaves nobody behind
    lenient = Ranks(evaluator, "dr", methods).standing(list(methods), 0.9)
    assert lenient is not None
    assert len(lenient.level_with) == 3


def judged(evaluator: Evaluator, scored: Scored) -> Judgement:
    return Judge(evaluator, {"one": scored}, "0", Decision(capacity=0.1))("one", "truth")


def test_the_luck_of_training_widens_what_is_said_of_groups() -> None:
    evaluator, x, rng = table(3, 1500)
    lucky = method(x, rng)
    assert lucky.without.shape == (5, 3, 1500)
    assert np.array_equal(lucky.without[0, 0][lucky.fold != 0], lucky.rank[lucky.fold != 0])
    sure = Scored(lucky.members.mean(axis=0)[None], lucky.fold)
    wide, narrow = (judged(evaluator, one) for one in (lucky, sure))
    assert wide.roc_gap.value == narrow.roc_gap.value
    assert wide.roc_gap.high > narrow.roc_gap.high
    assert wide.gap_by_chance > narrow.gap_by_chance
    for name in ("auc_differences", "auc_against", "group_auc"):
        for key, found in getattr(wide, name).items():
            less = getattr(narrow, name)[key]
            assert found.value == less.value
            assert found.high - found.low > less.high - less.low


def test_net_benefit_of_groups_adds_up_to_that_of_everybody() -> None:
    evaluator, x, rng = table(0)
    curves = judged(evaluator, method(x, rng)).decision_curves
    assert set(curves) == {EVERYBODY, "0", "1"}
    share = np.bincount(evaluator.problem.group) / len(x)
    for what in ("net_benefit", "treat_all"):
        together = share @ [getattr(curves[name], what) for name in "01"]
        told = np.isfinite(together)  # not where fewer than ten people are on a side
        assert told.sum() > 10
        np.testing.assert_allclose(
            getattr(curves[EVERYBODY], what)[told], together[told], atol=1e-12
        )
    told = np.isfinite(curves["1"].net_benefit)
    assert (curves["1"].low <= curves["1"].net_benefit)[told].all()
