"""Rows that are positive although nobody tested them: refused, or counted as the user says."""

import numpy as np
import pandas as pd
import pytest
from clinic import clinic, command

import dcem

ROLES = {"label": "flu", "tested": "ordered", "group": "sex", "id": "patient"}
OPTIONS = ("--label", "flu", "--tested", "ordered", "--group", "sex", "--id", "patient")


@pytest.fixture
def found_elsewhere() -> pd.DataFrame:
    """Seven people without a test whose illness was found later."""
    visits = clinic()
    untested = visits.index[visits["ordered"] == 0]
    return visits.assign(flu=visits["flu"].fillna(0).where(~visits.index.isin(untested[:7]), 1.0))


def test_the_error_names_the_option(found_elsewhere, tmp_path) -> None:
    with pytest.raises(dcem.InputError, match="positive_untested"):
        dcem.read_table(found_elsewhere, dcem.Roles(**ROLES))
    found_elsewhere.to_csv(tmp_path / "visits.csv", index=False)
    ended = command("audit", "visits.csv", *OPTIONS, cwd=tmp_path)
    assert ended.status == 2
    assert "--positive-untested" in ended.text
    assert "7 of 600 rows" in ended.text


@pytest.mark.parametrize("count_as", ["tested", "untested"])
def test_rows_count_as_stated(found_elsewhere, count_as) -> None:
    with pytest.warns(dcem.DataWarning, match=f"7 of 600 rows.*count as {count_as}"):
        table = dcem.read_table(found_elsewhere, dcem.Roles(**ROLES, positive_untested=count_as))
    problem = table.problem
    odd = ((found_elsewhere["ordered"] == 0) & (found_elsewhere["flu"] == 1)).to_numpy()
    assert (problem.tested[odd] == (count_as == "tested")).all()
    assert (problem.tested[~odd] == (found_elsewhere["ordered"][~odd] == 1)).all()
    assert np.isnan(problem.y_obs[odd]).all() == (count_as == "untested")


def test_numbers_taken_from_arrays_count_alike(found_elsewhere) -> None:
    features = found_elsewhere[["age", "lactate"]]
    with pytest.warns(dcem.DataWarning, match="count as tested"):
        problem = dcem.SelectiveLabels.from_arrays(
            features,
            found_elsewhere["flu"],
            tested=found_elsewhere["ordered"],
            positive_untested="tested",
        )
    assert problem.tested.sum() == found_elsewhere["ordered"].sum() + 7


def test_other_words_are_refused() -> None:
    with pytest.raises(dcem.InputError, match="tested, untested"):
        dcem.Roles(label="flu", positive_untested="yes")


def test_option_and_settings_file_reach_every_step(found_elsewhere, tmp_path) -> None:
    found_elsewhere.to_csv(tmp_path / "visits.csv", index=False)
    roles = "\n".join(f'{role} = "{column}"' for role, column in ROLES.items())
    settings = f'table = "visits.csv"\n[roles]\n{roles}\npositive_untested = "tested"\n'
    (tmp_path / "dcem.toml").write_text(settings)
    assert "count as tested" in command("audit", cwd=tmp_path).text
    ended = command("check", "visits.csv", "--positive-untested", "untested", cwd=tmp_path)
    assert ended.status == 0
    assert "count as untested" in ended.text
    plain = ("--method", "tested-only:linear", "--members", "1", "--out", "model")
    fitted = command("fit", *plain, cwd=tmp_path)
    assert fitted.status == 0, fitted.text
    listed = command(
        "next-tests", "model", "visits.csv", "--budget", "20", "--out", "next.csv", cwd=tmp_path
    )
    assert listed.status == 0, listed.text
    untested = (found_elsewhere["ordered"] == 0) & (found_elsewhere["flu"] == 0)
    assert set(pd.read_csv(tmp_path / "next.csv")["patient"]) == set(
        found_elsewhere["patient"][untested]
    )
