"""Models moved to a known prevalence: every method through one seam."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import dcem
import dcem.scoring
from dcem import methods
from dcem.estimation.outcomes import tilted
from dcem.methods.fleets import score_many
from dcem.methods.known_rates import FOLLOWS
from dcem.methods.registry import ENTRIES
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError

pytestmark = pytest.mark.usefixtures("linear_models")

RATIO = 0.25  # odds of the untested against the tested at equal features


def world(n, seed):
    """Features (the last drives testing alone), result, group, truth and risk."""
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(n, 3)), np.where(rng.random(n) < 0.4, "a", "b")
    testing = expit(-0.5 + 1.2 * X[:, 2] - 0.6 * X[:, 0])
    shown = expit(-1.2 + X[:, 0] + 0.5 * X[:, 1])
    tested = rng.random(n) < testing
    unseen = tilted(shown, RATIO)
    y = (rng.random(n) < np.where(tested, shown, unseen)).astype(float)
    return X, np.where(tested, y, np.nan), group, y, testing * shown + (1 - testing) * unseen


X, result, group, truth, risk = world(2500, 0)
new = world(8000, 1)
KNOWN = 0.165


def fitted(name, prevalence=KNOWN, **params):
    small = {"parts": ("linear",)} if name == "ensemble" else {}
    model = methods.make(name, random_state=0, **small, **params)
    tested = ~np.isnan(result)
    return model.fit(X, result, tested=tested, sensitive_features=group, prevalence=prevalence)


@pytest.mark.parametrize(
    "name", ["tested-only:linear", "tested-only:boost", "y-obs:linear", "purple", "ensemble"]
)
def test_its_mean_risk_is_the_known_one_and_its_risks_are_nearer_the_truth(name):
    plain, model = fitted(name, None), fitted(name)
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(KNOWN, abs=1e-6)
    before, after = (one.predict_proba(new[0])[:, 1] for one in (plain, model))
    if ENTRIES[model.name].kind not in FOLLOWS:  # ranks stay
        assert dcem.metrics.auc(new[3], after) == pytest.approx(dcem.metrics.auc(new[3], before))
        return
    assert np.abs(after - new[4]).mean() < 0.6 * np.abs(before - new[4]).mean()
    # those who are seldom tested move most: ranks follow
    assert dcem.metrics.auc(new[3], after) > dcem.metrics.auc(new[3], before) + 0.002
    assert not hasattr(plain, "known_")


def test_a_rate_that_features_explain_moves_nothing():
    shown = fitted("tested-only:linear", None).predict_proba(X)[:, 1]
    model = fitted("tested-only:linear", float(shown.mean()))
    assert model.predict_proba(X)[:, 1] == pytest.approx(shown, abs=0.03)


@pytest.mark.filterwarnings("ignore:Everybody is tested")
def test_where_everybody_is_tested_nothing_is_moved_and_nothing_said_of_it():
    model = methods.make("tested-only:linear", random_state=0)
    model.fit(X, truth, tested=np.ones(len(X)), prevalence=KNOWN)
    assert not hasattr(model, "known_")
    assert model.learnt_from_ == ""


def test_a_second_fit_forgets_the_first():
    model = fitted("purple", None)
    assert model.found_rates_.keys() == {"a", "b"}
    model.fit(X, result, sensitive_features=group, test_sensitivity=0.9)
    assert not hasattr(model, "found_rates_")


def test_models_scored_together_are_moved_too():
    some = slice(600)
    problem = SelectiveLabels.from_arrays(
        X[some], result[some], group=group[some], prevalence=KNOWN
    )
    method = methods.make("tested-only", steps=5, random_state=0)
    fitted = methods.fit_many(method, [problem, problem], random_states=[0, 1])
    for one, score in zip(fitted, score_many(fitted, [problem, problem]), strict=True):
        np.testing.assert_array_equal(score, one.predict_proba(problem)[:, 1])


def test_with_the_group_and_by_group():
    model = fitted("tested-only-plus-group", "a=.2,b=.15", steps=20)
    score = model.predict_proba(X, sensitive_features=group)[:, 1]
    stated = 0.2 * (group == "a").mean() + 0.15 * (group == "b").mean()
    assert score.mean() == pytest.approx(stated, abs=1e-6)


def test_saved_loaded_and_fitted_again(tmp_path):
    model = fitted("tested-only:linear")
    model.save(tmp_path / "model")
    again = dcem.load_model(tmp_path / "model")
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text()
    assert "a known prevalence .165" in card
    with pytest.raises(InputError, match="cannot be exported"):
        model.export_onnx(tmp_path / "model.onnx")
    model.fit(X, result, tested=~np.isnan(result))
    assert not hasattr(model, "known_")


def test_a_table_is_scored_at_the_known_rate(tmp_path):
    frame = pd.DataFrame(X, columns=["age", "bp", "lab"]).assign(sepsis=result, sex=group)
    roles = dcem.Roles(label="sepsis", group="sex", prevalence=KNOWN)
    table = dcem.read_table(frame, roles)
    model = dcem.scoring.fit_table(table, "tested-only", learner="linear")
    assert model.score(frame).score.mean() == pytest.approx(KNOWN, abs=1e-5)
    model.save(tmp_path / "model")
    assert dcem.load_model(tmp_path / "model").roles.prevalence == KNOWN
