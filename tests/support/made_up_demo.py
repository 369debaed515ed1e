"""The comparison of a demonstration with made-up numbers."""

import numpy as np

from dcem.compare.results import Curve, GroupCounts, History
from dcem.compare.truth_results import Comparison, MethodResult
from dcem.metrics.estimate import Estimate


def method(name, auc, gap, *, chance=0.02, gain=None, change=None, truth=False, history=None):
    rise = np.linspace(0, 1, 50)
    return MethodResult(
        name=name,
        what_it_does=f"What {name} does & why.",
        uses_truth=truth,
        auc=Estimate(auc, auc - 0.01, auc + 0.01),
        roc_gap=Estimate(gap, max(gap - 0.02, 0), gap + 0.02),
        gap_by_chance=chance,
        auc_difference=Estimate(0.03, -0.01, 0.07),
        auc_gain=gain,
        gap_change=change,
        curves={"Black": Curve(rise, rise**0.5), "white": Curve(rise, rise**0.4)},
        seconds=1.25,
        history=history,
    )


def made_up_demo() -> Comparison:
    """Four methods on two groups, one of them given the truth."""
    history = History(
        {"training": np.array([0.7, 0.6, 0.5]), "validation": np.array([0.71, 0.62, 0.63])},
        kept=2,
        termination="EM stopped when the watched loss no longer fell.",
    )
    return Comparison(
        title="A <comparison> of methods",
        description="Made-up numbers.",
        level=0.9,
        resamples=1234,
        groups=(
            GroupCounts("Black", 1000, 100, 40, 300),
            GroupCounts("white", 2000, 400, 90, 200),
        ),
        methods=(
            method("y-obs", 0.632, 0.104),
            method(
                "dcem",
                0.846,
                0.025,
                gain=Estimate(0.214, 0.2, 0.23),
                change=Estimate(-0.079, -0.1, -0.05),
                history=history,
            ),
            method(
                "tested-only",
                0.631,
                0.015,
                gain=Estimate(-0.001, -0.02, 0.02),
                change=Estimate(-0.089, -0.11, -0.06),
            ),
            method(
                "y-model",
                0.911,
                0.009,
                gain=Estimate(0.279, 0.26, 0.3),
                change=Estimate(-0.095, -0.12, -0.07),
                truth=True,
            ),
        ),
        configuration={"seed": "7"},
        versions={"dcem": "0.0.test", "numpy": "2"},
    )
