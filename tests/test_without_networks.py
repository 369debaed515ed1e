"""What `pip install dcem` alone promises: everything but networks, and a line that names the extra.

Runs where torch is not installed (`.ci/smoke core`), and nowhere else.
"""

import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dcem
from dcem import methods
from dcem.cli import app
from dcem.extras import MissingExtra

pytestmark = pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed here")
NETWORKS = "pip install 'dcem[networks]'"
ROLES = ("--label", "result", "--group", "race")
TABLE = np.eye(40), np.tile([0, 1], 20)
SAVED = Path(__file__).parent / "saving" / "version_1"


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 1500))
    race = rng.choice(["a", "b"], 1500)
    tested = rng.random(1500) < np.where(race == "a", 0.6, 0.3)
    result = np.where(tested, rng.random(1500) < 1 / (1 + np.exp(-x - z)), np.nan)
    path = tmp_path_factory.mktemp("core") / "visits.csv"
    pd.DataFrame({"x": x, "z": z, "race": race, "result": result}).to_csv(path, index=False)
    return path


def run(*arguments) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = CliRunner().invoke(app, [str(word) for word in arguments])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    "how",
    [(), *(("--method", "ipw", "--learner", learner) for learner in ("linear", "boost", "forest"))],
)
def test_fitted_saved_and_scored(table, tmp_path, how) -> None:
    run("fit", table, *ROLES, "--out", tmp_path / "model", *how)
    run("predict", tmp_path / "model", table, "--out", tmp_path / "scores.csv")
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert len(scores) == 1500
    name = "risk" if how == () else "score"
    people = pd.read_csv(table)
    model = dcem.load_model(tmp_path / "model")
    np.testing.assert_allclose(scores[name], model.predict_proba(people)[:, 1], atol=1e-5)
    assert np.corrcoef(scores[name], people.x + people.z)[0, 1] > 0.7
    run("next-tests", tmp_path / "model", table, "--budget", 50, "--out", tmp_path / "next.csv")
    assert pd.read_csv(tmp_path / "next.csv").probability.sum() == pytest.approx(50)


def test_audited(table, tmp_path) -> None:
    run("audit", table, *ROLES, "--json", tmp_path / "audit.json")
    assert "tested-less" in (tmp_path / "audit.json").read_text()


def test_compared_by_what_is_there(table, tmp_path) -> None:
    from dcem.compare.fitting import default_methods

    with pytest.warns(dcem.DataWarning, match="Not compared: tested-only, ipw, y-obs, dcem"):
        assert default_methods() == ("ensemble", "tested-only:linear", "tested-only:boost")
    names = "tested-only:linear,tested-only:boost"
    run("compare", table, *ROLES, "--method", names, "--planted", 0, "--out", tmp_path)
    assert (tmp_path / "comparison.json").is_file()


def test_methods_are_listed() -> None:
    listed = run("methods")
    assert "tested-only" in listed
    assert "dcem[networks]" in listed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "ask",
    [
        lambda: dcem.DCEMClassifier().fit(*TABLE),
        lambda: methods.make("tested-only").fit(*TABLE),
        lambda: methods.SelfEnsembleClassifier,
        lambda: methods.make("self"),
        lambda: dcem.load_model(SAVED / "tested-only"),
        lambda: dcem.load_model(SAVED / "dcem"),
    ],
)
def test_what_needs_networks_says_so_in_a_line(ask) -> None:
    with pytest.raises(MissingExtra) as told:
        ask()
    assert NETWORKS in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("arguments", [("compare", "--method", "dcem"), ("fit", "--method", "ipw")])
def test_commands_say_it_too(table, tmp_path, arguments) -> None:
    command, *rest = arguments
    done = CliRunner().invoke(app, [command, str(table), *ROLES, "--out", str(tmp_path), *rest])
    assert done.exit_code == 2
    assert NETWORKS in done.output
    assert "Traceback" not in done.output
