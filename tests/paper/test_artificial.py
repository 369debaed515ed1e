"""Results of made-up patients are known by what the benchmark recorded, not by a file's name."""

import numpy as np
import pandas as pd

from dcem.paper.sources import Need, Recorded, made_up


def test_one_artificial_row_marks_the_whole():
    rows = pd.DataFrame({"auc": [0.5, 0.6]})
    assert not made_up(rows)
    assert not made_up(rows.assign(artificial=[np.nan, np.nan]))
    assert made_up(rows.assign(artificial=[np.nan, True]))


def test_a_recorded_table_under_another_name(tmp_path):
    row = {"task": "sepsis", "k": 4.0, "q_t": 1.5, "beta": 0.5, "method": "dcem", "auc": 0.6}
    need = Need("sepsis", ("sepsis",), {"k": 4.0, "q_t": 1.5})
    for artificial in (True, False):
        extra = {"artificial": True} if artificial else {}
        pd.DataFrame([row | extra]).to_csv(tmp_path / "sepsis.csv", index=False)
        assert Recorded(tmp_path).rows(need).artificial is artificial
