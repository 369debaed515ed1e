"""Deciders in an audit: findings, advice, what a page may tell."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dcem.audit import audit_labels, without_small_cells
from dcem.report.audit import audit_document
from dcem.report.from_json import read_result
from dcem.report.to_json import to_json
from dcem.report.to_markdown import to_markdown
from dcem.table.labels import SelectiveLabels


def table(n: int = 2500, seed: int = 0, **changed: float) -> SelectiveLabels:
    """Six clinics that see a cause of the outcome which the table lacks."""
    rng = np.random.default_rng(seed)
    X, seen = rng.normal(size=(n, 2)), rng.normal(size=n)
    who, group = rng.integers(6, size=n), rng.integers(2, size=n)
    lenient = changed.get("spread", 1.0) * np.array([-4, -3, -2, -1, 6, 7])[who]
    y = rng.random(n) < expit(-1.5 + X[:, 0] + 3 * seen + changed.get("sick", 0.0) * (who % 2))
    tested = 0.5 * X[:, 0] + 3 * seen + rng.logistic(size=n) + lenient > 1
    return SelectiveLabels.from_arrays(
        X,
        np.where(tested, y, np.nan),
        group=np.array(["a", "b"])[group],
        decider=np.array(list("ABCDEF"))[who],
    )


def audited(problem: SelectiveLabels):
    return audit_labels(
        problem, learners=lambda classes, seed: {"linear": LogisticRegression(max_iter=200)}
    )


@pytest.fixture(scope="module")
def audit():
    return audited(table())


def test_what_deciders_see_refutes_that_features_explain_testing(audit):
    found = {finding.key: finding for finding in audit.findings}
    assert found["features-refuted"].severity == "serious"
    assert {"deciders-differ", "deciders-comparable", "decider-bounds"} <= found.keys()
    assert not {"deciders-refuted", "deciders-order", "deciders-mix"} & found.keys()
    bounds = audit.deciders.prevalence["everybody"]
    assert audit.prevalence[0].doubly_robust.low > bounds.high.value
    assert [one.name for one in audit.methods if one.verdict == "defensible"] == ["instrument"]
    first = audit.assumptions[0]
    assert first.severity == "serious"


def test_pages_name_few_deciders_and_come_back(audit, tmp_path):
    shown = without_small_cells(audit)
    named = [one.decider for one in shown.deciders.compared.effects]
    assert named == list("BCDEF")  # hardly anybody is tested by A
    told = next(one for one in shown.findings if one.key == "deciders-differ")
    ends = [one.shrunken.value for one in shown.deciders.compared.effects]
    assert (told.values["number"], told.values["shown"]) == (6, 5)
    assert (told.values["least"], told.values["most"]) == (ends[0], ends[-1])
    document = audit_document(audit)
    text = to_markdown(document)
    assert "How much depends on who decides" in text
    path = tmp_path / "audit.json"
    path.write_text(to_json(document), encoding="utf-8")
    assert "How much depends on who decides" in to_markdown(read_result(path))


def test_deciders_who_are_alike_and_some_who_get_sicker_people():
    alike = audited(table(spread=0.0))
    keys = {finding.key for finding in alike.findings}
    assert "deciders-alike" in keys
    assert "deciders-differ" not in keys
    verdicts = {one.name: one.verdict for one in alike.methods}
    assert verdicts["instrument"] == "not here"
    sick = audited(table(sick=5.0, n=4000))
    keys = {finding.key for finding in sick.findings}
    assert {"deciders-refuted", "deciders-find-unequally"} <= keys
    assert "decider-bounds" not in keys


def test_too_few_people_per_decider_are_told_so():
    problem = table(n=300)
    who = np.arange(300) % 140
    problem = SelectiveLabels.from_arrays(problem.X, problem.y_obs, decider=who)
    found = audited(problem)
    assert {f.key for f in found.findings} >= {"deciders-unknown"}
    assert found.deciders.compared is None
    assert "cannot be compared" in to_markdown(audit_document(found))


def test_deciders_who_are_compared_are_not_said_to_be_beyond_comparison():
    """Enough people to compare how often deciders test, and too few for bounds."""
    problem = table(n=400)
    who = np.arange(400) % 4
    found = audited(SelectiveLabels.from_arrays(problem.X, problem.y_obs, decider=who))
    told = {finding.key: finding.headline for finding in found.findings}
    assert found.deciders.compared is not None
    assert told["deciders-unknown"] == "Differences between deciders give no bounds here"


def test_without_deciders_nothing_is_said(audit):
    problem = table(n=400)
    plain = SelectiveLabels.from_arrays(problem.X, problem.y_obs)
    found = audited(plain)
    assert found.deciders is None
    assert not [f for f in found.findings if f.about == "deciders"]


def test_deciders_of_one_place_are_said_to_be_compared_with_each_other():
    some = table()
    place = np.array([0.0, 0, 0, 1, 1, 1])[some.decider]
    names = np.array(some.decider_names)[some.decider]
    problem = SelectiveLabels.from_arrays(
        np.column_stack([some.X, place]),
        some.y_obs,
        decider=names,
        feature_names=["age", "score", "ward=north"],
    )
    linear = {"linear": LogisticRegression(max_iter=200)}
    found = audit_labels(
        problem, learners=lambda classes, seed: linear, sources=["age", "score", "ward"]
    )
    told = {finding.key: finding.text for finding in found.findings}
    assert "6 deciders, each compared with those with the same ward" in told["deciders-differ"]
    assert "between deciders with the same ward" in told["deciders-comparable"]
