"""What was recorded of monitoring: intervals hold, and nothing is called where nothing changed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def recorded() -> pd.DataFrame:
    return pd.read_csv(RESULTS / "monitor.csv")


@pytest.mark.parametrize("number", ["prevalence", "auc", "calibration"])
def test_intervals_hold_as_often_as_they_should(recorded, number):
    held = np.average(recorded[f"{number}_holds"], weights=recorded["repetitions"])
    assert 0.93 < held < 0.98


def test_false_alarms_are_as_rare_as_the_page_says(recorded):
    nothing = recorded[recorded["change"].str.startswith("nothing")]
    rate = np.average(nothing["any_alarm"], weights=nothing["repetitions"])
    assert rate <= 0.05
    assert f"{100 * rate:.1f} %" in (RESULTS.parent / "docs" / "monitor.md").read_text()


def test_late_results_are_called_late_and_nothing_else(recorded):
    late = recorded.set_index("change").loc["results late"]
    assert late["alarm_late-results"] == 1
    assert late["alarm_who-is-tested"] <= 0.05
