"""Adam and SGD on stacked parameters `[M, P]`, in place.

The updates are those of `torch.optim` (weight decay is an L2 term in the gradient, as in Adam, not
AdamW). State lives in tensors that never move, so that a captured CUDA graph can replay the step;
`reset` starts anew without moving them. Learning rate and weight decay may differ by network
(a number, or a tensor `[M]`).
"""

from __future__ import annotations

import torch
from torch import Tensor

Scalar = float | Tensor


def _column(value: Scalar, like: Tensor) -> Scalar:
    return value.to(like).reshape(-1, 1) if isinstance(value, Tensor) else value


class Adam:
    """Adam with bias correction."""

    def __init__(
        self,
        learning_rate: Scalar = 1e-3,
        *,
        weight_decay: Scalar = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
    ):
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.betas, self.epsilon = betas, epsilon

    def bind(self, flat: Tensor) -> None:
        """Make the state for these parameters."""
        self.learning_rate = _column(self.learning_rate, flat)
        self.weight_decay = _column(self.weight_decay, flat)
        self._decays = isinstance(self.weight_decay, Tensor) or self.weight_decay != 0
        self.state = {
            "mean": torch.zeros_like(flat),
            "square": torch.zeros_like(flat),
            # beta to the power of the step, for bias correction; float64 as it decays slowly
            "power1": torch.ones((), dtype=torch.float64, device=flat.device),
            "power2": torch.ones((), dtype=torch.float64, device=flat.device),
        }

    def reset(self) -> None:
        """Forget the past, in place."""
        for name, tensor in self.state.items():
            tensor.fill_(1.0 if name.startswith("power") else 0.0)

    def update(self, flat: Tensor, grad: Tensor) -> None:
        """One step, in place."""
        if self._decays:
            grad = grad + self.weight_decay * flat
        mean, square = self.state["mean"], self.state["square"]
        beta1, beta2 = self.betas
        power1 = self.state["power1"].mul_(beta1)
        power2 = self.state["power2"].mul_(beta2)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denominator = square.sqrt().div_((1 - power2).sqrt().to(flat.dtype)).add_(self.epsilon)
        step = (mean / denominator).mul_((1 / (1 - power1)).to(flat.dtype))
        flat.sub_(step.mul_(self.learning_rate))


class SGD:
    """Stochastic gradient descent with (Nesterov) momentum."""

    def __init__(
        self,
        learning_rate: Scalar = 1e-2,
        *,
        weight_decay: Scalar = 0.0,
        momentum: float = 0.0,
        nesterov: bool = False,
    ):
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.momentum, self.nesterov = momentum, nesterov

    def bind(self, flat: Tensor) -> None:
        """Make the state for these parameters."""
        self.learning_rate = _column(self.learning_rate, flat)
        self.weight_decay = _column(self.weight_decay, flat)
        self._decays = isinstance(self.weight_decay, Tensor) or self.weight_decay != 0
        self.state = {"momentum": torch.zeros_like(flat)}

    def reset(self) -> None:
        """Forget the past, in place."""
        self.state["momentum"].zero_()

    def update(self, flat: Tensor, grad: Tensor) -> None:
        """One step, in place. From a zero buffer this is torch's rule, which starts at the
        first gradient: 0 times the momentum plus the gradient."""
        if self._decays:
            grad = grad + self.weight_decay * flat
        buffer = self.state["momentum"].mul_(self.momentum).add_(grad)
        direction = grad + self.momentum * buffer if self.nesterov else buffer
        flat.sub_(direction * self.learning_rate)
