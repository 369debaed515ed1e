"""Train the network, a piece at a time: python3 -m pretraining.train --state DIR --out DIR.

Each piece reads the state in --state (none: starts from nothing), trains for --seconds and writes
the state to --out. The rate is constant; --anneal takes it to nothing instead and writes weights.
"""

import argparse
import hashlib
import json
import math
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from pretraining.check import checks, validate
from pretraining.model import Network
from pretraining.prior import Batch, Shape, simulate
from pretraining.state import Training, read_state, write_state

RATE = 0.006
BATCHES = 2  # in a step
QUERY = 192
MOST_ROWS = 4096  # beyond, sorting on the device waits for the host
NEW_SHAPES = 500_000  # tables until new shapes


class Plan(NamedTuple):
    """Sizes of a training; the number of shapes is odd, so that steps pair them differently."""

    network: dict[str, int]
    shapes: int
    cells: int  # in a batch, about
    context: tuple[int, int]
    columns: tuple[int, int]
    checks: int  # validation tables per shape
    tested: tuple[int, ...]


FULL = Plan({}, 47, 400_000, (64, 2256), (3, 100), 48, (50, 100, 200, 500, 1000, 2000))
TINY = Plan({"width": 16, "wide": 16, "cells": 1, "rows": 1}, 3, 4000, (32, 48), (3, 5), 4, (50,))


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, help="folder with the state to go on from")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for what is written")
    parser.add_argument("--seconds", type=float, default=60, help="when to stop learning")
    parser.add_argument("--steps", type=int, default=10**9, help="steps at most, in this piece")
    parser.add_argument("--every", type=float, default=180, help="seconds between reports")
    parser.add_argument("--anneal", action="store_true", help="take the rate to 0; write weights")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the code")
    return parser.parse_args(arguments)


def draw_shapes(plan: Plan, seed: str) -> list[Shape]:
    """Draw shapes spread evenly over context and columns on the log scale, in random order."""
    dice = random.Random(seed)

    def spread(limits: tuple[int, int]) -> list[int]:
        places = [(i + dice.random()) / plan.shapes for i in range(plan.shapes)]
        values = [int(limits[0] * ((limits[1] + 0.99) / limits[0]) ** place) for place in places]
        return dice.sample(values, plan.shapes)

    shapes = []
    for context, columns in zip(spread(plan.context), spread(plan.columns), strict=True):
        pool = max(256, context + 64, int(context * math.exp(dice.uniform(0.1, 1.8))))
        cost = (context + QUERY) * (columns + 3) * (1 + context / 1000)
        tables = min(max(8, round(plan.cells / cost)), 384)
        shapes.append(Shape(tables, context, QUERY, columns, min(pool, MOST_ROWS - QUERY)))
    return shapes


def wait() -> None:
    """Wait for the device."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Lane:
    """A CUDA stream whose work is recorded once and then replayed; on a CPU, plain calls."""

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream() if device.type == "cuda" else None
        self.pool = torch.cuda.graph_pool_handle() if self.stream else None

    def record(self, work: Callable[..., None], *tensors: Any) -> Callable[[], None]:
        """Return a call that does the work; it keeps the tensors, whose addresses a graph holds."""
        if self.stream is None:
            return partial(work, *tensors)
        with torch.cuda.stream(self.stream):  # first without recording: every kernel is loaded
            work(*tensors)
        wait()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
            work(*tensors)
        return partial(self.replay, graph, work, *tensors)

    def replay(self, graph: torch.cuda.CUDAGraph, *_kept: Any) -> None:
        """Do recorded work again."""
        with torch.cuda.stream(self.stream):
            graph.replay()

    def follow(self, other: "Lane") -> None:
        """Let further work wait for what the other lane has been given."""
        if self.stream and other.stream:
            self.stream.wait_stream(other.stream)

    def mark(self) -> Callable[[], None]:
        """Return a call that waits until the work given so far is done."""
        return self.stream.record_event().synchronize if self.stream else lambda: None


class Steps:
    """Makes batches in one lane and learns from them in another."""

    def __init__(self, net: Network, training: Training, shapes: list[Shape], seed: int) -> None:
        self.net, self.training, self.shapes, self.seed = net, training, shapes, seed
        self.device = training.weights.device
        self.making, self.learning = Lane(self.device), Lane(self.device)
        self.loss = torch.zeros((), device=self.device)
        self.buffers = [simulate(shape, self.device) for shape in shapes]
        pairs = list(zip(shapes, self.buffers, strict=True))
        self.make = [self.making.record(self.fill, *pair) for pair in pairs]
        self.learn = [self.learning.record(self.study, *pair) for pair in pairs]
        self.step = self.learning.record(training.step)
        self.done = self.learning.mark()

    def fill(self, shape: Shape, buffer: Batch) -> None:
        """Make a batch."""
        for kept, new in zip(buffer, simulate(shape, self.device), strict=True):
            kept.copy_(new)

    def study(self, shape: Shape, buffer: Batch) -> None:
        """Add the gradient of a batch."""
        z = self.net(*buffer[:4], shape.context)
        loss = functional.binary_cross_entropy_with_logits(z, buffer.risk, reduction="none")
        loss = (loss.mean(1) * buffer.weight).sum() / buffer.weight.sum().clamp(min=1)
        # a batch of few large tables is noisier, so it counts less
        self.training.add_gradient(loss * (shape.tables / 40) ** 0.5 / BATCHES)
        self.loss += loss.detach()

    def prepare(self, batch: int, tables: int) -> None:
        """Make a batch beside the learning; its seed is the count of tables before it."""
        torch.manual_seed((self.seed << 48) + tables)
        self.make[batch % len(self.shapes)]()

    def learn_from(self, batch: int) -> int:
        """Learn from a batch that was made; return how many tables it has."""
        self.learning.follow(self.making)
        self.learn[batch % len(self.shapes)]()
        before, self.done = self.done, self.learning.mark()
        before()  # never far ahead of the device
        return self.shapes[batch % len(self.shapes)].tables


def source_hash() -> str:
    """Return a hash of the code that trains."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


class Piece:
    """One piece of the training: what it goes on from, and what it reports and writes."""

    def __init__(self, asked: argparse.Namespace, device: torch.device) -> None:
        self.start = time.monotonic()
        self.asked, plan = asked, TINY if asked.tiny else FULL
        torch.manual_seed(asked.seed)
        self.net = Network(**plan.network).to(device)
        self.training = Training(self.net)
        tensors = self.training.tensors()
        self.record = {"seed": asked.seed, "size": self.net.size}
        before = {"tables": 0, "batches": 0, "steps": 0, "seconds": 0.0, **self.record}
        if asked.state:
            tensors, before = read_state(asked.state)
        for name, value in self.record.items():
            if before[name] != value:
                raise ValueError(f"The state has another {name}: {before[name]}")
        self.record = {**before, "code": source_hash(), "torch": str(torch.__version__)}
        self.earlier = self.record["seconds"]
        self.checks = checks(plan.checks, plan.tested, device)
        shapes = draw_shapes(plan, f"{asked.seed} {self.record['tables'] // NEW_SHAPES}")
        self.steps = Steps(self.net, self.training, shapes, asked.seed)
        self.training.load(tensors)  # recording took steps of its own
        self.steps.loss.zero_()
        asked.out.mkdir(parents=True, exist_ok=True)

    def seconds(self) -> float:
        """Return for how long this piece has run."""
        return time.monotonic() - self.start

    def report(self, since: dict[str, Any]) -> dict[str, Any]:
        """Log what was reached since the record `since`, and write it; return a new `since`."""
        wait()
        record = self.record
        record["seconds"] = self.earlier + self.seconds()
        new = {name: record[name] - since[name] for name in ("batches", "tables", "seconds")}
        line = {name: record[name] for name in ("seconds", "steps", "tables")}
        line["loss"] = self.steps.loss.item() / max(1, new["batches"])
        line["tables a second"] = new["tables"] / max(1e-9, new["seconds"])
        line["GiB"] = torch.cuda.max_memory_reserved() / 2**30
        line = {name: round(value, 4) for name, value in line.items()}
        self.steps.loss.zero_()
        training, annealed = self.training, self.asked.anneal
        training.work.copy_(training.weights if annealed else training.average)
        line["validation"] = validate(self.net, self.checks)
        training.work.copy_(training.weights)
        print(json.dumps(line), flush=True)
        with (self.asked.out / "log.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")
        if annealed:
            named = zip(training.names, training.parts(training.weights), strict=True)
            weights = {name: part.half().cpu() for name, part in named}
            torch.save({"record": record, "weights": weights}, self.asked.out / "network.pt")
        else:
            write_state(self.asked.out, training.tensors(), record)
        wait()
        return dict(record, seconds=self.earlier + self.seconds())

    def step(self, left: float) -> None:
        """Learn from some batches and take a step; `left` is the share of the rate."""
        record = self.record
        with torch.cuda.stream(self.steps.learning.stream):
            self.training.rate.fill_(RATE * left * min(1, (record["steps"] + 1) / 100))
        for _ in range(BATCHES):
            record["tables"] += self.steps.learn_from(record["batches"])
            record["batches"] += 1
            self.steps.prepare(record["batches"], record["tables"])
        self.steps.step()
        record["steps"] += 1

    def run(self) -> None:
        """Train until the time or the steps are over."""
        asked, record = self.asked, self.record
        since = self.report(record)
        begin, last = self.seconds(), record["steps"] + asked.steps
        self.steps.prepare(record["batches"], record["tables"])
        while (now := self.seconds()) < asked.seconds and record["steps"] < last:
            self.step((asked.seconds - now) / (asked.seconds - begin) if asked.anneal else 1.0)
            if self.earlier + now - since["seconds"] > asked.every:
                since = self.report(since)
        self.report(since)


def main(arguments: list[str] | None = None) -> None:
    """Train one piece."""
    asked = options(arguments)
    torch.set_float32_matmul_precision("high")
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for every shape
    Piece(asked, torch.device("cuda" if torch.cuda.is_available() else "cpu")).run()


if __name__ == "__main__":
    main()
