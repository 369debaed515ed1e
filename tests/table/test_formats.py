"""The same table through every format is the same table: values, groups, audit."""

import json
import sqlite3
import uuid
import warnings
from contextlib import closing

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from choices import linear

from dcem import audit_labels
from dcem.extras import MissingExtra
from dcem.table import Roles, read_table
from dcem.table.formats import tables_within, unique_names
from dcem.table.messages import DataWarning, InputError
from dcem.table.read import as_arrow, notes, read_batches, read_header, read_whole
from dcem.table.remote import as_named, located
from dcem.table.sampling import read_some
from dcem.table.values import Coded, array_of, code_names
from dcem.table.write import SUFFIXES, write_frame

N = 1200
ROLES = Roles(label="result", group="race", id="person", exclude="code")


def made_up() -> pd.DataFrame:
    """Numbers, gaps, days, moments, text with accents, yes and no, digits that are a name."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, N)
    start = pd.Timestamp("2020-01-01")
    frame = pd.DataFrame(
        {
            "person": rng.integers(0, 900, N),
            "age": age,
            "lab": np.round(rng.normal(3, 1, N), 3),
            "day": start + pd.to_timedelta(rng.integers(0, 900, N), "D"),
            "moment": start + pd.to_timedelta(rng.integers(0, 7 * 10**7, N), "s"),
            "ward": rng.choice(["A", "Bé", "C"], N),
            "smoker": rng.choice(["yes", "no"], N),
            "code": rng.choice(["007", "012", "110"], N),
            "race": rng.choice(["x", "y"], N),
        }
    )
    frame.loc[rng.random(N) < 0.1, "lab"] = np.nan
    frame.loc[rng.random(N) < 0.1, "ward"] = None
    positive = age + rng.normal(0, 20, N) > 55
    return frame.assign(result=np.where(rng.random(N) < 0.5, positive, np.nan))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Name -> path of the same table in every format that can be written here."""
    folder, frame = tmp_path_factory.mktemp("formats"), made_up()
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    texts = {
        "plain.csv": {},
        "packed.csv.gz": {},
        "tabs.tsv": {"sep": "\t"},
        "latin.csv": {"encoding": "latin-1"},
        "bom.csv": {"encoding": "utf-8-sig"},
        "utf16.csv": {"encoding": "utf-16"},
        "german.csv": {"sep": ";", "decimal": ",", "encoding": "latin-1"},
        "german16.csv": {"sep": ";", "decimal": ",", "encoding": "utf-16"},
    }
    for name, how in texts.items():
        frame.to_csv(folder / name, index=False, **how)
    rows = frame.to_csv()  # as pandas writes its row names, and R does: the header begins later
    (folder / "headless.csv").write_text(rows.removeprefix(","), encoding="utf-8")
    frame.to_parquet(folder / "file.parquet")
    arrow_file = folder / "stream.arrow"
    with pa.ipc.new_stream(str(arrow_file), arrow.schema) as stream:
        stream.write_table(arrow, max_chunksize=500)
    for suffix in (".feather", ".xlsx", ".dta", ".sav", ".xpt"):
        write_frame(frame, folder / f"written{suffix}")
    parts = folder / "parts.parquet"  # a folder, named as Spark names it
    for number in range(3):
        part = parts / f"part-{number}.parquet"
        part.parent.mkdir(exist_ok=True)
        pyarrow.parquet.write_table(arrow.slice(400 * number, 400), part)
    (parts / "_SUCCESS").write_text("")
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "base.duckdb")) as base:
        base.register("frame", arrow)
        base.execute("CREATE TABLE visits AS SELECT * FROM frame")
    with sqlite3.connect(folder / "base.sqlite") as lite:
        frame.assign(day=frame.day.astype(str), moment=frame.moment.astype(str)).to_sql(
            "visits", lite, index=False
        )
    return {path.name: path for path in folder.iterdir()}


NAMES = [
    "packed.csv.gz", "tabs.tsv", "latin.csv", "bom.csv", "utf16.csv", "german.csv", "german16.csv",
    "headless.csv", "file.parquet", "stream.arrow", "written.feather", "written.xlsx",
    "written.dta", "written.sav", "written.xpt", "parts.parquet", "base.duckdb", "base.sqlite",
]  # fmt: skip


def quietly(source, roles=ROLES, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return read_table(source, roles, **more)


def same(one, other) -> None:
    assert one.encoder.feature_names == other.encoder.feature_names
    for field in ("X", "y_obs", "tested", "group", "person"):
        mine, theirs = getattr(one.problem, field), getattr(other.problem, field)
        np.testing.assert_array_equal(mine, theirs, err_msg=field)
    assert one.problem.group_names == other.problem.group_names


@pytest.mark.parametrize("name", NAMES)
def test_every_format_is_the_same_table(files, name) -> None:
    expected, found = quietly(files["plain.csv"]), quietly(files[name])
    same(found, expected)
    kinds = [(column.name, column.kind, column.missing) for column in found.columns]
    assert kinds == [(column.name, column.kind, column.missing) for column in expected.columns]


@pytest.mark.parametrize("name", NAMES)
def test_batches_are_the_whole(files, name) -> None:
    whole = read_whole(files[name]).to_pydict()
    batches = [batch.to_pydict() for batch in read_batches(files[name], rows=250)]
    assert len(batches) >= 3
    assert {k: [cell for b in batches for cell in b[k]] for k in whole} == whole
    few = read_whole(files[name], ["race", "age"])
    assert few.column_names == ["race", "age"]
    assert few.to_pydict() == {k: whole[k] for k in ("race", "age")}


def test_the_audit_is_the_same_to_the_last_bit(files) -> None:
    def audited(name):
        table = quietly(files[name])
        return json.loads(audit_labels(table.problem, learners=linear).to_json())

    assert audited("german16.csv") == audited("plain.csv")


# -- frames ----------------------------------------------------------------------------------------


def test_frames_of_every_library_are_the_same_table(files) -> None:
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    frame = made_up()
    arrow = pa.Table.from_pandas(frame)
    expected = quietly(files["plain.csv"])
    categories = dict.fromkeys(("ward", "smoker", "race"), "category")
    polars = pl.from_pandas(frame)
    frames = {
        "pandas": frame,
        "categories": frame.astype(categories | {"result": "Int64"}),
        "Arrow in pandas": frame.convert_dtypes(dtype_backend="pyarrow"),
        "Arrow": arrow,
        "a batch": arrow.combine_chunks().to_batches()[0],
        "polars": polars,
        "lazy": polars.lazy(),
        "polars' categories": polars.with_columns(pl.col("ward").cast(pl.Categorical)),
        "DuckDB": duckdb.from_arrow(arrow),
    }
    for name, one in frames.items():
        found = quietly(one)
        assert found.source.name == "frame", name
        same(found, expected)


def test_types_that_have_another_name_in_arrow() -> None:
    people = [uuid.UUID(int=i) for i in range(3)]
    quarters = pd.period_range("2020Q1", periods=3, freq="Q")
    found = as_arrow(pd.DataFrame({"who": people, "when": quarters}))
    assert found["who"].to_pylist() == [str(one) for one in people]
    assert found["when"].to_pylist() == ["2020Q1", "2020Q2", "2020Q3"]
    pl = pytest.importorskip("polars")
    large = pl.DataFrame({"who": [1, 2]}).with_columns(pl.col("who").cast(pl.Int128))
    for frame in (large, large.lazy()):
        with pytest.raises(InputError, match="a type that Arrow does not know"):
            as_arrow(frame)


@pytest.mark.parametrize("thing", [3, [1, 2], {"x": [1]}, np.ones((3, 2)), None])
def test_what_is_not_a_frame_is_refused(thing) -> None:
    with pytest.raises(InputError, match="Expected a frame"):
        read_table(thing, ROLES)


# -- folders ---------------------------------------------------------------------------------------


def test_a_partitioned_folder_has_its_keys_as_columns(tmp_path) -> None:
    frame = made_up()
    frame.to_parquet(tmp_path / "by", partition_cols=["race", "smoker"], index=False)
    header = read_header(tmp_path / "by")
    assert set(header) == set(frame.columns)
    found = quietly(tmp_path / "by")
    assert sorted(found.problem.group_names) == ["x", "y"]
    assert len(found.problem) == N
    assert found.problem.tested.sum() == frame.result.notna().sum()


def test_keys_of_a_folder_keep_their_zeros(tmp_path) -> None:
    for site in ("007", "7", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"site={site}" / "ward=a%2Fb").mkdir(parents=True)
        file = tmp_path / f"site={site}" / "ward=a%2Fb" / "1.parquet"
        pyarrow.parquet.write_table(pa.table({"x": [1]}), file)
    found = read_whole(tmp_path).to_pydict()
    assert sorted(found["site"], key=str) == ["007", "7", None]
    assert found["ward"] == ["a/b"] * 3


def test_files_of_a_folder_may_differ_in_types_and_columns(tmp_path) -> None:
    (tmp_path / "a=1").mkdir()  # outside the table: a key of the way to it is not one of its own
    folder = tmp_path / "a=1" / "t"
    folder.mkdir()
    pyarrow.parquet.write_table(pa.table({"x": [1, 2], "y": ["a", "b"]}), folder / "1.parquet")
    pyarrow.parquet.write_table(pa.table({"x": [1.5, 2.5]}), folder / "2.parquet")
    assert read_whole(folder).to_pydict() == {"x": [1, 2, 1.5, 2.5], "y": ["a", "b", None, None]}


def test_a_column_that_is_text_in_some_files_is_text_in_all(tmp_path) -> None:
    parts = [
        {"id": [7, 8], "ward": pa.array(["a", "b"]).dictionary_encode(), "x": [1, None]},
        {"id": ["7", "A1"], "ward": pa.array(["c", "a"], pa.large_string()), "x": [0.5, 2.0]},
        {"ward": pa.array(["b", "c"]).dictionary_encode(), "id": pa.nulls(2), "y": [True, False]},
    ]
    for number, part in enumerate(parts):
        pyarrow.parquet.write_table(pa.table(part), tmp_path / f"{number}.parquet")
    assert read_whole(tmp_path).to_pydict() == {
        "id": ["7", "8", "7", "A1", None, None],
        "ward": ["a", "b", "c", "a", "b", "c"],
        "x": [1.0, None, 0.5, 2.0, None, None],
        "y": [None, None, None, None, True, False],
    }
    rows = read_some(tmp_path, 5, "id", seed=3)[0]["id"].to_pylist()
    assert rows.count("7") in (0, 2)


def test_a_broken_file_of_a_folder_is_named_not_skipped(tmp_path) -> None:
    pyarrow.parquet.write_table(pa.table({"x": [1]}), tmp_path / "1.parquet")
    (tmp_path / "2.parquet").write_bytes(b"no Parquet at all")
    with pytest.raises(InputError, match=r"2\.parquet: not a readable Parquet"):
        read_whole(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"has no \.parquet files"):
        read_header(tmp_path / "empty")


def test_of_a_large_table_whole_people_are_drawn(files, tmp_path) -> None:
    frame = made_up()
    with pytest.warns(DataWarning, match=r"1,200 rows; .*\(people drawn .* 1\.7 times"):
        table = read_table(files["parts.parquet"], ROLES, sample_rows=400)
    drawn = table.source.rows
    assert table.source.drawn_from == N
    assert 300 < drawn < 500
    kept = quietly(files["parts.parquet"], sample_rows=400)
    same(kept, table)  # the seed decides
    for name in NAMES:  # not how rows are cut and numbers are stored
        same(quietly(files[name], sample_rows=400), table)
    other = quietly(files["parts.parquet"], sample_rows=400, random_state=1)
    assert not np.array_equal(other.problem.X[:100], table.problem.X[:100], equal_nan=True)
    read = read_some(files["file.parquet"], 400, "person")[0].to_pandas()
    rows, found = frame.person.value_counts(), read.person.value_counts()
    assert (found == rows[found.index]).all()
    assert quietly(files["parts.parquet"], sample_rows=N).source.drawn_from == 0


def test_columns_in_any_order_are_those_asked_for(files) -> None:
    for path in files.values():
        backwards = read_header(path)[::-1]
        table = read_whole(path, backwards)
        assert table.column_names == backwards
        assert table.select(backwards[::-1]).equals(read_whole(path))


def test_a_long_file_is_thinned_on_the_way(tmp_path, monkeypatch) -> None:
    """In bounded memory, to what would have been drawn had its length been known."""
    monkeypatch.setattr("dcem.table.sampling.BATCH", 100)
    ids = np.random.default_rng(0).integers(0, 3000, 9000)
    for number, part in enumerate(np.array_split(ids, 5)):  # people are spread over files
        known = pd.Series(part, dtype="Int64").mask(part % 50 == number)  # gaps in some batches
        pd.DataFrame({"id": known, "x": "a"}).to_parquet(tmp_path / f"{number}.parquet")
    rows, length, draw = read_some(tmp_path, 1000, "id")
    assert length == 9000
    assert draw.share == 1000 / 9000
    called = tmp_path.rename(tmp_path.with_name("visits.db"))  # a folder whatever it is called
    assert read_some(called, 1000, "id")[0].equals(rows)
    called.rename(tmp_path)
    drawn = pd.Series(rows["id"].drop_null().to_pylist(), dtype="Int64").value_counts()
    whole = pd.read_parquet(tmp_path)["id"].value_counts()
    assert (drawn == whole[drawn.index]).all()
    assert 800 < len(rows) < 1200
    assert (draw.numbers < draw.share).all()
    pd.read_parquet(tmp_path).to_csv(tmp_path / "long.csv", index=False)
    text = read_some(tmp_path / "long.csv", 1000, "id")[0]
    assert [int(one or 0) for one in text["id"].to_pylist()] == rows["id"].fill_null(0).to_pylist()


def test_what_categories_become_counts_too(files, monkeypatch) -> None:
    monkeypatch.setattr("dcem.table.load.MOST_NUMBERS", 5000)
    monkeypatch.setattr("dcem.table.load.FIRST_ROWS", 500)
    with pytest.warns(DataWarning, match="1,200 rows"):
        table = read_table(files["plain.csv"], ROLES)
    assert 0.6 * 5000 < table.problem.X.size < 1.5 * 5000
    assert (
        len(quietly(files["plain.csv"], sample_rows=N).problem) == N
    )  # who says how many gets them


def test_draws_are_fair_and_unrelated_between_seeds(tmp_path) -> None:
    people = pd.DataFrame({"id": [f"P{i}" for i in range(20_000)], "x": np.arange(20_000)})
    people.loc[::2, "id"] = None  # nobody's rows are drawn one by one
    people.to_parquet(tmp_path / "p.parquet")
    taken = [
        set(read_some(tmp_path / "p.parquet", 2000, "id", seed)[0]["x"].to_pylist())
        for seed in range(4)
    ]
    assert all(abs(len(one) - 2000) < 4 * 42.4 for one in taken)  # 4 standard deviations
    assert all(abs(len(taken[0] & one) - 200) < 4 * 14.1 for one in taken[1:])
    assert all(abs(sum(x % 2 for x in one) - 1000) < 4 * 30 for one in taken)


# -- databases and workbooks -----------------------------------------------------------------------


@pytest.mark.parametrize("base", ["base.duckdb", "base.sqlite"])
def test_a_query_says_which_rows(files, base) -> None:
    old = quietly(files[base], query="SELECT * FROM visits WHERE age > 50;")
    frame = made_up()
    assert len(old.problem) == (frame.age > 50).sum()
    assert old.source.sha256 != quietly(files[base]).source.sha256
    with pytest.raises(InputError, match="nothing"):
        read_table(files[base], ROLES, query="SELECT * FROM nothing")
    with pytest.raises(InputError):
        read_header(files[base], "DROP TABLE visits")
    with pytest.raises(InputError):
        read_header(files[base], f"SELECT * FROM read_csv('{__file__}')")  # another file
    assert len(quietly(files[base]).problem) == N


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_join_has_columns_of_one_name(tmp_path, kind) -> None:
    path = tmp_path / f"base.{kind}"
    with closing(pytest.importorskip(kind.replace("sqlite", "sqlite3")).connect(str(path))) as base:
        base.execute("CREATE TABLE visits AS SELECT 1 AS id, 0 AS result")
        base.execute("CREATE TABLE labs AS SELECT 1 AS id, 1 AS result, 2.5 AS lab")
        base.commit()
    joined = "SELECT * FROM visits v JOIN labs l ON v.id = l.id -- both"
    names = ["id", "result", "id (2)", "result (2)", "lab"]
    assert read_header(path, joined) == names
    assert read_whole(path, query=joined).to_pydict() == dict(
        zip(names, [[1], [0], [1], [1], [2.5]], strict=True)
    )
    assert read_whole(path, ["lab"], query=joined).to_pydict() == {"lab": [2.5]}


def test_batches_of_sqlite_have_one_type(tmp_path) -> None:
    path = tmp_path / "base.sqlite"
    rows = [(None, 1, "a"), (1, 2, 3), (2, 2.5, None), (None, 4, b"x")]
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE t (late, grows, mixed)")
        base.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        base.commit()
    found = pa.Table.from_batches(read_batches(path, rows=1))
    assert found.schema.types == [pa.int64(), pa.float64(), pa.string()]
    assert found["mixed"].to_pylist() == ["a", "3", None, "x"]
    assert read_whole(path).equals(found)


def test_several_tables_need_a_query(tmp_path) -> None:
    with sqlite3.connect(tmp_path / "two.db") as base:
        base.execute("CREATE TABLE a (x)")
        base.execute("CREATE TABLE b (x)")
    with pytest.raises(InputError, match=r"2 tables.*'a', 'b'"):
        read_header(tmp_path / "two.db")
    assert tables_within(tmp_path / "two.db") == {n: f'SELECT * FROM "{n}"' for n in "ab"}
    (tmp_path / "not.db").write_text("a text")
    with pytest.raises(InputError, match="neither"):
        read_header(tmp_path / "not.db")


def test_a_table_takes_no_query(files) -> None:
    for name in ("plain.csv", "file.parquet", "written.dta", "stream.arrow"):
        with pytest.raises(InputError, match="`query` does not apply"):
            read_header(files[name], "SELECT 1")


def test_sheets_of_a_workbook(tmp_path) -> None:
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path, engine="xlsxwriter") as book:
        pd.DataFrame().to_excel(book, sheet_name="empty", index=False)
        pd.DataFrame({"x": [1, 2]}).to_excel(book, sheet_name="first", index=False)
        pd.DataFrame({"y": ["a", None, 3]}).to_excel(book, sheet_name="second", index=False)
    assert read_whole(path).to_pydict() == {"x": [1, 2]}
    assert read_whole(path, query="second").to_pydict() == {"y": ["a", "3"]}
    with pytest.raises(InputError, match=r"'secnd'.*second"):
        read_header(path, "secnd")
    (tmp_path / "no.xlsx").write_text("no workbook")
    with pytest.raises(InputError, match="workbook"):
        read_header(tmp_path / "no.xlsx")


def test_a_workbook_may_have_times_at_midnight(tmp_path) -> None:
    when = pd.to_datetime(["2024-05-31 10:05", "2024-06-01 00:00", None, "2024-06-02 23:59"])
    write_frame(pd.DataFrame({"when": when, "x": range(4)}), tmp_path / "t.xlsx")
    found = read_whole(tmp_path / "t.xlsx")["when"].to_pandas()
    pd.testing.assert_series_equal(found, pd.Series(when, name="when"), check_dtype=False)


def test_cells_of_mixed_kinds_are_text() -> None:
    assert array_of([1, None, 2.5]).to_pylist() == [1.0, None, 2.5]
    assert array_of([1, "a", 2.0, True]).to_pylist() == ["1", "a", "2", "True"]
    assert array_of([10**30, 1]).to_pylist() == [str(10**30), "1"]
    assert array_of([None, None]).null_count == 2


# -- labels of statistics packages -----------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".dta", ".sav"])
def test_value_labels_take_the_place_of_codes(tmp_path, suffix) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame(
        {
            "sex": [1.0, 2.0, 1.0, None],
            "kin": [0.0, 1.0, 2.0, 3.0],  # 3 has no label
            "waist": [80.0, 91.0, 888.0, 77.0],  # only 888 has one
        }
    )
    labels = {
        "sex": {1: "male", 2: "female"},
        "kin": {0: "none", 1: "one", 2: "two"},
        "waist": {888: "refused"},
    }
    write = pyreadstat.write_dta if suffix == ".dta" else pyreadstat.write_sav
    path = tmp_path / f"labelled{suffix}"
    write(frame, str(path), variable_value_labels=labels)
    found = read_whole(path).to_pydict()
    assert found["sex"] == ["male", "female", "male", None]
    assert found["kin"] == ["none", "one", "two", "3"]
    assert found["waist"] == [80, 91, 888, 77]

    assert ["waist" in note and "888" in note for note in notes(path)] == [True]


@pytest.mark.parametrize("suffix", [".dta", ".sav", ".xpt"])
def test_a_damaged_file_of_a_statistics_package_is_refused_with_a_message(tmp_path, suffix) -> None:
    pytest.importorskip("pyreadstat")
    path = tmp_path / f"cut{suffix}"
    path.write_bytes(b"no such file")
    with pytest.raises(InputError, match=rf"cut\{suffix}: not a readable \{suffix} file"):
        read_header(path)


# -- a name that comes twice -----------------------------------------------------------------------


def test_many_names_and_identifiers_alike_take_no_time() -> None:
    names = unique_names([""] * 5000 + ["", " (3)", "x", " (3)"])
    assert len(set(names)) == 5004
    assert (names[1], names[2], names[-1]) == (" (2)", " (4)", " (3) (2)")
    people = tuple(str(i) for i in range(20_000))
    both = Coded(np.arange(40_000), people + tuple(f"{one}.0" for one in people))
    with pytest.raises(InputError, match="'0', '1', '2'"):
        code_names(both, "who")


def test_a_column_that_comes_twice(tmp_path) -> None:
    frame = made_up()[["age", "race", "result", "lab"]]
    twice = pd.concat([frame, frame[["age"]], frame[["lab"]] * 2, 1 - frame[["result"]]], axis=1)
    for name in ("t.csv", "t.xlsx"):
        if name == "t.csv":
            twice.to_csv(tmp_path / name, index=False)
        else:
            twice.to_excel(tmp_path / name, index=False, engine="xlsxwriter")
        with pytest.warns(DataWarning, match="several columns called 'age', 'result', 'lab'|age"):
            table = read_table(tmp_path / name, Roles(label="result", group="race"))
        roles = {column.name: column.role for column in table.columns}
        assert roles["age (2)"] == roles["result (2)"] == "left out"
        assert roles["lab (2)"] == "feature"
        assert table.encoder.feature_names == ("age", "lab", "lab (2)")


# -- out again, and from elsewhere -----------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_again(tmp_path, suffix) -> None:
    frame = made_up()
    write_frame(frame, tmp_path / f"out{suffix}")
    same(quietly(tmp_path / f"out{suffix}"), quietly(frame))


def test_text_in_a_workbook_is_not_run(tmp_path) -> None:
    write_frame(pd.DataFrame({"id": ["=1+1", "http://x", "7"]}), tmp_path / "a.xlsx")
    assert read_whole(tmp_path / "a.xlsx").to_pydict() == {"id": ["=1+1", "http://x", "7"]}


def test_an_address_is_fetched(files, tmp_path) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/bucket/plain.csv", files["plain.csv"].read_bytes())
    memory.put(str(files["parts.parquet"]), "/bucket/parts.parquet", recursive=True)
    expected = quietly(files["plain.csv"])
    for address in ("memory://bucket/plain.csv", "memory://bucket/parts.parquet"):
        same(quietly(address), expected)
    assert quietly("memory://bucket/plain.csv").source == expected.source
    for address in ("memory://bucket/nothing.csv", "nowhere://x.csv"):
        with pytest.raises(InputError, match="cannot be fetched"):
            read_table(address, ROLES)


def test_a_signed_address_is_fetched_and_its_signature_not_told(files) -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://bucket/visits.csv?X-Amz-Signature=f00", "wb") as file:
        file.write(files["plain.csv"].read_bytes())
    found = located("memory://bucket/visits.csv?X-Amz-Signature=f00")
    assert found.name == "visits.csv"
    assert "f00" not in as_named(found)
    assert len(quietly(found).problem) == N


def test_a_missing_library_is_named_with_its_extra(files, monkeypatch) -> None:
    import sys

    for name, library in (("written.sav", "pyreadstat"), ("base.duckdb", "duckdb")):
        monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
        from dcem.table import formats

        formats._whole.cache_clear()
        with pytest.raises(MissingExtra, match=rf"{library}.*dcem\[formats\]"):
            read_header(files[name])


def test_a_cell_that_is_merged_over_rows_counts_in_each(tmp_path) -> None:
    import xlsxwriter

    book = xlsxwriter.Workbook(str(tmp_path / "merged.xlsx"))
    sheet = book.add_worksheet()
    sheet.merge_range("B2:C2", "region")  # merged to the right: the second column has no name
    for row, (site, region) in enumerate([("a", 0), ("b", 0), ("c", 0), ("d", "s"), ("e", 0)], 2):
        sheet.write(row, 3, site)
        if region:
            sheet.write(row, 1, region)
    sheet.merge_range("B3:B5", "north")
    sheet.merge_range("B8:B9", "below the table")
    book.close()
    table = read_whole(tmp_path / "merged.xlsx").to_pydict()
    assert table["region"] == ["north", "north", "north", "s", None, "below the table"]
    assert any("merged over several rows" in note for note in notes(tmp_path / "merged.xlsx"))
    write_frame(pd.DataFrame({"region": ["n", None, "s"], "x": [1, 2, 3]}), tmp_path / "plain.xlsx")
    assert read_whole(tmp_path / "plain.xlsx")["region"].to_pylist() == ["n", None, "s"]
    assert not notes(tmp_path / "plain.xlsx")
