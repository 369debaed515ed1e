"""`dcem init`, and how every command takes roles and choices from dcem.toml."""

import tomllib

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def folder(tmp_path):
    draw = np.random.default_rng(0)
    n = 400
    tested = draw.random(n) < 0.5
    pd.DataFrame(
        {
            "x": draw.normal(size=n).round(3),
            "lab_a": draw.normal(size=n).round(3),
            "race": draw.choice(["a", "b"], n),
            "tested": tested.astype(int),
            "outcome": pd.Series(draw.integers(0, 2, n)).where(tested),
            "followup": draw.normal(size=n).round(3),
        }
    ).to_csv(tmp_path / "visits.csv", index=False)
    return tmp_path


def write(folder, text):
    (folder / "dcem.toml").write_text(text)


def test_init_writes_what_the_other_commands_read(folder, inside) -> None:
    assert inside("init", folder / "visits.csv").returncode == 0
    written = tomllib.loads((folder / "dcem.toml").read_text())
    assert written["roles"] == {
        "label": "outcome",
        "tested": ["tested"],
        "group": ["race"],
        "exclude": ["followup"],
    }
    done = inside("fit", "--method", "tested-only:linear", "--out", "m", cwd=folder)
    assert done.returncode == 0
    assert "From dcem.toml: label = outcome; tested = tested; group = race" in done.stderr
    assert "followup" not in (folder / "m" / "MODEL_CARD.md").read_text().split("| column")[1]


def test_init_proposes_the_words_of_lending(folder, inside) -> None:
    table = pd.read_csv(folder / "visits.csv")
    named = [
        ({}, None),
        ({"x": "Loan amount", "outcome": "defaulted"}, "credit"),
        ({"x": "approved", "outcome": "default_status"}, "credit"),
        ({"x": "application", "outcome": "visa_granted"}, None),
    ]
    for names, words in named:
        table.rename(columns=names).to_csv(folder / "t.csv", index=False)
        assert inside("init", folder / "t.csv", "--replace").returncode == 0
        written = tomllib.loads((folder / "dcem.toml").read_text())
        assert written.get("words") == words
        assert set(written) <= {"table", "words", "roles"}


def test_init_keeps_the_words_that_are_given(folder, inside) -> None:
    done = inside("init", folder / "visits.csv", "--words", "policing", "--out", folder / "w.toml")
    assert done.returncode == 0, done.stderr
    assert tomllib.loads((folder / "w.toml").read_text())["words"] == "policing"
    done = inside("init", folder / "visits.csv", "--words", "poetry", "--out", folder / "x.toml")
    assert done.returncode == 2
    assert "credit" in done.stderr
    assert not (folder / "x.toml").exists()


def test_without_an_outcome_init_says_to_name_it(tmp_path, inside) -> None:
    (tmp_path / "x.csv").write_text("a,b\n" + "".join(f"{i / 7},{i % 7}\n" for i in range(50)))
    done = inside("init", tmp_path / "x.csv")
    assert done.returncode == 2
    assert "Answer the open question in it, change what is wrong, then: dcem check " in done.stdout


def test_init_does_not_overwrite(folder, inside) -> None:
    write(folder, "# mine\n")
    done = inside("init", folder / "visits.csv")
    assert done.returncode == 2
    assert "--replace" in done.stderr
    assert (folder / "dcem.toml").read_text() == "# mine\n"
    assert inside("init", folder / "visits.csv", "--replace").returncode == 0
    assert "outcome" in (folder / "dcem.toml").read_text()


def test_init_keeps_what_is_given(folder, inside) -> None:
    table = folder / "visits.csv"
    inside("init", table, "--group", "tested", "--exclude", "lab_*", "--out", folder / "o.toml")
    roles = tomllib.loads((folder / "o.toml").read_text())["roles"]
    assert roles["group"] == ["tested"]
    assert roles["exclude"] == ["lab_a", "followup"]


def test_the_command_line_counts_more(folder, inside) -> None:
    roles = 'label = "nothing"\ntested = "tested"\nexclude = "race"\n'
    write(folder, f"[roles]\n{roles}[fit]\nmembers = 7\n")
    done = inside(
        *("fit", folder / "visits.csv", "--label", "outcome", "--method", "tested-only:linear"),
        *("--learner", "linear", "--out", folder / "m", "--group", "race", "--remember"),
    )
    assert done.returncode == 0
    remembered = tomllib.loads((folder / "dcem.toml").read_text())["roles"]
    assert remembered == {"label": "outcome", "tested": ["tested"], "group": ["race"]}
    assert "label" not in done.stderr
    assert "members = 7" in done.stderr


def test_a_list_that_takes_the_place_of_another_says_what_it_lacks(folder, inside) -> None:
    """Leaving out one column more would otherwise bring back those known to be recorded later."""
    write(folder, '[roles]\nlabel = "outcome"\nexclude = ["followup", "tested"]\n')
    done = inside("check", "visits.csv", "--exclude", "lab_a", cwd=folder)
    assert "--exclude replaces the list in dcem.toml" in done.stderr
    assert "'followup', 'tested'" in done.stderr
    done = inside("check", "visits.csv", "--exclude", "lab_a,followup,tested", cwd=folder)
    assert "takes the place" not in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[adit]\nseed = 1", "Did you mean 'audit'?"),
        ("[fit]\nmember = 1", "Did you mean 'members'?"),
        ('[fit]\nlabel = "y"', "move it under [roles]"),
        ('label = "outcome"', "move it under [roles]"),
        ("[fit]\nmembers = [1, 2]", "takes one entry"),
        ('[fit]\nmembers = "many"\n[roles]\nlabel = "outcome"', "many"),
        ("", "dcem init TABLE"),
    ],
)
def test_what_nobody_knows_is_an_error(folder, inside, text, said) -> None:
    write(folder, text)
    done = inside("fit", folder / "visits.csv", "--out", folder / "m")
    assert done.returncode == 2
    assert said in done.stderr
    assert not (folder / "m").exists()


def test_a_call_is_remembered_and_comes_back(folder, inside) -> None:
    write(folder, '[roles]\nlabel = "outcome"\n[audit]\nmax_rows = 2000\n')
    call = (
        "fit",
        "visits.csv",
        "--tested",
        "tested",
        "--group",
        "race",
        "--method",
        "tested-only:linear",
    )
    more = ("--learner", "linear", "--seed", "3", "--out", "m", "--remember")
    assert inside(*call, *more, cwd=folder).returncode == 0
    written = tomllib.loads((folder / "dcem.toml").read_text())
    assert written["roles"] == {"label": "outcome", "tested": ["tested"], "group": ["race"]}
    assert written["audit"] == {"max_rows": 2000}
    assert written["fit"]["seed"] == 3
    assert inside("fit", cwd=folder).returncode == 0  # everything is in the file


def test_another_file_by_name(folder, inside) -> None:
    (folder / "other.toml").write_text('[roles]\nlabel = "tested"\n')
    done = inside(
        *("fit", "visits.csv", "--config", "other.toml", "--out", "m", "--method", "y-obs"),
        *("--learner", "linear"),
        cwd=folder,
    )
    assert "From other.toml: label = tested." in done.stderr
    done = inside("fit", "visits.csv", "--config", "none.toml", "--out", "m", cwd=folder)
    assert done.returncode == 2
    assert "none.toml" in done.stderr
