"""Roles are declared once: lists, wildcards, and an option for each."""

from dataclasses import fields, replace
from datetime import date

import numpy as np
import pandas as pd
import pytest

from dcem import Roles, read_table
from dcem.cli import COMMANDS
from dcem.cli._lazy import load_command
from dcem.table.messages import DataWarning, InputError

COLUMNS = ["id", "age", "lab_1", "lab_2", "race", "sex", "a,b", "y"]


def test_a_single_name_is_a_list_of_one() -> None:
    assert Roles(label="y", group="race").group == ("race",)
    assert Roles(label="y", group=["race", "sex"]).group == ("race", "sex")
    assert Roles(label="y", group=pd.Index(["race", "sex"])).group == ("race", "sex")


def test_numbers_and_dates_stand_for_their_text() -> None:
    roles = Roles(label="y", positive=0, untested_value=-9, missing=[99], until=date(2021, 4, 3))
    assert (roles.positive, roles.untested_value, roles.missing) == (("0",), ("-9",), ("99",))
    assert roles.until == "2021-04-03"
    frame = pd.DataFrame({"x": range(20), "y": [0, 1, 1, -9] * 5})
    read = read_table(frame, Roles(label="y", positive=0, untested_value=-9))
    assert read.problem.y_obs[:3].tolist() == [1, 0, 0]
    assert read.problem.tested.sum() == 15


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (("age,lab_1",), ("age", "lab_1")),
        (("lab_*",), ("lab_1", "lab_2")),
        (("lab_?,age",), ("lab_1", "lab_2", "age")),
        (("a,b",), ("a,b",)),  # a column of that name
        (("*",), tuple(COLUMNS[:-1])),  # a wildcard takes no role away
    ],
)
def test_commas_and_wildcards(given, found) -> None:
    roles = Roles(label="y", exclude=given).resolved(COLUMNS)
    assert roles.exclude == found
    assert roles.of("y") == "label"
    assert roles.resolved(COLUMNS) == roles
    assert Roles(label="y", features=given).resolved(COLUMNS).features == found


def test_features_are_kept_and_nothing_else() -> None:
    roles = Roles(label="y", group="race", features="lab_*,age", exclude="lab_2").resolved(COLUMNS)
    kept = [column for column in COLUMNS if roles.of(column) == "feature"]
    assert kept == ["age", "lab_1"]


@pytest.mark.parametrize(
    "roles",
    [
        {"exclude": "lib_*"},
        {"features": "race", "group": "race"},
        {"exclude": "race", "group": "race"},
        {"id": "y"},
        {"weight": "ages"},
    ],
)
def test_contradictions_and_names_that_are_not_there(roles) -> None:
    with pytest.raises(InputError):
        Roles(label="y", **roles).resolved(COLUMNS)


def test_plain_and_back() -> None:
    roles = Roles(label="y", group=("race", "sex"), untested_value="-9", label_is_number=True)
    assert Roles.from_plain(roles.to_plain()) == roles


@pytest.mark.parametrize("command", ["audit", "compare", "fit"])
def test_every_role_is_an_option_with_the_help_declared(command) -> None:
    options = {param.name: param.help for param in load_command(command, COMMANDS[command]).params}
    shown = {role.name: role.metadata["help"] for role in fields(Roles) if role.metadata["help"]}
    absent = set(shown) - set(options)
    assert absent <= {"group_as_feature"}
    same = [name for name in shown if options.get(name) == shown[name]]
    assert len(same) >= len(shown) - 2


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 400
    tested = rng.random(n) < 0.5
    return pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "race": rng.choice(["A", "B"], n),
            "sex": rng.choice(["F", "M"], n),
            "chance": np.where(rng.random(n) < 0.5, 0.3, 0.7),
            "y": np.where(tested, rng.integers(0, 2, n), np.nan),
        }
    )


def test_reference_group_and_known_probability(frame) -> None:
    roles = Roles(label="y", group="race", reference_group="B", testing_probability="chance")
    problem = read_table(frame, roles).problem
    assert problem.reference_group == "B"
    np.testing.assert_array_equal(problem.testing_probability, frame["chance"])
    assert "chance" not in problem.feature_names
    part = problem.subset(np.arange(10, 20))
    np.testing.assert_array_equal(part.testing_probability, frame["chance"][10:20])
    with pytest.raises(InputError, match="Did you mean"):
        read_table(frame, replace(roles, reference_group="b"))
    with pytest.raises(InputError, match="above 0 and at most 1"):
        read_table(frame.assign(chance=frame["chance"] - 0.3), roles)


def test_several_attributes_one_by_one(frame) -> None:
    table = read_table(frame, Roles(label="y", group="race,sex"))
    assert table.problem.n_groups == 4
    each = table.by_attribute()
    assert {name: one.group_names for name, one in each.items()} == {
        "race": ("A", "B"),
        "sex": ("F", "M"),
    }
    named = np.array(each["sex"].group_names)[each["sex"].group]
    np.testing.assert_array_equal(named, frame["sex"])


def test_levels_need_ten_people_not_rows(frame) -> None:
    visits = pd.concat([frame] * 4, ignore_index=True)
    visits["id"] = np.tile(np.arange(len(frame)), 4)
    rare = visits["id"] < 5  # five people, twenty rows
    visits["ward"] = np.where(rare, "rare", np.where(visits["id"] % 2, "ICU", "ER"))
    seen = read_table(visits, Roles(label="y", id="id")).encoder
    assert next(e for e in seen.encodings if e.name == "ward").levels == ("ER", "ICU")
    with pytest.warns(DataWarning, match="copies"):
        apart = read_table(visits.drop(columns="id"), Roles(label="y")).encoder
    assert "rare" in next(e for e in apart.encodings if e.name == "ward").levels


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
def test_decisions_as_they_are_called_say_who_was_tested() -> None:
    frame = pd.DataFrame({"x": range(4), "y": [1, 0, None, None]})
    for yes, no in (
        ("Approved", "Declined"),
        ("released", "detained"),
        ("Accept", "Reject"),
        ("TRUE", "FALSE"),
    ):
        read = read_table(frame.assign(t=[yes, yes, no, no]), Roles(label="y", tested="t"))
        assert read.problem.tested.tolist() == [True, True, False, False]
    with pytest.raises(InputError, match="'pending'"):
        read_table(frame.assign(t=["Approved"] * 3 + ["pending"]), Roles(label="y", tested="t"))


def test_tested_by_one_column_or_another() -> None:
    frame = pd.DataFrame({"x": range(4), "a": [1, 0, 0, 1], "b": ["no", "yes", "no", "yes"]})
    frame["y"] = [1, 0, None, 0]
    read = read_table(frame, Roles(label="y", tested="a,b"))
    assert read.problem.tested.tolist() == [True, True, False, True]
    with pytest.raises(InputError, match="'a or b' is 1"):
        read_table(frame.assign(y=[1, None, None, 0]), Roles(label="y", tested=["a", "b"]))
    with pytest.raises(InputError, match="'tested' and as 'group'"):
        Roles(label="y", tested=["a", "b"], group="b").resolved(list(frame))
