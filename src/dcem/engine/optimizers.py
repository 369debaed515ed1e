"""Adam and SGD on stacked parameters `[M, P]`, in place.

The updates are those of `torch.optim` (weight decay is an L2 term in the gradient, as in Adam, not
AdamW). State lives in tensors that never move, so that a captured CUDA graph can replay the step;
`reset` starts anew without moving them.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Optimizer:
    """What the training loop asks of an optimiser: `bind` once, then `update` step by step."""

    state: dict[str, Tensor]

    def __init__(self, learning_rate: float, weight_decay: float):
        self.learning_rate, self.weight_decay = learning_rate, weight_decay

    def bind(self, flat: Tensor) -> None:
        """Make the state for these parameters."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget the past, in place."""
        for name, tensor in self.state.items():
            tensor.fill_(1.0 if name.startswith("power") else 0.0)

    def update(self, flat: Tensor, grad: Tensor) -> None:
        """One step, in place."""
        raise NotImplementedError

    def _decayed(self, flat: Tensor, grad: Tensor) -> Tensor:
        return grad + self.weight_decay * flat if self.weight_decay else grad


class Adam(Optimizer):
    """Adam with bias correction."""

    BETAS, EPSILON = (0.9, 0.999), 1e-8

    def __init__(self, learning_rate: float = 1e-3, *, weight_decay: float = 0.0):
        super().__init__(learning_rate, weight_decay)

    def bind(self, flat: Tensor) -> None:
        """Make the state for these parameters."""
        self.state = {
            "mean": torch.zeros_like(flat),
            "square": torch.zeros_like(flat),
            # beta to the power of the step, for bias correction; float64 as it decays slowly
            "power1": torch.ones((), dtype=torch.float64, device=flat.device),
            "power2": torch.ones((), dtype=torch.float64, device=flat.device),
        }

    def update(self, flat: Tensor, grad: Tensor) -> None:
        """One step, in place."""
        grad = self._decayed(flat, grad)
        mean, square = self.state["mean"], self.state["square"]
        beta1, beta2 = self.BETAS
        power1 = self.state["power1"].mul_(beta1)
        power2 = self.state["power2"].mul_(beta2)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denominator = square.sqrt().div_((1 - power2).sqrt().to(flat.dtype)).add_(self.EPSILON)
        step = (mean / denominator).mul_((1 / (1 - power1)).to(flat.dtype))
        flat.sub_(step.mul_(self.learning_rate))


class SGD(Optimizer):
    """Stochastic gradient descent with (Nesterov) momentum."""

    def __init__(
        self,
        learning_rate: float = 1e-2,
        *,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        nesterov: bool = False,
    ):
        super().__init__(learning_rate, weight_decay)
        self.momentum, self.nesterov = momentum, nesterov

    def bind(self, flat: Tensor) -> None:
        """Make the state for these parameters."""
        self.state = {"momentum": torch.zeros_like(flat)}

    def update(self, flat: Tensor, grad: Tensor) -> None:
        """One step, in place. From a zero buffer this is torch's rule, which starts at the
        first gradient: 0 times the momentum plus the gradient."""
        grad = self._decayed(flat, grad)
        buffer = self.state["momentum"].mul_(self.momentum).add_(grad)
        direction = grad + self.momentum * buffer if self.nesterov else buffer
        flat.sub_(direction * self.learning_rate)
