"""Weights, optimizer and average in flat tensors, and how they are kept between pieces.

Matrices take Muon's step (all of one shape at once), the rest Adam's. Nothing here waits for the
device, so a CUDA graph can record a step.
"""

import hashlib
import io
import json
import math
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

PART = 14 * 2**20  # bytes in one file of a state
MANIFEST = "state.json"
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
    """The weights of a network while it is trained.

    The network computes with copies of the weights in `work` (bfloat16 on a GPU). The weights
    themselves and their moving average are float32.
    """

    def __init__(self, net: nn.Module, device: torch.device) -> None:
        self.device = device
        kind = torch.bfloat16 if device.type == "cuda" else torch.float32
        named = dict(net.named_parameters())
        matrix = {n: p.ndim == 2 and not n.startswith(NOT_MUON) for n, p in named.items()}
        self.names = sorted(named, key=lambda n: (not matrix[n], tuple(named[n].shape), n))
        self.shapes = {n: named[n].shape for n in self.names}
        self.split = sum(named[n].numel() for n in self.names if matrix[n])
        weights = torch.cat([named[n].detach().flatten().float() for n in self.names])
        self.weights = weights.to(device)
        self.average = self.weights.clone()
        self.work = self.weights.to(kind)
        self.gradient = torch.zeros_like(self.weights)
        self.momentum = torch.zeros(self.split, device=device, dtype=torch.bfloat16)
        self.first = torch.zeros(len(weights) - self.split, device=device)
        self.second = torch.zeros_like(self.first)
        self.count = torch.zeros((), device=device)
        self.rate = torch.zeros((), device=device)
        self.blocks: list[tuple[int, int, torch.Size]] = []  # matrices of one shape lie together
        at = 0
        for name in self.names:
            size = named[name].numel()
            named[name].data = self.work[at : at + size].view(self.shapes[name])
            if matrix[name]:
                if self.blocks and self.blocks[-1][2] == self.shapes[name]:
                    self.blocks[-1] = (self.blocks[-1][0], at + size, self.shapes[name])
                else:
                    self.blocks.append((at, at + size, self.shapes[name]))
            at += size
        self.parameters = [named[n] for n in self.names]

    def add_gradient(self, loss: Tensor) -> None:
        """Add the gradient of the loss to the one collected for the next step."""
        parts = torch.autograd.grad(loss, self.parameters)
        self.gradient += torch.cat([g.flatten() for g in parts])

    def step(self, horizon: float, decay: float = 0.02) -> None:
        """Take a step with the collected gradient; `horizon` is the average's, in steps."""
        norm = self.gradient.norm()
        g = torch.where(norm.isfinite(), self.gradient / norm.clamp(min=1), 0.0)
        self.gradient.zero_()
        self.count += 1
        slope = g[: self.split].bfloat16()
        self.momentum.lerp_(slope, 0.05)
        slope = slope.lerp(self.momentum, 0.95)
        for start, stop, shape in self.blocks:
            update = orthogonal(slope[start:stop].view(-1, *shape))
            weights = self.weights[start:stop]
            weights *= 1 - self.rate * decay
            weights -= self.rate * (0.2 * max(shape) ** 0.5) * update.flatten()
        rest, weights = g[self.split :], self.weights[self.split :]
        self.first.lerp_(rest, 0.1)
        self.second.lerp_(rest * rest, 0.02)
        size = (self.second / (1 - torch.exp(self.count * math.log(0.98)))).sqrt() + 1e-8
        weights -= (
            0.5 * self.rate * (self.first / (1 - torch.exp(self.count * math.log(0.9)))) / size
        )
        self.average.lerp_(self.weights, (10 / (self.count + 10)).clamp(min=1 / horizon))
        self.work.copy_(self.weights)

    def use(self, weights: Tensor) -> None:
        """Let the network compute with these weights until the next step."""
        self.work.copy_(weights)

    def named_weights(self, weights: Tensor) -> dict[str, Tensor]:
        """Return the weights by the names of the network's parameters."""
        parts = weights.split([s.numel() for s in self.shapes.values()])
        return {n: w.view(self.shapes[n]) for n, w in zip(self.names, parts, strict=True)}

    def tensors(self) -> dict[str, Tensor]:
        """Return what the next piece needs; the average as its distance from the weights."""
        return {
            "weights": self.weights,
            "distance": (self.average - self.weights).bfloat16(),
            "momentum": self.momentum,
            "first": self.first,
            "second": self.second,
            "count": self.count,
        }

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take over what `tensors` returned."""
        for name in ("weights", "momentum", "first", "second", "count"):
            own = getattr(self, name)
            if own.shape != tensors[name].shape or own.dtype != tensors[name].dtype:
                raise ValueError(f"The state is of another network: {name} differs in size.")
            own.copy_(tensors[name])
        self.average.copy_(self.weights + tensors["distance"].to(self.device).float())
        self.work.copy_(self.weights)


def write_state(folder: Path, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
    """Write tensors and record: files of at most PART bytes, and last the manifest.

    Whoever is stopped while writing leaves the state before whole.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before = read_manifest(folder)
    buffer = io.BytesIO()
    torch.save({name: t.cpu().clone() for name, t in tensors.items()}, buffer)
    data = buffer.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    names = [f"state-{digest[:8]}-{i}.bin" for i in range(-(-len(data) // PART))]
    for i, name in enumerate(names):
        (folder / name).write_bytes(data[i * PART : (i + 1) * PART])
    draft = folder / "draft.json"
    draft.write_text(json.dumps({**record, "sha256": digest, "parts": names}, indent=1) + "\n")
    os.replace(draft, folder / MANIFEST)
    for name in set(before["parts"] if before else []) - set(names):
        (folder / name).unlink(missing_ok=True)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of the state in the folder, None where there is none."""
    path = folder / MANIFEST
    return json.loads(path.read_text()) if path.exists() else None


def read_state(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Return tensors and record of the state in the folder, None where there is none."""
    record = read_manifest(folder)
    if record is None:
        return None
    data = b"".join((folder / name).read_bytes() for name in record["parts"])
    if hashlib.sha256(data).hexdigest() != record["sha256"]:
        raise ValueError(f"The state in {folder} is damaged: its parts do not give its hash.")
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True), record
