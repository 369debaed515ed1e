"""A change touches what docs/architecture.md says: a new thing enters by its registry alone.

Each test adds something from outside, as its own file and its one line would, and looks for it in
the rooms that were not told. (Tasks and backends: tests/benchmark/test_extending.py.)
"""

import sys
from dataclasses import dataclass, replace
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

from dcem import methods
from dcem.app import roles_form
from dcem.audit import audit_labels
from dcem.benchmark.toml_file import load_benchmark
from dcem.estimation import measures
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.outcomes import Masses
from dcem.learners import LEARNERS
from dcem.learners.linear import Linear
from dcem.methods import registry
from dcem.methods.describe import describe
from dcem.methods.supervised import TestedOnlyClassifier
from dcem.metrics import registry as measuring
from dcem.saving import load_model
from dcem.table.roles import Roles
from dcem.tasks import make_sinusoid


@dataclass(kw_only=True)
class CautiousClassifier(TestedOnlyClassifier):
    """Learn from the tested, by a linear model.

    *Idea.* As simple as can be.

    *Assumption.* The tested are like everybody.

    *When it fails.* Where they are not.
    """

    name: ClassVar[str] = "cautious"
    learner: object = "linear"


@pytest.fixture
def people():
    task = make_sinusoid(stream="independent", random_state=0, n_train=400, n_validation=100)
    return task.train


@pytest.fixture
def cautious(monkeypatch):
    home = ModuleType("dcem.methods.cautious")
    home.CautiousClassifier = CautiousClassifier
    monkeypatch.setitem(sys.modules, home.__name__, home)
    entry = registry.MethodEntry("cautious:CautiousClassifier", "tested", "it trusts the tested")
    monkeypatch.setitem(registry.ENTRIES, "cautious", entry)
    return "cautious"


def test_a_method_is_a_class_and_an_entry(cautious, people, tmp_path):
    assert cautious in methods.names(usable=True)
    assert describe(cautious).summary == "Learn from the tested, by a linear model."
    model = methods.make(cautious, random_state=0).fit_problem(people)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert np.array_equal(again.predict_proba(people.X), model.predict_proba(people.X))
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\n[[tasks]]\nkind = "sinusoid"\n[[methods]]\nname = "cautious"\n'
    )
    assert [one.name for one in load_benchmark(tmp_path / "mine.toml").methods] == [cautious]


def test_the_audit_advises_by_what_the_entry_says(cautious, monkeypatch, people):
    same = replace(registry.ENTRIES["ipw"], home="cautious:CautiousClassifier")
    monkeypatch.setitem(registry.ENTRIES, "weighted-anew", same)
    advice = {one.name: one for one in audit_labels(people).methods}
    assert advice[cautious].verdict == "with care"
    assert advice[cautious].reason.endswith("it trusts the tested")
    assert advice["weighted-anew"] == replace(advice["ipw"], name="weighted-anew")


def test_a_learner_is_a_class_and_an_entry(monkeypatch, people, tmp_path):
    class Timid(Linear):
        name = "timid"

        def predict_logit(self, X):
            return super().predict_logit(X) / 2

    home = ModuleType("timid_learner")
    home.Timid = Timid
    monkeypatch.setitem(sys.modules, home.__name__, home)
    monkeypatch.setitem(LEARNERS, "timid", "timid_learner:Timid")
    bold = methods.make("tested-only", learner="linear", random_state=0).fit_problem(people)
    timid = methods.make("tested-only", learner="timid", random_state=0).fit_problem(people)
    assert np.ptp(timid.predict_proba(people.X)) < np.ptp(bold.predict_proba(people.X))
    timid.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert np.array_equal(again.predict_proba(people.X), timid.predict_proba(people.X))


def test_a_metric_of_a_known_truth_is_an_entry(monkeypatch):
    def lowest_score(told):
        return float(told.rows.score.min())

    entry = measuring.Metric("lowest score", "higher", lowest_score)
    monkeypatch.setitem(measuring.RANKING, "lowest_score", entry)
    found = measuring.ranking([0, 1, 0, 1], [0.25, 0.8, 0.7, 0.3], ["a", "a", "b", "b"])
    assert (found["lowest_score"], found["auc"]) == (0.25, 0.75)


def test_a_fairness_measure_is_a_function_and_an_entry(monkeypatch, people):
    """False positives are the true ones where yes and no change places, intervals and all."""

    def false_positive_rate(acted, masses):
        return measures.true_positive_rate(acted, Masses(masses.negative, masses.positive))

    new = measures.Measure("false positive rate", "negatives", false_positive_rate)
    monkeypatch.setitem(measures.WHEN_ACTING, "false_positive_rate", new)
    rare = np.random.default_rng(0).random(len(people)) < 0.25  # so few stand behind the positives
    truth = rare.astype(float)
    judge = Evaluator(people, truth=truth)
    mirrored = Evaluator(people, truth=1 - truth, nuisances=judge.nuisances)
    acted = people.X[:, 1] > np.median(people.X[:, 1])
    found = judge.when_acting("truth", acted)
    assert found["false_positive_rate"]["0"].estimable
    same = mirrored.when_acting("truth", acted)
    assert found["false_positive_rate"] == same["true_positive_rate"]
    assert found["true_positive_rate"] == same["false_positive_rate"]


def test_every_role_of_columns_can_be_clicked():
    clicked = {
        *roles_form.CLICKED,
        *roles_form.TYPED,
        "features",
    }  # left to the others
    assert {*Roles.named("column", "columns")} <= clicked
    assert {*roles_form.RARE_ROLES} >= {"weight", "truth"}
