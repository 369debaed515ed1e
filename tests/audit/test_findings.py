"""Findings are no stronger than what they rest on."""

from dataclasses import replace

import numpy as np
import pytest

from dcem.audit.findings import find
from dcem.audit.results import Driver, Estimate


def about(found, word: str) -> list:
    return [f for f in find(found) if f.about == word]


def with_difference(item, reach: float):
    gap = Estimate(0.1, 0.1 - reach, 0.1 + reach)
    return replace(item, difference=gap, at_equal_probability=gap)


def test_outcome_test_is_corrected_for_the_number_of_groups(fair_audit) -> None:
    """Three groups: an interval that just excludes 0 (p = 0.04) is not enough, p = 0.01 is."""
    none = Estimate(0.0, -0.1, 0.1)
    others = [replace(i, difference=none, at_equal_probability=none) for i in fair_audit.yields[1:]]
    first = fair_audit.yields[0]
    for z, found in ((2.05, 0), (2.58, 2)):
        item = with_difference(first, 0.1 * 1.96 / z)
        assert item.difference.excludes(0)
        audit = replace(fair_audit, yields=(item, *others))
        assert len(about(audit, "yield")) == found
    two = replace(fair_audit, yields=(with_difference(first, 0.1 * 1.96 / 2.05), others[0]))
    assert len(about(two, "yield")) == 2  # one comparison, nothing to correct


def test_what_the_record_hides(unfair, unfair_audit) -> None:
    """Of all outcomes to expect in a group, the share that no test is to be expected to find."""
    problem = unfair.problem
    for item in unfair_audit.prevalence[1:]:
        mine = problem.group == problem.group_names.index(item.group)
        real = 1 - np.average(unfair.testing[mine], weights=unfair.risk[mine])
        assert item.hidden.low < real < item.hidden.high
        assert item.hidden.value == pytest.approx(
            1 - item.recorded.value / item.doubly_robust.value
        )
    told = next(f for f in find(unfair_audit) if "hides more in group b" in f.headline)
    b = unfair_audit.prevalence[2].hidden
    assert f"{100 * b.value:.1f} % ({100 * b.low:.1f} to {100 * b.high:.1f} %)" in told.text


@pytest.mark.parametrize(("first", "warned"), [(0.7, True), (0.4, False)])
def test_one_column_that_carries_the_prediction_of_testing(fair_audit, first, warned) -> None:
    loss = Estimate(9.0, 8.0, 10.0)
    rest = (1 - first) / 2
    drivers = tuple(
        Driver(name, loss, share, "more when high")
        for name, share in (("labs", first), ("age", rest), ("(group)", 0.0), ("pain", rest))
    )
    told = about(replace(fair_audit, drivers=drivers), "features")
    assert bool(told) is warned
    if warned:
        assert "labs" in told[0].headline
        assert told[0].severity == "caution"
    assert not about(replace(fair_audit, drivers=drivers[:2]), "features")


def test_shares_of_drivers_sum_to_one(unfair_audit) -> None:
    shares = [driver.share for driver in unfair_audit.drivers]
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= 0
