"""An audit along time: earlier results, changes, late results, and nothing where nothing is."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dcem.audit import Audit, audit_labels
from dcem.table.labels import SelectiveLabels


def visits(n: int = 1000, seed: int = 0, *, earlier: float = 0.0, drift: float = 0.0):
    """Three visits of each person; `earlier` is what an earlier positive adds to the log-odds."""
    rng = np.random.default_rng(seed)
    time = np.sort(rng.random((n, 3)), axis=1)
    own = rng.normal(size=(n, 1))
    x = own + 0.3 * rng.normal(size=(n, 3))
    y = rng.random((n, 3)) < expit(-0.7 + x + drift * (time - 0.5))
    tested = np.zeros((n, 3), bool)
    known = np.zeros(n)
    for visit in range(3):
        tested[:, visit] = rng.random(n) < expit(0.5 * x[:, visit] - 0.2 + earlier * known)
        known = np.where(tested[:, visit] & y[:, visit], 1.0, known)
    return SelectiveLabels.from_arrays(
        x.reshape(-1, 1),
        np.where(tested, y, np.nan).ravel(),
        tested=tested.ravel(),
        time=time.ravel(),
        id=np.repeat(np.arange(n), 3),
        group=np.repeat(rng.choice(["a", "b"], n), 3),
    )


def audited(problem: SelectiveLabels) -> Audit:
    """Audited with plain models, which are quick and right here."""
    return audit_labels(problem, learners=lambda classes, seed: {"linear": LogisticRegression()})


@pytest.fixture(scope="module")
def nothing():
    return audited(visits())


def keys(audit) -> set[str]:
    return {finding.key for finding in audit.findings if finding.about == "time"}


def test_nothing_is_called_where_nothing_changes(nothing):
    assert keys(nothing) == set()
    assert len(nothing.over_time.earlier) == 3


def test_every_period_and_group_is_told_with_its_interval(nothing):
    shown = nothing.over_time.shown
    assert len(shown) == 3 * 12
    problem = visits()
    starts = np.sort(problem.time)[(np.arange(12) * len(problem)) // 12]
    first = problem.time < starts[1]
    assert shown[0].tested.value == pytest.approx(problem.tested[first].mean())
    assert shown[0].positive.value == pytest.approx(np.nanmean(problem.y_obs[first]))
    assert shown[0].tested.low < shown[0].tested.value < shown[0].tested.high


def test_earlier_results_that_drive_testing_are_found():
    audit = audited(visits(earlier=1.5))
    assert "earlier-results" in keys(audit)
    by = {rate.group: rate.difference for rate in audit.over_time.earlier}
    assert by["last result positive"].low > 0.1


def test_an_outcome_that_drifts_is_found():
    assert "outcome-changed" in keys(audited(visits(drift=4.0)))


def of_two_groups(n: int, rare: float) -> SelectiveLabels:
    problem = visits(n)
    group = np.where(np.random.default_rng(1).random(len(problem)) < rare, "rare", "usual")
    return SelectiveLabels.from_arrays(
        problem.X, problem.y_obs, tested=problem.tested, time=problem.time, group=group
    )


def test_periods_of_groups_are_so_long_that_no_count_is_small():
    problem = of_two_groups(1000, 0.1)
    shown = audited(problem).over_time.shown
    starts = {
        name: [one.since for one in shown if one.group == name]
        for name in ("everybody", "rare", "usual")
    }
    assert len(starts["everybody"]) == 12
    assert starts["rare"] == starts["usual"] == starts["everybody"][::3]
    assert all(one.tested.estimable and one.positive.estimable for one in shown)
    later = problem.time >= np.sort(problem.time)[3 * len(problem) // 12]
    first = ~later & (problem.group == problem.group_names.index("rare"))
    found = next(one for one in shown if one.group == "rare")
    assert found.tested.value == pytest.approx(problem.tested[first].mean())


def test_groups_too_small_for_any_two_periods_have_none():
    audit = audited(of_two_groups(200, 0.03))
    assert {one.group for one in audit.over_time.shown} == {"everybody"}
    section = audit.to_markdown().split("## Over time")[1].split("##")[0]
    assert "withheld" not in section
    assert "Groups are left out" in section
