"""What one row of the DCEM objective asks for, in closed form.

For a row with pseudo-label `Q`, testing probability `t̂` and recorded label `ỹ` (0 where nobody
looked), the M-step chooses the prediction `f` in [0, 1] that minimises

    J(f) = −[Q log f + (1−Q) log(1−f)]  −  reg · Q · [ỹ log(f·t̂) + (1−ỹ) log(1−f·t̂)].

The first bracket pulls `f` to the pseudo-label; the second, the causal regulariser, asks that
`f·t̂`, the chance of being tested *and* positive, agree with the record. The functions below give
the minimiser, how far it lies from `Q`, and how fast it moves with `t̂`: all elementwise, on arrays
that broadcast. A fitted network cannot set each row's `f` freely, so these describe what the loss
pulls towards, not what a fit returns. `docs/theory.md` derives them, says where the printed
statements need a reading, and what they do not promise.

Reference: Chang et al., "From Biased Selective Labels to Pseudo-Labels", ICML 2024, section 3.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlog1py, xlogy

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
