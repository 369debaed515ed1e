"""`dcem.toml`: what is written is read again, and what it cannot mean is refused."""

import re

import pytest

from dcem.table.messages import DataWarning, InputError
from dcem.table.roles import Roles
from dcem.table.settings import Settings, find_settings, read_settings, settings_text

ODD = ["a,b", 'say "hi"', "back\\slash", "line\nbreak", "Größe [m] ♀", "\x7f\x01", "", "[x] = 1 #"]


def test_what_is_written_is_read_again(tmp_path) -> None:
    settings = Settings(
        tmp_path / "a.csv",
        {"label": ODD[1], "exclude": ODD, "group": ["race"], "group_as_feature": True},
        {"": {"words": "credit"}, "compare": {"capacity": 0.05, "method": ["ipw", "dcem"]}},
    )
    reasons = {("exclude", name): f"because of\n{name}" for name in ODD}
    path = tmp_path / "dcem.toml"
    text = settings_text(settings, reasons=reasons, doubts=["line\nbreak # [roles]"])
    path.write_text(text, encoding="utf-8")
    assert read_settings(path) == settings
    assert text.count("because of") == len(ODD)


def test_a_file_without_a_label_says_so_and_is_still_legal(tmp_path) -> None:
    path = tmp_path / "dcem.toml"
    path.write_text(settings_text(Settings(roles={"group": ["race"]})))
    assert read_settings(path).roles == {"group": ["race"]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[roles]\nlabels = "y"', "unknown role 'labels'. Did you mean 'label'?"),
        ("[roles]\nlabel = y", "not a readable TOML file"),
        ('[roles]\nlabel = ["y", "z"]', "takes one entry"),
        ('[roles]\ngroup_as_feature = "yes"', "true or false"),
        ("[roles]\nlabel_is_number = true", "unknown role"),
        ('[roles.group]\na = "b"', "must be a value"),
        ("roles = 3", "must be a section"),
        ("table = 3", "name of a file"),
    ],
)
def test_what_it_cannot_mean_is_refused(tmp_path, text, said) -> None:
    path = tmp_path / "dcem.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(said)):
        read_settings(path)


def test_numbers_dates_and_the_mark_of_notepad_are_understood(tmp_path) -> None:
    path = tmp_path / "dcem.toml"
    text = '[roles]\nlabel = "y"\nmissing = 99\npositive = [1, 2]\nuntil = 2021-04-03'
    path.write_text(text, encoding="utf-8-sig")
    roles = Roles(**read_settings(path).roles)
    assert (roles.missing, roles.positive, roles.until) == (("99",), ("1", "2"), "2021-04-03")


@pytest.mark.parametrize("text", ["most_rows = 2000", "[audit]\nmost-rows = 2000"])
def test_a_choice_under_its_former_name_still_counts(tmp_path, text) -> None:
    path = tmp_path / "dcem.toml"
    path.write_text(text)
    with pytest.warns(DataWarning, match="most_rows is now called sample_rows"):
        choices = read_settings(path).choices
    assert {"sample_rows": 2000} in choices.values()


def test_beside_the_table_before_the_working_directory(tmp_path, monkeypatch) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    table = tmp_path / "data" / "a.csv"
    assert find_settings(table) is None
    (tmp_path / "dcem.toml").touch()
    assert find_settings(table).samefile(tmp_path / "dcem.toml")
    (tmp_path / "data" / "dcem.toml").touch()
    assert find_settings(table).samefile(tmp_path / "data" / "dcem.toml")
    assert find_settings().samefile(tmp_path / "dcem.toml")
