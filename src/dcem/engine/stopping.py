"""Early stopping of each network on its own, with a real copy of its best weights.

The watched loss is compared after each check: `loss + min_delta < best` is an improvement;
`patience` checks in a row without one stop the network. Its weights then stay where they are while
the others go on. Everything is arithmetic on tensors `[M]`, with no look at the host, so that it
can run inside a captured graph.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Patience:
    """Stop a network after `patience` checks without improvement; remember its best weights.

    `restore` copies the best weights back, also for networks whose budget ran out before their
    patience did. (Keeping a reference instead of a copy would restore nothing: the released code
    of the paper does that, and so keeps the last weights.)
    """

    def __init__(self, flat: Tensor, patience: int, min_delta: float = 1e-8):
        n_networks = flat.shape[0]
        self.patience, self.min_delta = patience, min_delta
        self.best_flat = flat.detach().clone()
        self.best_loss = flat.new_full((n_networks,), torch.inf)
        self.best_step = torch.zeros(n_networks, dtype=torch.int64, device=flat.device)
        self.failures = torch.zeros(n_networks, dtype=torch.int64, device=flat.device)
        self.checks = torch.zeros((), dtype=torch.int64, device=flat.device)
        self.active = torch.ones(n_networks, dtype=torch.bool, device=flat.device)

    def update(self, loss: Tensor, flat: Tensor) -> None:
        """Take note of the watched losses `[M]` of the current weights."""
        self.checks += 1
        better = self.active & (loss + self.min_delta < self.best_loss)
        self.best_loss.copy_(torch.where(better, loss, self.best_loss))
        self.best_step.copy_(torch.where(better, self.checks, self.best_step))
        self.best_flat.copy_(torch.where(better.unsqueeze(1), flat, self.best_flat))
        self.failures.copy_(torch.where(better, 0, self.failures + self.active))
        self.active.logical_and_(self.failures < self.patience)

    def restore(self, flat: Tensor) -> None:
        """Put the best weights back, network by network, wherever a check ever improved."""
        seen = (self.best_step > 0).unsqueeze(1)
        flat.copy_(torch.where(seen, self.best_flat, flat))

    def state(self) -> dict[str, Tensor]:
        """All of it, by name, for a checkpoint."""
        names = ("best_flat", "best_loss", "best_step", "failures", "checks", "active")
        return {name: getattr(self, name) for name in names}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go on from a checkpoint, in place."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
