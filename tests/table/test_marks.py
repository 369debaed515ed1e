"""The same cell is the same number by every route, or it is told that nobody knows."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dcem.table.encoder import Encoder
from dcem.table.load import UserTable, read_table
from dcem.table.read import read_batches, read_whole
from dcem.table.roles import Roles

RNG = np.random.default_rng(0)
N = 60


def german(number: float) -> str:
    return f"{number:,}".translate(str.maketrans(",.", ".,"))


def written(path, **columns: list[str]):
    labels = ["0", "1", ""] * (N // 3)
    pd.DataFrame({"y": labels, **columns}).to_csv(path, sep=";", index=False)
    return path


def read(path, **columns: list[str]) -> UserTable:
    return read_table(written(path, **columns), Roles(label="y"))


def again(encoder: Encoder, table) -> tuple[np.ndarray, int]:
    """Features, and cells not read, by an encoder that was saved with its model."""
    saved = Encoder.from_plain(json.loads(json.dumps(encoder.to_plain())))
    X, unread = saved.read(table)
    return X[:, 0], int(unread.cells.sum())


KREA = RNG.uniform(1.2, 9.8, N).round(3)
INCOME = RNG.integers(1_000, 3_000_000, N)


def test_a_model_remembers_decimal_commas(tmp_path):
    cells = [f"{x:.3f}".replace(".", ",") for x in KREA]
    table = read(tmp_path / "t.csv", krea=cells, dose=["0,5", "1,5"] * (N // 2))
    np.testing.assert_array_equal(table.problem.X[:, 0], KREA)
    frame = pd.DataFrame({"krea": cells, "dose": "0,5"})
    X, unread = again(table.encoder, frame)
    np.testing.assert_array_equal(X, KREA)
    assert unread == 0
    np.testing.assert_array_equal(again(table.encoder, frame.astype("category"))[0], KREA)
    # With decimal points elsewhere a reader leaves these commas; the model knows better.
    (tmp_path / "tabs.csv").write_text(
        "krea\tdose\tz\n" + "".join(f"{cell}\t1\t0.5\n" for cell in cells)
    )
    np.testing.assert_array_equal(again(table.encoder, read_whole(tmp_path / "tabs.csv"))[0], KREA)


def test_commas_of_thousands_are_not_read_where_the_model_knows_decimal_ones(tmp_path):
    table = read(tmp_path / "t.csv", krea=[f"{x:.3f}".replace(".", ",") for x in KREA])
    X, unread = again(table.encoder, pd.DataFrame({"krea": ["1,804", "2,581,747", "1,234.5"]}))
    np.testing.assert_array_equal(X, [1.804, np.nan, np.nan])
    assert unread == 2


@pytest.mark.parametrize("style", [german, "{:,}".format])
def test_a_model_remembers_what_parted_thousands(tmp_path, style):
    table = read(tmp_path / "t.csv", income=[*map(style, INCOME)])
    np.testing.assert_array_equal(table.problem.X[:, 0], INCOME)
    few = written(tmp_path / "few.csv", income=[style(1_200), style(955_402), "850"] * (N // 3))
    X = np.concatenate([again(table.encoder, b)[0] for b in read_batches(few, ["income"], rows=7)])
    np.testing.assert_array_equal(X, [1_200, 955_402, 850] * (N // 3))


def test_points_that_may_mean_either_in_text_of_unknown_origin_are_not_read(tmp_path):
    table = read(tmp_path / "t.csv", income=[*map(german, INCOME)])
    frame = pa.table({"income": ["1.200", "1.200.300", "1.200,5", "12.5", "850"]})
    X, unread = again(table.encoder, frame)
    np.testing.assert_array_equal(X, [np.nan, 1_200_300, 1_200.5, 12.5, 850])
    assert unread == 1


def test_marks_that_may_mean_either_are_pointed_out(tmp_path):
    def notes(**columns: list[str]) -> list[str]:
        return [one.note for one in read(tmp_path / "t.csv", **columns).columns[1:]]

    three = [f"{x:.3f}" for x in KREA]
    commas = [cell.replace(".", ",") for cell in three]
    said = f"{three[0]!r} is read as {KREA[0]:g}: remove the point if it separates thousands"
    assert notes(ph=three, dose=["0,5", "1,5"] * (N // 2)) == [said, ""]
    assert notes(ph=three) == [""]  # nothing speaks of commas
    said = f"{commas[0]!r} is read as {KREA[0]:g}: remove the comma if it separates thousands"
    assert notes(krea=commas) == [said]
    assert notes(krea=commas, dose=["0,5", "1,5"] * (N // 2)) == ["", ""]


def test_commas_of_which_a_model_learnt_nothing_are_not_read():
    plain = {"missing": [], "columns": [{"name": "x", "kind": "number"}]}
    encoder = Encoder.from_plain(plain)
    assert encoder.to_plain() == plain
    X, unread = again(encoder, pa.table({"x": ["1,804", "1.5", "1,804.5"]}))
    np.testing.assert_array_equal(X, [np.nan, 1.5, 1804.5])
    assert unread == 1
