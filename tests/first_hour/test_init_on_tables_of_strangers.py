"""`dcem init` on tables that it has never seen: right, or a question with the right answer."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables_of_strangers import TABLES, N, Stranger, blanked, chosen
from typer.testing import CliRunner

from dcem.cli import app
from dcem.table import Roles, propose_roles, read_table
from dcem.table.messages import InputError

PLAIN = [name for name, make in TABLES.items() if not make(np.random.default_rng(0)).must_ask]
OPEN = [name for name in TABLES if name not in PLAIN]
SEEDS = (1, 2)


def table(name: str, seed: int = 1) -> Stranger:
    return TABLES[name](np.random.default_rng(seed))


def dcem(*args, cwd):
    """A command in a folder, away from any terminal: its exit status and all that it says."""
    before = Path.cwd()
    os.chdir(cwd)
    try:
        ended = CliRunner(env={"COLUMNS": "100", "TERM": "dumb"}).invoke(
            app, [*map(str, args)], prog_name="dcem"
        )
    finally:
        os.chdir(before)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return ended.exit_code, ended.output


def answers(proposal, role):
    return [dict(roles) for q in proposal.questions if q.role == role for roles, _ in q.answers]


def everybody_counts_as_tested(proposal, frame) -> bool:
    """Whether a reader of this proposal would count all rows as tested, and nothing says so."""
    if proposal.questions:
        return False
    return bool(read_table(frame, Roles(**proposal.roles)).problem.tested.all())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PLAIN)
def test_what_the_structure_tells_is_proposed_without_a_question(name, seed):
    it = table(name, seed)
    found = propose_roles(it.frame)
    assert not found.questions
    roles = found.roles
    assert (roles["label"], roles.get("tested", [])) == (it.label, it.tested)
    assert roles["group"] == [it.group]
    assert it.label not in roles.get("exclude", [])
    read = read_table(it.frame, Roles(**roles))
    assert 0.02 < read.problem.tested.mean() < 0.98


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", OPEN)
def test_what_it_leaves_open_is_asked_with_the_truth_among_the_first_three(name, seed):
    it = table(name, seed)
    found = propose_roles(it.frame)
    assert it.must_ask in [question.role for question in found.questions]
    assert not everybody_counts_as_tested(found, it.frame)
    if it.must_ask == "label":
        assert it.label in [answer["label"] for answer in answers(found, "label")[:3]]
    else:
        assert found.roles["label"] == it.label
    if it.tested:
        assert it.tested in [answer.get("tested") for answer in answers(found, "tested")[:3]]


def test_most_tables_are_understood_without_a_question():
    assert len(PLAIN) >= 14
    assert len(OPEN) <= len(TABLES) / 3


@pytest.mark.parametrize("name", [n for n in TABLES if table(n).tested])
def test_a_label_that_is_given_does_not_make_everybody_tested(name):
    it = table(name)
    found = propose_roles(it.frame, label=it.label)
    left_out = {*found.roles.get("exclude", [])}
    assert not left_out & {*it.tested}
    if not found.questions:
        assert found.roles["tested"] == it.tested
    else:
        assert it.tested in [answer.get("tested") for answer in answers(found, "tested")[:3]]


def zeros(draw, slips=0, **columns):
    x = draw.normal(size=N)
    tested = chosen(draw, x)
    y = tested & chosen(draw, x - 1)
    y[np.flatnonzero(~tested)[:slips]] = True
    frame = {"x": x.round(2), "k": draw.choice(["a", "b"], N), **columns}
    return pd.DataFrame(frame), tested, y


@pytest.mark.parametrize(
    "written",
    [
        lambda tested: np.where(tested, "x", ""),
        lambda tested: np.where(tested, 1, 2),
        lambda tested: np.where(tested, "seen", "gone"),
        lambda tested: (~tested).astype(int),
        lambda tested: np.where(tested, "approved", np.where(np.arange(N) % 9, "denied", "open")),
    ],
)
def test_a_column_that_says_who_was_tested_in_another_way_is_asked_about(written):
    """It cannot be the role as it stands; but nobody is counted as tested in silence."""
    frame, tested, y = zeros(np.random.default_rng(3))
    frame = frame.assign(seen=written(tested), outcome=y.astype(int))
    (question,) = [q for q in propose_roles(frame, label="outcome").questions if q.role == "tested"]
    assert "'seen'" in str(question)
    assert "positives would be expected" in str(question)
    assert {"tested": []} in [dict(roles) for roles, _ in question.answers]


@pytest.mark.parametrize("slips", [0, 4])
def test_both_counts_stand_beside_a_candidate(slips):
    frame, tested, y = zeros(np.random.default_rng(4), slips)
    frame = frame.assign(k1=tested * 1, k2=(tested | (frame.x > 1.5)) * 1, z=y * 1)
    found = propose_roles(frame, label="z")
    (question,) = [q for q in found.questions if q.role == "tested"]
    said = str(question)
    assert f"{(~tested).sum():,} rows" in said
    assert ("only 4 times positive" in said) == bool(slips)
    assert {"k1", "k2"} == question.columns


@pytest.mark.parametrize("share", [0.6, 0.9, 0.97])
def test_a_candidate_that_also_looks_like_a_leak_is_asked_about(share):
    """Nearly everybody who was looked at is positive: a careful test, or what followed from it."""
    draw = np.random.default_rng(10)
    looked = draw.random(N) < 0.3
    y = looked & (draw.random(N) < share)
    frame = pd.DataFrame({"x": draw.normal(size=N), "k": looked * 1, "outcome": y * 1})
    found = propose_roles(frame, label="outcome")
    assert {"tested": ["k"]} in answers(found, "tested")
    assert "k" not in found.roles.get("exclude", [])


def test_fewer_than_ten_expected_positives_are_chance():
    """40 positives: 4 of 30 random columns have none where they say no, and none is proposed."""
    draw = np.random.default_rng(5)
    frame = pd.DataFrame({f"c{i}": (draw.random(N) < 0.93).astype(int) for i in range(30)})
    y = np.zeros(N, int)
    y[draw.choice(N, 40, replace=False)] = 1
    fitting = [name for name in frame if not y[frame[name] == 0].any()]
    assert fitting  # they fit the first half of the rule
    found = propose_roles(frame.assign(y=y), label="y")
    assert "tested" not in found.roles
    assert not answers(found, "tested")
    assert any("all rows count as tested" in doubt for doubt in found.doubts)


def test_an_answer_given_beforehand_is_not_asked_for_again():
    it = table("two_things_that_may_be_the_test")
    for tested in (["attended"], []):
        found = propose_roles(it.frame, label=it.label, tested=tested)
        assert not found.questions
        assert found.roles.get("tested", []) == tested


def test_the_next_candidates_are_listed_with_a_line_each():
    it = table("comorbidity_named_like_an_outcome")
    others = [d for d in propose_roles(it.frame).doubts if d.startswith("The label could also be")]
    assert len(others) == 3
    assert all("values" in line for line in others)


@pytest.mark.parametrize("outcome", ["died", "readmitted", "mortality_30d", "relapsed"])
def test_no_outcome_is_left_out_by_its_name_where_the_label_is_open(outcome):
    draw = np.random.default_rng(6)
    frame = pd.DataFrame({"sex": draw.choice(["F", "M"], N), "x": draw.normal(size=N)})
    for name in ("sepsis", outcome):  # both complete: no structure tells which it is
        frame[name] = (draw.random(N) < 0.2).astype(int)
    found = propose_roles(frame)
    assert {"label": outcome} in answers(found, "label")[:3]
    assert outcome not in found.roles.get("exclude", [])
    told = propose_roles(frame, label="sepsis")
    assert not any("Judging by its name" in s.reason for s in told.suggestions)


@pytest.mark.parametrize(("low", "proposed"), [(20, False), (1, True)])
def test_ages_are_no_groups_and_bands_are(low, proposed):
    draw = np.random.default_rng(7)
    y = blanked(draw.integers(0, 2, N), draw.random(N) < 0.5)
    age = draw.integers(low, low + 20, N) if low > 1 else draw.choice(["18-39", "40-64", "65+"], N)
    found = propose_roles(pd.DataFrame({"x": draw.normal(size=N), "age": age, "y": y}))
    assert (found.roles.get("group") == ["age"]) is proposed
    assert any("bands" in doubt for doubt in found.doubts) is not proposed


# Questions in the file, and at a terminal


def asked(tmp_path):
    it = table("two_things_that_may_be_the_test")
    it.frame.to_csv(tmp_path / "t.csv", index=False)
    return it


def test_away_from_a_terminal_the_question_is_in_the_file_and_the_status_is_two(tmp_path):
    asked(tmp_path)
    status, said = dcem("init", "t.csv", cwd=tmp_path)
    assert status == 2
    assert "question: Who was tested?" in said
    text = (tmp_path / "dcem.toml").read_text()
    comments = [line for line in text.splitlines() if line.startswith("#")]
    for answer in ('tested = ["attended"]', 'tested = ["invited"]', "tested = []"):
        assert any(answer in line for line in comments)
    assert tomllib.loads(text)["roles"]["label"] == "polyp"
    status, said = dcem("check", "t.csv", cwd=tmp_path)  # nothing goes on without an answer
    assert status == 2
    assert "open question: tested" in said
    for answer in ('["attended"]', "[]"):
        (tmp_path / "dcem.toml").write_text(text.replace('tested = "?"', f"tested = {answer}"))
        status, said = dcem("check", "t.csv", cwd=tmp_path)
        assert status == 0, said
    (tmp_path / "dcem.toml").write_text(text)
    status, said = dcem("check", "t.csv", "--tested", "attended", cwd=tmp_path)
    assert status == 0, said
    status, said = dcem("check", "nothing.csv", cwd=tmp_path)
    assert "nothing.csv: no such file" in said


def test_check_without_roles_does_not_go_on_with_an_open_question(tmp_path):
    asked(tmp_path)
    status, said = dcem("check", "t.csv", cwd=tmp_path)
    assert status == 2
    assert "Who was tested?" in said


@pytest.mark.parametrize(
    ("typed", "status", "role"),
    [(b"1\n", 0, ["attended"]), (b"nothing\ninvited\n", 0, ["invited"]), (b"\n", 2, "?")],
)
def test_on_a_terminal_it_asks(tmp_path, typed, status, role):
    asked(tmp_path)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from dcem.cli import main; main()", "init", "t.csv"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=tmp_path,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(theirs)
    said = b""
    while b"leaves it open" not in said:
        assert select.select([ours], [], [], 60)[0], said
        said += os.read(ours, 10_000)
    os.write(ours, typed)
    while process.poll() is None:
        if select.select([ours], [], [], 1)[0]:
            try:
                said += os.read(ours, 10_000)
            except OSError:  # closed
                break
    assert process.wait(60) == status, said
    os.close(ours)
    assert tomllib.loads((tmp_path / "dcem.toml").read_text())["roles"]["tested"] == role


# Words of a label


@pytest.mark.parametrize(
    "undone",
    [
        *("not_done", "Not-Done", "NOT  DONE", "notdone", "not_tested", "Un-tested"),
        *("never tested", "non_testé", "NON TESTE", "nicht_durchgeführt", "Nicht untersucht"),
    ],
)
def test_a_word_for_nobody_looked_is_never_a_negative(undone):
    draw = np.random.default_rng(8)
    tested = draw.random(N) < 0.28
    result = np.where(draw.random(N) < 0.2, "detected", "not_detected")
    frame = pd.DataFrame({"x": draw.normal(size=N), "swab": np.where(tested, result, undone)})
    roles = propose_roles(frame, label="swab", group=[]).roles
    problem = read_table(frame, Roles(**roles)).problem
    np.testing.assert_array_equal(problem.tested, tested)
    with pytest.raises(InputError, match=f"'{undone}' in .* rows"):
        read_table(frame, Roles(label="swab", positive="detected"))


@pytest.mark.parametrize("odd", ["ND", "weiß nicht", "grey zone", "s. Bericht"])
def test_a_word_that_is_neither_stops_and_is_listed(odd, tmp_path):
    draw = np.random.default_rng(9)
    frame = pd.DataFrame({"x": draw.normal(size=N), "g": draw.choice(["a", "b"], N)})
    frame["swab_result"] = draw.choice(["positive", "negative", odd, ""], N)
    frame.to_csv(tmp_path / "t.csv", index=False)
    status, said = dcem("init", "t.csv", cwd=tmp_path)
    assert status == 2
    assert f"'{odd}'" in said
    assert "neither clearly positive nor clearly negative" in said
    for roles in (["--label", "swab_result"], ["--label", "swab_result", "--positive", "positive"]):
        status, said = dcem("check", "t.csv", "--config", "none.toml", *roles, cwd=tmp_path)
        assert status == 2
    (tmp_path / "dcem.toml").unlink()
    for more in ([], ["--positive", "positive"]):
        status, said = dcem("check", "t.csv", "--label", "swab_result", *more, cwd=tmp_path)
        assert status == 2
        assert f"'{odd}'" in said


@pytest.mark.parametrize(
    ("word", "yes"),
    [("POSITIVE", 1), ("Pos_itive", 1), ("néga_tif", 0), ("Y E S", 1), ("_no_", 0), ("NÃO", 0)],
)
def test_spelling_does_not_change_a_word(word, yes):
    other = "no" if yes else "yes"
    frame = pd.DataFrame({"x": np.arange(90) % 7, "y": [word, other, None] * 30})
    label = read_table(frame, Roles(label="y")).problem.y_obs
    assert label[:2].tolist() == [yes, 1 - yes]


@pytest.mark.parametrize("size", ["<1", ">1", "1+", "-1", "1_"])
def test_a_size_is_no_word(size):
    frame = pd.DataFrame({"x": np.arange(90) % 7, "y": ["yes", "no", size] * 30})
    with pytest.raises(InputError, match="Which of these mean yes"):
        read_table(frame, Roles(label="y"))


# Smaller ones


@pytest.mark.parametrize("command", ["audit", "compare", "check", "fit"])
def test_a_file_that_is_not_there_is_said_to_be_so(command, tmp_path):
    more = ["--out", "m"] if command == "fit" else []
    status, said = dcem(command, "nothing.csv", *more, cwd=tmp_path)
    assert status == 2
    assert "nothing.csv: no such file" in said
    assert "Which column" not in said


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_kinds_are_written_out(columns, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    it = table("ordered_and_flu")
    names = {"temp": "temperature_in_degrees_at_the_first_visit", "age": "age_in_whole_years"}
    it.frame.rename(columns=names).to_csv(tmp_path / "t.csv", index=False)
    ended = CliRunner(env={"COLUMNS": str(columns), "TERM": "dumb"}).invoke(
        app, ["check", str(tmp_path / "t.csv"), "--label", "flu", "--tested", "ordered"]
    )
    assert ended.exit_code == 0, ended.output
    assert "number" in ended.output
    assert "numb…" not in ended.output
    assert "nu…" not in ended.output
