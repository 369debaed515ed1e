"""Stated rates of a test: how they are spelt, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from dcem.table import Roles, read_table
from dcem.table.imperfect import CERTAIN, evidence, unbiased
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError


def people(n=400, rate=0.3):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.6, (rng.random(n) < rate).astype(float), np.nan)
    return rng.normal(size=(n, 2)), y, np.where(np.arange(n) % 2, "F", "M")


def made(**rates):
    X, y, group = people()
    return SelectiveLabels.from_arrays(X, y, group=group, **rates).imperfect_test


def test_one_number_for_all():
    test = made(test_sensitivity=0.6)
    assert (test.rates == [0.6, 1.0]).all()
    assert not test.moved()
    assert test.words == "sensitivity .60; specificity 1.00"


def test_by_group_as_text_or_mapping():
    text, mapping = made(test_sensitivity="F=.6,M=.8"), made(test_sensitivity={"F": 0.6, "M": 0.8})
    assert (text.rates == mapping.rates).all()
    assert set(text.rates[:, 0]) == {0.6, 0.8}
    assert "in group F" in text.words


def test_interval_is_a_rate_with_its_error():
    test = made(test_sensitivity=".4-.6", test_specificity="F=.98,M=.9-.99")
    first, *rest = test.stated
    assert first.value == pytest.approx(0.5)
    assert first.error == pytest.approx(0.2 / (2 * 1.96), rel=1e-4)
    assert [one.error > 0 for one in rest] == [False, True]
    (up, down), of_men = test.moved()
    assert np.allclose(up.rates - down.rates, [2 * first.error, 0])
    men = of_men[0].rates[:, 1] != test.rates[:, 1]
    assert men.sum() == 200  # of M alone
    assert made(test_specificity=".9-1").stated[1].value == pytest.approx(0.95)


def test_a_test_that_never_errs_is_no_test_at_all():
    assert made() is None
    assert made(test_sensitivity=1, test_specificity="1.0") is None


def test_by_column_and_the_column_is_not_a_feature():
    X, y, group = people()
    frame = pd.DataFrame(X, columns=["age", "bp"]).assign(
        y=y, sex=group, kit=np.where(np.isnan(y), np.nan, np.where(X[:, 0] > 0, 0.7, 0.9))
    )
    table = read_table(frame, Roles(label="y", group="sex", test_sensitivity="kit"))
    assert table.problem.feature_names == ("age", "bp")
    test = table.problem.imperfect_test
    tested = table.problem.tested
    assert set(test.rates[tested, 0]) == {0.7, 0.9}
    assert 0.7 < test.rates[~tested, 0].mean() < 0.9  # nobody asks; the mean of the group
    same = SelectiveLabels.from_frame(frame, label="y", group="sex", test_sensitivity="kit")
    assert (same.imperfect_test.rates == test.rates).all()


def test_subsets_keep_their_rates():
    X, y, group = people()
    problem = SelectiveLabels.from_arrays(X, y, group=group, test_sensitivity="F=.6,M=.8")
    part = problem.subset(problem.group == 0)
    assert (part.imperfect_test.rates[:, 0] == 0.6).all()


@pytest.mark.parametrize(
    ("rates", "says"),
    [
        ({"test_sensitivity": 0}, "between 0 and 1"),
        ({"test_sensitivity": 1.2}, "between 0 and 1"),
        ({"test_sensitivity": "abc"}, "should be a number"),
        ({"test_sensitivity": ".7-.5"}, "lower one first"),
        ({"test_sensitivity": "F=.6"}, "not for .M"),
        ({"test_sensitivity": "F=.6,M=.8,X=.7"}, "does not occur"),
        ({"test_sensitivity": 0.4, "test_specificity": 0.6}, "says nothing about the truth"),
        (
            {"test_sensitivity": ".4-.6", "test_specificity": 0.55},
            "may say nothing .* could add up",
        ),
        (
            {"test_sensitivity": 0.9, "test_specificity": 0.4},
            "fewer than zero people with the outcome",
        ),
        (
            {"test_sensitivity": 0.1, "test_specificity": 1},
            "more people with the outcome than people",
        ),
        ({"test_sensitivity": np.full(400, 1.5)}, "above 0 and at most 1 for everybody tested"),
        ({"test_sensitivity": [0.5, 0.6]}, "'test_sensitivity' has 2"),
    ],
)
def test_rates_that_cannot_be_are_refused(rates, says):
    with pytest.raises(InputError, match=says):
        made(**rates)


def test_what_a_result_tells():
    result, rates = np.array([1.0, 0.0]), np.array([[0.5, 0.9]] * 2)
    for truth, positive in ((1, 0.5), (0, 0.1)):  # unbiased whatever the truth
        assert unbiased(result, rates) @ [positive, 1 - positive] == pytest.approx(truth)
    assert np.exp(evidence(result, rates)) == pytest.approx([5, 5 / 9])
    assert evidence(result, np.ones((2, 2))).tolist() == [CERTAIN, -CERTAIN]
