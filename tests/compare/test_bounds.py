"""What a stated strength of the unmeasured leaves of a comparison, and of an audit."""

import json
from dataclasses import replace

import numpy as np
import pytest
from choices import linear
from scipy.special import expit

from dcem.audit import audit_labels
from dcem.compare import compare_methods
from dcem.report.audit import audit_document
from dcem.report.compare import compare_document
from dcem.report.from_json import read_result
from dcem.report.to_json import to_json
from dcem.report.to_markdown import to_markdown
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    group = rng.choice(["<65", "65+"], 1200, p=[0.7, 0.3])
    tested = rng.random(1200) < expit(0.8 * X[:, 0])
    y = (rng.random(1200) < expit(-1 + X[:, 0] + 0.7 * X[:, 1])).astype(float)
    return SelectiveLabels.from_arrays(X, y * tested, tested=tested, group=group)


@pytest.fixture(scope="module")
def comparison(problem):
    return compare_methods(
        problem,
        ["tested-only:linear", "y-obs:linear"],
        n_folds=2,
        planted=0,
        n_resamples=20,
        threshold=0.4,
        bounds=2.5,
    )


@pytest.fixture(scope="module")
def audit(problem):
    return audit_labels(problem, bounds=2.0, threshold=0.4, learners=linear)


def test_limits_widen_with_the_strength(comparison) -> None:
    found = comparison.bounds
    assert found.people.cut == 0.4
    assert 2.5 in found.people.gammas
    for one in found.methods:
        assert (np.diff(one.auc_high - one.auc_low) > -1e-9).all()
        assert (np.diff(one.benefit_low) <= 1e-9).all()
        open_ = found.people.shares["everybody"].open
        np.testing.assert_allclose(one.holds["everybody"] + one.against + open_, 1, atol=0.03)
    first = next(one for one in found.methods if one.name == found.best)
    plain = next(m for m in comparison.methods if m.name == found.best).judgements["dr"].auc
    assert (first.auc_low[0], first.auc_high[0]) == pytest.approx((plain.low, plain.high), abs=0.01)
    assert first.lead == ()
    other = next(one for one in found.methods if one.name != found.best)
    leads = [one.value for one in other.lead]
    assert leads == sorted(leads, reverse=True)
    assert {"bounds", "bounds-best"} <= {one.key for one in comparison.findings}


def test_as_pages_and_read_again(comparison, audit, tmp_path) -> None:
    for document, heading in (
        (compare_document(comparison), "Methods at gamma = 2.5"),
        (audit_document(audit), "Acting at a risk of 40 % or more, at gamma = 2"),
    ):
        assert heading in to_markdown(document)
        (tmp_path / "saved.json").write_text(to_json(document))
        assert heading in to_markdown(read_result(tmp_path / "saved.json"))
    saved = json.loads((tmp_path / "saved.json").read_text())
    assert saved["bounds"]["stated"] == 2


def test_an_audit_says_for_whom_a_decision_holds(audit) -> None:
    found = audit.bounds
    assert set(found.shares) == {"everybody", "<65", "65+"}
    assert found.shares["everybody"].open[0] == 0  # features explain testing: all is decided
    assert (np.diff(found.shares["everybody"].open) >= 0).all()
    told = {one.key: one for one in audit.findings}["bounds"]
    assert told.values["gamma"] == 2
    assert max(found.columns, key=found.columns.get) == "x0"


def test_what_cannot_be_bounded(problem) -> None:
    with pytest.raises(InputError, match="odds ratio from 1"):
        audit_labels(problem, bounds=0.7)
    seen = np.where(np.cumsum(problem.y_imputed) > 6, 0.0, problem.y_obs)
    few = replace(problem, y_obs=np.where(problem.tested, seen, np.nan))
    found = compare_methods(
        few, ["tested-only:linear"], n_folds=2, planted=0, n_resamples=20, bounds=2.0
    )
    assert found.bounds is None
    assert "bounds-unknown" in {one.key for one in found.findings}


def test_an_audit_says_why_it_gives_none(problem):
    everybody = problem.subset(problem.tested)
    found = audit_labels(everybody, bounds=2.0, learners=linear)
    assert found.bounds is None
    (told,) = (one for one in found.findings if one.key == "bounds-unknown")
    assert told.values["reason"] == "everybody is tested"
    assert "bounds-unknown" not in {
        one.key for one in audit_labels(everybody, learners=linear).findings
    }


def test_with_a_known_prevalence_strengths_count_from_its_odds(problem):
    """And every sentence says so: at equal features, nobody claims the odds of the tested."""
    known = SelectiveLabels.from_arrays(
        problem.X,
        np.where(problem.tested, problem.y_obs, np.nan),
        group=np.array(problem.group_names)[problem.group],
        prevalence=".45-.5",
    )
    found = audit_labels(known, bounds=1.0, threshold=0.4, learners=linear)
    assert found.bounds.known
    assert found.bounds.bands[1.0].risk.mean() == pytest.approx(0.475, abs=0.03)
    told = {one.key: one.text for one in found.findings}
    assert "those that match the known prevalence" in told["bounds"]
    page = to_markdown(audit_document(found))
    assert "gamma is relative to the odds that match it" in page
    assert "45.0, 50.0" in page  # as stated, and nowhere as something else
    assert "44." not in page.split("Known prevalence")[1].split("##")[0]
