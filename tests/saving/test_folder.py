"""Models on disk: what is refused, what is left out, what the card says."""

import json
import os
import stat
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file
from sklearn.linear_model import LogisticRegression
from torch import nn

import dcem
from dcem import methods
from dcem.methods.propensity import PropensitySettings
from dcem.saving import ModelFileError, load_model
from dcem.saving.folder import require_place
from dcem.table.labels import SelectiveLabels

SMALL = {"hidden": (8,), "max_iter": 2, "steps": 5, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["age", "pulse"])
    X.iloc[::8, 0] = np.nan
    tested = rng.random(200) < 0.6
    y = np.where(tested, np.where(rng.random(200) < 0.5, "positive", "negative"), None)
    group = np.array(["many"] * 193 + ["few"] * 7)
    return X, pd.Series(y, dtype=object), group


def fit(table, **params):
    X, y, group = table
    return dcem.DCEMClassifier(**(SMALL | params)).fit(X, y, sensitive_features=group)


def small_network(n_inputs):
    return nn.Sequential(nn.Linear(n_inputs, 4), nn.Tanh(), nn.Linear(4, 1))


@pytest.fixture
def saved(table, tmp_path):
    model = fit(table)
    model.save(tmp_path / "model")
    return tmp_path / "model"


def test_text_classes_names_and_settings_come_back(table, tmp_path):
    settings = PropensitySettings(hidden=(4,), steps=7, patience=2)
    model = fit(table, propensity_settings=settings, temperature=np.float64(1.5))
    model.save(tmp_path / "m")
    loaded = dcem.DCEMClassifier.load(tmp_path / "m")
    assert np.array_equal(loaded.predict(table[0]), model.predict(table[0]))
    assert loaded.classes_.tolist() == ["negative", "positive"]
    assert loaded.feature_names_in_.tolist() == ["age", "pulse"]
    assert loaded.propensity_settings == settings
    assert loaded.history_ == model.history_
    assert (loaded.n_iter_, loaded.termination_) == (model.n_iter_, model.termination_)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(table[0][["pulse", "age"]])
    loaded.save(tmp_path / "again")
    again = load_model(tmp_path / "again")
    assert np.array_equal(again.predict_proba(table[0]), model.predict_proba(table[0]))


@pytest.mark.parametrize("hidden", [(64, 64), (5, 64), (64, 200), (5,)])
def test_many_rows_are_scored_to_the_last_bit(table, tmp_path, hidden):
    """Products round differently where numbers start elsewhere within a cache line.

    Where they start in the file depends on the length of its header, hence several widths.
    """
    model = fit(table, hidden=hidden)
    model.save(tmp_path / "m")
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(3_000, 2)), columns=["age", "pulse"])
    loaded = load_model(tmp_path / "m")
    assert np.array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
    assert loaded.fleet_.flat.data_ptr() % 64 == 0


def test_the_folder_holds_three_files_and_nobodys_row(saved):
    assert {path.name for path in saved.iterdir()} == {
        "model.json",
        "model.safetensors",
        "MODEL_CARD.md",
    }
    assert [path.name for path in saved.parent.iterdir()] == ["model"]  # nothing temporary left
    loaded = load_model(saved)
    for name in ("pseudo_labels_", "propensity_", "train_rows_"):
        assert not hasattr(loaded, name)


@pytest.mark.parametrize("file", ["model.json", "model.safetensors"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "altered", "empty"])
def test_damaged_files_are_refused(saved, file, damage):
    path = saved / file
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    elif file == "model.json":
        path.write_bytes(content.replace(b'"temperature": 1.0', b'"temperature": 1.5'))
        assert path.read_bytes() != content
    else:
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ModelFileError, match=r"model\.json|model\.safetensors"):
        load_model(saved)


def test_a_newer_format_is_refused_by_name(saved):
    path = saved / "model.json"
    content = json.loads(path.read_text()) | {"format_version": 3, "dcem_version": "9.1"}
    path.write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match=r"format 3, written by dcem 9\.1.*Update dcem"):
        load_model(saved)


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match="no saved model"):
        load_model(tmp_path / "nowhere")
    (tmp_path / "model.json").write_text('{"format": "other", "format_version": 1}')
    with pytest.raises(ModelFileError, match="does not describe"):
        load_model(tmp_path)


def test_what_keeps_a_model_from_being_read_or_written_is_said(saved, monkeypatch):
    file = saved / "model.json"
    file.write_text(file.read_text().replace('"dcem_version": "', '"odd": NaN, "dcem_version": "'))
    with pytest.raises(ModelFileError, match="truncated or was altered"):
        load_model(saved)
    file.unlink()
    file.mkdir()
    with pytest.raises(ModelFileError, match=r"model\.json cannot be read \(Is a directory\)"):
        load_model(saved)
    monkeypatch.chdir(saved)
    with pytest.raises(ModelFileError, match="current folder"):
        require_place(".")


@pytest.mark.parametrize("name", ["heckman", "unmeasured-cause"])
def test_as_many_coefficients_as_rows_are_not_taken_for_rows(name, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 39))
    y = np.where(rng.random(40) < 0.7, X[:, 0] > 0, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = methods.make(name, random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    assert np.array_equal(load_model(tmp_path / "m").predict_proba(X), model.predict_proba(X))


def test_the_wrong_class_is_refused(saved):
    with pytest.raises(ModelFileError, match="class DCEMClassifier, not TestedOnlyClassifier"):
        methods.registry.METHODS["tested-only"].load(saved)
    assert isinstance(methods.NetworkClassifier.load(saved), dcem.DCEMClassifier)


class Own(dcem.DCEMClassifier):
    """Somebody's subclass, unknown to the registry."""


def test_a_subclass_loads_itself(table, tmp_path):
    X, y, _ = table
    model = Own(**SMALL).fit(X, y)
    model.save(tmp_path / "m")
    assert np.array_equal(Own.load(tmp_path / "m").predict_proba(X), model.predict_proba(X))
    with pytest.raises(ModelFileError, match=r"Own\.load"):
        load_model(tmp_path / "m")


def test_an_older_model_is_replaced_but_nothing_else(table, saved, tmp_path):
    other = fit(table, random_state=1)
    other.save(saved)
    assert np.array_equal(load_model(saved).predict_proba(table[0]), other.predict_proba(table[0]))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("years of work")
    with pytest.raises(ModelFileError, match="something other"):
        other.save(tmp_path / "work")
    assert (tmp_path / "work" / "thesis.txt").read_text() == "years of work"
    (tmp_path / "theirs").mkdir()  # a model of somebody else, under names that are ours too
    (tmp_path / "theirs" / "model.safetensors").write_text("weeks of training")
    (tmp_path / "theirs" / "model.json").write_text('{"format": "another"}')
    with pytest.raises(ModelFileError, match="something other"):
        other.save(tmp_path / "theirs")
    with pytest.raises(Exception, match="not fitted"):
        dcem.DCEMClassifier().save(tmp_path / "unfitted")
    assert not (tmp_path / "unfitted").exists()


def test_a_failed_save_leaves_the_old_model(table, saved, monkeypatch):
    before = load_model(saved).predict_proba(table[0])

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("dcem.saving.folder.above", fail)
    with pytest.raises(OSError, match="disk full"):
        fit(table, random_state=1).save(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["model"]
    assert np.array_equal(load_model(saved).predict_proba(table[0]), before)


@pytest.mark.parametrize("members", [1, 2])
def test_a_foreign_propensity_model_is_left_out_and_says_so(table, tmp_path, members):
    model = fit(table, propensity=LogisticRegression(C=0.5), n_members=members)
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    X, y, _ = table
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    with pytest.warns(dcem.DataWarning, match=r"LogisticRegression\(C=0\.5\) was not saved"):
        support = loaded.support(X)
    assert support["testing_probability"].isna().all()
    pd.testing.assert_series_equal(support["distance"], model.support(X)["distance"])
    with pytest.raises(dcem.InputError, match="set_params"):
        loaded.fit(X, y)


def test_an_own_network_needs_its_factory_again(table, tmp_path):
    X, _, _ = table
    model = fit(table, network=small_network, n_members=2)
    model.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match=r"load\(folder, network=\.\.\.\)"):
        load_model(tmp_path / "m")
    with pytest.raises(ModelFileError, match="other parameters"):
        load_model(tmp_path / "m", network=lambda d: nn.Linear(d, 1))
    loaded = load_model(tmp_path / "m", network=small_network)
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.network is small_network


def test_the_card_says_what_and_withholds_small_counts(table, saved):
    card = (saved / "MODEL_CARD.md").read_text()
    for words in ("# Model card: dcem", "Assumption. ", "When it fails. ", "`age`", "- max_iter: "):
        assert words in card
    assert "TRIPOD+AI" in card
    assert "| many | withheld | withheld | withheld |" in card  # else 200 rows but 193
    assert "| few | withheld | withheld | withheld |" in card
    assert "0x" not in card  # no addresses of functions


def test_all_files_have_the_permissions_of_a_new_file(table, tmp_path):
    model = fit(table)
    old = os.umask(0o027)
    try:
        model.save(tmp_path / "m")
    finally:
        os.umask(old)
    assert {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "m").iterdir()} == {0o640}


def test_onnx_without_the_extra_says_what_to_install(table, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"pip install 'dcem\[onnx\]'"):
        fit(table).export_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize("params", [{"n_members": 3}, {"network": small_network, "n_members": 2}])
def test_onnx_of_ensembles_and_own_networks(table, tmp_path, params):
    runtime = pytest.importorskip("onnxruntime")
    model = fit(table, **params)
    model.export_onnx(tmp_path / "m.onnx")
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    for n in (1, 7, 200):
        rows = table[0].iloc[:n]
        exported = session.run(None, {"X": rows.to_numpy()})[0]
        np.testing.assert_allclose(exported, model.predict_proba(rows), atol=1e-5)
    properties = session.get_modelmeta().custom_metadata_map
    assert json.loads(properties["classes"]) == ["negative", "positive"]
    assert json.loads(properties["features"]) == ["age", "pulse"]


def test_a_wrong_export_is_not_kept(table, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    model = fit(table)
    monkeypatch.setattr(type(model), "predict_proba", lambda self, X: np.full((len(X), 2), 0.5))
    with pytest.raises(RuntimeError, match="differs from predict_proba"):
        model.export_onnx(tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


# -- nobody in particular --------------------------------------------------------------------------


def visits_of(people_per_group, visits, seed=0):
    """A problem in which every person comes several times."""
    rng = np.random.default_rng(seed)
    group = np.concatenate([[name] * n for name, n in people_per_group.items()])
    person = np.repeat(np.arange(len(group)), visits)
    X = rng.normal(size=(len(person), 2))
    tested = rng.random(len(person)) < 0.5
    y = np.where(tested, X[:, 0] + rng.normal(size=len(person)) > 0, np.nan)
    return SelectiveLabels.from_arrays(X, y, group=group[person], id=person)


def test_counts_are_of_people_not_of_rows(tmp_path):
    problem = visits_of({"many": 60, "more": 20, "few": 4}, visits=20)
    model = methods.make("tested-only", learner="linear", random_state=0).fit_problem(problem)
    assert model.training_counts_.loc["few", "rows"] == 80
    for folder in ("m", "again"):
        model.save(tmp_path / folder)
        card = (tmp_path / folder / "MODEL_CARD.md").read_text()
        assert "| few | withheld | withheld | withheld |" in card
        assert "| more | withheld | withheld | withheld |" in card  # else 1,680 - 1,200 - 400
        assert "| many | 1,200 |" in card
        model = load_model(tmp_path / folder)
    assert "80" not in card


@pytest.mark.filterwarnings("ignore:.*no groups to compare")
@pytest.mark.parametrize("learner", ["network", "linear", "boost", "forest"])
def test_a_column_that_few_people_have_leaves_no_value_behind(tmp_path, learner):
    problem = visits_of({"a": 80}, visits=3)
    X = problem.X.copy()
    X[:, 1] = np.nan
    X[:27, 1] = 123.456 + np.arange(27)  # nine people, three visits each
    problem = SelectiveLabels.from_arrays(X, problem.y_obs, id=problem.id)
    small = {"hidden": (4,), "steps": 5} if learner == "network" else {}
    model = methods.make("tested-only", learner=learner, random_state=0, **small)
    model.fit_problem(problem).save(tmp_path / "m")
    values = np.concatenate(
        [array.ravel() for array in load_file(tmp_path / "m" / "model.safetensors").values()]
    )
    assert not ((values > 100) & np.isfinite(values) & (values < 1e6)).any()
    assert np.isfinite(load_model(tmp_path / "m").predict_proba(X)).all()


@pytest.mark.parametrize("tested_people", [2, 9, 10])
def test_the_centre_of_a_few_tested_people_is_not_kept(tmp_path, tested_people):
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(60), 2)
    X = rng.normal(size=(120, 2)) + 50
    y = np.where(person < tested_people, np.arange(120) % 2, np.nan)
    problem = SelectiveLabels.from_arrays(X, y, id=person)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = methods.make("tested-only", learner="linear", random_state=0)
        model.set_params(validation_fraction=0.01).fit_problem(problem, validation=problem)
    assert len(model.support_.centers) == (tested_people >= 10)
    near = model.support(X)
    assert near["distance"].isna().all() == (tested_people < 10)
    assert near["supported"].any() == (tested_people >= 10)
    model.save(tmp_path / "m")
    pd.testing.assert_frame_equal(load_model(tmp_path / "m").support(X), near)
