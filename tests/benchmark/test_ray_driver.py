"""The driver of the Ray backend, on a made-up cluster: what becomes of every task."""

import socket
import sys
from types import SimpleNamespace

import pytest

from dcem.benchmark import plan as planner
from dcem.benchmark.backends import ray as ray_backend
from dcem.benchmark.fleets import CellResult
from dcem.benchmark.progress import Display
from dcem.benchmark.read import results, status
from dcem.benchmark.run import run
from dcem.benchmark.toml_file import load_benchmark
from dcem.table.messages import InputError


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


class OutOfMemoryError(RayError):
    pass


class WorkerCrashedError(RayError):
    pass


class RaySystemError(RayError):
    pass


class MadeUpCluster:
    """What the driver uses of Ray; a task runs when it is handed over."""

    exceptions = SimpleNamespace(
        RayError=RayError,
        RayTaskError=RayTaskError,
        OutOfMemoryError=OutOfMemoryError,
        WorkerCrashedError=WorkerCrashedError,
        RaySystemError=RaySystemError,
    )

    def __init__(self):
        self.fates = []  # errors in place of the next tasks; None: it runs
        self.alive = True
        self.fleets = []

    def is_initialized(self):
        return True

    def cluster_resources(self):
        if self.alive is None:
            raise ConnectionError("no head")
        return {"CPU": 1.0}

    def nodes(self):
        if self.alive is None:
            raise ConnectionError("no head")
        return [{"Alive": self.alive}]

    def remote(self, **options):
        assert options["num_cpus"] == 1
        assert options["max_retries"] == ray_backend.RETRIES
        return lambda function: SimpleNamespace(remote=lambda *given: self._run(function, given))

    def _run(self, function, given):
        self.fleets.append(len(given[0]))
        fate = self.fates.pop(0) if self.fates else None
        return _Task(fate or function(*given))

    def wait(self, tasks, timeout):
        return tasks[:1], tasks[1:]

    def get(self, task):
        if isinstance(task.result, Exception):
            raise task.result
        return task.result


class _Task:
    def __init__(self, result):
        self.result = result


@pytest.fixture
def ray(monkeypatch):
    one = MadeUpCluster()
    monkeypatch.setitem(sys.modules, "ray", one)
    monkeypatch.setitem(sys.modules, "ray._raylet", None)  # the real one, if it is installed
    return one


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            RayTaskError("traceback\nModuleNotFoundError: No module named 'dcem'"),
            "A fleet of 3 cells was given up after 4 tries: "
            "ModuleNotFoundError: No module named 'dcem'",
        ),
        (
            OutOfMemoryError("killed\nsee the log"),
            "try again with at most 1 cells in a",
        ),
        (WorkerCrashedError("gone"), "its workers died (WorkerCrashedError)"),
        (RayError("something new"), "its workers died (RayError)"),
    ],
)
def test_a_lost_task_costs_its_own_cells_and_the_run_goes_on(ray, plain, tmp_path, error, told):
    ray.fates = [None, error]
    summary = run(load_benchmark(plain), tmp_path / "out", backend="ray", max_fleet=3)
    assert (summary.done, summary.failed, summary.pending) == (9, 3, 0)
    assert ray.fleets == [3, 3, 3, 3]
    assert told in status(tmp_path / "out")[0].error
    again = run(load_benchmark(plain), tmp_path / "out", backend="ray", retry_failed=True)
    assert (again.done, again.computed, again.failed) == (12, 3, 0)


@pytest.mark.parametrize("alive", [False, None])  # all machines dead; the head does not answer
def test_a_cluster_lost_as_a_whole_leaves_its_cells_to_do(ray, plain, tmp_path, alive):
    class Lost(WorkerCrashedError):
        def __init__(self):
            super().__init__("gone")
            ray.alive = alive

    ray.fates = [None]
    run_on = ray._run

    def until_lost(function, given):
        if len(ray.fleets) == 1:
            ray.fates = [Lost()]
        return run_on(function, given)

    ray._run = until_lost
    with pytest.raises(InputError, match=r"no longer answers.*still to do"):
        run(load_benchmark(plain), tmp_path / "out", backend="ray", max_fleet=3)
    rows = status(tmp_path / "out")
    assert [(row.done, row.pending, row.failed, row.running) for row in rows] == [
        (3, 3, 0, 0),
        (0, 6, 0, 0),
    ]
    ray.alive, ray._run = True, run_on
    again = run(load_benchmark(plain), tmp_path / "out", backend="ray")
    assert (again.done, again.computed) == (12, 9)


def test_an_unknown_backend_is_named(plain, tmp_path):
    with pytest.raises(InputError, match=r"must be one of local, ray.*Did you mean 'local'"):
        run(load_benchmark(plain), tmp_path / "out", backend="locale")


def test_results_say_the_versions_of_the_worker(ray, plain, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_backend, "machine_versions", lambda: {"dcem": "9.9", "commit": "abc"})
    run(load_benchmark(plain), tmp_path / "out", backend="ray")
    frame = results(tmp_path / "out")
    assert set(frame["versions"]) == {"dcem 9.9, commit abc"}
    assert len(frame) == 12


def test_an_address_where_nobody_listens_is_refused_before_ray_tries(plain, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(InputError, match=rf"No Ray cluster answers at 127.0.0.1:{port} .*refused"):
        run(load_benchmark(plain), tmp_path / "out", backend="ray", address=f"127.0.0.1:{port}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("error", [ConnectionError("failed"), ValueError("no address")])
def test_a_cluster_that_cannot_be_joined_is_one_message(ray, plain, tmp_path, monkeypatch, error):
    def init(**_):
        raise error

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as head:
        address = f"127.0.0.1:{head.getsockname()[1]}"
        with pytest.raises(InputError, match=rf"cannot join.*{error}.*RAY_AUTH_MODE=token"):
            run(load_benchmark(plain), tmp_path / "out", backend="ray", address=address)


class _Fleets(Display):
    def __init__(self):
        super().__init__()
        self.sizes = []

    def fleet(self, claim, seconds_left):
        self.sizes.append(len(claim.cells))


def test_a_fleet_too_long_for_the_time_is_cut_smaller(ray, plain, tmp_path, monkeypatch):
    """A method without checkpoints must not start from the beginning for ever."""
    now = [0.0]

    def slow(cells, *, progress, **_):
        for step in range(20):
            now[0] += 0.5 * len(cells)
            progress(step, 20)
        for cell in cells:
            yield CellResult(cell.id, {"auc": 0.5}, None, {})

    monkeypatch.setattr(ray_backend, "run_fleet", slow)
    sizes = []
    for _ in range(10):
        with monkeypatch.context() as patch:
            patch.setattr(planner.time, "monotonic", lambda: now[0])
            display, began = _Fleets(), now[0]
            summary = run(
                load_benchmark(plain).only(["y-obs"]),
                tmp_path / "out",
                backend="ray",
                max_seconds=45,
                started=began,
                display=display,
            )
        assert now[0] - began <= 45
        sizes.append(display.sizes)
        if summary.complete:
            break
    assert summary.complete, sizes
    assert sizes[0] == [6]  # 6 cells take 60 s: cut off, and nothing is begun in the last seconds
    assert max(sizes[1]) < 6
