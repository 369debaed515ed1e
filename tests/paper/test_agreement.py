"""Two runs of the same cells: who agrees, who does not, what only one of them has."""

from io import StringIO

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from dcem.benchmark.read import results
from dcem.paper.agreement import (
    compare_runs,
    is_off,
    left_out,
    print_comparison,
    published_rows,
)
from dcem.table.messages import InputError


@pytest.fixture
def one():
    rng = np.random.default_rng(0)
    rows = [
        {"q_y": 0.5, "k": k, "q_t": 2.0, "phase": phase, "stream": "independent", "seed": seed}
        | {"method": method, "label": method, "auc": rng.uniform(0.6, 0.9), "roc_gap": 0.05}
        for k in (1 / 3, 1.0)
        for phase in (0.0, 30.0)
        for seed in (0, 1)
        for method in ("y-obs", "dcem")
    ]
    return pd.DataFrame(rows)


def test_a_run_agrees_with_itself_whatever_its_order(one, tmp_path):
    one.sample(frac=1, random_state=0).to_csv(tmp_path / "a.csv", index=False)
    table = compare_runs(one, pd.read_csv(tmp_path / "a.csv"))
    assert set(table["verdict"]) == {"agrees"}
    assert len(table) == 2 * 2 * 2
    assert table["points"].max() < 1e-12


def test_differences_are_paired(one):
    """Swapped phases have the same median; paired cells differ all the same."""
    other = one.copy()
    other["phase"] = 30.0 - other["phase"]
    table = compare_runs(one, other).set_index(["method", "metric"])["verdict"]
    assert set(table["y-obs", "auc"]) == {"off"}
    assert set(table["y-obs", "roc_gap"]) == {"agrees"}


def test_what_one_run_lacks_is_incomplete(one):
    table = compare_runs(one, one.iloc[:-1])
    assert list(table[table["verdict"] == "incomplete"]["method"]) == ["dcem", "dcem"]
    assert "1 cells are in one run only" in set(table["why"])
    assert is_off(table)


def test_cells_without_a_result_in_both_runs_are_incomplete(one):
    one.loc[one["method"] == "dcem", ["auc", "roc_gap"]] = np.nan
    table = compare_runs(one, one).set_index("method")
    assert set(table.loc["dcem", "verdict"]) == {"incomplete"}
    assert set(table.loc["dcem", "why"]) == {"4 cells have no result"}
    assert set(table.loc["y-obs", "verdict"]) == {"agrees"}


def test_what_has_no_number_is_printed_as_none(one):
    table = compare_runs(one, one[one["method"] == "y-obs"])
    console = Console(width=140, record=True, file=StringIO())
    print_comparison(table, console)
    text = console.export_text()
    assert "4 incomplete" in text
    assert "nan" not in text


def test_runs_without_a_common_cell_are_refused(one):
    with pytest.raises(InputError, match="no cell in common"):
        compare_runs(one, one.assign(seed=9))


def test_several_results_for_one_cell_are_refused_not_chosen_from(one):
    both = pd.concat([one, one.assign(auc=one["auc"] - 0.1)])
    with pytest.raises(InputError, match="several results for the same cells of dcem, y-obs"):
        compare_runs(both, one)
    assert set(compare_runs(pd.concat([one, one]), one)["verdict"]) == {"agrees"}  # told twice


def test_parameters_of_any_task_tell_settings_apart(one, tmp_path):
    """Two outcomes of a survey, a flag, and a policy: nothing is compared with something else."""
    two = [one.assign(outcome=o, weights=w) for o, w in (("a", True), ("b", False), ("b", None))]
    both = pd.concat([two[0], two[1].assign(auc=one["auc"] - 0.2), two[2]], ignore_index=True)
    both.to_csv(tmp_path / "a.csv", index=False)
    table = compare_runs(both, results(tmp_path / "a.csv"))
    assert set(table["verdict"]) == {"agrees"}
    assert len(table) == 3 * 2 * 2 * 2
    assert any("outcome a, weights True" in setting for setting in table["setting"])


def test_sepsis_under_the_printed_formula_is_not_the_figure(one):
    sepsis = one.assign(
        beta=0.5, k=4.0, q_t=1.5, sign=["as-released", "as-printed"] * (len(one) // 2)
    )
    assert published_rows(sepsis)["sign"].eq("as-released").all()
    assert any("they set sign" in line for line in left_out(sepsis))
