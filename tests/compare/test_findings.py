"""Findings of a comparison are no stronger than the intervals behind them."""

from dataclasses import replace
from math import nan
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made_up import GROUPS, made_up_comparison

from dcem.compare.caveats import about_estimates, warn
from dcem.compare.findings import (
    AMONG,
    about_best,
    about_calibration,
    about_gain,
    about_group_risks,
    about_groups,
    about_testing,
    conclusions,
    recommended,
)
from dcem.compare.recovery import about_recovery
from dcem.compare.results import ComparedGroup, PlantedFamily, Standing
from dcem.estimation.results import COUNTED, WITHIN
from dcem.methods.choosing import PREFERRED
from dcem.metrics.estimate import Estimate
from dcem.report.compare_opening import opening

KEPT = PlantedFamily("kept", "One sentence.", "")
BROKEN = PlantedFamily("broken", "One sentence.", "something fails")
NONE = Estimate(nan, reason="one group has no positives")


def judged(
    gap: Estimate = NONE,
    against: dict[str, Estimate] | None = None,
    p_values: dict[tuple[str, str], float] | None = None,
    error: Estimate = NONE,
    gain: Estimate | None = None,
    by_chance: float = 0.0,
) -> Any:
    """As much of a `Judgement` as the findings look at."""
    return SimpleNamespace(
        auc=Estimate(0.7, 0.65, 0.75),
        auc_gain=gain,
        auc_against=against or {},
        group_auc={"A": Estimate(0.7, 0.65, 0.75), "C": Estimate(0.7, 0.6, 0.8), "D": NONE},
        roc_gap=gap,
        gap_by_chance=by_chance,
        gap_pair=("A", "C") if gap.estimable else None,
        gap_p_values=p_values or {},
        calibration_error=error,
    )


def test_what_is_said_of_the_recommended_method_comes_first() -> None:
    comparison = made_up_comparison()
    taken = recommended(comparison)
    assert taken is comparison.methods[-1]
    said: dict[str, list[str]] = {}
    for finding in conclusions(comparison):
        said.setdefault(finding.about, []).append(finding.values.get("method", taken.name))
    assert {about: of[0] for about, of in said.items()} == dict.fromkeys(said, taken.name)
    assert len(set(said["groups"])) == len(comparison.methods)
    different = replace(comparison.methods[0].judgements["ipw"], auc=Estimate(0.2, 0.1, 0.3))
    odd = tuple(
        replace(one, judgements={**one.judgements, "ipw": different}) for one in comparison.methods
    )
    warned = [
        f for f in warn(replace(comparison, methods=odd), {}) if f.key == "estimates-disagree"
    ]
    assert [f.values["method"] for f in warned][:2] == ["sar-em", "y-obs"]


def test_every_target_that_orders_methods_is_put_into_words() -> None:
    assert set(AMONG) == {*PREFERRED} - {"found"}  # which has findings of its own


class TestGroups:
    small, wide = Estimate(0.02, 0, 0.04), Estimate(0.2, 0, 0.3)

    def keys(self, *methods: Any, floor: float = 0.005) -> list[str]:
        named = dict(zip("abc", methods, strict=False))
        return [finding.key for finding in about_groups(named, "A", floor)]

    def test_chance_for_all_is_said_once(self) -> None:
        assert self.keys(judged(self.small), judged(self.wide)) == ["groups-alike"]

    def test_a_group_that_was_never_compared_is_named(self) -> None:
        (found,) = about_groups({"a": judged(self.small)}, "A", 0.005)
        assert found.values["not_compared"] == ["D"]
        assert "D could not be compared" in found.headline

    def test_methods_without_a_gap_are_not_claimed(self) -> None:
        assert self.keys(judged(NONE), judged(NONE)) == []

    def test_nothing_is_serious_beside_a_gap_that_chance_shows(self) -> None:
        worse = {"C": Estimate(-0.06, -0.1, -0.02)}
        gap = Estimate(0.04, 0.0, 0.1)
        for by_chance, severity in ((0.02, "serious"), (0.05, "caution")):
            one = judged(gap, worse, by_chance=by_chance)
            (found,) = about_groups({"dcem": one}, "A", 0.01)
            assert (found.key, found.severity) == ("groups-differ", severity)

    def test_a_clear_group_is_never_within_chance(self) -> None:
        """The widest gap is that of a small group and within chance; a large group is lower."""
        hidden = judged(
            self.wide,
            {"B": Estimate(-0.067, -0.114, -0.021), "C": Estimate(-0.15, -0.4, 0.1)},
            {("A", "C"): 0.6, ("A", "B"): 0.02},
        )
        found = about_groups({"a": hidden, "b": judged(self.small)}, "A", 0.005)
        assert [finding.key for finding in found] == ["groups-differ", "groups-alike"]
        assert found[0].severity == "serious"
        assert set(found[0].values["auc_against"]) == {"B"}

    def test_curves_that_cross_differ_without_a_loser(self) -> None:
        assert self.keys(judged(self.small, {}, {("A", "C"): 0.01})) == ["curves-differ"]

    def test_a_difference_below_the_floor_is_none(self) -> None:
        tiny = judged(self.small, {"B": Estimate(-0.0004, -0.0007, -0.0001)})
        assert self.keys(tiny) == ["groups-alike"]
        assert self.keys(tiny, floor=0.0) == ["groups-differ"]


class TestRanking:
    def key(self, *gain: float) -> str:
        return about_gain("a", judged(gain=Estimate(*gain)), "tested-only", 0.005).key

    def test_gains(self) -> None:
        assert self.key(0.02, 0.01, 0.03) == "gain"
        assert self.key(-0.02, -0.03, -0.01) == "loss"
        assert self.key(0.02, -0.01, 0.05) == "gain-unclear"
        assert self.key(0.004, 0.003, 0.005) == "gain-small"
        assert self.key(nan) == "gain-unknown"

    def test_best(self) -> None:
        ahead = {"b": Estimate(0.1, 0.05, 0.15), "c": Estimate(0.01, -0.02, 0.04)}
        found = about_best({"a": judged()}, Standing("a", ahead, ("c",)), "dr", 0.005)
        assert (found.key, found.severity) == ("best", "caution")
        assert found.values["level_with"] == ["c"]
        assert found.headline.index("`b`") < found.headline.index("`c`")

    @pytest.mark.parametrize(
        ("single", "said"),
        [
            ((), "at once and include chance in training."),
            (("a",), "at once and include chance in training, except that of `a`."),
            (("a", "b"), "at once, but do not include chance in training."),
        ],
    )
    def test_chance_in_training_is_included_where_fits_are_repeated(self, single, said) -> None:
        ahead = {"b": Estimate(0.1, 0.05, 0.15)}
        both = {"a": judged(), "b": judged()}
        found = about_best(both, Standing("a", ahead, ()), "dr", 0.005, single=single)
        assert said in found.text

    def test_who_ranks_the_tested_best_is_not_taken_for_everybody(self) -> None:
        made = made_up_comparison(estimable=False)
        names = ["ensemble", *(method.name for method in made.methods[1:])]
        methods = tuple(
            replace(one, name=name) for one, name in zip(made.methods, names, strict=True)
        )
        ahead = {name: Estimate(0.1, 0.05, 0.15) for name in names if name != names[1]}
        standings = {"tested": Standing(names[1], ahead, ())}
        comparison = replace(made, methods=methods, standings=standings)
        assert recommended(comparison).name == "ensemble"
        (choice,) = (one for one in conclusions(comparison) if one.key == "choice")
        assert "among the tested alone" in choice.headline
        verdict = opening(comparison).verdict
        assert verdict.answer == (
            f"Use `ensemble`, the default: `{names[1]}` ranks the tested best; nothing is known of "
            "everybody else"
        )
        assert not any("lead" in one or "clearly better" in one for one in verdict.sentences)

    def test_where_some_are_out_of_reach_nothing_is_said_of_everybody(self) -> None:
        found = about_best({"a": judged()}, Standing("a", {}, ()), "dr", 0.005, WITHIN)
        assert found.headline.startswith("Among those within reach of the tests (doubly robust), ")
        one = SimpleNamespace(auc=Estimate(0.7, 0.6, 0.8))
        method: Any = SimpleNamespace(name="heckman", judgements={"ipw": one, "dr": one})
        for known in ("", "prevalence of 10 %"):
            (other,) = about_estimates(method, known, WITHIN)
            assert other.key == "other-assumption"
            assert WITHIN in other.headline


class TestLost:
    """The made-up comparison drew 10,100 of 101,766 rows."""

    def keys(self, lost: dict[str, set[str]], enough: tuple[str, ...] = ()) -> dict[str, set[str]]:
        made = made_up_comparison()
        first, *others = made.methods
        judgements = {
            key: replace(
                one,
                group_auc={
                    name: NONE if name in lost.get(key, ()) else auc
                    for name, auc in one.group_auc.items()
                },
            )
            for key, one in first.judgements.items()
        }
        methods = (replace(first, judgements=judgements), *others)
        found = warn(replace(made, methods=methods), {}, enough)
        return {one.key: set(one.groups) for one in found if one.about == "groups"}

    def test_whether_the_table_or_the_draw_has_too_few(self) -> None:
        a, b, *_ = GROUPS
        both = {key: {a, b} for key in ("tested", "ipw", "dr")}
        assert self.keys(both) == {"small-groups": {a, b}}
        assert self.keys(both, (b,)) == {"small-groups": {a}, "small-draw": {b}}

    def test_a_group_without_overlap_is_named(self) -> None:
        a, b, *_ = GROUPS
        assert self.keys({"tested": {a}, "ipw": {a, b}, "dr": {a, b}}) == {
            "small-groups": {a},
            "groups-beyond": {b},
        }

    def test_on_how_many_rows_reach_was_judged(self) -> None:
        made = made_up_comparison()
        (found,) = (one for one in warn(made, {}) if one.key == "reach")
        assert found.values["rows"] == 10_100
        whole = replace(made, rows=10_100, overlap=replace(made.overlap, reach=1.0))
        assert not {one.key for one in warn(whole, {})} & {"reach", "row-budget"}
        some = replace(whole, overlap=replace(made.overlap, reach=0.9))
        (found,) = (one for one in warn(some, {}) if one.key == "reach")
        assert found.values["reach"] == 0.9
        assert COUNTED in found.text  # as in an audit


class TestCalibration:
    close = Estimate(0.02, 0.01, 0.04)

    def said(self, *errors: Estimate) -> Any:
        named = zip("abc", errors, strict=False)
        return about_calibration({name: judged(error=error) for name, error in named})

    def test_intervals_that_lie_apart(self) -> None:
        (found,) = self.said(Estimate(0.10, 0.08, 0.12), self.close, Estimate(0.06, 0.03, 0.1))
        assert found.key == "calibration"
        assert "`a` (.100 [.080, .120])" in found.headline
        assert "`c`" not in found.headline

    def test_scores_that_do_not_rank_are_not_to_be_recalibrated(self) -> None:
        far, areas = Estimate(0.10, 0.08, 0.12), [(0.395, 0.35, 0.442), (0.52, 0.48, 0.56)]
        methods = {name: judged(error=far) for name in "abc"} | {"d": judged(error=self.close)}
        for name, area in zip("ab", areas, strict=True):
            methods[name].auc = Estimate(*area)
        found = {finding.key: finding for finding in about_calibration(methods)}
        assert {key: one.values["methods"] for key, one in found.items()} == {
            "calibration": ["c"],
            "neither-risk-nor-rank": ["a", "b"],
        }
        assert "recalibrate" not in found["neither-risk-nor-rank"].remedy

    def test_intervals_that_touch_say_nothing(self) -> None:
        assert self.said(replace(self.close, value=0.05, low=0.04, high=0.07), self.close) == []
        assert self.said(NONE, self.close) == []


class TestPlanted:
    def test_a_lead_is_claimed_only_where_it_is_clear(self) -> None:
        scores = {
            "a": np.array([0.80, 0.81, 0.82, 0.83]),
            "b": np.array([0.70, 0.71, 0.72, 0.73]),  # always .1 below
            "c": np.array([0.60, 0.95, 0.65, 0.90]),  # far below or far above
        }
        first = about_recovery([KEPT], {"kept": scores}, {"kept": 0.9}, 0.95, "kept")[0]
        share = first.values.pop("share")
        assert share == pytest.approx((0.815 - 0.5) / (0.9 - 0.5))
        assert first.values == {"family": "kept", "best": "a", "beaten": ["b"], "level_with": ["c"]}

    @pytest.mark.parametrize(("area", "faint"), [(0.52, True), (0.65, False)])
    def test_the_best_of_those_that_recover_nothing_is_not_praised(self, area, faint) -> None:
        scores = {name: np.array([area - 0.01, area, area + 0.01]) for name in "ab"}
        first = about_recovery([KEPT], {"kept": scores}, {"kept": 0.8}, 0.95, "kept")[0]
        assert ("hardly better than chance" in first.headline) == faint

    def test_equal_methods_are_seldom_told_apart(self) -> None:
        """Seven families, five equal methods: some claim in under 5 % of tables."""
        rng = np.random.default_rng(0)
        families = [PlantedFamily(f"f{i}", "", "") for i in range(7)]
        claims = 0
        for _ in range(100):
            recovered = {
                family.name: {m: rng.normal(0.75, 0.02, 4) for m in "abcde"} for family in families
            }
            found = about_recovery(families, recovered, dict.fromkeys(recovered, 0.8), 0.95, "f0")
            claims += any(f.values["beaten"] for f in found if f.key == "planted")
        assert claims <= 8

    def test_a_broken_assumption_that_costs_is_said(self) -> None:
        rng = np.random.default_rng(0)
        kept = {m: rng.normal(0.8, 0.005, 4) for m in "ab"}
        broken = {"a": kept["a"] - rng.normal(0.1, 0.002, 4), "b": kept["b"] + 0.001}
        recovered = {"kept": kept, "broken": broken}
        found = about_recovery(
            [KEPT, BROKEN], recovered, dict.fromkeys(recovered, 0.9), 0.95, "kept"
        )
        assert [f.values["lose"] for f in found if f.key == "planted-harm"] == [["a"]]

    def test_repetitions_without_an_auc_are_left_out(self) -> None:
        scores = {"a": np.array([0.70, 0.71, 0.72, nan]), "b": np.array([0.80, 0.81, 0.82, nan])}
        found = about_recovery([KEPT], {"kept": scores}, {"kept": 0.9}, 0.95, "kept")[0]
        assert (found.values["best"], found.values["beaten"]) == ("b", ["a"])

    def test_none_left_is_said(self) -> None:
        none = {name: np.array([0.7, nan, nan]) for name in "ab"}
        families = {"kept": none, "broken": none}
        found = about_recovery([KEPT, BROKEN], families, dict.fromkeys(families, nan), 0.95, "kept")
        assert [finding.key for finding in found] == [
            "planted-nothing", "planted-nothing", "planted-summary", "planted-limits",
        ]  # fmt: skip
        assert not any("nan" in finding.headline for finding in found)


def test_who_is_tested_least_is_told_where_another_count_of_theirs_is_withheld():
    """Positives withheld, since a small group's would follow, say nothing about shares tested."""
    counts = {"A": (293, 130, 42), "B": (214, 64, 20), "C": (133, 51, 24), "D": (90, 40, 4)}
    groups = [ComparedGroup(name, *three) for name, three in counts.items()]
    groups = [replace(g, few=frozenset({"positive"} if g.name == "D" else ())) for g in groups]
    (told,) = about_testing(groups)
    assert told.headline == "In group B, 29.9 % were tested; in group D, 44.4 %."


def test_a_group_whose_risks_are_clearly_off_is_told():
    """Beyond chance for all groups at once, and by two percentage points at least."""
    errors = {
        "everybody": Estimate(0.03, 0.02, 0.04),
        "women": Estimate(0.04, 0.02, 0.06),
        "men": Estimate(-0.015, -0.02, -0.01),  # too little to matter
        "others": Estimate(0.05, 0.001, 0.099),  # by itself, not among three
        "few": Estimate(nan, reason="too few"),
    }
    judged: Any = SimpleNamespace(calibration_in_the_large=errors)
    (told,) = about_group_risks("ensemble", judged)
    assert told.groups == ("women",)
    assert told.headline.startswith("Read as risks, the scores of `ensemble` are")
    assert "on average too high for women (+4.0 points [+2.0, +6.0])" in told.headline
    judged.calibration_in_the_large = {"everybody": errors["everybody"]}
    assert not about_group_risks("ensemble", judged)


def test_that_everybody_counts_as_tested_is_said_as_an_audit_says_it():
    comparison = made_up_comparison()
    assert "everybody-tested" not in {one.key for one in warn(comparison, {})}
    groups = tuple(replace(one, tested=one.people) for one in comparison.groups)
    everybody = replace(comparison, groups=groups)
    told = [one for one in warn(everybody, {}) if one.key == "everybody-tested"]
    assert [one.severity for one in told] == ["caution"]
    shown = opening(replace(everybody, warnings=tuple(told))).verdict
    assert any("Everybody counts as tested" in sentence for sentence in shown.sentences)
    assert not any("counts as tested" in said for said in opening(comparison).verdict.sentences)
