"""Columns that follow the decision are pointed out; what drives it is not."""

import warnings

import numpy as np
import pandas as pd
import pytest

import dcem
from dcem.table.leaks import find_leaks, level_cells, number_cells
from dcem.table.messages import LeakWarning

N = 5000


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def of_number(values, tested, label=None) -> list[str]:
    return [leak.kind for leak in find_leaks("x", number_cells(values), tested, label)]


def of_text(values, tested, label=None) -> list[str]:
    codes, names = pd.factorize(values)
    cells = level_cells(codes, tuple(map(str, names)))
    return [leak.kind for leak in find_leaks("x", cells, tested, label)]


def test_a_result_that_exists_only_after_the_test(rng):
    tested = rng.random(N) < 0.3
    result = np.where(tested, rng.normal(size=N), np.nan)
    (leak,) = find_leaks("x", number_cells(result), tested)
    assert (leak.kind, leak.strength) == ("tested", 1.0)
    mostly = np.where(tested & (rng.random(N) < 0.95), rng.normal(size=N), np.nan)
    assert of_number(mostly, tested) == ["tested", "only-tested"]
    seldom = np.where(tested & (rng.random(N) < 0.3), rng.normal(size=N), np.nan)
    assert of_number(seldom, tested) == ["only-tested"]  # by what is filled in, not by a value


def test_values_that_only_the_test_brings(rng):
    tested = rng.random(N) < 0.3
    drug = np.where(tested & (rng.random(N) < 0.3), "started", "none")
    codes, names = pd.factorize(drug)
    (leak,) = find_leaks("x", level_cells(codes, tuple(names)), tested)
    assert (leak.kind, leak.values) == ("only-tested", ("started",))
    assert leak.strength == pytest.approx(0.3, abs=0.03)
    dose = np.where(tested & (rng.random(N) < 0.3), 7.0, rng.normal(size=N))
    assert of_number(dose, tested) == ["only-tested"]  # one number among many


def test_telling_values_are_written_as_they_are(rng):
    tested = rng.random(N) < 0.3
    mark = tested & (rng.random(N) < 0.4)
    frame = pd.DataFrame({"y": np.where(tested, rng.integers(0, 2, N), np.nan)})
    frame["account"] = np.where(mark, 1234567, rng.integers(10**6, 10**8, N))
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D")
    frame["seen"] = np.where(mark, pd.Timestamp("2023-05-31"), days)
    with pytest.warns(LeakWarning):
        leaks = dcem.read_table(frame, dcem.Roles(label="y")).leaks
    assert {leak.column: leak.values for leak in leaks} == {
        "account": ("1234567",),
        "seen": ("2023-05-31",),
    }


@pytest.mark.parametrize("n", [100, 300, N])
@pytest.mark.parametrize("coding", [(0, 1), (1, 0), (-1, 1), (1, 2)])
def test_numeric_copies_of_label_tested_and_truth(rng, n, coding):
    tested, ill = rng.random(n) < 0.4, rng.random(n) < 0.3
    label = np.where(tested, ill.astype(float), np.nan)
    recoded = np.array(coding, float)
    assert "label" in of_number(recoded[ill.astype(int)], tested, label)
    assert "tested" in of_number(recoded[tested.astype(int)], tested, label)
    imputed = tested & ill  # the record: 0 where nobody looked
    assert "label" in of_number(recoded[imputed.astype(int)], tested, label)
    seen = np.where(tested, recoded[ill.astype(int)], np.nan)
    assert "tested" in of_number(seen, tested, label)


def test_a_column_that_is_the_label_in_other_words(rng):
    tested = rng.random(N) < 0.3
    ill = rng.random(N) < 0.2
    label = np.where(tested, ill.astype(float), np.nan)
    code = np.where(ill, "A41", rng.choice(["J18", "N39"], N))  # of everybody, tested or not
    assert of_text(code, tested, label) == ["label"]
    assert of_text(code, tested) == []


@pytest.mark.parametrize("odd", [1.0, 2.0, np.nan])
def test_a_copy_of_the_label_with_errors_and_odd_values(rng, odd):
    """One row of ten is wrong, and some of them are missing or have a third value."""
    tested, ill = rng.random(N) < 0.3, rng.random(N) < 0.2
    label = np.where(tested, ill.astype(float), np.nan)
    copy = np.where(rng.random(N) < 0.1, ~ill, ill).astype(float)
    assert of_number(np.where(rng.random(N) < 0.03, odd, copy), tested, label) == ["label"]
    worse = np.where(rng.random(N) < 0.2, ~ill, ill).astype(float)  # as a good sign might be
    assert of_number(np.where(rng.random(N) < 0.03, odd, worse), tested, label) == []


def test_a_value_that_implies_the_label(rng):
    tested = rng.random(N) < 0.3
    ill = rng.random(N) < 0.2
    label = np.where(tested, ill.astype(float), np.nan)
    drug = np.where(ill & (rng.random(N) < 0.4), 1.0, 0.0)  # four ill people in ten, nobody else
    (leak,) = find_leaks("x", number_cells(drug), tested, label)
    assert (leak.kind, leak.values) == ("implies-label", ("1",))
    assert leak.strength == pytest.approx(0.4, abs=0.06)
    common = np.where(rng.random(N) < 0.1, 1.0, drug)  # healthy people take it too
    assert of_number(common, tested, label) == []


def test_a_procedure_that_follows_a_positive_result(rng):
    """Two positives in three have it, and a few people without the test or with a negative one."""
    tested = rng.random(N) < 0.3
    ill = rng.random(N) < 0.08
    label = np.where(tested, ill.astype(float), np.nan)
    drawn = rng.random(N)
    done = np.where(tested, np.where(ill, drawn < 0.65, drawn < 0.02), drawn < 0.002) * 1.0
    (leak,) = find_leaks("x", number_cells(done), tested, label)
    assert (leak.kind, leak.values) == ("follows", ("1",))
    assert leak.strength == pytest.approx(0.65, abs=0.1)
    sign = np.where(ill, drawn < 0.65, drawn < 0.02) * 1.0  # of a risk, whoever is tested
    assert of_number(sign, tested, label) == []
    ward = np.where(tested, drawn < 0.65, drawn < 0.03) * 1.0  # that tests, whatever it finds
    assert of_number(ward, tested, label) == []


def test_the_truth_is_found_where_it_is_known(rng):
    tested, ill = rng.random(N) < 0.3, rng.random(N) < 0.2
    noisy = np.where(tested, rng.random(N) < 0.5, ill)  # tells nothing of the tested
    label = np.where(tested, ill.astype(float), np.nan)
    cells = number_cells(np.where(rng.random(N) < 0.001, 1 - ill, ill).astype(float))
    assert [leak.kind for leak in find_leaks("x", cells, ~tested & tested, None, ill)] == ["truth"]
    assert "truth" not in of_number(noisy.astype(float), tested, label)


def test_strong_risk_factors_are_left_alone(rng):
    severity = rng.normal(size=N)
    ill = rng.random(N) < 1 / (1 + np.exp(2 - 4 * severity))  # AUC about .94
    tested = rng.random(N) < 0.3
    assert of_number(severity, tested, np.where(tested, ill, np.nan)) == []
    for _ in range(50):  # forty tested people and twenty bands of noise
        noise, handful = number_cells(rng.normal(size=N)), np.zeros(N, bool)
        handful[rng.choice(N, 40, replace=False)] = True
        label = np.where(handful, np.cumsum(handful) % 2, np.nan)
        assert find_leaks("x", noise, handful, label) == ()


def test_noise_in_small_tables_is_left_alone(rng):
    for _ in range(200):
        n = int(rng.integers(10, 60))
        tested, ill = rng.random(n) < 0.5, rng.random(n) < 0.4
        label = np.where(tested, ill.astype(float), np.nan)
        for values in (rng.integers(0, 2, n), rng.integers(0, 5, n), rng.normal(size=n)):
            assert of_number(values.astype(float), tested, label) == []


def test_plausible_drivers_are_left_alone(rng):
    severity = rng.normal(size=N)
    for strength in (0.5, 1.0, 2.0):  # the last gives an AUC of .86
        tested = rng.random(N) < 1 / (1 + np.exp(1 - strength * severity))
        assert of_number(severity, tested) == []
    ward = rng.choice(["a", "b", "c"], N)
    tested = rng.random(N) < np.select([ward == "a", ward == "b"], [0.9, 0.3], 0.1)
    assert of_text(ward, tested) == []


def test_a_value_among_the_tested_alone_by_chance(rng):
    tested = rng.random(N) < 0.97  # nearly everybody: 50 of 50 is nothing special
    rare = np.where(np.arange(N) < 60, "rare", "usual")
    tested[:60] = True
    assert of_text(rare, tested) == []
    few = rng.random(N) < 0.2
    few[:20] = True  # too few rows to say
    assert of_text(np.where(np.arange(N) < 20, "rare", "usual"), few) == []


def test_nothing_to_say_where_all_are_tested(rng):
    assert of_number(rng.normal(size=N), np.ones(N, bool)) == []


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
def test_leaks_of_a_table_are_values_and_warned_of_once(rng):
    tested, ill = rng.random(N) < 0.4, rng.random(N) < 0.3
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=N),
            "label_again": (tested & ill).astype(int),
            "ordered": tested.astype(int),
            "level": np.where(tested, rng.normal(size=N), np.nan),
            "antibiotic": (ill & (rng.random(N) < 0.5)).astype(int),
            "y": np.where(tested, ill.astype(float), np.nan),
        }
    )
    with pytest.warns(LeakWarning) as said:
        table = dcem.read_table(frame, dcem.Roles(label="y"))
    (told,) = (str(one.message) for one in said if one.category is LeakWarning)
    found = {(leak.column, leak.kind) for leak in table.leaks}
    assert found == {
        ("label_again", "label"),
        ("label_again", "only-tested"),
        ("ordered", "tested"),
        ("level", "tested"),
        ("antibiotic", "implies-label"),
    }
    flagged = {column.name for column in table.columns if column.flag}
    assert flagged == {"label_again", "ordered", "level", "antibiotic"}
    assert all(repr(name) in told for name in flagged)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakWarning)
        dcem.read_table(frame, dcem.Roles(label="y", exclude=tuple(flagged)))
        dcem.read_table(frame, dcem.Roles(label="y"), encoder=table.encoder)  # said already


@pytest.mark.parametrize(("errors", "found"), [(0.03, True), (0.08, True), (0.2, False)])
def test_a_copy_with_errors_is_found(rng, errors, found):
    tested, ill = rng.random(N) < 0.4, rng.random(N) < 0.3
    label = np.where(tested, ill.astype(float), np.nan)
    copy = np.where(rng.random(N) < errors, ~ill, ill).astype(float)
    assert ("label" in of_number(copy, tested, label)) == found
    assert ("label" in of_text(np.where(copy == 1, "pos", "neg"), tested, label)) == found
    noisy = ill + rng.normal(0, 0.3 if found else 0.9, N)  # a sum of the label and noise
    assert ("label" in of_number(noisy, tested, label)) == found


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_a_measurement_by_which_a_rule_decides_is_not_what_followed(rng, noise):
    score = rng.normal(size=N)
    tested = score + noise * rng.normal(size=N) > -0.3
    amount = np.where(tested, np.exp(rng.normal(size=N)), 0.0)
    for values, is_rule in (
        (score, True),
        (amount, False),
        (np.where(tested, score, np.nan), False),
    ):
        found = find_leaks("x", number_cells(values), tested)
        assert found
        assert {leak.is_rule for leak in found} == {is_rule}
