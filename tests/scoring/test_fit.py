"""Which method a fit takes, and where it is written down."""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dcem
from dcem.methods.choosing import DEFAULT, Choice
from dcem.scoring import TableModel, choice_for, fit_table
from dcem.scoring.fit import mention_few_results
from dcem.table import Roles, read_table
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    ill = frame["a"] + rng.normal(size=200) > 0
    frame["label"] = np.where(rng.random(200) < 0.5, ill.astype(float), np.nan)
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return read_table(path, Roles(label="label"))


def comparison(table, folder, best="dcem", sha256=None):
    folder.mkdir(exist_ok=True)
    standing = {"best": best, "level_with": []}
    saved = {
        "data": {"SHA-256": sha256 or table.source.sha256, "rows": "200", "label": "label"},
        "methods": [{"name": DEFAULT}, {"name": best}],
        "standings": {"dr": standing},
    }
    (folder / "comparison.json").write_text(json.dumps(saved))
    return folder / "comparison.json"


def test_a_comparison_of_this_table_is_found_and_another_passed_over(table, tmp_path):
    comparison(table, tmp_path / "other", sha256="0" * 64)
    assert choice_for(table, None, tmp_path / "other").method == DEFAULT
    comparison(table, tmp_path / "mine")
    assert choice_for(table, None, tmp_path / "other", tmp_path / "mine").method == "dcem"


@pytest.mark.parametrize("roles", [{"label": "other"}, {"label": "label", "exclude": "b"}])
def test_a_comparison_of_the_file_with_other_roles_is_of_another_table(table, tmp_path, roles):
    place = comparison(table, tmp_path / "before")
    table = replace(table, roles=Roles(**roles))
    assert choice_for(table, None, place.parent).method == DEFAULT
    with pytest.raises(dcem.InputError, match="of this table with these roles"):
        choice_for(table, place)


@pytest.mark.parametrize("content", ['{"half": ', "[" * 100_000], ids=["half", "deep"])
def test_a_file_beside_the_table_that_cannot_be_read_is_passed_over(table, tmp_path, content):
    (tmp_path / "comparison.json").write_text(content)
    with pytest.warns(DataWarning, match="It is ignored"):
        assert choice_for(table, None, tmp_path).method == DEFAULT
    with pytest.raises(dcem.InputError, match="cannot be read"):
        choice_for(table, tmp_path / "comparison.json")


def test_a_comparison_that_was_named_must_be_of_this_table(table, tmp_path):
    wrong = comparison(table, tmp_path / "other", sha256="0" * 64)
    with pytest.raises(dcem.InputError, match="not a comparison of this table"):
        choice_for(table, wrong)
    with pytest.raises(dcem.InputError, match="cannot be read"):
        choice_for(table, tmp_path / "nowhere.json")


def test_the_reason_is_kept_with_the_model(table, tmp_path):
    choice = Choice("tested-only:linear", "somebody said so")
    model = fit_table(table, choice, n_members=1)
    assert model.estimator.learner == "linear"
    model.save(tmp_path / "model")
    assert TableModel.load(tmp_path / "model").why == "somebody said so"
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text()
    assert "`tested-only:linear` was chosen because somebody said so" in card


@pytest.mark.parametrize(("outcome", "word"), [(1, "positive"), (0, "negative")])
def test_fewer_than_ten_results_of_a_kind_are_mentioned(table, outcome, word) -> None:
    seen = np.flatnonzero(table.problem.y_obs == outcome)
    y_obs = table.problem.y_obs.copy()
    y_obs[seen[9:]] = 1 - outcome
    few = replace(table, problem=replace(table.problem, y_obs=y_obs))
    with pytest.warns(DataWarning, match=f"Fewer than 10 people were tested {word}"):
        fit_table(few, "tested-only", learner="linear", n_members=1)


@pytest.mark.parametrize(
    ("positives", "width", "said"),
    [(15, 502, ["20", "502"]), (15, 75, []), (49, 300, ["50", "300"]), (50, 502, [])],
)
def test_few_results_for_many_features_are_mentioned(positives, width, said) -> None:
    y = np.r_[np.ones(positives), np.zeros(60), np.full(30, np.nan)]
    X = np.random.default_rng(0).normal(size=(len(y), width))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", DataWarning)
        mention_few_results(SelectiveLabels.from_arrays(X, y))
    assert [n for one in heard for n in re.findall(r"\d+", str(one.message))] == said
