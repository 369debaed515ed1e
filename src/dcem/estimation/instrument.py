"""The decider as an instrument: what can be said of everybody without features explaining testing.

Deciders see more than the table does, and test whom they think at risk: then no model of the
features makes the tested represent the untested. But if, at equal features, chance says *who
decides*, everybody's risk at x is the same under every decider z, and each of them bounds it:

    P(tested positive | x, z)  <=  P(y = 1 | x)  <=  1 - P(tested negative | x, z).

The largest of the lower ends and the smallest of the upper ends hold as well (Manski 1990; for a
binary outcome nothing sharper follows, whatever the deciders' minds are: `tests/estimation` solves
the linear programme of Balke and Pearl). A decider who tests nearly everybody makes them meet.

*No favourite of chance.* The largest of several noisy ends is too large. Here the decider is chosen
at each x by models fitted to other people, s(x), and the end is then estimated among these people:
for *any* choice E[P(tested positive | x, s(x))] <= P(y = 1), so the bound holds whether or not the
choice was the best, and only its width pays for a bad one (Ji, Lei and Spector 2023; Levis et al.
2023). Each end is doubly robust, the mean of

    f_s(x) + 1{z = s} / P(z = s | x) * (y t - f_s(x)),    f_z(x) = P(tested positive | x, z),

with a normal interval, and the outer limits of both ends hold the truth 95 times in 100. Where
tests err, y is its unbiased stand-in, and what is uncertain about the stated rates moves both ends.

Many deciders are taken together in *levels*, from those who test little to those who test much, by
what they do to other people than the one at hand.

C. Manski, "Nonparametric bounds on treatment effects", AER 1990; A. Balke and J. Pearl, "Bounds on
treatment effects from studies with imperfect compliance", JASA 1997; W. Ji, L. Lei and A. Spector,
"Model-agnostic covariate-assisted inference on partially identified causal effects", 2023; A. Levis
et al., "Covariate-assisted bounds on causal effects with instrumental variables", JRSS-B 2025.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf
from typing import Any

import numpy as np

from dcem.estimation.cross_fitting import MIXED, Features, cross_fit
from dcem.estimation.deciders import comparable_deciders, decider_places
from dcem.estimation.outcomes import (
    Moved,
    at_other_rates,
    seen_outcomes,
    true_risk,
)
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError
from dcem.text import percent

DECIDERS_ASSUMPTION = "At equal features, who decides has nothing to do with the outcome"
MOST_LEVELS = 5  # that many deciders are taken together in
MOST_ALONE = 8  # deciders who are levels of their own
ROWS_PER_LEVEL, TESTS_PER_LEVEL = 300, 50
LEAST_CHANCE = 0.03  # of a level at given features; under it nobody there represents such people
ENOUGH = 0.9  # share of people on whom a level could have decided, to represent everybody
LEVELS = {
    2: ("fewer tests", "more tests"),
    3: ("fewest tests", "middle", "most tests"),
    4: ("fewest tests", "fewer tests", "more tests", "most tests"),
    5: ("fewest tests", "fewer tests", "middle", "more tests", "most tests"),
}


@dataclass(frozen=True)
class Ends:
    """The least and the most that a number can be; the truth is between their outer limits."""

    low: Estimate
    high: Estimate

    @property
    def width(self) -> float:
        """From one end to the other."""
        return self.high.value - self.low.value


@dataclass(frozen=True, eq=False)
class Instrument:
    """Levels of deciders, and what each of them would find in every row; all out of fold."""

    names: tuple[str, ...]  # of the levels, from the fewest tests to the most
    level: np.ndarray  # [n] of the row's decider, -1 where there is none to speak of
    chance: np.ndarray  # [n, levels] P(level | x, a)
    found: np.ndarray  # [n, levels] P(tested positive | x, a, level)
    cleared: np.ndarray  # [n, levels] P(tested negative | x, a, level)
    tested: np.ndarray  # [n]
    y: np.ndarray  # [n] the outcome of the tested, 0 of others
    moved: tuple[Moved, ...] = ()  # by the stated rates of a test

    @property
    def within(self) -> np.ndarray:
        """Whether a level could have decided on such people [n, levels]."""
        best = self.chance.max(axis=1, keepdims=True)
        return self.chance >= np.minimum(LEAST_CHANCE, best)

    @property
    def lacking(self) -> tuple[str, ...]:
        """Of each level, why it does not represent everybody, or an empty text."""
        reach = self.within.mean(axis=0)
        return tuple(
            "" if share >= ENOUGH else f"could have decided on only {percent(share)} of people"
            for share in reach.tolist()
        )

    @cached_property
    def stands_for(self) -> np.ndarray:
        """How many people each row of a level represents [n, levels]; 0 beyond reach."""
        mine = (self.level[:, None] == np.arange(len(self.names))) & self.within
        inverse = np.where(mine, 1 / np.maximum(self.chance, 1e-6), 0.0)
        mean = inverse.sum(axis=0) / np.maximum(self.within.sum(axis=0), 1)
        return inverse / np.where(mean > 0, mean, 1)

    @cached_property
    def finds(self) -> np.ndarray:
        """Pseudo-outcomes [n, levels]: on average what each level finds positive."""
        seen = self.tested * self.y
        return np.asarray(self.found + self.stands_for * (seen[:, None] - self.found))

    @cached_property
    def clears(self) -> np.ndarray:
        """Pseudo-outcomes [n, levels]: on average what each level finds negative."""
        seen = self.tested * (1 - self.y)
        return np.asarray(self.cleared + self.stands_for * (seen[:, None] - self.cleared))

    @cached_property
    def least(self) -> np.ndarray:
        """Pseudo-outcomes [n] whose mean is at most that of the truth, among any people."""
        return self._at(self.finds, self.found)

    @cached_property
    def most(self) -> np.ndarray:
        """Pseudo-outcomes [n] whose mean is at least that of the truth, among any people."""
        return 1 - self._at(self.clears, self.cleared)

    def _at(self, values: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Of each row at the level of which most is expected [n]."""
        best = np.where(self.within, expected, -inf).argmax(axis=1)
        return values[np.arange(len(best)), best]

    def without_deciders(self) -> Instrument:
        """All deciders taken together: its ends are those of results alone, of no assumption."""
        rows = len(self.level)
        return replace(
            self,
            names=("everybody who decides",),
            level=np.zeros(rows, int),
            chance=np.ones((rows, 1)),
            found=np.zeros((rows, 1)),  # whatever it is: each row represents itself
            cleared=np.zeros((rows, 1)),
            moved=tuple(one.map(Instrument.without_deciders) for one in self.moved),
        )

    @property
    def predicted(self) -> tuple[np.ndarray, np.ndarray]:
        """Both ends at each row's features, as the models have them [n]."""
        low = np.where(self.within, self.found, -inf).max(axis=1)
        high = 1 - np.where(self.within, self.cleared, -inf).max(axis=1)
        return low, high


def fit_instrument(
    problem: SelectiveLabels,
    fold: np.ndarray,
    testing: np.ndarray,
    random_state: int | np.random.Generator = 0,
    **models: Any,
) -> Instrument | None:
    """Who decides, and what is found under whom; None if deciders cannot be distinguished.

    Parameters
    ----------
    problem
        The rows, with their deciders.
    fold
        The fold of each row [n]; a person's rows in one fold.
    testing
        P(tested | x, a) of each row [n], out of fold, of a model that knows no decider.
    random_state, models
        As for `fit_nuisances`.
    """
    seen_from, names = decider_levels(problem, fold, testing)
    if len(names) < 2:
        return None
    member = problem.group[:, None] == np.arange(problem.n_groups)
    X = problem.X if problem.n_groups < 2 else np.concatenate([problem.X, member], axis=1)
    shown = np.where(problem.tested, 1 + problem.y_imputed, 0)  # untested, negative, positive
    level = np.full(len(problem), -1)
    chance, tested, results = (np.empty((len(problem), len(names))) for _ in range(3))
    alone = len(seen_from) == 1  # then levels are the same, whichever fold is left out
    rng = np.random.default_rng(random_state)
    fit: Any = partial(cross_fit, problem, fold=fold, random_state=rng, **models)
    for part, seen in seen_from.items():
        rows = np.flatnonzero(np.ones(len(problem), bool) if alone else fold == part)
        own = np.maximum(seen, 0)
        known = Features(X, own, len(names))
        which: dict[str, Any] = {"among": seen >= 0, "only": None if alone else part}
        finds = fit("what deciders find", known, shown, n_classes=3, **which)
        decides = fit("who decides", Features(X), own, n_classes=len(names), **which)
        level[rows], chance[rows] = seen[rows], decides.at(Features(X))[MIXED][rows]
        for code in range(len(names)):
            each = finds.at(known.as_group(code))[MIXED][rows]
            tested[rows, code], results[rows, code] = each[:, 1] + each[:, 2], each[:, 2]

    def at(problem: SelectiveLabels) -> Instrument:
        risk = [true_risk(problem, one) for one in (results / tested).T]
        found = tested * np.stack(risk, axis=1)
        seen = problem.tested.astype(float), seen_outcomes(problem)
        return Instrument(names, level, chance, found, tested - found, *seen)

    made = replace(at(problem), moved=at_other_rates(problem, at))
    return made if made.within.any(axis=0).sum() > 1 else None


def decider_levels(
    problem: SelectiveLabels, fold: np.ndarray, testing: np.ndarray
) -> tuple[dict[int, np.ndarray], tuple[str, ...]]:
    """The level of each row's decider [n], -1 for none, and the levels' names, the fewest first.

    A few deciders are levels of their own. Many are taken together by how much more they test than
    features predict: once for each fold, counted among people outside it, so that nothing that is
    learnt to speak of a fold rests on it; and of those outside it, each by the tests of others.
    """
    if problem.decider is None:
        raise InputError("No column says who decided. Name one as `decider`.")
    some = comparable_deciders(problem)
    weight = problem.weights
    left = weight * (problem.tested - testing)
    number = len(problem.decider_names)
    code = problem.decider
    inside = np.isin(code, some)
    most = min(
        MOST_ALONE,
        int(inside.sum()) // ROWS_PER_LEVEL,
        int((inside & problem.tested).sum()) // TESTS_PER_LEVEL,
        int((inside & ~problem.tested).sum()) // TESTS_PER_LEVEL,
    )
    if len(some) < 2 or most < 2:
        return {}, ()

    place = np.zeros(number, int)
    place[some] = decider_places(problem, some, problem.feature_names)[0]

    def lenience(rows: np.ndarray) -> np.ndarray:
        # Beyond the mean of the place: what a model that knows the place leaves there is noise.
        size = np.bincount(code[rows], weight[rows], number)
        more = np.bincount(code[rows], left[rows], number)
        mean = np.bincount(place, more) / np.maximum(np.bincount(place, size), 1e-9)
        return np.round((more - size * mean[place]) / (size + size[some].mean() / 10), 9)

    if len(some) <= most:
        order = some[np.argsort(lenience(inside)[some])]
        level = np.full(number + 1, -1)
        level[order] = np.arange(len(order))
        return {-1: level[code]}, tuple(problem.decider_names[one] for one in order)
    most = min(most, MOST_LEVELS)
    share = np.random.default_rng(0).permutation(int(problem.person.max()) + 1)[problem.person] % 10
    found = {}
    for part in np.unique(fold).tolist():
        others = inside & (fold != part)
        level = np.full(len(problem), -1)
        for mine, rows in (
            (inside & (fold == part), others),
            *((others & (share == one), others & (share != one)) for one in range(10)),
        ):
            tests = lenience(rows)[code]
            cuts = np.quantile(tests[rows], np.arange(1, most) / most)
            level[mine] = np.searchsorted(cuts, tests[mine], side="right")
        found[part] = level
    return found, LEVELS[most]
