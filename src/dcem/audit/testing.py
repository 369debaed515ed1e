"""Who is tested: crude rates, and rates at equal features.

*Crude* rates mix two things: that groups differ in their features, and that people with the same
features are treated differently. The second is what a disparity in testing means.

*At equal features* a group is compared with everybody else, or with the reference group where one
is named, over the features that both have (a group that differs only because another one stands out
is told apart, `differ_by_others`):
each person counts as much as the other side has people like them (overlap weights pi (1 - pi), with
pi the probability of belonging to the group given the features). Where only one side has people,
nothing can be compared, and nothing is: where the features determine the group there is no
difference at equal features, and the columns that do so are named
(`dcem.estimation.determined`). The estimand is the difference in testing rates averaged
over this shared population. It is estimated residual on residual: with e(x) the probability of
being tested and A, T for belonging to the group and being tested,

    difference = E[(T - e)(A - pi)] / E[(A - pi)^2].

It is right if the model of the group is. And it is orthogonal: small errors of the two models enter
as the square of the group model's and as the product of both, so that models that learn slowly do
little harm. That holds for the *difference*; each of the two rates beside it moves in proportion to
an error of the group model (both in the same direction), and is right if that model is.

It fails where a cause of testing is missing from the features and differs between groups; how
strong it would have to be is the first sensitivity analysis.

F. Li, K. L. Morgan and A. M. Zaslavsky, "Balancing covariates via propensity score weighting",
JASA 2018 (the population). P. M. Robinson, "Root-N-consistent semiparametric regression",
Econometrica 1988 (the estimate). J. D. Angrist, "Estimating the labor market impact of voluntary
military service", Econometrica 1998 (its weights where the difference depends on the features).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import nan

import numpy as np

from dcem.audit.results import CLEAR_P, TestingRate
from dcem.estimation.cross_fitting import FITTED_ROWS, draw_rows
from dcem.estimation.determined import (
    MOST_NAMED,
    because,
    is_determined,
    membership_by_level,
    membership_by_tree,
    who_tells,
)
from dcem.estimation.influence import (
    FEWEST_PEOPLE,
    FEWEST_TESTED,
    Comparison,
    People,
    Statistic,
    Z,
    against_others,
    kish,
    simultaneous,
)
from dcem.estimation.nuisance_learners import MOST_CLASSES
from dcem.estimation.nuisances import Nuisances
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels

REFERENCE = "the others are compared with it"
ANYTHING = 0.5  # half an interval: so wide, a difference of rates could be almost any
TOO_WIDE = "too few people of this group and of the others have the same features"
TIME = "(time)"
STAND_OUT = 0.45  # of the people, at most, are in groups that stand out from the rest
SET_ASIDE = 6  # and so many groups


def testing_rates(
    problem: SelectiveLabels,
    people: People,
    nuisances: Nuisances | None,
    sources: Sequence[str] | None = None,  # noqa: PT028
) -> tuple[TestingRate, ...]:
    """The rates of every group that has people; without models where testing does not vary.

    `sources` is the raw column of each feature.
    """
    masks = problem.by_group()
    pairs: dict[str, tuple[Statistic, Statistic]] = {}
    reasons: dict[str, str] = {}
    for name, mine in masks.items():
        reason = _why_not_comparable(problem, people, name, mine)
        if reason or nuisances is None or nuisances.membership is None:
            reasons[name] = reason or "testing does not vary"
    if nuisances is not None and nuisances.membership is not None:
        asked = [name for name in masks if name not in reasons]
        reasons |= determined_groups(problem, people, nuisances, asked, sources)
    for name, mine in masks.items():
        if name in reasons:
            continue
        assert nuisances is not None
        pair = _rates_under(nuisances, problem, people, name, mine)
        if isinstance(pair, str):
            reasons[name] = pair
        elif Z * people.error(pair[0] - pair[1]) >= ANYTHING:
            reasons[name] = TOO_WIDE
        else:
            pairs[name] = pair
    gaps = {name: here - there for name, (here, there) in pairs.items()}
    compared = against_others(people, gaps)
    beside: dict[str, tuple[str, ...]] = {}
    if problem.reference_group is None and nuisances is not None:

        def again(name: str, aside: Sequence[str]) -> Statistic | None:
            pair = _rates_under(nuisances, problem, people, name, masks[name], aside)
            return None if isinstance(pair, str) else pair[0] - pair[1]

        beside = differ_by_others(problem, people, compared, again)
    found = []
    for name, mine in masks.items():
        crude = people.proportion(problem.tested, mine)
        if name in reasons:
            none = Estimate(nan, reason=reasons[name])
            found.append(TestingRate(name, crude, none, none, none, none, nan))
            continue
        here, there = pairs[name]
        assert nuisances is not None
        found.append(
            TestingRate(
                group=name,
                crude=crude,
                equal=people.interval(here).clipped(),
                others=people.interval(there).clipped(),
                difference=compared[name].value.clipped(-1.0),
                ratio=people.ratio(here, there),
                p_value=compared[name].p_value,
                each={
                    kind: people.interval(pair[0] - pair[1]).clipped(-1.0)
                    for kind, models in nuisances.each.items()
                    if not isinstance(
                        pair := _rates_under(models, problem, people, name, mine), str
                    )
                },
                beside=beside.get(name, ()),
            )
        )
    return tuple(found)


def determined_groups(
    problem: SelectiveLabels,
    people: People,
    models: Nuisances,
    asked: Sequence[str],
    sources: Sequence[str] | None = None,
) -> dict[str, str]:
    """Which of the groups `asked` the features determine, and the reason with the columns.

    The others are those with whom `compared_people` compares a group.
    """
    assert models.membership is not None
    members = [models.membership]
    members += [one.membership for one in models.each.values() if one.membership is not None]
    X, names = problem.X, list(problem.feature_names if sources is None else sources)
    if problem.moment is not None:
        X, names = np.column_stack([X, problem.moment]), [*names, TIME]
    rng = np.random.default_rng(0)
    rows = draw_rows(np.flatnonzero(people.weight > 0), FITTED_ROWS, rng)
    fold = rng.permutation(int(problem.person.max()) + 1)[problem.person] % 2
    if problem.n_groups > MOST_CLASSES and asked:  # the models above are lines
        members.append(membership_by_tree(X, problem.group, fold, problem.n_groups, rows))
    by_level = {  # levels too rare to be features may tell the group: a ward tells the hospital
        column: membership_by_level(codes, problem.group, fold, problem.n_groups, people.weight)
        for column, codes in problem.raw_levels.items()
    }
    found: dict[str, str] = {}
    known: dict[str, None] = {}  # columns that determine some group
    for name in asked:
        mine = problem.group == problem.group_names.index(name)
        some, both = both_sides(problem, people, name)
        raw = [c for c, one in by_level.items() if is_determined(some, mine, [share_of(one, both)])]
        if raw:
            found[name] = because(raw[:MOST_NAMED])
        elif is_determined(some, mine, [share_of(one, both) for one in members]):
            columns = who_tells(X, names, some, mine, tuple(known))
            known |= dict.fromkeys(columns)
            found[name] = because(columns)
    return found


def differ_by_others(
    problem: SelectiveLabels,
    people: People,
    compared: Mapping[str, Comparison],
    again: Callable[[str, Sequence[str]], Statistic | None],
) -> dict[str, tuple[str, ...]]:
    """Groups that differ only because others stand out, and which these are.

    Beside one group that is tested often, all others seem tested seldom. So the group that differs
    most is set aside, the rest are compared with each other, and so on until none of them differs
    clearly. Those set aside are the smaller part: from a group that most people belong to, the
    others differ. Of groups with fewer than ten tested or untested people nothing is told. `again`
    returns the difference of a group from the rest, without the groups set aside.
    """
    masks = problem.by_group()
    clear = {name: one for name, one in compared.items() if one.p_value < CLEAR_P}
    share = {
        name: float(people.weight[masks[name]].sum() / people.weight.sum())
        for name in clear
        if min(people.count(masks[name] & who) for who in (problem.tested, ~problem.tested))
        >= FEWEST_TESTED
    }
    left, aside = clear, list[str]()
    while len(compared) - len(aside) > 2 and len(aside) < SET_ASIDE:
        room = STAND_OUT - sum(share[name] for name in aside)
        apart = [n for n, one in left.items() if one.p_value < CLEAR_P and share.get(n, 1) <= room]
        if not apart:
            break
        aside.append(max(apart, key=lambda name: abs(left[name].value.value)))
        gaps = {name: again(name, aside) for name in clear if name not in aside}
        left = against_others(people, {n: gap for n, gap in gaps.items() if gap is not None})
    if any(one.p_value < CLEAR_P for one in left.values()):
        return {}  # the rest are not alike
    return {
        name: tuple(aside)
        for name, one in left.items()
        for before in [clear[name].simultaneous]  # what is left would not have been clear there:
        if 2 * abs(one.value.value) < before.high - before.low  # not for want of people alone
    }


def _rates_under(
    models: Nuisances,
    problem: SelectiveLabels,
    people: People,
    name: str,
    mine: np.ndarray,
    aside: Collection[str] = (),
) -> tuple[Statistic, Statistic] | str:
    some, testing, member = compared_people(problem, people, models, name, aside)
    if is_determined(some, mine, [member]):
        return because(())
    return equal_features(some, mine, problem.tested, testing, member)


def compared_people(
    problem: SelectiveLabels,
    people: People,
    models: Nuisances,
    name: str,
    aside: Collection[str] = (),
) -> tuple[People, np.ndarray, np.ndarray]:
    """Whom a group is compared in (itself and the others), P(tested | x) and P(group | x) there.

    The others are everybody else who is not in a group set `aside`, or the reference group where
    one is named.
    """
    assert models.testing_alone is not None
    assert models.testing_as is not None
    assert models.membership is not None
    if problem.reference_group is None and not aside:
        code = problem.group_names.index(name)
        return people, models.testing_alone, models.membership[:, code]
    some, both = both_sides(problem, people, name, aside)
    share = models.membership[:, both]
    testing = (share * models.testing_as[:, both]).sum(axis=1) / share.sum(axis=1)
    return some, testing, share_of(models.membership, both)


def both_sides(
    problem: SelectiveLabels, people: People, name: str, aside: Collection[str] = ()
) -> tuple[People, list[int]]:
    """A group and those it is compared with: the people, and the codes, its own first."""
    reference = problem.reference_group
    every = [reference] if reference is not None else problem.group_names
    others = [problem.group_names.index(one) for one in every if one not in (name, *aside)]
    both = [problem.group_names.index(name), *others]
    return people.among(np.isin(problem.group, both)), both


def share_of(membership: np.ndarray, both: Sequence[int]) -> np.ndarray:
    """P(the first of these groups | x, one of them) [n]."""
    total = membership[:, both].sum(axis=1)
    return np.divide(membership[:, both[0]], total, out=np.full(len(total), 0.5), where=total > 0)


def equal_features(
    people: People, mine: np.ndarray, tested: np.ndarray, testing: np.ndarray, member: np.ndarray
) -> tuple[Statistic, Statistic] | str:
    """Testing rates of a group and of the others over their shared features, or why there is none.

    With h = pi (1 - pi): everybody's rate under h, plus what each side is tested beyond what its
    features suggest. Both surpluses are per E[(A - pi)^2], which is E[h] if pi is right; their
    difference then is the residual-on-residual estimate.
    """
    here, there = mine * (1 - member), ~mine * member
    for side, who in ((here, "its own people"), (there, "other people")):
        if kish((people.weight * side)[side > 0]) < FEWEST_PEOPLE:
            return f"hardly any of {who} have features that occur in both groups"
    common = people.mean(tested.astype(float), member * (1 - member))
    spread = (mine - member) ** 2
    total, found = people.weight @ spread, []
    for place, side in enumerate((here, there)):
        surplus = people.quotient((tested - testing) * side, spread)
        hidden = people.hidden_error(surplus, people.weight * side / total, tested, testing)
        rate = common + surplus.plus(hidden * np.eye(2)[place])
        # a rate is a share, and the difference is that of the rates that are shown
        found.append(Statistic(float(np.clip(rate.value, 0, 1)), rate.influence))
    return found[0], found[1]


def missing_by_testing(
    problem: SelectiveLabels, people: People, sources: Sequence[str]
) -> dict[str, Estimate]:
    """Share missing among the tested minus among the untested, of every raw column with gaps.

    Intervals hold for all columns together; columns with under ten rows on a side are left out.
    A column that is filled in where people are tested is a trace of the decision, whatever its
    values say.
    """
    gaps = {}
    for number, source in enumerate(sources):
        missing = np.isnan(problem.X[:, number]).astype(float)
        cells = 2 * problem.tested + missing.astype(int)
        # a share would give a count away
        few = any(0 < people.count(cells == cell) < FEWEST_TESTED for cell in range(4))
        if missing.any() and not few and source not in gaps:
            among = people.mean(missing, problem.tested), people.mean(missing, ~problem.tested)
            gaps[source] = among[0] - among[1]
    return {source: one.simultaneous for source, one in simultaneous(people, gaps).items()}


def others(problem: SelectiveLabels, mine: np.ndarray) -> np.ndarray:
    """Whom a group is compared with [n]: everybody else, or the reference group."""
    if problem.reference_group is None:
        return ~mine
    return problem.group == problem.group_names.index(problem.reference_group)


def _why_not_comparable(
    problem: SelectiveLabels, people: People, name: str, mine: np.ndarray
) -> str:
    if name == problem.reference_group:
        return REFERENCE
    there = others(problem, mine)
    elsewhere = "outside the group" if problem.reference_group is None else "in the reference group"
    for side, who in ((mine, "in the group"), (there, elsewhere)):
        number = people.count(side)
        if number < FEWEST_PEOPLE:
            return f"fewer than {FEWEST_PEOPLE} people {who}"
    return ""
