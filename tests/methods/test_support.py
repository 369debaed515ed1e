"""Who is like somebody tested."""

import numpy as np
import pytest

from dcem import load_model
from dcem.methods import make
from dcem.table.labels import SelectiveLabels


def table(
    share: float, n: int = 6000, corner: float = 1.0, weight: bool = False
) -> SelectiveLabels:
    """People of whom so many are tested at random; in a corner fewer, by a factor."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, 2))
    tested = rng.random(n) < share * np.where(X[:, 0] > 0.6, corner, 1)
    y = np.where(tested, rng.random(n) < 0.4, np.nan)
    return SelectiveLabels.from_arrays(X, y, weight=np.where(tested, 0.01, 1) if weight else None)


@pytest.mark.parametrize("weight", [False, True])
def test_a_small_random_sample_supports_everybody(weight, tmp_path):
    """Also where weights say that it is small, and once the model is saved."""
    problem = table(0.4 if weight else 0.008, weight=weight)
    model = make("ipw", learner="linear", random_state=0).fit_problem(problem)
    near = model.support(problem)
    assert near["testing_probability"].mean() < 0.01
    assert near["supported"].mean() > 0.9
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        load_model(tmp_path / "model").support(problem)["supported"], near["supported"]
    )


def test_where_many_are_tested_a_corner_without_tests_is_not_supported():
    problem = table(0.5, corner=0.002)
    model = make("ipw", learner="boost", random_state=0).fit_problem(problem)
    assert model.support(problem)["supported"][problem.X[:, 0] > 0.6].mean() < 0.15


def test_the_share_tested_tells_no_small_count():
    problem = table(0.005, n=2443)
    assert problem.tested.sum() % 10
    model = make("tested-only", learner="linear", random_state=0).fit_problem(problem)
    counted = model.support_.rate * len(model.train_rows_)
    assert counted == pytest.approx(10 * round(counted / 10))
