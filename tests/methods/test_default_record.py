"""What is recorded of the default is what its page says; and the experiment still fits it."""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dcem import SelectiveLabels
from dcem.methods import make

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"


def test_the_recorded_default_is_the_default(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    fitted_parts = runpy.run_path(str(EXPERIMENTS / "default.py"))["fitted_parts"]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = (X[:, 0] + rng.normal(size=600) > 0).astype(float)
    y[rng.random(600) < 0.4] = np.nan
    problem = SelectiveLabels.from_arrays(X, y, group=rng.integers(0, 2, 600))
    scores, _ = fitted_parts(problem, X, ("ensemble", "twin"))
    alone = make("ensemble", random_state=0, n_jobs=1).fit_problem(problem)
    np.testing.assert_allclose(scores["ensemble"], alone.predict_proba(X)[:, 1], atol=1e-6)
    assert np.abs(scores["twin"] - scores["ensemble"]).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("default", "{} to {} % tested), and new draws of the simulation"),
        ("default_packages", "with 20 policies each and {} to {} % tested"),
        ("default_fresh", "with 20 policies each and {} to {} % tested"),
    ],
)
def test_the_page_says_how_many_are_tested(name, sentence):
    found = pd.read_csv(ROOT / "results" / f"{name}.csv")
    tested = 100 * found.loc[~found["task"].str.startswith("simulation"), "tested"]
    page = " ".join((ROOT / "docs" / "default.md").read_text(encoding="utf-8").split())
    assert sentence.format(round(tested.min()), round(tested.max())) in page
