"""Arithmetic with influences: against known formulas, refitted numbers and simulated families."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm, studentized_range, t

from dcem.estimation.influence import (
    People,
    Statistic,
    against_others,
    clustered_covariance,
    clustered_error,
    critical_value,
    freedom,
    kish,
    logistic,
    simultaneous,
    survey_error,
    wilson,
)

N = 200


@pytest.fixture
def people() -> People:
    return People(np.random.default_rng(0).uniform(0.5, 2, N), None, N)


def moved(people: People, number, row: int, step: float = 1e-6) -> float:
    """The derivative of a number by the weight of a row."""
    weight = people.weight.copy()
    weight[row] *= 1 + step
    return (number(People(weight, None, N)) - number(people)) / step


@pytest.mark.parametrize(
    "number",
    [
        lambda p, a, b: p.mean(a) - p.mean(b),
        lambda p, a, b: p.mean(a) + p.mean(b),
        lambda p, a, b: p.mean(a) / p.mean(b),
        lambda p, a, b: p.mean(a).log() - p.mean(b).log(),
        lambda p, a, b: p.quotient(a * b, b) * 3.0,
    ],
    ids=["difference", "sum", "ratio", "log ratio", "multiple"],
)
def test_influences_are_derivatives(people, number) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.uniform(1, 2, (2, N))
    found = number(people, a, b)
    for row in (0, 17, 199):
        change = moved(people, lambda p: number(p, a, b).value, row)
        assert found.influence[row] == pytest.approx(change, rel=1e-3, abs=1e-9)
    assert found.influence.sum() == pytest.approx(0, abs=1e-9)


def test_the_error_of_a_mean_is_the_textbook_s() -> None:
    values = np.random.default_rng(2).normal(size=N)
    found = People(np.ones(N), None, N).mean(values).standard_error(None)
    assert found == pytest.approx(values.std(ddof=1) / np.sqrt(N))


def test_rows_of_a_person_count_once_and_others_do_not_count() -> None:
    influence = np.array([1.0, -1.0, 2.0, 0.0, 0.0])
    assert clustered_error(influence, None) == pytest.approx(np.sqrt(6 * 3 / 2))
    assert clustered_error(influence, np.array([0, 0, 1, 2, 2])) == pytest.approx(np.sqrt(4 * 2))
    assert np.isnan(clustered_error(np.array([1.0, 0.0]), None))


def test_few_people_who_carry_a_number_leave_little_freedom() -> None:
    normal = np.random.default_rng(0).normal(size=20_000)
    assert freedom(normal, None) == pytest.approx(20_000, rel=0.05)
    assert freedom(np.r_[np.full(5, 30.0), normal[:100]], None) == pytest.approx(11, abs=1)
    assert freedom(np.r_[1e3, normal[:100]], None) == pytest.approx(2, abs=0.03)
    assert freedom(np.ones(10), None) == pytest.approx(9)
    assert freedom(np.zeros(10), None) == np.inf
    # twenty rows of a person are one of a thousand people, and a known error takes nothing away
    rows, person = np.repeat(normal[:1000], 20), np.repeat(np.arange(1000), 20)
    assert freedom(rows, person) == pytest.approx(freedom(normal[:1000], None))
    with_rate = freedom(np.append(rows, 2e3), person)
    assert with_rate > 1e4
    assert with_rate == pytest.approx(freedom(np.append(20 * normal[:1000], 2e3), None, 1000))


def test_intervals_hold_where_few_carry_most_of_the_weight() -> None:
    """Normal quantiles hold under 90 %; `simultaneous` takes the same error."""
    rng, held, plain, p_values = np.random.default_rng(3), [], [], []
    for _ in range(800):
        people = People(np.exp(1.5 * rng.normal(size=60)), None, 60)
        mean = people.mean(rng.normal(size=60))
        found = mean.estimate(None)
        assert people.interval(mean).high == pytest.approx(found.high)
        held.append(found.low < 0 < found.high)
        plain.append(abs(mean.value) < norm.ppf(0.975) * mean.standard_error(None))
        p_values.append(simultaneous(people, {"one": mean}, draws=100)["one"].p_value)
    assert np.mean(plain) < 0.9 < 0.92 < np.mean(held) < 0.98
    assert 0.02 < np.mean(np.array(p_values) < 0.05) < 0.08


def test_an_interval_is_student_s_at_its_freedom() -> None:
    found = Statistic(0.0, np.r_[np.full(5, 30.0), np.random.default_rng(0).normal(size=100)])
    left, error = freedom(found.influence, None), found.standard_error(None)
    reach = t.ppf(0.975, left) * np.sqrt((left + 1) / left) * error
    assert found.estimate(None).high == pytest.approx(reach)


def test_wilson_and_kish_by_hand() -> None:
    assert wilson(0.0, 10) == pytest.approx((0, 0.2775), abs=1e-4)
    assert wilson(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert kish(np.ones(7)) == pytest.approx(7)
    assert kish(np.array([3.0, 1.0])) == pytest.approx(16 / 10)


def test_a_share_of_all_is_proved_by_people_not_by_their_rows() -> None:
    yes, few = np.ones(400, bool), np.arange(400) % 4
    found = People(np.ones(400), few, 4).proportion(yes, yes)
    assert (found.low, found.high) == pytest.approx(wilson(1.0, 4))


def means(groups: int, rng: np.random.Generator, shift: float = 0.0) -> tuple[People, dict]:
    group = np.arange(60 * groups) % groups
    values = rng.normal(size=len(group)) + shift * (group == 0)
    people = People(np.ones(len(group)), None, len(group))
    return people, {str(g): people.mean(values, (group == g) * 1.0) for g in range(groups)}


def pairs(each: dict) -> dict:
    names = list(each)
    return {(a, b): each[a] - each[b] for i, a in enumerate(names) for b in names[:i]}


def test_small_parts_of_a_curve_do_not_follow_from_the_total() -> None:
    """Each point's share and interval tell how many people it is of; together they are all."""
    score, part = np.arange(500.0), np.repeat(np.arange(5), 100)
    tested = np.isin(score % 100, range(20)) & (part > 0) & (part < 4)
    tested[[3, 4, 5, 450]] = True
    found = People(np.ones(500), None, 500).rates(tested, score, score >= 0, part)
    np.testing.assert_allclose(found[1], [23 / 200, 20 / 100, 21 / 200])
    np.testing.assert_allclose(found[0], [99.5, 249.5, 399.5])
    assert People(np.ones(500), None, 500).rates(score < 9, score, score >= 0, part).size == 0


def test_all_pairs_of_equal_groups_have_tukey_s_critical_value() -> None:
    people, each = means(5, np.random.default_rng(0))
    tukey = studentized_range.ppf(0.95, 5, 1e6) / np.sqrt(2)
    assert critical_value(people, pairs(each)) == pytest.approx(tukey, rel=0.03)


def test_one_comparison_is_an_ordinary_interval() -> None:
    people, each = means(2, np.random.default_rng(0))
    found = simultaneous(people, pairs(each))["1", "0"]
    assert found.simultaneous == found.value
    z = found.value.value / people.error(each["1"] - each["0"])
    assert found.p_value == pytest.approx(2 * norm.sf(abs(z)), rel=0.05)


def test_of_two_groups_one_mirrors_the_other_and_many_are_corrected() -> None:
    people, each = means(2, np.random.default_rng(3))
    gap = each["0"] - each["1"]
    both = against_others(people, {"0": gap, "1": gap * -1.0})
    assert both["0"].p_value == both["1"].p_value
    assert both["0"].value.value == -both["1"].value.value
    people, each = means(6, np.random.default_rng(3))
    alone = simultaneous(people, {("0", ""): each["0"]})["0", ""].p_value
    assert against_others(people, each)["0"].p_value > alone
    third = {name: each[name] - each["2"] for name in ("0", "1")}  # two that do not mirror
    alone = simultaneous(people, {"0": third["0"]})["0"].p_value
    assert against_others(people, third)["0"].p_value > 1.2 * alone


def test_the_largest_of_many_fair_differences_is_rarely_clear() -> None:
    """Six equal groups: without correction 37 % of tables have some 'clear' pair."""
    false = {"pairs": 0, "plain": 0}
    for seed in range(200):
        people, each = means(6, np.random.default_rng(seed))
        found = simultaneous(people, pairs(each), draws=2000)
        false["pairs"] += min(one.p_value for one in found.values()) < 0.05
        false["plain"] += any(one.value.excludes(0) for one in found.values())
    assert false["pairs"] / 200 < 0.09
    assert false["plain"] / 200 > 0.25


def test_a_real_difference_is_still_seen() -> None:
    people, each = means(6, np.random.default_rng(0), shift=1.5)
    found = simultaneous(people, pairs(each))
    assert all(found[b, "0"].p_value < 1e-3 for b in "12345")
    gap = each["1"] - each["0"]
    single = 2 * norm.sf(abs(gap.value) / people.error(gap))
    assert found["1", "0"].p_value == pytest.approx(15 * single)  # beyond all draws: Bonferroni


def test_nothing_to_compare() -> None:
    people = People(np.ones(4), None, 4)
    nothing = Statistic(np.nan, np.zeros(4))
    assert np.isnan(simultaneous(people, {("a", "b"): nothing})["a", "b"].p_value)


def test_the_error_of_a_survey_is_that_of_units_within_strata():
    rng = np.random.default_rng(0)
    unit = rng.integers(0, 40, 2000)
    stratum = (np.arange(40) // 4)[unit]
    influence = rng.normal(size=2000) + rng.normal(size=10)[stratum]  # strata differ: no matter
    expected = 0.0
    for h in range(10):
        totals = np.array([influence[unit == j].sum() for j in range(4 * h, 4 * h + 4)])
        expected += 4 * totals.var(ddof=1)
    assert survey_error(influence, stratum, unit) == pytest.approx(np.sqrt(expected))
    alone = survey_error(influence, unit, unit)  # a stratum of one unit is compared with all
    totals = np.bincount(unit, influence)
    assert alone == pytest.approx(np.sqrt(((totals - totals.mean()) ** 2).sum()))


def test_a_logistic_regression_finds_its_root_where_columns_are_nearly_alike():
    """A count that is 99 where nobody knows it, standardised, beside its square."""
    rng = np.random.default_rng(0)
    count = rng.poisson(0.4, 4000)
    seen = np.where(rng.random(4000) < 0.04, 99, count)
    z = np.clip((seen - seen.mean()) / seen.std(), -4, 4)
    X = np.column_stack([np.ones(4000), z, z**2])
    y = (rng.random(4000) < expit(-2 + 0.5 * count)).astype(float)
    ridge = np.array([1e-6, 1, 1])
    at, pull, _ = logistic(X, y, np.ones(4000), ridge=ridge)
    assert pull.sum(axis=0) == pytest.approx(ridge * at, abs=1e-6)


def test_a_logistic_regression_is_at_its_root_and_says_where_there_is_none():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(400), rng.normal(size=(400, 2))])
    weight, offset, ridge = rng.uniform(0.5, 2, 400), rng.normal(size=400), np.array([0, 1.0, 3.0])
    y = (rng.random(400) < expit(offset + X @ [0.3, 1.0, -0.5])).astype(float)
    at, pull, curvature = logistic(X, weight * y, weight, offset=offset, ridge=ridge)
    assert pull.sum(axis=0) == pytest.approx(ridge * at, abs=1e-6)
    risk = expit(offset + X @ at)
    expected = (X.T * weight * risk * (1 - risk)) @ X + np.diag(ridge)
    assert curvature == pytest.approx(expected)
    twice = clustered_covariance(
        np.repeat(pull, 2, axis=0), 2 * curvature, np.repeat(np.arange(400), 2)
    )
    assert twice == pytest.approx(clustered_covariance(pull, curvature))  # everybody came two times
    apart = (X[:, 1] > 0).astype(float)
    assert np.isnan(logistic(X[:, :2], apart, np.ones(400))[0]).all()
    assert np.isnan(logistic(X[:, [1, 1]], y, np.ones(400))[0]).all()
