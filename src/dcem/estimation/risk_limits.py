"""The ends of a person's risk interval, learnt so that new people get them from features alone.

`dcem.estimation.bounds` says what the ends are, given who is tested, e(x), and what a test would
show, m(x). Both are learnt here by linear models, boosted trees and small networks, mixed, on parts
of the people, so that everybody has predictions by models that have not seen them. Ends that are
simply computed from e and m inherit the errors of both. So each end is learnt (a *DR-learner*:
Kennedy 2023; Rambachan, Coston and Kennedy 2022): its efficient pseudo-outcome

    phi = y, or h(m, g) if untested,  + (1 - e) / e  h'(m, g) (y - m) if tested

has the end as its mean given x, up to errors of second order in e and m (`Unseen`). It is
regressed on the features, log-odds starting from those of the computed end:

    logit end(x) = logit(e m + (1 - e) h(m, g)) + b_g p(x).

The quasi-likelihood of a logistic regression is convex in b although phi leaves 0 and 1, and b = 0
where the models are right.

An interval that ends where the ends are estimated to be misses half of the people whose risk is at
an end. So each is moved outwards by 1.96 standard errors, of two parts: the covariance of b, a
person's rows taken together (Semenova and Chernozhukov 2021), and how far the models of m disagree
about this person (Buckland, Burnham and Augustin 1997). The second is a sign, not a proof: how
far all of them are off where the risk bends in a way that none has learnt, no table can tell.

Ends are learnt at a grid of odds ratios and interpolated in their logarithm. New people get the
mean of the models of all parts.

*If tests err*, the models of m learn the truth behind the results, and y in phi is its unbiased
stand-in. *If a prevalence is known*, strengths count from the odds ratio that meets it: in phi from
that of the person's group, in the computed end from the mean over people. What is uncertain about
either moves phi, and so b: one more part of its covariance (`outcomes.Moved`).

E. Kennedy, "Towards optimal doubly robust estimation of heterogeneous causal effects", Electronic
Journal of Statistics 2023. V. Semenova and V. Chernozhukov, "Debiased machine learning of
conditional average treatment effects and other causal functions", Econometrics Journal 2021. S.
Buckland, K. Burnham and N. Augustin, "Model selection: an integral part of inference", Biometrics
1997.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
from scipy.special import expit, logit

from dcem import learners
from dcem.estimation import conformal
from dcem.estimation.bounds import LARGEST_STRENGTH, risk_interval
from dcem.estimation.cross_fitting import best_mixture, in_random_order
from dcem.estimation.folds import person_folds
from dcem.estimation.influence import (
    FEWEST_PEOPLE,
    FEWEST_TESTED,
    Z,
    clustered_covariance,
    logistic,
)
from dcem.estimation.nuisances import truncated
from dcem.estimation.outcomes import Unseen, mean_rates
from dcem.learners.preprocess import Preprocessor
from dcem.table.imperfect import result_probability
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError

KINDS = ("linear", "boost", "perceptron")
FOLDS = 3
MOST_ROWS = 50_000  # that are learnt from
MOST_TERMS = 40  # columns that correct an end; of wider tables those that residuals know most of
HELD_OUT = 0.2  # of the rows of a model, by which it is stopped
STEPS = np.linspace(
    -log(LARGEST_STRENGTH), log(LARGEST_STRENGTH), 9
)  # log odds ratios at which ends are learnt
FROM_ONE = np.linspace(0, log(LARGEST_STRENGTH), 5)  # those of them that are strengths
PENALTY = 1e-3  # per row, on the corrections
FARTHEST = 4.0  # standard deviations beyond which a column corrects no more
CLIP = 1e-4
# Arrays of `LearntEnds`.
NUMBERS = ("terms", "center", "scale", "coefficients", "covariance", "cuts")


@dataclass(frozen=True)
class Head:
    """Models of one probability, of every part of the people, mixed."""

    models: tuple[tuple[Any, ...], ...]  # [parts][kinds]
    shares: np.ndarray  # [kinds]

    def ask(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log-odds [n] on average over all parts, and the variance between models [n]."""
        each = np.stack([[one.predict_logit(X) for one in models] for models in self.models])
        p = np.clip(expit(each), CLIP, 1 - CLIP)  # [parts, kinds, n]
        mixed = logit(np.tensordot(self.shares, p, (0, 1))).mean(axis=0)
        apart = np.tensordot(self.shares, (logit(p) - mixed) ** 2, (0, 1)).mean(axis=0)
        return mixed, apart


# Log-odds of the outcome, how far models disagree about them, log-odds of a test; terms.
Predictions = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class LearntEnds:
    """What gives new people a risk interval at any strength, and a set of outcomes."""

    testing: Head
    outcome: Head
    preprocessor: Preprocessor
    terms: np.ndarray  # [t] columns of the preprocessor that correct an end
    center: np.ndarray  # [2] of the log-odds of outcome and testing, and their scale
    scale: np.ndarray
    coefficients: np.ndarray  # [steps, 3 + t]
    covariance: np.ndarray  # [steps, 3 + t, 3 + t]
    # of conformal sets [1 + groups, 1 + steps from 1 on, 2]: of all people together, then of each
    # group; for the tested, then for everybody at each strength
    cuts: np.ndarray
    group_names: tuple[str, ...] = ()
    tilt: float = 1.0  # the odds ratio that a strength counts from

    def interval(self, X: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest risk of people with these features [n, d].

        Ends are learnt at the steps, and interpolated in between; that of a larger strength never
        lies within that of a smaller one, whatever the errors of both.
        """
        return self.limits(X, gamma)[:2]

    def sets(
        self, X: np.ndarray, gamma: float | None, group: np.ndarray | None = None
    ) -> np.ndarray:
        """Places in `conformal.SETS` [n]: for everybody at a strength, or (None) for the tested.

        `group` [n] are places in `group_names`, -1 where it is not known: sets are then made by
        all people together, and hold the outcome as often over all groups, not in each.
        """
        return self._sets(self._ask(X), gamma, group)

    def limits(
        self, X: np.ndarray, gamma: float, group: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Both `interval` and `sets`."""
        asked = self._ask(X)
        m, apart, e, p = asked
        last, part = _between(gamma)
        ends = []
        for side in (-1, 1):
            reach = [
                side * self._end(m, e, p, side * step)
                + Z * np.sqrt(self._variance(p, side * step) + apart)
                for step in FROM_ONE[: last + 1]
            ]
            outwards = np.maximum.accumulate(reach)
            ends.append(side * (part * outwards[last] + (1 - part) * outwards[last - 1]))
        return expit(ends[0]), expit(ends[1]), self._sets(asked, gamma, group)

    def _sets(
        self, asked: Predictions, gamma: float | None, group: np.ndarray | None
    ) -> np.ndarray:
        m, _, e, p = asked
        at = self.cuts[:, 0]
        if gamma is not None:
            last, part = _between(gamma)
            at = (1 - part) * self.cuts[:, last] + part * self.cuts[:, last + 1]
        known = np.zeros(len(m), np.int64) if group is None else group + 1
        return conformal.sets(expit(self._end(m, e, p, 0.0)), at[known].T)

    def _ask(self, X: np.ndarray) -> Predictions:
        (m, apart), (e, _) = self.outcome.ask(X), self.testing.ask(X)
        return m, apart, e, self._terms(X, m, e)

    def _terms(self, X: np.ndarray, m: np.ndarray, e: np.ndarray) -> np.ndarray:
        """What corrects an end [n, 3 + t]: a constant, both log-odds, columns."""
        heads = (np.stack([m, e], axis=1) - self.center) / self.scale
        columns = self.preprocessor.transform(X, "float64")[:, self.terms]
        p = np.clip(np.concatenate([heads, columns], axis=1), -FARTHEST, FARTHEST)
        return np.concatenate([np.ones((len(X), 1)), p], axis=1)

    def _end(self, m: np.ndarray, e: np.ndarray, p: np.ndarray, step: float) -> np.ndarray:
        """Log-odds of an end [n], at a step."""
        return _computed(m, e, step, self.tilt) + p @ self.coefficients[_place(step)]

    def _variance(self, p: np.ndarray, step: float) -> np.ndarray:
        """Of the correction of an end [n]."""
        found = np.einsum("ij,jk,ik->i", p, self.covariance[_place(step)], p)
        return np.maximum(found, 0.0)

    # -- files -----------------------------------------------------------------------------------

    def to_plain(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What it is, as JSON knows it, and its arrays."""
        arrays: dict[str, np.ndarray] = {}
        for name in NUMBERS:
            arrays[name] = np.ascontiguousarray(getattr(self, name))
        arrays |= {f"columns.{name}": one for name, one in self.preprocessor.arrays().items()}
        for head in ("testing", "outcome"):
            made: Head = getattr(self, head)
            arrays[f"{head}.shares"] = made.shares
            for number, models in enumerate(made.models):
                for model in models:
                    kind, own = learners.dump_learner(model)
                    arrays |= {f"{head}.{number}.{kind}.{name}": one for name, one in own.items()}
        described = {"parts": len(self.testing.models), "kinds": list(KINDS)}
        return {**described, "groups": list(self.group_names), "tilt": self.tilt}, arrays

    @classmethod
    def from_plain(
        cls, described: Mapping[str, Any], arrays: Mapping[str, np.ndarray], n_features: int
    ) -> LearntEnds:
        """The inverse of `to_plain`; ValueError where the arrays do not fit together."""

        def part(prefix: str) -> dict[str, np.ndarray]:
            return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}

        parts = described["parts"]
        if described["kinds"] != list(KINDS) or not isinstance(parts, int) or not 0 < parts < 100:
            raise ValueError("its bounds use models that dcem does not know")
        testing, outcome = (
            Head(
                tuple(
                    tuple(
                        learners.load_learner(kind, part(f"{head}.{number}.{kind}."), n_features)
                        for kind in KINDS
                    )
                    for number in range(parts)
                ),
                arrays[f"{head}.shares"],
            )
            for head in ("testing", "outcome")
        )
        preprocessor = Preprocessor.from_arrays(part("columns."), n_features)
        numbers: Any = [arrays[name] for name in NUMBERS]
        names = tuple(str(name) for name in described["groups"])
        tilt = float(described.get("tilt", 1.0))
        made = cls(testing, outcome, preprocessor, *numbers)
        made = replace(made, group_names=names, tilt=tilt)
        t = 3 + len(made.terms)
        steps = len(STEPS)
        shapes = [(made.coefficients, (steps, t)), (made.covariance, (steps, t, t))]
        shapes += [(made.cuts, (1 + len(made.group_names), 2 + steps // 2, 2))]
        shapes += [(made.center, (2,)), (made.scale, (2,))]
        if any(array.shape != shape for array, shape in shapes) or not 0 < tilt < np.inf:
            raise ValueError("the numbers of its bounds are inconsistent")
        made.interval(np.zeros((1, n_features)), 2.0)
        return made


def require_learnable(problem: SelectiveLabels) -> None:
    """Refuse a table from which no ends can be learnt."""
    sides = [len(np.unique(problem.person[problem.y_obs == side])) for side in (0, 1)]
    if min(sides) < FEWEST_TESTED or sum(sides) < FEWEST_PEOPLE or problem.tested.all():
        raise InputError(
            f"Bounds need untested people, and at least {FEWEST_PEOPLE} tested people with at "
            f"least {FEWEST_TESTED} positives and {FEWEST_TESTED} negatives. Leave out `bounds`."
        )


def learn_ends(
    problem: SelectiveLabels, random_state: int = 0
) -> tuple[LearntEnds, conformal.OutOfPart]:
    """Learn the ends from a table, from features alone: the group is not asked of new people."""
    require_learnable(problem)
    rng = np.random.default_rng(random_state)
    if len(problem) > MOST_ROWS:
        rows = in_random_order(np.arange(len(problem)), problem.person, rng, MOST_ROWS)
        problem = problem.subset(np.sort(rows))
    tested, y = problem.tested, problem.y_imputed
    n_people = int(problem.person.max()) + 1
    part = person_folds(problem, FOLDS if n_people >= 100 else 2, rng)
    weight = problem.weights
    heads, found = [], []
    test = problem.imperfect_test
    for target, among, rates in (
        (tested.astype(float), weight > 0, None),
        (y, tested & (weight > 0), None if test is None else test.rates),
    ):
        head, z = _learn_head(problem, target, among, part, weight, rng, rates)
        heads.append(head)
        found.append(z)
    e, m = found
    known = problem.testing_probability
    testing = truncated(expit(e), expit(e).mean()) if known is None else known
    positive = expit(m) if test is None else result_probability(expit(m), mean_rates(problem))
    unseen = Unseen.of(problem, positive, testing)
    tilt = float(np.exp(np.average(np.log(unseen.tilt + np.zeros(len(m))), weights=weight)))
    preprocessor = Preprocessor.fit(problem.X, "standard", person=problem.person)
    both = np.stack([m, e], axis=1)
    spread = both.std(axis=0)
    made = LearntEnds(
        heads[0],
        heads[1],
        preprocessor,
        _telling(
            preprocessor.transform(problem.X, "float64"),
            weight * (unseen.outcomes(1.0) - expit(_computed(m, e, 0.0, tilt))),
        ),
        both.mean(axis=0),
        np.where(spread > 0, spread, 1.0),
        np.zeros(0),
        np.zeros(0),
        np.zeros(0),
        problem.group_names if problem.n_groups > 1 else (),
        tilt,
    )
    p = made._terms(problem.X, m, e)
    fitted = [
        _correct(p, unseen, step, _computed(m, e, step, tilt), weight, problem) for step in STEPS
    ]
    made = replace(
        made,
        coefficients=np.stack([b for b, _ in fitted]),
        covariance=np.stack([V for _, V in fitted]),
    )
    predicted = expit(made._end(m, e, p, 0.0))
    seen = conformal.OutOfPart(problem, part, testing, expit(m), predicted, unseen)
    cuts = conformal.cuts_of(seen, tested, np.exp(FROM_ONE))
    return replace(made, cuts=cuts), seen


def _learn_head(
    problem: SelectiveLabels,
    target: np.ndarray,
    among: np.ndarray,
    part: np.ndarray,
    weight: np.ndarray,
    rng: np.random.Generator,
    rates: np.ndarray | None,
) -> tuple[Head, np.ndarray]:
    """Models of a target, and log-odds of everybody [n] by those of the other parts.

    With the `rates` of an imperfect test [n, 2] they are models of the truth behind its results.
    """
    X, person = problem.X, problem.person
    sample = learners.Sample(X, target, weight, person, rates)
    models = []
    p = np.empty((len(KINDS), len(problem)))
    for number in range(int(part.max()) + 1):
        rows = in_random_order(np.flatnonzero(among & (part != number)), person, rng)
        kept = int((1 - HELD_OUT) * len(rows))
        learn, held = sample.take(rows[:kept]), sample.take(rows[kept:])
        seed = int(rng.integers(2**31))
        own = tuple(
            learners.make_learner(kind, seed, **({"quick": True} if kind == "boost" else {})).fit(
                learn, held
            )
            for kind in KINDS
        )
        models.append(own)
        here = np.flatnonzero(part == number)
        p[:, here] = [expit(one.predict_logit(X[here])) for one in own]
    p = np.clip(p, CLIP, 1 - CLIP)
    positive = p if rates is None else result_probability(p, rates)
    likelihood = np.where(target == 1, positive, 1 - positive)
    shares = best_mixture(likelihood[:, among], weight[among])
    return Head(tuple(models), shares), logit(shares @ p)


def _between(gamma: float) -> tuple[int, float]:
    """The step at or above a strength, and how far the way from the one below is [0, 1]."""
    last = int(np.clip(np.searchsorted(FROM_ONE, log(gamma)), 1, len(FROM_ONE) - 1))
    return last, float((log(gamma) - FROM_ONE[last - 1]) / (FROM_ONE[last] - FROM_ONE[last - 1]))


def _place(step: float) -> int:
    return int(np.abs(STEPS - step).argmin())


def _computed(m: np.ndarray, e: np.ndarray, step: float, tilt: float) -> np.ndarray:
    """Log-odds of the end that follows from both log-odds [n], a log odds ratio from `tilt`."""
    low, high = risk_interval(expit(e), expit(m), float(np.exp(abs(step))), tilt)
    return np.asarray(logit(high if step >= 0 else low))


def _telling(rows: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Columns that correct the ends: all, or those that residuals, `left` [n], know most of."""
    if rows.shape[1] <= MOST_TERMS:
        return np.arange(rows.shape[1])
    known = np.abs(left @ rows) / np.sqrt(np.maximum(left**2 @ rows**2, 1e-12))
    return np.sort(np.argsort(-known, kind="stable")[:MOST_TERMS])


def _correct(
    p: np.ndarray,
    unseen: Unseen,
    step: float,
    start: np.ndarray,
    weight: np.ndarray,
    problem: SelectiveLabels,
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of a logistic regression of pseudo-outcomes, and their covariance."""
    gamma = float(np.exp(step))
    outcome = unseen.outcomes(gamma)
    ridge = np.full(p.shape[1], PENALTY * weight.sum())
    ridge[0] = 1e-9 * weight.sum()
    b, pull, curvature = logistic(p, weight * outcome, weight, offset=start, ridge=ridge)
    # rows, and behind them what moves stated rates
    scores = np.zeros((max([len(p), *(len(one.influence) for one in unseen.moved)]), len(b)))
    scores[: len(p)] = pull
    for one in unseen.moved:
        by = p.T @ (weight * (one.up.outcomes(gamma) - one.down.outcomes(gamma))) / 2
        scores[: len(one.influence)] += np.outer(one.influence, by)
    return b, clustered_covariance(
        scores, curvature, None if problem.id is None else problem.person
    )
