"""People, groups and levels keep their names; what cannot be one is refused in plain words."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from clinic import clinic, command

import dcem

ROLES = dcem.Roles(label="flu", tested="ordered", group="sex", id="patient")


@pytest.mark.parametrize(
    ("one", "other"), [(1, "1"), (True, 1), (2.0, "2"), ("True", True), (np.int64(7), "7")]
)
def test_two_people_of_one_spelling_are_refused(one, other) -> None:
    visits = clinic()
    people = visits["patient"].astype(object)
    people[3], people[4] = one, other
    with pytest.raises(dcem.InputError, match=r"'patient' holds .* as .* and as "):
        dcem.read_table(visits.assign(patient=people), ROLES)
    with pytest.raises(dcem.InputError, match=r"holds .* as .* and as "):
        dcem.SelectiveLabels.from_arrays(
            visits[["age"]], visits["flu"], tested=visits["ordered"], id=people
        )


def test_a_column_of_numbers_and_other_text_is_read() -> None:
    visits = clinic()
    people = visits["patient"].astype(object)
    people[:300] = range(300)
    assert len(np.unique(dcem.read_table(visits.assign(patient=people), ROLES).problem.id)) == 600


@pytest.mark.parametrize("cell", [lambda i: [i], lambda i: {"a": i}, lambda i: [str(i), "b"]])
def test_lists_are_no_identifiers(cell, tmp_path) -> None:
    visits = clinic().assign(patient=[cell(i) for i in range(600)])
    with pytest.raises(dcem.InputError, match=r"'patient' .*cannot be read"):
        dcem.read_table(visits, ROLES)
    visits.to_parquet(tmp_path / "t.parquet")
    ended = command(
        *("audit", "t.parquet", "--label", "flu", "--tested", "ordered"),
        *("--group", "sex", "--id", "patient"),
        cwd=tmp_path,
    )
    assert ended.status == 2
    assert "'patient'" in ended.text
    with pytest.raises(dcem.InputError, match="lists or other objects"):
        dcem.SelectiveLabels.from_arrays(visits[["age"]], visits["flu"], id=visits["patient"])


@pytest.mark.parametrize("table", [pd.DataFrame(), pd.DataFrame(index=range(5)), pa.table({})])
def test_a_table_without_columns_is_refused(table) -> None:
    with pytest.raises(dcem.InputError, match="no columns"):
        dcem.read_table(table, ROLES)


@pytest.mark.parametrize("step", ["init", "check", "audit"])
def test_a_file_without_columns_is_refused(step, tmp_path) -> None:
    pq.write_table(pa.table({"x": [1, 2]}).select([]), tmp_path / "t.parquet")
    roles = () if step == "init" else ("--label", "flu")
    ended = command(step, "t.parquet", *roles, cwd=tmp_path)
    assert ended.status == 2
    assert "no columns" in ended.text


@pytest.mark.parametrize("level", ["(other)", "(missing)"])
def test_levels_may_be_called_as_our_own(level) -> None:
    visits = clinic()
    rare = visits.index.to_series().map("ward {}".format)
    ward = visits["ward"].replace("ICU", level).where(visits.index % 9 > 0, None)
    ward = ward.where(visits.index % 40 > 1, rare)
    problem = dcem.read_table(visits.assign(ward=ward), ROLES).problem
    of_level = [n for n in problem.feature_names if n.startswith("ward=") and level in n]
    sums = {name: problem.X[:, problem.feature_names.index(name)].sum() for name in of_level}
    assert (ward == level).sum() in sums.values()
    assert len(set(problem.feature_names)) == len(problem.feature_names)


def test_columns_may_be_called_as_features_of_others() -> None:
    visits = clinic()
    extra = {"ward=ICU": visits["age"] % 7, "ward=b": np.where(visits["age"] % 2, "c", "d")}
    extra["ward"] = np.where(visits.index % 4, visits["ward"], "b=c")
    problem = dcem.read_table(visits.assign(**extra), ROLES).problem
    assert len(set(problem.feature_names)) == len(problem.feature_names)
    encoded = dcem.read_table(visits.assign(**extra), ROLES).encoder
    assert encoded.transform(visits.assign(**extra)).shape == problem.X.shape


@pytest.mark.parametrize("column", ["flu", "ordered"])
@pytest.mark.parametrize("unused", ["perhaps", "(other)", "not known"])
def test_categories_that_do_not_occur_do_not_count(column, unused) -> None:
    visits = clinic()
    plain = visits.assign(**{column: visits[column].map({1: "yes", 0: "no"})})
    kind = pd.CategoricalDtype(["yes", "no", unused])
    roles = ROLES
    if column == "flu":  # which alone says who was tested
        roles = dcem.Roles(label="flu", group="sex", id="patient", exclude="ordered")
    one, other = (
        dcem.read_table(frame, roles).problem for frame in (plain, plain.astype({column: kind}))
    )
    np.testing.assert_array_equal(one.y_obs, other.y_obs)
    np.testing.assert_array_equal(one.tested, other.tested)


def written_again(path: Path, write, first: pd.DataFrame, then: pd.DataFrame) -> pd.Series:
    """What is read of a file that got other rows, and the time that it had before."""
    write(first, path)
    about = path.stat()
    dcem.read_table(path, ROLES)
    write(then, path)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    problem = dcem.read_table(path, ROLES).problem
    return pd.Series(np.array(problem.group_names, object)[problem.group])


@pytest.mark.parametrize("suffix", [".dta", ".xlsx"])
def test_a_file_with_the_time_of_another_is_read_anew(suffix, tmp_path) -> None:
    first = clinic()
    then = first.assign(sex=first["sex"].map({"F": "M", "M": "F"}))
    write = {
        ".dta": lambda frame, path: frame.to_stata(path, write_index=False),
        ".xlsx": lambda frame, path: frame.to_excel(path, index=False),
    }[suffix]
    read = written_again(tmp_path / f"t{suffix}", write, first, then)
    assert read.tolist() == then["sex"].tolist()


def test_a_delimiter_that_changed_is_seen(tmp_path) -> None:
    def write(frame: pd.DataFrame, path: Path) -> None:
        frame.to_csv(path, index=False, sep=frame.attrs.get("sep", ","))

    first, then = clinic(), clinic()
    then.attrs["sep"] = ";"
    read = written_again(tmp_path / "t.csv", write, first, then)
    assert read.tolist() == then["sex"].tolist()
