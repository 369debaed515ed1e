"""A real local Ray cluster of two workers, one of which is killed in the middle."""

import json
import sqlite3
import threading
import time
from contextlib import closing

import pandas as pd
import pytest

from dcem.benchmark.backends import ray as ray_backend
from dcem.benchmark.read import results, status
from dcem.benchmark.run import run
from dcem.benchmark.toml_file import MEASURED, load_benchmark
from dcem.engine import checkpoint

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
pytestmark = pytest.mark.slow

FILE = """
[[tasks]]
phase = [0, 60, 120, 180, 240, 300]
n_train = 2000
n_validation = 500
n_test = 500
stream = "independent"
seed = 0

[[methods]]
name = "dcem"
params = {max_iter = 30, steps = 40, patience = 30, variant = "published"}
"""


def watched(log, fail_at=None):
    """The task, writing down where it begins, how far the fleet was, and that it came to an end.

    A function inside a function travels to the workers by value: they cannot import this file.
    """

    def train(cells, device, checkpoint, skip, max_seconds):
        import json

        import ray

        from dcem.benchmark.backends.ray import train_remotely
        from dcem.engine.checkpoint import read

        def note(event, iterations):
            node = ray.get_runtime_context().get_node_id()
            with open(log, "a") as file:
                line = {"event": event, "cell": cells[0].id, "node": node, "done": iterations}
                file.write(json.dumps(line) + "\n")

        found = read(checkpoint) if checkpoint.exists() else None
        note("begin", found[1]["iterations_done"] or 0 if found else 0)
        if cells[0].task["phase"] == fail_at:
            raise ImportError("this node has no dcem")
        outcomes = train_remotely(cells, device, checkpoint, skip, max_seconds)
        note("end", None)
        return outcomes

    return train


def read_log(log):
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_a_killed_worker_costs_nothing(cluster, tmp_path, monkeypatch):
    """The node is killed while it trains; its fleet goes on elsewhere, not from the beginning."""
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    file, out, log = tmp_path / "some.toml", tmp_path / "out", tmp_path / "log"
    file.write_text(FILE)
    monkeypatch.setattr(ray_backend, "train_remotely", watched(log))
    victim = []

    def busy_cell():
        """The cell that the second node has begun and not ended."""
        here = [line for line in read_log(log) if line["node"] == nodes[1].node_id]
        return here[-1]["cell"] if here and here[-1]["event"] == "begin" else None

    def kill_in_the_middle():
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and not victim:
            cell, store = busy_cell(), out / "store.sqlite"
            if cell is not None:
                with closing(sqlite3.connect(store)) as db:
                    (fleet,) = db.execute(
                        "SELECT fleet FROM cells WHERE id = ?", (cell,)
                    ).fetchone()
                path = out / "checkpoints" / f"{fleet}.safetensors"
                found = checkpoint.read(path) if path.exists() else None
                if found and (found[1]["iterations_done"] or 0) >= 3:
                    cluster.remove_node(nodes[1], allow_graceful=False)
                    victim.append(cell)
            time.sleep(0.05)

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    summary = run(load_benchmark(file), out, backend="ray", address=cluster.address, max_fleet=1)
    killer.join()
    assert victim, "the run was over before a worker could be killed"
    assert (summary.done, summary.computed, summary.failed) == (6, 6, 0)
    assert not list((out / "checkpoints").iterdir())

    lines = pd.DataFrame(read_log(log))
    begun, ended = (lines[lines["event"] == event] for event in ("begin", "end"))
    tries = begun.groupby("cell").size()
    assert tries.pop(victim[0]) == 2
    assert list(tries) == [1] * 5  # nothing else was begun twice
    first, second = begun[begun["cell"] == victim[0]].to_dict("records")
    assert (first["node"], second["node"]) == (nodes[1].node_id, nodes[0].node_id)
    assert first["done"] == 0
    assert second["done"] >= 3  # resumed, not computed anew
    assert sorted(ended["cell"]) == sorted(begun["cell"].unique())  # each ended once

    run(load_benchmark(file), tmp_path / "here", device="cpu", max_fleet=1)
    ours, here = (results(p).set_index("cell").sort_index() for p in (out, tmp_path / "here"))
    pd.testing.assert_frame_equal(ours[[*MEASURED]], here[[*MEASURED]])


def test_a_task_that_raises_costs_its_own_cells(cluster, plain, tmp_path, monkeypatch):
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    out, log = tmp_path / "out", tmp_path / "log"
    monkeypatch.setattr(ray_backend, "train_remotely", watched(log, fail_at=120))
    benchmark = load_benchmark(plain).only(["y-obs"])  # phases 0 and 120, three seeds each
    summary = run(benchmark, out, backend="ray", address=cluster.address, max_fleet=1)
    assert (summary.done, summary.failed, summary.pending) == (3, 3, 0)
    (row,) = status(out)
    assert row.error.endswith("given up after 4 tries: ImportError: this node has no dcem")
    assert sum(line["event"] == "begin" for line in read_log(log)) == 3 + 3 * 4
