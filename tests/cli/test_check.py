"""`dcem check`: what can be known in under a minute, and the line to paste."""

import shlex

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from dcem.app.commands import as_options
from dcem.cli._table_options import show_columns
from dcem.table import Roles, read_table
from dcem.table.messages import DataWarning


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    draw = np.random.default_rng(0)
    n = 600
    x = draw.normal(size=n).round(3)
    tested = draw.random(n) < 1 / (1 + np.exp(-x))
    path = tmp_path_factory.mktemp("check") / "my visits.csv"
    pd.DataFrame(
        {
            "x": x,
            "ward, floor": draw.choice(["a", "b"], n),
            "race": draw.choice(["a", "b"], n),
            "tested": tested.astype(int),
            "outcome": pd.Series(draw.integers(0, 2, n)).where(tested),
            "titre": pd.Series(draw.normal(size=n).round(2)).where(tested),
        }
    ).to_csv(path, index=False)
    return path


def test_roles_leaks_overlap_and_times(table, inside) -> None:
    roles = ("--label", "outcome", "--tested", "tested", "--group", "race")
    done = inside("check", table, *roles, "--words", "credit")
    assert done.returncode == 0
    assert "defaulted of approved" in done.stdout
    assert "Who is approved can be predicted" in done.stdout
    assert "--tested tested" in done.stdout  # what is to be typed stays
    said = " ".join(done.stdout.split())
    noted = "note: column 'titre' may have been recorded after the decision to approve: it shows "
    assert f"{noted}exactly who was approved (it may be the decision itself)." in said
    assert "whether other columns were recorded after the decision" in said
    assert "AUC of" in done.stdout
    assert "0 s  looking at a few thousand rows" in done.stderr  # no silence off a terminal
    assert "race" in done.stdout
    for command in ("audit", "compare", "fit"):
        line = next(one for one in done.stdout.splitlines() if f"dcem {command} " in one)
        assert " ".join([*roles, "--words credit"]) in line
    ran = inside(*shlex.split(line)[1:-1], table.parent / "w", "--method", "tested-only:linear")
    assert "--words credit" in next(o for o in ran.stdout.splitlines() if "dcem predict" in o)


def test_without_roles_they_are_proposed_and_the_line_can_be_pasted(table, inside) -> None:
    done = inside("check", table)
    assert done.returncode == 0
    line = next(line for line in done.stdout.splitlines() if "dcem fit" in line)
    words = shlex.split(line)
    assert words[words.index("--exclude") + 1] == "titre"
    assert "--report comparison.html --out ." in done.stdout  # where fit looks for it
    said = " ".join(done.stdout.split())
    assert "Only you can know whether columns were recorded after" in said
    assert "a quick look at these 600 rows finds nobody out of reach" in said
    ran = inside(*words[1:-1], table.parent / "m", "--method", "tested-only:linear")
    assert ran.returncode == 0, ran.stderr


def test_what_is_typed_is_said_again_and_what_a_file_says_is_not(table, inside) -> None:
    settings = table.parent / "roles.toml"
    text = 'words = "credit"\n[roles]\nlabel = "outcome"\ntested = ["tested"]\ngroup = ["race"]\n'
    settings.write_text(text)
    given = ("--config", settings, "--group", "ward, floor", "--exclude", "titre")
    for command, then in (("audit", "dcem compare"), ("check", "dcem audit")):
        done = inside(command, table, *given)
        line = next(one for one in done.stdout.splitlines() if then in one)
        words = shlex.split(line[line.index("dcem") :])
        assert words[3] == "--group"
        assert words[words.index("--config") + 1] == str(settings)
        assert words[words.index("--group") + 1] == "ward, floor"
        assert not {"--label", "--tested", "--words"} & {*words}


def test_nothing_to_check_without_a_label(tmp_path, inside) -> None:
    pd.DataFrame({"a": np.arange(50) / 7, "b": np.arange(50) % 7}).to_csv(tmp_path / "x.csv")
    done = inside("check", tmp_path / "x.csv")
    assert done.returncode == 2
    assert "--label" in done.stderr


def test_options_are_spelled_for_a_shell() -> None:
    given = {"label": "it's", "exclude": ["a b", "$c"], "group_as_feature": True}
    assert as_options(given) == [
        *("--label", "it's", "--exclude", "a b", "--exclude", "$c", "--group-as-feature"),
    ]


def test_in_short_no_word_about_a_column_is_lost(capsys) -> None:
    draw = np.random.default_rng(0)
    n = 400
    tested = draw.random(n) < 0.4
    frame = pd.DataFrame(
        {
            "country": "NL",
            "site": "A",
            "lactate": np.where(draw.random(n) < 0.005, "hemolyzed", draw.normal(size=n)),
            "ward": np.where(draw.random(n) < 0.01, "rare", draw.choice(["a", "b"], n)),
            "titre": pd.Series(draw.normal(size=n)).where(tested),
            "outcome": pd.Series(draw.integers(0, 2, n)).where(tested),
        }
    )
    with pytest.warns(DataWarning, match="titre"):
        table = read_table(frame, Roles(label="outcome"))
    notes = {column.name: column.note for column in table.columns}
    console = Console(width=300, highlight=False)
    show_columns(table, console)
    short = capsys.readouterr().out
    assert "Features: 3 columns (numbers: 2, categories: 1)" in short
    assert f"Left out: country ({notes['country']}); site ({notes['site']})" in short
    assert f"Please note: lactate ({notes['lactate']})" in short
    assert "titre' may have been recorded after the decision" in short
    assert "1 rare value as (other)" in notes["ward"]
    assert "ward" not in short  # said of most categories: `check` shows it
    show_columns(table, console, whole=True)
    whole = capsys.readouterr().out
    assert "1 rare value as (other)" in whole
    assert short.splitlines()[-1] == whole.splitlines()[-1]  # what may be late is said alike
