"""What a lender asks, from a comparison to its page and back."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import dcem
from dcem.compare.findings import recommended
from dcem.report.from_json import read_result
from dcem.report.to_markdown import to_markdown
from dcem.table.labels import SelectiveLabels

RESULTS = Path(__file__).resolve().parents[2] / "results"

pytestmark = pytest.mark.filterwarnings("ignore::dcem.table.messages.DataWarning")


@pytest.fixture(scope="module")
def compared():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    y = rng.random(800) < expit(-0.5 + 1.4 * X[:, 0])
    approved = rng.random(800) < expit(0.4 - 0.9 * X[:, 0])
    group = np.where(rng.random(800) < 0.4, "b", "a")
    problem = SelectiveLabels.from_arrays(X, np.where(approved, y, np.nan), group=group)
    names = ["tested-only:linear", "parcelling", "heckman"]
    return dcem.compare_methods(
        problem, names, lending=True, planted=0, n_folds=2, n_resamples=20, n_members=1
    )


def test_every_method_and_target_has_them(compared) -> None:
    frame = compared.to_frame().set_index(["metric", "method", "target"])["value"]
    for target in ("tested", "dr"):
        area = frame["auc", "parcelling", target]
        assert frame["gini", "parcelling", target] == pytest.approx(2 * area - 1)
        assert 0 < frame["ks", "heckman", target] < 1
    assert "tested-only:linear" not in frame["kickout"].index.get_level_values("method")
    assert -1 <= frame["kickout", "heckman", "dr"] <= 1
    for method in compared.methods:
        assert sum(method.swaps.share.values()) == pytest.approx(1)
        assert method.swaps.rate["swapped in"].estimable
    keys = {finding.key: finding for finding in (*compared.findings, *compared.warnings)}
    assert keys["swap-set"].values["method"] == recommended(compared).name
    assert keys["other-assumption"].values["method"] == "heckman"


def test_the_page_has_them_in_a_lenders_words_and_comes_back(compared, tmp_path) -> None:
    page = compared.to_markdown(words="credit")
    assert "## What a lender asks" in page
    assert "declined now, approved by the score (swapped in)" in page
    assert "untested" not in page.partition("## What a lender asks")[2].partition("\n## ")[0]
    path = tmp_path / "comparison.json"
    path.write_text(compared.to_json())
    saved = json.loads(path.read_text())
    assert saved["methods"][1]["swaps"]["share"].keys() == compared.methods[1].swaps.share.keys()
    again = to_markdown(read_result(path), "credit")
    first, second = (one.partition("## What a lender asks")[2][:1500] for one in (page, again))
    assert first == second


def test_recorded_intervals_hold_where_features_explain_approval_and_not_elsewhere() -> None:
    found = pd.read_csv(RESULTS / "credit_coverage.csv").set_index("setting").filter(like="_holds")
    assert found.drop(index="unrecorded cause").stack().between(0.90, 0.98).all()
    assert (found.loc["unrecorded cause", ["swapped_in_holds", "declined_holds"]] < 0.1).all()


def test_recorded_an_excluded_variable_is_needed_and_hurts_where_it_is_invalid() -> None:
    found = pd.read_csv(RESULTS / "credit.csv").set_index(["world", "method"])
    for world, better in (
        ("unrecorded cause, valid queue", "heckman"),
        ("no unrecorded cause, invalid queue", "tested-only:linear"),
    ):
        one = found.loc[world].loc[["heckman", "tested-only:linear"]]
        assert one["auc"].idxmax() == one["calibration"].idxmin() == better
    real = found.filter(like="real", axis=0)["auc"].unstack()
    assert (real["y-obs:linear"] < 0.5).all()  # the record is the wrong way round
