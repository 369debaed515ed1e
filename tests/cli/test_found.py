"""Commands on a table that knows only who was found positive, from the check to the scores."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.support.found import NAMES, found_table
from typer.testing import CliRunner

from dcem.cli import app
from dcem.scoring import TableModel

ROLES = ["--label", "diagnosed", "--group", "age", "--positives-only"]


@pytest.fixture(scope="module")
def claims(tmp_path_factory):
    problem, _ = found_table(1_200)
    frame = pd.DataFrame(problem.X, columns=["bmi", "visits", "lab"])
    frame["age"] = NAMES[problem.group]
    frame["diagnosed"] = np.where(problem.tested, "1", "")  # blank where nobody knows
    place = tmp_path_factory.mktemp("claims") / "claims.csv"
    frame.to_csv(place, index=False)
    return place


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_without_the_role_the_table_is_refused_and_the_role_is_named(claims):
    done = run("audit", claims, *ROLES[:4])
    assert done.exit_code == 2
    assert "--positives-only" in done.output


def test_audit_writes_what_found_positives_tell(claims, tmp_path):
    done = run("audit", claims, *ROLES, "--json", tmp_path / "a.json")
    assert done.exit_code == 0, done.output
    saved = json.loads((tmp_path / "a.json").read_text())
    assert {"no-record", "found-less"} <= {one["key"] for one in saved["findings"]}
    assert saved["reference"] == "<65"


def test_compare_fit_and_predict_agree_on_what_is_known(claims, tmp_path):
    methods = ["--method", "purple,y-obs:linear", "--members", "1", "--folds", "2"]
    done = run("compare", claims, *ROLES, *methods, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    done = run("fit", claims, *ROLES, "--members", "1", "--out", tmp_path / "model")
    assert done.exit_code == 0, done.output
    assert "Using purple: it" in done.output
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text()
    assert "not probabilities of the outcome" in card
    assert "AUC against the found, within groups" in card
    assert "tested |" not in card  # no count of tests
    model = TableModel.load(tmp_path / "model")
    assert model.estimator.found_rates_["b"] < 1
    done = run("predict", tmp_path / "model", claims, "--out", tmp_path / "scores.csv")
    assert "not a probability of the outcome" in done.output
    assert "score" in pd.read_csv(tmp_path / "scores.csv").columns
    done = run(
        "next-tests", tmp_path / "model", claims, "--budget", "5", "--out", tmp_path / "next.csv"
    )
    assert done.exit_code == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--test-specificity", ".9"], "positives-only"),
        (["--method", "ipw", "--out", "model"], "who was tested"),
        (["--planted", "3"], "--planted"),
        (["--threshold", ".2"], "--threshold"),
        (["--capacity", ".1"], "--capacity"),
        (["--folds", "2", "--bounds", "2"], "--bounds"),
    ],
)
def test_what_cannot_be_together_is_refused(claims, more, said):
    ours = {"--out": "fit", "--test-specificity": "audit"}
    command = next((ours[word] for word in more if word in ours), "compare")
    done = run(command, claims, *ROLES, *more)
    assert done.exit_code == 2
    assert said in done.output
