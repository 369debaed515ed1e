"""Of three words or more, only the positive one and its counterpart need no explanation."""

from __future__ import annotations

import tomllib

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dcem.cli import app
from dcem.table import Roles, propose_roles, read_table
from dcem.table.messages import DataWarning, InputError

N = 900
THREE = [  # positive, its counterpart, and a word that may mean that nobody looked
    ("default", "repaid", "rejected"),
    ("defaulted", "repaid", "declined"),
    ("Charged Off", "Fully Paid", "Rejected"),
    ("Bad", "Good", "Rejected"),
    ("died", "alive", "not admitted"),
    ("detected", "not detected", "sample rejected"),
    ("Reactive", "Non-reactive", "Specimen rejected"),
    ("Found", "Clear", "No search"),
    ("abnormal", "normal", "no"),
    ("abnormal", "normal", "N"),
    ("abnormal", "normal", "No echo"),
    ("malignant", "benign", "no biopsy"),
    ("positiv", "negativ", "keine Abnahme"),
    ("positiv", "negativ", "nein"),
    ("positive", "negative", "no imaging"),
    ("positive", "negative", "nonattender"),
    ("positive", "negative", "0"),
    ("yes", "no", "N"),
    ("Erhöht", "normal", "nicht erschienen"),
    ("fraud", "no fraud", "no audit"),
    ("guilty", "not guilty", "dismissed"),
    ("P", "N", "U"),
    ("pathologisch", "nicht pathologisch", "abgelehnt"),
    ("infected", "uninfected", "withdrew"),
    ("recidivated", "did not recidivate", "detained"),
]
PLAIN = [
    ("1", "0"),
    ("yes", "no"),
    ("Y", "N"),
    ("positive", "negative"),
    ("pos", "NEG", "neg", "Neg"),
    ("Yes", "no", "NO", "No"),
    ("detected", "not detected", "not_detected"),
    ("Reactive", "non-reactive", "nonreactive"),
    ("fraud", "no fraud"),
    ("abnormal", "normal"),
    ("default", "repaid"),
]


def table(*words):
    draw = np.random.default_rng(3)
    frame = pd.DataFrame({"x": draw.normal(size=N), "sex": draw.choice(["f", "m"], N)})
    return frame.assign(result=draw.choice(words, N))


def dcem(*args):
    ended = CliRunner(env={"COLUMNS": "100", "TERM": "dumb"}).invoke(app, [*map(str, args)])
    return ended.exit_code, " ".join(ended.output.split())


def rows(frame, word):
    return f"{(frame.result == word).sum():,}"


@pytest.mark.parametrize("label", [[], ["--label", "result"]])
@pytest.mark.parametrize("words", THREE, ids="/".join)
def test_the_third_word_is_asked_about(words, label, tmp_path):
    frame = table(*words)
    frame.to_csv(tmp_path / "t.csv", index=False)
    status, said = dcem("init", tmp_path / "t.csv", *label)
    assert status == 2
    if label:
        assert f"'{words[2]}' ({rows(frame, words[2])} rows) in 'result'" in said
        assert "not tested, or a negative result?" in said
        assert f"'{words[1]}' (" not in said  # the counterpart is not in doubt
        written = tomllib.loads((tmp_path / "dcem.toml").read_text())["roles"]
        assert written["positive"] == "?"


@pytest.mark.parametrize("words", THREE, ids="/".join)
def test_every_answer_can_be_given_and_the_first_is_untested(words):
    frame = table(*words)
    (question,) = propose_roles(frame, label="result", group=[]).questions
    answers = [dict(roles) for roles, _ in question.answers]
    assert answers[0] == {"positive": [words[0]], "untested_value": [words[2]]}
    tested, negative = [
        read_table(frame, Roles(label="result", **answer)).problem for answer in answers[:2]
    ]
    np.testing.assert_array_equal(tested.tested, frame.result != words[2])
    assert negative.tested.all()
    np.testing.assert_array_equal(negative.y_obs == 1, frame.result == words[0])
    for answer in answers[:2]:
        assert not propose_roles(frame, label="result", group=[], **answer).questions


@pytest.mark.parametrize("words", THREE, ids="/".join)
def test_a_positive_word_alone_does_not_account_for_the_third(words):
    frame = table(*words)
    with pytest.raises(InputError, match=f"is '{words[2]}' in {rows(frame, words[2])} of 900"):
        read_table(frame, Roles(label="result", positive=words[0]))
    (question,) = propose_roles(frame, label="result", positive=words[0], group=[]).questions
    assert question.role == "untested_value"
    assert question.answers[0][0] == {"untested_value": [words[2]]}


@pytest.mark.parametrize("words", [("positive", "negative", "nein"), ("yes", "no", "0")])
def test_words_that_all_say_yes_or_no_are_not_all_understood(words):
    with pytest.raises(InputError, match=f"'{words[2]}' in"):
        read_table(table(*words), Roles(label="result"))


def test_each_word_of_four_is_accounted_for(tmp_path):
    frame = table("Charged Off", "Fully Paid", "Rejected", "Current")
    frame.to_csv(tmp_path / "t.csv", index=False)
    known = ["--label", "result", "--positive", "Charged Off"]
    status, said = dcem("check", tmp_path / "t.csv", *known)
    assert status == 2
    assert "'Rejected'" in said
    assert "'Current'" in said
    assert "'Fully Paid'" not in said
    status, said = dcem("check", tmp_path / "t.csv", *known, "--untested-value", "Current")
    assert status == 2
    assert "'Rejected' in" in said
    for untested in (["Rejected,Current"], ["Rejected", ""], [""]):
        more = [part for value in untested for part in ("--untested-value", value)]
        status, said = dcem("check", tmp_path / "t.csv", *known, *more)
        assert status == 0, said


def test_where_no_word_is_the_counterpart_all_are_listed():
    with pytest.raises(InputError, match=r"'(amber|green)', '(amber|green)' in \d+ of 900"):
        read_table(table("red", "amber", "green"), Roles(label="result", positive="red"))


def test_a_column_that_says_who_was_tested_accounts_for_the_words():
    frame = table("default", "repaid", "rejected")
    frame["approved"] = (frame.result != "rejected").astype(int)
    roles = Roles(label="result", positive="default", tested="approved")
    np.testing.assert_array_equal(read_table(frame, roles).problem.tested, frame.approved == 1)


@pytest.mark.filterwarnings("ignore::dcem.table.messages.DataWarning")
@pytest.mark.parametrize("blank", [True, False])
@pytest.mark.parametrize("words", PLAIN, ids="/".join)
def test_two_plain_words_are_not_asked_about(words, blank):
    frame = table(*words, *[""] * blank)
    found = propose_roles(frame, label="result", group=[])
    assert not found.questions
    problem = read_table(frame, Roles(**found.roles)).problem
    np.testing.assert_array_equal(problem.y_obs == 1, frame.result == words[0])
    np.testing.assert_array_equal(problem.tested, frame.result != "")
    if words[0] != "1":
        read_table(frame, Roles(label="result", positive=words[0]))


@pytest.mark.parametrize(
    ("words", "positive"), [(("P", "N", "U"), "P"), ((1, 0, -1), "1"), (("a", "b", "c"), None)]
)
def test_codes_of_a_label_that_is_given_are_asked_about(words, positive, tmp_path):
    table(*words).to_csv(tmp_path / "t.csv", index=False)
    status, said = dcem("init", tmp_path / "t.csv", "--label", "result")
    assert status == 2
    assert "question:" in said
    found = propose_roles(table(*words), label="result")
    (question,) = [q for q in found.questions if q.role == "positive"]
    if positive:
        first = {"positive": [positive], "untested_value": [str(words[2])]}
        assert question.answers[0][0] == first
    else:
        assert {*words} == {answer["positive"][0] for answer, _ in question.answers}


def test_a_code_beside_one_and_zero_is_asked_about_though_the_positive_one_is_given():
    (question,) = propose_roles(table(1, 0, -1), label="result", positive="1").questions
    assert question.answers[0][0] == {"untested_value": ["-1"]}
    assert not propose_roles(table(2, 1, 0), label="result", positive="2").questions


@pytest.mark.parametrize(
    ("name", "doubted"), [("pregnant", True), ("surgery", True), ("screened", False)]
)
def test_zeros_may_mean_that_the_outcome_cannot_occur(name, doubted):
    draw = np.random.default_rng(5)
    can = draw.random(N) < 0.3
    frame = pd.DataFrame({"x": draw.normal(size=N), name: can * 1})
    frame["outcome"] = (can & (draw.random(N) < 0.3)) * 1
    found = propose_roles(frame)
    assert found.roles["tested"] == [name]
    told = [doubt for doubt in found.doubts if "cannot occur" in doubt]
    assert len(told) == doubted
    assert all("Zeros there" in doubt for doubt in told)


def test_a_model_goes_on_with_what_was_stated():
    """In a later table a new word is told, as before, and the others are understood."""
    frame = table("red", "amber", "green", "")
    before = read_table(frame, Roles(label="result", positive="red", untested_value=""))
    read_table(frame, before.roles, encoder=before.encoder)
    with pytest.warns(DataWarning, match="is 'blue' in"):
        read_table(frame.replace("green", "blue"), before.roles, encoder=before.encoder)
