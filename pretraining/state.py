"""Weights, optimizer and average in flat tensors, and how they are kept between pieces.

Matrices take Muon's step (all of one shape at once), the rest Adam's. Nothing in a step waits for
the device, so a CUDA graph can record it.
"""

import hashlib
import io
import json
import math
import os
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

PART = 14 * 2**20  # bytes in one file of a state
HORIZON = 2000  # steps that the moving average looks back
NOT_MUON = ("embed", "tag", "code", "row_code", "mark", "head")


def orthogonal(matrices: Tensor) -> Tensor:
    """Return roughly the nearest matrices with singular values 1 (Newton and Schulz, 5 steps)."""
    x = matrices.bfloat16()
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * (square @ square)) @ x
    return (x.mT if tall else x).float()


class Training:
    """The weights of a network while it is trained, their average, and the optimizer.

    The network computes with copies of the weights in `work`, bfloat16 on a GPU.
    """

    def __init__(self, net: nn.Module) -> None:
        def place(item: tuple[str, Tensor]) -> tuple[bool, bool, tuple[int, ...], str]:
            matrix = item[1].ndim == 2 and not item[0].startswith(NOT_MUON)
            # what is no multiple of 16 long comes last: kernels are slow on odd addresses
            return not matrix, item[1].numel() % 16 > 0, tuple(item[1].shape), item[0]

        named = sorted(net.named_parameters(), key=place)
        self.names, self.parameters = zip(*named, strict=True)
        self.shapes = [p.shape for p in self.parameters]
        self.weights = torch.cat([p.detach().flatten() for p in self.parameters])
        self.blocks, self.split = [], 0  # matrices of one shape lie together, before the rest
        for (rest, _, shape), group in groupby(named, key=lambda item: place(item)[:3]):
            if not rest:
                start, self.split = self.split, self.split + math.prod(shape) * len(list(group))
                self.blocks.append((start, self.split, shape))
        self.average = self.weights.clone()
        self.work = self.weights.to(
            torch.bfloat16 if self.weights.is_cuda else torch.float32, copy=True
        )
        self.gradient = torch.zeros_like(self.weights)
        self.momentum = torch.zeros_like(self.weights[: self.split], dtype=torch.bfloat16)
        self.first = torch.zeros_like(self.weights[self.split :])
        self.second = torch.zeros_like(self.first)
        self.count, self.rate = self.weights.new_zeros(2).unbind()
        for parameter, part in zip(self.parameters, self.parts(self.work), strict=True):
            parameter.data = part

    def parts(self, flat: Tensor) -> list[Tensor]:
        """Return the parameters that lie in a flat tensor."""
        parts = flat.split([shape.numel() for shape in self.shapes])
        return [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def add_gradient(self, loss: Tensor) -> None:
        """Add the gradient of the loss to the one collected for the next step."""
        parts = torch.autograd.grad(loss, self.parameters)
        self.gradient += torch.cat([g.flatten() for g in parts])

    def step(self) -> None:
        """Take a step with the collected gradient."""
        norm = self.gradient.norm()
        g = torch.where(norm.isfinite(), self.gradient / norm.clamp(min=1), 0.0)
        self.gradient.zero_()
        self.count += 1
        self.momentum.lerp_(g[: self.split].bfloat16(), 0.05)
        slope = g[: self.split].lerp(self.momentum.float(), 0.95)
        for start, stop, shape in self.blocks:
            update = orthogonal(slope[start:stop].view(-1, *shape)).flatten()
            weights = self.weights[start:stop]
            weights *= 1 - 0.02 * self.rate
            weights -= self.rate * (0.2 * max(shape) ** 0.5) * update
        rest, weights = g[self.split :], self.weights[self.split :]
        self.first.lerp_(rest, 0.1)
        self.second.lerp_(rest * rest, 0.02)
        mean, square = self.first / (1 - 0.9**self.count), self.second / (1 - 0.98**self.count)
        weights -= 0.5 * self.rate * mean / (square.sqrt() + 1e-8)
        self.average.lerp_(self.weights, (10 / (self.count + 10)).clamp(min=1 / HORIZON))
        self.work.copy_(self.weights)

    def tensors(self) -> dict[str, Tensor]:
        """Return what the next piece needs; the average as its distance from the weights."""
        names = ("weights", "momentum", "first", "second", "count")
        kept = {name: getattr(self, name).cpu().clone() for name in names}
        return {**kept, "distance": (self.average - self.weights).bfloat16().cpu()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take over what `tensors` returned."""
        for name in tensors.keys() - {"distance"}:
            getattr(self, name).copy_(tensors[name])
        self.average.copy_(self.weights + tensors["distance"].to(self.weights.device))
        self.work.copy_(self.weights)
        self.gradient.zero_()


def write_state(folder: Path, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
    """Write tensors in files of at most PART bytes and, last, the record.

    Whoever is stopped while writing leaves the state before whole.
    """
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    data = buffer.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    names = [f"state-{digest[:8]}-{i}.bin" for i in range(-(-len(data) // PART))]
    for i, name in enumerate(names):
        (folder / name).write_bytes(data[i * PART : (i + 1) * PART])
    draft = folder / "draft.json"
    draft.write_text(json.dumps({**record, "sha256": digest, "parts": names}, indent=1) + "\n")
    os.replace(draft, folder / "state.json")
    for path in set(folder.glob("state-*.bin")) - {folder / name for name in names}:
        path.unlink()


def read_state(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the record of the state in the folder."""
    record = json.loads((folder / "state.json").read_text())
    data = b"".join((folder / name).read_bytes() for name in record["parts"])
    if hashlib.sha256(data).hexdigest() != record["sha256"]:
        raise ValueError(f"The state in {folder} is damaged: its parts do not give its hash.")
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True), record
