"""Damaged tables: no traceback, no hang, and nobody's test, label, group or row changes in silence.

`tests/support/damaged.py` makes them. Here every one is read, whole and in batches; the model of a
sound table scores them and says whom to test next; a part is audited, compared and fitted.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from choices import some
from damaged import ROLES, Case, as_csv, cells, judge, people_of
from damages import FAMILIES, cases
from hypothesis import given, settings
from hypothesis import strategies as st

from dcem.audit import audit_labels
from dcem.compare import compare_methods
from dcem.methods import make
from dcem.scoring import TableModel, next_tests, predict_file
from dcem.table import UserTable, outcome, read_batches, read_table
from dcem.table.messages import InputError
from dcem.table.write import write_frame

EVERY = 500  # of the damaged tables, one in so many is audited, compared and fitted
STEP = 8  # and one in so many is read


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TableModel:
    return fitted(read_table(as_csv(cells(400))(tmp_path_factory.mktemp("sound")), ROLES))


def fitted(table: UserTable) -> TableModel:
    estimator = make("tested-only", learner="linear", n_members=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit_problem(table.problem)
    return TableModel(estimator, table.encoder, table.roles, table.source)


def use(model: TableModel, path: Path, case: Case) -> None:
    """Score a damaged table and say whom to test next, or refuse."""
    rows = None if case.people is None else len(case.people)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            done = predict_file(model, path, path.with_name("scores.csv"))
            assert rows in (None, done.rows)
            assert not case.foreign or any(note.startswith(case.foreign) for note in done.notes)
            if case.roles != ROLES:  # the model knows other roles: who is tested is not its to say
                return
            found = next_tests(model, path, 10)
            if case.people is not None:
                untested = np.flatnonzero(~case.people["tested"])
                np.testing.assert_array_equal(found.table["row"], untested)
        except InputError:
            return
        if case.family in ("identifiers", "names"):
            write_frame(found.table, path.with_name("list.csv"))
            given = replace(ROLES, testing_probability=str(path.with_name("list.csv")))
            problem = read_table(path, given).problem
            chances = np.minimum(found.table["probability"], 1 - 1e-9)
            np.testing.assert_allclose(problem.testing_probability[found.table["row"]], chances)


@pytest.mark.parametrize("start", some(range(STEP), [0]))
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_damage_is_read_right_or_refused(
    family, start: int, model: TableModel, tmp_path: Path
) -> None:
    """One in eight of a family, every one in the eight together."""
    bad = []
    for number, case in enumerate(list(family())[start::STEP]):
        folder = tmp_path / str(number)
        folder.mkdir()
        what, why = judge(case, folder)
        if what in ("wrong", "crash"):
            bad.append(f"{case.name}: {what}, {why}")
        if number % 4 == 0:
            use(model, next(folder.iterdir()), case)
    assert not bad, "\n".join(bad)


def test_there_are_many_kinds_of_damage() -> None:
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names) >= 300


def analyse(path: Path, table: UserTable) -> None:
    """Audit, compare, fit, score and allocate."""
    audit_labels(table.problem, sources=table.encoder.sources)
    compare_methods(
        table.problem,
        ["tested-only", "ipw"],
        n_folds=2,
        planted=0,
        n_resamples=5,
        n_members=1,
        params={"learner": "linear"},
    )
    model = fitted(table)
    out = path.with_name("scores.parquet")
    assert predict_file(model, path, out).rows == len(table.problem)
    found = next_tests(model, path, 10)
    untested = np.flatnonzero(~table.problem.tested)
    np.testing.assert_array_equal(found.table["row"], untested)


def analysed(chosen: list[Case], tmp_path: Path) -> list[str]:
    bad = []
    for number, case in enumerate(chosen):
        folder = tmp_path / str(number)
        folder.mkdir()
        if case.people is None:
            continue
        what, why = judge(case, folder, analyse)
        if what == "crash" or (what == "wrong" and not why.startswith("refused")):
            bad.append(f"{case.name}: {what}, {why}")
    return bad


def test_damage_is_analysed_or_refused(tmp_path: Path) -> None:
    assert not analysed(cases()[::EVERY], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_all_damage_is_analysed_or_refused(part: int, tmp_path: Path) -> None:
    assert not analysed(cases()[part::10], tmp_path)


spelling = st.sampled_from(["-9", "-9.0", "-9.00", "", " ", "NA", "99", "not done", "None", "nan"])


@settings(deadline=None, max_examples=20)
@given(spellings=st.lists(spelling, min_size=1, max_size=3), seed=st.integers(0, 99))
def test_all_commands_agree_on_who_is_tested(
    spellings: list[str], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever stands where nobody looked: the table, and batches of it, say the same."""
    frame = cells(60, seed)
    gone = np.flatnonzero(frame["result"] == "")
    rng = np.random.default_rng(seed)
    frame.loc[gone, "result"] = rng.choice(np.array(spellings, object), len(gone))
    folder = tmp_path_factory.mktemp("agree")
    given_values = tuple(value for value in spellings if value.strip())
    path = as_csv(frame)(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            table = read_table(path, replace(ROLES, untested_value=given_values))
        except InputError:
            absent = [value for value in given_values if value not in set(frame["result"])]
            assert absent or len(set(spellings)) > 1
            return
    batches = read_batches(path, rows=7)
    in_batches = np.concatenate([outcome.tested_rows(batch, table.roles) for batch in batches])
    np.testing.assert_array_equal(table.problem.tested, people_of(cells(60, seed))["tested"])
    np.testing.assert_array_equal(in_batches, table.problem.tested)


@settings(deadline=None, max_examples=25)
@given(
    levels=st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=6),
        min_size=2,
        max_size=5,
        unique_by=str.strip,
    ),
    seed=st.integers(0, 99),
)
def test_groups_are_neither_merged_nor_renamed(
    levels: list[str], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    frame = cells(60, seed)
    frame["race"] = np.random.default_rng(seed).choice(np.array(levels, object), 60)
    path = as_csv(frame)(tmp_path_factory.mktemp("groups"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem = read_table(path, ROLES).problem
        except InputError:
            return
    found = pd.Series(np.array(problem.group_names, object)[problem.group])
    assert found.groupby(frame["race"].str.strip()).nunique().max() == 1
    assert found.nunique() == frame["race"].str.strip().nunique()
