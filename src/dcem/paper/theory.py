"""The theory of DCEM as code: one row in closed form, and a world small enough to enumerate.

For a row with pseudo-label `Q`, testing probability `t̂` and recorded label `ỹ` (0 where nobody
looked), the M-step chooses the prediction `f` in [0, 1] that minimises

    J(f) = −[Q log f + (1−Q) log(1−f)]  −  reg · Q · [ỹ log(f·t̂) + (1−ỹ) log(1−f·t̂)].

The first bracket pulls `f` to the pseudo-label; the second, the causal regulariser, asks that
`f·t̂`, the chance of being tested *and* positive, agree with the record. The functions below give
the minimiser, how far it lies from `Q`, and how fast it moves with `t̂`: all elementwise, on arrays
that broadcast. A fitted network cannot set each row's `f` freely, so these describe what the loss
pulls towards, not what a fit returns.

In the second part every variable has a few values, so that the joint distribution P(y, t, ỹ, x, a)
is a table, the posterior is a division, and likelihoods are finite sums: no sampling, no network,
no optimiser that might have stopped early. The outcome model is saturated: one free probability
f(x) for each `x`. Tables over what is observed are indexed [t, ỹ, x, a]; the joint has `y` in
front. Log-likelihoods and bounds are population means: each observable cell counts with its
probability in `data`.

`reg = 0` is EM for the censoring itself, ỹ = y·t: there P(ỹ | y, t) is 0 or 1, contributes nothing
on cells that can occur, and the M-step is the cross-entropy to Q alone. `reg = 1` is the published
objective, which writes f·t̂ in the place of P(ỹ=1 | y, t).

`docs/theory.md` derives all of it, says where the printed statements need a reading, and what they
do not promise.

Reference: Chang et al., "From Biased Selective Labels to Pseudo-Labels", ICML 2024, section 3.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, xlog1py, xlogy

Array = NDArray[np.float64]


def e_step(f: ArrayLike, y_imputed: ArrayLike, tested: ArrayLike) -> Array:
    """Return the pseudo-label Q: the recorded label where tested, the prediction elsewhere.

    This is the exact posterior P(y=1 | ỹ, t, x, a) (Theorem 3.1) if f = P(y=1 | x), a positive
    record is never wrong, and neither the group nor the decision to test says more about `y` than
    `x` does. If clinicians test on signs that are not in `x`, untested people are healthier than
    `f` and Q is too high.
    """
    return np.where(np.asarray(tested, dtype=bool), y_imputed, f).astype(np.float64)


def m_step_row_loss(
    f: ArrayLike, q: ArrayLike, t_hat: ArrayLike, y_imputed: ArrayLike = 0.0, reg: float = 1.0
) -> Array:
    """Return J(f), with 0·log 0 = 0, so that all edges of the unit square have their value.

    For probabilities that are given as such. A network should work on its logits instead, where
    log(1 − f·t̂) keeps its digits when `f` and `t̂` are both near 1.
    """
    f, q, y = (np.asarray(v, dtype=np.float64) for v in (f, q, y_imputed))
    both = f * np.asarray(t_hat, dtype=np.float64)
    fit = -xlogy(q, f) - xlog1py(1 - q, -f)
    causal = -xlogy(reg * q * y, both) - xlog1py(reg * q * (1 - y), -both)
    return fit + causal


def m_step_optimum(q: ArrayLike, t_hat: ArrayLike, reg: float = 1.0) -> Array:
    """Return the `f` that minimises J for an untested row (ỹ = 0).

    Setting J'(f) = 0 and clearing fractions leaves the quadratic

        t̂(1 + reg·Q) f²  −  B f  +  Q  =  0,        B = 1 + (1 + reg)·Q·t̂,

    whose smaller root is the minimiser; the larger one is at least 1. It is written as
    2Q / (B + √D) rather than (B − √D) / (2 t̂ (1 + reg·Q)): the same number, with neither the 0/0
    at t̂ = 0 nor the cancellation near it.
    """
    q, t = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (q, t_hat)))
    b = 1 + (1 + reg) * q * t
    root = 2 * q / (b + np.sqrt(_discriminant(q, t, reg)))
    return np.minimum(root, q)  # true of the exact root; here it trims the last rounding error


def regularisation_strength(q: ArrayLike, t_hat: ArrayLike, reg: float = 1.0) -> Array:
    """Return R = Q − optimum for an untested row: how far the regulariser lowers the prediction.

    R grows strictly with t̂ for 0 < Q < 1 (Theorem 3.4). At the edges it only does not fall: Q = 0
    has nothing to lower, and Q = 1 stays at 1 until t̂ = 1/(1 + reg), then R = 1 − 1/((1 + reg)·t̂)
    (the corollary).
    """
    return np.asarray(q, dtype=np.float64) - m_step_optimum(q, t_hat, reg)


def optimum_sensitivity(q: ArrayLike, t_hat: ArrayLike, reg: float = 1.0) -> Array:
    """Return d optimum / d t̂ for an untested row: never positive, never below −(1 + reg).

    Differentiating the quadratic of `m_step_optimum` gives −f·[(1+reg)·Q − (1+reg·Q)·f] / √D. The
    bound holds on the whole square, so that no testing probability, however extreme, is amplified
    by more than 1 + reg. One point has no derivative and gives NaN: the kink at Q = 1,
    t̂ = 1/(1 + reg), where the slope jumps from 0 to −(1 + reg).
    """
    q, t = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (q, t_hat)))
    f = m_step_optimum(q, t, reg)
    with np.errstate(invalid="ignore"):
        slope = -f * ((1 + reg) * q - (1 + reg * q) * f) / np.sqrt(_discriminant(q, t, reg))
    return np.asarray(slope)


def ipw_sensitivity(t_hat: ArrayLike) -> Array:
    """Return |d(1/t̂)/dt̂| = 1/t̂²: how an inverse-propensity weight answers to an error in t̂.

    It has no bound: halving a small t̂ quadruples it. Infinite at t̂ = 0.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(1 / np.square(np.asarray(t_hat, dtype=np.float64)))


def saturated_fixed_point(p: ArrayLike, t_hat: ArrayLike, reg: float = 1.0) -> Array:
    """Return where EM on the DCEM objective ends if every `x` has its own free prediction.

    Take unlimited data at one `x` with true risk `p` and testing probability `t̂` > 0, both known
    exactly. With reg = 0 the answer is `p`. With reg > 0 it is the root in [0, 1] of

        (1+reg)·p / f  −  (1−p) / (1−f)  −  reg·(1−t̂)·f / (1 − f·t̂)  =  0,

    because tested positives count 1 + reg times while untested rows are pulled down. It differs
    from `p` and depends on `t̂`: the M-step trades consistency for its regularisation. The
    left-hand side falls in `f`, so that the root is unique; t̂ = 0 stands for the limit.
    """
    p, t = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (p, t_hat)))

    def cleared(f: Array) -> Array:  # the equation times f (1−f) (1−f·t̂): same sign, no division
        tested = (1 + reg) * p * (1 - f) - (1 - p) * f
        return tested * (1 - f * t) - reg * (1 - t) * f**2 * (1 - f)

    return root_of_falling(cleared, p.shape)


def root_of_falling(function: Callable[[Array], Array], shape: tuple[int, ...]) -> Array:
    """Return where an elementwise function passes from positive to negative in [0, 1]."""
    low, high = np.zeros(shape), np.ones(shape)
    for _ in range(54):  # halving the unit interval beyond the spacing of float64 at 1
        middle = (low + high) / 2
        positive = function(middle) > 0
        low, high = np.where(positive, middle, low), np.where(positive, high, middle)
    return (low + high) / 2


def _discriminant(q: Array, t: Array, reg: float) -> Array:
    """B² − 4·t̂·(1 + reg·Q)·Q, arranged as a sum of terms that cannot be negative."""
    return np.asarray((1 - (1 + reg) * q * t) ** 2 + 4 * reg * q * (1 - q) * t)


# -- a world small enough to enumerate -------------------------------------------------------


@dataclass(frozen=True)
class DiscreteModel:
    """Selective labelling with finite `x` and `a`: p(x,a) · p(y | x,a) · p(t | x,a,y), ỹ = y·t.

    `p_xa` is [X, A], `p_y` [X, A], `p_t` [X, A, 2] with `y` last. The paper's graph (`censored`) is
    the case in which `p_y` does not vary with `a`, nor `p_t` with `y`; the general tables are there
    to show what breaks when it does not hold.
    """

    p_xa: Array
    p_y: Array
    p_t: Array

    @classmethod
    def censored(cls, p_xa: Array, p_y_given_x: Array, p_t_given_xa: Array) -> "DiscreteModel":
        """Return the model of the paper's graph: y depends on x alone, t on x and a."""
        p_y = np.broadcast_to(p_y_given_x[:, None], p_xa.shape)
        return cls(p_xa, p_y, np.stack([p_t_given_xa, p_t_given_xa], axis=-1))

    @property
    def t_hat(self) -> Array:
        """P(t=1 | x, a), shape [X, A]: what a perfect propensity model would say."""
        return (1 - self.p_y) * self.p_t[..., 0] + self.p_y * self.p_t[..., 1]

    def with_outcome(self, f: Array) -> "DiscreteModel":
        """Return the same world with P(y=1 | x) = f, shape [X]: the model being fitted."""
        return replace(self, p_y=np.broadcast_to(f[:, None], self.p_xa.shape))

    def joint(self) -> Array:
        """P(y, t, ỹ, x, a), shape [2, 2, 2, X, A]."""
        table = np.zeros((2, 2, 2, *self.p_xa.shape))
        for y, p_y in enumerate((1 - self.p_y, self.p_y)):
            for t, p_t in enumerate((1 - self.p_t[..., y], self.p_t[..., y])):
                table[y, t, y * t] = self.p_xa * p_y * p_t
        return table

    def observed(self) -> Array:
        """P(t, ỹ, x, a), shape [2, 2, X, A]."""
        return np.asarray(self.joint().sum(axis=0))

    def posterior(self) -> Array:
        """P(y=1 | t, ỹ, x, a) by Bayes' rule on the table; NaN on cells that cannot occur."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.joint()[1] / self.observed())


def pseudo_labels(f: Array, n_groups: int) -> Array:
    """Return the E-step formula laid out as a table [t, ỹ, x, a]."""
    t, y, x, _ = np.indices((2, 2, len(f), n_groups))
    return e_step(f[x], y, t == 1)


def log_likelihood(data: DiscreteModel, model: DiscreteModel) -> float:
    """Return E log P(t, ỹ, x, a; model), the evidence."""
    return float(xlogy(data.observed(), model.observed()).sum())


def conditional_log_likelihood(data: DiscreteModel, model: DiscreteModel) -> float:
    """Return E log P(ỹ | t, x, a; model): the evidence without the parts that f does not touch."""
    seen = model.observed()
    design = np.broadcast_to(seen.sum(axis=1, keepdims=True), seen.shape)  # P(t, x, a)
    possible = data.observed() > 0
    terms = np.log(seen[possible] / design[possible])
    return float((data.observed()[possible] * terms).sum())


def evidence_lower_bound(data: DiscreteModel, model: DiscreteModel, q: Array) -> float:
    """Return E Σ_y q(y) log [P(y, t, ỹ, x, a; model) / q(y)], for any q(y=1) as a table [t,ỹ,x,a].

    Never above `log_likelihood`, equal to it where `q` is the model's posterior, and −∞ where `q`
    believes in an outcome the record excludes.
    """
    joint, weight = model.joint(), data.observed()
    with np.errstate(divide="ignore"):
        bound = xlogy(q, joint[1]) + xlogy(1 - q, joint[0]) + entropy(q)
    return float(weight[weight > 0] @ bound[weight > 0])


def entropy(q: Array) -> Array:
    """Return the entropy of a yes/no belief: the slack between the bound and the M-step terms."""
    return np.asarray(entr(q) + entr(1 - q))


def m_step_objective(data: DiscreteModel, f: Array, q: Array, reg: float) -> float:
    """Return −E J: what the M-step maximises over f [X] with the pseudo-labels q fixed."""
    weight = data.observed()
    y = np.arange(2.0)[None, :, None, None]
    value = -m_step_row_loss(f[:, None], q, data.t_hat, y, reg)
    return float(weight[weight > 0] @ value[weight > 0])


def m_step(data: DiscreteModel, q: Array, reg: float) -> Array:
    """Return the maximiser of `m_step_objective`, exactly: one concave problem for each x."""
    weight = data.observed()
    y = np.arange(2.0)[None, :, None, None]
    up = (weight * q * (1 + reg * y)).sum(axis=(0, 1, 3))
    down = (weight * (1 - q)).sum(axis=(0, 1, 3))
    penalised = (reg * weight * q * (1 - y)).sum(axis=(0, 1))  # [X, A]

    def slope(f: Array) -> Array:  # of the objective, times f (1−f)
        pull = (penalised * data.t_hat / (1 - f[:, None] * data.t_hat)).sum(axis=1)
        return up * (1 - f) - down * f - pull * f * (1 - f)

    return root_of_falling(slope, up.shape)


def em(data: DiscreteModel, start: Array, iterations: int, reg: float) -> Array:
    """Return f after each EM iteration, the start first: shape [iterations + 1, X]."""
    path = [np.asarray(start, dtype=np.float64)]
    for _ in range(iterations):
        q = pseudo_labels(path[-1], data.p_xa.shape[1])
        path.append(m_step(data, q, reg))
    return np.stack(path)
