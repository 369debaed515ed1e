"""Deciders: how much they differ, what they bound, and what refutes them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import expit
from scipy.stats import norm

from dcem.estimation import by_decider
from dcem.estimation import instrument as iv
from dcem.estimation.by_decider import check_exclusion, check_monotonicity, contraction
from dcem.estimation.deciders import (
    HIGH_RISK,
    Effects,
    _spread_beyond_error,
    comparable_deciders,
    compare_deciders,
)
from dcem.estimation.influence import People
from dcem.metrics import auc
from dcem.table.labels import SelectiveLabels


def world(seed: int, n: int = 3000, deciders: int = 8, test: str | float = 1.0, **changed: float):
    """People, of whom deciders see more than the features show.

    `sick`: whether every other decider gets sicker people; `turned`: whether half of the deciders
    prefer one group and half the other; `often`: how much all of them test. `test` is stated of its
    sensitivity.
    """
    rng = np.random.default_rng(seed)
    X, seen = rng.normal(size=(n, 2)), rng.normal(size=n)
    group = rng.integers(2, size=n)
    who = rng.integers(deciders, size=n)
    lenient = np.linspace(-2, 2, deciders)[who] + changed.get("often", 0.0)
    risk = expit(-1 + X[:, 0] + seen + changed.get("sick", 0.0) * (who % 2))
    y = (rng.random(n) < risk).astype(float)
    tests = 0.6 * X[:, 0] + 0.8 * seen + rng.logistic(size=n) + lenient
    tests += changed.get("turned", 0.0) * np.where(who % 2 == group, 1, -1)
    tested = tests > 0
    problem = SelectiveLabels.from_arrays(
        X,
        np.where(tested, y, np.nan),
        group=np.array(["a", "b"])[group],
        decider=[f"clinic {code}" for code in who],
        test_sensitivity=test,
    )
    return problem, y


def simple(problem: SelectiveLabels) -> tuple[np.ndarray, np.ndarray]:
    """P(tested | x) and P(positive | x, tested) by quick models, good enough here."""
    from sklearn.linear_model import LogisticRegression

    t = problem.tested
    e = LogisticRegression().fit(problem.X, t).predict_proba(problem.X)[:, 1]
    m = LogisticRegression().fit(problem.X[t], problem.y_obs[t]).predict_proba(problem.X)[:, 1]
    return e, m


def fitted(problem: SelectiveLabels) -> iv.Instrument:
    from sklearn.linear_model import LogisticRegression

    made = iv.fit_instrument(
        problem,
        np.arange(len(problem)) % 2,
        simple(problem)[0],
        learners=lambda classes, seed: {"linear": LogisticRegression(max_iter=200)},
    )
    assert made is not None
    return made


def exact(found: np.ndarray, cleared: np.ndarray) -> iv.Instrument:
    """What is known of a world [cells, levels], without any noise."""
    cells, number = found.shape
    names = tuple(map(str, range(number)))
    nobody, zero = np.full(cells, -1), np.zeros(cells)
    return iv.Instrument(
        names, nobody, np.full(found.shape, 1 / number), found, cleared, zero, zero
    )


def programme(found: np.ndarray, cleared: np.ndarray) -> tuple[float, float]:
    """Bounds of P(y = 1) over all that deciders could have done: Balke and Pearl's types."""
    deciders = len(found)
    types = list(product((0, 1), *[(0, 1)] * deciders))  # outcome, tested under each decider
    rows, right = [np.ones(len(types))], [1.0]
    for z in range(deciders):
        for y, seen in ((1, found[z]), (0, cleared[z])):
            rows.append(np.array([one[0] == y and one[1 + z] == 1 for one in types], float))
            right.append(seen)
    sick = np.array([one[0] for one in types], float)
    ends = [linprog(s * sick, A_eq=np.array(rows), b_eq=right, bounds=(0, 1)) for s in (1, -1)]
    assert all(end.success for end in ends)
    return ends[0].fun, -ends[1].fun


def test_the_bounds_are_those_of_the_linear_programme():
    rng = np.random.default_rng(0)
    found, cleared = [], []
    for _ in range(6):  # cells of the features, each with a world of its own
        sick, seen = rng.uniform(0.1, 0.9), rng.uniform(0.2, 0.9, size=(2, 3))
        found.append(sick * seen[0])
        cleared.append((1 - sick) * seen[1])
    found, cleared = np.array(found), np.array(cleared)
    each = [programme(*both) for both in zip(found, cleared, strict=True)]
    people = People(np.ones(6), None, 6)
    bounds = by_decider.prevalence_bounds(exact(found, cleared), people, np.ones(6, bool))
    assert bounds.low.value == pytest.approx(np.mean([low for low, _ in each]), abs=1e-7)
    assert bounds.high.value == pytest.approx(np.mean([high for _, high in each]), abs=1e-7)


def test_auc_and_gain_are_the_extremes_over_all_risks_between_the_ends():
    rng = np.random.default_rng(1)
    low = rng.uniform(0, 0.5, size=(5, 1))
    high = low + rng.uniform(0, 0.4, size=(5, 1))
    made, people = exact(low, 1 - high), People(np.ones(5), None, 5)
    score, other = rng.permutation(5) / 5 + 0.1, rng.permutation(5) / 5 + 0.1
    corners = [np.where(up, high[:, 0], low[:, 0]) for up in product((False, True), repeat=5)]
    inside = [low[:, 0] + rng.random(5) * (high - low)[:, 0] for _ in range(500)]

    def area(s: np.ndarray, risk: np.ndarray) -> float:
        pairs = [(i, j) for i, j in product(range(5), repeat=2) if i != j]
        mass = [risk[i] * (1 - risk[j]) for i, j in pairs]
        won = [float(s[i] > s[j]) for i, j in pairs]
        return float(np.average(won, weights=mass))

    areas = [area(score, risk) for risk in corners + inside]
    bounds = by_decider.auc_bounds(made, people, score)
    assert bounds.low.value == pytest.approx(min(areas), abs=1e-9)
    assert bounds.high.value == pytest.approx(max(areas), abs=1e-9)
    gains = [area(score, risk) - area(other, risk) for risk in corners + inside]
    found = by_decider.gain_bounds(made, people, score, other)
    # pairs of a person with themselves are left out: of five people that is not nothing
    assert found.low.value == pytest.approx(min(gains), abs=0.03)
    assert found.high.value == pytest.approx(max(gains), abs=0.03)


def test_bounds_hold_the_truth_where_the_features_do_not_explain_testing():
    problem, y = world(0)
    made, people = fitted(problem), People.of(problem)
    everybody = np.ones(len(y), bool)
    bounds = by_decider.prevalence_bounds(made, people, everybody)
    assert bounds.low.low < y.mean() < bounds.high.high
    plain = problem.y_imputed.mean(), 1 - np.mean(problem.tested * (1 - y))
    assert plain[0] + 0.03 < bounds.low.value < bounds.high.value < plain[1] - 0.03
    assert y[problem.tested].mean() > bounds.low.value + 0.1  # the tested are sicker
    areas = by_decider.auc_bounds(made, people, problem.X[:, 0])
    assert areas.low.low < auc(y, problem.X[:, 0]) < areas.high.high
    acted = problem.X[:, 0] > 0.5
    reached = by_decider.acting_bounds(made, people, acted)["true_positive_rate"]
    assert reached.low.low < y[acted].sum() / y.sum() < reached.high.high


def test_an_uncertain_test_widens_the_bounds_by_what_it_moves_them():
    """Of a test that misses some and invents nobody the least prevalence is that of results / s."""
    unsure = world(1, n=1500, test=".7-.9")[0]
    stated = unsure.imperfect_test.stated[0]
    s, error = stated.value, stated.error
    exact = world(1, n=1500, test=s)[0]
    people, everybody = People.of(exact), np.ones(len(exact), bool)
    low, wide = (
        by_decider.prevalence_bounds(fitted(one), people, everybody) for one in (exact, unsure)
    )
    assert wide.low.value == pytest.approx(low.low.value)
    moved = low.low.value * s * (1 / (s - error) - 1 / (s + error)) / 2 * norm.ppf(0.975)
    plain = low.low.value - low.low.low
    assert wide.low.value - wide.low.low == pytest.approx(np.hypot(plain, moved), rel=0.01)


@pytest.mark.parametrize("often", [-1.0, 0.0, 1.0])
def test_deciders_who_are_alike_do_not_widen_bounds(often):
    some, y = world(4, n=1200, often=often)
    strangers = np.random.default_rng(0).integers(4, size=len(some)).astype(str)
    problem = SelectiveLabels.from_arrays(
        some.X, np.where(some.tested, y, np.nan), decider=strangers
    )
    made, people = fitted(problem), People.of(problem)
    for among in (np.ones(len(y), bool), some.X[:, 1] > 0.5, some.X[:, 1] < -0.5):
        bounds = by_decider.prevalence_bounds(made, people, among)
        seen, tested = problem.y_imputed[among], problem.tested[among]
        assert bounds.low.value >= seen.mean() - 1e-9
        assert bounds.high.value <= 1 - np.mean(tested * (1 - seen)) + 1e-9
        assert bounds.low.low < y[among].mean() < bounds.high.high
        assert bounds.low.low < bounds.low.value < bounds.low.high


def test_levels_rest_on_other_people():
    problem, _ = world(1, deciders=12)
    fold = np.arange(len(problem)) % 3
    testing = simple(problem)[0]
    before, names = iv.decider_levels(problem, fold, testing)
    assert names == ("fewest tests", "fewer tests", "middle", "more tests", "most tests")
    mine = fold == 0
    turned = SelectiveLabels.from_arrays(
        problem.X,
        np.where(
            np.where(mine, ~problem.tested, problem.tested), 1.0 * (problem.X[:, 0] > 0), np.nan
        ),
        decider=np.array(problem.decider_names)[problem.decider],
    )
    after, _ = iv.decider_levels(turned, fold, testing)
    assert (before[0] == after[0]).all()  # nothing outside the fold, and nothing in it
    assert (before[1] != after[1]).any()
    rates = [problem.tested[mine & (before[0] == level)].mean() for level in range(5)]
    assert rates == sorted(rates)


def beyond_error(effect: np.ndarray, error: np.ndarray):
    return _spread_beyond_error(Effects(effect, error, np.ones((len(effect), 1))))


def test_spread_is_that_of_the_true_effects():
    rng = np.random.default_rng(2)
    held, clear = 0, 0
    for _ in range(200):
        error = rng.uniform(0.02, 0.1, size=15)
        found = beyond_error(rng.normal(0, 0.06, size=15) + error * rng.normal(size=15), error)
        held += found.deviation.low <= 0.06 <= found.deviation.high
        clear += beyond_error(error * rng.normal(size=15), error).p_value < 0.05
    assert 180 <= held <= 199
    assert 3 <= clear <= 19


def test_deciders_compared():
    problem, _ = world(3)
    people = People.of(problem)
    found = compare_deciders(problem, people, *simple(problem))
    assert not isinstance(found, str)
    assert found.testing.deviation.low > 0.15
    assert found.testing.p_value < 1e-6
    assert [e.decider for e in found.effects] == [f"clinic {code}" for code in range(8)]
    assert all(abs(e.shrunken.value) <= abs(e.testing.value) for e in found.effects)
    assert 0 < found.one_more_test.low < found.one_more_test.high < 1
    assert found.at_equal_rates.p_value > 0.01
    assert found.mix.p_value > 0.01
    assert min(one.p_value for one in found.order.values()) > 0.01


def test_rows_of_a_person_count_together_under_one_decider_alone():
    rng = np.random.default_rng(0)
    tested = np.repeat(rng.random(300) < 0.5, 3)  # what is done with a person is done three times
    y = np.where(tested, np.tile([1.0, 0.0, 0.0], 300), np.nan)
    half = np.full(900, 0.5)
    width = {}
    for name, decider in (("three", np.arange(900) % 3), ("one", np.arange(900) // 3 % 3)):
        for id in (None, np.arange(900) // 3):
            problem = SelectiveLabels.from_arrays(
                rng.normal(size=(900, 1)), y, decider=decider.astype(str), id=id
            )
            found = compare_deciders(problem, People.of(problem), half, half)
            seen = found.effects[0].testing
            width[name, id is None] = seen.high - seen.low
    assert width["three", False] == pytest.approx(width["three", True], rel=0.01)
    assert width["one", False] == pytest.approx(np.sqrt(3) * width["one", True], rel=0.01)


def test_deciders_of_people_who_are_all_alike():
    problem, _ = world(3)
    same = np.full(len(problem), 0.3)
    found = compare_deciders(problem, People.of(problem), same, same)
    assert not isinstance(found, str)
    assert (found.mix.deviation.value, found.mix.p_value, found.mix_share) == (0, 1, 0)


def test_the_share_of_the_variance_of_risks_that_lies_between_deciders():
    problem, _ = world(3)
    testing, _ = simple(problem)
    noise = 0.1 * np.random.default_rng(1).choice([-0.5, 0.5], len(problem))
    for mixed, share in ((0.1, 0.5), (0.0, 0.0)):  # between the two halves of the deciders
        risk = 0.3 + noise + mixed * (problem.decider % 2 - 0.5)
        found = compare_deciders(problem, People.of(problem), testing, risk)
        assert not isinstance(found, str)
        assert found.mix_share == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize("elsewhere", [0.0, 0.03])  # share of the rows that others stood in for
def test_deciders_of_a_site_are_compared_among_themselves(elsewhere):
    """A model gives every site some risk by chance; that does not set its deciders apart."""
    problem, _ = world(3)
    testing, risk = simple(problem)
    rng = np.random.default_rng(1)
    site = np.where(rng.random(len(problem)) < elsewhere, 0, problem.decider % 2)
    nested = replace(
        problem, X=np.column_stack([problem.X, site]), feature_names=("a", "b", "site")
    )
    people, by_chance = People.of(problem), risk + 0.1 * site
    assert compare_deciders(nested, people, testing, by_chance).mix.p_value > 0.01
    assert compare_deciders(problem, people, testing, by_chance).mix.p_value < 1e-6
    within = by_chance + 0.1 * (problem.decider > 3)  # half of the deciders at each site
    assert compare_deciders(nested, people, testing, within).mix.p_value < 1e-6


def test_turned_preferences_are_seen():
    problem, _ = world(4, turned=1.2)
    found = compare_deciders(problem, People.of(problem), *simple(problem))
    assert not isinstance(found, str)
    assert found.order["a"].p_value < 0.01
    assert found.order[HIGH_RISK].p_value > 0.01


def test_sicker_people_for_some_deciders_are_refuted():
    problem, _ = world(5, deciders=4, often=2.0, sick=3.0)
    made, people = fitted(problem), People.of(problem)
    everybody = {"everybody": np.ones(len(problem), bool)}
    assert made.names == tuple(f"clinic {code}" for code in range(4))
    assert check_exclusion(made, people, everybody)["everybody"].p_value < 1e-4
    assert check_monotonicity(made, people)["found"].p_value < 1e-4
    found = compare_deciders(problem, people, *simple(problem))
    assert not isinstance(found, str)
    assert not found.at_equal_rates.deviation.estimable  # too few for a curve
    problem, _ = world(5, deciders=4, often=2.0)
    made = fitted(problem)
    assert min(one.p_value for one in check_monotonicity(made, people).values()) > 0.05
    assert check_exclusion(made, people, everybody)["everybody"].p_value > 0.05


def test_contraction_finds_more_with_a_better_score():
    problem, y = world(6, n=6000)
    made, people = fitted(problem), People.of(problem)
    good, bad = contraction(made, people, y), contraction(made, people, -y)
    assert [one.level for one in good] == list(made.names[:-1])
    for better, worse in zip(good, bad, strict=True):
        assert better.score.low > worse.score.high
        assert better.deciders == worse.deciders
        assert better.score.value <= better.rate.value + 1e-9
        most = people.mean(made.finds[:, -1]).value
        assert better.score.value == pytest.approx(min(better.rate.value, most), abs=0.02)


def test_what_a_score_finds_moves_with_each_person_as_its_influence_says():
    rng = np.random.default_rng(9)
    n = 500
    level, tested = rng.integers(2, size=n), rng.random(n) < 0.6
    score = rng.integers(5, size=n).astype(float)  # ties, so that the cut has a yield of its own
    y = (rng.random(n) < expit(score - 2)) * tested
    half = np.full((n, 2), 0.5)
    made = iv.Instrument(("few", "many"), level, half, half, half, tested.astype(float), y)
    weight, theirs = rng.uniform(0.5, 2, n), rng.uniform(0.2, 0.4, n)

    def found(weight: np.ndarray):
        people = People(weight, None, n)
        return by_decider._kept(made, people, score, people.mean(theirs))

    for i in range(0, n, 25):
        more = weight.copy()
        more[i] *= 1 + 1e-5
        moved = (found(more).value - found(weight).value) / 1e-5
        assert moved == pytest.approx(found(weight).influence[i], abs=1e-6)


def test_small_deciders_are_left_out():
    problem, _ = world(7, n=400, deciders=3)
    who = np.array(problem.decider_names)[problem.decider].astype(object)
    who[:15], who[15:20] = "small", None
    few = SelectiveLabels.from_arrays(problem.X, problem.y_obs, decider=who)
    names = [few.decider_names[code] for code in comparable_deciders(few)]
    assert "small" not in names
    assert len(names) == 3
    found = compare_deciders(few, People.of(few), *simple(few))
    assert not isinstance(found, str)
    assert found.number == 3
    assert found.left_out == pytest.approx(20 / 400)


def test_deciders_who_happen_to_be_alike_rule_out_no_more_than_others():
    """Four deciders of a hundred people each cannot show that nobody differs at all."""
    error = np.array([0.04, 0.04, 0.05, 0.09])
    alike = beyond_error(np.array([0.001, -0.001, 0.0, 0.002]), error)
    usual = beyond_error(np.array([0.04, -0.04, 0.05, -0.07]), error)
    assert alike.p_value > 0.99
    assert alike.deviation.value == alike.deviation.low == 0
    assert 0.04 < alike.deviation.high <= usual.deviation.high


def nested(seed: int, at_home: float = 1.0, apart: float = 0.0, spread: float = 0.0):
    """Judges of courts of unequal size; the court is a feature, and who comes differs by court.

    `at_home`: share of a judge's people who are of the judge's own court (all courts are alike if
    some are not). `apart`: how much the people of judges of one court differ. `spread`: of how much
    judges test, in log-odds.
    """
    rng = np.random.default_rng(seed)
    n, judges, courts = 3000, 30, 6
    home = np.append(np.arange(courts), rng.integers(courts, size=judges - courts))
    size = rng.gamma(2, size=judges) + 0.2
    who = rng.choice(judges, n, p=size / size.sum())
    away = rng.random(n) > at_home
    court = np.where(away, rng.integers(courts, size=n), home[who])
    X = rng.normal(size=(n, 2))
    X[:, 0] += (at_home == 1) * rng.normal(size=courts)[court] + apart * rng.normal(size=judges)[
        who
    ]
    y = rng.random(n) < expit(-3 + 0.8 * X[:, 0])
    tested = rng.random(n) < expit(-0.8 + 0.5 * X[:, 0] + spread * rng.normal(size=judges)[who])
    return SelectiveLabels.from_arrays(
        np.column_stack([X, court[:, None] == np.arange(courts)]).astype(float),
        np.where(tested, y, np.nan),
        decider=[f"judge {code:02d}" for code in who],
    )


@pytest.mark.parametrize("at_home", [1.0, 0.8])
def test_a_feature_that_says_where_deciders_work_sets_nobody_apart(at_home):
    """Whatever a model gets wrong about a court, it gets wrong for all its judges."""
    claimed = []
    for seed in range(12):
        problem = nested(seed, at_home)
        found = compare_deciders(problem, People.of(problem), *simple(problem))
        assert bool(found.within) == (at_home == 1)
        claimed.append(found.mix.p_value < 0.05 or found.testing.p_value < 0.02)
    assert np.mean(claimed) < 0.2


def test_deciders_of_one_place_who_get_different_people_or_test_unequally_are_told_apart():
    for seed in range(3):
        problem = nested(seed, apart=0.6, spread=0.6)
        names = [f"x{j}" for j in range(2)] + ["court"] * 6
        found = compare_deciders(problem, People.of(problem), *simple(problem), names)
        assert found.within == ("court",)
        assert found.mix.p_value < 1e-3
        assert found.mix_share > 0.05
        assert 0.03 < found.testing.deviation.low < 0.11 < found.testing.deviation.high


def test_deciders_whom_a_feature_tells_apart_cannot_be_compared():
    problem, _ = world(3)
    age = 40.0 + problem.decider  # of each decider another
    alone = SelectiveLabels.from_arrays(
        np.column_stack([problem.X, age]), problem.y_obs, decider=problem.decider
    )
    found = compare_deciders(alone, People.of(alone), *simple(alone), ["a", "b", "age"])
    assert found == "no two deciders have the same age: to compare them, leave that out"


def test_a_decider_alone_at_a_place_is_not_compared():
    """There is nobody to be stricter than, and an effect of zero would say that it was looked."""
    problem, _ = world(3)
    ward = np.minimum(problem.decider // 3, 2) + (problem.decider == 7)  # 012, 345, 6 and 7
    apart = replace(problem, X=np.column_stack([problem.X, ward]), feature_names=("a", "b", "ward"))
    found = compare_deciders(apart, People.of(apart), *simple(problem))
    assert found.within == ("ward",)
    assert {effect.decider for effect in found.effects} == {f"clinic {code}" for code in range(6)}
    assert found.number == 6
    assert found.left_out == pytest.approx(np.mean(problem.decider > 5))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("whom", ["decider", "group"])
def test_rows_of_weight_zero_are_nobodys(whom):
    problem, _ = world(3)
    counts = getattr(problem, whom) != 0
    testing, risk = simple(problem)
    weighted = replace(problem, weight=counts.astype(float))
    found = compare_deciders(weighted, People.of(weighted), testing, risk)
    some = problem.subset(counts)
    alone = compare_deciders(some, People.of(some), testing[counts], risk[counts])
    assert found.number == alone.number
    assert found.testing.deviation.value == pytest.approx(alone.testing.deviation.value)
    assert found.mix.p_value == pytest.approx(alone.mix.p_value, abs=0.01)


def test_deciders_alone_at_their_place_are_neither_strict_nor_lenient():
    """A model that knows the place leaves nothing over there: what it leaves elsewhere is noise."""
    rng = np.random.default_rng(0)
    n = 2400
    who = rng.integers(12, size=n)
    place = np.maximum(who - 3, 0)  # four work at the first place, each other alone
    tested = rng.random(n) < 0.5
    problem = SelectiveLabels.from_arrays(
        (place[:, None] == np.arange(9)).astype(float),
        np.where(tested, rng.random(n) < 0.3, np.nan),
        decider=[f"{code:02d}" for code in who],
    )
    fold = np.arange(n) % 3
    rates = [
        np.bincount(place[fold != part], tested[fold != part])[place]
        / np.bincount(place[fold != part])[place]
        for part in range(3)
    ]
    levels, _ = iv.decider_levels(problem, fold, np.array(rates)[fold, np.arange(n)])
    for part, level in levels.items():
        assert len(np.unique(level[(who > 3) & (fold == part)])) == 1
