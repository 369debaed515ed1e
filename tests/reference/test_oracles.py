"""The formulas of the sensitivity analyses and of the estimates agree with other libraries."""

import importlib.util
import json

import numpy as np
import pytest

from dcem import SelectiveLabels
from dcem.audit.testing import equal_features
from dcem.audit.unmeasured import bias_scale, largest_bias, measured_strength, robustness_value
from dcem.estimation.influence import People
from dcem.estimation.outcomes import Unseen

from . import oracles

SAID = json.loads(oracles.RECORDED.read_text())
INSTALLED = all(importlib.util.find_spec(name) for name in ("doubleml", "sensemakr"))


@pytest.fixture(scope="module")
def world():
    t = oracles.table()
    y = np.where(t["tested"], t["y"], np.nan)
    return t, SelectiveLabels.from_arrays(t["x"], y, tested=t["tested"])


def test_difference_at_equal_features_and_its_largest_bias(world) -> None:
    t, problem = world
    people, said = People.of(problem), SAID["doubleml"]
    here, there = equal_features(people, t["group"] == 1, problem.tested, t["testing"], t["member"])
    difference = here - there
    assert [difference.value, difference.standard_error(None)] == pytest.approx(
        said["difference"], rel=2e-3
    )
    assert difference.value == pytest.approx(said["difference"][0], abs=1e-12)
    surplus = t["group"] - t["member"]
    scale = bias_scale(problem, people, t["testing"], surplus, difference.value)
    for strengths, (low, high) in zip(oracles.STRENGTHS, said["bounds"], strict=True):
        bias = scale * largest_bias(*strengths)
        assert [difference.value - bias, difference.value + bias] == pytest.approx([low, high])
    assert robustness_value(abs(difference.value) / scale) == pytest.approx(
        said["robustness_value"], rel=1e-4
    )


def test_doubly_robust_prevalence(world) -> None:
    t, problem = world
    people = People.of(problem)
    found = people.mean(Unseen.of(problem, t["risk"], t["testing"]).outcomes(1.0))
    value, error = SAID["doubleml"]["prevalence"]
    assert found.value == pytest.approx(value, abs=1e-9)
    assert found.standard_error(None) == pytest.approx(error, rel=2e-3)


def test_robustness_value_and_causes_as_strong_as_a_column(world) -> None:
    t, problem = world
    said = SAID["sensemakr"]
    assert robustness_value(said["partial_f"]) == pytest.approx(said["robustness_value"])
    found = measured_strength(
        problem, People.of(problem), t["group"] == 1, oracles.COLUMNS, np.random.default_rng(0)
    )
    assert {b.column for b in found} == set(oracles.COLUMNS)
    for one in found:
        assert [one.with_group, one.with_testing] == pytest.approx(
            said["columns"][one.column], rel=1e-5, abs=1e-9
        )


@pytest.mark.skipif(not INSTALLED, reason="the oracles are not installed (dcem[oracles])")
@pytest.mark.filterwarnings("ignore")
def test_the_oracles_still_say_so() -> None:
    def numbers(said):
        if isinstance(said, dict):
            return [n for key in sorted(said) for n in numbers(said[key])]
        return [n for one in said for n in numbers(one)] if isinstance(said, list) else [said]

    assert numbers(oracles.ask()) == pytest.approx(numbers(SAID), rel=1e-6)
