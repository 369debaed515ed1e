"""A real local Ray cluster of two workers, one of which is killed in the middle."""

import threading
import time

import pandas as pd
import pytest

from dcem.benchmark.files import load
from dcem.benchmark.reading import results
from dcem.benchmark.runner import run

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
METRICS = ["auc", "roc_gap", "roc_gap_grid", "xauc_difference", "auc_difference", "n_iter"]


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster

    one = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        yield one
    finally:
        ray.shutdown()
        one.shutdown()


def test_a_killed_worker_costs_nothing(cluster, tmp_path):
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    file, out = tmp_path / "some.toml", tmp_path / "out"
    file.write_text(FILE)
    killed = threading.Event()

    def kill_in_the_middle():
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:  # until both workers have written a checkpoint
            if len(list((out / "checkpoints").glob("*.safetensors"))) >= 2:
                cluster.remove_node(nodes[1], allow_graceful=False)
                killed.set()
                return
            time.sleep(0.1)

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    summary = run(load(file), out, backend="ray", address=cluster.address, max_fleet=1)
    killer.join()
    assert killed.is_set(), "the run was over before a worker could be killed"
    assert (summary.done, summary.computed, summary.failed) == (6, 6, 0)
    assert not list((out / "checkpoints").iterdir())
    run(load(file), tmp_path / "here", device="cpu", max_fleet=1)
    ours, here = (results(p).set_index("cell").sort_index() for p in (out, tmp_path / "here"))
    pd.testing.assert_frame_equal(ours[METRICS], here[METRICS])
