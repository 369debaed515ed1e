"""An unmeasured cause of testing and outcome, held in place by what is known of both.

The model of `heckman`: somebody is tested if z'c + u > 0 and positive if x'b + v > 0, with normal
(u, v) of correlation r, which is what an unmeasured cause leaves; its likelihood is in closed form
once the cause is integrated out. Alone, r hangs on the shape of the normal distribution.
Balachandar, Garg and Pierson show that two kinds of knowledge hold it: how common the outcome is
(*prevalence constraint*), and which features matter for one equation alone (*expertise
constraint*). Both are priors here: the mean risk of the table is normal around the known rate, and
coefficients that somebody rules out are 0. What is reported is the most probable set of parameters,
and intervals from the curvature there (Laplace), wider where people have several rows: no sampler
is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr

from dcem.methods.base import SelectiveClassifier
from dcem.methods.fitting import Prepared
from dcem.methods.heckman import Likelihood, by_person, named_columns
from dcem.methods.support import with_group
from dcem.table.known_rates import Z, concerned
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError, notice

STARTS = (0.0, 0.7, -0.7)  # of atanh r
STEP = 1e-4  # of parameters, for the curvature

LossAndSlope = Callable[[np.ndarray], tuple[float, np.ndarray]]


class UnmeasuredCauseClassifier(SelectiveClassifier):
    """An unmeasured cause of testing and outcome, identified by a known prevalence and exclusions.

    *Idea.* Two probit equations, who is tested and who has the outcome, share an unmeasured cause:
    their errors are correlated. How strong it is cannot be known from the labels of the tested
    alone. It follows from how common the outcome is known to be (state it: `prevalence`), and from
    features that are known to affect only testing or only the outcome. The group enters the
    equation of who is tested, but not that of the outcome. The score is the risk of everybody,
    tested or not.

    *Assumption.* The stated prevalence is right; features that are left out of an equation have no
    effect there; both equations are linear, with normal errors of one correlation for everybody.

    *When it fails.* A wrong prevalence is believed: the cause is made as strong as is needed to
    match it. Without a prevalence and without exclusions, the result rests only on the shape of the
    normal distribution, and a notice says so. Where the outcome is not linear in the features,
    flexible models rank better, and they can use a known prevalence too.

    Parameters
    ----------
    testing_only, outcome_only
        Features that drive testing alone, or the outcome alone, by name (of a frame, its columns)
        or position. Those of the problem's role `testing_only` count too.
    prior
        Standard deviation of the coefficients of standardised features.
    cause_prior
        Standard deviation of the correlation, as atanh r.

    Attributes
    ----------
    coefficients_
        Of the outcome equation `[1 + features]`, the intercept first; 0 for what is left out.
    covariance_
        Of these `[1 + features, 1 + features]`.
    correlation_, correlation_interval_
        Of the errors, and its 95 % interval: above 0, those who were tested have the outcome more
        often than their features say.

    References
    ----------
    S. Balachandar, N. Garg and E. Pierson, "Domain constraints improve risk prediction when outcome
    data is missing", ICLR 2024; W. van de Ven and B. van Praag, "The demand for deductibles in
    private health insurance: a probit model with sample selection", Journal of Econometrics 1981.
    """

    testing_only: Sequence[str | int] = ()
    outcome_only: Sequence[str | int] = ()
    prior: float = 2.0
    cause_prior: float = 1.0

    name: ClassVar[str] = "unmeasured-cause"
    in_short: ClassVar[str] = "models an unmeasured cause, given a known prevalence"
    corrects_tests: ClassVar[bool] = True
    uses_validation: ClassVar[bool] = False  # nothing is chosen by held-out rows

    def _fit(self, data: Prepared) -> None:
        if not (self.prior > 0 and self.cause_prior > 0):
            raise InputError(
                "prior and cause_prior are standard deviations, above 0; got "
                f"{self.prior!r} and {self.cause_prior!r}."
            )
        table, problem = data.standard, data.problem
        ones = np.ones((len(table), 1))
        for_outcome = ~named_columns(self, data, self.testing_only, problem.testing_only)
        for_testing = ~named_columns(self, data, self.outcome_only)
        grouped = with_group(table.X, table.group, data.n_groups, interactions=False)
        rows = np.column_stack([ones, table.X])
        of_outcome = np.append(True, for_outcome)
        of_testing = np.concatenate([[True], for_testing, np.ones(data.n_groups - 1, bool)])
        tested_by = np.column_stack([ones, grouped])[:, of_testing]
        seen, share = table.tested > 0, table.weight.astype(float) / table.weight.sum()
        X = rows[:, of_outcome]
        # prior standard deviations: none of the intercepts, and that of the cause
        prior = np.full(X.shape[1] + tested_by.shape[1] + 1, float(self.prior))
        prior[[0, X.shape[1]]], prior[-1] = np.inf, self.cause_prior
        rates = table.sample(seen).rates
        of_tested = Likelihood(tested_by, X[seen], table.y[seen], seen, share, rates)
        loss = posterior(of_tested, known_means(problem, X, share), prior, len(table))
        best = _lowest(loss, X.shape[1] + tested_by.shape[1])
        spread = np.linalg.pinv(_curvature(loss, best) * len(table), hermitian=True)
        more = variance_beyond_rows(of_tested.pulls(best), table.weight, table.person)
        spread = spread + spread @ more @ spread
        at, own = np.flatnonzero(of_outcome), X.shape[1]
        self.coefficients_ = np.zeros(rows.shape[1])
        self.coefficients_[at] = best[:own]
        self.covariance_ = np.zeros((rows.shape[1], rows.shape[1]))
        self.covariance_[np.ix_(at, at)] = spread[:own, :own]
        reach = Z * float(np.sqrt(max(spread[-1, -1], 0.0)))
        self.correlation_ = float(np.tanh(best[-1]))
        self.correlation_interval_ = [float(np.tanh(best[-1] + side)) for side in (-reach, reach)]
        if for_outcome.all() and data.n_groups == 1 and not problem.known_prevalence:
            notice(
                f"{self.name} has neither a known prevalence (`prevalence`) nor features that "
                "affect only testing (`testing_only`). The strength of the unmeasured cause is "
                "then estimated only from the shape of the normal distribution. State one of them, "
                "or choose another method."
            )

    def members(self, X: np.ndarray, rows: np.ndarray, *, exact: bool = True) -> np.ndarray:
        """The risk of everybody `[1, n]`."""
        return ndtr(self.coefficients_[0] + rows @ self.coefficients_[1:])[None]

    def risk_interval(self, X: object) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the 95 % interval of each row's risk `[n]`, by the curvature of the posterior."""
        rows = self._prepare(X)
        rows = np.column_stack([np.ones(len(rows)), rows])
        middle = rows @ self.coefficients_
        error = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, self.covariance_, rows), 0))
        return ndtr(middle - Z * error), ndtr(middle + Z * error)


def posterior(
    loss: LossAndSlope,
    known: Sequence[tuple[np.ndarray, np.ndarray, float, float]],
    spread: np.ndarray,
    n: int,
) -> LossAndSlope:
    """Mean -log posterior and its slope: a likelihood, normal priors, and known mean risks.

    `known`: rows of the outcome equation [m, d], how much each counts [m], the rate and its error;
    `spread`: prior standard deviations, infinite for none.
    """

    def found(at: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = loss(at)
        value += float(((at / spread) ** 2).sum()) / (2 * n)
        slope = slope + at / spread**2 / n
        for X, share, rate, error in known:
            z = X @ at[: X.shape[1]]
            off = (share @ ndtr(z) - rate) / error
            value += off**2 / (2 * n)
            density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
            slope[: X.shape[1]] += off / error / n * ((share * density) @ X)
        return float(value), slope

    return found


def known_means(
    problem: SelectiveLabels, X: np.ndarray, share: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, float, float]]:
    """Whose mean risk is known, for `posterior`.

    The people of the table are a sample of those whom the rate is of: its error is that of the
    stated rate and of a mean over so many; the rows of a person are taken for one.
    """
    found = []
    for one in problem.known_prevalence:
        mine = concerned(one, problem.group, problem.group_names)
        if not share[mine].sum() > 0:
            continue
        part = share[mine] / share[mine].sum()
        counts = np.bincount(problem.person[mine], part)
        sampled = one.value * (1 - one.value) * float(counts @ counts)
        found.append((X[mine], part, one.value, float(np.sqrt(one.error**2 + sampled))))
    return found


def variance_beyond_rows(
    pulls: np.ndarray, weight: np.ndarray, person: np.ndarray | None
) -> np.ndarray:
    """What people with several rows, and weights, add to the variance of the slope [p, p].

    The curvature knows it as if rows were independent and counted alike; 0 where they do.
    """
    weight = weight / weight.mean()
    own = pulls * weight[:, None]
    together = by_person(own, person)
    return np.asarray(together.T @ together - own.T @ pulls)


def _lowest(loss: LossAndSlope, n: int) -> np.ndarray:
    """The most probable parameters, from several strengths of the cause."""
    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-13, "gtol": 1e-8}
    ends = [
        minimize(loss, np.append(np.zeros(n), start), jac=True, method="L-BFGS-B", options=options)
        for start in STARTS
    ]
    return np.asarray(min(ends, key=lambda one: one.fun).x)


def _curvature(loss: LossAndSlope, at: np.ndarray) -> np.ndarray:
    """Second derivatives [p, p], from differences of the slope."""
    steps = STEP * np.eye(len(at))
    found = np.stack([(loss(at + step)[1] - loss(at - step)[1]) / (2 * STEP) for step in steps])
    return (found + found.T) / 2
