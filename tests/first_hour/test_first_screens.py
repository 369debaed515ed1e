"""First screens agree with themselves: one criterion, one question, and no more than is known."""

import os
import re
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dcem

LINEAR, NAIVE = "tested-only:linear", "y-obs:boost"


def run(*arguments, cwd, status=0):
    """What a command prints, on one line."""
    done = subprocess.run(
        [sys.executable, "-m", "dcem", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
        env=os.environ | {"COLUMNS": "200", "TERM": "dumb"},
    )
    assert done.returncode == status, done.stderr
    return " ".join((done.stdout + " " + done.stderr).split())


def people(n=1500, seed=0):
    """Ages, two groups, an outcome, and who is tested."""
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(18, 90, n), rng.choice(["F", "M"], n)
    frame = pd.DataFrame({"age": age, "bmi": rng.normal(27, 4, n).round(1), "sex": sex})
    ill = rng.random(n) < 1 / (1 + np.exp(-(age - 60) / 15))
    return frame, np.where(ill, "yes", "no"), rng.random(n) < 1 / (1 + np.exp(-(age - 50) / 20))


def read(frame, **roles):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dcem.read_table(frame, dcem.Roles(**roles))


# A column that may be too late


def apart(tested, seed, near, far, digits=0):
    """Numbers within `near` for the tested and within `far` for the others."""
    rng = np.random.default_rng(seed)
    near, far = rng.uniform(*near, len(tested)), rng.uniform(*far, len(tested))
    return np.where(tested, near, far).round(digits)


GAPS = {
    "days to contact": ((1, 8), (20, 89), 0),
    "minutes to the ward": ((0, 55), (300, 900), 1),
    "the tested have more": ((4000, 5200), (10, 1500), 2),
    "negative numbers": ((-90, -60), (-20, 40), 1),
}
CUTS = {
    "fever": ((38, 41.5), (35, 38), 2),
    "points": ((500, 1000), (0, 500), 0),
    "a rare high value": ((900, 1000), (0, 900), 1),
}


@pytest.mark.parametrize("kind", GAPS)
def test_a_gap_between_tested_and_untested_is_proposed_for_exclusion(kind):
    frame, outcome, tested = people()
    near, far, digits = GAPS[kind]
    frame["late"] = apart(tested, 1, near, far, digits)
    frame["flu"] = pd.Series(outcome).where(tested)
    assert "late" in dcem.table.propose_roles(frame).roles.get("exclude", [])


@pytest.mark.parametrize("kind", CUTS)
def test_a_rule_that_cuts_through_a_measurement_is_kept(kind):
    frame, outcome, _ = people()
    near, far, digits = CUTS[kind]
    tested = np.random.default_rng(5).random(len(frame)) < (0.2 if "rare" in kind else 0.4)
    frame["rule"] = apart(tested, 1, near, far, digits)
    frame["flu"] = pd.Series(outcome).where(tested)
    assert "rule" not in dcem.table.propose_roles(frame).roles.get("exclude", [])


def late_table(tmp_path):
    frame, outcome, tested = people()
    frame["contact"] = apart(tested, 1, (1, 8), (20, 89))
    frame["fever"] = apart(tested, 2, (38, 41.5), (35, 38), 2)
    frame["flu"] = pd.Series(outcome).where(tested)
    frame.to_csv(tmp_path / "t.csv", index=False)
    return ("t.csv", "--label", "flu", "--group", "sex")


def test_one_question_about_a_column_that_may_be_too_late(tmp_path):
    printed = run("audit", *late_table(tmp_path), cwd=tmp_path)
    for name in ("contact", "fever"):
        asked = re.search(rf"note: column '{name}' .*?--exclude {name}", printed)[0]
        assert asked.count("keep it") == 1
        assert re.search(r"known before the decision\? .*keep it.* later, leave it out", asked)
    sure = printed.split("How sure?")[1].split("In numbers")[0]
    assert "gone unnoticed" not in sure
    assert "contact" in sure
    assert "Not sure" in sure


def test_without_such_a_column_the_difference_that_may_be_missed_is_told(tmp_path):
    frame, outcome, tested = people()
    frame.assign(flu=pd.Series(outcome).where(tested)).to_csv(tmp_path / "t.csv", index=False)
    printed = run("audit", "t.csv", "--label", "flu", "--group", "sex", cwd=tmp_path)
    assert "gone unnoticed" in printed.split("How sure?")[1].split("In numbers")[0]


# A comparison


def compared(seed, effect, methods, late=False):
    """A comparison of a table whose risk is more or less a straight line."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 4))
    risk = X[:, 0] + effect * (X[:, 1] ** 2 - 1) - 0.5
    tested = rng.random(1500) < 1 / (1 + np.exp(-0.5 * X[:, 0]))
    y = np.where(tested, rng.random(1500) < 1 / (1 + np.exp(-risk)), np.nan)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    if late:
        frame["late"] = apart(tested, seed, (1, 8), (20, 89))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dcem.compare_methods(
            frame, methods, label="y", n_folds=2, planted=0, n_resamples=40, n_members=1
        )


def on_page(document):
    """The words of the first screen."""
    verdict = document.opening.verdict
    return " ".join([verdict.answer, *verdict.sentences, verdict.certainty])


METHODS = ["ensemble", LINEAR, NAIVE, "y-obs:linear", "tested-only:boost"]


@pytest.fixture(scope="module")
def clear():
    """A comparison in which the default is clearly better than the best simple rival."""
    return compared(2, 0.5, METHODS)


def test_a_clear_gain_is_told(clear):
    first = on_page(clear.document())
    own, standing = clear.methods[0].judgements["dr"].auc_gain, clear.standings["dr"]
    assert own.low > 0
    assert clear.reference not in (standing.best, *standing.level_with)
    assert "more than chance" in first
    assert "Use `ensemble`" in first
    assert any("ranks people better than" in one.headline for one in clear.findings)


@pytest.mark.parametrize("leads", [True, False])
def test_a_lead_is_not_both_chance_and_more_than_chance(clear, leads):
    """The interval of one pair excludes zero, those of all pairs at once do not."""
    now = clear.standings["dr"]
    ahead = (now.best, clear.reference)
    best, other = ahead if leads else ahead[::-1]
    standing = replace(now, best=best, level_with=(other, *now.level_with))
    first = on_page(replace(clear, standings={**clear.standings, "dr": standing}).document())
    assert "more than chance" not in first
    assert "as well, as far as this table can tell" in first
    assert f"`{clear.reference}` may be chance" not in first
    assert "may be chance when all methods are compared at once" in first


def test_the_findings_agree_with_the_first_screen():
    for seed, effect in ((4, 0.4), (3, 0.4)):
        comparison = compared(seed, effect, METHODS)
        first = on_page(comparison.document())
        gains = [one.headline for one in comparison.findings if "ranks people" in one.headline]
        assert gains
        better = any("ranks people better than" in said for said in gains)
        assert better == ("more than chance" in first)


def test_care_has_its_reason_beside_it():
    with_care = compared(3, 1.5, [LINEAR, "ensemble"], late=True)
    first = on_page(with_care.document())
    assert "see above" not in first
    plain = read(everybody_tested(), label="flu", group="sex").problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = dcem.compare_methods(
            plain, [LINEAR, NAIVE], n_folds=2, planted=0, n_resamples=20
        ).document()
    answer = told.opening.verdict.answer
    assert "see above" not in answer
    assert "with care: everybody counts as tested" in answer


# Everybody was tested


def everybody_tested():
    frame, outcome, _ = people()
    return frame.assign(flu=outcome)


def test_an_empty_list_states_that_everybody_was_tested():
    frame = everybody_tested()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing to note
        table = dcem.read_table(frame, dcem.Roles(label="flu", group="sex", tested=[]))
        given = dcem.SelectiveLabels.from_arrays(
            frame[["age", "bmi"]], frame["flu"] == "yes", tested=[], group=frame["sex"]
        )
    for audit in (
        dcem.audit_labels(table),
        dcem.audit_labels(given),
        dcem.audit_labels(frame, label="flu", group="sex", tested=[]),
    ):
        verdict = audit.document().opening.verdict
        assert "Everybody was tested, as stated" in verdict.answer
        assert "state who was tested" not in " ".join([*verdict.sentences, verdict.certainty])
    assert dcem.Roles.from_plain(table.roles.to_plain()) == table.roles
    for silent in (dcem.Roles(label="flu"), dcem.Roles(label="flu", tested=None)):
        with pytest.warns(UserWarning, match=r"tested = \[\]"):
            table = dcem.read_table(frame, silent)
        verdict = dcem.audit_labels(table).document().opening.verdict
        assert "counts as tested" in verdict.answer


def test_an_empty_list_does_not_hide_missing_labels():
    frame, outcome, tested = people()
    frame["flu"] = pd.Series(outcome).where(tested)
    stated = dcem.read_table(frame, dcem.Roles(label="flu", tested=[])).problem
    assert stated.extent == "some"
    assert (stated.tested == tested).all()


def test_the_settings_file_states_it_for_every_command(tmp_path):
    everybody_tested().to_csv(tmp_path / "t.csv", index=False)
    settings = 'table = "t.csv"\n[roles]\nlabel = "flu"\ngroup = ["sex"]\n'
    (tmp_path / "dcem.toml").write_text(settings)
    assert "counts as tested" in run("audit", cwd=tmp_path)
    (tmp_path / "dcem.toml").write_text(f"{settings}tested = []\n")
    for again in range(2):
        printed = run("audit", *["--remember"] * (1 - again), cwd=tmp_path)
        assert "Everybody was tested, as stated" in printed
        assert "counts as tested" not in printed
        assert "state who was tested" not in printed
    assert "tested = []" in (tmp_path / "dcem.toml").read_text()
    how = ("--method", f"{LINEAR},{NAIVE}", "--members", "1")
    printed = run("compare", *how, cwd=tmp_path)
    assert "counts as tested" not in printed
    run("fit", "--method", LINEAR, "--out", "model", cwd=tmp_path)
    printed = run("predict", "model", "t.csv", "--out", "s.csv", cwd=tmp_path)
    assert "counts as tested" not in printed


# Many groups


@pytest.fixture(scope="module")
def wards(tmp_path_factory):
    """A table of 300 wards, of which three have more than a few people, and a model of it."""
    folder = tmp_path_factory.mktemp("wards")
    frame, outcome, tested = people(3000, seed=3)
    small = np.arange(3000) % 297 + 3
    frame["ward"] = [f"w{ward:03d}" for ward in np.where(np.arange(3000) < 1800, small % 3, small)]
    frame["flu"] = pd.Series(outcome).where(tested)
    frame.to_csv(folder / "t.csv", index=False)
    run("fit", "t.csv", "--label", "flu", "--group", "ward", "--method", LINEAR, "--out", "model",
        cwd=folder)  # fmt: skip
    return folder, frame


def test_next_tests_and_predict_print_a_screen_of_groups(wards):
    folder, _ = wards
    printed = run("next-tests", "model", "t.csv", "--budget", 100, "--out", "n.csv", cwd=folder)
    assert printed.count("withheld") < 6 * 20
    assert (
        len(set(re.findall(r"\bw\d{3}\b", printed.split("Untested:")[1].split("more gr")[0]))) == 20
    )
    assert re.search(r"and 2\d\d more groups", printed)
    assert all(re.search(rf"w00{ward} +[\d,]+ ", printed) for ward in range(3))
    printed = run("predict", "model", "t.csv", "--capacity", 0.1, "--out", "s.csv", cwd=folder)
    assert "and 280 more groups" in printed
    assert len(set(re.findall(r"\bw\d{3}\b", printed))) == 20


def test_few_groups_that_can_be_compared_do_not_speak_for_the_rest(wards):
    folder, frame = wards
    printed = run("audit", "t.csv", "--label", "flu", "--group", "ward", cwd=folder)
    verdict = printed.split("How sure?")[0]
    assert "No clear sign" not in verdict
    assert "cannot be determined" in verdict
    assert "3 of 300 groups" in verdict
    three = frame[frame["ward"] < "w003"]
    audit = dcem.audit_labels(read(three, label="flu", group="ward").problem)
    assert "cannot be determined" not in audit.document().opening.verdict.answer


# The card


def test_the_card_says_of_whom_a_hundred_people_are(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=1500)
    tested = x > 0.3  # nobody else has any chance of a test
    y = np.where(tested, rng.random(1500) < 1 / (1 + np.exp(-2 * (x - 1))), np.nan)
    frame = pd.DataFrame({"x": x, "z": rng.normal(size=1500), "y": y})
    frame.to_csv(tmp_path / "t.csv", index=False)
    run("fit", "t.csv", "--label", "y", "--method", LINEAR, "--judge", "--out", "m", cwd=tmp_path)
    card = " ".join((tmp_path / "m" / "MODEL_CARD.md").read_text().split())
    assert re.search(r"finds about \S+ of 100 tested people with the outcome", card)
