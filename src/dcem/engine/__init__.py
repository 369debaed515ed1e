"""Train M independent networks as one: the fleet.

A *fleet* is M networks of one architecture whose parameters lie stacked in one array `[M, P]`.
They see the same rows (`X [N, d]`, stored once) or each their own (`X [M, N, d]`); one call gives
all M losses, one backward pass all M gradients, one update moves all M networks. Since the loss of
one network does not depend on the parameters of another, a fleet of M gives the same networks as
M separate fits, at a fraction of the cost: small networks leave a processor idle, and M of them
fill it.

The engine knows rows, weights and losses. What the rows mean is for `dcem.methods` to say.

    architecture = MLP(n_inputs=2, hidden=(64, 64))
    fleet = Fleet.initial(architecture, seeds=[0, 1, 2])
    rows = Rows(X, {"target": y})
    Trainer(fleet, rows, supervised(architecture, cross_entropy), Adam(1e-3)).run(1000)
    fleet.predict(X)          # [3, N], the probability of class 1
"""

from dcem.engine.architectures import MLP, FromModule
from dcem.engine.fit import SGD, Adam, Patience, Replay, Trainer, supervised, train
from dcem.engine.fleet import Fleet, Rows, cross_entropy, in_chunks, resolve_device

__all__ = [
    "MLP",
    "SGD",
    "Adam",
    "Fleet",
    "FromModule",
    "Patience",
    "Replay",
    "Rows",
    "Trainer",
    "cross_entropy",
    "in_chunks",
    "resolve_device",
    "supervised",
    "train",
]
