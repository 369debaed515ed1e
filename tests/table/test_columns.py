"""What kind of column it is, from its values; and what becomes of it."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dcem.table.columns import LIKE_CODES, guess_kind
from dcem.table.encoder import Encoder, Encoding

RNG = np.random.default_rng(0)
N = 2000


def column(values) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values)])


def text(values) -> pa.ChunkedArray:
    return column([None if v is None else str(v) for v in values])


def encode(encoding: Encoding, values, missing=()) -> np.ndarray:
    return Encoder((encoding,), tuple(missing)).transform(
        pa.table({encoding.name: values if isinstance(values, pa.ChunkedArray) else text(values)})
    )


NUMBERS = RNG.normal(size=N).round(2)


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("a measurement", NUMBERS, "number"),
        ("with NA", np.where(RNG.random(N) < 0.3, "NA", NUMBERS.astype(str)), "number"),
        ("with words", np.where(RNG.random(N) < 0.01, "hemolyzed", NUMBERS.astype(str)), "number"),
        ("with limits", np.where(RNG.random(N) < 0.1, "<0.5", NUMBERS.astype(str)), "number"),
        ("icd", RNG.choice(["250.01", "428", "414", "V57", "E909"], N), "category"),
        ("zip", RNG.choice(["02139", "10027", "94110"], N), "category"),
        ("admission_type_id", RNG.integers(1, 9, N), "category"),
        ("time_in_hospital", RNG.integers(1, 9, N), "number"),
        ("visit", np.arange(N), "identifier"),
        ("patient_nbr", RNG.permutation(N * 2)[:N], "identifier"),
        ("uuid", [f"{i:x}-{i * 7:x}" for i in range(N)], "identifier"),
        ("smoker", RNG.choice(["Yes", "no"], N), "boolean"),
        ("flag", RNG.choice(["True", "False"], N), "boolean"),
        ("iso", pd.date_range("2020", periods=N, freq="h").strftime("%Y-%m-%d %H:%M:%S"), "date"),
        ("us", pd.date_range("2020", periods=N, freq="D").strftime("%m/%d/%Y"), "date"),
        ("german", pd.date_range("2020", periods=N, freq="D").strftime("%d.%m.%Y"), "date"),
        ("sas", pd.date_range("2020", periods=N, freq="D").strftime("%d%b%Y"), "date"),
        ("sas time", pd.date_range("2020", periods=N).strftime("%d%b%Y:%H:%M:%S"), "date"),
        ("excel", pd.date_range("2020", periods=N).strftime("%m/%d/%Y %I:%M:%S %p"), "date"),
        ("change", [f"−{i % 50}.5" for i in range(N)], "number"),
        ("price", [f"${i:,}.50" for i in range(N)], "number"),
        ("share", [f"{i % 100} %" for i in range(N)], "number"),
        ("mixed share", [f"{i % 40} %" if i % 2 else f"0.{i % 40}" for i in range(N)], "category"),
        ("constant", ["x"] * N, "constant"),
        ("nearly constant", ["x"] * (N - 3) + ["y"] * 3, "constant"),
        ("empty", [""] * N, "constant"),
        ("glucose", RNG.choice(["None", "Norm", ">200", ">300"], N, p=[0.94, 0.03, 0.02, 0.01]),
         "category"),
    ],
)  # fmt: skip
def test_kinds(name, values, kind):
    assert guess_kind(name, text(values)).kind == kind


def test_numbers_named_like_codes_are_said_to_be_taken_as_numbers():
    many = RNG.integers(1000, 1120, N)
    found = guess_kind("officer_id", column(many))
    assert found.kind == "number"
    assert LIKE_CODES in found.note
    assert LIKE_CODES not in guess_kind("officer_age", column(many)).note
    assert LIKE_CODES not in guess_kind("officer_id", column(many % 40)).note  # codes
    assert guess_kind("DEPARTMENT_ID", column(many % 40)).kind == "category"


def test_a_few_whole_numbers_that_may_be_codes_are_pointed_out():
    codes = RNG.choice([0, 1, 2, 3, 4, 5, 6], N, p=[0.01, 0.35, 0.46, 0.15, 0.01, 0.01, 0.01])
    for name in ("EDUCATION", "marital", "PAY_0"):
        found = guess_kind(name, text(codes))
        assert (found.kind, LIKE_CODES in found.note) == ("number", True)
    counted = np.minimum(RNG.poisson(0.7, N), 5)
    for name, values in [
        ("number_inpatient", codes),
        ("length of stay", codes),
        ("children", counted),  # the fewer the more
        ("flag", codes % 2),
        ("age", RNG.integers(18, 90, N)),
        ("half", codes / 2),
    ]:
        assert LIKE_CODES not in guess_kind(name, text(values)).note


def test_numbers_that_units_or_a_second_one_hide_are_pointed_out():
    temperature = guess_kind("temp", text(f"{36 + i % 40 / 10} °C" for i in range(N)))
    pressure = guess_kind("bp", text(f"{90 + i % 80}/{60 + i % 30}" for i in range(N)))
    for written in ("27,1", "26'640,5", "26 640,5", "(26.64)", "26.64-", "USD 26.64"):
        values = [written.replace("26", str(100 + i % 300)) for i in range(N)]
        values = [value.replace("27", str(20 + i % 60)) for i, value in enumerate(values)]
        assert "would be a number" in guess_kind("x", text(values)).note
    assert (temperature.kind, "unit" in temperature.note) == ("category", True)
    assert "two numbers" in pressure.note


def test_words_that_keep_numbers_from_being_numbers_are_pointed_out():
    numbers = [f"{i % 300 / 7:.2f}" for i in range(N)]
    for word in ("Err:502", "see note 1", "4.20*", "~4.2"):
        found = guess_kind("x", text([*numbers[:-4], *[word] * 4]))
        assert (found.kind, f"{word!r} counts as missing" in found.note) == ("number", True)
        found = guess_kind("x", text([*numbers[:-40], *[word] * 40]))
        assert (found.kind, repr(word) in found.note) == ("category", True)
    found = guess_kind("x", text([*numbers[:-40], *["#DIV/0!"] * 40]))
    assert (found.kind, found.missing) == ("number", 40 / N)
    codes = [f"V{i % 60}" if i % 10 == 0 else value for i, value in enumerate(numbers)]
    assert "but for" not in guess_kind("diagnosis", text(codes)).note


def test_what_counts_the_rows_is_not_a_feature():
    for rows in (150, N):
        assert guess_kind("", text(range(rows))).kind == "identifier"
        assert guess_kind("x", text(2 * i for i in range(150))).kind == "number"


def test_parquet_types_need_no_guess():
    assert guess_kind("x", column(RNG.normal(size=N))).kind == "number"
    assert guess_kind("x", column(RNG.random(N) < 0.5)).kind == "boolean"
    assert guess_kind("x", column(pd.date_range("2020", periods=N, freq="D"))).kind == "date"
    assert guess_kind("x", column([[1]] * N)).kind == "unknown"
    coded = pa.chunked_array([pa.array(["a", "b"] * (N // 2)).dictionary_encode()])
    assert guess_kind("x", coded).kind == "category"


def test_a_person_may_know_better():
    codes = RNG.integers(1, 5, N)
    assert guess_kind("time_in_hospital", text(codes), is_category=True).kind == "category"
    assert guess_kind("visit", text(np.arange(N))).encoding is None
    assert guess_kind("visit", text(np.arange(N)), keep=True).kind == "number"


def test_frequent_levels_other_and_missing():
    values = ["a"] * 900 + ["b"] * 800 + [None] * 200 + [f"rare {i}" for i in range(100)]
    found = guess_kind("c", text(values))
    assert found.encoding.features == ("c=a", "c=b", "c=(other)", "c=(missing)")
    assert found.missing == pytest.approx(0.1)
    X = encode(found.encoding, values)
    np.testing.assert_array_equal(X.sum(axis=0), [900, 800, 100, 200])
    np.testing.assert_array_equal(X.sum(axis=1), 1)
    unseen = encode(found.encoding, ["never seen", "a", None])
    np.testing.assert_array_equal(unseen, [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]])


def test_many_levels_are_grouped():
    values = RNG.choice([f"code {i}" for i in range(300)], 20_000, p=RNG.dirichlet(np.ones(300)))
    found = guess_kind("diagnosis", text(values))
    assert 5 < len(found.encoding.levels) <= 20
    assert found.encoding.other
    counts = pd.Series(values).value_counts()
    assert set(found.encoding.levels) <= set(counts.index[:20])


def test_two_levels_are_one_indicator_and_a_third_is_unknown():
    values = ["m"] * 1000 + ["w"] * 1000
    encoding = guess_kind("sex", text(values)).encoding
    assert encoding.features == ("sex=w",)
    np.testing.assert_array_equal(
        encode(encoding, ["m", "w", "x", None]).ravel(), [0, 1, np.nan, np.nan]
    )


def test_present_or_not_is_what_counts_where_there_is_one_value():
    values = [5.0] * 1000 + [None] * 1000
    encoding = guess_kind("dose", text(values)).encoding
    assert encoding.features == ("dose=(missing)",)
    np.testing.assert_array_equal(encode(encoding, values).ravel(), [0] * 1000 + [1] * 1000)


@pytest.mark.parametrize("cell", ["0.50", "$100", "1e3", "1,234", "5%", "+5", "7"])
def test_the_one_number_of_a_column_is_found_however_it_is_written(cell):
    values = [cell if i % 4 == 0 else ["", "NA"][i % 2] for i in range(N)]
    found = guess_kind("x", text(values))
    assert found.encoding.features == ("x=(missing)",)
    encoded = encode(found.encoding, values)
    np.testing.assert_array_equal(encoded[:, 0], [v != cell for v in values])


def test_a_number_that_few_people_have_is_not_written_down():
    year = [1987 if i < 9 else None for i in range(1200)]
    assert guess_kind("transplant", column(year)).encoding is None
    person = np.arange(1200) // 2
    year[9:18] = [1987] * 9  # nine people with two rows each
    assert guess_kind("transplant", column(year), person=person).encoding is None


def test_codes_are_the_same_however_their_decimals_are_written():
    codes = np.array(["1.10", "2.5", "250.1"])[np.arange(600) % 3]
    encoding = guess_kind("code", text(codes), is_category=True).encoding
    np.testing.assert_array_equal(
        encode(encoding, column(codes.astype(float))), encode(encoding, codes)
    )
    both = np.array(["250.1", "250.10"])[np.arange(600) % 2]  # of an old classification
    encoding = guess_kind("icd9", text(both), is_category=True).encoding
    assert encoding.levels == ("250.1", "250.10")
    np.testing.assert_array_equal(encode(encoding, both)[:, 0], both == "250.10")


def test_dates_that_a_gap_has_made_floats_are_dates():
    days = [f"202104{i % 28 + 1:02d}.0" if i % 9 else "" for i in range(300)]
    found = guess_kind("seen", text(days))
    assert (found.kind, found.missing) == ("date", 34 / 300)
    assert np.isfinite(encode(found.encoding, days)[1:9]).all()


def test_a_level_of_nine_people_is_not_written_down():
    values = ["a"] * 500 + ["b"] * 300 + ["nine"] * 9
    assert guess_kind("c", text(values)).encoding.levels == ("a", "b")


def test_other_and_missing_need_ten_people_not_rows():
    """Two people with many visits, pooled or without a value, have no indicator."""
    values = ["a"] * 500 + ["b"] * 300 + ["c", "d"] * 20 + [None] * 40
    person = np.r_[np.arange(800), [900, 901] * 20, [902, 903] * 20]
    own = guess_kind("c", text(values), person=person).encoding
    assert (own.levels, own.other, own.missing) == (("a", "b"), False, False)
    assert guess_kind("c", text(values)).encoding.missing


def test_marks_of_a_number_are_read_alike_later():
    written = text([f"$ {7 * (i % 300):,}" for i in range(2000)])
    encoding = guess_kind("x", written).encoding.learning_marks(pa.table({"x": written}))
    later = ["$ 1,500", "€2", "−3", "4 %", "<5", "pos"]
    X = encode(encoding, later).ravel()
    np.testing.assert_array_equal(X, [1500, np.nan, -3, np.nan, 5, np.nan])


def test_user_spellings_of_missing_hold_everywhere():
    values = ["?"] * 100 + ["a"] * 950 + ["b"] * 950
    assert guess_kind("c", text(values), ("?",)).missing == pytest.approx(0.05)
    numbers = ["?"] * 100 + [str(v) for v in NUMBERS]
    found = guess_kind("n", text(numbers), ("?",))
    assert found.kind == "number"
    assert np.isnan(encode(found.encoding, numbers, ("?",))[:100]).all()


def test_words_that_may_mean_missing_are_levels_with_a_note():
    values = ["None"] * 900 + ["high"] * 100 + ["low"] * 100
    found = guess_kind("c", text(values))
    assert "c=None" in found.encoding.features
    assert "'None'" in found.note


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_numbers_and_codes_mean_the_same_in_text_and_numbers(suffix):
    numeric = column(RNG.integers(1, 5, N).astype(float))
    spelled = text([f"{int(v)}" for v in numeric.to_pylist()])
    encoding = guess_kind("ward_id", spelled if suffix == "csv" else numeric).encoding
    assert encoding.features == tuple(f"ward_id={i}" for i in (1, 2, 3, 4))
    np.testing.assert_array_equal(encode(encoding, numeric), encode(encoding, spelled))
    with_gaps = text(numeric.to_pylist())  # as pandas writes integers beside missing values: 3.0
    np.testing.assert_array_equal(encode(encoding, numeric), encode(encoding, with_gaps))
    forced = guess_kind("ward", with_gaps, is_category=True).encoding
    np.testing.assert_array_equal(encode(forced, numeric), encode(forced, with_gaps))


def test_infinities_count_as_missing():
    values = column([1.0, np.inf, -np.inf, None, 2.0])
    X = encode(Encoding("x", "number"), values).ravel()
    np.testing.assert_array_equal(X, [1, np.nan, np.nan, np.nan, 2])


@pytest.mark.parametrize("cells", [[1.0, np.inf, 2.0, 3.5], ["1.0", "inf", "2.0", "3.5"]])
def test_that_a_number_is_too_large_is_said(cells):
    assert "beyond" in guess_kind("x", column(cells)).note
    assert not guess_kind("x", column(cells[2:])).note
    assert Encoding("x", "number").encode(column(cells), (), np.empty((4, 1)))[0] == 1


def test_dates_are_days():
    encoding = guess_kind(
        "d", text(pd.date_range("2020", periods=N, freq="D").strftime("%d.%m.%Y"))
    ).encoding
    X = encode(encoding, ["02.01.1970", "no date", None]).ravel()
    np.testing.assert_array_equal(X, [1, np.nan, np.nan])
    stamps = column([pd.Timestamp("1970-01-02 12:00"), None])
    np.testing.assert_array_equal(encode(Encoding("d", "date"), stamps).ravel(), [1.5, np.nan])


def test_free_text_is_told_without_coding_it():
    """Notes are left out as a value per row, as a short column of them is; gaps are counted."""
    notes = [f"seen on ward {i}, no complaint" for i in range(6000)]
    notes[::6] = [""] * 1000
    found = guess_kind("note", text(notes), {"seen on ward 1, no complaint"})
    assert (found.kind, found.encoding, found.distinct) == ("identifier", None, 5001)
    assert found.missing == pytest.approx(1001 / 6000)
    assert guess_kind("note", text(notes), keep=True).kind == "category"
    for kind in (pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        assert guess_kind("note", text(notes).cast(kind)).kind == "identifier"
    for column, kind in (
        ([f"{i / 7:.4f}" for i in range(6000)], "number"),
        ([f"{i / 7:.4f}" if i % 120 else "hemolyzed" for i in range(6000)], "number"),
        (pd.date_range("1999", periods=6000).strftime("%d.%m.%Y"), "date"),
        ([f"drug {i % 30}" for i in range(6000)], "category"),
    ):
        assert guess_kind("x", text(column)).kind == kind


@pytest.mark.parametrize(
    ("values", "is_said"),
    [
        (["850", "1.200", "12.500"], True),
        (["1.200", "12.500"], False),  # all of them a thousand times too small: nothing is lost
        (["850", "1.200", "12.5"], False),
        (["850", "0.200", "12.500"], False),
        (["850", "1200"], False),
    ],
)
def test_points_that_may_part_thousands_are_pointed_out(values, is_said):
    note = guess_kind("income", text(values * 10)).note
    assert ("1.200" in note) == is_said


def test_a_decimal_comma_after_a_zero_does_not_part_thousands():
    assert guess_kind("crp", text(["0,567", "1,234", "0,051"] * 100)).kind == "category"
    assert guess_kind("crp", text(["2,567", "1,234", "9,051"] * 100)).kind == "number"


def test_numbers_with_a_unit_are_pointed_out():
    with_unit = [f"{i % 50 / 10 + 4} mmol/L" for i in range(300)]
    assert "'4.0 mmol/L'" in guess_kind("glucose", text(with_unit)).note
    assert "unit" not in guess_kind("code", text([f"{i % 50}A{i % 3}" for i in range(300)])).note


@pytest.mark.parametrize("mark", [" ", "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}", "'", "’"])
def test_blanks_and_apostrophes_part_thousands(mark):
    amounts = [float(850 + 977 * (i % 4000)) for i in range(6000)]
    written = [f"{amount:,.0f}".replace(",", mark) for amount in amounts]
    found = guess_kind("income", text(written))
    assert found.kind == "number"
    shown = written[1].replace(mark, " ") if mark.isspace() else written[1]
    assert f"{shown!r} is read as 1827" in found.note  # and not '1\u202f827'
    np.testing.assert_array_equal(encode(found.encoding, written).ravel(), amounts)


def test_a_blank_elsewhere_parts_no_thousands():
    for cells in (["123 45", "543 21"], ["12 345'678"], ["012 345"], ["1 234 5"]):
        assert guess_kind("code", text(cells * 50)).kind != "number"


def test_numbers_in_long_tables_are_pointed_out_as_in_short_ones():
    """A value per row is not an identifier if a unit alone makes it text."""
    for n in (300, 6000):
        weights = text([f"{60 + i / 100} kg" for i in range(n)])
        assert "unit" in guess_kind("weight", weights).note


def test_a_letter_behind_some_numbers_is_pointed_out():
    ages = [f"{i % 60 + 2}" if i % 10 else f"{i // 10 % 24}m" for i in range(700)]
    assert "'0m'" in guess_kind("age", text(ages)).note
    wards = guess_kind("ward", text([f"{i % 40}{'ab'[i % 2]}" for i in range(700)]))
    assert "number" not in wards.note


@pytest.mark.parametrize("n", [300, 6000])
def test_dates_in_several_forms_are_pointed_out(n):
    day = pd.date_range("2001-02-03 00:00", periods=n, freq="D")
    forms = [day.strftime(form) for form in ("%Y-%m-%d", "%d/%m/%Y", "%b %d, %Y")]
    which = np.random.default_rng(0).integers(6, size=n)
    for two in ([0, 1], [1, 2], [0, 1, 2]):
        mixed = [forms[two[which[i] % len(two)]][i] for i in range(n)]
        assert "several formats" in guess_kind("seen", text(mixed)).note
    swapped = [day[i].strftime(("%d/%m/%Y", "%m/%d/%Y")[which[i] % 2]) for i in range(n)]
    assert "several formats" in guess_kind("seen", text(swapped)).note
    words = [f"{i} of {i % 7}/{i % 12}" for i in range(n)]
    assert "format" not in guess_kind("note", text(words)).note


def test_numbers_in_two_units_are_pointed_out():
    rng = np.random.default_rng(0)
    other = rng.random(2000) < 0.2
    celsius, creatinine = rng.normal(37.5, 0.8, 2000), np.exp(rng.normal(0, 0.3, 2000))
    for mixed in (
        np.where(other, 1.8 * celsius + 32, celsius).round(1),
        np.where(other, 88.4 * creatinine, creatinine).round(2),
    ):
        note = guess_kind("x", column(mixed)).note
        assert "perhaps in two units" in note
        assert "e+" not in note
    for alike in (
        celsius,
        creatinine,
        np.exp(rng.normal(5, 2, 2000)).round(),
        rng.integers(0, 60, 2000),
        rng.choice([1, 2, 1000, 2000], 2000),
        np.where(other, 0, np.exp(rng.normal(8, 1, 2000))),
        rng.standard_cauchy(2000),
    ):
        assert "units" not in guess_kind("x", column(alike)).note


def test_cells_of_a_column_of_dates_that_are_none_are_told():
    days = [*pd.date_range("2020-01-01", periods=97).strftime("%d.%m.%Y"), "N/A", "", "2020-05-01"]
    found = guess_kind("seen", text(days))
    assert (found.kind, found.note) == ("date", "'2020-05-01' counts as missing")
    assert guess_kind("seen", text(days[:-1])).note == ""


@pytest.mark.parametrize("word", ["unknown", "Refused", "n.a.", "#NV", "#N/D", "#WERT!", "k.A."])
def test_words_for_missing_do_not_keep_numbers_from_being_numbers(word):
    found = guess_kind("score", text(word if i % 8 == 0 else i % 30 for i in range(N)))
    assert (found.kind, found.missing) == ("number", 1 / 8)
    assert f"{word!r} counts as missing" in found.note
    levels = guess_kind("race", text(np.array(["a", "b", word])[np.arange(N) % 3]))
    assert (levels.kind, levels.missing) == ("category", 0)
    assert (word in levels.note) == word.startswith("#")  # "unknown" is a level like any other


def test_a_word_among_few_numbers_is_pointed_out_and_letters_of_codes_are_not():
    few = [f"{i % 30}" for i in range(N)]
    found = guess_kind("gcs", text("intubated" if i % 8 == 0 else v for i, v in enumerate(few)))
    assert "'intubated': with that listed" in found.note
    found = guess_kind("diagnosis", text("V57" if i % 8 == 0 else v for i, v in enumerate(few)))
    assert "would be a number" not in found.note


@pytest.mark.parametrize("limit", ["90+", "90 +", "≥90", "≥ 90", ">=90", "> 90"])
def test_limits_are_read_as_numbers(limit):
    values = [limit if i % 20 == 0 else 20 + i % 60 for i in range(N)]
    found = guess_kind("age", text(values))
    assert (found.kind, found.note) == ("number", f"{limit!r} is read as its limit")
    np.testing.assert_array_equal(encode(found.encoding, values)[::20], 90)


@pytest.mark.parametrize(
    "levels", [["0-17", "18-64", "65+"], ["1+", "2+", "negative"], ["A+", "B+"], ["1-", "1", "1+"]]
)
def test_bands_and_grades_stay_levels(levels):
    found = guess_kind("x", text(np.array(levels)[np.arange(N) % len(levels)]))
    assert found.kind == "category"
    limits = guess_kind("band", text(["5+", "5", "7"] * 100), is_category=True)
    assert limits.encoding.levels == ("5", "5+", "7")


@pytest.mark.parametrize("yes_no", [("WAHR", "FALSCH"), ("VRAI", "FAUX"), ("VERO", "FALSO")])
def test_what_spreadsheets_call_true_and_false(yes_no):
    found = guess_kind("x", text(np.array(yes_no)[np.arange(N) % 2]))
    assert found.kind == "boolean"
    np.testing.assert_array_equal(encode(found.encoding, yes_no).ravel(), [1, 0])


LONG_NUMBERS = [f"1234567890123456789{i}" for i in range(8)]


@pytest.mark.parametrize("stored", [pa.string(), pa.uint64(), pa.decimal128(38, 0)])
def test_numbers_with_more_digits_than_a_float_are_codes(stored):
    values = np.array(LONG_NUMBERS, object)[np.arange(N) % 8]
    raw = pa.chunked_array([pa.array(values.tolist())]).cast(stored)
    found = guess_kind("sample", raw)
    assert (found.kind, found.distinct, "more than 15 digits" in found.note) == (
        "category",
        8,
        True,
    )
    np.testing.assert_array_equal(encode(found.encoding, raw), encode(found.encoding, values))
    gaps = np.where(np.arange(N) % 3, values, "unknown")
    assert guess_kind("sample", text(gaps)).kind == "category"
    assert guess_kind("hash", text(f"{i % 8 + 1}{'0' * 5000}" for i in range(N))).kind == "category"
    many = text(f"{10**19 + 7 * i}" for i in range(300))
    assert (guess_kind("x", many).kind, guess_kind("x", many, keep=True).encoding) == (
        "identifier",
        None,
    )


def test_large_quantities_stay_numbers():
    amounts = [str(9_007_199_254_740_992 - i % 300) for i in range(N)]
    scientific = [f"{1 + i % 90}e20" for i in range(N)]
    with_an_overflow = [str(i % 90) for i in range(N)]
    with_an_overflow[::50] = ["18446744073709551615"] * 40
    for values in (amounts, scientific, with_an_overflow):
        assert guess_kind("x", text(values)).kind == "number"
    assert guess_kind("x", column([1e20 * (1 + i % 90) for i in range(N)])).kind == "number"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("1.2{:02d},56", "spelling"),
        ("1.2{:02d},56 €", "spelling"),
        ("{:d},4%", "spelling"),
        ("- {:d}.5", "spelling"),
        ("'{:d}", "spelling"),
        ("12,34,0{:02d}", "spelling"),
        ("CHF 1'0{:02d}.50", "unit"),
        ("Rs. 1,0{:02d}", "unit"),
        ("{:d}.5k", "unit"),
        ("{:d} days 04:00:00", "unit"),
        ("5'{:d}\"", "two numbers"),
        ("{:d}+3", "two numbers"),
        ("{:d}y 3m", "two numbers"),
    ],
)
def test_numbers_that_their_spelling_hides_are_pointed_out(written, said):
    for times in (N // 90, 1):  # as levels, and as a value per row
        note = guess_kind("x", text(written.format(10 + i % 90) for i in range(90 * times))).note
        assert said in note
        assert "would be a number" in note


@pytest.mark.parametrize("written", ["10.{:d}.1", "A{:d}", "12A{:d}", "B {:d}", "2023-{:05d}"])
def test_codes_are_not_taken_for_hidden_numbers(written):
    assert "would be" not in guess_kind("x", text(written.format(i % 90) for i in range(N))).note


def test_several_currencies_and_percent_signs_in_some_rows_are_not_mixed():
    sizes = [f"{10 + i % 90}.5" for i in range(N)]
    odd = np.arange(N) % 3 == 0
    for first, second, said in (("${}", "€{}", "currencies ($, €)"), ("{}%", "{}", "percent")):
        values = [(first if o else second).format(v) for o, v in zip(odd, sizes, strict=True)]
        found = guess_kind("x", text(values))
        assert (found.kind, said in found.note) == ("category", True)
    values = [f"{v}%" if i % 20 else "0" for i, v in enumerate(sizes)]
    assert guess_kind("x", text(values)).kind == "number"
    assert guess_kind("x", text(f"${v}" if i % 2 else v for i, v in enumerate(sizes))).note == (
        "'$11.5' is read as 11.5"
    )


def test_limits_in_most_rows_are_pointed_out():
    values = ["<0.1" if i % 3 else f"{i % 90}.5" for i in range(N)]
    assert "most rows are limits ('<0.1')" in guess_kind("troponin", text(values)).note
    bands = guess_kind("glucose", text(np.array(["Norm", ">200", ">300"])[np.arange(N) % 3]))
    assert not bands.note


def test_levels_that_differ_in_case_are_pointed_out():
    levels = np.array(["Male", "male", "F", "f", "x"])[np.arange(N) % 5]
    assert "'F', 'f', 'Male' and 1 more differ only in case" in guess_kind("s", text(levels)).note
    assert not guess_kind("s", text(np.array(["Male", "Female"])[np.arange(N) % 2])).note


@pytest.mark.parametrize("mark", [".a", ".Z", "\\N", "1.#QNAN"])
def test_what_programs_write_for_a_missing_number(mark):
    found = guess_kind("x", text(mark if i % 9 == 0 else f"{i % 300}.5" for i in range(1800)))
    assert (found.kind, found.missing) == ("number", 1 / 9)


def test_columns_that_are_called_codes_are_codes():
    codes = np.array(["91302008", "233604007", "68566005"])[np.arange(N) % 3]
    for name in ("snomed", "icd10", "county_fips", "PLZ", "drg"):
        assert guess_kind(name, text(codes)).kind == "category"
    assert guess_kind("drug_dose", text(codes)).kind == "number"
