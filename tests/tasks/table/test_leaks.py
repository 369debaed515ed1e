"""Columns that follow the decision are pointed out; what drives it is not."""

import numpy as np
import pytest

from dcem.tasks._table.leaks import bands, levels, suspicion

N = 5000


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def of_number(values, tested) -> str:
    return suspicion(*bands(values), tested)


def of_text(values, tested) -> str:
    import pandas as pd

    codes, names = pd.factorize(values)
    return suspicion(*levels(codes, tuple(map(str, names))), tested)


def test_a_result_that_exists_only_after_the_test(rng):
    tested = rng.random(N) < 0.3
    result = np.where(tested, rng.normal(size=N), np.nan)
    assert "exactly who was tested" in of_number(result, tested)
    mostly = np.where(tested & (rng.random(N) < 0.95), rng.normal(size=N), np.nan)
    assert "AUC of 0.9" in of_number(mostly, tested)


def test_values_that_only_the_test_brings(rng):
    tested = rng.random(N) < 0.3
    drug = np.where(tested & (rng.random(N) < 0.3), "started", "none")
    said = of_text(drug, tested)
    assert "'started' hardly ever occurs without the test" in said
    assert "AUC" not in said


def test_plausible_drivers_are_left_alone(rng):
    severity = rng.normal(size=N)
    for strength in (0.5, 1.0, 2.0):  # the last gives an AUC of .86
        tested = rng.random(N) < 1 / (1 + np.exp(1 - strength * severity))
        assert of_number(severity, tested) == ""
    ward = rng.choice(["a", "b", "c"], N)
    tested = rng.random(N) < np.select([ward == "a", ward == "b"], [0.9, 0.3], 0.1)
    assert of_text(ward, tested) == ""


def test_a_value_among_the_tested_alone_by_chance(rng):
    tested = rng.random(N) < 0.97  # nearly everybody: 50 of 50 is nothing special
    rare = np.where(np.arange(N) < 60, "rare", "usual")
    tested[:60] = True
    assert of_text(rare, tested) == ""
    few = rng.random(N) < 0.2
    few[:20] = True  # too few rows to say
    assert of_text(np.where(np.arange(N) < 20, "rare", "usual"), few) == ""


def test_nothing_to_say_where_all_are_tested(rng):
    assert of_number(rng.normal(size=N), np.ones(N, bool)) == ""
