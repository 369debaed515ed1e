"""One cell that is no number does not cost a column of numbers; many make it text, with a note."""

import numpy as np
import pandas as pd
import pytest
from clinic import clinic, command

import dcem

ROLES = dcem.Roles(label="flu", tested="ordered", group="sex", id="patient")
OPTIONS = ("--label", "flu", "--tested", "ordered", "--group", "sex", "--id", "patient")


def column_of(path_or_frame: object, name: str = "lactate") -> object:
    """How a column was read."""
    table = dcem.read_table(path_or_frame, ROLES)
    return next(column for column in table.columns if column.name == name)


def with_cells(value: str, cells: int) -> pd.DataFrame:
    """The clinic with lactate as text, some cells of which hold a value."""
    visits = clinic()
    lactate = visits["lactate"].astype(str).astype(object)
    lactate[np.arange(cells) * 7] = value
    return visits.assign(lactate=lactate)


@pytest.mark.parametrize("value", ["-2,22e-16", "1,5e-16", "2,5E+3", "−1,25e-08"])
@pytest.mark.parametrize("semicolons", [True, False])
def test_a_decimal_comma_before_an_exponent_is_a_number(value, semicolons, tmp_path) -> None:
    visits = with_cells(value, 5)
    path = tmp_path / "t.csv"
    if semicolons:
        visits["lactate"] = visits["lactate"].str.replace(".", ",", regex=False)
    visits.to_csv(path, sep=";" if semicolons else ",", index=False)
    table = dcem.read_table(path, ROLES)
    place = table.problem.feature_names.index("lactate")
    expected = float(value.replace(",", ".").replace("−", "-"))
    np.testing.assert_allclose(table.problem.X[np.arange(5) * 7, place], expected)
    assert not np.isnan(table.problem.X[:, place]).any()


@pytest.mark.parametrize("value", ["2,22-16", "x12", "2021-05-05", "Err:502", "12 %", "1/2", "n=5"])
@pytest.mark.parametrize("cells", [1, 6])
def test_up_to_a_hundredth_are_missing_with_a_note(value, cells, tmp_path) -> None:
    with_cells(value, cells).to_csv(tmp_path / "t.csv", index=False)
    column = column_of(tmp_path / "t.csv")
    assert (column.kind, column.missing) == ("number", pytest.approx(cells / 600))
    assert repr(value) in column.note
    assert "missing" in column.note


def test_above_a_hundredth_it_is_text_with_a_note(tmp_path) -> None:
    with_cells("hemolyzed", 12).to_csv(tmp_path / "t.csv", index=False)
    column = column_of(tmp_path / "t.csv")
    assert column.kind != "number"
    assert "'hemolyzed'" in column.note


@pytest.mark.parametrize("spelled", ["Err:{}", "[{}]", "n={}"])
def test_many_different_cells_have_one_note(spelled, tmp_path) -> None:
    visits = with_cells("", 0)
    visits.loc[::40, "lactate"] = [spelled.format(i) for i in range(15)]
    visits.to_csv(tmp_path / "t.csv", index=False)
    column = column_of(tmp_path / "t.csv")
    assert column.kind != "number"
    assert "15 cells" in column.note or "number" in column.note


def test_words_for_missing_are_missing_however_many() -> None:
    column = column_of(with_cells("n/a", 80))
    assert (column.kind, column.missing) == ("number", pytest.approx(80 / 600))


def test_codes_stay_codes() -> None:
    visits = with_cells("V57", 3)
    visits = visits.assign(icd_code=visits["lactate"]).drop(columns="lactate")
    assert column_of(visits, "icd_code").kind != "number"


def test_the_check_shows_the_note(tmp_path) -> None:
    with_cells("-2,22e-1x", 1).to_csv(tmp_path / "t.csv", index=False)
    ended = command("check", "t.csv", *OPTIONS, cwd=tmp_path)
    assert ended.status == 0
    assert "2,22e-1x" in ended.text
    assert "as missing" in ended.text
