"""Where a fleet lives."""

from __future__ import annotations

import torch


def resolve_device(device: str | torch.device = "auto") -> torch.device:
    """The device for `"auto"` (CUDA where there is a card, else the CPU), or the one named."""
    if str(device) == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    resolved = torch.device(device)
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device={str(device)!r} was asked for, but PyTorch sees no CUDA device here. "
            'Use device="auto" or device="cpu".'
        )
    return resolved
