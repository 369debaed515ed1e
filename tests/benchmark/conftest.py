from pathlib import Path

import pytest

SMALL = """
about = "Small enough for a test."

[[tasks]]
phase = [0, 120]
n_train = 300
n_validation = 300
n_test = 300
stream = "independent"
seed = [0, 1, 2]
"""

PLAIN = (
    SMALL
    + """
[[methods]]
name = ["y-obs", "tested-only"]
params = {steps = 20, hidden = [8]}
"""
)

ITERATIVE = (
    SMALL
    + """
[[methods]]
name = "dcem"
params = {max_iter = 12, steps = 5, hidden = [8], variant = "published"}
"""
)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """12 cells of two single-stage methods."""
    (tmp_path / "plain.toml").write_text(PLAIN)
    return tmp_path / "plain.toml"


@pytest.fixture
def iterative(tmp_path: Path) -> Path:
    """6 cells of DCEM, which train as one fleet and write checkpoints."""
    (tmp_path / "iterative.toml").write_text(ITERATIVE)
    return tmp_path / "iterative.toml"
