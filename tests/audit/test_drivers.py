"""How a pattern of encoded columns is told, and how many tests are missing."""

import re

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


def test_importance_is_the_rise_of_the_log_loss_of_tested_and_untested() -> None:
    """A model that is right with probability .9, of a column of two equally frequent values."""
    tested = np.arange(4000) % 2 == 0
    X = np.stack([tested, np.arange(4000)], axis=1)
    problem = SelectiveLabels.from_arrays(X, np.where(tested, np.arange(4000) % 4 == 0, np.nan))

    class Model:
        def chance(self, X, rows):
            return np.where(X[:, 0] > 0, 0.9, 0.1)

    ask = problem, People.of(problem), ["a", "b"], np.random.default_rng(0), Model()
    first, second = find_drivers(*ask, tested, np.ones(len(tested), bool))
    assert first.column == "a"
    assert first.loss.value == pytest.approx(1000 * np.log(9) / 2, rel=0.05)  # half are misled
    assert second.loss.value == 0


@pytest.mark.parametrize("few", [False, True], ids=["many days", "three days"])
def test_dates_are_written_as_dates_and_large_numbers_without_an_exponent(few) -> None:
    """A column of dates and the time of the decision; an income beside them."""
    rng = np.random.default_rng(0)
    days = rng.integers(19_400, 19_403 if few else 19_900, 600)
    income = rng.integers(10_000, 90_000, 600)
    tested = rng.random(600) < 0.5
    problem = SelectiveLabels.from_arrays(
        np.stack([days, income], axis=1).astype(float),
        np.where(tested, rng.random(600) < 0.5, np.nan),
        time=days.astype("datetime64[D]"),
    )

    class Model:
        def chance(self, X, rows):
            return 1 / (1 + np.exp((X[:, 0] - X[:, 2]) / 400 + (50_000 - X[:, 1]) / 1e5))

    ask = problem, People.of(problem), ["seen", "income"], np.random.default_rng(0), Model()
    among = np.ones(len(problem), bool)
    found = find_drivers(*ask, problem.tested, among, dates=["seen"])
    said = {one.column: one.direction for one in found}
    for name in ("seen", "(time)"):
        assert len(re.findall(r"\b202[34]-\d\d-\d\d\b", said[name])) == 2, said
        assert few or "when late: " in said[name]
    assert re.search(r"more when high: .* at \d\d,000, .* at \d\d,000", said["income"]), said
