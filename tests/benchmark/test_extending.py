"""What a new backend and a new kind of task take: one file, and one entry."""

import pytest

from dcem.benchmark import backends
from dcem.benchmark.cells import expand
from dcem.benchmark.read import results
from dcem.benchmark.run import run
from dcem.benchmark.toml_file import load_benchmark
from dcem.table.messages import InputError
from dcem.tasks import make_sinusoid, registry

BACKEND = '''
"""Says of every cell that it has an AUC of one half."""
from contextlib import contextmanager

from dcem.benchmark.fleets import CellResult


@contextmanager
def connected(device, address):
    yield "cpu"


def work(planner, where, clock, commit, display):
    while (fleet := planner.next()) is not None:
        for cell in fleet.open:
            commit(CellResult(cell.id, {"auc": 0.5}, None, {"seconds": 0.0, "device": where}))
'''


def test_a_backend_is_a_module_beside_the_others(plain, tmp_path, monkeypatch):
    (tmp_path / "backends").mkdir()
    (tmp_path / "backends" / "chance.py").write_text(BACKEND)
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(tmp_path / "backends")])
    summary = run(load_benchmark(plain), tmp_path / "out", backend="chance")
    assert (summary.done, summary.complete) == (12, True)
    assert set(results(tmp_path / "out")["auc"]) == {0.5}
    with pytest.raises(InputError, match="must be one of chance, local, ray"):
        run(load_benchmark(plain), tmp_path / "out", backend="chanse")


def make_small(k: float = 1.0, word: str = "", random_state: int | None = None):
    """A task of its own kind."""
    sizes = {"n_train": 200, "n_validation": 99, "n_test": 99}
    return make_sinusoid(k=k, stream="independent", random_state=random_state, **sizes)


def test_a_kind_of_task_is_an_entry_of_the_registry(tmp_path, monkeypatch):
    monkeypatch.setitem(registry.KINDS, "small", registry.TaskKind(make_small, {"k": 1.0}))
    file = tmp_path / "some.toml"
    task = '[[tasks]]\nkind = "small"\nk = ["1/2", 1]\nword = "x"\nseed = [1, 2]\n'
    file.write_text(task + '[[methods]]\nname = "y-obs"\nparams = {steps = 2, hidden = [4]}\n')
    summary = run(load_benchmark(file), tmp_path / "out", device="cpu")
    assert (summary.done, summary.complete) == (4, True)
    frame = results(tmp_path / "out")
    assert set(frame["task"]) == {"small"}
    drawn = list(zip(frame["k"], frame["seed"], strict=True))
    assert drawn == [(0.5, 1), (0.5, 2), (1, 1), (1, 2)]
    file.write_text(task + '[[methods]]\nname = "y-obs"\npublished = true\n')
    (schedule,) = {one.cell.method["schedule"] for one in expand(load_benchmark(file))[0]}
    assert schedule == "published"  # the choices of the simulation, for lack of others
    file.write_text(task.replace("word", "wrod") + '[[methods]]\nname = "y-obs"\n')
    with pytest.raises(InputError, match="Did you mean 'word'"):
        load_benchmark(file)
