"""A messy file becomes a problem, and every column's fate is told."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dcem.table import Encoder, Roles, read_batches, read_table
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning, InputError
from dcem.table.outcome import labels_of
from dcem.table.read import as_arrow

N = 1200


def messy(n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    tested = rng.random(n) < 0.4
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    return pd.DataFrame(
        {
            "visit_id": np.arange(n) + 10_000,
            "patient": [f"P{i:05d}" for i in rng.integers(0, n // 2, n)],
            "age": rng.integers(18, 95, n),
            "lactate": np.where(rng.random(n) < 0.2, "NA", rng.gamma(2, 1, n).round(2).astype(str)),
            "ward": rng.choice(["ICU", "ER", "Ward 1", "Ward 2"], n),
            "code": rng.choice([f"A{i}" for i in range(400)], n),
            "admitted": day.strftime("%Y-%m-%d"),
            "smoker": rng.choice(["Yes", "No", ""], n),
            "country": "X",
            "race": rng.choice(["A", "B"], n, p=[0.7, 0.3]),
            "result": np.where(
                tested, rng.choice(["high", "normal"], n, p=[0.3, 0.7]), "not ordered"
            ),
        }
    )


ROLES = Roles(
    label="result",
    positive=("high",),
    untested_value=("not ordered",),
    group=("race",),
    id="patient",
)


@pytest.fixture(params=[".csv", ".csv.gz", ".parquet"])
def path(request, tmp_path):
    file = tmp_path / f"visits{request.param}"
    if request.param == ".parquet":
        messy().to_parquet(file, index=False)
    else:
        messy().to_csv(file, index=False)
    return file


def test_kinds_roles_and_features(path):
    table = read_table(path, ROLES)
    kinds = {column.name: (column.role, column.kind) for column in table.columns}
    assert kinds == {
        "visit_id": ("left out", "identifier"),
        "patient": ("id", "identifier"),
        "age": ("feature", "number"),
        "lactate": ("feature", "number"),
        "ward": ("feature", "category"),
        "code": ("left out", "category"),
        "admitted": ("feature", "date"),
        "smoker": ("feature", "boolean"),
        "country": ("left out", "constant"),
        "race": ("group", "category"),
        "result": ("label", "category"),
    }
    problem, frame = table.problem, messy()
    assert problem.feature_names == table.encoder.feature_names
    X = dict(zip(problem.feature_names, problem.X.T, strict=True))
    np.testing.assert_array_equal(X["age"], frame["age"])
    np.testing.assert_array_equal(np.isnan(X["lactate"]), frame["lactate"] == "NA")
    np.testing.assert_array_equal(X["ward=ICU"], frame["ward"] == "ICU")
    days = (pd.to_datetime(frame["admitted"]) - pd.Timestamp(0)).dt.days
    np.testing.assert_array_equal(X["admitted"], days)
    expected = frame["smoker"].map({"Yes": 1.0, "No": 0.0}).to_numpy(float)
    np.testing.assert_array_equal(X["smoker"], expected)
    np.testing.assert_array_equal(problem.tested, frame["result"] != "not ordered")
    np.testing.assert_array_equal(problem.y_obs == 1, frame["result"] == "high")
    assert problem.group_names == ("A", "B")
    np.testing.assert_array_equal(problem.person, pd.factorize(frame["patient"])[0])


def test_source_knows_the_file_again(path):
    table = read_table(path, ROLES)
    assert (table.source.name, table.source.rows, table.source.columns) == (path.name, N, 11)
    import hashlib

    assert table.source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
def test_source_knows_the_names_of_categories():
    frame = pd.DataFrame({"x": pd.Categorical(["a", "b"] * 30), "y": [0, 1, np.nan] * 20})
    other = frame.assign(x=frame["x"].cat.rename_categories({"a": "c"}))
    hashes = [read_table(one, Roles(label="y")).source.sha256 for one in (frame, other)]
    assert hashes[0] != hashes[1]


def test_encoder_survives_json_and_reads_frames(path):
    import json

    table = read_table(path, ROLES)
    again = Encoder.from_plain(json.loads(json.dumps(table.encoder.to_plain())))
    assert again == table.encoder
    np.testing.assert_array_equal(again.transform(messy()), table.problem.X)


def test_a_group_of_three_stays(tmp_path):
    frame = messy()
    frame.loc[:2, "race"] = "C"
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(DataWarning, match="Fewer than 10 rows in group 'C'"):
        table = read_table(tmp_path / "t.csv", ROLES)
    assert table.problem.group_names == ("A", "B", "C")
    assert (table.problem.group == 2).sum() == 3


@pytest.mark.parametrize("spelling", [{1: "1.0", 0: "0.0"}, {1: "1", 0: "0"}, {1: "Y", 0: "n"}])
def test_labels_that_need_no_explanation(tmp_path, spelling):
    frame = messy()
    truth = np.random.default_rng(1).random(N) < 0.3
    frame["result"] = np.where(frame["result"] == "not ordered", "", truth)
    frame["result"] = frame["result"].map({"True": spelling[1], "False": spelling[0], "": ""})
    frame.to_csv(tmp_path / "t.csv", index=False)
    problem = read_table(tmp_path / "t.csv", Roles(label="result", exclude=("patient",))).problem
    np.testing.assert_array_equal(problem.tested, frame["result"] != "")
    np.testing.assert_array_equal(problem.y_obs == 1, frame["result"] == spelling[1])


def test_numbers_as_positive_values_whatever_their_spelling(tmp_path):
    frame = messy()
    frame["result"] = frame["result"].map({"high": "2.0", "normal": "0.0", "not ordered": "-1.0"})
    frame.to_csv(tmp_path / "t.csv", index=False)
    roles = Roles(label="result", positive=("2",), untested_value=("-1",))
    table = read_table(tmp_path / "t.csv", roles)
    np.testing.assert_array_equal(table.problem.y_obs == 1, frame["result"] == "2.0")
    np.testing.assert_array_equal(table.problem.tested, frame["result"] != "-1.0")


def test_truth_is_kept_apart(tmp_path):
    frame = messy()
    frame["truth"] = np.random.default_rng(2).choice(["high", "normal"], N)
    frame.to_csv(tmp_path / "t.csv", index=False)
    from dataclasses import replace

    table = read_table(tmp_path / "t.csv", replace(ROLES, truth="truth"))
    np.testing.assert_array_equal(table.truth, frame["truth"] == "high")
    assert not any(name.startswith("truth") for name in table.problem.feature_names)


def with_truth(*said: str) -> pd.DataFrame:
    return messy().assign(truth=np.resize([*["high", "normal"] * 30, *said], N))


@pytest.mark.parametrize("word", ["not ordered", "Not tested", "unclear", "n/a"])
def test_a_truth_that_nobody_knows_is_refused(word):
    with pytest.raises(InputError, match=rf"'truth' is '{word}' in .* must be known of every row"):
        read_table(with_truth(word), replace(ROLES, truth="truth"))


@pytest.mark.parametrize(
    ("said", "told"),
    [(["mild", "none"], "'normal', 'mild', 'none'"), (["-9"], "'normal', '-9'"), ([], "")],
)
def test_values_of_the_truth_that_only_count_as_no_are_told(said, told):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        table = read_table(with_truth(*said), replace(ROLES, truth="truth"))
    texts = [str(one.message) for one in found if "Truth" in str(one.message)]
    assert len(texts) == bool(told)
    assert all(f"is {told} in " in text for text in texts)
    np.testing.assert_array_equal(table.truth, with_truth(*said)["truth"] == "high")


def test_crossed_groups_weights_and_lists_with_commas(tmp_path):
    frame = messy()
    frame["weight"] = np.random.default_rng(3).random(N) + 0.5
    frame.to_csv(tmp_path / "t.csv", index=False)
    from dataclasses import replace

    table = read_table(
        tmp_path / "t.csv",
        replace(ROLES, group=("race,ward",), weight="weight", exclude=("age,code",)),
    )
    assert table.roles.group == ("race", "ward")
    assert table.problem.n_groups == 8
    assert table.problem.group_names[0] == "A & ER"
    np.testing.assert_allclose(table.problem.weight, frame["weight"])
    roles = {column.name: column.role for column in table.columns}
    assert (roles["age"], roles["weight"], roles["ward"]) == ("excluded", "weight", "group")
    assert not {"age", "ward=ICU", "weight"} & set(table.problem.feature_names)
    seen = read_table(tmp_path / "t.csv", replace(ROLES, group_as_feature=True))
    assert "race=B" in seen.problem.feature_names


def test_groups_of_a_batch_are_those_of_the_table(tmp_path):
    from dcem.table import group_codes, read_batches, tested_rows

    frame = messy()
    frame["band"] = np.where(np.arange(N) % 7 == 0, np.nan, np.arange(N) % 3)  # 0.0, 1.0, 2.0
    frame.to_csv(tmp_path / "t.csv", index=False)
    from dataclasses import replace

    with pytest.warns(DataWarning, match="'band' is missing"):
        table = read_table(tmp_path / "t.csv", replace(ROLES, group=("race", "band")))
    problem = table.problem
    (batch,) = read_batches(tmp_path / "t.csv")
    codes, names = group_codes(batch, table.roles)
    expected = [problem.group_names[g] for g in problem.group]
    assert [names[code] for code in codes] == expected
    np.testing.assert_array_equal(tested_rows(batch, table.roles), problem.tested)


def test_semicolons_quotes_and_a_mark_at_the_start(tmp_path):
    frame = messy()
    frame.loc[0, "ward"] = 'a "quoted"\nward; with all of it'
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";", encoding="utf-8-sig")
    table = read_table(tmp_path / "t.csv", ROLES)
    assert table.source.rows == N
    assert table.columns[0].name == "visit_id"


@pytest.mark.parametrize("read", [lambda p: read_table(p, ROLES), lambda p: list(read_batches(p))])
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("12345,P00077,81", "row 1,202 (the header is row 1) has 3 columns, the header 11. The "
         "file may be truncated."),
        ("12345,P00077,81" + ",x" * 9, "has 12 columns, the header 11. A value that contains the "),
        ('12345,"P00077,81', "has 2 columns, the header 11. The file may be truncated."),
    ],
)  # fmt: skip
def test_a_broken_line_is_located_and_not_quoted(read, line, said, tmp_path):
    path = tmp_path / "visits.csv"
    messy().to_csv(path, index=False)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError) as error:
        read(path)
    assert said in str(error.value)
    assert "P00077" not in str(error.value)
    assert "12345" not in str(error.value)


def test_a_broken_line_is_located_whatever_the_number_of_threads(tmp_path):
    path, threads = tmp_path / "visits.csv", pa.cpu_count()
    path.write_text("a,b,y\n1,2,1\n3,0\n")
    try:
        for number in (1, 4):
            pa.set_cpu_count(number)
            with pytest.raises(InputError, match="row 3 "):
                list(read_batches(path))
    finally:
        pa.set_cpu_count(threads)


@pytest.mark.parametrize(
    ("labels", "tested", "told"),
    [
        (["1", "0", "-9.0"], None, "'-9.0'"),
        (["2", "0", "1"], None, "'1'"),
        (["pos", "neg", "not done"], [1, 1, 0], None),
    ],
)
def test_a_value_that_counts_as_no_for_want_of_another_role_is_told(labels, tested, told):
    frame = pd.DataFrame({"x": np.arange(100 * len(labels)) % 7, "label": labels * 100})
    if tested:
        frame["tested"] = tested * 100
    roles = Roles(label="label", positive=labels[0], tested="tested" if tested else ())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_table(frame, roles)
    said = [str(w.message) for w in caught if "negative result" in str(w.message)]
    assert len(said) == bool(told)
    assert not told or told in said[0]


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (["pos", "neg", "not_done"], "'not_done' in 100 of 300"),
        (["pos", "neg", "indeterminate"], "'indeterminate'"),
        (["positiv", "negativ", "ND"], "'ND'"),
        (["fraud", "no fraud", "inconclusive", None], "'inconclusive' in 100 of 400"),
        (["high", "norm", "None"], "'None' in 100 of 300"),
        (["high", "norm", "low"], "'low' in 100 of 300"),
        (["high", "norm", "low", None], "'low' in 100 of 400"),
        (["red", "amber", "green"], "'amber', 'green' in 200 of 300"),  # none is the counterpart
    ],
)
def test_a_word_that_is_neither_yes_nor_no_is_refused(labels, told):
    frame = pd.DataFrame({"x": np.arange(100 * len(labels)) % 7, "label": labels * 100})
    with pytest.raises(InputError, match=f"{told}.*`untested_value`"):
        read_table(frame, Roles(label="label", positive=labels[0]))


@pytest.mark.parametrize("word", ["n/a", "not done", "pending", "7"])
def test_it_does_not_matter_what_stands_where_nobody_looked(word):
    frame = pd.DataFrame({"x": np.arange(40) % 7, "label": ["pos", "neg", word, "neg"] * 10})
    frame["tested"] = [1, 1, 0, 0] * 10
    read = read_table(frame, Roles(label="label", tested="tested"))
    assert read.problem.y_obs[:2].tolist() == [1, 0]
    assert np.isnan(labels_of(as_arrow(frame), read.roles)[2:4]).all()
    for said in ("pos", "yes"):  # but for a result that contradicts it
        with pytest.raises(InputError, match="is 1 although 'tested' is 0 in 10"):
            read_table(frame.replace(word, said), Roles(label="label", tested="tested"))


def test_a_later_table_in_which_a_result_is_called_otherwise_is_told():
    """What meant no is kept, if ten people had it: grades A and B here, not the one E."""
    grades = ["C", "A", "B", None] * 30
    frame = pd.DataFrame({"x": np.arange(120) % 7, "grade": ["E", *grades[1:]]})
    before = read_table(frame, Roles(label="grade", positive="C", untested_value=""))
    assert before.roles.negative == ("A", "B")
    assert Roles.from_plain(before.roles.to_plain()) == before.roles
    assert "negative" not in before.roles.in_words()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(frame.iloc[1:], before.roles, encoder=before.encoder)
    later = frame.assign(grade=frame.grade.replace("B", "F"))
    with pytest.warns(DataWarning, match="is 'E', 'F' in 31 of 120 rows.*when the model was"):
        read_table(later, before.roles, encoder=before.encoder)


def test_rows_without_weight_are_left_out_and_told():
    frame = pd.DataFrame({"x": np.arange(90) % 7, "w": [0.0, 1.5, 2.0] * 30, "t": range(90)})
    frame["label"] = [1, np.nan, 0, 1, 0, 1] * 15
    roles = Roles(label="label", weight="w", time="t")
    with pytest.warns(DataWarning, match="30 of 90 rows have a weight of 0 and are left out"):
        problem = read_table(frame, roles).problem
    assert len(problem) == len(problem.time) == 60
    assert (problem.weight > 0).all()


def test_people_whose_numbers_a_spreadsheet_rounded_are_told():
    frame = pd.DataFrame({"x": range(60), "pid": ["1.23457E+11", "1.23458E+11"] * 30})
    frame["label"] = [1, 0, np.nan] * 20
    with pytest.warns(DataWarning, match=r"'1.23457E\+11'"):
        read_table(frame, Roles(label="label", id="pid"))


@pytest.mark.parametrize("word", ["unknown", "NULL", "k.A."])
def test_rows_of_unknown_people_are_not_one_person_in_silence(word):
    table = messy()
    table.loc[:6, "patient"] = word
    with pytest.warns(DataWarning, match=rf"is '{word}' in 7 of 1,200 rows, which count as one"):
        read_table(table, ROLES)
    table.loc[1:6, "patient"] = [f"{word} {i}" for i in range(6)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(table, ROLES)


@pytest.mark.parametrize("kind", ["people", "copies", "copies of one person each", "codes"])
def test_rows_that_a_join_left_several_times_are_told(kind):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=400), "age": rng.integers(20, 80, 400)})
    if kind == "codes":  # few features: different people share them
        frame = frame[["age"]].assign(sex=rng.integers(2, size=400))
    frame["label"] = np.where(rng.random(400) < 0.5, rng.integers(2, size=400), np.nan)
    frame["pid"] = np.arange(400)
    if kind.startswith("copies"):
        frame = pd.concat([frame, frame[:60]])
    roles = Roles(label="label", exclude=["pid"])
    if kind == "copies of one person each":
        roles = Roles(label="label", id="pid")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_table(frame, roles)
    assert any("60 of 460 rows" in str(w.message) for w in caught) == (kind == "copies")
    assert any("copies" in str(w.message) for w in caught) == (kind == "copies")


def test_a_last_row_that_is_a_total_is_told():
    frame = pd.DataFrame({"ward": ["A", "B"] * 20, "x": range(40), "label": [1, 0, np.nan, 1] * 10})
    frame.loc[40] = ["Total", 780, np.nan]
    with pytest.warns(DataWarning, match="'ward' is 'Total'"):
        read_table(frame, Roles(label="label"))


def test_a_number_may_be_missing_in_one_column_alone(tmp_path):
    frame = pd.DataFrame(
        {
            "drinks": np.tile(np.arange(20), 50),
            "marital": np.tile([1, 2, 3, 9, 2], 200),
            "y": np.random.default_rng(0).choice([0, 1, np.nan], 1000),
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    both, one = (
        read_table(tmp_path / "t.csv", Roles(label="y", missing=missing))
        for missing in ("9", "marital=9")
    )
    assert [column.missing for column in both.columns[:2]] == [0.05, 0.2]
    assert [column.missing for column in one.columns[:2]] == [0, 0.2]
    assert [both.columns[0].note, one.columns[0].note] == [
        "9 counts as missing although it lies between other values", "",
    ]  # fmt: skip
    assert np.isnan(one.problem.X[3]).tolist() == [False, True]
    again = Encoder.from_plain(one.encoder.to_plain()).transform(frame)
    np.testing.assert_array_equal(again, one.problem.X)
    with pytest.raises(InputError, match="Did you mean 'marital'"):
        read_table(frame, Roles(label="y", missing="maritl=9"))


def test_numbers_that_a_frame_holds_as_categories_are_categories():
    rng = np.random.default_rng(0)
    age, code = rng.integers(20, 80, 500), rng.integers(1, 5, 500)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=500),
            "code": pd.Categorical(code),
            "flag": pd.Categorical(code > 2),
            "band": pd.cut(age, [0, 40, 60, 99]),
            "older": pd.cut(age, [0, 50, 99]),
            "y": rng.choice([0, 1, np.nan], 500),
        }
    )
    table = read_table(frame, Roles(label="y", group="older"))
    assert [one.kind for one in table.columns[:4]] == ["number"] + ["category"] * 3
    assert table.problem.group_names == ("(0, 50]", "(50, 99]")
    assert "band=(40, 60]" in table.problem.feature_names
    as_numbers = frame.assign(code=code, band=frame["band"].astype(str))
    np.testing.assert_array_equal(table.encoder.transform(as_numbers), table.problem.X)


def test_missing_values_of_categories_count_as_well():
    rng = np.random.default_rng(0)
    ward = np.where(rng.random(400) < 0.3, None, rng.choice(["A", "B", "C"], 400))
    frame = pd.DataFrame({"x": rng.normal(size=400), "ward": ward, "y": rng.choice([0, 1], 400)})
    table = read_table(frame.assign(y=frame["y"].where(rng.random(400) < 0.5)), Roles(label="y"))
    assert table.problem.summary().startswith("400 rows, 5 features (1 with missing values)")


def test_one_person_who_stands_for_many_and_ages_as_groups_are_pointed_out():
    frame = messy()
    roles = Roles(
        label="result", positive=("high",), untested_value=("not ordered",), exclude=("code",)
    )

    def said(frame, **more):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DataWarning)
            read_table(frame, replace(roles, **more))
        return [str(one.message) for one in caught]

    assert said(frame, id="patient") == []
    unknown = frame.assign(patient=frame["patient"].where(np.arange(N) % 3 > 0, "0"))
    assert ["'0' in 400 of 1,200 rows" in one for one in said(unknown, id="patient")] == [True]
    few = frame.assign(patient=np.arange(N) % 15)  # many rows of each
    assert said(few, id="patient") == []
    assert any("77 different numbers" in one for one in said(frame, group=("age",)))
    coded = frame.assign(race=np.where(np.arange(N) % 9 > 0, frame["race"].eq("A") + 1, 9))
    assert any("race=9 under `missing`" in one for one in said(coded, group=("race",)))
    assert said(coded, group=("race",), missing=("race=9",))[0].startswith("Group column 'race' is")
    assert any("'X' in all rows" in one for one in said(frame, group=("country",)))


def test_a_frame_says_aloud_which_cells_keep_a_column_from_being_a_number():
    frame = messy().assign(car=[*map(str, np.arange(N - 30) % 30), *["7,5"] * 30])
    with pytest.warns(DataWarning, match="'car': text because of its spelling: '7,5'"):
        read_table(frame, ROLES)


@pytest.mark.parametrize("role", ["weight", "testing_probability"])
def test_cells_of_a_role_that_are_no_numbers_are_shown_as_they_are_written(role):
    table = messy().assign(w=["0,5" if i % 3 else "1" for i in range(N)])
    with pytest.raises(InputError, match=r"'w', the .*, holds no number in 800 .* rows: '0,5'\."):
        read_table(table, replace(ROLES, **{role: "w"}))
    with pytest.raises(InputError, match="such as a missing value"):
        read_table(
            table.assign(w=np.where(table["w"] == "1", 1, np.nan)), replace(ROLES, weight="w")
        )
    read_table(
        table.assign(w=[" 0.5" if i % 3 else "1" for i in range(N)]), replace(ROLES, weight="w")
    )


def test_a_code_beside_yes_and_no_may_mean_that_the_result_is_unknown():
    table = messy().assign(result=[0, 1, 9] * (N // 3))
    with pytest.raises(InputError, match=r"If '9' means .* result is unknown, list it under"):
        read_table(table, Roles(label="result"))
    with pytest.raises(InputError, match=r"If '9' means"):
        read_table(table.assign(result=[1, 2, 9] * (N // 3)), Roles(label="result"))
    for others in ([0, 1, 2], [7, 8, 9], [-1, 0, 1]):
        with pytest.raises(InputError, match="Which of these mean yes") as said:
            read_table(table.assign(result=others * (N // 3)), Roles(label="result"))
        assert "untested_value" not in str(said.value)


def test_what_is_doubtful_about_the_time_of_the_decision_is_told():
    table = messy()
    days = pd.to_datetime(table["admitted"])
    late = np.where(np.arange(N) % 9, table["admitted"], "9999-12-31")
    for written, said in (
        (days.dt.strftime("%d/%m/%Y"), "day/month/year"),
        (late, "9999-12-31 lies"),
    ):
        read = read_table(table.assign(admitted=written), replace(ROLES, time="admitted"))
        notes = {column.name: column.note for column in read.columns}
        assert said in notes["admitted"]
        assert not notes["race"]


LONG = np.repeat(1234567890123456001 + 7 * np.arange(300), 2)  # 300 people, of whom floats know 9


@pytest.mark.parametrize("role", ["id", "group", "decider"])
@pytest.mark.parametrize("stored", ["parquet", "xlsx", "frame", "category", "float32"])
def test_long_numbers_that_are_stored_as_floats_name_nobody(role, stored, tmp_path):
    names = LONG // 10**10 if stored == "float32" else LONG
    names = names.astype("float32" if stored == "float32" else float)
    frame = pd.DataFrame({"y": [0, 1, None, 0] * 150, "x": np.arange(600.0) ** 0.5, "who": names})
    source = frame.astype({"who": "category"}) if stored == "category" else frame
    if stored in ("parquet", "xlsx"):
        source = tmp_path / f"t.{stored}"
        frame.to_parquet(source) if stored == "parquet" else frame.to_excel(source, index=False)
    with pytest.raises(InputError, match=r"'who' stores its values as floating-point.*as text"):
        read_table(source, Roles(label="y", **{role: "who"}))
    if stored == "frame":
        with pytest.raises(InputError, match="stores its values as floating-point"):
            SelectiveLabels.from_arrays(frame[["x"]], frame["y"], **{role: frame["who"]})


def test_long_integers_name_people_exactly():
    frame = pd.DataFrame({"y": [0, 1, None, 0] * 150, "x": np.arange(600.0) ** 0.5, "who": LONG})
    assert len(np.unique(read_table(frame, Roles(label="y", id="who")).problem.person)) == 300
    short = frame.assign(who=frame["who"] // 1000 + 0.0)
    assert len(np.unique(read_table(short, Roles(label="y", id="who")).problem.person)) == 3
