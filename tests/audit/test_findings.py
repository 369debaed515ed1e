"""Findings are no stronger than what they rest on."""

from dataclasses import replace

import numpy as np
import pytest
from choices import linear

from dcem.audit import audit_labels
from dcem.audit.advice import advise_methods
from dcem.audit.findings import all_findings
from dcem.audit.model_checks import calibrate
from dcem.audit.remedies import NOT_RISK, TO_DO, audit_finding, merge_findings
from dcem.audit.results import Driver, Needed
from dcem.audit.sensitivity import Breakdown
from dcem.estimation.findings import SEVERITIES, Finding
from dcem.estimation.influence import People
from dcem.metrics.estimate import Estimate
from dcem.report.shared import listed_findings
from dcem.table.labels import SelectiveLabels

pytestmark = pytest.mark.usefixtures("linear_models")


def keyed(audit) -> dict:
    return {finding.key: finding for finding in all_findings(audit)}


def changed(audit, group: str, **what):
    """The audit with other numbers for the testing of one group."""
    return replace(
        audit,
        testing=tuple(replace(r, **what) if r.group == group else r for r in audit.testing),
    )


def test_the_largest_difference_stands_first(fair_audit) -> None:
    rates = tuple(
        replace(r, p_value=0.0, each={}, difference=Estimate(by, by - 0.01, by + 0.01))
        for r, by in zip(fair_audit.testing, (0.1, -0.3, 0.2), strict=True)
    )
    found = all_findings(replace(fair_audit, testing=rates))
    told = [f.groups[0] for f in found if f.key in ("tested-less", "tested-more")]
    assert told == ["b", "c", "a"]


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
def test_a_group_that_nobody_tests_has_no_ratio() -> None:
    """Its interval ran to more digits than a page has; nor is there an E-value."""
    rng = np.random.default_rng(0)
    group, x = rng.integers(0, 2, 600), rng.normal(size=(600, 1))
    tested = (rng.random(600) < 0.5) & (group == 0)
    y = np.where(tested, rng.random(600) < 0.5, np.nan)
    problem = SelectiveLabels.from_arrays(x, y, group=np.array(["seen", "unseen"])[group])
    audit = audit_labels(problem, learners=linear)
    told = keyed(audit)["tested-less"]
    assert (told.groups, told.severity) == (("unseen",), "serious")
    assert not told.values["ratio"].estimable
    assert "ratio" not in told.text
    found = audit.testing_sensitivity
    assert np.isnan([found.e_value, found.e_value_of_interval]).all()


def test_differences_that_go_unseen_are_those_of_all_groups_at_once(fair_audit) -> None:
    """The interval of one group of three would be too narrow for a sentence about all of them."""
    one = Estimate(0.0, -0.049, 0.049)
    rates = tuple(replace(r, p_value=0.9, difference=one) for r in fair_audit.testing)
    audit = replace(fair_audit, testing=rates)
    assert audit.widest == pytest.approx(0.049 * 2.394 / 1.96, rel=1e-3)
    assert keyed(audit)["tested-alike"].severity == "note"
    assert replace(audit, testing=rates[:2]).widest == pytest.approx(0.049)  # one mirrors the other
    first = audit.document().opening.verdict
    assert "6.0 percentage points" in first.certainty
    assert not any("about equally often" in sentence for sentence in first.sentences)


def test_groups_of_one_attribute_are_not_mixed_with_those_of_another() -> None:
    gap = Estimate(-0.1, -0.12, -0.08)
    values = {"difference": gap, "reference": ""}
    found = [
        audit_finding("tested-less", "caution", "testing", "", "", ("1",), **values, attribute=of)
        for of in ("sex", "sex", "race")
    ]
    both, alone = listed_findings(found).items
    assert both.headline == (
        "Group 1 and group 1 of sex are tested less often than others with the same features"
    )
    assert alone.groups == ("1",)


def test_hardly_any_positive_test_makes_no_method_defensible(fair_audit) -> None:
    assert advise_methods(fair_audit)[0].verdict == "defensible"
    few = replace(fair_audit, total=replace(fair_audit.total, few=frozenset({"positive"})))
    assert not any(advice.verdict == "defensible" for advice in advise_methods(few))
    assert "fewer than ten people were tested positive" in advise_methods(few)[0].reason


def test_keys_severities_and_remedies_are_values(unfair_audit) -> None:
    for finding in unfair_audit.findings:
        assert finding.key in TO_DO
        assert finding.severity in SEVERITIES
        assert finding.headline
        assert finding.text
        assert "--" not in finding.text  # options are spelt by commands alone
    assert keyed(unfair_audit)["tested-less"].groups == ("b",)


@pytest.mark.parametrize(
    ("difference", "ratio", "key", "severity"),
    [
        (Estimate(-0.2, -0.25, -0.15), Estimate(0.5, 0.4, 0.6), "tested-less", "serious"),
        # hardly ever tested: nobody can say how many times less, and it is much less
        (Estimate(-0.3, -0.35, -0.25), Estimate(0.01, 1e-4, 1.2), "tested-less", "serious"),
        (Estimate(-0.05, -0.08, -0.02), Estimate(0.78, 0.7, 0.86), "tested-less", "caution"),
        (Estimate(0.2, 0.15, 0.25), Estimate(1.6, 1.4, 1.8), "tested-more", "serious"),
        (Estimate(-0.0004, -0.0006, -0.0002), Estimate(0.99, 0.98, 1), "small-difference", "note"),
    ],
)
def test_severity_follows_the_whole_interval(fair_audit, difference, ratio, key, severity) -> None:
    found = changed(
        fair_audit, "b", difference=difference, ratio=ratio, p_value=1e-4, each={"x": difference}
    )
    finding = keyed(found)[key]
    assert finding.severity == severity
    assert "-0.0" not in finding.text


def test_a_difference_that_one_kind_of_model_does_not_see_is_not_a_finding(unfair_audit) -> None:
    none = Estimate(-0.01, -0.04, 0.02)
    found = keyed(changed(unfair_audit, "b", each={"splines": none}))
    assert "tested-less" not in found
    assert found["depends-on-model"].severity == "note"


def test_a_leak_stands_first_and_is_serious(unfair_audit) -> None:
    found = all_findings(replace(unfair_audit, suspicious={"labs": "it says who was tested"}))
    assert (found[0].key, found[0].severity) == ("leak", "serious")
    assert "`exclude`" in found[0].remedy


@pytest.mark.parametrize(("p_plain", "severity"), [(0.001, "serious"), (0.5, "caution")])
def test_a_higher_bar_needs_fewer_tests_and_more_positive_ones(
    unfair_audit, p_plain, severity
) -> None:
    gap = Estimate(0.1, 0.05, 0.15)
    item = replace(
        unfair_audit.yields[1],
        difference=gap,
        at_equal_probability=gap,
        p_value=p_plain,
        p_value_equal=0.001,
    )
    assert item.group == "b"  # the one that is tested less
    yields = (unfair_audit.yields[0], item, unfair_audit.yields[2])
    bar = keyed(replace(unfair_audit, yields=yields))["higher-bar"]
    assert bar.severity == severity
    assert NOT_RISK in bar.text
    unlike = replace(item, at_equal_probability=Estimate(-0.1, -0.15, -0.05))
    found = keyed(replace(unfair_audit, yields=(unfair_audit.yields[0], unlike)))
    assert "higher-bar" not in found


def test_what_the_record_hides(unfair, unfair_audit) -> None:
    """Of all outcomes to expect in a group, the share that no test is to be expected to find."""
    problem = unfair.problem
    for item in unfair_audit.prevalence[1:]:
        mine = problem.group == problem.group_names.index(item.group)
        real = 1 - np.average(unfair.testing[mine], weights=unfair.risk[mine])
        assert item.hidden.low < real < item.hidden.high
        assert item.hidden.value == pytest.approx(
            1 - item.recorded.value / item.doubly_robust.value
        )
    told = keyed(unfair_audit)["hidden-unequal"]
    assert told.groups[0] == "b"
    assert told.values["shares"]["b"] == unfair_audit.prevalence[2].hidden


@pytest.mark.parametrize(("first", "warned"), [(0.7, True), (0.4, False)])
def test_one_column_that_carries_the_prediction_of_testing(fair_audit, first, warned) -> None:
    loss = Estimate(9.0, 8.0, 10.0)
    rest = (1 - first) / 2
    drivers = tuple(
        Driver(name, loss, share, "more when high")
        for name, share in (("labs", first), ("age", rest), ("(group)", 0.0), ("pain", rest))
    )
    told = keyed(replace(fair_audit, drivers=drivers))
    assert ("one-driver" in told) is warned
    if warned:
        assert told["one-driver"].values["column"] == "labs"
    assert "one-driver" not in keyed(replace(fair_audit, drivers=drivers[:2]))
    stated = replace(fair_audit, drivers=drivers, testing_only=("labs",))
    assert "one-driver" not in keyed(stated)  # the user says that it drives testing
    nothing = replace(fair_audit.calibration, auc=fair_audit.calibration.auc_by_chance - 0.01)
    assert "one-driver" not in keyed(replace(fair_audit, drivers=drivers, calibration=nothing))


def test_calibration_is_held_against_chance() -> None:
    """Right probabilities of a small table are off by several points in ten parts of it."""
    off = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.2, 0.8, 600)
        label = np.where(rng.random(600) < p, np.arange(600) % 2, np.nan)
        problem = SelectiveLabels.from_arrays(p[:, None], label)
        found = calibrate(problem, People.of(problem), p)
        assert found.is_right
        off.append(found.error)
        assert not calibrate(problem, People.of(problem), np.clip(p + 0.2, 0, 1)).is_right
    assert np.mean(off) == pytest.approx(found.error_by_chance, abs=0.008)


def test_a_column_that_drives_testing_more_than_the_outcome(fair_audit) -> None:
    def drivers(**share: float) -> tuple[Driver, ...]:
        errors = {name: 0.3 if name in ("luck", "chance") else 0.01 for name in share}
        return tuple(
            Driver(name, Estimate(of, of - errors[name], of + errors[name]), of, "")
            for name, of in share.items()
        )

    # of `chance` it is not known how little it tells the outcome
    testing = drivers(ward=0.4, age=0.2, luck=0.1, chance=0.35, rare=0.05)
    outcome = drivers(ward=0.1, age=0.15, luck=0.0, chance=0.05, rare=0.0, other=0.7)
    told = keyed(replace(fair_audit, drivers=testing, outcome_drivers=outcome))
    assert told["drives-testing"].values["columns"] == {"ward": (0.4, 0.1)}
    assert "drives-testing" not in keyed(replace(fair_audit, drivers=testing, outcome_drivers=()))


def test_traces_residuals_and_tests_that_are_missing(fair_audit) -> None:
    found = keyed(
        replace(
            fair_audit,
            missing={"lactate": Estimate(-0.4, -0.5, -0.3), "age": Estimate(-0.11, -0.2, -0.02)},
            left_over={"the group": Estimate(0.05, 0.03, 0.08), "x": Estimate(0.02, 0.001, 0.05)},
            needed=(Needed("a", 0.03, 100, 900), Needed("b", 0.03, 900, 800)),
        )
    )
    assert list(found["missing-by-testing"].values["columns"]) == ["lactate"]
    assert list(found["model-leaves"].values["shares"]) == ["the group"]
    assert found["tests-needed"].groups == ("a",)
    assert found["tests-needed"].values["tests"]["a"].more == 800


@pytest.mark.parametrize(
    ("value", "interval", "key"),
    [
        (np.nan, np.nan, "not-tried"),
        (1.5, 1.0, "not-clear"),
        (2.0, 1.2, "fragile"),
        (4.0, 2.0, "stands"),
        (np.inf, np.inf, "holds-anyway"),
    ],
)
def test_what_could_overturn_a_conclusion(fair_audit, value, interval, key) -> None:
    at = Breakdown("a is above b", value, interval, "odds ratio", "because")
    sensitivity = replace(fair_audit.prevalence_sensitivity, breakdown=at)
    found = replace(fair_audit, prevalence_sensitivity=sensitivity, performance_sensitivity=None)
    assert key in keyed(found)


def test_how_common_the_outcome_is_needs_no_estimate_where_everybody_was_tested(
    fair_audit,
) -> None:
    keys = {"prevalence", "prevalence-unknown"}
    assert keys & keyed(fair_audit).keys()
    assert not keys & keyed(replace(fair_audit, extent="everybody")).keys()


def test_shares_of_drivers_sum_to_one(unfair_audit) -> None:
    shares = [driver.share for driver in unfair_audit.drivers]
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= 0


@pytest.mark.parametrize(("number", "named"), [(3, "c"), (4, "4 groups")])
def test_up_to_three_groups_are_named_and_more_are_counted(number, named) -> None:
    gap = Estimate(-0.1, -0.2, -0.05)
    alike = [
        Finding("tested-less", "caution", "testing", (name,), {"difference": gap})
        for name in "abcd"[:number]
    ]
    found = merge_findings([*alike[1:], replace(alike[0], severity="serious")])
    assert named in found.headline
    assert ("4 groups" in found.headline) == (number == 4)
    assert found.severity == "serious"
    assert set(found.groups) == set("abcd"[:number])


def test_a_headline_that_begins_with_a_group_spells_it_as_the_table_does() -> None:
    gap = Estimate(-0.1, -0.15, -0.05)
    alike = [
        audit_finding("tested-less", "serious", "testing", "", "", (name,), difference=gap)
        for name in ("always", "never")
    ]
    assert merge_findings(alike).headline.startswith("always and never ")


def test_groups_that_are_numbers_are_called_groups(fair_audit) -> None:
    """No sentence reads "1: 18 %"; a name stays as it is written."""
    every = next(iter(fair_audit.overlap.values()))
    short = {name: replace(every, group=name, reach=0.5, reason="") for name in ("1", "north")}
    needed = tuple(Needed(name, 0.03, 100, 900) for name in short)
    overlap = {**fair_audit.overlap, **short}
    found = keyed(replace(fair_audit, overlap=overlap, needed=needed))
    assert found["overlap-groups"].text == "Group 1: 50 % out of reach; north: 50 % out of reach."
    assert "more in group 1; " in found["tests-needed"].text
