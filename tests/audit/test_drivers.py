"""How a pattern of encoded columns is told, and how many tests are missing."""

import numpy as np
import pytest

from dcem.audit.drivers import _pattern, find_drivers
from dcem.audit.results import Needed
from dcem.estimation.influence import People
from dcem.table.labels import SelectiveLabels


@pytest.mark.parametrize(
    ("values", "labels", "told"),
    [
        ([1, 0], ["payer=public", "payer=private"], "public"),
        ([0, 0], ["payer=public", "payer=private"], "none of these"),
        ([1, 1], ["payer=public", "payer=private"], "public and private"),
        ([1], ["payer=public"], "public"),
        ([0], ["payer=public"], "not public"),
        ([2.5], ["payer"], "2.5"),
        ([np.nan], ["payer"], "missing"),
    ],
)
def test_a_pattern_is_told_as_the_value_it_stands_for(values, labels, told) -> None:
    assert _pattern(np.array(values, float), labels, "payer") == told


@pytest.mark.parametrize(("tests", "needed", "more"), [(40, 100, 60), (100, 40, 0), (-1, 40, 0)])
def test_tests_that_are_missing(tests, needed, more) -> None:
    assert Needed("a", 0.03, tests, needed).more == more  # -1: hidden, so nothing is told


def test_rows_of_one_person_do_not_make_an_importance_surer() -> None:
    """Everybody ten times over, under one id: the interval is that of the people."""
    rng = np.random.default_rng(0)
    x, tested = rng.normal(size=(100, 2)), rng.random(100) < 0.5
    y = np.where(tested, rng.random(100) < 0.5, np.nan)

    class Model:
        def chance(self, X, rows):
            return 1 / (1 + np.exp(-X[:, 0]))

    width = []
    for times in (1, 10):
        problem = SelectiveLabels.from_arrays(
            np.repeat(x, times, 0), np.repeat(y, times), id=np.repeat(np.arange(100), times)
        )
        ask = problem, People.of(problem), ["a", "b"], np.random.default_rng(0), Model()
        first = find_drivers(*ask, problem.tested, np.ones(len(problem), bool))[0]
        width.append(first.loss.high - first.loss.low)
    assert width[1] > 0.6 * width[0]  # not a third
