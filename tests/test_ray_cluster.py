"""A real Ray cluster of two machines: a worker and then a machine are killed, and nothing is lost.

The benchmark's own test of this is in `tests/benchmark/test_ray.py`.
"""

import threading
import time

import pandas as pd
import pytest

from dcem.compare import compare_methods, fitting
from dcem.methods import make
from dcem.ray_cluster import connection
from dcem.scoring import TableModel, folders, predict_folder
from dcem.table import Roles, read_table
from dcem.table.messages import InputError
from dcem.tasks import make_sinusoid


class Doomed:
    """Kills one worker and then one of two machines while they work on `function`."""

    def __init__(self, cluster, function, folder):
        self.cluster, self.function, self.folder = cluster, function, folder
        self.nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        cluster.wait_for_nodes()
        self.killer = threading.Thread(target=self._kill)

    def task(self):
        """The function as the workers run it: a closure travels to them by value."""
        function, folder, victim = self.function, str(self.folder), self.nodes[1].node_id

        def doomed(*given):
            import os
            import signal
            import time
            from pathlib import Path

            import ray

            worker, machine = Path(folder) / "worker", Path(folder) / "machine"
            if not worker.exists():
                worker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if ray.get_runtime_context().get_node_id() == victim:
                machine.touch()
                time.sleep(600)  # in the middle of its work when the machine goes
            while not machine.exists():  # the other one must not do all of it meanwhile
                time.sleep(0.1)
            return function(*given)

        return doomed

    def _kill(self):
        deadline = time.monotonic() + 120
        while not (self.folder / "machine").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.cluster.remove_node(self.nodes[1], allow_graceful=False)

    def __enter__(self):
        self.killer.start()
        return self

    def __exit__(self, *_):
        self.killer.join()
        assert (self.folder / "worker").exists()
        assert (self.folder / "machine").exists()


@pytest.mark.slow
def test_compare_as_here(cluster, tmp_path, monkeypatch) -> None:
    task = make_sinusoid(
        stream="independent", random_state=0, n_train=600, n_validation=2, n_test=2
    )
    names = ["tested-only", "dcem"]
    quick = {"n_folds": 2, "planted": 2, "n_resamples": 20, "n_members": 2}
    quick |= {"params": {"steps": 20, "hidden": (8,)}}
    here = compare_methods(task.train, names, **quick)
    with Doomed(cluster, fitting._fit_job, tmp_path) as doomed:
        monkeypatch.setattr(fitting, "_fit_and_score", doomed.task())
        there = compare_methods(task.train, names, backend="ray", address=cluster.address, **quick)
    pd.testing.assert_frame_equal(there.to_frame(), here.to_frame(), check_exact=True)


@pytest.mark.slow
def test_predict_as_here(cluster, tmp_path, monkeypatch) -> None:
    people = pd.DataFrame({"age": range(20, 80), "y": [0, 1, None] * 20})
    table = read_table(people, Roles(label="y"))
    estimator = make("tested-only", learner="linear").fit_problem(table.problem)
    TableModel(estimator, table.encoder, table.roles, table.source).save(tmp_path / "model")
    (tmp_path / "people").mkdir()
    for part in range(6):
        people[part::6].to_parquet(tmp_path / "people" / f"{part}.parquet")
    given = (tmp_path / "model", tmp_path / "people")
    predict_folder(*given, tmp_path / "here")
    with Doomed(cluster, folders.score_file, tmp_path) as doomed:
        monkeypatch.setattr(folders, "score_file", doomed.task())
        told = predict_folder(*given, tmp_path / "there", backend="ray", address=cluster.address)
    assert told.rows == len(people)
    here, there = (pd.read_parquet(tmp_path / name) for name in ("here", "there"))
    pd.testing.assert_frame_equal(there, here, check_exact=True)


def test_an_unknown_backend_is_named() -> None:
    with pytest.raises(InputError, match="local, ray"):
        connection("spark")
