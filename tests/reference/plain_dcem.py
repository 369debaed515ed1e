"""DCEM written out plainly in NumPy: the second way, against which the library is checked.

It imports nothing of the library, and neither autograd nor batching: one network, all rows at once,
float64, every derivative by hand. Networks are lists of (W [in, out], b [out]) pairs that the
caller supplies, so that two implementations can start from the same weights.

Shapes: n rows, d features, G groups; logits are [n, 2], and class 1 is the second column.
"""

from dataclasses import dataclass

import numpy as np

Array = np.ndarray
Network = list[tuple[Array, Array]]


# ------------------------------------------------------------------------------ the network


def forward(network: Network, X: Array) -> tuple[Array, list[Array]]:
    """Linear, ReLU, ..., linear. Return the logits [n, 2] and the input of each layer."""
    inputs, h = [], X
    for layer, (W, b) in enumerate(network):
        inputs.append(h)
        h = h @ W + b
        if layer < len(network) - 1:
            h = np.maximum(h, 0)
    return h, inputs


def backward(network: Network, inputs: list[Array], d_logits: Array) -> Network:
    """Return the gradient of each (W, b) from the gradient of the logits [n, 2]."""
    gradient: Network = []
    d = d_logits
    for layer in reversed(range(len(network))):
        gradient.append((inputs[layer].T @ d, d.sum(axis=0)))
        d = d @ network[layer][0].T
        if layer > 0:
            d = d * (inputs[layer] > 0)  # the input of a layer is the ReLU before it
    return gradient[::-1]


def log_softmax(logits: Array) -> Array:
    return logits - np.logaddexp(logits[:, 0], logits[:, 1])[:, None]


def probability(network: Network, X: Array) -> Array:
    return np.exp(log_softmax(forward(network, X)[0])[:, 1])


# ------------------------------------------------------------------------------ the losses
# Each returns the loss of every row [n] and its derivative with respect to the logits [n, 2].


def cross_entropy(logits: Array, target: Array) -> tuple[Array, Array]:
    """Cross-entropy with a target in [0, 1], a label or a pseudo-label."""
    log_p = log_softmax(logits)
    loss = -(1 - target) * log_p[:, 0] - target * log_p[:, 1]
    slope = np.exp(log_p[:, 1]) - target
    return loss, np.stack([-slope, slope], axis=1)


def m_step_loss(
    o: Array, u: Array, Q: Array, y_imputed: Array, reg: float = 1.0
) -> tuple[Array, Array]:
    """CE(Q, f) + reg · Q · CE(ỹ, f·t̂), from the outcome logits `o` and the propensity logits `u`.

    f·t̂ is the softmax weight of the pair (y=1, t=1) among the four pairs, whose logits are the
    sums o_y + u_t. So log(f·t̂) and log(1 − f·t̂) are a log-softmax over `one` and `rest`, and
    nothing is ever exponentiated before its maximum has been taken off.
    """
    one = o[:, 1] + u[:, 1]
    rest = np.logaddexp(np.logaddexp(o[:, 0] + u[:, 1], o[:, 1] + u[:, 0]), o[:, 0] + u[:, 0])
    total = np.logaddexp(one, rest)
    log_both, log_not_both = one - total, rest - total

    fit, d_fit = cross_entropy(o, Q)
    loss = fit - reg * Q * (y_imputed * log_both + (1 - y_imputed) * log_not_both)

    # d log(f·t̂)/do1 = 1 − f;  d log(1 − f·t̂)/do1 = −f·t̂·(1 − f)/(1 − f·t̂);  for o0 the opposite.
    log_not_f = log_softmax(o)[:, 0]
    up = np.exp(log_not_f)
    down = -np.exp(log_both + log_not_f - log_not_both)
    slope = -reg * Q * (y_imputed * up + (1 - y_imputed) * down)
    return loss, d_fit + np.stack([-slope, slope], axis=1)


# ------------------------------------------------------------------------------ training


def train(
    network: Network, X: Array, loss, steps: int, lr: float, weight_decay: float
) -> tuple[Network, Array]:
    """Full-batch Adam from fresh moments. `loss` maps logits to (row losses, d logits).

    Weight decay is L2 in the gradient. Return the last weights and the mean loss (decay not
    counted) before each step and after the last one: steps + 1 numbers.
    """
    theta = [p.copy() for layer in network for p in layer]
    m, v = [np.zeros_like(p) for p in theta], [np.zeros_like(p) for p in theta]
    curve = []
    for step in range(1, steps + 1):
        logits, inputs = forward(_pairs(theta), X)
        rows, d_logits = loss(logits)
        curve.append(rows.mean())
        gradient = backward(_pairs(theta), inputs, d_logits / len(X))
        for i, g in enumerate(g for layer in gradient for g in layer):
            g = g + weight_decay * theta[i]
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] = 0.999 * v[i] + 0.001 * g**2
            m_hat, v_hat = m[i] / (1 - 0.9**step), v[i] / (1 - 0.999**step)
            theta[i] = theta[i] - lr * m_hat / (np.sqrt(v_hat) + 1e-8)
    curve.append(loss(forward(_pairs(theta), X)[0])[0].mean())
    return _pairs(theta), np.array(curve)


def _pairs(theta: list[Array]) -> Network:
    return list(zip(theta[::2], theta[1::2], strict=True))


# ------------------------------------------------------------------------------ DCEM


@dataclass
class PlainFit:
    network: Network  # the outcome network after the last M-step
    propensity_network: Network
    propensity_logits: Array  # [n, 2], already divided by the temperature
    pseudo_labels: Array  # [iterations, n]: the Q that each M-step was given
    losses: Array  # [iterations, steps + 1]: the M-step loss along each M-step


def propensity_inputs(X: Array, group: Array) -> Array:
    """[x, x·a, a]; for more than two groups the blocks x·1(a=g), then all 1(a=g), g = 1..G−1."""
    indicators = [(group == g).astype(float)[:, None] for g in range(1, group.max() + 1)]
    return np.hstack([X, *(X * i for i in indicators), *indicators])


def plain_dcem(
    outcome: Network, propensity: Network, X: Array, y_obs: Array, tested: Array, group: Array,
    *, propensity_steps: int, steps: int, iterations: int, lr: float = 1e-3,
    weight_decay: float = 0.0, reg: float = 1.0, temperature: float = 1.0,
    start: str = "uninformative", warm_start: bool = True,
) -> PlainFit:  # fmt: skip
    """Fit the propensity model once, then alternate E-step and M-step `iterations` times.

    start="uninformative": the first pseudo-labels come from the untrained `outcome` network.
    start="algorithm-1": `outcome` is first trained on the tested rows for `steps` steps.
    warm_start: each M-step goes on from the last weights; otherwise from where EM started.
    """
    y_imputed = np.where(tested, y_obs, 0.0)

    g_inputs, t = propensity_inputs(X, group), tested.astype(float)
    propensity, _ = train(
        propensity, g_inputs, lambda logits: cross_entropy(logits, t), propensity_steps, lr, 0.0
    )
    u = forward(propensity, g_inputs)[0] / temperature

    if start == "algorithm-1":
        labels = y_obs[tested]
        outcome, _ = train(
            outcome, X[tested], lambda o: cross_entropy(o, labels), steps, lr, weight_decay
        )
    network, all_q, all_losses = outcome, [], []
    for _ in range(iterations):
        Q = np.where(tested, y_imputed, probability(network, X))  # E-step
        begin = network if warm_start else outcome
        network, curve = train(  # M-step
            begin, X, lambda o, Q=Q: m_step_loss(o, u, Q, y_imputed, reg), steps, lr, weight_decay
        )
        all_q.append(Q)
        all_losses.append(curve)
    return PlainFit(network, propensity, u, np.array(all_q), np.array(all_losses))
