"""Columns that follow the decision are pointed out; what drives it is not."""

import numpy as np
import pandas as pd
import pytest

from dcem.table.leaks import bands, levels, suspicion

N = 5000


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def of_number(values, tested) -> str:
    return suspicion(*bands(values), tested)


def of_text(values, tested) -> str:
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


def test_a_column_that_is_the_label_in_other_words(rng):
    tested = rng.random(N) < 0.3
    ill = rng.random(N) < 0.2
    label = np.where(tested, ill.astype(float), np.nan)
    code = np.where(ill, "A41", rng.choice(["J18", "N39"], N))  # of everybody, tested or not
    names = pd.factorize(code)
    cells = levels(names[0], tuple(names[1]))
    assert suspicion(*cells, tested, label) == (
        "among the tested it says the label itself (AUC 1.00)"
    )
    assert suspicion(*cells, tested) == ""
    few = tested & (np.cumsum(tested & ill) <= 15)  # too few positives to say
    assert suspicion(*cells, few, np.where(few, label, np.nan)) == ""


def test_strong_risk_factors_are_left_alone(rng):
    severity = rng.normal(size=N)
    ill = rng.random(N) < 1 / (1 + np.exp(2 - 4 * severity))  # AUC about .94
    tested = rng.random(N) < 0.3
    assert suspicion(*bands(severity), tested, np.where(tested, ill, np.nan)) == ""
    for _ in range(50):  # forty tested people and twenty bands of noise
        noise, handful = bands(rng.normal(size=N)), np.zeros(N, bool)
        handful[rng.choice(N, 40, replace=False)] = True
        label = np.where(handful, np.cumsum(handful) % 2, np.nan)
        assert suspicion(*noise, handful, label) == ""


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
