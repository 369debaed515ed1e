"""Differences between methods count the luck of training, and the number of methods."""

import numpy as np
from scipy.special import expit

from dcem.compare.judge import Ranks, Scored, seed_variance
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.folds import percentiles
from dcem.estimation.nuisances import Nuisances
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
    return Scored(scores, percentiles(scores.mean(axis=0), fold), fold)


def test_a_method_is_seldom_different_from_itself_with_another_seed() -> None:
    called, without_luck = [], []
    for seed in range(40):
        evaluator, x, rng = table(seed)
        pair = {"one": method(x, rng), "other": method(x, rng)}
        called.append(Ranks(evaluator, "truth", pair).gain("one", "other").excludes(0))
        single = {
            name: Scored(s.members.mean(axis=0)[None], s.rank, s.fold) for name, s in pair.items()
        }
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
