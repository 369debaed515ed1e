"""What the recorded coverage of audits must show."""

from pathlib import Path

import numpy as np
import pandas as pd

RECORDED = Path(__file__).resolve().parents[2] / "results" / "coverage_audit.csv"


def test_intervals_hold_and_false_claims_stay_at_their_level() -> None:
    found = pd.read_csv(RECORDED)
    assert len(found) == 12
    # as far above 5 % as twelve worlds of so many tables may lie by chance
    allowed = 0.05 + 2.9 * np.sqrt(0.05 * 0.95 / found["repetitions"])
    for claim in ("disparity", "dependence", "dependence_claimed"):
        assert (found[claim] <= allowed).all(), claim
        assert found[claim].mean() <= 0.05, claim
    told = found[found["refused"] < 0.5]
    assert len(told) == 11
    assert told["coverage"].between(0.92, 0.98).all()
    assert (found.loc[found["refused"] >= 0.5, "reach"] < 0.5).all()
