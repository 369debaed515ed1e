"""The list of tests comes back beside the table, whatever people are called."""

import numpy as np
import pandas as pd
import pytest
from clinic import clinic, command

import dcem
from dcem.scoring import next_tests, predict_file

OPTIONS = ("--label", "flu", "--tested", "ordered", "--group", "sex")
SMALL = ("--method", "tested-only:linear", "--members", "1", "--out", "model")
CALLED = {
    "phone numbers": lambda i: f"+49 30 {1000 + i}",
    "base64": lambda i: f"{'=+-@'[i % 4]}x{i}==",
    "an apostrophe too": lambda i: f"'+a{i}" if i % 2 else f"+a{i + 1}",
    "quotes, commas, lines": lambda i: f'a,"{i}"\n{i}',
    "thousands": lambda i: f"1.{100 + i}.{100 + i}",
    "decimal commas": lambda i: f"{i},5",
    "leading zeros": lambda i: f"{i:09d}",
    "words for missing": lambda i: "None" if i == 3 else "nan" if i == 4 else f"NA{i}",
}


def prepared(folder, called, delimiter=",", column="patient"):
    """A table of people called so, and a model of it."""
    visits = clinic().assign(patient=[called(i) for i in range(600)])
    visits = visits.rename(columns={"patient": column})
    visits.to_csv(folder / "visits.csv", index=False, sep=delimiter)
    ended = command("fit", "visits.csv", *OPTIONS, "--id", column, *SMALL, cwd=folder)
    assert ended.status == 0, ended.text
    return visits


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("case", CALLED)
def test_the_list_is_read_back(case, delimiter, tmp_path) -> None:
    visits = prepared(tmp_path, CALLED[case], delimiter)
    for name in ("next.csv", "next.xlsx", "next.parquet"):
        how = ("model", "visits.csv", "--budget", "30", "--draw-seed", "1", "--out", name)
        ended = command("next-tests", *how, cwd=tmp_path)
        assert ended.status == 0, ended.text
        turned = visits[::-1]  # people are found by their name, not by their place
        turned.to_csv(tmp_path / "visits2.csv", index=False, sep=delimiter)
        roles = dcem.Roles(
            label="flu",
            tested="ordered",
            group="sex",
            id="patient",
            testing_probability=str(tmp_path / name),
        )
        with pytest.warns(dcem.DataWarning, match="no result"):
            problem = dcem.read_table(tmp_path / "visits2.csv", roles).problem
        found = next_tests(dcem.load_model(tmp_path / "model"), tmp_path / "visits.csv", 30).table
        chance = np.ones(600)
        chance[found["row"]] = found["probability"]
        np.testing.assert_allclose(problem.testing_probability, chance[::-1], atol=1e-8)


@pytest.mark.parametrize("column", ["-id", "=id", "group", "probability", "row"])
def test_columns_may_be_called_anything(column, tmp_path) -> None:
    visits = prepared(tmp_path, CALLED["phone numbers"], column=column)
    how = ("model", "visits.csv", "--budget", "30", "--out", "next.csv")
    assert command("next-tests", *how, cwd=tmp_path).status == 0
    roles = dcem.Roles(
        label="flu",
        tested="ordered",
        group="sex",
        id=column,
        testing_probability=str(tmp_path / "next.csv"),
    )
    problem = dcem.read_table(visits[::-1], roles).problem
    found = next_tests(dcem.load_model(tmp_path / "model"), tmp_path / "visits.csv", 30).table
    chance = np.ones(600)
    chance[found["row"]] = found["probability"]
    np.testing.assert_allclose(problem.testing_probability, chance[::-1], atol=1e-8)


def test_scores_say_what_they_changed_and_parquet_changes_nothing(tmp_path) -> None:
    visits = prepared(tmp_path, CALLED["phone numbers"])
    ended = command("predict", "model", "visits.csv", "--out", "scores.csv", cwd=tmp_path)
    assert "600 values of column 'patient'" in ended.text
    assert "apostrophe" in ended.text
    written = pd.read_csv(tmp_path / "scores.csv", dtype=str)["patient"]
    assert written.str.removeprefix("'").tolist() == visits["patient"].tolist()
    ended = command("predict", "model", "visits.csv", "--out", "scores.parquet", cwd=tmp_path)
    assert "apostrophe" not in ended.text
    assert pd.read_parquet(tmp_path / "scores.parquet")["patient"].equals(visits["patient"])


@pytest.mark.parametrize("case", ["thousands", "decimal commas"])
def test_identifiers_keep_their_points_and_commas(case, tmp_path) -> None:
    visits = prepared(tmp_path, CALLED[case], ";")
    ended = command("predict", "model", "visits.csv", "--out", "scores.parquet", cwd=tmp_path)
    assert ended.status == 0
    assert pd.read_parquet(tmp_path / "scores.parquet")["patient"].equals(visits["patient"])


@pytest.mark.parametrize("suffix", [".csv", ".dta", ".sav", ".xpt", ".xlsx"])
def test_identifiers_are_not_cut_at_a_nul(suffix, tmp_path) -> None:
    prepared(tmp_path, CALLED["leading zeros"])
    model = dcem.load_model(tmp_path / "model")
    odd = clinic().assign(patient=[f"a\0{i}" for i in range(600)])
    odd.to_parquet(tmp_path / "odd.parquet")
    out = tmp_path / f"scores{suffix}"
    with pytest.raises(dcem.InputError, match="NUL"):
        predict_file(model, tmp_path / "odd.parquet", out)
    assert not out.exists()
    predict_file(model, tmp_path / "odd.parquet", tmp_path / "scores.parquet")
    kept = pd.read_parquet(tmp_path / "scores.parquet")["patient"]
    assert kept.tolist() == odd["patient"].tolist()


@pytest.mark.parametrize("version", [114, 117, 118])
def test_identifiers_that_a_file_of_statistics_cuts_are_told_of(version, tmp_path) -> None:
    visits = clinic().assign(patient=[f"a\0{i}" for i in range(600)])
    visits.to_stata(tmp_path / "t.dta", write_index=False, version=version)
    roles = dcem.Roles(label="flu", tested="ordered", group="sex")
    with pytest.warns(dcem.DataWarning, match="'patient' .* NUL .* 600 of 600 rows"):
        dcem.read_table(tmp_path / "t.dta", roles)


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".dta"])
@pytest.mark.parametrize("cell", [lambda i: [i], lambda i: {"a": i}, lambda i: bytes([255, i % 9])])
def test_cells_that_a_file_cannot_hold_are_refused(cell, suffix, tmp_path) -> None:
    prepared(tmp_path, CALLED["leading zeros"])
    odd = clinic().assign(patient=[cell(i) for i in range(600)])
    odd.to_parquet(tmp_path / "odd.parquet")
    out = f"scores{suffix}"
    ended = command("predict", "model", "odd.parquet", "--out", out, cwd=tmp_path)
    assert ended.status == 2
    assert "'patient'" in ended.text
    assert not (tmp_path / out).exists()
