"""An audit of an imperfect test: stated rates, none stated, and what must not be shown."""

import html
import io
import json
import re

import numpy as np
import pytest
from rich.console import Console
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dcem.audit import audit_labels, without_small_cells
from dcem.report.audit import audit_document
from dcem.report.to_html import to_html
from dcem.report.to_markdown import to_markdown
from dcem.report.to_terminal import to_terminal
from dcem.table.labels import SelectiveLabels


def audited(n=3000, positives_of_b=None, **rates):
    """Equal prevalence in both groups; the test finds half in a and all in b."""
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(n, 2)), np.where(rng.random(n) < 0.5, "a", "b")
    truth = rng.random(n) < expit(-1.5 + X[:, 0])
    result = (truth & (rng.random(n) < np.where(group == "a", 0.5, 1.0))).astype(float)
    if positives_of_b is not None:
        result[np.flatnonzero((group == "b") & (result == 1))[positives_of_b:]] = 0
    tested = rng.random(n) < 0.5
    if positives_of_b is not None:
        tested |= result == 1
    problem = SelectiveLabels.from_arrays(X, np.where(tested, result, np.nan), group=group, **rates)
    learners = {"linear": LogisticRegression()}
    return audit_labels(problem, learners=lambda classes, seed: learners), truth


@pytest.fixture(scope="module")
def unstated():
    return audited()


@pytest.fixture(scope="module")
def stated():
    return audited(test_sensitivity={"a": 0.5, "b": 1.0})


def finding(audit, key):
    return next((one for one in audit.findings if one.key == key), None)


def test_a_false_difference_could_be_the_tests(unstated):
    audit, _ = unstated
    found = finding(audit, "test-could-explain")
    assert found.groups == ("b", "a")
    assert found.values["equal_at"] == pytest.approx(0.5, abs=0.12)


def test_stated_rates_correct_everything(stated, unstated):
    audit, truth = stated
    assert finding(audit, "test-could-explain") is None
    assert finding(audit, "test-errs").values["corrected"] == audit.prevalence[0].doubly_robust
    every, a, b = audit.prevalence
    for item in (every, a, b):
        assert item.doubly_robust.low < truth.mean() < item.doubly_robust.high
    assert every.recorded == unstated[0].prevalence[0].recorded
    assert every.doubly_robust.value > unstated[0].prevalence[0].doubly_robust.value + 0.03
    assert every.bounds[0] > every.recorded.value
    assert not audit.test_errors.points
    assert any("errs at the stated rates" in one.name for one in audit.assumptions)


def test_the_grid_is_rogan_and_gladen(unstated):
    audit, _ = unstated
    shown = audit.prevalence[0].doubly_robust.value
    for point in audit.test_errors.points:
        s, c = point.sensitivity, point.specificity
        expected = (shown + c - 1) / (s + c - 1)
        if 0 < expected < 1 and not np.isnan(point.prevalence):
            assert point.prevalence == pytest.approx(expected, abs=1e-6)
    assert np.isnan([point.prevalence for point in audit.test_errors.points]).any()


def test_all_writers_have_the_same_numbers(unstated):
    document = audit_document(unstated[0])
    page = html.unescape(re.sub(r"<[^>]+>", " ", to_html(document)))
    texts = [re.sub(r"\s", " ", text) for text in (page, to_markdown(document))]
    point = next(
        one
        for one in unstated[0].test_errors.points
        if (one.sensitivity, one.specificity) == (0.5, 1.0)
    )
    wanted = f"{100 * point.prevalence:.1f} %", f"{point.auc:.3f}".removeprefix("0")
    for text in texts:
        assert all(number in text for number in wanted)
    saved = json.loads(unstated[0].to_json())["test_errors"]["points"]
    assert any(one["prevalence"] == pytest.approx(point.prevalence, abs=1e-6) for one in saved)
    console = Console(record=True, width=120, file=io.StringIO())
    to_terminal(document, console)
    assert f"{unstated[0].test_errors.equal_at:.2f}".removeprefix("0") in console.export_text()


def test_nothing_is_told_of_a_group_with_few_positives():
    audit, _ = audited(positives_of_b=6)
    shown = without_small_cells(audit).test_errors
    assert shown.pair is None
    assert all(np.isnan(point.difference) for point in shown.points)


def test_rates_are_named_where_nothing_is_estimable():
    few = audited(n=60, test_sensitivity=0.5)[0]
    assert not few.prevalence[0].doubly_robust.estimable
    assert few.stated_rates.startswith("sensitivity .50")
    assert finding(few, "test-errs") is not None


def test_everybody_tested_is_corrected_too():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(800, 1))
    result = (rng.random(800) < 0.1).astype(float)
    with pytest.warns(match="Everybody is tested"):
        problem = SelectiveLabels.from_arrays(X, result, tested=np.ones(800), test_sensitivity=0.5)
    found = audit_labels(problem, learners=lambda *_: {"linear": LogisticRegression()})
    assert found.prevalence[0].doubly_robust.value == pytest.approx(2 * result.mean())
    assert found.prevalence[0].hidden.value == pytest.approx(0.5)
