"""A column that carries the score by itself is the first thing said, wherever a model is judged."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dcem

SCRIPT = Path(sys.executable).with_name("dcem")
METHODS = ("tested-only:boost", "tested-only:linear")


def run(*args, cwd):
    """Run the installed `dcem` script, as a shell would."""
    done = subprocess.run(
        [SCRIPT, *map(str, args)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"COLUMNS": "100", "TERM": "dumb"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def clinic(n=1600, seed=1):
    """Eight weak features, the true outcome, and who is tested."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    frame = pd.DataFrame({f"v{i}": X[:, i].round(3) for i in range(8)})
    risk = 0.9 * X[:, 0] + 0.5 * X[:, 1] - 0.8
    y = (rng.random(n) < 1 / (1 + np.exp(-risk))).astype(int)
    tested = rng.random(n) < 1 / (1 + np.exp(-0.8 * X[:, 0] - 0.5 * X[:, 2]))
    return frame, y, tested, rng


def one_number(frame, y, rng):
    frame["late"] = (2.2 * y + rng.normal(size=len(y))).round(3)
    return {"late"}


def the_label_itself(frame, y, rng):
    frame["late"] = y
    return {"late"}


def two_copies(frame, y, rng):
    late = 2.2 * y + rng.normal(size=len(y))
    frame["late"] = late.round(3)
    frame["again"] = (3 * late + 7 + 0.3 * rng.normal(size=len(y))).round(2)
    return {"late", "again"}


def dummies(frame, y, rng):
    code = np.where(rng.random(len(y)) < 0.92, y, 1 - y) * 3 + rng.integers(0, 3, len(y))
    for k in range(6):
        frame[f"d_{k}"] = (code == k).astype(int)
    return {f"d_{k}" for k in range(6)}


def filled_in_for_the_ill(frame, y, rng):
    there = np.where(rng.random(len(y)) < 0.93, y, 1 - y) == 1
    frame["level"] = np.where(there, rng.normal(size=len(y)).round(2), np.nan)
    return {"level"}


def mark_of_gaps(frame, y, rng):
    there = np.where(rng.random(len(y)) < 0.93, y, 1 - y) == 1
    frame["level"] = np.where(there, rng.normal(5, 1, size=len(y)).round(2), 0)
    frame["level_missing"] = (~there).astype(int)
    return {"level", "level_missing"}


def shared_out(frame, y, rng):
    """Each of three treatments is filled in for other people, nearly all of them ill."""
    there = np.where(rng.random(len(y)) < 0.93, y, 1 - y) == 1
    which = rng.integers(0, 3, len(y))
    for k in range(3):
        given = there & (which == k)
        frame[f"dose{k}"] = np.where(given, rng.normal(size=len(y)).round(2), np.nan)
    return {f"dose{k}" for k in range(3)}


def category(frame, y, rng):
    there = np.where(rng.random(len(y)) < 0.93, y, 1 - y) == 1
    names = np.array(["home", "clinic", "ward", "unit"])
    frame["place"] = names[there * 2 + rng.integers(0, 2, len(y))]
    return {"place"}


LEAKS = [
    one_number,
    the_label_itself,
    two_copies,
    dummies,
    filled_in_for_the_ill,
    mark_of_gaps,
    shared_out,
    category,
]


def written(frame, y, tested, path):
    frame.assign(out=pd.Series(y).where(tested).astype("Int64")).to_csv(path, index=False)
    return path


def compared(path, methods=METHODS, **roles):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = dcem.read_table(path, dcem.Roles(label="out", **roles))
        return dcem.compare_methods(
            table.problem, methods, encoder=table.encoder, n_folds=2, planted=0, n_resamples=20
        )


def first_finding(comparison):
    findings = comparison.document().findings.items
    return findings[0] if findings else None


@pytest.mark.parametrize("leak", LEAKS)
def test_the_columns_that_carry_the_score_are_the_first_finding(tmp_path, leak):
    frame, y, tested, rng = clinic()
    columns = leak(frame, y, rng)
    first = first_finding(compared(written(frame, y, tested, tmp_path / "t.csv")))
    assert (first.key, first.severity) == ("one-column", "serious")
    assert set(first.values["columns"]) == columns
    assert first.values["alone"] > 0.9
    assert first.values["whole"] - first.values["without"] > 0.1
    assert "before the decision" in first.remedy


def honest(n=1600):
    """Twenty features of equal weight: together an AUC of about .95."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 20))
    y = (rng.random(n) < 1 / (1 + np.exp(-0.9 * X.sum(axis=1)))).astype(int)
    frame = pd.DataFrame(X.round(3), columns=[f"h{i}" for i in range(20)])
    return frame, y, rng.random(n) < 0.6


def test_many_honest_features_are_no_leak(tmp_path):
    comparison = compared(written(*honest(), tmp_path / "t.csv"))
    linear = next(one for one in comparison.methods if one.name == "tested-only:linear")
    assert linear.judgements["tested"].auc.value > 0.9
    assert "one-column" not in {one.key for one in comparison.warnings}


def test_a_strong_risk_factor_that_others_replace_is_no_leak(tmp_path):
    """An honest summary of the other columns can be spared."""
    frame, y, tested = honest()
    frame["total"] = frame.sum(axis=1).round(3)
    comparison = compared(written(frame, y, tested, tmp_path / "t.csv"))
    assert "one-column" not in {one.key for one in comparison.warnings}


def test_fewer_than_five_features_may_hold_a_strong_one(tmp_path):
    frame, y, tested, rng = clinic()
    one_number(frame, y, rng)
    few = frame[["v0", "v1", "v2", "late"]]
    comparison = compared(written(few, y, tested, tmp_path / "t.csv"))
    assert "one-column" not in {one.key for one in comparison.warnings}


@pytest.mark.parametrize("n", [60, 150])
def test_tables_of_noise_are_not_accused(tmp_path, n):
    """With few tests and sixty columns, some column looks strong by chance."""
    rng = np.random.default_rng(n)
    frame = pd.DataFrame(rng.normal(size=(n, 60)).round(2), columns=[f"c{i}" for i in range(60)])
    y, tested = rng.integers(0, 2, n), rng.random(n) < 0.6
    comparison = compared(written(frame, y, tested, tmp_path / "t.csv"), ["tested-only:linear"])
    assert "one-column" not in {one.key for one in comparison.warnings}


def test_repeated_visits_and_several_groups(tmp_path):
    frame, y, tested, rng = clinic()
    one_number(frame, y, rng)
    frame["person"], frame["site"] = rng.integers(0, 500, len(y)), rng.choice(["A", "B"], len(y))
    path = written(frame, y, tested, tmp_path / "t.csv")
    first = first_finding(compared(path, id="person", group=("site",)))
    assert (first.key, first.values["columns"]) == ("one-column", ["late"])


@pytest.fixture(scope="module")
def leaky(tmp_path_factory):
    frame, y, tested, rng = clinic()
    one_number(frame, y, rng)
    return written(frame, y, tested, tmp_path_factory.mktemp("leaky") / "t.csv")


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    frame, y, tested, _ = clinic()
    return written(frame, y, tested, tmp_path_factory.mktemp("clean") / "t.csv")


def test_check_warns_and_never_gives_the_all_clear(leaky, clean):
    told = run("check", leaky, "--label", "out", cwd=leaky.parent)
    assert "serious: late alone reaches an AUC of" in told
    assert "before the decision" in told
    plain = run("check", clean, "--label", "out", cwd=clean.parent)
    assert "alone reaches" not in plain
    for said in (told, plain):
        assert "No column looks" not in said
        assert "Only you can know" in said


def test_fit_says_it_before_it_fits_and_the_card_above_its_answer(leaky):
    folder = leaky.parent
    how = ("--method", "tested-only:linear", "--out", "model")
    told = run("fit", leaky, "--label", "out", *how, cwd=folder)
    assert told.index("late alone reaches an AUC of") < told.index("Fitting")
    card = (folder / "model" / "MODEL_CARD.md").read_text()
    assert card.index("`late` alone reaches") < card.index("\n## ")


def test_fit_from_python_warns(leaky):
    from dcem.scoring import fit_table

    with pytest.warns(UserWarning, match="`late` alone reaches an AUC"):
        fit_table(dcem.read_table(leaky, dcem.Roles(label="out")), "tested-only:linear")


def test_the_command_says_it_first_and_json_has_a_key_of_its_own(leaky):
    how = ("--method", ",".join(METHODS), "--planted", "0", "--folds", "2", "--out", "done")
    told = run("compare", leaky, "--label", "out", *how, cwd=leaky.parent)
    screen = told[told.index("Methods compared on") :]
    assert screen.index("serious: late alone reaches an AUC of") < screen.index("Of two people")
    saved = json.loads((leaky.parent / "done" / "comparison.json").read_text())
    first = saved["warnings"][0]
    assert first["key"] == "one-column"
    assert first["values"]["columns"] == ["late"]


def test_columns_named_like_options_keep_their_names(tmp_path):
    frame, y, tested, rng = clinic()
    one_number(frame, y, rng)
    frame = frame.rename(columns={"late": "exclude"})
    told = run(
        "check", written(frame, y, tested, tmp_path / "t.csv"), "--label", "out", cwd=tmp_path
    )
    assert "serious: exclude alone reaches" in told


def test_control_characters_of_a_name_do_not_reach_the_terminal(tmp_path):
    frame, y, tested, rng = clinic()
    one_number(frame, y, rng)
    frame = frame.rename(columns={"late": "la\x1b[31mte"})
    how = ("--method", "tested-only:linear", "--out", "model")
    path = written(frame, y, tested, tmp_path / "t.csv")
    told = run("fit", path, "--label", "out", *how, cwd=tmp_path)
    start = told.index("serious:")
    assert "\x1b" not in told[start : told.index("What to do", start)]
