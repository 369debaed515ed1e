"""A model of a table reads raw rows, and comes back from its folder as it was."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from choices import some

from dcem.methods import make
from dcem.saving import ModelFileError
from dcem.scoring import (
    TableModel,
    fit_table,
    monitor_model,
    next_tests,
    predict_file,
    require_method,
)
from dcem.table import read_table
from dcem.table.messages import DataWarning, InputError

from .conftest import ROLES, visits


def test_scores_are_those_of_the_method(model, table_file):
    X = read_table(table_file, ROLES).problem
    scores = model.score(visits())
    np.testing.assert_allclose(scores.score, model.estimator.predict_proba(X)[:, 1], atol=1e-6)
    np.testing.assert_allclose(scores.spread, model.estimator.spread(X), atol=1e-6)
    support = model.estimator.support(X)
    np.testing.assert_allclose(scores.distance, support["distance"], rtol=1e-5)
    np.testing.assert_array_equal(scores.like_tested, support["supported"])


def test_the_group_is_not_needed_and_does_not_matter(model):
    frame = visits()
    with_group = model.score(frame)
    without = model.score(frame.drop(columns=["race", "result", "patient"]))
    np.testing.assert_array_equal(with_group.score, without.score)


def test_the_folder_holds_model_encoder_and_roles(model, tmp_path):
    model.save(tmp_path / "m")
    names = {path.name for path in (tmp_path / "m").iterdir()}
    assert names == {"model.safetensors", "model.json", "MODEL_CARD.md", "MODEL_CARD.html"}
    again = TableModel.load(tmp_path / "m")
    assert (again.encoder, again.roles, again.source) == (model.encoder, model.roles, model.source)
    frame = visits(200, seed=5)
    np.testing.assert_array_equal(again.score(frame).score, model.score(frame).score)
    card = (tmp_path / "m" / "MODEL_CARD.md").read_text()
    assert model.source.sha256 in card
    assert "| ward | category | ward=ER, ward=ICU, ward=surgery |" in card
    assert "P00001" not in card  # nobody in particular


@pytest.mark.parametrize("few", [[3], [2, 3]])
def test_the_size_of_a_small_group_does_not_follow_from_the_total(few, tmp_path):
    frame = visits(600)
    frame["race"] = np.resize(["A", "B"], 600)
    first = 0
    for name, people in zip("CD", few, strict=False):
        frame.loc[first : first + people - 1, "race"] = name
        first += people
    frame.to_csv(tmp_path / "visits.csv", index=False)
    with pytest.warns(DataWarning, match="Fewer than"):
        table = read_table(tmp_path / "visits.csv", ROLES)
    estimator = make("tested-only", n_members=1, random_state=0)
    estimator.fit_problem(table.problem)
    model = TableModel(estimator, table.encoder, table.roles, table.source)
    for folder in ("saved", "saved_again"):
        model.save(tmp_path / folder)
        written = json.loads((tmp_path / folder / "model.json").read_text())
        rows = written["model"]["training_counts"]["rows"]
        shown = [count for count in rows if isinstance(count, (int, float))]
        assert len(shown) == 1  # A or B: both would be all but the small groups
        assert written["table"]["source"]["rows"] == 600
        card = (tmp_path / folder / "MODEL_CARD.md").read_text()
        assert "| C | withheld | withheld | withheld |" in card
        model = TableModel.load(tmp_path / folder)


@pytest.mark.parametrize("learner", some(["linear", "boost", "forest"], ["linear", "boost"]))
def test_other_learners_go_all_the_way(learner, table_file, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = read_table(table_file, ROLES)
    fit_table(table, "ipw", learner=learner, n_members=2).save(tmp_path / "model")
    model = TableModel.load(tmp_path / "model")
    frame = visits(300, seed=9)
    done = predict_file(model, table_file, tmp_path / "s.csv")
    assert done.rows == 1500
    assert model.members == 2
    scores = model.score(frame)
    assert np.isfinite(scores.testing_probability).all()
    assert scores.spread.max() > 0
    assert next_tests(model, table_file, 20).table["probability"].sum() == pytest.approx(20)


def test_a_learner_that_does_not_exist_or_does_not_fit_is_refused():
    with pytest.raises(InputError, match="Did you mean 'boost'"):
        require_method("ipw", "bost")
    with pytest.raises(InputError, match="is a neural network"):
        require_method("dcem", "boost")


def test_what_is_no_table_and_no_model_is_refused_with_words(model, table_file, tmp_path):
    table, out = read_table(table_file, ROLES), tmp_path / "scores.csv"
    for given in (visits(), table.problem):
        for use in (fit_table, lambda rows: monitor_model(model, rows)):
            with pytest.raises(InputError, match=r"Expected a UserTable, got .*dcem.read_table\("):
                use(given)
    for given in (tmp_path, model.estimator):
        for use in (
            lambda one: predict_file(one, table_file, out),
            lambda one: next_tests(one, table_file, 10),
        ):
            with pytest.raises(InputError, match=r"Expected a TableModel, got .*load_model\("):
                use(given)
    with pytest.raises(InputError, match=r"Expected a TableModel, got DCEMClassifier"):
        monitor_model(model.estimator, table)
    with pytest.raises(InputError, match=r"Expected a Roles, got dict.*dcem.Roles\(label="):
        read_table(table_file, {"label": "sepsis"})
    with pytest.raises(InputError, match="got 'many'"):
        next_tests(model, table_file, "many")


def test_a_changed_encoder_is_noticed(model, tmp_path):
    model.save(tmp_path / "m")
    file = tmp_path / "m" / "model.json"
    file.write_text(file.read_text().replace("surgery", "Surgery"))
    with pytest.raises(ModelFileError, match="altered after it was saved"):
        TableModel.load(tmp_path / "m")


def test_a_model_of_arrays_cannot_read_tables(model, tmp_path):
    model.estimator.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="fitted to arrays"):
        TableModel.load(tmp_path / "m")


def test_unseen_levels_and_strange_cells_are_no_disaster(model):
    frame = visits(100, seed=1).astype({"age": object, "lactate": object})
    frame.loc[0, "ward"] = "a ward nobody knows"
    frame.loc[1, "age"] = "unknown"
    frame.loc[2, "lactate"] = "<0.5"
    assert np.isfinite(model.score(frame).score).all()


def test_a_column_that_is_missing_is_named(model):
    frame = visits(10).rename(columns={"lactate": "Lactat"})
    with pytest.raises(InputError, match=r"no column 'lactate'\. Did you mean 'Lactat'\?"):
        model.score(frame)


def test_all_missing_columns_are_named_and_far_fetched_ones_not_suggested(model):
    frame = visits(10).rename(columns={"lactate": "Lactat", "age": "change"})
    with pytest.raises(InputError) as error:
        model.score(frame)
    said = "none of the columns 'age', 'lactate'. Did you mean 'Lactat' for 'lactate'? Its columns"
    assert said in str(error.value)
    with pytest.raises(InputError, match=r"no column 'age'\. Its columns are"):
        model.score(frame.rename(columns={"Lactat": "lactate"}))


@pytest.mark.parametrize(
    ("name", "why"), [("y-model", "everybody's true outcome"), ("tested-only-plus-group", "group")]
)
def test_methods_that_need_what_nobody_has(name, why):
    assert make(name)  # it exists
    with pytest.raises(InputError, match=why):
        require_method(name)


def test_people_far_from_the_tested_are_told_apart(model):
    frame = pd.concat([visits(50, seed=2)] * 2, ignore_index=True)
    frame.loc[50:, "lactate"] = 400.0
    like = model.score(frame).like_tested
    assert like[:50].mean() > 0.8
    assert not like[50:].any()
