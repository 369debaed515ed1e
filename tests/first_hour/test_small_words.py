"""Small things that a reader stumbles over: impossible AUCs, long numbers, axes from zero."""

import os
import re
import subprocess
import sys
import warnings
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dcem

SCRIPT = Path(sys.executable).with_name("dcem")


def table(path, n=900, seed=0, slope=2.0):
    """People tested at random: nothing predicts who is."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    y = (rng.random(n) < 1 / (1 + np.exp(-slope * X[:, 0]))).astype(int)
    frame = pd.DataFrame(X.round(3), columns=[f"v{i}" for i in range(6)])
    tested = rng.random(n) < 0.5
    frame.assign(out=pd.Series(y).where(tested).astype("Int64")).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_check_names_no_auc_that_is_no_better_than_chance(tmp_path, seed):
    path = table(tmp_path / "t.csv", n=400, seed=seed)
    done = subprocess.run(
        [SCRIPT, "check", path, "--label", "out"],
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "100", "TERM": "dumb"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    for auc in re.findall(r"with an AUC of (\.\d+)", told):
        assert float(auc) >= 0.52
    assert "cannot be predicted" in told or "with an AUC of" in told


@pytest.mark.parametrize("value", [1.1 * 1.1, np.float64(1.1) * 3, 7 / 3])
def test_messages_round_long_numbers(tmp_path, value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = dcem.read_table(table(tmp_path / "t.csv"), dcem.Roles(label="out"))
    with pytest.raises(dcem.InputError) as refused:
        dcem.compare_methods(made.problem, ["tested-only:linear"], level=value)
    assert not re.search(r"\d\.\d{11}|np\.float", str(refused.value))


def test_an_axis_leaves_room_for_the_intervals(tmp_path):
    """AUCs from .6 to .95 are not drawn from zero: half of the axis would be empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = dcem.read_table(table(tmp_path / "t.csv", n=260, slope=0.5), dcem.Roles(label="out"))
        comparison = dcem.compare_methods(
            made.problem,
            ["tested-only:linear", "tested-only:boost", "y-obs:linear"],
            n_folds=2,
            planted=0,
            n_resamples=10,
        )
    page = unescape(comparison._repr_html_())
    scale = re.search(r'class="strip scale">(.*?)</td>', page, re.S)[1]
    first = float(re.search(r">(-?[.\d]+)<", scale)[1])
    lows = [one.judgements["dr"].auc.low for one in comparison.methods]
    assert 0.3 < min(lows) < 0.52  # far from zero nevertheless
    assert 0 < first <= min(lows)
    assert first > min(lows) - 0.2
