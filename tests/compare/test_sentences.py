"""Sentences of a comparison are no stronger than the intervals behind them."""

from dataclasses import replace
from math import nan
from types import SimpleNamespace
from typing import Any

import numpy as np

from dcem.compare.advice import advise, leading
from dcem.compare.findings import about_calibration, about_gaps
from dcem.compare.results import PlantedFamily
from dcem.metrics.estimate import Estimate

FAMILY = PlantedFamily("linear", "One sentence.", outcome_dependent=False)
DEPENDENT = PlantedFamily("dependent", "One sentence.", outcome_dependent=True)


def method(name: str, gap: Estimate, chance: float = 0.05, error: Estimate | None = None) -> Any:
    """As much of a `MethodResult` as the sentences look at."""
    judged = SimpleNamespace(
        roc_gap=gap,
        gap_pair=("A", "B") if gap.estimable else None,
        gap_by_chance=chance,
        auc_differences={},
        calibration_error=error or Estimate(nan, reason="nobody"),
    )
    return SimpleNamespace(name=name, judgements={"dr": judged})


class TestGaps:
    small, wide = Estimate(0.02, 0.01, 0.04), Estimate(0.04, 0.02, 0.06)
    none = Estimate(nan, reason="one group has no positives")

    def test_chance_for_all_is_said_once(self) -> None:
        (said,) = about_gaps([method("a", self.small), method("b", self.wide)], "dr")
        assert said == (
            "The ROC gaps of every method are within what groups dealt out at random would show; "
            "the largest, .040 [.020, .060], is that of `b` between A and B."
        )

    def test_one_beyond_chance_and_all_are_told(self) -> None:
        first, second = about_gaps([method("a", self.small), method("b", self.wide, 0.03)], "dr")
        assert first.endswith("groups dealt out at random would show as much.")
        assert "more than chance would show, though not clearly to the disadvantage" in second

    def test_methods_without_a_gap_are_not_claimed(self) -> None:
        methods = [method("a", self.small), method("b", self.wide), method("c", self.none)]
        (said,) = about_gaps(methods, "dr")
        assert "every method that has one here" in said
        assert about_gaps([method("c", self.none)] * 2, "dr") == ["", ""]

    def test_unknown_chance_is_no_finding(self) -> None:
        for said in about_gaps([method("a", self.small, nan), method("b", self.wide, nan)], "dr"):
            assert said.endswith("what chance would show is not known.")


class TestCalibration:
    close = Estimate(0.02, 0.01, 0.04)

    def said(self, *errors: Estimate) -> str:
        gap = Estimate(nan, reason="no groups")
        return about_calibration(
            [method(name, gap, error=error) for name, error in zip("abc", errors, strict=False)],
            "dr",
        )

    def test_intervals_that_lie_apart(self) -> None:
        assert self.said(Estimate(0.10, 0.08, 0.12), self.close, Estimate(0.06, 0.03, 0.1)) == (
            "The risks predicted by `a` (.100 [.080, .120]) are further off than those of `b` "
            "(.020 [.010, .040]; mean absolute calibration error)."
        )

    def test_intervals_that_touch_say_nothing(self) -> None:
        assert self.said(replace(self.close, value=0.05, low=0.04, high=0.07), self.close) == ""
        assert self.said(Estimate(nan, reason="nobody"), self.close) == ""


class TestPlantedWithoutAUC:
    """A planted table in which everybody has the same outcome has no AUC."""

    def test_the_other_repetitions_decide(self) -> None:
        scores = {"a": np.array([0.70, 0.71, 0.72, nan]), "b": np.array([0.80, 0.81, 0.82, nan])}
        assert leading(scores, 0.95) == ("b", ["a"], [])
        said = advise([FAMILY], {"linear": scores}, {"linear": 0.9}, 0.95)
        assert said[0].startswith("Linear: `b` has the highest AUC, .810 of the .900 possible")

    def test_none_left_is_said(self) -> None:
        none = {name: np.array([0.7, nan, nan]) for name in "ab"}
        families = {"linear": none, "dependent": none}
        said = " ".join(advise([FAMILY, DEPENDENT], families, dict.fromkeys(families, nan), 0.95))
        assert "Linear: the planted tables held too few of one outcome" in said
        assert "nothing can be said of any method" in said
        assert "nan" not in said
        assert "best" not in said
        assert "no clear loss" not in said
