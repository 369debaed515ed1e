from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_benchmark import SMALL

from dcem.tasks.sepsis.features import FEATURE_NAMES

ITERATIVE = (
    SMALL
    + """
[[methods]]
name = "dcem"
params = {max_iter = 12, steps = 5, hidden = [8], variant = "published"}
"""
)

ROUNDS = {
    "sar-em": "max_iter = 12, patience = 99, steps = 5",
    "self": "max_iter = 11, patience = 99, steps = 5",  # after a first round without filtering
}


@pytest.fixture
def iterative(tmp_path: Path) -> Path:
    """6 cells of DCEM, which train as one fleet and write checkpoints."""
    (tmp_path / "iterative.toml").write_text(ITERATIVE)
    return tmp_path / "iterative.toml"


@pytest.fixture(params=ROUNDS)
def rounds(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """6 cells of 12 rounds of another method that writes checkpoints."""
    method = f'name = "{request.param}"\nparams = {{hidden = [8], {ROUNDS[request.param]}}}\n'
    (tmp_path / "rounds.toml").write_text(f"{SMALL}\n[[methods]]\n{method}")
    return tmp_path / "rounds.toml"


@pytest.fixture
def cohort(tmp_path: Path) -> Path:
    """A made-up cohort with the columns and rough rates of the real one."""
    rng = np.random.default_rng(0)
    n = 1200
    frame = pd.DataFrame(rng.normal(20, 5, (n, len(FEATURE_NAMES))), columns=list(FEATURE_NAMES))
    frame["min_sbp"] += 90
    frame["icustay_id"] = np.arange(n)
    frame["subject_id"] = np.arange(n)
    frame["a"] = (rng.random(n) < 0.9).astype(int)
    frame["y"] = (rng.random(n) < 0.12).astype(int)
    frame.to_parquet(tmp_path / "cohort.parquet")
    return tmp_path / "cohort.parquet"
