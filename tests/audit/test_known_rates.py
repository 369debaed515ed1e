"""A known prevalence in an audit: what it tests, what it tightens, and where it stands."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import dcem
from dcem.audit.disclosure import without_small_cells
from dcem.estimation.outcomes import tilted
from dcem.report.audit import audit_document
from dcem.report.to_markdown import to_markdown
from dcem.table.labels import SelectiveLabels
from dcem.text import percent


@cache
def audited(prevalence=None, ratio=2.0, n=3000, grouped=True):
    """An audit of a table whose untested have `ratio` times the odds; prevalence about .36 at 2."""
    rng = np.random.default_rng(4)
    X, group = rng.normal(size=(n, 2)), np.where(rng.random(n) < 0.4, "<65", "65+")
    shown = expit(-1.2 + X[:, 0] + 0.5 * X[:, 1])
    tested = rng.random(n) < expit(0.6 * X[:, 0])
    y = (rng.random(n) < np.where(tested, shown, tilted(shown, ratio))).astype(float)
    problem = SelectiveLabels.from_arrays(
        X,
        np.where(tested, y, np.nan),
        group=group if grouped else None,
        prevalence=dict(prevalence) if isinstance(prevalence, tuple) else prevalence,
    )
    return dcem.audit_labels(
        problem, learners=lambda classes, seed: {"linear": LogisticRegression()}
    )


def keys(audit):
    return {finding.key: finding for finding in audit.findings}


def test_a_rate_that_contradicts_the_assumption_is_a_finding():
    found = audited(0.36)
    (known,) = found.known
    assert known.disagrees
    assert known.odds_ratio.low < 2 < known.odds_ratio.high
    assert known.difference.high < 0
    assert known.estimated.value == pytest.approx(audited().prevalence[0].doubly_robust.value)
    finding = keys(found)["known-rate-disagrees"]
    assert finding.severity == "serious"
    assert "Features do not explain who is tested" in finding.headline
    (assumption, *_) = found.assumptions
    assert (assumption.testable, assumption.severity) == ("tested", "serious")
    page = to_markdown(audit_document(found))
    assert "Known prevalence" in page
    assert "known for everybody" in page


def test_a_stated_rate_of_a_group_that_is_withheld_stays_in_the_table():
    found = audited((("<65", 0.34), ("65+", 0.37)))
    hidden = replace(found.counts[0], tested=found.counts[0].rows - 5)  # five are untested
    masked = without_small_cells(replace(found, counts=(hidden, *found.counts[1:])))
    first, _ = masked.known
    assert (first.group, first.stated) == ("<65", found.known[0].stated)
    assert "withheld" in first.odds_ratio.reason
    assert "withheld" in first.difference.reason
    assert not keys(masked).keys() & {"known-rate-unused"}
    assert set(keys(masked)["known-rate"].values["rates"]) == {"<65", "65+"}


def test_equal_stated_rates_are_not_a_difference():
    """The models meet both to ten decimals, and a difference of the eleventh is not one."""
    found = audited((("<65", 0.3), ("65+", 0.3)), ratio=1.0)
    assert found.prevalence_sensitivity.breakdown.with_interval == 1
    assert "holds-anyway" not in keys(found)
    assert not found.test_errors.p_value < 0.05
    stated = audited((("<65", 0.28), ("65+", 0.32)), ratio=1.0)  # what is stated still is
    assert "more common in group 65+" in keys(stated)["holds-anyway"].headline


def test_a_rate_that_agrees_says_what_would_have_been_noticed():
    plain = audited(ratio=1.0)
    found = audited(round(plain.prevalence[0].doubly_robust.value, 3), ratio=1.0)
    (known,) = found.known
    assert not known.disagrees
    low, high = known.detectable
    assert 0.4 < low < 0.9
    assert 1.1 < high < 2
    assert keys(found)["known-rate-agrees"].severity == "fine"
    assert "known-rate-disagrees" not in keys(found)


def test_bounds_and_sensitivity_are_tightened():
    plain, found = audited(), audited(".33-.35")
    for before, after in zip(plain.prevalence, found.prevalence, strict=True):
        assert after.bounds[0] >= before.bounds[0]
        assert after.bounds[1] < before.bounds[1]
    assert found.prevalence[0].bounds == pytest.approx((0.33, 0.35), abs=1e-3)
    both = audited((("65+", 0.37), ("<65", 0.3)))
    assert both.prevalence_sensitivity.breakdown.with_interval == np.inf  # it is known
    assert "holds-anyway" in keys(both)
    # with the sum of outcomes known an adversary has less room
    before, after = (one.performance_sensitivity.auc["everybody"].limits for one in (plain, found))
    assert before[0] < after[0] < after[1] < before[1]


def test_groups_that_are_not_stated_are_named():
    finding = keys(audited((("65+", 0.36),)))["known-rate"]
    assert finding.groups == ("<65",)
    assert finding.severity == "caution"


def test_without_groups():
    found = audited(0.34, grouped=False)
    assert found.prevalence[0].doubly_robust.value == pytest.approx(0.34)
    assert found.prevalence_sensitivity.breakdown.value in (1.0, np.inf)


def test_what_a_known_rate_leaves_nothing_to_say_of():
    """It is that of the truth: what a test may miss moves the untested, not the prevalence."""
    assert audited().test_errors.points
    found = audited(0.36).test_errors
    assert not found.points
    assert found.pair is None


@pytest.mark.parametrize("away", [0.15, 0.4])  # at a site that tests next to nobody
def test_a_rate_that_is_known_of_everybody_is_told_where_some_are_out_of_reach(away):
    """As it was stated: neither as an estimate, nor with the number of those within reach."""
    rng = np.random.default_rng(4)
    X = np.stack([rng.normal(size=3000), rng.random(3000) < away], axis=1)
    tested = rng.random(3000) < np.where(X[:, 1] == 1, 0.001, 0.4)
    y = np.where(tested, rng.random(3000) < expit(X[:, 0] - 1), np.nan)
    problem = SelectiveLabels.from_arrays(X, y, prevalence=".15-.25", test_sensitivity=0.9)
    found = dcem.audit_labels(
        problem, learners=lambda classes, seed: {"linear": LogisticRegression()}
    )
    (known,) = found.known
    assert known.odds_ratio.estimable == (away < 0.2)
    assert found.prevalence[0].within.estimable
    assert found.prevalence[0].limits[1] == pytest.approx(0.25, abs=1e-3)
    page = to_markdown(audit_document(found))
    assert f"known for everybody it is {percent(known.stated.value)} (15 % to 25 %)." in page
    assert f"known prevalence is {percent(known.stated.value)}.** As stated, 15 % to 25 %" in page
    assert "estimate for everybody" not in page


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (0.2, "As stated, without an interval; among the tested"),
        ({"a": 0.2}, "and among everybody between 18.8 % and 39.7 %, given what is known."),
    ],
)
def test_what_is_known_is_told_where_it_bears_on_the_prevalence(stated, said):
    rng = np.random.default_rng(4)
    X = np.stack([rng.normal(size=2000), rng.random(2000) < 0.15], axis=1)
    tested = rng.random(2000) < np.where(X[:, 1] == 1, 0.001, 0.4)
    y = np.where(tested, rng.random(2000) < expit(X[:, 0] - 1), np.nan)
    group = rng.choice(["a", "b"], 2000)
    problem = SelectiveLabels.from_arrays(X, y, group=group, prevalence=stated)
    found = dcem.audit_labels(
        problem, learners=lambda classes, seed: {"linear": LogisticRegression()}
    )
    assert said in " ".join(one.text for one in found.findings if one.about == "prevalence")
