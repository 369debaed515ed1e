"""Class: statistical, and exact where an estimate rests on no model.

Every estimate of an audit and of a comparison with its interval. A statistical one may move by a
quarter of its standard error, and so may the ends of its interval: an interval at 90 % is too far.
"""

from pathlib import Path

import cases
import names
import numpy as np
import pandas as pd
import pytest

HERE = Path(__file__).parent
RECORDED = HERE / "recorded" / "estimates.csv"
EXACT = 1e-9
QUARTER = 0.25 / 3.92  # of a standard error, in widths of a 95 % interval
LEAST = 1e-6  # for widths of 0: another processor rounds otherwise


def recorded() -> pd.DataFrame:
    return pd.read_csv(RECORDED, keep_default_na=False, na_values=["NaN"], dtype={"of": str})


def parts() -> list[tuple[str, str, str]]:
    """Case, result and the estimate that is compared, for all groups at once."""
    return sorted(set(recorded()[cases.KEY[:3]].itertuples(index=False, name=None)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("case", "result", "about"), parts())
def test_estimates_stay(case, result, about):
    then = recorded().query("case == @case and result == @result and about == @about")
    now = cases.today(case, result).query("about == @about")
    assert sorted(then["of"]) == sorted(now["of"])
    both = then.merge(now, on=cases.KEY, suffixes=("", "_now"))
    numbers = ["value", "low", "high"]
    before, after = both[numbers].to_numpy(), both[[f"{n}_now" for n in numbers]].to_numpy()
    np.testing.assert_array_equal(np.isnan(before), np.isnan(after))
    width = np.maximum(before[:, 2] - before[:, 1], 0)[:, None]
    allowed = np.where(names.is_exact(about), EXACT, np.maximum(QUARTER * width, LEAST))
    moved = np.abs(np.nan_to_num(after - before)) > np.nan_to_num(allowed, nan=LEAST)
    assert not moved.any(), both[moved.any(axis=1)].to_string()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("case", "result"), cases.chapters())
def test_no_estimate_is_new(case, result):
    then = recorded().query("case == @case and result == @result")
    assert set(cases.today(case, result)["about"]) == set(then["about"])
