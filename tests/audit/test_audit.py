"""The whole audit on tables whose truth is known."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from choices import linear
from scipy.special import expit

from dcem.audit import audit_labels, without_small_cells
from dcem.audit.disclosure import BY_CHANCE
from dcem.estimation.results import EVERYBODY
from dcem.metrics.plain import to_plain
from dcem.report.audit_opening import key_numbers, verdict
from dcem.report.document import Number
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning, InputError
from dcem.tasks import make_sinusoid
from dcem.text import percent

from .conftest import make_world


def serious(found) -> list[str]:
    return [f.key for f in found.findings if f.severity == "serious"]


def about(found, word: str) -> list:
    return [f for f in found.findings if f.about == word]


def test_no_disparity_no_serious_finding(fair_audit) -> None:
    """Group b is tested more often, because its feature is higher; at equal features it is not."""
    assert not serious(fair_audit)
    crude = {rate.group: rate.crude for rate in fair_audit.testing}
    assert crude["b"].low > crude["a"].high
    for rate in fair_audit.testing:
        assert rate.difference.low < 0 < rate.difference.high
    assert about(fair_audit, "testing")[0].key == "tested-alike"


def test_planted_disparity_is_found_and_measured(unfair, unfair_audit) -> None:
    """The estimate is the truth: the mean difference under the overlap weights of the world."""
    rate = {r.group: r for r in unfair_audit.testing}["b"]
    x = unfair.problem.X[:, 0]
    # P(b | x) from Bayes: normal densities shifted by 0.7, shares .3 and .7.
    odds = 0.3 / 0.7 * np.exp(0.7 * x - 0.7**2 / 2)
    weight = odds / (1 + odds) ** 2
    gap = expit(-1.8 + 0.6 * x) - expit(-0.8 + 0.6 * x)
    truth = np.average(gap, weights=weight)
    assert rate.difference.low < truth < rate.difference.high
    assert rate.difference.high - rate.difference.low < 0.08
    assert "tested-less" in serious(unfair_audit)


def test_prevalence_of_everybody_and_each_group(unfair, unfair_audit) -> None:
    problem, truth = unfair.problem, unfair.truth
    parts = {EVERYBODY: np.ones(len(problem), bool)} | {
        name: problem.group == code for code, name in enumerate(problem.group_names)
    }
    for item in unfair_audit.prevalence:
        mine = parts[item.group]
        real = truth[mine].mean()
        assert item.doubly_robust.low < real < item.doubly_robust.high
        weighted = item.weighted  # its interval does not know that its model is fitted
        assert weighted.low - 0.01 < real < weighted.high + 0.01
        assert item.bounds[0] <= real <= item.bounds[1]
        assert item.recorded.high < real  # the untested are not all negative
    everybody = unfair_audit.prevalence[0]
    assert everybody.tested_only.low > truth.mean()  # the tested are sicker


def test_independence_holds_and_breaks() -> None:
    problem = make_world(5000, seed=5).problem
    independent = audit_labels(problem, learners=linear).independence
    assert independent.p_value > 0.05
    b = independent.odds_ratio["b"]
    assert b.low < 1 < b.high
    assert all(1 < v < 3 for v in independent.detectable.values())
    problem = make_world(5000, seed=5, group_effect=1.0).problem
    found = audit_labels(problem, learners=linear)
    assert found.independence.p_value < 1e-4
    b = found.independence.odds_ratio["b"]
    assert b.low < np.exp(1.0) < b.high
    assert "depends-on-group" in serious(found)
    dcem = next(m for m in found.methods if m.name == "dcem")
    assert dcem.verdict == "with care"


def test_published_simulation_reaches_few() -> None:
    """The sinusoid task tests by a steep rule: most people had no chance of it."""
    task = make_sinusoid(stream="independent", random_state=1, n_train=1500)
    found = audit_labels(task.train)
    assert about(found, "overlap")[0].severity == "serious"
    assert found.overlap[EVERYBODY].reach < 0.5
    assert not found.prevalence[0].doubly_robust.estimable
    assert "out of reach" in found.prevalence[0].doubly_robust.reason
    low, high = found.prevalence[0].bounds
    assert low < task.truth["train"].mean() < high
    assert next(m for m in found.methods if m.name == "ipw").verdict == "not here"


def test_a_hole_is_found_and_the_rest_is_estimated() -> None:
    """A fifth of the people is never tested: numbers for the others, limits for everybody."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 4))
    hole = (x[:, 0] > 0) & (x[:, 1] > -0.2533) & (x[:, 2] < 0.8)
    truth = rng.random(4000) < expit(-0.5 + x[:, 0])
    tested = ~hole & (rng.random(4000) < 0.4)
    found = audit_labels(SelectiveLabels.from_arrays(x, np.where(tested, truth, np.nan)))
    everybody = found.overlap[EVERYBODY]
    assert everybody.reach == pytest.approx(1 - hole.mean(), abs=0.06)
    assert about(found, "overlap")[0].severity == "serious"
    item = found.prevalence[0]
    assert not item.doubly_robust.estimable
    assert item.within.low < truth[~hole].mean() < item.within.high
    assert item.bounds[0] < item.limits[0] < truth.mean() < item.limits[1] < item.bounds[1]
    # one number, of those within reach, wherever it is told
    curve, alike = found.prevalence_sensitivity, list(found.prevalence_sensitivity.gamma).index(1)
    assert curve.curves[EVERYBODY].value[alike] == pytest.approx(item.within.value)
    assert any(one.cell == Number(item.within, "percent") for one in key_numbers(found))
    limits = f"between {percent(item.limits[0])} and {percent(item.limits[1])}"
    assert any(limits in sentence for sentence in verdict(found).sentences)
    # a shared audit has one share out of reach, in tens of people
    everybody = replace(everybody, reach=1 - 803 / 4000)
    reason = {
        name: replace(getattr(item, name), reason=everybody.beyond)
        for name in ("weighted", "doubly_robust", "hidden")
    }
    exact = replace(found, overlap={EVERYBODY: everybody}, prevalence=(replace(item, **reason),))
    shared = without_small_cells(exact)
    assert shared.overlap[EVERYBODY].reach == pytest.approx(1 - 810 / 4000)
    assert "20.1 %" in everybody.beyond
    for name in reason:
        assert "20.2 %" in getattr(shared.prevalence[0], name).reason
    unknown = next(f for f in shared.findings if f.key == "prevalence-unknown")
    assert "20.2 %" in unknown.text
    assert "20.1 %" not in unknown.text


def test_a_group_of_three_stays_and_says_why(unfair) -> None:
    problem = unfair.problem
    group = np.array(problem.group_names)[problem.group].astype("<U8")
    group[:3] = "three"
    found = audit_labels(
        SelectiveLabels.from_arrays(problem.X[:1200], problem.y_obs[:1200], group=group[:1200]),
        learners=linear,
    )
    rate = next(r for r in found.testing if r.group == "three")
    assert rate.difference.reason == "fewer than 30 people in the group"
    assert [f.groups for f in found.findings if f.key == "group-too-small"] == [("three",)]
    assert next(p for p in found.prevalence if p.group == "three").doubly_robust.reason


@pytest.mark.parametrize(
    ("name", "value"), [("precision", 0), ("precision", 3), ("least_difference", -1)]
)
def test_shares_that_cannot_be_meant_are_refused(fair, name, value) -> None:
    with pytest.raises(InputError, match=f"`{name}` must lie between 0 and 1"):
        audit_labels(fair.problem, **{name: value})
    with pytest.raises(InputError, match="`threshold` must lie between 0 and 1"):
        audit_labels(fair.problem, threshold=20, bounds=2)


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
@pytest.mark.parametrize("few_are", ["tested", "untested"])
def test_no_derived_number_tells_how_few_are_tested(few_are) -> None:
    rng = np.random.default_rng(0)
    few = np.arange(400) < 7
    tested = few if few_are == "tested" else ~few
    y = np.where(tested, rng.random(400) < 0.4, np.nan)
    problem = SelectiveLabels.from_arrays(rng.normal(size=(400, 1)), y)
    found = without_small_cells(audit_labels(problem, learners=linear, least_difference=0.2))
    assert found.least_difference == 0.2  # not a tenth of the rate
    assert found.calibration.auc_by_chance == BY_CHANCE
    assert found.calibration.auc == round(found.calibration.auc, 2)


def test_everybody_tested(fair) -> None:
    with pytest.warns(UserWarning, match="tested"):
        problem = SelectiveLabels.from_arrays(
            fair.problem.X[:800], fair.truth[:800], group=fair.problem.group[:800]
        )
    found = audit_labels(problem, learners=linear)
    assert about(found, "testing")[0].key == "everybody-tested"
    assert not serious(found)
    assert found.prevalence[0].doubly_robust.value == pytest.approx(fair.truth[:800].mean())
    assert next(m for m in found.methods if m.name == "tested-only").verdict == "with care"


def test_nobody_tested(fair) -> None:
    p = fair.problem
    nobody = SelectiveLabels(
        X=p.X[:500], y_obs=np.full(500, np.nan), tested=np.zeros(500, bool), group=p.group[:500],
        id=None, weight=None, feature_names=p.feature_names, group_names=p.group_names,
        row=p.row[:500],
    )  # fmt: skip
    found = audit_labels(nobody)
    assert serious(found) == ["nobody-tested"]
    assert {m.verdict for m in found.methods} == {"not here"}


def test_without_groups_it_is_an_audit_of_overlap(fair) -> None:
    p = fair.problem
    found = audit_labels(SelectiveLabels.from_arrays(p.X[:1500], p.y_obs[:1500]))
    assert "no-groups" in [f.key for f in found.findings]
    assert list(found.overlap) == [EVERYBODY]
    assert found.independence is None
    assert found.prevalence_sensitivity.breakdown.value > 1
    assert found.performance_sensitivity.breakdown.conclusion.endswith("better than chance")


def test_weights_count(unfair) -> None:
    """Rows counted twice by weight give the rates of rows that stand there twice."""
    p = unfair.problem.subset(np.arange(1500))
    weight = np.where(p.tested, 2.0, 1.0)
    weighted = SelectiveLabels.from_arrays(p.X, p.y_obs, group=p.group, weight=weight)
    twice = np.concatenate([np.arange(1500), np.flatnonzero(p.tested)])
    repeated = SelectiveLabels.from_arrays(
        p.X[twice], p.y_obs[twice], group=p.group[twice], id=twice
    )
    one, two = (audit_labels(each, learners=linear) for each in (weighted, repeated))
    for a, b in zip(one.testing, two.testing, strict=True):
        assert a.crude.value == pytest.approx(b.crude.value)
    assert one.prevalence[0].recorded.value == pytest.approx(two.prevalence[0].recorded.value)


def test_rows_of_weight_0_are_nobody(unfair) -> None:
    """They were counted among the tested of a group, beside a rate of the few others."""
    p = unfair.problem
    weight = np.where(p.group == 2, np.arange(len(p)) % 3 == 0, 1.0)
    weighted = SelectiveLabels.from_arrays(p.X, p.y_obs, group=p.group, weight=weight)
    attributes = {"own": weighted}
    with pytest.warns(DataWarning, match="have a weight of 0 and are left out"):
        found = audit_labels(weighted, learners=linear, attributes=attributes)
    kept = weighted.subset(weight > 0)
    plain = audit_labels(kept, learners=linear, attributes={"own": kept})
    assert to_plain(found) == to_plain(plain)
    assert found.total.people == (weight > 0).sum()


def test_copies_of_a_person_add_no_certainty(unfair) -> None:
    p = unfair.problem.subset(np.arange(1000))
    again = np.tile(np.arange(1000), 3)
    rows = p.subset(again)
    with_id = SelectiveLabels.from_arrays(rows.X, rows.y_obs, group=rows.group, id=again)
    crude, copied = (audit_labels(each, learners=linear).testing[0].crude for each in (p, with_id))
    assert copied.low == pytest.approx(crude.low, abs=2e-3)
    assert copied.high == pytest.approx(crude.high, abs=2e-3)


def test_same_seed_same_audit(fair) -> None:
    part = fair.problem.subset(np.arange(600))
    assert to_plain(audit_labels(part, random_state=3)) == to_plain(
        audit_labels(part, random_state=3)
    )


def test_missing_values_and_columns_without_any(unfair) -> None:
    p = unfair.problem.subset(np.arange(900))
    X = np.column_stack([p.X, np.full(900, np.nan), np.ones(900)])
    X[::7, 0] = np.nan
    with pytest.warns(UserWarning, match="Constant or entirely missing"):
        problem = SelectiveLabels.from_arrays(X, p.y_obs, group=p.group)
    found = audit_labels(problem)
    assert found.testing[0].difference.estimable
    assert next(d for d in found.drivers if d.column == "x3").direction == "the same for everybody"


def test_shared_audit_hides_small_cells(unfair) -> None:
    problem = unfair.problem
    group = np.array(problem.group_names)[problem.group].astype("<U8")
    few = np.flatnonzero(problem.tested)[:14]
    group[few[:8]], group[few[8:]] = "eight", "six"
    with_few = SelectiveLabels.from_arrays(problem.X, problem.y_obs, group=group)
    exact = audit_labels(with_few, learners=linear)
    shared = without_small_cells(exact)
    # c: the two have under ten positives; b: all of them are tested
    assert set(shared.withheld) == {"eight", "six", "b", "c"}
    for name in ("eight", "six"):
        counts = next(c for c in shared.counts if c.group == name)
        assert counts.rows == counts.tested == counts.positive == -1
        rate = next(r for r in shared.testing if r.group == name)
        assert not rate.crude.estimable
        assert np.isnan(shared.overlap[name].quantiles).all()
    assert shared.total.rows == exact.total.rows
    for name, found in shared.overlap.items():
        rows = {c.group: c.rows for c in exact.counts}.get(name, exact.total.rows)
        shown = [share * rows for share in found.under.values() if share > 0]
        assert all(count >= 9.999 for count in shown), name
    kept = next(c for c in shared.counts if c.group == "a")
    assert kept == next(c for c in exact.counts if c.group == "a")


def test_a_withheld_group_is_said_to_be_among_the_others(unfair) -> None:
    """All but one of c are tested: nobody sees it in the tables, and the others are tested less."""
    p = unfair.problem
    named = np.array(p.group_names)[p.group]
    y = np.where((named == "c") & np.isnan(p.y_obs), 0.0, p.y_obs)
    y[np.flatnonzero(named == "c")[0]] = np.nan
    problem = SelectiveLabels.from_arrays(p.X, y, group=named)
    exact = audit_labels(problem, learners=linear)
    shared = without_small_cells(exact)
    said = "Among the others is group c, whose numbers are withheld."
    less = [f for f in shared.findings if f.key == "tested-less"]
    assert less
    assert all(said in f.text for f in less)
    assert said in verdict(shared).sentences
    assert said not in "".join(f.text for f in exact.findings)
    keys = {f.key for f in shared.findings if f.groups == ("c",)}
    assert "group-withheld" in keys
    assert "group-too-small" not in keys  # hundreds were tested


def test_the_page_about_it_runs(capsys) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "audit.md"
    code = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile("\n".join(code), str(page), "exec"), {})
    assert "serious" in capsys.readouterr().out


def test_what_drives_testing_beside_what_drives_the_outcome() -> None:
    """One column sends people to a test, another makes them ill."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 3))
    tested = rng.random(3000) < expit(1.5 * x[:, 0])
    y = rng.random(3000) < expit(1.5 * x[:, 1])
    problem = SelectiveLabels.from_arrays(x, np.where(tested, y, np.nan))
    found = audit_labels(problem, learners=linear)
    testing = {driver.column: driver.share for driver in found.drivers}
    outcome = {driver.column: driver.share for driver in found.outcome_drivers}
    assert testing["x0"] > 0.9 > 0.05 > testing["x1"]
    assert outcome["x1"] > 0.9 > 0.05 > outcome["x0"]
