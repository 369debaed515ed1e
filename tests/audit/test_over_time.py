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


def test_small_counts_are_withheld_from_the_start():
    problem = visits(200)
    few = np.where(np.arange(len(problem)) % 60 == 0, "rare", "usual")
    crossed = SelectiveLabels.from_arrays(
        problem.X, problem.y_obs, tested=problem.tested, time=problem.time, group=few
    )
    shown = audited(crossed).over_time.shown
    rare, usual = ([one for one in shown if one.group == name] for name in ("rare", "usual"))
    hidden = ["withheld" in one.tested.reason for one in rare]
    assert hidden == [True, True, False]  # nobody rare in the last period
    assert hidden == ["withheld" in one.tested.reason for one in usual]  # what is left tells them
    assert all(one.tested.estimable for one in shown if one.group == "everybody")
