"""The audit of found positives: what it says, what it withholds, what it refuses."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.support.found import found_table

from dcem.audit import positives_only
from dcem.audit.positives_only import Cuts
from dcem.audit.positives_only_findings import without_small_found
from dcem.audit.run import audit_labels
from dcem.report.from_json import read_result
from dcem.report.positives_only import found_document
from dcem.table.messages import InputError


@pytest.fixture(scope="module")
def audited():
    problem, y = found_table()
    return audit_found(problem), problem, y


def audit_found(problem):
    """With one quick kind of model."""
    return positives_only.audit_found(problem, learners=lambda *_: {"linear": LogisticRegression()})


def keys(audit):
    return {one.key for one in audit.findings}


def test_a_group_found_less_is_called_so_and_not_rarer(audited):
    audit, problem, y = audited
    assert {"found-less", "prevalence-differs", "groups-alike", "no-record"} <= keys(audit)
    (b,) = [one for one in audit.groups if one.group == "b"]
    wanted = y[problem.group == 1].mean() / y[problem.group == 0].mean()
    assert b.crude.value < 1 < b.prevalence.low
    assert b.prevalence.low < wanted < b.prevalence.high
    assert b.without_form.low < wanted < b.without_form.high
    assert b.rate.low < 1 / 3 < b.rate.high
    for one in audit.groups:
        truth = y[problem.group == problem.group_names.index(one.group)].mean()
        assert one.found.low <= one.at_least < truth < one.at_most


def test_where_groups_are_unlike_the_first_finding_says_so():
    problem, _ = found_table(bent=1.5)
    audit = audit_found(problem)
    assert audit.findings[0].key == "groups-unlike"
    assert (audit.check.departures[0].column, audit.check.departures[0].group) == ("x1", "b")
    assert {one.verdict for one in audit.methods if one.name == "purple"} == {"with care"}


def test_stated_rates_give_prevalence_and_are_held_against_the_features():
    problem, y = found_table(test_sensitivity={"<65": 0.6, "b": "0.15-0.25"})
    audit = audit_found(problem)
    assert "no-record" not in keys(audit)
    for one in audit.groups:
        truth = y[problem.group == problem.group_names.index(one.group)].mean()
        assert one.at_stated.low < truth < one.at_stated.high
    assert "rates-at-odds" not in keys(audit)
    forbidden = found_document(audit).opening.limits
    assert not any("how common" in one for one in forbidden)  # it is told
    wrong, _ = found_table(test_sensitivity=0.6)
    assert "rates-at-odds" in keys(audit_found(wrong))


def test_groups_of_few_found_people_are_not_compared_and_not_shown():
    problem, _ = found_table(1_500, (0.6, 0.4, 0.2), shares=(0.6, 0.35, 0.05))
    audit = without_small_found(audit_found(problem))
    (c,) = [one for one in audit.groups if one.group == "c"]
    assert not c.prevalence.estimable
    assert not c.found.estimable
    assert "group-too-small" in keys(audit)
    assert "c" in audit.withheld
    (b,) = [one for one in audit.groups if one.group == "b"]
    assert b.prevalence.estimable
    assert not b.rate.estimable  # with it, the counts of c could be told
    said = found_document(audit).opening.verdict
    assert "group b are found" not in said.answer
    assert not any("nan" in one or "withheld times" in one for one in said.sentences)


@pytest.mark.filterwarnings("ignore:.*no groups to compare")
def test_one_group_and_persons_with_several_rows():
    problem, _ = found_table(800, (0.5,))
    assert "no-groups" in keys(audit_found(problem))
    problem, _ = found_table(800)
    several = replace(problem, id=np.arange(800) // 2, weight=np.random.default_rng(0).random(800))
    assert audit_found(several).groups[1].prevalence.estimable


def test_rows_without_weight_do_not_count():
    problem, _ = found_table(800)
    some = replace(problem, weight=(np.arange(800) % 2) * 1.0)
    assert audit_found(some).configuration["rows"] == "400"
    with pytest.raises(InputError, match="weight is 0"):
        audit_found(replace(problem, weight=~problem.tested * 1.0))


def test_the_page_can_be_made_again_from_its_json(audited, tmp_path):
    audit, _, _ = audited
    place = tmp_path / "audit.json"
    audit.to_json(place)
    saved = json.loads(place.read_text())
    assert saved["groups"][1]["group"] == "b"
    again = read_result(place)
    assert [one.key for one in again.sections] == [
        *("found", "relative", "check", "sensitivity", "range", "methods", "unknown", "made")
    ]
    assert "Who is tested" not in audit.to_markdown()


@pytest.mark.filterwarnings("ignore::dcem.table.messages.DataWarning")
def test_what_needs_a_record_refuses_and_what_needs_none_too(audited):
    _, problem, _ = audited
    with pytest.raises(InputError, match="audit_found"):
        audit_labels(problem)
    with pytest.raises(InputError, match="audit_labels"):
        audit_found(found_table(positives_only=False)[0])


def test_cuts_reach_what_a_random_search_reaches_and_no_more():
    rng = np.random.default_rng(0)
    n, factor = 12, 1.7
    place = np.arange(n)  # 12 kinds of people, in both groups
    first, second = rng.random(n), rng.random(n)
    risk = rng.random(n)
    low, high = Cuts(risk, first, second, first / second).ends(factor)
    k = np.where(rng.random((20_000, n)) < 0.5, factor, 1 / factor)
    k = np.vstack([k, [np.where(place % 2 == 0, factor, 1 / factor)]])
    tried = np.log(k @ (risk * first) / first.sum()) - np.log(k @ (risk * second) / second.sum())
    assert low <= tried.min() + 1e-9
    assert high >= tried.max() - 1e-9
    assert high == pytest.approx(tried.max(), abs=1e-6)  # of 4,096 corners, all were tried
