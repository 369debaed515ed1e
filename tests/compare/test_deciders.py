"""Methods judged by who decides."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from dcem.compare import compare_methods
from dcem.compare.deciders import about_deciders
from dcem.metrics.estimate import Estimate
from dcem.report.compare import compare_document
from dcem.report.from_json import read_comparison
from dcem.report.to_json import to_json
from dcem.report.to_markdown import to_markdown
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning


@pytest.fixture(scope="module")
def comparison():
    rng = np.random.default_rng(0)
    n = 1500
    X, seen = rng.normal(size=(n, 2)), rng.normal(size=n)
    who = rng.integers(3, size=n)
    y = rng.random(n) < expit(-1 + 1.5 * X[:, 0] + seen)
    tested = seen + rng.logistic(size=n) + np.array([-2, 0, 4])[who] > 0
    problem = SelectiveLabels.from_arrays(X, np.where(tested, y, np.nan), decider=who)
    return compare_methods(
        problem, ["tested-only:linear", "instrument"], truth=y, n_folds=2, planted=0, n_members=1
    )


def test_bounds_hold_the_truth_and_contraction_is_between(comparison):
    found = comparison.deciders
    assert set(found.methods) == {"tested-only:linear", "instrument"}
    for method in comparison.methods:
        one, truth = found.methods[method.name], method.judgements["truth"]
        assert one.auc.low.low < truth.auc.value < one.auc.high.high
        for measure in ("true_positive_rate", "precision"):
            bounds, value = getattr(one, measure), truth.when_acting[measure]["everybody"].value
            assert bounds.low.low < value < bounds.high.high
        assert [level.level for level in one.contraction] == ["0", "1"]
        assert one.contraction[1].score.value > one.contraction[0].score.value
    keys = {finding.key for finding in comparison.findings}
    assert {"lead-by-decider", "contraction"} <= keys
    frame = comparison.to_frame()
    assert (frame["target"] == "contraction").sum() == 12


def test_pages_come_back(comparison, tmp_path):
    document = compare_document(comparison)
    path = tmp_path / "comparison.json"
    path.write_text(to_json(document), encoding="utf-8")
    again = read_comparison(path)
    assert again.deciders.best == comparison.deciders.best
    assert "AUC over all risks that deciders allow" in to_markdown(compare_document(again))


def test_estimates_beyond_the_bounds_and_bounds_that_cross_are_warned_of(comparison):
    found = comparison.deciders
    told, warned = about_deciders(found, {"instrument": Estimate(0.99, 0.985, 0.995)})
    assert [one.key for one in warned] == ["beyond-deciders"]
    assert told
    told, warned = about_deciders(replace(found, crossing=0.001), {})
    assert [one.key for one in warned] == ["deciders-refuted"]
    assert not told
    assert about_deciders(None, {}) == ([], [])


def test_what_a_fit_has_to_say_is_said_once():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    y = np.where(rng.random(300) < 0.6, rng.random(300) < expit(X[:, 0]), np.nan)
    problem = SelectiveLabels.from_arrays(X, y)
    with warnings.catch_warnings(record=True) as heard:
        compare_methods(problem, ["heckman"], n_folds=3, planted=2, n_members=1)
    notes = [one for one in heard if issubclass(one.category, DataWarning)]
    assert len([one for one in notes if "testing_only" in str(one.message)]) == 1
