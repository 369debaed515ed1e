"""Text files as programs of all countries write them: one table comes out."""

import numpy as np
import pandas as pd
import pytest

from dcem.table.read import read_header, read_whole

FRAME = pd.DataFrame({"alter": [40, 51, 62], "crp": [1234.5, 2.25, -0.5], "ort": ["Köln", "", "x"]})
SEMI = FRAME.to_csv(index=False, sep=";", decimal=",")
TABS = FRAME.to_csv(index=False, sep="\t", decimal=",")
POINTS = FRAME.to_csv(index=False, sep="\t")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (SEMI, "utf-8"),
        (SEMI, "cp1252"),
        (SEMI, "utf-16"),
        (SEMI, "utf-16-le"),  # without a mark
        (SEMI.replace("\n", "\r\n"), "utf-8-sig"),
        ("sep=;\n" + SEMI, "utf-8"),
        ("SEP=;\r\n" + SEMI.replace("\n", "\r\n"), "utf-8-sig"),
        (SEMI.replace("1234,5", "1.234,5"), "utf-8"),
        (SEMI.replace(";", " ; "), "utf-8"),
        (TABS, "utf-16"),
        (POINTS, "utf-8"),
        (TABS.replace("\t", "|"), "utf-8"),
    ],
)
def test_one_table_comes_out(text, encoding, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode(encoding))
    assert read_header(path) == list(FRAME.columns)
    found = read_whole(path).to_pandas()
    np.testing.assert_array_equal(found.alter.astype(float), FRAME.alter)
    np.testing.assert_array_equal(found.crp.astype(float), FRAME.crp)
    assert found.ort.str.strip().tolist() == FRAME.ort.tolist()


def test_a_comma_that_may_part_thousands_is_left_alone(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("n\tx\n1,234\t1\n5,678\t2\n")
    assert read_whole(path)["n"].to_pylist() == ["1,234", "5,678"]
    path.write_text("n\tx\n1,25\t1.5\n5,75\t2.5\n")  # who knows
    assert read_whole(path)["n"].to_pylist() == ["1,25", "5,75"]


def test_blanks_in_a_single_name_belong_to_it(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x,x ,y\n1,2,3\n")
    assert read_header(path) == ["x", "x ", "y"]
