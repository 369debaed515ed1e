"""What one step of the M-step costs.

On the CPU: one step of one (64, 64) network on 20,000 rows, against one bare 20000x64x64 float32
product in the same run. The three large products of a step alone are 3.

On CUDA: milliseconds a step against the number of networks, 1 to 512, for the fused kernel and for
plain stacked products, both as captured graphs. `--out FOLDER` writes the numbers and a figure.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch

from dcem.engine import MLP, Adam, Fleet, Rows, Trainer
from dcem.methods.em_networks import mstep_loss

ROWS = 20_000


def trainer(n_networks: int, device: str, logits: str = "logits") -> Trainer:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator).to(device)

    shape = (n_networks, ROWS)
    columns = {"q": draw(*shape), "y": draw(*shape).round(), "u": draw(*shape)}
    rows = Rows(draw(*shape, 2), columns)
    architecture = MLP(2)
    fleet = Fleet.initial(architecture, list(range(n_networks)), device=device)
    network = getattr(architecture, logits)
    return Trainer(
        fleet, rows, lambda flat, r: mstep_loss(network(flat, r.X), r["q"], r), Adam(1e-3)
    )


def milliseconds(work: Callable[[], object], repeat: int) -> float:
    """The median of single calls, after a few to warm up."""
    for _ in range(5):
        work()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def cpu() -> None:
    a, b = torch.rand(ROWS, 64), torch.rand(64, 64)
    step = trainer(1, "cpu")
    ratios, eager_ratios = [], []
    eager = trainer(1, "cpu", "stacked")
    for _ in range(5):  # interleaved: a busy moment hits both
        product = milliseconds(lambda: a @ b, 20)
        ratios.append(milliseconds(lambda: step.run(1), 20) / product)
        eager_ratios.append(milliseconds(lambda: eager.run(1), 20) / product)
    print(f"one product {product:.2f} ms on {torch.get_num_threads()} threads")
    print(f"one M-step / one product: {statistics.median(ratios):.1f}   (bound: 10)")
    print(f"the same through plain autograd: {statistics.median(eager_ratios):.1f}")


def cuda(out: Path | None) -> None:
    rows = []
    for kind, tf32, logits in (
        ("fused, float32 accuracy", False, "logits"),
        ("fused, tf32", True, "logits"),
        ("stacked products, tf32", True, "stacked"),
    ):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        for power in range(10):
            n_networks = 2**power
            step = trainer(n_networks, "cuda", logits)
            step.run(10)
            torch.cuda.synchronize()
            start = time.perf_counter()
            step.run(100)
            torch.cuda.synchronize()
            ms = (time.perf_counter() - start) * 10
            rows.append({"kind": kind, "networks": n_networks, "ms_per_step": round(ms, 4)})
            del step
            torch.cuda.empty_cache()
        print(kind, [(row["networks"], row["ms_per_step"]) for row in rows if row["kind"] == kind])
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows).to_csv(out / "engine_steps.csv", index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cpu()
    if torch.cuda.is_available():
        print(torch.cuda.get_device_name(), "torch", torch.__version__)
        cuda(options.out)


if __name__ == "__main__":
    main()
