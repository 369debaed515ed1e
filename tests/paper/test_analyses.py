"""Paired differences, ranks, seeds, the summary and the claims: numbers that can be worked out."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dcem.benchmark.toml_file import load_benchmark
from dcem.paper import EXHIBITS
from dcem.paper.exhibits import claim_checks, claims, robustness, summary, tradeoff
from dcem.paper.sources import Recorded, Runs, narrowed
from dcem.paper.spread import Spread, complete_only, other_parameters, our_rows

PHASES = np.arange(0, 360, 30.0)


def rows(values: dict[str, np.ndarray], **more: object) -> pd.DataFrame:
    """One row a phase and method; the gap is a tenth of the AUC."""
    parts = [
        pd.DataFrame({"method": name, "phase": PHASES, "auc": auc, "roc_gap": auc / 10})
        for name, auc in values.items()
    ]
    return pd.concat(parts, ignore_index=True).assign(q_y=0.5, k=1.0, q_t=2.0, **more)


def test_paired_differences_are_paired():
    hard = np.linspace(0.5, 0.8, 12)  # boundaries differ much, methods by a constant
    table = robustness.paired_differences(rows({"dcem": hard, "y-obs": hard - 0.03}))
    auc = table.set_index("metric").loc["auc"]
    assert auc["difference"] == pytest.approx(-0.03)
    assert auc["low"] == pytest.approx(-0.03)  # no spread is left
    assert auc["says"] == "worse than DCEM"
    assert table.set_index("metric").loc["roc_gap", "says"] == "better than DCEM"


def test_an_interval_that_holds_zero_is_unclear_and_covers_as_it_should():
    rng = np.random.default_rng(1)
    covered = []
    for seed in range(60):
        noise = rng.normal(0.0, 0.02, 12)
        frame = rows({"dcem": np.full(12, 0.7), "y-obs": 0.71 + noise})
        one = robustness.paired_differences(frame, n_resamples=400, random_state=seed)
        auc = one.set_index("metric").loc["auc"]
        covered.append(auc["low"] <= 0.01 <= auc["high"])
        assert (auc["says"] == "unclear") == (auc["low"] <= 0 <= auc["high"])
    assert 0.8 <= np.mean(covered) <= 1  # 95 % nominal; a percentile bootstrap of 12 is short


def test_settings_share_their_boundaries_when_pooled():
    """The same difference at every setting is no further evidence: the interval stays as wide."""
    noise = np.random.default_rng(0).normal(0.01, 0.02, 12)
    one = rows({"dcem": np.full(12, 0.7), "y-obs": 0.7 + noise})
    many = pd.concat([one.assign(k=k) for k in (1.0, 2.0, 3.0)])
    alone = robustness.paired_differences(one).query("metric == 'auc'").iloc[0]
    pooled = robustness.paired_differences(many).query("metric == 'auc' and k == 'all'").iloc[0]
    assert pooled["high"] - pooled["low"] == pytest.approx(alone["high"] - alone["low"], rel=0.1)


def test_methods_with_equal_fits_get_equal_intervals():
    rng = np.random.default_rng(0)
    other = 0.7 + rng.normal(0, 0.02, 12)
    values = {"dcem": np.full(12, 0.7), "y-obs": other, "self": other - 0.1, "peer-loss": other}
    many = pd.concat([rows(values).assign(k=k) for k in (1.0, 2.0)])
    table = robustness.paired_differences(many).drop(columns="method").set_index("metric")
    names = robustness.paired_differences(many)["method"].to_numpy()
    pd.testing.assert_frame_equal(table[names == "y-obs"], table[names == "peer-loss"])


def test_ranks_leave_the_oracle_out():
    base = np.full(12, 0.7)
    frame = rows({"y-model": base + 0.2, "dcem": base, "y-obs": base - 0.1, "self": base + 0.05})
    table = robustness.ranks(frame).query("statistic == 'median'").set_index(["metric", "method"])
    assert "y-model" not in table.index.get_level_values("method")
    assert table.loc[("auc", "self"), "mean_rank"] == 1
    assert table.loc[("roc_gap", "y-obs"), "mean_rank"] == 1
    assert table.loc[("auc", "y-obs"), "times_first"] == 0


def test_seeds_give_a_t_interval_of_medians():
    rng = np.random.default_rng(0)
    draws = [rng.normal(0.8, 0.01, 12) for _ in range(5)]
    parts = [
        rows({"dcem": one, "y-obs": one - 0.1}, seed=seed, stream="independent")
        for seed, one in enumerate(draws)
    ]
    frame = pd.concat(parts)
    table = robustness.over_seeds(robustness.independent(frame)).set_index(["method", "metric"])
    medians = [np.median(d) for d in draws]
    low, high = stats.t.interval(0.95, 4, np.mean(medians), stats.sem(medians))
    one = table.loc[("dcem", "auc")]
    assert (one["median_low"], one["median_high"]) == pytest.approx((low, high))
    paired = table.loc[("y-obs", "auc")]
    assert paired["minus_dcem"] == pytest.approx(-0.1)
    assert paired["minus_dcem_high"] == pytest.approx(-0.1)  # draws share their luck
    assert one["seeds"] == 5


@pytest.mark.parametrize(
    ("metric", "q_y", "k", "q_t", "words"),
    [
        ("auc", 0.5, 1, 2, ("best",)),
        ("auc", 0.5, 0.5, 2, ("best", "similar")),
        ("roc_gap", 0.5, 1 / 3, 0.5, ("similar", "worse")),
        ("auc", 0.5, 1 / 3, 0.5, ("similar",)),
        ("auc", 0.5, 0.25, 2, ("worse",)),
        ("auc", 0.5, 1, 0.5, ()),
        ("auc", 1.0, 1, 2, ()),  # equal prevalence: nothing is said
    ],
)
def test_what_the_summary_says(metric, q_y, k, q_t, words):
    assert summary.says(metric, q_y, k, q_t) == words


def test_best_similar_and_worse_have_a_margin_and_ignore_the_oracle():
    def verdict(auc: float) -> str:
        spreads = {
            ("y-model", "auc"): Spread.of([0.99]),
            ("dcem", "auc"): Spread.of([auc]),
            ("self", "auc"): Spread.of([0.70]),
            ("y-obs", "auc"): Spread.of([0.60]),
        }
        found = summary.versus_best(spreads, "auc", "median")
        assert found is not None
        assert found["best_baseline"] == "self"
        return str(found["verdict"])

    assert [verdict(a) for a in (0.72, 0.705, 0.695, 0.68)] == [
        "best",
        "similar",
        "similar",
        "worse",
    ]
    assert summary.versus_best({("dcem", "auc"): Spread.of([0.7])}, "auc", "median") is None


def test_a_claim_answers_only_where_there_are_numbers():
    test = claim_checks.first("auc", "worst")
    assert test(claim_checks.Evidence()) == claim_checks.NO_ANSWER
    spreads = {
        ("y-model", "auc"): Spread.of([0.9, 0.9]),
        ("dcem", "auc"): Spread.of([0.7, 0.8]),
        ("self", "auc"): Spread.of([0.6, 0.95]),
    }
    text, holds = test(claim_checks.Evidence(simulation=spreads))
    assert (text, holds) == ("DCEM .700, SELF .600", True)
    median = claim_checks.first("auc", "median")
    assert median(claim_checks.Evidence(simulation=spreads))[1] is False
    tightest = claim_checks.first("auc", "range")(claim_checks.Evidence(simulation=spreads))
    assert tightest == ("DCEM .100, SELF .350", True)


def spreads(**medians: tuple[float, float]) -> dict:
    """AUC and gap of methods, each a single number."""
    return {
        (name.replace("_", "-"), metric): Spread.of([value])
        for name, pair in medians.items()
        for metric, value in zip(("auc", "roc_gap"), pair, strict=True)
    }


def test_a_sentence_about_settings_is_put_to_all_of_them():
    """The paper's own points at k 1, q_t 1/2 have a larger gap for DCEM than for y-obs."""
    test = claim_checks.everywhere("roc_gap", lambda at: at[2] < 1, rival="y-obs")
    good, bad = (spreads(dcem=(0.8, gap), y_obs=(0.7, 0.036)) for gap in (0.03, 0.044))
    elsewhere = {(0.5, 1.0, 2.0): bad}  # not what the sentence is about
    held = claim_checks.Evidence(settings={(0.5, 1.0, 0.5): good} | elsewhere)
    assert test(held) == ("at 1 of 1 settings", True)
    broken = claim_checks.Evidence(settings={(0.5, 1.0, 0.5): bad, (0.5, 0.3333, 0.5): good})
    text = "at 1 of 2 settings, not at k 1, q_t 1/2: DCEM .044, y-obs .036"
    assert test(broken) == (text, False)
    assert test(claim_checks.Evidence(settings=elsewhere)) == claim_checks.NO_ANSWER
    paper = claims.published_evidence()
    assert test(paper) == ("at 0 of 1 settings, not at k 1, q_t 1/2: DCEM .044, y-obs .036", False)


def test_a_similar_trend_is_not_broken_by_a_hair():
    test = claim_checks.everywhere("auc", lambda at: True, at_most=2, margin=0.01)
    others = {"tested_only": (0.9, 0.1), "self": (0.8, 0.1)}
    for auc, holds in ((0.795, True), (0.78, False)):
        here = {(0.5, 1.0, 2.0): spreads(dcem=(auc, 0.1), **others)}
        assert test(claim_checks.Evidence(settings=here))[1] is holds


def test_temperatures_tend_to_by_majority():
    def holds(gaps: list[float]) -> bool | None:
        names = ("0.01", "0.1", "1", "10", "100")
        table = {(name, "roc_gap"): Spread.of([gap]) for name, gap in zip(names, gaps, strict=True)}
        return claim_checks.temperature_gap(claim_checks.Evidence(tables={"temperature": table}))[1]

    assert holds([0.051, 0.025, 0.031, 0.051, 0.071]) is True  # the paper's: three of four
    assert holds([0.030, 0.025, 0.031, 0.051, 0.071]) is False
    claim = next(one for one in claims.CLAIMS if one.test is claim_checks.temperature_gap)
    assert "tend to" in claim.printed


@pytest.mark.parametrize(("auc", "holds"), [(0.694, False), (0.80, True)])
def test_similar_aucs_at_larger_gaps(auc, holds):
    def window(low: float, **means: float) -> list[dict]:
        where = {"low": low, "high": low + 0.02, "n": 100}
        return [where | {"method": name, "mean_auc": mean} for name, mean in means.items()]

    frame = pd.DataFrame(window(0.02, dcem=0.9, self=0.5) + window(0.04, dcem=0.825, self=auc))
    text, found = claim_checks.similar_windows("self", 0.04)(claim_checks.Evidence(by_gap=frame))
    assert (text, found) == (f"DCEM / SELF: .825 / {auc:.3f}".replace("0.", "."), holds)


def test_ranges_against_overlap():
    def evidence(dcem: list[float], ipw: list[float]) -> claim_checks.Evidence:
        parts = [
            {"method": name, "metric": metric, "slope_factor": factor}
            | {"ours_min": 0.5, "ours_max": 0.5 + wide, "ours_median": 0.5}
            for name, ranges in (("dcem", dcem), ("ipw", ipw))
            for metric in ("auc", "roc_gap")
            for factor, wide in zip((4, 1, 0.25), ranges, strict=True)
        ]
        return claim_checks.Evidence(overlap=pd.DataFrame(parts))

    ours = evidence([0.128, 0.05, 0.024], [0.2, 0.1, 0.02])  # from the steepest slope down
    text, tight = claim_checks.tight_ranges(ours)
    assert (text, tight) == ("range: AUC .024, .050, .128; ROC gap .024, .050, .128", False)
    assert claim_checks.causal_ranges_widen(ours) == ("AUC range: IPW .020 to .200", True)
    other = evidence([0.06, 0.05, 0.04], [0.02, 0.1, 0.2])
    assert claim_checks.tight_ranges(other)[1] is True
    assert claim_checks.causal_ranges_widen(other)[1] is False


def test_causal_estimators_like_tested_only():
    """The paper's DR-learner is .165 below what its text calls similar."""
    text, holds = claim_checks.like_tested_only(claims.published_evidence())
    assert holds is False
    assert "DR-learner .643" in text
    near = {"causal-estimators": spreads(tested_only=(0.8, 0.1), ipw=(0.75, 0.1), dcem=(0.2, 0.1))}
    assert claim_checks.like_tested_only(claim_checks.Evidence(tables=near))[1] is True


def test_the_grid_is_judged_without_k_4():
    values = {"dcem": np.full(12, 0.8), "y-obs": np.full(12, 0.7)}
    frame = pd.concat(
        [rows(values, seed=0, stream="independent").assign(k=k) for k in (0.1, 3.0, 4.0)]
    )
    assert [k for _, k, _ in summary.grid_settings(frame)] == [0.1, 3.0]


def test_of_a_cell_fitted_twice_the_published_training_counts():
    full = rows({"dcem": np.full(12, 0.8)}, params=np.nan)
    short = rows({"dcem": np.full(12, 0.6), "self": np.full(12, 0.5)}, params='{"steps": 200}')
    found = our_rows(pd.concat([short, full]))
    assert set(found.query("method == 'dcem'")["auc"]) == {0.8}
    assert other_parameters(found) == {"self": '{"steps": 200}'}
    assert other_parameters(our_rows(full)) == {}


def test_windows_pool_one_seed_of_independent_draws_at_the_papers_k():
    frame = pd.concat(
        [
            rows({"dcem": np.full(12, 0.85)}, seed=seed, stream=stream).assign(k=k)
            for seed in (0, 1)
            for stream in ("independent", "published")
            for k in (0.1, 1.0, 4.0)
        ]
    )
    assert len(tradeoff.pooled_fits(frame)) == 12
    assert len(tradeoff.pooled_fits(frame, every_k=True)) == 36
    table = tradeoff.windows(
        tradeoff.pooled_fits(frame), "auc", "roc_gap", (0.825, 0.875), ["dcem"]
    )
    assert table["n"].item() == 12
    assert table["published_mean"].item() == 0.028


NEEDS = {
    (need.preset, tuple(need.where.items()), need.methods): need
    for exhibit in EXHIBITS
    for need in exhibit.needs
    if need.preset and not need.optional
}


@pytest.mark.parametrize(
    "need", NEEDS.values(), ids=lambda need: f"{need.preset} {dict(need.where)}"
)
def test_every_need_can_be_run(need):
    """The preset has the setting, all 12 boundaries (11 policies) of it, and the methods."""
    benchmark = narrowed(load_benchmark(need.preset), need)
    over, expected = ("beta", 11) if need.sepsis else ("phase", 12)
    assert len({task[over] for task in benchmark.tasks}) == expected
    if need.where:
        assert len(benchmark.tasks) == expected
    assert {m.name for m in benchmark.methods} >= set(need.methods)


def test_calibration_is_computed_once_and_then_read(recorded, tmp_path):
    from dcem.paper import find, reproduce

    (tmp_path / "calibration.csv").write_bytes((recorded / "calibration.csv").read_bytes())
    (one,) = reproduce(find(["calibration"]), Runs(tmp_path), tmp_path)
    assert one.origins == ("calibration.csv",)
    written = pd.read_csv(tmp_path / "figure8-calibration.csv")
    assert len(written) == len(Recorded(recorded).table("calibration"))


def test_like_is_compared_with_like_while_a_run_is_under_way():
    """A method with a few boundaries of a setting has no median there; pools use common data."""
    base = np.full(12, 0.7)
    frame = rows({"dcem": base, "y-obs": base - 0.1, "self": base + 0.2})
    partial = frame[(frame["method"] != "self") | (frame["phase"] < 90)]
    assert set(complete_only(partial)["method"]) == {"dcem", "y-obs"}
    judged = summary.versus_best(summary.settings_of(partial)[0.5, 1.0, 2.0], "auc", "median")
    assert judged is not None
    assert judged["verdict"] == "best"
    common = tradeoff.in_common(partial, ("self", "dcem"))
    assert len(common) == 6  # three boundaries of each
    other = pd.concat([frame, rows({"dcem": base, "y-obs": base}).assign(k=2.0)])
    assert set(robustness.ranks(other)["method"]) == {"dcem", "y-obs"}
    paired = robustness.paired_differences(other).set_index(["method", "metric", "k"])
    assert ("self", "auc", "all") not in paired.index  # recorded at one setting only
    assert paired.loc[("y-obs", "auc", "all"), "n"] == 2


def test_a_place_is_told_in_baselines_that_are_worse():
    """ "Below five of eight": the paper's own points at sepsis say so in the same words."""
    claim = next(one for one in claims.CLAIMS if "five of eight" in one.sentence)
    text, holds = claim.test(claims.published_evidence())
    assert text.endswith("(DCEM is better than 5 of 8)")
    assert holds is True


def test_the_rule_of_a_claim_is_the_one_that_is_applied():
    rules = {claim.sentence: claim.test.rule for claim in claims.CLAIMS}
    assert all(rules.values())
    assert rules["the start changes medians trivially"] == "both within .01"
    assert rules["lowest median gap of the causal estimators"] == "no other better (no margin)"
    assert (
        claim_checks.first("auc", "median", at_most=4).rule == "at most 3 others better (no margin)"
    )
    assert claim_checks.ahead("self", 0.05).rule == "by more than .05"
    for apart, holds in ((0.0099, True), (0.0101, False)):
        start = {
            (row, metric): Spread.of([value])
            for metric in ("auc", "roc_gap")
            for row, value in (("random", 0.5), ("tested-only", 0.5 + apart))
        }
        evidence = claim_checks.Evidence(tables={"initialization": start})
        assert claim_checks.same_start(evidence)[1] is holds
