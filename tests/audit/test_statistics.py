"""Cases in which an audit went wrong once: fixed seeds, sizes that fit the gate."""

import subprocess
import sys

import numpy as np
import pytest
from choices import linear
from scipy.special import expit
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression

from dcem.audit import audit_labels, prevalence, testing
from dcem.audit.independence import check_independence, enough_results
from dcem.audit.model_checks import left_over
from dcem.audit.results import Prevalence
from dcem.audit.unmeasured import _left_open, benchmark_bounds, measured_strength
from dcem.audit.yields import yields
from dcem.estimation import Evaluator
from dcem.estimation.folds import person_folds
from dcem.estimation.influence import People
from dcem.estimation.nuisance_learners import Medians, SplineLogistic
from dcem.estimation.nuisances import Nuisances, fit_nuisances
from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels


def curved(n: int, seed: int, columns: int = 5) -> tuple[SelectiveLabels, np.ndarray]:
    """Group, testing and outcome depend on x alone, through a sine and a product."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, columns))
    f = 1.2 * np.sin(2 * x[:, 0]) + 0.8 * x[:, 1] * x[:, 2]
    group, tested, truth = (rng.random(n) < expit(c + f) for c in (-0.3, -0.5, -1.0))
    return SelectiveLabels.from_arrays(x, np.where(tested, truth, np.nan), group=group), truth


def test_what_features_explain_through_a_sine_and_a_product_is_not_a_disparity() -> None:
    problem, truth = curved(4000, 1)
    found = audit_labels(problem)
    assert not {"tested-less", "tested-more"} & {f.key for f in found.findings}
    assert abs(found.testing[0].difference.value) < 0.05  # crude: 0.25
    assert found.independence.p_value > 0.01
    everybody = found.prevalence[0].doubly_robust
    assert everybody.low < truth.mean() < everybody.high
    assert "splines" in found.testing[0].each


def test_columns_of_noise_do_not_crowd_out_the_terms_that_matter() -> None:
    """The group model of 27 columns of noise was too weak, and independence was rejected."""
    problem, _ = curved(4000, 2, columns=30)
    tested, y = problem.tested, problem.y_imputed[problem.tested]
    model = SplineLogistic().fit(problem.X[tested], y)
    assert 0 in model.columns_  # the sine
    assert [sorted(pair) for pair in model.pairs_] == [[1, 2]]  # no effect of either alone
    rng = np.random.default_rng(0)
    models = fit_nuisances(problem, person_folds(problem, 3, rng), rng, groups=True)
    f = 1.2 * np.sin(2 * problem.X[:, 0]) + 0.8 * problem.X[:, 1] * problem.X[:, 2]
    left = models.membership[:, 1] - expit(f - 0.3), models.outcome_alone - expit(f - 1)
    assert np.mean(left[0] * left[1]) < 0.004  # what biases the test; 0.01 with trees to screen
    assert check_independence(problem, People.of(problem), models).p_value > 0.05


@pytest.mark.filterwarnings("ignore:Everybody is tested")
def test_rows_of_two_people_are_two_results() -> None:
    """All of a group's twelve positive rows are of two people: too few to compare them by."""
    rng = np.random.default_rng(0)
    person = np.r_[0:560, np.repeat([560, 561], 6)]
    group = np.repeat(["a", "b"], [500, 72])
    y = np.r_[rng.random(500) < 0.3, np.zeros(60), np.ones(12)]
    problem = SelectiveLabels.from_arrays(
        rng.normal(size=(572, 1)), y, tested=np.ones(572), group=group, id=person
    )
    member = np.tile([500 / 572, 72 / 572], (572, 1))
    models = Nuisances(
        np.ones(572), np.full(572, 0.3), outcome_alone=np.full(572, 0.3), membership_tested=member
    )
    found = check_independence(problem, People.of(problem), models)
    assert "fewer than 10 people" in found.odds_ratio["b"].reason
    assert not enough_results(problem.subset(group == "b"))
    few = problem.subset(person >= 559)
    judge = Evaluator(few, fold=np.zeros(13, int), nuisances=Nuisances(np.ones(13), np.ones(13)))
    assert "fewer than 10 people" in prevalence.prevalences(judge)[0].tested_only.reason


def test_a_rare_random_sample_reaches_everybody() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40_000, 3))
    truth = rng.random(40_000) < expit(-1 + x[:, 0])
    seen = np.where(rng.random(40_000) < 0.008, truth, np.nan)
    problem = SelectiveLabels.from_arrays(x, seen)
    judge = Evaluator(problem, fold=person_folds(problem, 2, 0))
    assert judge.overlap.complete
    found = judge.prevalence("dr")
    assert found.low < truth.mean() < found.high


def test_a_steep_policy_is_not_fine() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 2))
    tested = rng.random(4000) < expit(-1 + 4 * x[:, 0])
    y = rng.random(4000) < expit(x[:, 0])
    judge = Evaluator(SelectiveLabels.from_arrays(x, np.where(tested, y, np.nan)))
    assert not judge.overlap.complete
    assert 0.5 < judge.overlap.reach < 0.9
    found = judge.prevalence("dr")
    assert found.low < expit(x[judge.reach.within, 0]).mean() < found.high


def test_a_hole_in_which_nobody_is_tested_is_out_of_reach() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    hole = (x[:, 0] > 0) & (x[:, 1] > -0.25)  # 30 % of the people
    truth = rng.random(4000) < expit(-1 + x[:, 0])
    tested = (rng.random(4000) < 0.3) & ~hole
    judge = Evaluator(SelectiveLabels.from_arrays(x, np.where(tested, truth, np.nan)))
    assert not judge.overlap.complete
    assert 0.55 < judge.overlap.reach < 0.75
    assert judge.reach.within[hole].mean() < 0.1
    assert judge.reach.within[~hole].mean() > 0.85


def test_six_fair_groups_seldom_have_one_that_stands_out() -> None:
    called, uncorrected = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        group, tested = rng.integers(6, size=900), rng.random(900) < 0.4
        problem = SelectiveLabels.from_arrays(
            rng.normal(size=(900, 1)),
            np.where(tested, rng.random(900) < 0.5, np.nan),
            group=group,
        )
        rate, share = np.full(900, 0.4), np.full((900, 6), 1 / 6)
        known = Nuisances(
            rate,
            rate,
            membership=share,
            testing_alone=rate,
            testing_as=np.full((900, 6), 0.4),
        )
        rates = testing.testing_rates(problem, People.of(problem), known)
        called.append(any(rate.p_value < 0.05 for rate in rates))
        uncorrected.append(any(rate.difference.excludes(0) for rate in rates))
    assert np.mean(called) <= 0.1
    assert np.mean(uncorrected) > 0.15


def test_audit_and_comparison_say_the_same_of_one_table() -> None:
    problem, _ = curved(1500, 3)
    found = audit_labels(problem, random_state=5)
    rng = np.random.default_rng(5)
    fold = person_folds(problem, 5, rng)
    models = fit_nuisances(problem, fold, rng, groups=True)
    judge = Evaluator(problem, fold=fold, nuisances=models)
    assert judge.overlap.reach == found.overlap[EVERYBODY].reach
    for item in found.prevalence:
        assert judge.prevalence("dr", item.group).value == item.doubly_robust.value
        assert judge.prevalence("ipw", item.group).value == item.weighted.value


def test_known_probabilities_are_those_of_the_design() -> None:
    """Testing depends on something that is not in the table, and the design says how."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=6000)
    probability = expit(-1 + 1.5 * hidden)
    truth = rng.random(6000) < expit(-0.5 + hidden)
    tested = rng.random(6000) < probability
    x = rng.normal(size=(6000, 2))
    found = []
    for known in (probability, None):
        problem = SelectiveLabels.from_arrays(
            x, np.where(tested, truth, np.nan), testing_probability=known
        )
        found.append(Evaluator(problem, fold=person_folds(problem, 2, 0)))
    design, modelled = (judge.prevalence("dr") for judge in found)
    assert design.low < truth.mean() < design.high
    assert modelled.low > truth.mean()
    assert found[0].overlap.complete


class TestEqualProbability:
    """Is a group's yield higher at equal testing probability?"""

    @staticmethod
    def world(seed: int, bar: float) -> tuple[SelectiveLabels, np.ndarray]:
        rng = np.random.default_rng(seed)
        group = rng.random(20_000) < 0.4
        risk = rng.normal(size=20_000) + 0.8 * group  # one group is at higher risk
        p = expit(-1 + 1.5 * risk - bar * group)
        truth = rng.random(20_000) < expit(-1 + 1.2 * risk)
        seen = np.where(rng.random(20_000) < p, truth, np.nan)
        return SelectiveLabels.from_arrays(risk[:, None], seen, group=group), p

    def test_one_bar_for_both_is_not_a_difference(self) -> None:
        clear = 0
        for seed in range(20):
            problem, p = self.world(seed, 0.0)
            found = yields(problem, People.of(problem), p)[0]
            clear += found.p_value_equal < 0.05
            assert found.difference.excludes(0)  # the plain rates do differ
        assert clear <= 4

    def test_tests_at_random_are_not_a_difference(self) -> None:
        """A fitted model finds a little in chance: a group's own error is not a bar."""
        clear = 0
        for seed in range(25):
            rng = np.random.default_rng(seed)
            group, x = rng.integers(3, size=1000), rng.normal(size=(1000, 2))
            tested = rng.random(1000) < 0.4
            truth = rng.random(1000) < expit(x[:, 0])
            seen = np.column_stack([x, group == 0, group == 1])
            p = LogisticRegression().fit(seen, tested).predict_proba(seen)[:, 1]
            problem = SelectiveLabels.from_arrays(x, np.where(tested, truth, np.nan), group=group)
            found = yields(problem, People.of(problem), p)
            clear += min(item.p_value_equal for item in found) < 0.05
        assert clear <= 4

    def test_a_higher_bar_is(self) -> None:
        problem, p = self.world(0, 1.0)
        found = {item.group: item for item in yields(problem, People.of(problem), p)}
        assert found["True"].at_equal_probability.low > 0.05


class TestBenchmarks:
    """Cinelli and Hazlett's bounds, against regressions with the cause in them."""

    def test_partial_r2_from_products_is_that_of_regressions(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(500, 3))
        y = X @ [1.0, 0.5, 0.0] + rng.normal(size=500)
        joined = np.column_stack([np.ones(500), X, y])
        gram = joined.T @ joined

        def left(columns: list[int]) -> float:
            design = joined[:, columns]
            return float(((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2).sum())

        for columns in ([0, 1], [0, 1, 2], [0, 1, 2, 3]):
            assert _left_open(gram, columns, 4) == pytest.approx(left(columns))
        partial = 1 - _left_open(gram, [0, 1, 2], 4) / _left_open(gram, [0, 1], 4)
        assert 0.1 < partial < 0.35  # 0.25 / 1.25 in the population

    @pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (0.8, 0.3)])
    def test_a_cause_as_strong_as_a_column_has_the_strength_of_the_bound(self, a, b) -> None:
        """A twin of a column, independent of it: what would it explain beside the column?"""
        rng = np.random.default_rng(1)
        n = 200_000
        column, twin = rng.normal(size=(2, n))
        group = a * (column + twin) + rng.normal(size=n)
        testing = b * (column + twin) + 0.4 * group + rng.normal(size=n)

        def left(target: np.ndarray, *given: np.ndarray) -> float:
            design = np.column_stack([np.ones(n), *given])
            fitted = design @ np.linalg.lstsq(design, target, rcond=None)[0]
            return float(((target - fitted) ** 2).sum())

        of_group = 1 - left(group, column) / left(group)
        of_testing = 1 - left(testing, column, group) / left(testing, group)
        bound = benchmark_bounds(of_group, of_testing)
        real = (
            1 - left(group, column, twin) / left(group, column),
            1 - left(testing, column, twin, group) / left(testing, column, group),
        )
        assert bound[0] == pytest.approx(real[0], abs=0.01)
        assert bound[1] >= real[1] - 0.005
        assert max(bound) < 1

    def test_strengths_of_measured_columns(self) -> None:
        """One column is tied to group and testing, the other to neither."""
        rng = np.random.default_rng(2)
        x = rng.normal(size=(20_000, 2))
        group = x[:, 0] + rng.normal(size=20_000) > 0
        tested = x[:, 0] + rng.normal(size=20_000) > 0.5
        problem = SelectiveLabels.from_arrays(
            x, np.where(tested, rng.random(20_000) < 0.5, np.nan), group=group
        )
        found = measured_strength(problem, People.of(problem), group, ["tied", "loose"], rng)
        strength = {b.column: (b.with_group, b.with_testing) for b in found}
        r = np.corrcoef(x[:, 0], group)[0, 1] ** 2  # about 1 / pi
        assert strength["tied"][0] == pytest.approx(r / (1 - r), abs=0.01)
        assert 0.3 < strength["tied"][1] < 1
        assert max(strength["loose"]) < 0.005

    def test_the_formulas_by_hand(self) -> None:
        assert benchmark_bounds(0.0, 0.1) == pytest.approx((0.0, 0.1 / 0.9))
        assert benchmark_bounds(0.2, 0.1) == pytest.approx(
            (0.25, ((1 + 0.25) / np.sqrt(1 - 0.0625)) ** 2 / 9)
        )
        assert benchmark_bounds(0.6, 0.1) == (1.0, 1.0)


def test_residuals_tell_of_a_model_that_is_too_stiff() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    p = expit(1.5 * np.sin(2 * x[:, 0]))
    seen = rng.random(4000) < p
    fold = np.arange(4000) % 3
    people = People(np.ones(4000), None, 4000)
    stiff, right = (left_over(x, seen - q, fold, people, rng) for q in (np.full(4000, 0.5), p))
    assert stiff.low > 0.05
    assert right.low < 0.005


def test_crossed_attributes_are_looked_at_each_and_together() -> None:
    """Sex matters for testing, race does not: told of sex alone, and of the crossed groups."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 2))
    sex, race = rng.integers(2, size=(2, 4000))
    tested = rng.random(4000) < expit(-0.5 + 0.5 * x[:, 0] - 1.0 * (sex == 1))
    y = np.where(tested, rng.random(4000) < 0.4, np.nan)
    crossed = SelectiveLabels.from_arrays(x, y, group=2 * sex + race)
    alone = {
        name: SelectiveLabels.from_arrays(x, y, group=codes)
        for name, codes in (("sex", sex), ("race", race))
    }
    found = audit_labels(crossed, attributes=alone, learners=linear)
    told = [f for f in found.findings if f.key == "tested-less" and "attribute" in f.values]
    assert [(f.values["attribute"], f.groups) for f in told] == [("sex", ("1",))]
    assert "of sex" in told[0].headline
    assert {f.groups[0] for f in found.findings if f.key == "tested-less"} >= {"2", "3"}


@pytest.mark.parametrize(
    ("sizes", "shift", "differ"),
    [
        ((0.4, 0.2, 0.2, 0.2), (1, 0, 0, 0), "a"),
        ((0.25, 0.25, 0.25, 0.25), (0, 0, 0, -1), "d"),
        ((0.5, 0.2, 0.15, 0.15), (0, -1, 1, 0), "bc"),
        ((0.6, 0.2, 0.2), (1, 0, 0), "abc"),  # most people are in a: the others differ from it
        ((0.25, 0.25, 0.25, 0.25), (0.6, 0.6, -0.6, -0.6), "abcd"),
    ],
)
def test_groups_do_not_differ_because_another_one_stands_out(sizes, shift, differ) -> None:
    rng = np.random.default_rng(3)
    x, code = rng.normal(size=(4000, 2)), rng.choice(len(sizes), 4000, p=sizes)
    tested = rng.random(4000) < expit(-0.4 + 0.5 * x[:, 0] + np.array(shift)[code])
    y = np.where(tested, rng.random(4000) < 0.4, np.nan)
    problem = SelectiveLabels.from_arrays(x, y, group=np.array(list("abcd"))[code])
    found = audit_labels(problem, learners=linear)
    assert {rate.group for rate in found.clear(found.testing)} == {*differ}
    beside = {rate.group: rate.beside for rate in found.testing if rate.beside}
    said = [f for f in found.findings if f.key == "beside-others"]
    assert {f.groups[0] for f in said} == beside.keys()
    assert all(set(names) <= {*differ} for names in beside.values())
    verdict = found.document().opening.verdict
    assert ("to differ too, but not clearly with" in " ".join(verdict.sentences)) == bool(beside)


def test_a_small_group_that_stands_out_makes_no_other_one_differ() -> None:
    """Nor by what chance adds to it: one in ten is tested less, and three groups are alike."""
    sizes, n, wrong = np.array([0.1, 0.3, 0.3, 0.3]), 4000, 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        x, code = rng.normal(size=n), rng.choice(4, n, p=sizes)
        of_group = expit(-0.4 + 0.5 * x[:, None] + np.array([-0.8, 0, 0, 0]))
        chance = of_group[np.arange(n), code]
        y = np.where(rng.random(n) < chance, rng.random(n) < 0.4, np.nan)
        problem = SelectiveLabels.from_arrays(x[:, None], y, group=np.array(list("abcd"))[code])
        known = Nuisances(
            chance,
            np.full(n, 0.4),
            testing_alone=of_group @ sizes,
            testing_as=of_group,
            membership=np.tile(sizes, (n, 1)),
        )
        rates = testing.testing_rates(problem, People.of(problem), known)
        claimed = {one.group for one in rates if one.p_value < 0.05 and not one.beside}
        assert "a" in claimed
        wrong += len(claimed) > 1
    assert wrong <= 2


def test_the_audit_needs_no_torch() -> None:
    code = (
        "import sys, dcem.audit, dcem.estimation.scorers, dcem.methods\n"
        "dcem.methods.names(usable=True)\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_medians_fill_gaps_as_an_imputer_does() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4)).round(1)
    X[rng.random(X.shape) < 0.2], X[:, 3] = np.nan, np.nan
    X[:, 2] = 1.5
    later = np.full((2, 4), np.nan)  # one column is missing that never was
    known = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True).fit(X)
    for rows in (X, later):
        assert np.array_equal(Medians().fit(X).transform(rows), known.transform(rows))


def test_tests_of_a_selective_policy_count_like_few_at_random() -> None:
    """An interval wider than wanted asks for more tests, however many there are."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(1000) < 400, rng.random(1000) < 0.5, np.nan)
    problem = SelectiveLabels.from_arrays(rng.normal(size=(1000, 1)), y)
    none = Estimate(np.nan, reason="none")

    def more(found: Estimate, precision: float = 0.05) -> int:
        item = Prevalence(
            "everybody", none, Estimate(0.5, 0.4, 0.6), none, found, none, (0, 1), none, (0, 1)
        )
        return prevalence.tests_needed(problem, [item], precision)[0].more

    at_random = 1.96**2 * 0.25 / 0.05**2  # 384 tests
    assert more(Estimate(0.5, 0.451, 0.549)) == 0
    assert more(Estimate(0.5, 0.4, 0.6)) == pytest.approx(0.75 * at_random, abs=1)
    assert more(none) == pytest.approx(at_random, abs=1)
    assert more(none, 0.001) == 600  # everybody who is left


def test_a_few_tests_without_a_positive_do_not_show_that_yields_differ() -> None:
    """They do not vary, so that by themselves they would be certain; many of them do show it."""
    rng = np.random.default_rng(0)
    seen = {}
    for few, rate in ((12, 0.06), (120, 0.3)):
        y = np.append(np.arange(600) < 600 * rate, np.zeros(few))
        group = np.repeat(["many", "few"], [600, few])
        order = rng.permutation(len(y))
        y, group = np.tile(y[order], 2), np.tile(group[order], 2)
        y[len(y) // 2 :] = np.nan
        problem = SelectiveLabels.from_arrays(rng.normal(size=(len(y), 1)), y, group=group)
        made = yields(problem, People.of(problem), rng.uniform(0.3, 0.7, len(y)))
        seen[few] = next(one for one in made if one.group == "few")
    assert min(seen[12].p_value, seen[12].p_value_equal) > 0.2
    assert seen[12].difference.high > 0 < seen[12].at_equal_probability.high
    assert max(seen[120].p_value, seen[120].p_value_equal) < 1e-3


@pytest.mark.parametrize(("alike", "clear"), [(False, True), (True, False)])
def test_visits_count_in_yields_as_far_as_they_are_not_alike(alike, clear) -> None:
    """Five visits of sixty people are three hundred tests, unless each person has one result."""
    rng = np.random.default_rng(1)
    person = np.repeat(np.arange(200), 5)
    group = np.where(person < 60, "a", "b")
    luck = rng.random(200)[person] if alike else rng.random(1000)
    y = np.append(luck < np.where(person < 60, 0.43, 0.3), np.full(1000, np.nan))
    problem = SelectiveLabels.from_arrays(
        rng.normal(size=(2000, 1)), y, group=np.tile(group, 2), id=np.tile(person, 2)
    )
    found = yields(problem, People.of(problem), rng.uniform(0.3, 0.7, 2000))[0]
    assert (found.p_value < 0.01) == (found.p_value_equal < 0.01) == clear


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_yields_are_those_of_ten_people_who_count() -> None:
    rng = np.random.default_rng(0)
    y = np.append((rng.random(400) < 0.3) * 1.0, np.full(100, np.nan))
    group, person = np.repeat(["one", "some", "others", "weightless"], 125), np.arange(500)
    person[:125] //= 25  # five people of 25 visits
    weight = (group != "weightless") * 1.0
    problem = SelectiveLabels.from_arrays(
        rng.normal(size=(500, 1)), y, group=group, id=person, weight=weight
    )
    made = yields(problem, People.of(problem), rng.uniform(0.3, 0.7, 500))
    found = {one.group: one.difference.reason for one in made}
    few = "fewer than 10 people of the group were tested"
    assert found == {"one": few, "some": "", "others": "", "weightless": few}


@pytest.mark.parametrize(
    ("early", "late", "told"), [(13, 4, False), (13, 24, True), (4, 24, False)]
)
def test_the_least_expected_tests_tell_of_no_few_positives(early, late, told) -> None:
    """Neither among them nor, as the positives of a group are known, among its other tests."""
    rng = np.random.default_rng(2)
    p = np.sort(rng.random(2400) * 0.4 + 0.05)
    group = np.where(rng.random(2400) < 0.5, "b", "a")
    tested = rng.random(2400) < p
    y = np.where(tested, rng.random(2400) < 0.2, np.nan)
    own = np.flatnonzero(tested & (group == "b"))
    y[own] = 0
    y[own[:early]] = y[own[-late:]] = 1
    problem = SelectiveLabels.from_arrays(p[:, None], y, group=group)
    found = {one.group: one for one in yields(problem, People.of(problem), p)}["b"]
    assert found.rate.value == pytest.approx((early + late) / len(own))
    assert found.marginal.estimable == told
