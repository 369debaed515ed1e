"""Found positives alone: how common the outcome is in one group against another.

Many tables know only who was found positive. Let s = 1 for them: everybody else was tested and
negative, or never tested, and nobody can say which. Two assumptions make groups comparable:

* the outcome depends on the features alike in all groups, p(y = 1 | x, g) = f(x);
* of the positives of group g a share c_g is found, whatever their features.

Then P(s = 1 | x, g) = c_g f(x). At equal features the chance of being found differs between groups
by the factor c_g / c_h, and by nothing else; what is left of the difference in found shares is a
difference in how common the outcome is:

    prevalence of g / prevalence of h = (found share of g / found share of h) / (c_g / c_h).

All c_g may be multiplied, and f divided, by one number: the record stays the same. Only ratios are
identified, and only they are given. (With f logistic in the features, as here, its curvature would
fix that number as well. Nobody should believe it: a weak prior holds it in place instead.)

The model is fitted by maximum likelihood, with a slight ridge on the coefficients of standardised
features. Influences are those of the estimating equations, so that intervals count people as units,
and hold whatever the variance. `failures` asks of every feature whether it bears on being found in
one group as in the others (Rao's score test of an interaction), which it must.

*How common it could be.* Everybody found is a positive, so the found share bounds prevalence from
below. If a share c of a group's positives is found whatever their features, P(found | x) = c f(x)
is c at most: where people are found most often, that share bounds c from below, and the found share
over it bounds prevalence from above (C. Elkan and K. Noto, "Learning classifiers from only positive
and unlabeled data", KDD 2008, take the bound for the value). Between the two nothing is known.

D. Shanmugam, K. Hou and E. Pierson, "Quantifying disparities in intimate partner violence: a
machine learning method to correct for underreporting", npj Women's Health 2024 (PURPLE).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from dcem.estimation.influence import FEWEST_TESTED, People, Statistic, two_sided
from dcem.learners.preprocess import Preprocessor
from dcem.table.labels import SelectiveLabels

RIDGE = 1.0  # precision of the prior of a coefficient of a standardised feature
RIDGES = (1.0, 10.0, 100.0, 1000.0)  # to choose from where there are many features
MANY = 20  # found positives per feature, under which the penalty is chosen on held-out people
RATE_PRIOR = 0.25  # precision of the prior of the log-odds of a rate: only the common constant
TOP = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)  # shares of people found most often, by prediction
MOST_STEPS = 100
SMALL_STEP = 1e-8


class Failure(NamedTuple):
    """A feature that bears on being found in one group otherwise than in the others."""

    feature: int
    group: int
    z: float  # above 0: where the feature is high, the group is found more than is assumed
    p_value: float  # corrected for the number of features and groups that were asked about


@dataclass(frozen=True, eq=False)
class FoundModel:
    """P(found | x, g) = c_g f(x), fitted to a table."""

    preprocessor: Preprocessor  # from features to the standardised inputs of f
    log_odds: np.ndarray  # [groups] of the rates c_g
    line: np.ndarray  # intercept and coefficients of the log-odds of f
    ridge: float  # the penalty it was fitted with

    @property
    def rates(self) -> np.ndarray:
        """Rates of being found [groups], the highest 1: up to a constant that nobody knows."""
        rates = expit(self.log_odds)
        return np.asarray(rates / rates.max())

    def risk(self, X: np.ndarray) -> np.ndarray:
        """f of features [n, d], up to the same constant."""
        inputs = self.preprocessor.transform(X, "float64")
        return np.asarray(expit(inputs @ self.line[1:] + self.line[0]) * expit(self.log_odds).max())

    def found(self, problem: SelectiveLabels) -> np.ndarray:
        """P(found | x, g) of each row [n]."""
        return self.rates[problem.group] * self.risk(problem.X)


def fit_found(
    problem: SelectiveLabels, fold: np.ndarray | None = None, ridge: float | None = None
) -> FoundModel:
    """The model of a table; `fold` [n] are people to choose the penalty by, where that is needed.

    Where there are many features for the found, the ridge is the one under which held-out people
    are predicted best.
    """
    preprocessor = Preprocessor.fit(problem.X, "standard", person=problem.person)
    inputs = _inputs(preprocessor, problem.X)
    weight = problem.weights / problem.weights.mean()
    found = problem.y_imputed

    def fitted(rows: np.ndarray | slice, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        return _fit(
            inputs[rows], problem.group[rows], found[rows], weight[rows], problem.n_groups, ridge
        )

    if ridge is None:
        ridge = RIDGE
        if fold is not None and found.sum() < MANY * inputs.shape[1]:

            def held_out(ridge: float) -> float:
                loss = 0.0
                for number in np.unique(fold):
                    out = fold == number
                    log_odds, line = fitted(~out, ridge)
                    p = expit(log_odds)[problem.group[out]] * expit(inputs[out] @ line)
                    loss += float(weight[out] @ log_loss(found[out], p))
                return loss

            ridge = min(RIDGES, key=held_out)
    return FoundModel(preprocessor, *fitted(slice(None), ridge), ridge)


def log_loss(found: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Of each row [n]."""
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return np.asarray(-np.where(found > 0, np.log(p), np.log1p(-p)))


class Ratios(NamedTuple):
    """Groups against one of them, as logarithms that know how each row moved them."""

    rate: Mapping[int, Statistic]  # log c_g / c_reference
    prevalence: Mapping[int, Statistic]  # log of mean f in g / mean f in the reference


def ratios(model: FoundModel, problem: SelectiveLabels, people: People, reference: int) -> Ratios:
    """Rates of being found, and prevalences, of every group with people against the reference."""
    at = _Expansion.of(model, problem)
    moved = at.influences(model.ridge)  # [n, parameters]
    n_groups = problem.n_groups
    c = expit(model.log_odds)

    def log_rate(code: int) -> Statistic:
        return Statistic(float(np.log(c[code])), (1 - c[code]) * moved[:, code])

    def log_mean_risk(code: int) -> Statistic:
        mine = (problem.group == code).astype(float)
        mean = people.mean(at.risk, mine)
        share = people.weight * mine / (people.weight @ mine)
        slope = (share * at.risk * (1 - at.risk)) @ at.inputs  # of the mean in the line
        return Statistic(mean.value, mean.influence + moved[:, n_groups:] @ slope).log()

    present = [code for code in range(n_groups) if (problem.group == code).any()]
    rate, risk = log_rate(reference), log_mean_risk(reference)
    return Ratios(
        {code: log_rate(code) - rate for code in present if code != reference},
        {code: log_mean_risk(code) - risk for code in present if code != reference},
    )


def failures(
    model: FoundModel, problem: SelectiveLabels, people: People, reference: int
) -> list[Failure]:
    """Where the assumption fails, the clearest first: every feature in every other group.

    Rao's score test: the slope of the likelihood in an interaction of feature and group, less what
    the parameters of the model explain of it, over its standard error by people. It needs no other
    model. P-values are Bonferroni's.
    """
    at = _Expansion.of(model, problem)
    moved = at.influences(model.ridge)
    features = at.inputs[:, 1:]
    found = []
    enough = [
        code
        for code in range(problem.n_groups)
        if code != reference
        and people.count((problem.group == code) & problem.tested) >= FEWEST_TESTED
    ]
    for code in enough:
        mine = ((problem.group == code) * (1 - at.risk))[:, None]
        mixed = (features * mine * at.factor[:, None]).T @ at.towards  # [d, parameters]
        score = features * mine * at.left[:, None] - moved @ mixed.T  # [n, d]
        total = score.sum(axis=0)
        if people.person is not None:
            score = np.stack([np.bincount(people.person, one) for one in score.T], axis=1)
        error = np.sqrt((score**2).sum(axis=0))
        usable = error > 1e-9 * max(1.0, float(error.max(initial=0.0)))
        z = np.divide(total, error, out=np.zeros_like(total), where=usable)
        found += [(int(j), code, float(z[j])) for j in np.flatnonzero(usable)]
    asked = max(len(found), 1)
    listed = [Failure(j, code, z, min(1.0, asked * two_sided(z))) for j, code, z in found]
    return sorted(listed, key=lambda one: -abs(one.z))


def predicted_found(problem: SelectiveLabels, fold: np.ndarray, ridge: float) -> np.ndarray:
    """P(found | x, g) of each row [n], by a model of the other folds."""
    predicted = np.empty(len(problem))
    for number in np.unique(fold):
        out = fold == number
        model = fit_found(problem.subset(~out), ridge=ridge)
        predicted[out] = model.found(problem.subset(out))
    return predicted


def at_most(
    problem: SelectiveLabels, people: People, mine: np.ndarray, predicted: np.ndarray
) -> float:
    """The upper bound of prevalence among some rows (a mask), sampling included.

    It is the found share over the share found among those most often found, by what was `predicted`
    [n] for them by models of other people: a lower bound of the rate, if that is the same for all.
    """
    floor, level = 0.0, 1 - 0.05 / len(TOP)
    for part in TOP:
        high = mine & (predicted >= np.quantile(predicted[mine], 1 - part))
        yes, no = people.count(high & problem.tested), people.count(high & ~problem.tested)
        if min(yes, no) < FEWEST_TESTED:
            continue
        floor = max(floor, people.proportion(problem.tested, high, level).low)
    share = people.proportion(problem.tested, mine)
    return min(1.0, share.high / floor) if floor > 0 else 1.0


@dataclass(frozen=True, eq=False)
class _Expansion:
    """The log-likelihood around some parameters: log-odds of the rates, then the line of f.

    With p = c f, the slope of a row in a parameter is (s - p) / (1 - p) times 1 - c (of its own
    rate) or 1 - f (of the line, times its input); and the information of two parameters is
    p / (1 - p) times the same factors of both.
    """

    inputs: np.ndarray  # [n, 1 + d], a column of ones first
    risk: np.ndarray  # [n] f as the line has it
    towards: np.ndarray  # [n, parameters] these factors
    left: np.ndarray  # [n] (s - p) / (1 - p), weighted
    factor: np.ndarray  # [n] p / (1 - p), weighted

    @classmethod
    def around(
        cls,
        at: np.ndarray,
        inputs: np.ndarray,
        group: np.ndarray,
        found: np.ndarray,
        weight: np.ndarray,
        n_groups: int,
    ) -> _Expansion:
        c, f = expit(at[:n_groups])[group], expit(inputs @ at[n_groups:])
        p = np.minimum(c * f, 1 - 1e-12)
        rates = (group[:, None] == np.arange(n_groups)) * (1 - c)[:, None]
        towards = np.hstack([rates, inputs * (1 - f)[:, None]])
        return cls(inputs, f, towards, weight * (found - p) / (1 - p), weight * p / (1 - p))

    @classmethod
    def of(cls, model: FoundModel, problem: SelectiveLabels) -> _Expansion:
        inputs, at = _inputs(model.preprocessor, problem.X), np.append(model.log_odds, model.line)
        weight, n_groups = problem.weights / problem.weights.mean(), problem.n_groups
        return cls.around(at, inputs, problem.group, problem.y_imputed, weight, n_groups)

    def information(self, precision: np.ndarray) -> np.ndarray:
        """Of all parameters, priors included [parameters, parameters]."""
        found: np.ndarray = (self.towards * self.factor[:, None]).T @ self.towards
        return found + np.diag(precision)

    def influences(self, ridge: float) -> np.ndarray:
        """By how much each row moves the parameters [n, parameters]."""
        n_inputs = self.inputs.shape[1]
        precision = _precisions(self.towards.shape[1] - n_inputs, n_inputs, ridge)
        scores = self.towards * self.left[:, None]
        return np.linalg.solve(self.information(precision), scores.T).T


def _precisions(n_groups: int, n_inputs: int, ridge: float) -> np.ndarray:
    """Of the priors [parameters]: rates, intercept (none), coefficients."""
    return np.concatenate([np.full(n_groups, RATE_PRIOR), [1e-9], np.full(n_inputs - 1, ridge)])


def _fit(
    inputs: np.ndarray,
    group: np.ndarray,
    found: np.ndarray,
    weight: np.ndarray,
    n_groups: int,
    ridge: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds of the rates and the line of f, by Fisher's scoring with halved steps."""
    precision = _precisions(n_groups, inputs.shape[1], ridge)
    at = np.zeros(len(precision))
    share = float(np.clip(weight @ found / weight.sum(), 1e-6, 1 - 1e-6))
    at[n_groups] = logit(min(2 * share, 1 - 1e-3))  # half of the positives found

    def value(at: np.ndarray) -> float:
        p = expit(at[:n_groups])[group] * expit(inputs @ at[n_groups:])
        return float(weight @ log_loss(found, p)) + float(precision @ at**2) / 2

    lowest = value(at)
    for _ in range(MOST_STEPS):
        here = _Expansion.around(at, inputs, group, found, weight, n_groups)
        slope = here.left @ here.towards - precision * at
        step = np.linalg.solve(here.information(precision), slope)
        for _ in range(30):
            there = value(at + step)
            if there <= lowest + 1e-12 * abs(lowest):
                break
            step /= 2
        else:
            break
        at, lowest = at + step, there
        if np.abs(step).max() < SMALL_STEP:
            break
    return at[:n_groups], at[n_groups:]


def _inputs(preprocessor: Preprocessor, X: np.ndarray) -> np.ndarray:
    """Standardised features behind a column of ones."""
    return np.hstack([np.ones((len(X), 1)), preprocessor.transform(X, "float64")])
