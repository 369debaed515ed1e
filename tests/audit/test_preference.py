"""Testing that prefers low risk: named, measured, and read the right way round."""

from dataclasses import replace

import numpy as np
import pytest
from choices import linear
from scipy.special import expit

from dcem.audit import audit_labels
from dcem.audit.findings import all_findings
from dcem.metrics import auc
from dcem.metrics.estimate import Estimate
from dcem.report.audit import audit_document
from dcem.report.to_markdown import to_markdown
from dcem.table.labels import SelectiveLabels


def lender(n: int = 3000, sign: float = -1.0) -> tuple[SelectiveLabels, np.ndarray, float]:
    """Loans go to those at low risk, and in group b at a lower one; `queue` drives approval alone.

    With `sign` 1 they go to those at high risk.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    group = rng.random(n) < 0.4
    risk = expit(-0.8 + 1.4 * X[:, 0] + 0.4 * X[:, 1])
    truth = (rng.random(n) < risk).astype(float)
    chance = expit(0.4 + sign * 1.1 * X[:, 0] + 0.8 * X[:, 2] - 1.2 * group)
    approved = rng.random(n) < chance
    problem = SelectiveLabels.from_arrays(
        X,
        np.where(approved, truth, np.nan),
        group=np.where(group, "b", "a"),
        feature_names=["debt", "age", "queue"],
        testing_only=["queue"],
    )
    return problem, truth, float(auc(truth, chance * risk))


@pytest.fixture(scope="module")
def audit():
    return audit_labels(lender()[0], learners=linear)


def test_the_rate_of_the_untested_and_what_the_record_teaches(audit) -> None:
    problem, truth, taught = lender()
    found = audit.preference
    assert found.tested.value == pytest.approx(truth[problem.tested].mean(), abs=0.01)
    assert found.untested.low < truth[~problem.tested].mean() < found.untested.high
    assert found.low_risk
    assert found.record_auc.value == pytest.approx(taught, abs=0.05)


def test_where_those_at_low_risk_are_tested_the_record_is_the_wrong_way_round(audit) -> None:
    found = {finding.key: finding for finding in audit.findings}
    assert found["safer-tested"].severity == "serious"
    assert "higher-bar" not in found
    assert found["stricter-bar"].groups == ("b",)
    advice = {one.name: one for one in audit.methods}
    assert advice["y-obs"].verdict == "not here"
    assert "lower risk" in advice["y-obs"].reason
    assert advice["heckman"].verdict == advice["parcelling"].verdict == "with care"


def test_where_those_at_high_risk_are_tested_nothing_is_turned() -> None:
    found = audit_labels(lender(1500, sign=1.0)[0], learners=linear)
    assert not found.prefers_low_risk
    assert "safer-tested" not in {finding.key for finding in found.findings}


@pytest.mark.parametrize(("gap", "key"), [(-0.1, "stricter-bar"), (0.1, "yield-at-margin")])
def test_who_is_approved_less_and_defaults_less_met_a_stricter_bar(audit, gap, key) -> None:
    told = Estimate(gap, gap - 0.05, gap + 0.05)
    item = replace(
        audit.yields[1], difference=told, at_equal_probability=told, p_value=0.001,
        p_value_equal=0.001,
    )  # fmt: skip
    other = replace(audit.yields[0], p_value=1.0, p_value_equal=1.0)
    keys = {finding.key for finding in all_findings(replace(audit, yields=(other, item)))}
    assert key in keys
    assert not keys & {"higher-bar", "lower-bar", "laxer-bar"}


def test_a_column_that_drives_testing_alone(audit) -> None:
    found = {finding.key: finding for finding in audit.findings}
    assert audit.testing_only == ("queue",)
    assert found["excluded"].values["columns"]["queue"][0] > 0.1
    assert "drives-testing" not in found or "queue" not in found["drives-testing"].values["columns"]
    weak = replace(audit, drivers=tuple(
        replace(one, loss=Estimate(0.0, -1.0, 1.0)) for one in audit.drivers
    ))  # fmt: skip
    assert "excluded-weak" in {finding.key for finding in all_findings(weak)}


def test_a_lender_reads_it_in_its_own_words(audit) -> None:
    page = to_markdown(audit_document(audit), "credit")
    assert "Approval prefers applicants at lower risk" in page
    assert "loans to group b default less often" in page
    assert "stricter bar" in page
    assert "untested" not in page
