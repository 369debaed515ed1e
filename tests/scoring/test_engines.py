"""Scores on engines that others run: DuckDB, Spark, MLflow, Ray; all as here."""

import shutil
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from dcem import load_model
from dcem.methods import make
from dcem.scoring import TableModel, predict_file, predict_folder, score_batches
from dcem.table import read_table
from dcem.table.messages import InputError

from .conftest import ROLES, visits

KEEP = ["patient"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """The folder of a model that needs no torch."""
    table = read_table(visits(), ROLES)
    estimator = make("tested-only", learner="linear", random_state=0)
    estimator.fit_problem(table.problem)
    folder = tmp_path_factory.mktemp("saved") / "model"
    TableModel(estimator, table.encoder, table.roles, table.source).save(folder)
    return folder


@pytest.fixture(scope="module")
def parts(tmp_path_factory) -> Path:
    """A table in folders by ward; one of its files has no rows."""
    folder = tmp_path_factory.mktemp("parts") / "visits"
    people = visits(3000, seed=1)
    people.to_parquet(folder, partition_cols=["ward"], index=False)
    empty = pa.Table.from_pandas(people.drop(columns="ward").iloc[:0], preserve_index=False)
    pyarrow.parquet.write_table(empty, folder / "ward=ICU" / "empty.parquet")
    return folder


@pytest.fixture(scope="module")
def expected(saved, parts, tmp_path_factory) -> pd.DataFrame:
    out = tmp_path_factory.mktemp("expected") / "scores.parquet"
    predict_file(TableModel.load(saved), parts, out)
    return pd.read_parquet(out)


def read(folder: Path) -> pd.DataFrame:
    files = sorted(folder.rglob("*.parquet"))
    return pd.concat([pyarrow.parquet.read_table(f, partitioning=None).to_pandas() for f in files],
                     ignore_index=True)  # fmt: skip


def test_a_folder_becomes_a_folder(saved, parts, expected, tmp_path) -> None:
    seen = []
    told = predict_folder(saved, parts, tmp_path / "scores", progress=seen.append)
    pd.testing.assert_frame_equal(read(tmp_path / "scores"), expected)
    assert told.rows == seen[-1] == 3000
    assert told.unlike_tested == (~expected.like_tested).sum()
    names = {file.relative_to(parts) for file in parts.rglob("*.parquet")}
    made = {file.relative_to(tmp_path / "scores") for file in tmp_path.rglob("*.parquet")}
    assert made == {name for name in names if name.name != "empty.parquet"}
    assert [path.name for path in tmp_path.iterdir()] == ["scores"]


def test_rows_are_counted_through_all_files(saved, parts, tmp_path) -> None:
    predict_folder(saved, parts, tmp_path / "scores", keep=())
    assert read(tmp_path / "scores").row.tolist() == list(range(3000))


def test_a_failure_leaves_the_old_folder(saved, parts, tmp_path, monkeypatch) -> None:
    predict_folder(saved, parts, tmp_path / "scores")
    before = read(tmp_path / "scores")
    monkeypatch.setattr("dcem.scoring.folders.score_part", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        predict_folder(saved, parts, tmp_path / "scores")
    pd.testing.assert_frame_equal(read(tmp_path / "scores"), before)
    assert [path.name for path in tmp_path.iterdir()] == ["scores"]


def test_places_that_would_lose_something_are_refused(saved, parts, tmp_path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    for out in (tmp_path / "mine", parts, parts / "scores", parts.parent):
        with pytest.raises(InputError):
            predict_folder(saved, parts, out)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years"
    with pytest.raises(InputError, match="local, ray"):
        predict_folder(saved, parts, tmp_path / "s", backend="spark")


def test_batches_by_a_folder_and_in_any_cut(saved, parts, expected) -> None:
    table = pyarrow.parquet.read_table(parts)
    table = table.set_column(
        table.schema.get_field_index("ward"), "ward", table.column("ward").cast(pa.string())
    )
    for rows in (100, 1000, 5000):
        batches = table.to_batches(max_chunksize=rows)
        found = pa.Table.from_batches(score_batches(saved, batches, keep=KEEP, threads=1))
        assert found.column_names == expected.columns.tolist()
        ours = found.to_pandas().set_index("patient").loc[expected.patient].reset_index()
        pd.testing.assert_frame_equal(ours, expected)
    assert list(score_batches(saved, [])) == []


def test_duckdb(saved, parts, expected) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as base:
        rows = base.sql(f"SELECT * FROM read_parquet('{parts}/**/*.parquet', hive_partitioning=1)")
        batches = score_batches(saved, rows.to_arrow_reader(1000), keep=KEEP)
        scores = pa.Table.from_batches(batches)  # noqa: F841  (DuckDB sees it by its name)
        ((mean, n),) = base.sql("SELECT avg(score), count(*) FROM scores").fetchall()
    assert n == 3000
    assert mean == pytest.approx(expected.score.mean(), abs=1e-6)


@pytest.mark.slow
def test_spark(saved, parts, expected, monkeypatch) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    from pyspark.sql import SparkSession

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "700").getOrCreate()
    try:
        schema = (
            "patient string, score float, score_spread float, distance float, like_tested boolean"
        )
        score = partial(score_batches, saved, keep=KEEP, threads=1)
        rows = spark.read.parquet(str(parts)).mapInArrow(score, schema).toArrow().to_pandas()
    finally:
        spark.stop()
    ours = rows.set_index("patient").loc[expected.patient].reset_index()
    pd.testing.assert_frame_equal(ours, expected, check_dtype=False, check_exact=True)


@pytest.mark.slow
def test_mlflow_as_documented(saved, tmp_path, monkeypatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    page = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
    recipe = page.partition("## MLflow")[2].partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved, tmp_path / "model")
    exec(compile(recipe, "engines.md", "exec"), {"__name__": "recipe"})
    people = visits(50)
    found = mlflow.pyfunc.load_model("risk").predict(people)
    np.testing.assert_array_equal(found, load_model(saved).predict_proba(people)[:, 1])


# -- Ray -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
    ray.init(num_cpus=2, log_to_driver=False, configure_logging=False, include_dashboard=False)
    yield ray
    ray.shutdown()


@pytest.mark.slow
def test_ray_data(cluster, saved, parts, expected) -> None:
    import ray.data

    def scored(rows: pa.Table) -> pa.Table:
        return pa.Table.from_batches(score_batches(saved, [rows], keep=KEEP, threads=1))

    people = ray.data.read_parquet(str(parts))
    found = people.map_batches(scored, batch_format="pyarrow", batch_size=500).to_pandas()
    ours = found.set_index("patient").loc[expected.patient].reset_index()
    pd.testing.assert_frame_equal(ours[expected.columns], expected, check_dtype=False)


def test_what_workers_get_is_small_and_travels(saved) -> None:
    import pickle

    sent = pickle.dumps(partial(score_batches, saved, keep=KEEP))
    assert len(sent) < 1000
    rows = pa.RecordBatch.from_pandas(visits(10), preserve_index=False)
    (found,) = pickle.loads(sent)([rows])
    assert np.isfinite(found.column("score").to_numpy()).all()
