"""README.md says what results/ says."""

from pathlib import Path

import pandas as pd
import pytest

from dcem.benchmark.read import results
from dcem.paper import agreement
from dcem.text import number

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def readme():
    return " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


def test_how_many_comparisons_agree(readme):
    table = agreement.compare_published(results(ROOT / "results" / "methods.csv"))
    judged = table[table["verdict"] != "reported"]
    off = judged[judged["verdict"] != "agrees"]
    assert f"{len(judged) - len(off)} of {len(judged)} comparisons agree" in readme
    told = {  # what the README says of those that are off
        (
            "dividemix",
            2.0,
        ): "At k 1, q_t 2 the median AUC of DivideMix is {ours} where the paper has {published}",
        ("tested-only", 1.0): "At k 1, q_t 1 the points of tested-only are {points} away",
    }
    assert len(off) == len(told)
    for row in off.itertuples():
        sentence = told[row.method, float(row.setting.rpartition(" ")[2])]
        numbers = {"ours": number(row.ours), "published": number(row.published)}
        assert sentence.format(**numbers, points=number(row.points, 4)) in readme


@pytest.mark.parametrize(("k", "q_t", "name"), [(1, 0.5, ".5"), (1, 2, "2"), (2, 2, "2")])
def test_the_table_of_schedules(readme, k, q_t, name):
    shown = results(ROOT / "results" / "shown.csv")
    schedules = pd.read_csv(ROOT / "results" / "dcem_schedules.csv")
    parts = [
        *(shown[shown["method"] == method] for method in ("tested-only", "dcem")),
        schedules[(schedules["model"] == "fast") & (schedules["q_y"] == 0.5)],
    ]
    cells = []
    for part in parts:
        here = part[(part["k"] == k) & (part["q_t"] == q_t)]
        assert len(here) == 12
        auc, gap = here["auc"], here["roc_gap"]
        cells.append(
            f"{number(auc.median())} [{number(auc.min())}], "
            f"{number(gap.median())} [{number(gap.max())}]"
        )
    published_ones = " | ".join(cells[:2])
    assert f"| .5, {k}, {name} | {published_ones} | **{cells[2]}** |" in readme
