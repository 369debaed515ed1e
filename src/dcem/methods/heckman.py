"""Sample selection with an unrecorded cause, as Heckman models it, for a yes or no.

Two equations with errors that may be correlated. Somebody is tested (approved) if z'c + u > 0, and
positive (in default) if x'b + v > 0; (u, v) are normal with variances 1 and correlation r, which is
what an unrecorded cause of both leaves. A label is seen of the tested alone:

    P(tested, positive) = F(x'b, z'c; r),    P(tested, negative) = F(-x'b, z'c; -r),
    P(untested) = F(-z'c),

where F of two arguments is the bivariate normal distribution function. The risk of everybody is
F(x'b). What tells r apart from the shape of the normal distribution is an *excluded* variable: a
column of z, and not of x, that drives testing and has nothing to do with the outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr
from scipy.stats import chi2

from dcem.methods.base import SelectiveClassifier
from dcem.methods.fitting import Prepared
from dcem.methods.training_table import TrainingTable, at_random
from dcem.table.disclosure import THRESHOLD
from dcem.table.messages import InputError, did_you_mean, notice, require_one_of
from dcem.text import decimal, p_value

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
SMALLEST = 1e-12  # a probability whose logarithm is taken
SPREAD = 2.0  # prior standard deviation of atanh r: as good as none, but r stays off 1
WEAK = 10.0  # likelihood-ratio statistic under which an excluded variable hardly drives testing


class HeckmanClassifier(SelectiveClassifier):
    """Model who is tested and the outcome together, with an unrecorded cause of both.

    *Idea.* Two probit equations with correlated errors: one for who is tested, one for the outcome,
    which is seen only for the tested. The correlation represents what those who decide knew but
    nobody recorded. With an *excluded* variable, which affects testing but not the outcome, the
    table identifies it: people who were tested only because that variable happened to favour them
    show what the others are like. The score is the risk of everybody, tested or not.

    *Assumption.* The excluded variable has nothing to do with the outcome at equal features; both
    equations are linear in the features, with normal errors of one correlation for everybody.

    *When it fails.* If the excluded variable is related to the outcome, the correction is wrong,
    and can be worse than none. Without such a variable, the correlation rests only on the shape of
    the normal distribution: it is a guess with a small standard error. The equations are linear:
    where the outcome depends on the features in another way, trees fitted to the tested rank
    better. A comparison cannot decide: its numbers for everybody assume that features explain
    testing, which this method does not.

    Parameters
    ----------
    excluded
        Features that drive testing and not the outcome, by name (of a frame, its columns) or
        position; those of the problem's role `testing_only` count too, and who decided (the role
        `decider`), of whom each with ten rows has an indicator.
    estimation
        "likelihood" (bivariate probit with selection, all parameters together) or "two-step":
        a probit of who is tested, then one of the outcome among the tested with the inverse Mills
        ratio as one more feature.
    penalty
        Ridge penalty per row, of standardised features in both equations.
    n_members
        Models whose mean is the score; all but the first see rows with random weights.

    Attributes
    ----------
    coefficients_
        Of the outcome equation `[members, 1 + features]`, the intercept first; 0 for what is
        excluded.
    correlation_
        Of the errors, by the first member: above 0, those who were tested are worse than their
        features say; below, they are better.
    p_value_
        Of no correlation (likelihood ratio, a person's rows taken together); NaN for two-step.
    strength_
        Likelihood-ratio statistic of the excluded features in the equation of who is tested, a
        person's rows taken together; NaN without any.

    References
    ----------
    J. Heckman, "Sample selection bias as a specification error", Econometrica 1979; W. van de Ven
    and B. van Praag, "The demand for deductibles in private health insurance: a probit model with
    sample selection", Journal of Econometrics 1981; W. Greene, "Sample selection in credit-scoring
    models", Japan and the World Economy 1998; J. Rao and A. Scott, "On chi-squared tests for
    multiway contingency tables with cell proportions estimated from survey data", Annals of
    Statistics 1984 (its p-value where people have several rows).
    """

    excluded: Sequence[str | int] = ()
    estimation: str = "likelihood"
    penalty: float = 1e-4
    n_members: int = 1

    name: ClassVar[str] = "heckman"
    in_short: ClassVar[str] = "models testing and outcome, with an unrecorded cause of both"
    corrects_tests: ClassVar[bool] = True
    uses_validation: ClassVar[bool] = False  # nothing is chosen by held-out rows

    def _fit(self, data: Prepared) -> None:
        require_one_of("estimation", self.estimation, ("likelihood", "two-step"))
        if not self.penalty >= 0:
            raise InputError(f"penalty must be 0 or more; got {self.penalty!r}.")
        table = data.standard
        deciders = _deciders(data)
        Z = np.column_stack([np.ones(len(table)), table.X, deciders])
        left_out = named_columns(self, data, self.excluded, data.problem.testing_only)
        outcome = np.concatenate([[True], ~left_out, np.zeros(deciders.shape[1], bool)])
        features = 1 + table.X.shape[1]
        found = [
            _estimate(Z, outcome, table, weight, self.penalty, self.estimation)
            for _, weight in at_random(table.weight.astype(float), table.person, data.seeds)
        ]
        self.coefficients_ = np.stack([one[:features] for one, *_ in found])
        _, self.correlation_, self.p_value_ = found[0]
        self.strength_ = float("nan")
        if outcome.all():
            self._say("the shape of the normal distribution alone: no excluded variable was named")
            notice(
                "heckman has no excluded variable (one that affects testing but not the outcome). "
                "The unrecorded cause is then estimated only from the shape of the normal "
                "distribution, and a small departure from it changes every score. Name such a "
                "variable (`testing_only`), or who decided (`decider`), or choose another method."
            )
            return
        at, without = _probit(Z[:, outcome], table.tested, table.weight, self.penalty)
        whole = _probit(Z, table.tested, table.weight, self.penalty)[1]
        side = 2 * table.tested - 1
        z = side * (Z[:, outcome] @ at)
        pull = -side * np.exp(_log_density(z) - log_ndtr(z))
        pulls = pull[:, None] * np.column_stack([Z[:, outcome], Z[:, ~outcome]])
        effect = design_effect(pulls, table.weight, table.person, int((~outcome).sum()))
        self.strength_ = float(2 * (without - whole) * len(table) / effect)
        self._say(
            "what affects testing but not the outcome (likelihood-ratio statistic "
            f"{max(self.strength_, 0):.0f})"
        )
        if self.strength_ < WEAK:
            notice(
                "The excluded features of heckman hardly affect testing (likelihood-ratio "
                f"statistic {max(self.strength_, 0):.1f}; under {WEAK:g} is weak), so they say "
                "little about the unrecorded cause. Name others, or choose another method."
            )

    def _say(self, told_by: str) -> None:
        """What the model card says of what was learnt."""
        sure = "" if np.isnan(self.p_value_) else f", {p_value(self.p_value_)}"
        said = (
            "The risk of everybody, allowing for an unrecorded cause of test and outcome "
            f"(correlation {decimal(self.correlation_)}{sure}), identified by {told_by}."
        )
        self.learnt_from_: str = f"{said} {getattr(self, 'learnt_from_', '')}".strip()

    def members(self, X: np.ndarray, rows: np.ndarray, *, exact: bool = True) -> np.ndarray:
        """The risk of everybody `[members, n]`, by each model."""
        lines = self.coefficients_
        return ndtr(lines[:, 1:] @ rows.T + lines[:, :1])


def named_columns(
    estimator: SelectiveClassifier,
    data: Prepared,
    given: Sequence[str | int] | str | int,
    roles: Sequence[str] = (),
) -> np.ndarray:
    """Which columns of the preprocessed features are named by parameter or role [d]; not all."""
    names, chosen = list(data.problem.feature_names), set(roles)
    encoder = getattr(estimator, "encoder_", None)
    # column of what was given -> the features made of it
    made = {name: (name,) for name in names}
    if encoder is not None:
        made = {one.name: one.features for one in encoder.encodings}
    for one in [given] if isinstance(given, str | int) else given:
        at = isinstance(one, int | np.integer) and 0 <= one < len(made)
        name = list(made)[int(one)] if at else one
        if name not in made and name not in names:
            hint = did_you_mean(str(one), [*made, *names])
            raise InputError(f"{estimator.name}: the table has no feature {one!r}.{hint}")
        chosen |= set(made.get(name, (name,)))
    left_out = np.array([name in chosen for name in names], bool)
    if left_out.all():
        raise InputError(
            f"{estimator.name}: every feature is excluded from one of the equations. Leave it at "
            "least one."
        )
    return np.append(left_out, left_out[estimator.preprocessor_.indicators])


def _deciders(data: Prepared) -> np.ndarray:
    """Indicators `[n, deciders - 1]` of who decided, where that is known."""
    given = data.problem.decider
    if given is None:
        return np.empty((len(data.rows), 0))
    code = given[data.rows]
    often = [one for one in np.unique(code[code >= 0]) if (code == one).sum() >= THRESHOLD]
    return (code[:, None] == np.array(often[1:], np.int64)).astype(float)


def _estimate(
    Z: np.ndarray,
    outcome: np.ndarray,
    table: TrainingTable,
    weight: np.ndarray,
    penalty: float,
    estimation: str,
) -> tuple[np.ndarray, float, float]:
    """Coefficients of the outcome `[1 + d]`, 0 for what is excluded; correlation and p-value.

    From rows with a leading 1 `[n, 1 + d]`; `outcome` says which columns its equation has.
    """
    seen = table.tested > 0
    rates = None if table.rates is None else table.rates[seen]
    testing, _ = _probit(Z, table.tested, weight, penalty)
    X, y = Z[:, outcome][seen], table.y[seen]
    whole = np.zeros(Z.shape[1])
    if estimation == "two-step":
        k = Z[seen] @ testing
        mills = np.exp(-(k**2) / 2 - log_ndtr(k)) / np.sqrt(2 * np.pi)
        found, _ = _probit(np.column_stack([X, mills]), y, weight[seen], penalty, rates)
        whole[outcome] = found[:-1]
        return whole, float(np.clip(found[-1], -1, 1)), float("nan")
    first, _ = _probit(X, y, weight[seen], penalty * weight.sum() / weight[seen].sum(), rates)
    start = np.concatenate([first, testing, [0.0]])
    share = weight / weight.sum()
    loss = Likelihood(Z, X, y, seen, share, rates)
    ridge = np.full(len(start), penalty)
    ridge[[0, len(first)]] = 0.0
    ridge[-1] = 1 / (SPREAD**2 * len(Z))

    def penalised(at: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = loss(at)
        return value + ridge @ at**2 / 2, slope + ridge * at

    options = {"maxiter": 1000, "ftol": 1e-12, "gtol": 1e-8}
    best = minimize(penalised, start, jac=True, method="L-BFGS-B", options=options)
    gained = 2 * len(Z) * (penalised(start)[0] - best.fun)
    gained /= design_effect(loss.pulls(start), weight, table.person)
    whole[outcome] = best.x[: len(first)]
    return whole, float(np.tanh(best.x[-1])), float(chi2.sf(max(gained, 0.0), 1))


@dataclass(frozen=True)
class Likelihood:
    """Mean -log P(tested, result) and its slope, at (b, c, atanh r) as one vector.

    `X` and results `y` are of the rows that were `seen`; each row counts by its `share`. Where a
    test errs, a result comes of either truth by its `rates`.
    """

    Z: np.ndarray
    X: np.ndarray
    y: np.ndarray
    seen: np.ndarray
    share: np.ndarray
    rates: np.ndarray | None = None

    def __call__(self, at: np.ndarray) -> tuple[float, np.ndarray]:
        """The mean, and its slope [p]."""
        value, of_h, of_k, of_r = self._of_rows(at)
        of_h, of_k = self.share[self.seen] * of_h, self.share * of_k
        slope = [of_h @ self.X, of_k @ self.Z, [self.share[self.seen] @ of_r]]
        return float(self.share @ value), np.concatenate(slope)

    def pulls(self, at: np.ndarray) -> np.ndarray:
        """The slope of each row by itself [n, p]."""
        _, of_h, of_k, of_r = self._of_rows(at)
        found = np.zeros((len(self.Z), len(at)))
        found[self.seen, : self.X.shape[1]] = of_h[:, None] * self.X
        found[:, self.X.shape[1] : -1] = of_k[:, None] * self.Z
        found[self.seen, -1] = of_r
        return found

    def _of_rows(self, at: np.ndarray) -> tuple[np.ndarray, ...]:
        """-log P of each row [n], and its slopes in x'b [seen], z'c [n] and atanh r [seen]."""
        n, seen = self.X.shape[1], self.seen
        if_positive, if_negative = _chances(self.y, self.rates)
        h, k, r = self.X @ at[:n], self.Z @ at[n:-1], float(np.tanh(at[-1]))
        both, dh, dk, dr = bivariate(h, k[seen], r)
        p = if_positive * both + if_negative * np.maximum(ndtr(k[seen]) - both, 0)
        p = np.maximum(p, SMALLEST)
        tells = (if_positive - if_negative) / p
        value, of_k = np.empty((2, len(k)))
        value[seen], value[~seen] = -np.log(p), -log_ndtr(-k[~seen])
        of_k[seen] = -tells * dk - if_negative * _density(k[seen]) / p
        of_k[~seen] = np.exp(_log_density(k[~seen]) - log_ndtr(-k[~seen]))
        return value, -tells * dh, of_k, -tells * dr * (1 - r**2)


def design_effect(
    pulls: np.ndarray, weight: np.ndarray, person: np.ndarray | None, asked: int = 1
) -> float:
    """By how much the likelihood ratio of the last parameters, `asked` of them, is too large.

    It takes rows for independent and equally telling. People with several rows, and weights, make
    it vary as much more as the last slopes do, what the others explain of them removed, on average
    (Rao and Scott 1984). 1 where every row is a person and counts alike.
    """
    weight = (weight / weight.mean())[:, None]
    others, last = pulls[:, :-asked], pulls[:, -asked:]
    curvature = np.linalg.pinv((others * weight).T @ others, hermitian=True)
    left = last - others @ (curvature @ (others.T @ (weight * last)))
    own = weight * left
    together = by_person(own, person)
    expected = own.T @ left
    inverse = np.linalg.pinv(expected, hermitian=True)
    return float(np.trace(inverse @ together.T @ together) / np.trace(inverse @ expected))


def by_person(values: np.ndarray, person: np.ndarray | None) -> np.ndarray:
    """Sums over the rows of each person [people, p]; None: every row is a person."""
    if person is None:
        return values
    return np.column_stack([np.bincount(person, column) for column in values.T])


def bivariate(h: np.ndarray, k: np.ndarray, r: float) -> tuple[np.ndarray, ...]:
    """P(U < h, V < k) of standard normals with correlation r `[n]`, and its slopes in h, k and r.

    Drezner and Wesolowsky 1990: an integral over the angle from 0 to asin r, by Gauss-Legendre.
    """
    root = np.sqrt(1 - r * r)
    half = np.arcsin(r) / 2
    total = np.zeros(len(h))
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        sine = np.sin(half * (node + 1))
        total += weight * np.exp(-(h * h + k * k - 2 * h * k * sine) / (2 * (1 - sine * sine)))
    value = ndtr(h) * ndtr(k) + half * total / (2 * np.pi)
    density = np.exp(-(h * h + k * k - 2 * r * h * k) / (2 * root**2)) / (2 * np.pi * root)
    slope_h = _density(h) * ndtr((k - r * h) / root)
    slope_k = _density(k) * ndtr((h - r * k) / root)
    return np.clip(value, 0, 1), slope_h, slope_k, density


def _probit(
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    penalty: float,
    rates: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    """Coefficients of a probit of `y` on `X [n, d]`, the first an intercept, and the mean loss."""
    share = weight / weight.sum()
    if_positive, if_negative = _chances(y, rates)
    ridge = np.full(X.shape[1], penalty)
    ridge[0] = 1e-9

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        z = X @ at
        p = np.maximum(if_positive * ndtr(z) + if_negative * ndtr(-z), SMALLEST)
        slope = -share * (if_positive - if_negative) * _density(z) / p
        value = -share @ np.log(p) + ridge @ at**2 / 2
        return float(value), slope @ X + ridge * at

    options = {"maxiter": 1000, "ftol": 1e-13, "gtol": 1e-9}
    best = minimize(loss, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(best.x), float(best.fun)


def _chances(y: np.ndarray, rates: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """How likely each result is of somebody positive and of somebody negative [n]."""
    sensitivity, specificity = (1.0, 1.0) if rates is None else rates.T
    positive = np.where(y > 0, sensitivity, 1 - sensitivity)
    return positive, np.where(y > 0, 1 - specificity, specificity)


def _density(z: np.ndarray) -> np.ndarray:
    return np.exp(_log_density(z))


def _log_density(z: np.ndarray) -> np.ndarray:
    return -(z * z) / 2 - np.log(2 * np.pi) / 2
