import json

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.usefixtures("linear_models")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """People of two groups, two rows each; group b is tested half as often at equal features."""
    rng = np.random.default_rng(0)
    n = 1200
    group = np.repeat(rng.choice(["a", "b"], n // 2), 2)
    age = rng.normal(50, 10, n).round(1)
    tested = rng.random(n) < np.where(group == "b", 0.2, 0.4)
    y = np.where(rng.random(n) < 0.3, "high", "normal")
    frame = pd.DataFrame(
        {
            "person": np.arange(n) // 2,
            "group": group,
            "age": age,
            "ward": rng.choice(["icu", "er", "other"], n),
            "result": np.where(tested, y, "None"),
        }
    )
    path = tmp_path_factory.mktemp("audit") / "people.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.usefixtures("all_models")
def test_audit_from_file_to_page(inside, table, tmp_path) -> None:
    roles = "--label result --positive high --untested-value None --group group --id person"
    done = inside(
        "audit", table, *roles.split(), "--report", "out/a.html", "--json", "a.json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "Group b is tested less often than others with the same features" in done.stdout
    assert "serious" in done.stdout
    assert f"dcem compare {table} " in done.stdout.splitlines()[-1]
    assert "Full report:\n  out/a.html" in done.stdout
    assert "How common is the outcome?" not in done.stdout  # it is on the page
    page = (tmp_path / "out" / "a.html").read_text()
    assert "Audit of the labels in people.csv" in page
    assert str(tmp_path) not in page
    assert "# Audit of the labels in people.csv" in (tmp_path / "out" / "a.md").read_text()
    numbers = json.loads((tmp_path / "a.json").read_text())
    b = next(rate for rate in numbers["testing"] if rate["group"] == "b")
    assert b["difference"]["high"] < 0
    assert len(numbers["made"]["SHA-256"]) == 64


def test_wrong_column_writes_nothing(inside, table, tmp_path) -> None:
    done = inside("audit", table, "--label", "reslt", "--report", tmp_path / "a.html")
    assert done.returncode == 2
    assert "result" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (("--report", "."), "is a folder"),
        (("--report", "a.html", "--json", "a.html"), "also named for another output"),
        (("--report", "a.html", "--json", "a.md"), "also named for another output"),
        (("--json", "people.csv"), "the input file"),
        (("--report", "people.csv/a.html"), "not a folder"),
    ],
)
def test_places_are_checked_before_the_table_is_read(inside, tmp_path, place, says) -> None:
    """The table has no such label; the place is what is told, so nothing was read before."""
    (tmp_path / "people.csv").write_text("x,y\n1,0\n")
    done = inside("audit", "people.csv", "--label", "absent", *place, cwd=tmp_path)
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())
    assert "absent" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_a_threshold_that_nothing_would_use_is_refused(inside, tmp_path) -> None:
    (tmp_path / "people.csv").write_text("x,y\n1,0\n")
    asked = ("audit", "people.csv", "--label", "y", "--threshold", ".3")
    done = inside(*asked, cwd=tmp_path)
    assert done.returncode == 2
    assert "--bounds" in done.stderr


def test_the_truth_moves_nothing(inside, table, tmp_path) -> None:
    """Everybody's true outcome, its opposite, or no such column: the same numbers."""
    frame = pd.read_csv(table, keep_default_na=False).head(600)
    truth = np.where(frame["result"] == "None", frame.index % 3 == 0, frame["result"] == "high")
    opposite = np.where(frame["result"] == "None", ~truth, truth)
    roles = "--label result --positive high --untested-value None --group group --id person"
    found = []
    for number, column in enumerate((None, truth, opposite)):
        folder = tmp_path / str(number)
        folder.mkdir()
        told = frame if column is None else frame.assign(real=column.astype(int))
        told.to_csv(folder / "t.csv", index=False)
        extra = () if column is None else ("--truth", "real")
        done = inside("audit", "t.csv", *roles.split(), *extra, "--json", "a.json", cwd=folder)
        assert done.returncode == 0, done.stderr
        numbers = json.loads((folder / "a.json").read_text())
        made = numbers.pop("made")
        assert ("truth" in made) == (column is not None)
        found.append(numbers)
    assert found[0] == found[1] == found[2]


def test_nobody_tested_is_told(inside, tmp_path) -> None:
    path = tmp_path / "t.csv"
    pd.DataFrame({"x": np.arange(50.0), "y": ["None"] * 50}).to_csv(path, index=False)
    done = inside("audit", path, "--label", "y", "--positive", "yes", "--untested-value", "None")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
