"""`dcem fit`, `predict`, `next-tests`: from a messy file to scores, and every wrong turn."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from forked import listens
from typer.testing import CliRunner

from dcem.cli import app

pytestmark = pytest.mark.usefixtures("linear_models")


def visits(n: int = 800) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.integers(18, 95, n)
    tested = rng.random(n) < 0.5
    ill = rng.random(n) < 1 / (1 + np.exp(-(age - 60) / 10))
    return pd.DataFrame(
        {
            "patient": [f"P{i:04d}" for i in range(n)],
            "age": age,
            "lactate": rng.gamma(2, 1, n).round(2),
            "ward": rng.choice(["ICU", "ER", "surgery"], n),
            "race": rng.choice(["A", "B"], n),
            "cultured": tested.astype(int),
            "sepsis": np.where(tested, ill.astype(float), np.nan),
        }
    )


def run(*arguments: object):
    # wide, so that a sentence stays on its line
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "300"})


def fit(path, *more: object, label: str = "sepsis", out="model"):
    return run("fit", path, "--label", label, "--out", path.parent / out, "--members", 1, *more)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "visits.csv"
    visits().to_csv(file, index=False)
    return file


def refused(result, *said: str) -> None:
    text = " ".join(result.output.split())
    assert result.exit_code == 2, text
    assert "Traceback" not in text
    for words in said:
        assert words in text, text


def test_fit_predict_next_tests(path):
    roles = ("--tested", "cultured", "--group", "race", "--id", "patient")
    result = fit(path, *roles, "--method", "tested-only")
    assert result.exit_code == 0, result.output
    for words in ("Features: ", "dcem check", "Fitted in"):
        assert words in result.output
    folder = path.parent
    assert {p.name for p in folder.iterdir()} == {"visits.csv", "model"}

    people = visits().drop(columns=["race", "cultured", "sepsis"])
    people.to_parquet(folder / "people.parquet", index=False)
    result = run("predict", folder / "model", folder / "people.parquet", "-o", folder / "s.csv")
    assert result.exit_code == 0, result.output
    assert "Scored 800 rows" in result.output
    scores = pd.read_csv(folder / "s.csv")
    assert list(scores["patient"]) == list(people["patient"])
    assert scores["score"].corr(people["age"]) > 0.5

    people.assign(ward="hospice").to_csv(folder / "odd.csv", index=False)
    result = run("predict", folder / "model", folder / "odd.csv", "-o", folder / "new" / "s.csv")
    assert "warning: ward: 100 % of the values were rare or never seen" in result.output

    who = folder / "who.csv"
    result = run("next-tests", folder / "model", path, "--budget=40", "-o", who, "--draw-seed=1")
    assert result.exit_code == 0, result.output
    assert "a single member" in result.output
    assert "no model of who is tested" in result.output
    listed = pd.read_csv(who)
    assert listed["probability"].sum() == pytest.approx(40)
    assert listed["drawn"].sum() == 40
    assert "no tests are drawn yet" not in result.output
    call = ("next-tests", folder / "model", path, "--budget=40", "-o", folder / "lent.csv")
    assert "no ground for" not in result.output
    searched = run(*call, "--words=policing")  # as the audit says of searches
    assert "no ground for a search: search nobody for the sake of a number" in searched.output
    run(*call, "--words=credit")
    reasons = pd.read_csv(folder / "lent.csv")["reason"]
    assert listed["reason"].str.contains("tested").any()
    assert reasons.tolist() == listed["reason"].str.replace("tested", "approved").tolist()
    result = run("next-tests", folder / "model", path, "--budget=40", "-o", folder / "all.csv")
    assert re.search(r"probabilities from [\d.]+ % to [\d.]+ %\.", result.output)
    assert "no tests are drawn yet: --draw-seed 1 draws" in result.output
    assert len(listed) == visits()["sepsis"].isna().sum()
    everything = run("predict", folder / "model", path, "--keep", "all", "-o", folder / "s.parquet")
    assert everything.exit_code == 0, everything.output
    assert list(pd.read_parquet(folder / "s.parquet"))[:7] == list(visits())


def test_a_wrong_column_name_gets_the_nearest(path):
    refused(fit(path, "--group", "Race"), "no column 'Race'. Did you mean 'race'?")
    refused(fit(path, label="sepsys"), "visits.csv", "Did you mean 'sepsis'?")
    refused(fit(path, "--exclude", "age,lactat"), "no column 'lactat'. Did you mean 'lactate'?")
    assert not (path.parent / "model").exists()


def test_yes_and_no_are_understood(path):
    frame = visits()
    frame["sepsis"] = frame["sepsis"].map({1.0: "Yes", 0.0: "No"})
    frame["cultured"] = frame["cultured"].map({1: "yes", 0: "no"})
    frame.to_csv(path, index=False)
    result = fit(path, "--tested", "cultured", "--method", "tested-only:linear")
    assert result.exit_code == 0, result.output
    positive = int((frame["sepsis"] == "Yes").sum())
    assert f"{positive:,} (" in result.output


def test_other_words_ask_which_mean_yes(path):
    frame = visits()
    frame["sepsis"] = frame["sepsis"].map({1.0: "found", 0.0: "clear"}).fillna("not done")
    frame.to_csv(path, index=False)
    refused(fit(path), "'found'", "'clear'", "under --positive", "under --untested-value")
    refused(
        fit(path, "--positive", "fond"),
        "'fond', given as --positive, does not occur in column 'sepsis'. Did you mean 'found'?",
    )
    refused(
        fit(path, "--positive", "found,clear", "--untested-value", "not done"),
        "Only one class among the tested",
    )


def test_a_measurement_is_no_label(path):
    refused(fit(path, label="lactate"), "'lactate' holds a measurement", "above the relevant limit")


def test_tested_that_contradicts_the_label(path):
    frame = visits()
    frame.loc[frame.index[frame["sepsis"] == 1][:3], "cultured"] = 0
    frame.to_csv(path, index=False)
    refused(fit(path, "--tested", "cultured"), "'sepsis' is 1 although 'cultured' is 0 in 3 of 800")
    frame = visits()
    frame.loc[frame.index[frame["cultured"] == 0][:2], "cultured"] = 1
    frame.to_csv(path, index=False)
    refused(fit(path, "--tested", "cultured"), "missing although 'cultured' is 1 in 2 of 800 rows")
    refused(fit(path, "--tested", "ward"), "'ward' must say yes or no")


def test_a_group_of_three_is_kept_with_a_note(path):
    frame = visits()
    frame.loc[:2, "race"] = "C"
    frame.to_csv(path, index=False)
    result = fit(path, "--group", "race", "--method", "tested-only:linear")
    assert result.exit_code == 0, result.output
    assert "Fewer than 10 rows in group 'C'" in " ".join(result.output.split())
    card = (path.parent / "model" / "MODEL_CARD.md").read_text()
    assert "| C | withheld | withheld | withheld |" in card


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", b"", "empty"),
        ("t.csv", b"sepsis,b\n1,2\n3\n", "not a readable CSV"),
        ("t.csv", b"sepsis,sepsis\n1,2\n", "several columns called 'sepsis'"),
        ("t.csv", b"sepsis,b\n", "no rows"),
        ("t.csv", b"sepsis,b\n1,\0\n0,2\n", "NUL"),
        ("t.csv.gz", b"nothing zipped", "not a complete gzip"),
        ("t.parquet", b"PAR1 no more", "not a readable Parquet"),
        ("t.docx", b"x", "unknown type of file"),
    ],
)
def test_unreadable_files(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    refused(fit(tmp_path / name), name, said)


def test_a_file_that_is_not_there(tmp_path):
    refused(fit(tmp_path / "absent.csv"), "absent.csv: no such file")
    refused(run("predict", tmp_path / "m", tmp_path / "t.csv", "-o", "s.csv"), "no saved model")


def test_methods_and_places_are_refused_before_reading(path):
    refused(fit(path, "--method", "y-model"), "learns from everybody's true outcome")
    refused(fit(path, "--method", "dcme"), "Did you mean 'dcem'?")
    two = ("--method", "tested-only:linear", "--learner", "boost")
    refused(fit(path, *two), "'tested-only:linear'", "'boost'", "contradict each other")
    (path.parent / "thesis").mkdir()
    (path.parent / "thesis" / "chapter1.tex").write_text("precious")
    refused(fit(path, out="thesis"), "something other than a saved model")
    assert (path.parent / "thesis" / "chapter1.tex").read_text() == "precious"


def test_a_column_filled_in_by_the_test_is_pointed_out(path):
    frame = visits()
    frame["culture_site"] = np.where(frame["cultured"] == 1, "blood", None)
    frame.to_csv(path, index=False)
    result = fit(path, "--exclude", "cultured", "--method", "tested-only:linear")
    text = " ".join(result.output.split())
    assert "column 'culture_site' may have been recorded after the decision to test" in text
    assert "--exclude culture_site" in text


def test_a_column_that_says_the_label_is_pointed_out_and_truth_is_no_feature(path):
    frame = visits()
    frame["truth"] = frame["sepsis"].fillna(0).astype(int)
    frame["ward"] = np.where(frame["truth"] == 1, "ICU", "ER")
    frame.to_csv(path, index=False)
    result = fit(path, "--tested", "cultured", "--truth", "truth", "--method", "tested-only:linear")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "among the tested it reveals the label (AUC 1.00)" in text
    assert "--exclude ward" in text
    frame.drop(columns=["truth", "sepsis"]).to_csv(path, index=False)
    scored = run("predict", path.parent / "model", path, "-o", path.parent / "s.csv")
    assert scored.exit_code == 0, scored.output


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_leaves_nothing_half_written(path):
    before = {p.name for p in path.parent.iterdir()}
    arguments = ["fit", path, "--label", "sepsis", "--out", path.parent / "model"]
    process = subprocess.Popen(
        [sys.executable, "-c", "from dcem.cli import main; main()", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=listens,
    )
    for line in process.stdout:
        if line.startswith("Fitting"):
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert {p.name for p in path.parent.iterdir()} == before


def test_replacing_a_model_is_said(path):
    assert "replace" not in fit(path, "--method", "tested-only:linear").output
    again = fit(path, "--method", "tested-only:linear").output
    assert "already holds a model: the new one will replace it" in again
    assert "which replaces the older one" in again


def test_the_card_speaks_the_words_of_the_comparison_it_goes_by(path):
    roles = ("--tested", "cultured", "--group", "race", "--id", "patient")
    quick = ("--method", "tested-only:linear")
    where = ("--planted", 0, "--folds", 2, "--words", "credit", "--out", path.parent)
    done = run("compare", path, "--label", "sepsis", *roles, *quick, *where)
    assert done.exit_code == 0, done.output
    typed = shlex.join(["--label", "sepsis", *roles, "--words", "credit"])
    then = f"dcem fit {path} {typed} --out {path.parent / 'model'}"
    assert done.stdout.splitlines()[-1] == f"Next: {then}"
    for more, said in (((), True), (("--words", "general"), False)):
        made = fit(path, *roles, *quick, *more)
        assert made.exit_code == 0, made.output
        card = (path.parent / "model" / "MODEL_CARD.md").read_text()
        assert ("approved" in card) is said
        assert ("who is tested" in card) is not said


def test_the_loop_of_next_tests_is_closed(path):
    """Fit, draw, test, fit again from the model; the rows of the table in another order."""
    roles = ("--tested", "cultured", "--group", "race", "--id", "patient")
    folder, who = path.parent / "model", path.parent / "next.csv"
    assert fit(path, *roles).exit_code == 0
    drawn = run("next-tests", folder, path, "--budget", 120, "--draw-seed", 1, "--out", who)
    assert f"--start-from {folder}" in drawn.output
    table = visits().assign(ward_2="x", shift=np.arange(800) % 7)
    chosen = table["patient"].isin(pd.read_csv(who).query("drawn")["patient"])
    table.loc[chosen, "cultured"] = 1
    table.loc[chosen, "sepsis"] = (table.loc[chosen, "age"] > 60).astype(float)
    later = path.parent / "later.csv"
    table.iloc[::-1].to_csv(later, index=False)
    again = (*roles, "--testing-probability", who, "--start-from", folder)
    done = fit(later, *again, "--method", "ensemble", out="second")  # the model's own
    assert done.exit_code == 0, done.output
    assert "New tests, drawn with known probabilities: 120." in done.output
    assert "not in the earlier model" in done.output  # the new column
    assert "started from" in (path.parent / "second" / "MODEL_CARD.md").read_text()
    assert (
        run("predict", path.parent / "second", path, "--out", path.parent / "s.csv").exit_code == 0
    )
    refused(fit(later, *again, "--method", "dcem"), "--method")
    refused(fit(later, *again, "--exclude", "age"), "'age' is excluded")
    table.drop(columns="ward").to_csv(later, index=False)
    refused(fit(later, *again), "no column 'ward'")


def test_a_number_of_members_that_cannot_matter_is_said_to(path):
    said = "--members has no effect: the number of models is fixed in"
    assert f"{said} ensemble" in fit(path, "--method", "ensemble").output
    assert said not in run("fit", path, "--label", "sepsis", "--out", path.parent / "m").output
    assert said not in fit(path, "--method", "tested-only:linear").output
    columns = ("--label", "sepsis", "--planted", 0, "--max-rows", 400, "--members", 2)
    assert f"{said} ensemble" in run("compare", path, *columns, "--method", "ensemble").output
