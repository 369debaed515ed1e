"""Tables written: whole, safe to open, and refused in places where nothing can be written."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from dcem.files import require_file_place, whole_file
from dcem.table.messages import InputError
from dcem.table.read import read_whole
from dcem.table.write import csv_text, require_output, write_frame

FRAME = pd.DataFrame(
    {
        "id": ["=1+1", "-9", "@SUM(A1)", "-x", "+5.5", "A", '=HYPERLINK("x,y")'],
        "score": [0.5, -0.5, np.nan, 1, 2, 3, -4],
    }
)
SAFE = ["'=1+1", "-9", "'@SUM(A1)", "'-x", "+5.5", "A", '\'=HYPERLINK("x,y")']


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_text_that_a_spreadsheet_would_run_is_guarded(tmp_path, name) -> None:
    write_frame(FRAME.rename(columns={"score": "=score"}), tmp_path / name)
    if name.endswith("parquet"):
        assert pd.read_parquet(tmp_path / name)["id"].tolist() == FRAME["id"].tolist()
        return
    written = pd.read_csv(tmp_path / name, dtype={"id": str})
    assert written["id"].tolist() == SAFE
    assert list(written.columns) == ["id", "'=score"]
    np.testing.assert_array_equal(written["'=score"], FRAME["score"])


@pytest.mark.parametrize("suffix", [".xlsx", ".dta", ".sav", ".xpt"])
def test_what_a_float_cannot_hold_is_not_rounded(tmp_path, suffix) -> None:
    ids = [10**17 + 1, 10**17 + 4]
    when = pd.to_datetime(["2024-05-31 12:00+02:00", "2024-06-01 12:00+02:00"])
    prices = [Decimal("1.50"), Decimal("2.25")]
    frame = pd.DataFrame({"id": ids, "when": when, "price": prices, "x": [np.inf, 2.5]})
    write_frame(frame, tmp_path / f"t{suffix}")
    found = read_whole(tmp_path / f"t{suffix}").to_pydict()
    assert found["id"] == [str(one) for one in ids]
    assert [one.isoformat() for one in found["when"]] == [
        "2024-05-31T10:00:00",
        "2024-06-01T10:00:00",
    ]
    assert (found["price"], found["x"]) == ([1.5, 2.25], [None, 2.5])


def test_small_tables_as_text_are_guarded_too() -> None:
    lines = csv_text(FRAME).splitlines()
    assert lines[1] == "'=1+1,0.5"
    assert lines[2] == "-9,-0.5"


def test_an_empty_table_keeps_its_header(tmp_path) -> None:
    write_frame(FRAME.iloc[:0], tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().strip() == "id,score"


def test_what_a_killed_run_left_is_cleared(tmp_path) -> None:
    left = tmp_path / ".t.csv.0123456789abcdef.partial"
    left.write_text("somebody's score")
    other = tmp_path / ".t.csv.0123456789abcdef.partial.keep"
    other.write_text("not ours")
    write_frame(FRAME, tmp_path / "t.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([other.name, "t.csv"])


def test_places_are_tried_before_the_work(tmp_path, monkeypatch) -> None:
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        require_output(tmp_path / "x.csv")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="not a folder"):
        require_file_place(tmp_path / "file" / "x.csv")
    with pytest.raises(InputError, match="must end in"):
        require_output(tmp_path / "x.docx")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(InputError, match="no space left"):
        require_output(tmp_path / "y.csv")


def test_an_error_about_another_file_keeps_its_name(tmp_path) -> None:
    with pytest.raises(FileNotFoundError) as failed, whole_file(tmp_path / "out.csv"):
        (tmp_path / "absent.csv").read_text()
    assert failed.value.filename == str(tmp_path / "absent.csv")
