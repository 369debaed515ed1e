"""DCEMClassifier among scikit-learn's own: pipelines, folds, searches, calibration, ensembles."""

import re
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import sklearn
from choices import some
from forked import started
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import dcem
from dcem import methods
from dcem.methods import fit_many
from dcem.methods.fitting import member_seeds
from dcem.methods.propensity import PropensitySettings
from dcem.methods.registry import METHODS
from dcem.table.labels import SelectiveLabels

SMALL = {
    "hidden": (8,),
    "max_iter": 4,
    "steps": 5,
    "learning_rate": 1e-2,
    "propensity_settings": PropensitySettings(hidden=(8,), steps=20, learning_rate=1e-2),
    "random_state": 0,
}
N = 240


class Table:
    """Rows that carry their own number in the last column, so that a slice can be recognised."""

    def __init__(self):
        rng = np.random.default_rng(4)
        self.X = np.column_stack([rng.normal(size=(N, 2)), np.arange(N)])
        self.truth = (rng.random(N) < 1 / (1 + np.exp(-3 * self.X[:, 0]))).astype(int)
        self.group = rng.integers(0, 2, N)
        self.tested = rng.random(N) < 0.4 + 0.3 * self.group
        self.y = np.where(self.tested, self.truth, 0)  # as tables store it: no NaN

    def metadata(self):
        return {"tested": self.tested, "sensitive_features": self.group}

    def problem(self, rows=slice(None)) -> SelectiveLabels:
        y = np.where(self.tested, self.truth, np.nan)
        return SelectiveLabels.from_arrays(self.X[rows], y[rows], group=self.group[rows])


@pytest.fixture(scope="module")
def table() -> Table:
    return Table()


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(params=[True, False], ids=["routed", "plain"])
def either(request):
    with sklearn.config_context(enable_metadata_routing=request.param):
        yield


class Recorder(dcem.DCEMClassifier):
    """Remembers what each fit was given."""

    seen: ClassVar[list[tuple[np.ndarray, ...]]] = []

    weights: ClassVar[list[np.ndarray | None]] = []

    def fit(self, X, y, *, tested=None, sensitive_features=None, sample_weight=None):
        type(self).seen.append((np.asarray(X)[:, -1], tested, sensitive_features))
        type(self).weights.append(sample_weight)
        given = {"tested": tested, "sensitive_features": sensitive_features}
        return super().fit(X, y, **given, sample_weight=sample_weight)


@pytest.fixture
def recorder():
    Recorder.seen.clear()
    Recorder.weights.clear()
    return Recorder(**SMALL)


def assert_sliced(table: Table, fits: int) -> None:
    """Every fit got the metadata of exactly its own rows."""
    assert len(Recorder.seen) == fits
    for number, tested, group in Recorder.seen:
        rows = np.round(number).astype(int)
        assert np.array_equal(tested, table.tested[rows])
        assert np.array_equal(group, table.group[rows])


# -- folds and draws -------------------------------------------------------------------------------


def test_cross_validate_slices_the_metadata(table, either, recorder):
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    result = cross_validate(
        recorder, table.X, table.y, params=table.metadata(), cv=folds, scoring="roc_auc"
    )
    assert np.isfinite(result["test_score"]).all()
    assert_sliced(table, fits=3)
    assert all(len(number) == N * 2 // 3 for number, _, _ in Recorder.seen)


def test_pipeline_passes_the_metadata_on(table, routing):
    pipeline = make_pipeline(StandardScaler(), dcem.DCEMClassifier(**SMALL))
    pipeline.fit(table.X, table.y, **table.metadata())
    alone = dcem.DCEMClassifier(**SMALL)
    alone.fit(StandardScaler().fit_transform(table.X), table.y, **table.metadata())
    scaled = StandardScaler().fit_transform(table.X)
    assert np.array_equal(pipeline.predict_proba(table.X), alone.predict_proba(scaled))
    result = cross_validate(pipeline, table.X, table.y, params=table.metadata(), cv=2)
    assert np.isfinite(result["test_score"]).all()


def test_grid_search_slices_the_metadata(table, either, recorder):
    search = GridSearchCV(recorder, {"regularization": [0.0, 1.0]}, cv=2, scoring="roc_auc")
    search.fit(table.X, table.y, **table.metadata())
    assert_sliced(table, fits=2 * 2 + 1)
    assert search.best_params_["regularization"] in (0.0, 1.0)
    assert search.predict_proba(table.X).shape == (N, 2)


@pytest.mark.slow
def test_grid_search_in_two_processes_gives_the_same(table, routing):
    found = []
    for jobs in (1, 2):
        search = GridSearchCV(
            dcem.DCEMClassifier(**SMALL),
            {"temperature": [0.5, 1.0]},
            cv=2,
            scoring="roc_auc",
            n_jobs=jobs,
        )
        found.append(search.fit(table.X, table.y, **table.metadata()).cv_results_)
    np.testing.assert_allclose(found[0]["mean_test_score"], found[1]["mean_test_score"], atol=1e-6)


def test_calibration_slices_the_metadata(table, either, recorder):
    calibrated = CalibratedClassifierCV(recorder, cv=3, method="sigmoid")
    calibrated.fit(table.X, table.y, **table.metadata())
    assert_sliced(table, fits=3)
    probability = calibrated.predict_proba(table.X)
    np.testing.assert_allclose(probability.sum(1), 1)


def test_bagging_draws_by_weights(table, routing, recorder):
    """Bagging resamples by weights where it can: every fit gets all rows and how often they count,
    and the metadata of all of them."""
    bag = BaggingClassifier(recorder, n_estimators=3, random_state=0)
    bag.fit(table.X, table.y, **table.metadata())
    assert_sliced(table, fits=3)
    assert all(len(number) == N for number, _, _ in Recorder.seen)
    assert all(weight.sum() == N and weight.min() == 0 for weight in Recorder.weights)


# -- without routing ----------------------------------------------------------------------------


def test_a_plain_call_needs_no_routing(table):
    fitted = dcem.DCEMClassifier(**SMALL).fit(table.X, table.y, **table.metadata())
    by_absence = dcem.DCEMClassifier(**SMALL).fit(
        table.X, np.where(table.tested, table.y, np.nan), sensitive_features=table.group
    )
    assert np.array_equal(fitted.predict_proba(table.X), by_absence.predict_proba(table.X))
    with pytest.warns(dcem.DataWarning, match="tested"):
        dcem.DCEMClassifier(**SMALL).fit(table.X, table.y)


def test_without_routing_a_pipeline_takes_prefixed_names_and_bagging_refuses(table):
    pipeline = make_pipeline(StandardScaler(), dcem.DCEMClassifier(**SMALL))
    named = {f"dcemclassifier__{name}": value for name, value in table.metadata().items()}
    pipeline.fit(table.X, table.y, **named)
    assert pipeline[-1].group_names_ == ("0", "1")
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        BaggingClassifier(dcem.DCEMClassifier(**SMALL)).fit(table.X, table.y, **table.metadata())


# -- own parts ----------------------------------------------------------------------------------


def own_network(n_inputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(n_inputs, 6), nn.LayerNorm(6), nn.GELU(), nn.Linear(6, 1))


def test_an_own_network(table):
    fitted = dcem.DCEMClassifier(**SMALL, network=own_network, n_members=2)
    fitted.fit(table.X, table.y, **table.metadata())
    assert fitted.fleet_.architecture.n_outputs == 1
    assert fitted.predict_proba(table.X).std() > 0


def test_a_scikit_learn_propensity_model(table):
    fitted = dcem.DCEMClassifier(**SMALL, propensity=LogisticRegression(C=1e4))
    fitted.fit(table.X, table.y, **table.metadata())
    assert isinstance(fitted.propensity_model_, LogisticRegression)
    # the model is the same one fitted by hand to [x, x a, a], rows held out left aside
    rows = fitted.train_rows_
    x = fitted._prepare(table.X[rows])
    a = table.group[rows, None].astype(np.float32)
    by_hand = LogisticRegression(C=1e4).fit(np.hstack([x, x * a, a]), table.tested[rows])
    expected = by_hand.predict_proba(np.hstack([x, x * a, a]))[:, 1]
    np.testing.assert_allclose(fitted.propensity_, expected, atol=1e-5)


def test_an_ensemble_is_the_mean_of_its_members(table):
    held, rows = table.problem(slice(180, N)), table.problem(slice(0, 180))
    ensemble = dcem.DCEMClassifier(**SMALL, n_members=3)
    ensemble.fit_problem(rows, validation=held)
    singles = [
        dcem.DCEMClassifier(**(SMALL | {"random_state": seed})).fit_problem(rows, validation=held)
        for seed in member_seeds(0, 3)
    ]
    each = np.stack([one.predict_proba(table.X)[:, 1] for one in singles])
    np.testing.assert_allclose(ensemble.predict_proba(table.X)[:, 1], each.mean(0), atol=1e-4)
    np.testing.assert_allclose(ensemble.spread(table.X), each.std(0), atol=1e-4)
    assert ensemble.spread(table.X).max() > 1e-3
    assert len(ensemble.n_iter_) == 3
    assert ensemble.pseudo_labels_.shape == (180,)


def test_support_knows_what_was_tested(table):
    X = table.X[:, :2]
    fitted = dcem.DCEMClassifier(**SMALL).fit(X, table.y, **table.metadata())
    support = fitted.support(X)
    assert list(support) == ["distance", "testing_probability", "supported"]
    assert support["supported"][table.tested].mean() > 0.95
    far = fitted.support(np.array([[40.0, -40.0]]))
    assert not far["supported"].any()
    assert far["distance"][0] > 10
    # an ensemble that agrees there would not have said so
    assert support["testing_probability"].between(0, 1).all()


@pytest.mark.parametrize("size", [1, 7, N])
def test_scores_do_not_depend_on_the_batch(table, size):
    fitted = dcem.DCEMClassifier(**SMALL).fit(table.X, table.y, **table.metadata())
    whole = fitted.predict_proba(table.X)
    parts = [fitted.predict_proba(table.X[i : i + size]) for i in range(0, N, size)]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=1e-12)


def test_missing_features(table):
    X = table.X.copy()
    X[::3, 0] = np.nan
    fitted = dcem.DCEMClassifier(**SMALL).fit(X, table.y, **table.metadata())
    assert fitted.preprocessor_.n_outputs == 4  # one indicator
    indicated = fitted.predict_proba(X)
    X_other = np.where(np.isnan(X), fitted.preprocessor_.median, X)
    assert np.isfinite(indicated).all()
    # the median in place of a missing value is not the same as a missing value
    assert not np.allclose(indicated[::3], fitted.predict_proba(X_other)[::3])
    # a column that was never missing in training may be later
    X[1, 1] = np.nan
    assert np.isfinite(fitted.predict_proba(X)).all()


def test_validation_rows_are_matched_by_the_names_of_groups(table):
    """Codes count levels in order of appearance in each table; names are what they mean."""
    names = np.array(["zulu", "alpha"])[table.group]
    y = np.where(table.tested, table.truth, np.nan)
    train = SelectiveLabels.from_arrays(table.X, y, group=names)
    rows = names == "zulu"  # alone, zulu is code 0; in training it is code 1
    with pytest.warns(dcem.DataWarning, match="no groups to compare"):
        only = SelectiveLabels.from_arrays(table.X[rows], y[rows], group=names[rows])
    assert only.group_names != train.group_names
    fits = [
        dcem.DCEMClassifier(**SMALL).fit_problem(train, validation=held)
        for held in (only, train.subset(rows))
    ]
    assert fits[0].history_ == fits[1].history_


def test_without_groups_those_of_validation_rows_do_not_matter(table):
    held = table.problem(slice(120, None))
    bare = SelectiveLabels.from_arrays(held.X, held.y_obs)
    fits = [
        dcem.DCEMClassifier(**SMALL).fit(table.X, table.y, tested=table.tested, validation=rows)
        for rows in (held, bare)
    ]
    assert fits[0].history_ == fits[1].history_


def test_validation_rows_that_cannot_say_when_to_stop_are_refused(table):
    untested = table.problem().subset(~table.tested)
    for name in ("dcem", "tested-only"):
        with pytest.raises(dcem.InputError, match=r"None of the .* rows of `validation`"):
            methods.make(name).fit_problem(table.problem(), validation=untested)
    with pytest.raises(dcem.InputError, match="must be a SelectiveLabels"):
        dcem.DCEMClassifier().fit(table.X, table.y, tested=table.tested, validation=(table.X, 1))


def test_a_part_of_a_problem_in_which_nobody_is_tested_is_refused(table):
    """`subset` makes it without a check: it may be wanted for prediction."""
    with pytest.raises(dcem.InputError, match="Nobody is tested"):
        dcem.DCEMClassifier(**SMALL).fit_problem(table.problem().subset(~table.tested))


def test_weights_reach_a_foreign_propensity_model(table):
    weight = np.where(table.X[:, 1] > 0, 5.0, 1.0)
    y = np.where(table.tested, table.truth, np.nan)
    weighted = SelectiveLabels.from_arrays(table.X, y, group=table.group, weight=weight)
    settings = SMALL | {"preprocess": None, "dtype": "float64"}
    model = dcem.DCEMClassifier(**settings, propensity=LogisticRegression(max_iter=5000))
    model.fit_problem(weighted, validation=weighted)
    a = table.group[:, None]
    inputs = np.hstack([table.X, table.X * a, a])
    expected = LogisticRegression(max_iter=5000).fit(inputs, table.tested, sample_weight=weight)
    np.testing.assert_allclose(model.propensity_, expected.predict_proba(inputs)[:, 1], atol=1e-9)
    deaf = make_pipeline(StandardScaler(), LogisticRegression())
    with pytest.warns(dcem.DataWarning, match="takes no sample_weight"):
        dcem.DCEMClassifier(**settings, propensity=deaf).fit_problem(weighted, validation=weighted)


def test_an_ensemble_on_minibatches_shares_a_foreign_propensity_model(table):
    settings = SMALL | {"n_members": 2, "propensity": LogisticRegression(max_iter=5000)}
    batches = dcem.DCEMClassifier(**settings, batch_size=64).fit_problem(table.problem())
    whole = dcem.DCEMClassifier(**settings, batch_size=None).fit_problem(table.problem())
    np.testing.assert_allclose(batches.propensity_, whole.propensity_, atol=1e-6)
    assert np.isfinite(batches.predict_proba(table.X)).all()


# -- many at once, interrupted --------------------------------------------------------------------


def test_many_fits_are_single_fits_and_parts_do_not_mix(table, tmp_path):
    problems = [table.problem(slice(0, 200)), table.problem(slice(20, 240)), table.problem()]
    estimator = dcem.DCEMClassifier(**SMALL, dtype="float64")
    singles = [
        dcem.DCEMClassifier(**SMALL, dtype="float64").fit_problem(problem) for problem in problems
    ]
    # in parts of one the same seed and shape come again and again: no part takes another's state
    for options in ({}, {"max_fleet": 1, "checkpoint": tmp_path / "run"}):
        for one, single in zip(fit_many(estimator, problems, **options), singles, strict=True):
            np.testing.assert_allclose(
                one.predict_proba(table.X), single.predict_proba(table.X), atol=1e-9
            )
            assert np.array_equal(one.train_rows_, single.train_rows_)
            np.testing.assert_allclose(one.pseudo_labels_, single.pseudo_labels_, atol=1e-9)


@pytest.mark.parametrize("batch_size", [32, 180])
def test_many_fits_on_minibatches_are_single_fits_too(table, batch_size):
    """Batches are drawn from a table's own rows, never from what pads it to another's length; and
    180 rows are fewer than the longer tables have but no fewer than the shortest."""
    problems = [table.problem(slice(0, 160)), table.problem(), table.problem(slice(20, 230))]
    settings = SMALL | {"dtype": "float64", "batch_size": batch_size}
    together = fit_many(
        dcem.DCEMClassifier(**settings), problems, validations=[table.problem()] * 3
    )
    for one, problem in zip(together, problems, strict=True):
        single = dcem.DCEMClassifier(**settings).fit_problem(problem, validation=table.problem())
        np.testing.assert_allclose(
            one.predict_proba(table.X), single.predict_proba(table.X), atol=1e-9
        )


RUN = """
import os
import signal
import sys
import numpy as np
import dcem
from dcem.methods import fit_many
from dcem.methods.propensity import PropensitySettings
from dcem.methods.registry import METHODS
from dcem.table.labels import SelectiveLabels
from pathlib import Path

rng = np.random.default_rng(4)
X = rng.normal(size=(300, 2))
y = np.where(rng.random(300) < 0.6, rng.integers(0, 2, 300), np.nan)
problem = SelectiveLabels.from_arrays(X, y)
file = Path(sys.argv[1]) if sys.argv[1] != "none" else None

def progress(done, total):
    print(done, flush=True)
    if sys.argv[3] == "die" and done == 3:
        os.kill(os.getpid(), signal.SIGKILL)

fits = fit_many(
    dcem.DCEMClassifier(
        hidden=(8,), max_iter=6, steps=5, batch_size=64, patience=9,
        propensity_settings=PropensitySettings(hidden=(8,), steps=20),
    ),
    [problem, problem], random_states=[1, 2], checkpoint=file, progress=progress,
)
np.save(sys.argv[2], np.stack([one.predict_proba(X) for one in fits]))
"""


def test_kill_9_and_resume_gives_the_same_bits(tmp_path, monkeypatch, capsys):
    """Begun here, killed, and ended by a program that knows the file alone."""
    script, file = tmp_path / "run.py", tmp_path / "run.safetensors"
    script.write_text(RUN)

    def here(*arguments):
        monkeypatch.setattr(sys, "argv", ["run.py", *map(str, arguments)])
        runpy.run_path(str(script))

    killed = started(here, file, tmp_path / "killed.npy", "die")
    killed.join(120)
    assert killed.exitcode == -signal.SIGKILL
    assert not (tmp_path / "killed.npy").exists()
    there = [sys.executable, script, file, tmp_path / "resumed.npy", "live"]
    resumed = subprocess.run(there, capture_output=True, text=True, check=True)
    assert resumed.stdout.split() == [*"456"]
    capsys.readouterr()
    here("none", tmp_path / "whole.npy", "live")
    assert capsys.readouterr().out.split() == [*"123456"]
    assert np.array_equal(np.load(tmp_path / "resumed.npy"), np.load(tmp_path / "whole.npy"))


def test_a_fleet_too_large_for_memory_is_fitted_in_parts(table, monkeypatch):
    import torch

    problems = [table.problem(slice(i, 200 + i)) for i in range(5)]
    estimator = dcem.DCEMClassifier(**SMALL)
    expected = fit_many(estimator, problems)
    real = dcem.DCEMClassifier._train

    def small_machine(self, data):
        if len(data.seeds) > 2:
            raise torch.OutOfMemoryError("no room for so many")
        return real(self, data)

    monkeypatch.setattr(dcem.DCEMClassifier, "_train", small_machine)
    with pytest.warns(RuntimeWarning, match="networks does not fit"):
        parts = fit_many(estimator, problems)
    for one, other in zip(parts, expected, strict=True):
        np.testing.assert_allclose(
            one.predict_proba(table.X), other.predict_proba(table.X), atol=1e-4
        )


@pytest.mark.parametrize(
    "name",
    some(
        [name for name, made in METHODS.items() if hasattr(made, "_train")],  # as one fleet
        ["dcem", "dr-learner", "group-only"],  # EM, several stages, one stage
    ),
)
def test_an_ensemble_too_large_for_memory_is_fitted_in_parts(table, monkeypatch, name):
    import torch

    small = {"hidden": (4,), "steps": 3, "max_iter": 2, "n_members": 5, "random_state": 0}
    small["learner"] = "network"  # whatever a method learns with unless told
    model = methods.make(name)
    model.set_params(**{key: small[key] for key in small if key in model.get_params()})
    truth = {"truth": table.truth} if model.uses_truth else {}
    whole = sklearn.clone(model).fit_problem(table.problem(), **truth)
    real = type(model)._train

    def small_machine(self, data):
        if len(data.seeds) > 2:
            raise torch.OutOfMemoryError("no room for so many")
        return real(self, data)

    monkeypatch.setattr(type(model), "_train", small_machine)
    with pytest.warns(RuntimeWarning, match="networks does not fit"):
        parts = model.fit_problem(table.problem(), **truth)
    group = {"sensitive_features": table.group} if model.needs_group else {}
    np.testing.assert_allclose(
        parts.predict_proba(table.X, **group), whole.predict_proba(table.X, **group), atol=1e-5
    )
    assert len(parts.fleet_) == len(whole.fleet_)


def test_the_page_runs(tmp_path, monkeypatch):
    page = Path(__file__).resolve().parents[2] / "docs" / "estimator.md"
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
    exec(compile(code, str(page), "exec"), {})


def test_unknown_choices_are_named(table):
    for wrong in ({"variant": "best"}, {"schedule": "slow"}, {"start": "warm"}):
        with pytest.raises(ValueError, match=f"`{next(iter(wrong))}` must be one of"):
            dcem.DCEMClassifier(**(SMALL | wrong)).fit_problem(table.problem())
    with pytest.raises(ValueError, match="temperature"):
        dcem.DCEMClassifier(**SMALL, temperature=0.0).fit_problem(table.problem())
    assert "dcem" in methods.names()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_iter", -1),
        ("patience", 0),
        ("steps", -1),
        ("steps", 2.5),
        ("batch_size", 0),
        ("batch_size", "all"),
        ("learning_rate", -1e-3),
        ("learning_rate", float("nan")),
        ("weight_decay", -1.0),
        ("hidden", 64),
        ("hidden", (8, 0)),
        ("validation_fraction", 1.5),
        ("validation_fraction", "a fifth"),
    ],
)
def test_numbers_that_cannot_be_meant_are_refused(table, name, value):
    with pytest.raises(ValueError, match=f"{name}.* must"):
        dcem.DCEMClassifier(**(SMALL | {name: value})).fit_problem(table.problem())
