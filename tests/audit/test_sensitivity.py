"""The sensitivity analyses recover a planted confounder of known strength."""

import numpy as np
import pytest
from choices import linear
from scipy.special import expit, logit

from dcem import metrics
from dcem.audit import audit_labels
from dcem.audit.performance import performance_sensitivity
from dcem.audit.unmeasured import largest_bias, robustness_value
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.influence import People
from dcem.estimation.nuisances import Nuisances
from dcem.estimation.outcomes import Unseen
from dcem.estimation.ranking import RankedScore
from dcem.table.labels import SelectiveLabels

from .conftest import make_world


@pytest.mark.parametrize("gamma", [0.3, 1.0, 3.0])
def test_the_right_odds_ratio_gives_the_right_answer(gamma) -> None:
    """With the true models, prevalence and AUC at the planted odds ratio are the truth."""
    world = make_world(40_000, seed=4, gamma=gamma, disparity=-0.5)
    problem, people = world.problem, People.of(world.problem)
    unseen = Unseen.of(problem, world.risk, world.testing)
    found = people.interval(people.mean(unseen.outcomes(gamma)))
    assert found.low < world.truth.mean() < found.high
    assert found.high - found.low < 0.03
    ranked = RankedScore(world.risk, people.weight)
    for code in range(3):
        mine = (problem.group == code) * 1.0
        auc = people.interval(ranked.auc(unseen.outcomes(gamma), mine))
        truth = metrics.auc(world.truth[mine > 0], world.risk[mine > 0])
        assert auc.low < truth < auc.high
    if gamma != 1:  # and the usual assumption misses it
        usual = people.interval(people.mean(unseen.outcomes(1.0)))
        assert usual.excludes(world.truth.mean())


def test_outcomes_are_the_augmented_estimate_at_one(unfair) -> None:
    p, e, mu = unfair.problem, unfair.testing, unfair.risk
    unseen = Unseen.of(p, mu, e)
    size, stood_for = np.bincount(p.group), np.bincount(p.group, p.tested / e)
    stands_for = (size / stood_for)[p.group] * p.tested / e  # together, for all of the group
    expected = mu + stands_for * (p.y_imputed - mu)
    assert np.allclose(unseen.outcomes(1.0), expected)


def test_limits_assume_nothing(unfair) -> None:
    p = unfair.problem
    unseen = Unseen.of(p, unfair.risk, unfair.testing)
    assert unseen.outcomes(0.0).mean() == pytest.approx(p.y_imputed.mean())
    assert unseen.outcomes(np.inf).mean() == pytest.approx((p.y_imputed + ~p.tested).mean())


def test_auc_of_hard_labels_is_the_auc() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    score = np.round(rng.normal(size=300) + y, 1)  # ties
    ranked = RankedScore(score, np.ones(300))
    found = ranked.auc(y.astype(float), np.ones(300))
    assert found.value == pytest.approx(metrics.auc(y, score))
    assert found.influence.sum() == pytest.approx(0, abs=1e-12)


def test_the_adversary_finds_the_extreme() -> None:
    """No assignment of the unseen labels beats it, on a table small enough to try them all."""
    rng = np.random.default_rng(1)
    n = 11
    score, y = rng.permutation(n).astype(float), rng.integers(0, 2, n).astype(float)
    unseen = np.array([0, 2, 3, 5, 6, 8, 10])
    low, high = y.copy(), y.copy()
    low[unseen], high[unseen] = 0.0, 1.0
    ranked = RankedScore(score, np.ones(n))
    every = []
    for code in range(2 ** len(unseen)):
        labels = y.copy()
        labels[unseen] = (code >> np.arange(len(unseen))) & 1
        if 0 < labels.sum() < n:
            every.append(metrics.auc(labels, score))
    for up, extreme in ((True, max(every)), (False, min(every))):
        labels = ranked.adversary(low, high, np.ones(n), up)
        assert ranked.auc(labels, np.ones(n)).value == pytest.approx(extreme)


def test_breakdown_of_a_difference_in_auc() -> None:
    """The range holds the difference at every odds ratio inside it, and zero from breakdown on."""
    world = make_world(20_000, seed=8)
    problem = world.problem
    # A score that is noise in group b: the difference is large, and needs much to be explained.
    rng = np.random.default_rng(0)
    noise = np.where(problem.group == 1, rng.normal(size=len(problem)), logit(world.risk))
    judge = Evaluator(problem, nuisances=Nuisances(world.testing, world.risk))
    found = performance_sensitivity(judge, noise, "half noise")
    assert found.pair[1] == "b"
    assert 1 < found.breakdown.with_interval < found.breakdown.value
    inside = found.strength < found.breakdown.value
    assert (found.difference_range.low[inside] > 0).all()
    assert (found.difference_range.low[~inside] <= 0.01).all()
    for gamma, value in zip(found.gamma, found.difference.value, strict=True):
        strength = max(gamma, 1 / gamma)
        low = np.interp(strength, found.strength, found.difference_range.low)
        high = np.interp(strength, found.strength, found.difference_range.high)
        assert low - 0.01 <= value <= high + 0.01
    limit = found.difference.limits
    assert limit[0] < found.difference_range.low.min()
    assert limit[1] > found.difference_range.high.max()


def test_groups_are_compared_as_they_rank_if_features_explain_testing() -> None:
    """Who was tested ranks well in group a only if the untested count as negative."""
    world = make_world(20_000, seed=8)
    problem, rng = world.problem, np.random.default_rng(0)
    unlike = rng.normal(size=len(problem))
    scores = logit(world.testing) + unlike, -problem.X[:, 1] + unlike / 4, unlike
    score = np.choose(problem.group, scores)
    found = performance_sensitivity(
        Evaluator(problem, nuisances=Nuisances(world.testing, world.risk)), score, "mixed"
    )
    seen = {
        name: metrics.auc(np.nan_to_num(problem.y_obs)[mine], score[mine])
        for name, mine in problem.parts().items()
    }
    assert max(seen, key=seen.__getitem__) == "a"
    truth = {
        name: metrics.auc(world.truth[mine], score[mine]) for name, mine in problem.parts().items()
    }
    assert truth["b"] > truth["a"] > truth["c"]
    assert found.pair == ("b", "c")


def test_an_unmeasured_cause_of_testing_of_known_strength() -> None:
    """Group and testing share a cause that is not in the table. At its strength the bias bound
    takes away the whole difference, which is spurious."""
    from dcem.audit import audit_labels
    from dcem.table.labels import SelectiveLabels

    rng = np.random.default_rng(3)
    n = 20_000
    x, hidden = rng.normal(size=n), rng.normal(size=n)
    group = rng.random(n) < expit(0.3 * x + 0.7 * hidden)
    tested = rng.random(n) < expit(-0.5 + 0.5 * x - 0.7 * hidden)  # no effect of the group
    y = np.where(tested, rng.random(n) < expit(x), np.nan)
    found = audit_labels(
        SelectiveLabels.from_arrays(x[:, None], y, group=np.where(group, "b", "a")),
        learners=linear,
    ).testing_sensitivity
    assert found.group == "b"
    assert found.difference.high < -0.03
    ones = np.ones(n)

    def partial(target, *given) -> float:
        def left(columns):
            design = np.column_stack(columns)
            return target - design @ np.linalg.lstsq(design, target, rcond=None)[0]

        return 1 - left([*given, hidden]).var() / left(given).var()

    with_group = partial(group * 1.0, ones, x)
    with_testing = partial(tested * 1.0, ones, x, group)
    strength = np.interp(0.05, found.strength, found.high - found.difference.value)
    scale = strength / largest_bias(0.05, 0.05)
    bias = scale * largest_bias(with_group, with_testing)
    assert bias == pytest.approx(abs(found.difference.value), abs=0.02)
    r = found.breakdown.value
    assert min(with_group, with_testing) <= r + 0.01 <= max(with_group, with_testing) + 0.05


def test_robustness_value_solves_its_equation() -> None:
    for f in (0.01, 0.2, 1.0):
        r = robustness_value(f)
        assert largest_bias(r, r) == pytest.approx(f)


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_reason_where_nobody_untested_is_within_reach(share) -> None:
    """The decision itself among the features: whoever is within reach of the tests was tested."""
    rng = np.random.default_rng(0)
    tested = rng.random(600) < share
    label = np.where(tested, rng.random(600) < 0.4, np.nan)
    features = np.stack([tested, rng.normal(size=600)], axis=1)
    problem = SelectiveLabels.from_arrays(features, label)
    found = audit_labels(problem, learners=linear).prevalence_sensitivity
    assert np.isnan(found.breakdown.value)
    assert found.breakdown.reason


@pytest.mark.filterwarnings("ignore::dcem.table.messages.DataWarning")
def test_conclusions_are_of_groups_that_can_be_estimated() -> None:
    """One person, and a group in which nobody was found: neither is the best nor the worst."""
    rng = np.random.default_rng(0)
    n = 900
    group = rng.choice(["a", "b", "clear"], n, p=[0.5, 0.4, 0.1])
    group[0] = "alone"
    x = rng.normal(size=n)
    tested = (rng.random(n) < 0.5) | (group == "alone")
    ill = (rng.random(n) < 1 / (1 + np.exp(-x))) & ~np.isin(group, ["clear", "alone"])
    problem = SelectiveLabels.from_arrays(x[:, None], np.where(tested, ill, np.nan), group=group)
    audit = audit_labels(problem, learners=linear)
    assert {item.group: item for item in audit.prevalence}["alone"].doubly_robust.reason
    for found in (audit.prevalence_sensitivity, audit.performance_sensitivity):
        assert "clear" not in found.breakdown.conclusion
        assert "alone" not in found.breakdown.conclusion
    assert set(audit.performance_sensitivity.pair) == {"a", "b"}
    for curves in (audit.prevalence_sensitivity.curves, audit.performance_sensitivity.auc):
        assert curves["clear"].reason
        assert np.isnan(curves["clear"].value).all()
