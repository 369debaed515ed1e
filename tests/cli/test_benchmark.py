"""`dcem benchmark` as a shell sees it."""

import resource

import pytest

FILE = """
[[tasks]]
n_train = 300
n_validation = 300
n_test = 300
seed = [0, 1]
[[methods]]
name = ["y-obs", "tested-only"]
params = {steps = 5}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("benchmark")
    (path / "mine.toml").write_text(FILE)
    return path


@pytest.fixture(scope="module")
def finished(inside, folder):
    ended = inside("benchmark", "run", "mine.toml", "--out", "out", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert "4 cells done (4 now" in ended.stdout
    assert "dcem benchmark leaderboard" in ended.stdout
    assert "4 of 4 cells" in ended.stderr
    return folder


def test_status_answers_within_a_second(dcem, finished):
    """Of processor time: the machine may be busy with other things."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = dcem("benchmark", "status", "out", cwd=finished)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.returncode == 0
    assert "mine: 4 of 4 cells" in ended.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1


def test_export_compare_and_leaderboard(inside, finished):
    ended = inside("benchmark", "export", "out", "-o", "a.csv", cwd=finished)
    assert ended.stdout == "Wrote a.csv: 4 rows.\n"
    same = inside("benchmark", "compare", "out", "a.csv", cwd=finished)
    assert same.returncode == 0, same.stderr
    assert "4 agrees" in same.stdout
    table = (finished / "a.csv").read_text().splitlines()
    column = table[0].split(",").index("auc")
    cells = table[1].split(",")
    changed = [*cells[:column], "0.1", *cells[column + 1 :]]
    (finished / "b.csv").write_text("\n".join([table[0], ",".join(changed), *table[2:]]))
    other = inside("benchmark", "compare", "out", "b.csv", "--off-only", cwd=finished)
    assert other.returncode == 1
    assert "off: y-obs, auc" in other.stdout
    page = inside("benchmark", "leaderboard", "out", "-o", "page.html", cwd=finished)
    assert page.returncode == 0
    assert (finished / "page.html").stat().st_size > 5000


def test_a_store_with_open_cells_agrees_with_nothing(inside, finished):
    """Two stores with the same hole must not pass for equal."""
    if not (finished / "half").exists():
        some = ("benchmark", "run", "mine.toml", "--out", "half")
        assert inside(*some, "-m", "y-obs", cwd=finished).returncode == 0
        assert inside(*some, "--max-seconds", "0", cwd=finished).returncode == 0
    ended = inside("benchmark", "compare", "half", "half", cwd=finished)
    assert ended.returncode == 1
    assert "without result: mine, tested-only: 2 to do" in ended.stdout


def test_nothing_comparable_is_no_agreement(inside, finished):
    ended = inside("benchmark", "compare", "out", cwd=finished)
    assert ended.returncode == 1
    assert "Nothing to compare" in ended.stdout
    assert "4 of 4 results are left out: their draws are their own" in ended.stdout


def test_files_are_written_into_new_folders_or_refused_by_their_name(inside, finished):
    ended = inside("benchmark", "export", "out", "-o", "new/folder/a.csv", cwd=finished)
    assert ended.returncode == 0, ended.stderr
    (finished / "file").write_text("")
    for command, name in (("export", "a.csv"), ("leaderboard", "a.html"), ("compare", "c.csv")):
        ended = inside("benchmark", command, "out", "-o", f"file/{name}", cwd=finished)
        assert ended.returncode == 2
        assert ended.stderr.splitlines()[-1].startswith(f"error: file/{name}: ")


def test_what_failed_is_told_with_its_reason_and_where_to_look(inside, folder):
    text = FILE.replace("steps = 5", "steps = 5, learning_rate = 1e38")
    (folder / "bad.toml").write_text(text)
    ended = inside("benchmark", "run", "bad.toml", "--out", "bad", "-m", "y-obs", cwd=folder)
    assert ended.returncode == 1
    assert "y-obs: 2 failed, with: ValueError: 300 scores are not finite" in ended.stdout
    assert "dcem benchmark status bad;" in ended.stdout


def test_presets_count_what_can_exist(inside, tmp_path):
    ended = inside("benchmark", "presets", cwd=tmp_path)
    (line,) = (line for line in ended.stdout.splitlines() if line.split()[:1] == ["grid"])
    assert line.split()[1] == str(208 * 12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "figure-2", "--out", "x"), "Did you mean 'figure2'"),
        (("run", "mine.toml", "--out", "x", "-m", "dcem"), "has no method 'dcem'"),
        (("run", "absent.toml", "--out", "x"), "absent.toml: no such file"),
        (("status", "absent"), "No store at absent"),
        (("export", "out", "-o", "a.xlsx"), "must end in .csv, .csv.gz or .parquet"),
    ],
)
def test_slips_get_one_clear_line(inside, finished, arguments, message):
    ended = inside("benchmark", *arguments, cwd=finished)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (finished / "x").exists()
