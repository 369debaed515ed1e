"""A column of many codes that tells the group: a ward its hospital, a postcode its county.

Codes of a few people each have no feature of their own, and yet nobody of another group has them.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dcem

N = 2_000


def made(codes: int, groups: int, *, name: str = "k4", told: float = 1.0) -> pd.DataFrame:
    """People each with one of many codes; the code tells the group of this share of them."""
    rng = np.random.default_rng(codes)
    x, code = rng.normal(size=N), rng.integers(0, codes, N)
    group = np.where(rng.random(N) < told, code % groups, rng.integers(0, groups, N))
    tested = rng.random(N) < 1 / (1 + np.exp(-x))
    result = np.where(rng.random(N) < 0.3, "1", "0")
    return pd.DataFrame(
        {
            "x": x.round(2),
            name: [f"Q{one:03d}" for one in code],
            "g": [f"R{one}" for one in group],
            "r": np.where(tested, result, ""),
        }
    )


def audited(frame: pd.DataFrame, **roles: str) -> dcem.audit.Audit:
    return dcem.audit.audit_labels(frame, label="r", **{"group": "g", **roles})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("codes", "groups"), [(60, 5), (150, 2), (250, 3)])
def test_many_codes_within_groups_tell_them(codes: int, groups: int) -> None:
    found = audited(made(codes, groups))
    assert all(not rate.difference.estimable for rate in found.testing)
    assert all("determine the group (k4)" in rate.difference.reason for rate in found.testing)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("told", [0.0, 0.4])
def test_codes_that_occur_in_all_groups_do_not(told: float) -> None:
    found = audited(made(60, 3, told=told))
    assert all(rate.difference.estimable for rate in found.testing)


@pytest.mark.filterwarnings("ignore")
def test_one_of_two_crossed_groups_is_told() -> None:
    frame = made(80, 2).assign(sex=np.random.default_rng(1).choice(["f", "m"], N))
    table = dcem.read_table(frame, dcem.Roles(label="r", group=["g", "sex"]))
    found = dcem.audit.audit_labels(table)
    by_column = {
        name: [rate.difference.estimable for rate in rates]
        for name, rates in found.by_attribute.items()
    }
    assert by_column == {"g": [False, False], "sex": [True, True]}


def test_the_first_screen_names_the_column(tmp_path: Path) -> None:
    made(60, 5, name="ward").to_csv(tmp_path / "wards.csv", index=False)
    command = [sys.executable, "-m", "dcem", "audit", str(tmp_path / "wards.csv")]
    done = subprocess.run(
        [*command, "--label", "r", "--group", "g"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    first = " ".join(done.stdout.split("What not to conclude")[0].split())
    assert "cannot be determined" in first
    assert "(ward)" in first
