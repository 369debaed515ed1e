"""The published figures, and the rules by which ours are held against them."""

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from dcem.benchmark import published
from dcem.benchmark.show import print_comparison
from dcem.checks import InputError


def as_published(**changes):
    """Results that reproduce the simulation figures exactly, phases dealt out in any order."""
    wide = published.figures().pivot_table(
        index=["q_y", "k", "q_t", "method"], columns="metric", values="values", aggfunc="first"
    )
    rng = np.random.default_rng(0)
    rows = []
    for (q_y, k, q_t, method), values in wide.iterrows():
        order = rng.permutation(12)
        for number, place in enumerate(order):
            rows.append(
                {"q_y": q_y, "k": k, "q_t": q_t, "phase": 30.0 * number, "method": method}
                | {"auc": values["auc"][place], "roc_gap": values["roc_gap"][place]}
                | {"stream": "published", "variant": "published", "schedule": "published"}
                | {"seed": 42}
            )
    return pd.DataFrame(rows).assign(**changes)


def verdicts(results):
    table = published.compare(results)
    return table.set_index(["setting", "method", "metric"])["verdict"]


def test_the_figures_are_those_of_the_shared_folder(shared):
    for name, ours in (
        ("synthetic", published.figures()),
        ("sepsis", published.sepsis_figures()),
        ("tables", published.tables()),
    ):
        theirs = pd.read_csv(shared / "published" / f"{name}.csv")
        columns = [c for c in theirs if c != "values"]
        pd.testing.assert_frame_equal(ours[columns], theirs[columns])


def test_stored_points_have_the_stored_medians():
    for frame in (published.figures(), published.sepsis_figures()):
        for row in frame.itertuples():
            assert np.all(np.diff(row.values) >= 0)
            assert np.median(row.values) == pytest.approx(row.median, abs=6e-5)
    assert all(len(values) == 12 for values in published.figures()["values"])


def test_the_published_points_agree_with_themselves():
    table = published.compare(as_published())
    assert set(table["verdict"]) == {"agrees"}
    assert len(table) == 4 * 14 * 2
    assert not published.is_off(table)
    assert table["difference"].abs().max() < 1e-4


def test_single_stage_methods_are_held_to_their_points():
    results = as_published()
    mine = (results["method"] == "y-obs") & (results["k"] == 2.0)
    results.loc[mine, "auc"] += 0.003
    found = verdicts(results)
    off = found[found == "off"]
    assert list(off.index) == [("q_y 0.5, k 2, q_t 2", "y-obs", "auc")]


def test_one_wild_phase_is_no_disagreement():
    results = as_published()
    mine = results.index[(results["method"] == "tested-only") & (results["k"] == 2.0)][0]
    results.loc[mine, "auc"] += 0.005
    assert set(verdicts(results)) == {"agrees"}


@pytest.mark.parametrize(("shift", "verdict"), [(0.029, "agrees"), (0.031, "off")])
def test_iterative_methods_are_held_to_their_medians(shift, verdict):
    results = as_published()
    results.loc[results["method"] == "dcem", "auc"] -= shift
    found = verdicts(results)
    assert set(found.xs("dcem", level="method").xs("auc", level="metric")) == {verdict}
    assert set(found.drop("dcem", level="method")) == {"agrees"}


@pytest.mark.parametrize(("shift", "verdict"), [(0.019, "agrees"), (0.021, "off")])
def test_gaps_have_their_own_tolerance(shift, verdict):
    results = as_published()
    results.loc[results["method"] == "self", "roc_gap"] += shift
    found = verdicts(results).xs("self", level="method").xs("roc_gap", level="metric")
    assert set(found) == {verdict}


def test_too_few_phases_are_incomplete_and_count_as_off():
    results = as_published()
    results = results[(results["phase"] < 300) | (results["method"] != "gjs")]
    table = published.compare(results)
    assert set(table.loc[table["method"] == "gjs", "verdict"]) == {"incomplete"}
    assert published.is_off(table)


def test_nan_is_not_agreement():
    results = as_published()
    results.loc[results["method"] == "gjs", "auc"] = np.nan
    assert "incomplete" in set(verdicts(results).xs("gjs", level="method"))


def test_other_runs_are_left_out():
    results = as_published()
    strays = [
        results.assign(auc=0.0, stream="independent", seed=1),
        results.assign(auc=0.0, variant="corrected"),
        results.assign(auc=0.0, schedule="fast"),
    ]
    table = published.compare(pd.concat([results, *strays]))
    assert set(table["verdict"]) == {"agrees"}


def test_two_results_for_a_phase_are_refused_by_name():
    results = as_published()
    with pytest.raises(InputError, match=r"phase 0 has several results"):
        published.compare(pd.concat([results, results.assign(auc=0.5)]))


def test_the_published_gap_is_preferred():
    results = as_published()
    results["roc_gap_grid"] = results["roc_gap"]
    results["roc_gap"] = 0.9
    assert set(verdicts(results)) == {"agrees"}


def test_tables_and_sepsis_are_reported():
    rows = [
        {
            "q_y": 0.5,
            "k": 1.0,
            "q_t": 2.0,
            "phase": 30.0 * i,
            "method": "dcem",
            "stream": "published",
        }
        | {"benchmark": "temperature", "label": "0.1", "auc": 0.79 + 0.001 * i, "roc_gap": 0.03}
        for i in range(12)
    ]
    rows += [
        {"k": 1 / 3, "q_t": 1.5, "beta": i / 10, "method": "y-obs", "auc": 0.5, "roc_gap": 0.1}
        | {"benchmark": "sepsis", "label": "y-obs", "stream": "published"}
        for i in range(11)
    ]
    table = published.compare(pd.DataFrame(rows))
    assert list(table["source"]) == ["table", "table", "sepsis", "sepsis"]
    assert set(table["verdict"]) == {"reported"}
    assert table.iloc[0]["difference"] == pytest.approx(0.7955 - 0.791)
    assert not published.is_off(table)


def test_the_printed_comparison_names_what_is_off():
    results = as_published()
    results.loc[results["method"] == "dcem", "auc"] -= 0.05
    console = Console(width=140, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_comparison(published.compare(results), console, everything=False)
    text = console.export_text()
    assert "off: dcem, auc (q_y 0.5, k 1, q_t 2): medians differ by 0.0500, allowed 0.03" in text
    assert "4 off" in text
    assert "y-model" not in text
