"""A small clinic: a sound table, and the command line in this process."""

from __future__ import annotations

from contextlib import chdir
from types import SimpleNamespace

import numpy as np
import pandas as pd
from typer.testing import CliRunner


def command(*args, cwd=".") -> SimpleNamespace:
    """Run a command: its exit status, and all that it says on one line."""
    from dcem.cli import app

    with chdir(cwd):
        ended = CliRunner(env={"COLUMNS": "100", "TERM": "dumb"}).invoke(
            app, [*map(str, args)], prog_name="dcem"
        )
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    text = " ".join(f"{ended.stdout} {ended.stderr}".split())
    return SimpleNamespace(status=ended.exit_code, text=text)


def clinic(rows: int = 600, seed: int = 0) -> pd.DataFrame:
    """Visits with a test that was ordered for some; lactate and age matter."""
    rng = np.random.default_rng(seed)
    age, lactate = rng.integers(18, 95, rows), rng.gamma(2, 1, rows).round(2)
    ordered = rng.random(rows) < 1 / (1 + np.exp(1.5 - 0.5 * lactate))
    ill = rng.random(rows) < 1 / (1 + np.exp(4 - 0.03 * age - 0.6 * lactate))
    return pd.DataFrame(
        {
            "patient": [f"P{i:04d}" for i in range(rows)],
            "age": age,
            "lactate": lactate,
            "ward": rng.choice(["ICU", "ER", "surgery"], rows),
            "sex": rng.choice(["F", "M"], rows),
            "ordered": ordered.astype(int),
            "flu": np.where(ordered, ill.astype(float), np.nan),
        }
    )
