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


def test_the_page_says_where_the_rule_of_the_grid_can_fail():
    """At k 4 everybody is tested, and the recorded settings stand for seven each."""
    setting, methods = ["q_y", "k", "q_t"], ["ensemble", "dcem", "twin"]
    recorded = [pd.read_csv(ROOT / "results" / f"{name}.csv") for name in ("default_grid", "grid")]
    rows = pd.concat([found[found["method"].isin(methods)] for found in recorded])
    by = rows.groupby([*setting, "method"])
    median, extreme = by[["auc", "roc_gap"]].median(), by.agg({"auc": "min", "roc_gap": "max"})
    found = pd.concat([median, extreme], axis=1, keys=["median", "extreme"]).unstack("method")
    found = found[found["median", "auc", "ensemble"].notna()]
    held = np.ones(len(found), bool)
    for how in ("median", "extreme"):
        for metric, sign in (("auc", 1), ("roc_gap", -1)):
            each = sign * found[how, metric]
            held &= each["ensemble"] >= each[["dcem", "twin"]].max(axis=1) - 0.005
    can_fail = found.index.get_level_values("k") < 4
    assert held[~can_fail].all()
    page = " ".join((ROOT / "docs" / "default.md").read_text(encoding="utf-8").split())
    share = f"{100 * held[can_fail].mean():.1f} %"
    where = f"At the {can_fail.sum()} settings where somebody is left untested"
    assert f"{where} it holds at {held[can_fail].sum()}, {share}" in page
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"and at {share} of those where anybody is left untested" in readme
