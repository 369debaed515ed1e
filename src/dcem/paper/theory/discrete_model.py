"""A world small enough to enumerate, in which the claims about EM can be checked exactly.

Every variable has a few values, so that the joint distribution P(y, t, ỹ, x, a) is a table, the
posterior is a division, and likelihoods are finite sums: no sampling, no network, no optimiser that
might have stopped early. The outcome model is saturated: one free probability f(x) for each `x`.

Tables over what is observed are indexed [t, ỹ, x, a]; the joint has `y` in front. Log-likelihoods
and bounds are population means: each observable cell counts with its probability in `data`.

`reg = 0` is EM for the censoring itself, ỹ = y·t: there P(ỹ | y, t) is 0 or 1, contributes nothing
on cells that can occur, and the M-step is the cross-entropy to Q alone. `reg = 1` is the published
objective, which writes f·t̂ in the place of P(ỹ=1 | y, t). `docs/theory.md` shows what changes.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import entr, xlogy

from dcem.paper.theory.m_step import Array, e_step, m_step_row_loss, root_of_falling


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
