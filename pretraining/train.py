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
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from pretraining.check import Check, checks, validate
from pretraining.model import Network
from pretraining.prior import Batch, Shape, simulate
from pretraining.state import Training, read_state, write_state

QUERY = 192
MOST_ROWS = 4096  # beyond, sorting on the device waits for the host


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, help="folder with the state to go on from")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for what is written")
    parser.add_argument("--seconds", type=float, default=60, help="when to stop learning")
    parser.add_argument("--steps", type=int, default=10**9, help="steps at most, in this piece")
    parser.add_argument("--anneal", action="store_true", help="take the rate to 0; write weights")
    parser.add_argument("--rate", type=float, default=0.006)
    parser.add_argument("--horizon", type=float, default=2000, help="steps that are averaged")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shapes", type=int, default=48, help="shapes of tables in a piece")
    parser.add_argument("--book", type=int, default=500_000, help="tables until new shapes")
    parser.add_argument("--cells", type=int, default=400_000, help="cells in a batch, about")
    parser.add_argument("--batches", type=int, default=2, help="batches in a step")
    parser.add_argument("--context", type=int, nargs=2, default=(64, 2256))
    parser.add_argument("--columns", type=int, nargs=2, default=(3, 100))
    parser.add_argument("--every", type=float, default=180, help="seconds between reports")
    parser.add_argument("--check", type=int, default=48, help="tables per shape in validation")
    parser.add_argument("--size", type=json.loads, default={}, help="the network's, as JSON")
    parser.add_argument("--eager", action="store_true", help="no CUDA graphs")
    return parser.parse_args(arguments)


def draw_shapes(asked: argparse.Namespace, book: int) -> list[Shape]:
    """Draw the shapes of a book, spread evenly over context and columns on the log scale."""
    random_ = random.Random(f"{asked.seed} shapes {book}")
    count = asked.shapes
    strata = random_.sample(range(count), count)

    def spread(limits: tuple[int, int], i: int) -> int:
        low, high = math.log(limits[0]), math.log(limits[1] + 0.99)
        return int(math.exp(low + (high - low) * (i + random_.random()) / count))

    shapes = []
    for i in range(count):
        context = max(8, spread(asked.context, i) // 8 * 8)
        columns = spread(asked.columns, strata[i])
        pool = max(256, context + 64, int(context * math.exp(random_.uniform(0.1, 1.8))))
        cost = (context + QUERY) * (columns + 3) * (1 + context / 1000)
        tables = min(max(8, round(asked.cells / cost)), 384)
        shapes.append(Shape(tables, context, QUERY, columns, min(pool, MOST_ROWS - QUERY)))
    return shapes


def shape_of(batch: int, count: int, seed: int) -> int:
    """Return which shape a batch has: each once in a random order, never one twice in a row."""

    def order(epoch: int) -> list[int]:
        return random.Random(f"{seed} order {epoch}").sample(range(count), count)

    epoch, place = divmod(batch, count)
    now = order(epoch)
    if epoch and count > 2 and now[0] == order(epoch - 1)[-1]:
        now[0], now[1] = now[1], now[0]
    return now[place]


class Steps:
    """Makes batches on one stream and learns from them on another; both as CUDA graphs."""

    def __init__(
        self, net: Network, training: Training, shapes: list[Shape], asked: argparse.Namespace
    ) -> None:
        self.net, self.training, self.shapes, self.asked = net, training, shapes, asked
        self.device = training.device
        self.cuda = self.device.type == "cuda"
        self.loss = torch.zeros((), device=self.device)
        if self.cuda:
            self.streams = torch.cuda.Stream(), torch.cuda.Stream()
            self.pools = torch.cuda.graph_pool_handle(), torch.cuda.graph_pool_handle()
            self.made = torch.cuda.Event()
            self.learned = [torch.cuda.Event() for _ in range(8)]
        self.buffers: list[Batch] = []  # graphs hold their addresses, not the tensors
        self.make: list[Callable[[], None]] = []
        self.learn: list[Callable[[], None]] = []
        for shape in shapes:
            self.add(shape)
        self.step = self.recorded(lambda: training.step(asked.horizon), 1)

    def add(self, shape: Shape) -> None:
        """Prepare the work on batches of this shape."""
        with self.on(0):
            buffer = Batch(*(part.clone() for part in simulate(shape, self.device)))
        self.buffers.append(buffer)
        self.wait()

        def make() -> None:
            for kept, new in zip(buffer, simulate(shape, self.device), strict=True):
                kept.copy_(new)

        def learn() -> None:
            z = self.net(*buffer[:3], buffer.tag, shape.context)
            loss = functional.binary_cross_entropy_with_logits(z, buffer.risk, reduction="none")
            loss = (loss.mean(1) * buffer.weight).sum() / buffer.weight.sum().clamp(min=1)
            # a batch of few large tables is noisier, so it counts less
            self.training.add_gradient(loss * (shape.tables / 40) ** 0.5 / self.asked.batches)
            self.loss += loss.detach()

        self.make.append(self.recorded(make, 0))
        self.learn.append(self.recorded(learn, 1))

    def on(self, stream: int) -> AbstractContextManager[Any]:
        """Put work on a stream: 0 makes batches, 1 learns."""
        return torch.cuda.stream(self.streams[stream]) if self.cuda else nullcontext()

    def wait(self) -> None:
        """Wait for the device."""
        if self.cuda:
            torch.cuda.synchronize()

    def recorded(self, work: Callable[[], None], stream: int) -> Callable[[], None]:
        """Return the work, or where graphs are used the replay of its CUDA graph."""
        if not self.cuda or self.asked.eager:
            return work
        with self.on(stream):  # first without recording, so that every kernel is loaded
            work()
        self.wait()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pools[stream], stream=self.streams[stream]):
            work()
        return graph.replay

    def prepare(self, batch: int, tables: int) -> int:
        """Make a batch beside the learning; its seed is the count of tables seen before it."""
        index = shape_of(batch, len(self.shapes), self.asked.seed)
        torch.manual_seed((self.asked.seed << 48) + tables)
        if self.cuda:  # the batch before the last is done with, so are the buffers of this shape
            self.streams[0].wait_event(self.learned[(batch - 2) % 8])
            self.learned[(batch - 6) % 8].synchronize()  # never far ahead of the device
        with self.on(0):
            self.make[index]()
        if self.cuda:
            self.made.record(self.streams[0])
        return index

    def learn_from(self, index: int, batch: int) -> int:
        """Add the gradient of a batch that was made; return how many tables it has."""
        if self.cuda:
            self.streams[1].wait_event(self.made)
        with self.on(1):
            self.learn[index]()
        if self.cuda:
            self.learned[batch % 8].record(self.streams[1])
        return self.shapes[index].tables


def source_hash() -> str:
    """Return a hash of the code that trains."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


class Piece:
    """One piece of the training: what it goes on from, and what it reports and writes."""

    def __init__(self, asked: argparse.Namespace, device: torch.device) -> None:
        self.start = time.monotonic()
        self.asked = asked
        torch.manual_seed(asked.seed)
        net = Network(**asked.size).to(device)
        self.training = Training(net, device)
        tensors = {name: t.clone() for name, t in self.training.tensors().items()}
        self.record = {"seed": asked.seed, "size": net.size}
        self.record |= {"tables": 0, "batches": 0, "steps": 0, "seconds": 0.0}
        saved = read_state(asked.state) if asked.state else None
        if saved:
            tensors, before = saved
            for name in ("seed", "size"):
                if before[name] != self.record[name]:
                    raise ValueError(f"The state has another {name}: {before[name]}")
            self.record = before
        shapes = draw_shapes(asked, self.record["tables"] // asked.book)
        self.every: list[Check] = checks(asked.check, device) if asked.check else []
        self.steps = Steps(net, self.training, shapes, asked)
        self.training.load(tensors)  # recording took steps of its own
        self.training.gradient.zero_()
        self.steps.loss.zero_()
        self.net, self.earlier = net, self.record["seconds"]
        asked.out.mkdir(parents=True, exist_ok=True)

    def seconds(self) -> float:
        """Return for how long this piece has run."""
        return time.monotonic() - self.start

    def report(self, since: tuple[int, int, float]) -> None:
        """Print and keep what was reached: (steps, tables, seconds) at the last report."""
        self.steps.wait()
        record, now = self.record, self.seconds()
        batches = max(1, (record["steps"] - since[0]) * self.asked.batches)
        line: dict[str, Any] = {
            "hours": round((self.earlier + now) / 3600, 4),
            "steps": record["steps"],
            "tables": record["tables"],
            "loss": round(self.steps.loss.item() / batches, 4),
            "tables a second": round((record["tables"] - since[1]) / max(now - since[2], 1e-9)),
        }
        self.steps.loss.zero_()
        if self.steps.cuda:
            line["GiB"] = round(torch.cuda.max_memory_reserved() / 2**30, 1)
        if self.every:
            line["last"] = validate(self.net, self.every)["all"]
            self.training.use(self.training.average)
            line["average"] = validate(self.net, self.every)
            self.training.use(self.training.weights)
        self.steps.wait()
        line["took"] = round(self.seconds() - now, 1)
        print(json.dumps(line), flush=True)
        with (self.asked.out / "log.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")

    def write(self) -> None:
        """Write the state; of an annealed piece the weights instead."""
        self.steps.wait()
        self.record["seconds"] = self.earlier + self.seconds()
        self.record |= {"code": source_hash(), "torch": str(torch.__version__)}
        if self.asked.anneal:
            named = self.training.named_weights(self.training.weights)
            half = {name: w.half().cpu() for name, w in named.items()}
            torch.save({"record": self.record, "weights": half}, self.asked.out / "network.pt")
        else:
            write_state(self.asked.out, self.training.tensors(), self.record)

    def run(self) -> None:
        """Train until the time or the steps are over."""
        asked, steps, record = self.asked, self.steps, self.record
        begin, first = self.seconds(), record["steps"]
        self.report((first, record["tables"], begin))
        since = first, record["tables"], self.seconds()
        index = steps.prepare(record["batches"], record["tables"])
        while (now := self.seconds()) < asked.seconds and record["steps"] < first + asked.steps:
            left = (asked.seconds - now) / (asked.seconds - begin) if asked.anneal else 1.0
            with steps.on(1):
                self.training.rate.fill_(asked.rate * left * min(1, (record["steps"] + 1) / 100))
            for _ in range(asked.batches):
                record["tables"] += steps.learn_from(index, record["batches"])
                record["batches"] += 1
                index = steps.prepare(record["batches"], record["tables"])
            with steps.on(1):
                steps.step()
            record["steps"] += 1
            if now - since[2] > asked.every:
                self.report(since)
                if not asked.anneal:
                    self.write()
                since = record["steps"], record["tables"], self.seconds()
        self.report(since)
        self.write()


def main(arguments: list[str] | None = None) -> None:
    """Train one piece."""
    asked = options(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for every shape
    Piece(asked, device).run()


if __name__ == "__main__":
    main()
