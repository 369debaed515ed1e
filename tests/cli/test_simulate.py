"""`dcem simulate`: what it writes can be read back, and mistakes cost nothing."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dcem import SelectiveLabels
from dcem.cli import app
from dcem.tasks import make_sinusoid

ROLES = {"label": "label", "tested": "tested", "group": "group", "features": ["x0", "x1"]}


def run(*arguments):
    return CliRunner().invoke(app, ["simulate", *map(str, arguments)])


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_the_table_reads_back_as_the_published_task(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    result = run("--output", path, "--phase", 30, "--k", 2)
    assert result.exit_code == 0, result.output
    task = make_sinusoid(k=2.0, phase=np.radians(30))
    whole = SelectiveLabels.from_file(path, **ROLES)
    train = whole.subset(slice(0, 20_000))
    np.testing.assert_array_equal(train.X, task.train.X)
    np.testing.assert_array_equal(train.y_obs, task.train.y_obs)
    np.testing.assert_array_equal(train.group, task.train.group)
    assert len(whole) == 60_000
    assert [p.name for p in tmp_path.iterdir()] == [path.name]  # nothing temporary is left


def test_columns_with_and_without_the_truth(tmp_path):
    path = tmp_path / "t.parquet"
    run("-o", path, "--n", 500)
    assert list(pd.read_parquet(path)) == ["x0", "x1", "group", "tested", "label", "split"]
    run("-o", path, "--n", 500, "--truth")
    frame = pd.read_parquet(path)
    assert list(frame) == ["x0", "x1", "group", "tested", "label", "truth", "split"]
    assert frame["split"].value_counts().to_dict() == dict.fromkeys(
        ["train", "validation", "test"], 500
    )


def test_a_seed_chooses_the_independent_stream_and_repeats(tmp_path):
    first, second, other = (tmp_path / f"{name}.csv" for name in "abc")
    assert "independent stream, seed 7" in run("-o", first, "--seed", 7, "--n", 200).output
    run("-o", second, "--seed", 7, "--n", 200)
    run("-o", other, "--seed", 8, "--n", 200)
    assert first.read_bytes() == second.read_bytes() != other.read_bytes()


def test_the_written_preset_says_which_seed_it_took(tmp_path):
    output = run("-o", tmp_path / "t.csv", "--preset", "as-written", "--n", 200).output
    assert "as-written, independent stream, seed " in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--k", 3, "--q-t", 4), "group 0 would need a testing rate of 1.2"),
        (("--seed", 1, "--stream", "published"), "seeded with 42"),
    ],
)
def test_a_mistake_leaves_the_old_table_alone(tmp_path, arguments, message):
    path = tmp_path / "t.csv"
    path.write_text("precious")
    result = run("-o", path, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert path.read_text() == "precious"


def test_unusable_outputs_are_refused_before_the_work(tmp_path):
    assert "must end in one of .csv" in run("-o", tmp_path / "t.docx").output
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in run("-o", tmp_path / "folder.csv").output
