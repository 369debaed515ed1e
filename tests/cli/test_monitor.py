"""`dcem history` and `dcem monitor`: from files to answers."""

import json

import numpy as np
import pandas as pd
from scipy.special import expit
from typer.testing import CliRunner

from dcem.cli import app

ROLES = ("--label", "y", "--tested", "tested", "--id", "who", "--time", "seen", "--group", "sex")


def visits(path, n: int = 900, seed: int = 0, shift: float = 0.0) -> str:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) + shift
    tested = rng.random(n) < expit(0.5 * x)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D")
    frame = pd.DataFrame({"who": rng.integers(0, n // 2, n), "seen": day.strftime("%d.%m.%Y")})
    frame = frame.assign(x=x, sex=rng.choice(["f", "m"], n), tested=tested * 1)
    frame["y"] = np.where(tested, rng.random(n) < expit(x), np.nan).astype(float)
    frame.to_csv(path, index=False)
    return str(path)


def run(*arguments: object):
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "300"})


def test_a_model_is_watched_from_the_command_line(tmp_path):
    old, new = visits(tmp_path / "old.csv"), visits(tmp_path / "new.csv", seed=1, shift=1.0)
    model = tmp_path / "model"
    fitted = run("fit", old, *ROLES, "--method", "tested-only", "--learner", "linear", "-o", model)
    assert fitted.exit_code == 0, fitted.output
    assert "2024-01-" in (model / "MODEL_CARD.md").read_text()
    done = run(
        "monitor", model, new, "--json", tmp_path / "m.json", "--markdown", tmp_path / "m.md"
    )
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "m.json").read_text())
    assert told["columns"][0]["column"] == "x"
    assert {"who-comes", "not-judged"} <= {one["key"] for one in told["findings"]}
    (tmp_path / "dcem.toml").write_text('words = "credit"\n[roles]\nlabel = "another"\n')
    spoken = run("monitor", model, new, "--markdown", tmp_path / "m.md")
    assert spoken.exit_code == 0, spoken.output  # columns mean what they meant for the model
    assert "Who is approved?" in (tmp_path / "m.md").read_text()
    (tmp_path / "dcem.toml").unlink()
    refused = run("monitor", model, visits(tmp_path / "odd.csv"), "--label", "other")
    assert refused.exit_code == 2
    assert "other" in refused.output


def test_history_is_written_beside_the_columns(tmp_path):
    table = visits(tmp_path / "old.csv")
    done = run("history", table, *ROLES, "--out", tmp_path / "more.csv")
    assert done.exit_code == 0, done.output
    assert "since_last_test" in pd.read_csv(tmp_path / "more.csv")
    refused = run("history", table, "--label", "y", "--out", tmp_path / "no.csv")
    assert refused.exit_code == 2
    assert "--id" in refused.output
