"""Class: exact. Methods and models: one test for each repair that changed a number."""

import names
import numpy as np
import pandas as pd
import pytest
from made_rows import expit
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytestmark = pytest.mark.filterwarnings("ignore")


def world(n=500, seed=0, slope=1.0, rate=-0.5):
    """Features, and labels that are missing where nobody looked."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    truth = rng.random(n) < expit(slope * X[:, 0] - 1)
    return X, np.where(rng.random(n) < expit(slope * X[:, 1] + rate), truth, np.nan)


def default(parts=("linear",), **settings):
    """The default made of these parts."""
    return names.made("ensemble", **settings).set_params(parts=parts, random_state=0)


def scores(model, X):
    return names.scores(model, {"X": X, "group": None})


def test_all_untested_rows_are_one_persons():
    """The default never ended where all untested rows were one person's."""
    X, y = world(80)
    y = np.where(np.arange(80) < 5, np.nan, (X[:, 0] > 0) * 1.0)
    problem = names.arrays(X, y, id=np.maximum(np.arange(80), 4))
    model = default(("network",), steps=5, folds=2).fit_problem(problem)
    assert np.isfinite(scores(model, X)).all()


def test_the_number_of_cores_changes_nothing():
    """Results of the default depended on the number of cores (all untested rows in one fold)."""
    X, y = world(80)
    y = np.where(np.arange(80) < 5, np.nan, (X[:, 0] > 0) * 1.0)
    problem = names.arrays(X, y, id=np.maximum(np.arange(80), 4))
    settings = {"steps": 5, "folds": 2}
    alone, shared = (
        scores(default(("network",), processes=n, **settings).fit_problem(problem), X)
        for n in (1, 2)
    )
    assert (alone == shared).all()


def test_columns_of_very_small_units_are_no_constants():
    """Columns of very small units counted as constant in most learners."""
    X, y = world()
    for learner in ("linear", "forest", "smooth"):
        plain, small = (
            scores(names.made("tested-only", learner=learner, seed=0).fit(unit * X, y), unit * X)
            for unit in (1.0, 1e-15)
        )
        assert small == pytest.approx(plain, abs=1e-3)
        assert plain.std() > 0.05


def test_a_rare_sample_at_random_is_like_everybody():
    """Where fewer than 1 % are tested at random, everybody was unlike the tested."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(12_000, 2)), columns=["a", "b"])
    truth = (rng.random(12_000) < expit(frame["a"] - 0.5)) * 1.0
    frame["y"] = truth.where(rng.random(12_000) < 0.008)
    fitted = names.quick_default(names.read(frame, label="y"))
    assert names.like_tested(fitted, frame[["a", "b"]][:500]).mean() > 0.9


@pytest.mark.parametrize("method", ["ipw", "dr-learner"])
def test_known_probabilities_are_not_clipped(method):
    """`ipw` and `dr-learner` clipped known probabilities."""
    row = np.arange(240)
    X, _ = world(240)
    tested, chance = (row < 120) | (row % 10 == 0), np.where(row < 120, 1, 0.01)
    y = np.where(tested, (X[:, 0] > 0) ^ (row % 7 == 0), np.nan)
    problem = names.arrays(X, y, testing_probability=chance, id=row)
    usual, other = (
        scores(
            names.made(method, learner="linear", smallest_chance=least, seed=0).fit_problem(
                problem
            ),
            X,
        )
        for least in (0.05, 0.2)
    )
    assert usual == pytest.approx(other)


def test_estimates_do_not_raise_small_known_probabilities():
    """Tests drawn by `next-tests` hardly counted; audit and comparison raised small ones."""
    row = np.arange(4000)
    sure = row < 2000
    chance = np.where(sure, 1.0, 0.02)  # forty of the others are tested, one of them is ill
    tested = sure | (row % 50 == 0)
    y = np.where(tested, np.where(sure, row % 5 < 3, row == 2000), np.nan)
    X = np.random.default_rng(0).normal(size=(4000, 1))
    problem = names.arrays(X, y, testing_probability=chance)
    for low in (0.02, 0.002):  # below a hundredth of the mean, where modelled ones are raised
        chance = np.where(sure, 1.0, low)
        judge = names.judge(problem, chance, np.full(4000, 0.3), known=True)
        ill = np.array([1200 + 1 / low, 2000 + 40 / low])
        assert judge.prevalence("ipw").value == pytest.approx(ill[0] / ill[1], abs=1e-6)


def test_risks_of_a_useless_table_hardly_vary():
    """The default's risks varied by chance where tests hardly tell people apart."""
    spread = []
    for seed in range(4):
        X, y = world(500, seed, slope=1.0)
        y = np.where(np.isnan(y), np.nan, np.random.default_rng(seed).random(500) < 0.27)
        model = default(("linear", "boost"), steps=120).fit(X, y)
        spread.append(scores(model, world(500, 9)[0]).std())
    assert np.median(spread) < 0.03


@pytest.mark.parametrize(("heavy", "calibrated"), [(1e6, False), (2.0, True)])
def test_a_few_who_outweigh_all_others_calibrate_nothing(heavy, calibrated):
    """With weights so uneven everybody had their result as a risk, called calibrated."""
    X, y = world(1000)
    weight = np.where(np.cumsum(y == 1) <= 2, heavy, 1.0)
    assert default().fit_problem(names.arrays(X, y, weight=weight)).calibrated == calibrated


def test_networks_of_few_steps_are_trained():
    """Networks of fewer than 60 steps were not trained."""
    X, y = world(600, slope=2.5)
    risks = [scores(default(("network",), steps=n, folds=2).fit(X, y), X) for n in (1, 50)]
    right = [names.auc(X[:, 0] > 0, risk) for risk in risks]
    assert right[1] > 0.85


def test_boosted_trees_are_fitted_to_few_results_that_err():
    """With test errors stated, boosted trees could not be fitted to some forty tests or fewer."""
    X, y = world(40, rate=1.0)
    problem = names.arrays(X, y, test_sensitivity=0.8)
    risk = scores(names.made("tested-only", learner="boost", seed=0).fit_problem(problem), X)
    assert ((risk > 0) & (risk < 1)).all()


@pytest.mark.parametrize("weight", [1e31, 1e-31])
def test_weights_beyond_all_bounds_are_refused(weight):
    """Weights beyond 1e30 or below 1e-30 are refused."""
    X, y = world(50)
    with pytest.raises(names.Refused, match="1e"):
        names.arrays(X, y, weight=np.where(np.arange(50) == 3, weight, 1.0))


def test_a_method_of_one_learner_takes_no_other():
    """`--method tested-only:linear --learner boost` fitted boosted trees (refused now)."""
    X, y = world(200)
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    with pytest.raises(names.Refused, match="learner"):
        names.fit_learner(names.read(frame, label="y"), "tested-only:linear", "boost")


def test_classifiers_that_take_no_weights_are_refused():
    """`ipw` ignored weights with classifiers that take none, and with pipelines."""
    X, y = world(300)
    with pytest.raises(names.Refused, match="weight"):
        names.made("ipw", learner=KNeighborsClassifier(), seed=0).fit(X, y)
    alone, piped = (
        scores(names.made("ipw", learner=learner, seed=0).fit(X, y), X)
        for learner in (
            LogisticRegression(C=1e6),
            make_pipeline(StandardScaler(), LogisticRegression(C=1e6)),
        )
    )
    assert piped == pytest.approx(alone, abs=1e-3)


def test_models_scored_together_know_the_prevalence():
    """Models scored together ignored a stated prevalence."""
    X, y = world(400)
    problem = names.arrays(X, y, prevalence=0.1)
    models = names.fit_all(names.made("tested-only", steps=5, seed=0), [problem, problem], [0, 1])
    for model, together in zip(
        models, names.scored_together(models, [problem, problem]), strict=True
    ):
        assert together == pytest.approx(np.asarray(model.predict_proba(problem))[:, 1])
        assert together.mean() == pytest.approx(0.1, abs=0.01)


def test_repeated_rows_do_not_show_an_unrecorded_cause():
    """`heckman` saw an unrecorded cause by chance in tables with repeated people or weights."""
    rng = np.random.default_rng(2)
    X, z = rng.normal(size=(600, 3)), rng.multivariate_normal([0, 0], [[1, -0.4], [-0.4, 1]], 600)
    y = np.where(X[:, 0] + X[:, 2] + z[:, 0] > 0, X[:, 0] + z[:, 1] > 0.3, np.nan)
    twice = np.tile(np.arange(600), 2)

    def p_value(rows, **facts):
        facts |= {"feature_names": list("abq"), "testing_only": ["q"]}
        problem = names.arrays(X[rows], y[rows], **facts)
        return names.made("heckman", seed=0).set_params(penalty=0.0).fit_problem(problem).p_value_

    once = p_value(slice(None))
    assert p_value(twice, id=twice) == pytest.approx(once, rel=0.05)
    assert p_value(slice(None), weight=np.full(600, 3.0)) == pytest.approx(once, rel=0.01)
    assert p_value(twice) < 0.5 * once


def test_as_many_coefficients_as_rows_are_loaded(tmp_path):
    """Models saved by `heckman` with as many rows as coefficients could not be loaded."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 39))
    y = np.where(rng.random(40) < 0.7, X[:, 0] > 0, np.nan)
    model = names.made("heckman", seed=0).fit(X, y)
    assert scores(names.reloaded(model, tmp_path / "m"), X) == pytest.approx(scores(model, X))


def test_a_model_that_was_replaced_scores_as_the_new_one(tmp_path):
    """A model that was replaced while a program ran went on scoring as the old one."""
    X, y = world(300)
    frame = pd.DataFrame(X, columns=list("abc"))
    for label in (y, 1 - y):
        model = names.quick_default(names.read(frame.assign(y=label), label="y"))
        model.save(tmp_path / "m")
        wanted = model.predict_proba(frame)[:, 1]
        assert names.scores_of_folder(tmp_path / "m", frame) == pytest.approx(wanted)
