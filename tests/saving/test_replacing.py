"""A model folder that is replaced while others read it, and what a killed save leaves."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from forked import FORK, started

from dcem import methods
from dcem.files import exchange, held, remove_abandoned
from dcem.saving import load_model
from dcem.table.write import write_frame


def read_until(enough, folder, loads, told):
    failed, seen = [], set()
    while not enough.is_set():
        try:
            seen.add(load_model(folder).random_state)
        except Exception as error:
            failed.append(str(error))
        loads.value += 1
    told.send((failed, seen))


def save_for_ever(folder, told):
    again = load_model(folder).set_params(random_state=2)
    told.send("ready")
    while True:
        again.save(folder)


def model(seed):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    return methods.make("tested-only", learner="linear", random_state=seed).fit(
        X, np.where(rng.random(120) < 0.7, X[:, 0] > 0, np.nan)
    )


def test_a_reader_never_meets_a_gap(tmp_path):
    folder = tmp_path / "model"
    first, second = model(1), model(2)
    first.save(folder)
    heard, told = FORK.Pipe(duplex=False)
    loads, saves, enough = FORK.Value("i"), 0, FORK.Event()
    reader = started(read_until, enough, folder, loads, told)
    while saves < 20 or (loads.value < 50 and reader.is_alive()):
        (first, second)[saves % 2].save(folder)
        saves += 1
    enough.set()
    failed, seen = heard.recv()
    assert failed == []
    assert seen == {1, 2}
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("can_swap", [True, False])
def test_folders_change_places(tmp_path, monkeypatch, can_swap):
    if not can_swap:
        monkeypatch.setattr("dcem.files._swap", lambda *paths: False)
    for name in ("new", "place"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    exchange(tmp_path / "new", tmp_path / "place")
    assert (tmp_path / "place" / "file").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


@pytest.mark.parametrize("name", ["model", "scores [1].csv", "a*?.csv"])
def test_what_dead_runs_left_is_removed_and_an_only_copy_is_put_back(tmp_path, name):
    place, left = tmp_path / name, f".{name}.{'0' * 15}"
    (tmp_path / f"{left}1.partial").mkdir()
    (tmp_path / f"{left}2.partial").write_text("names and scores")
    (tmp_path / f"{left}3.partial").mkdir()
    (tmp_path / f".{name}.x.partial").mkdir()
    (tmp_path / f"{left}4.old").mkdir()
    with held(tmp_path / f"{left}3.partial"):
        remove_abandoned(place)
    own = {name, f"{left}3.partial", f".{name}.x.partial"}
    assert {path.name for path in tmp_path.iterdir()} == own
    (tmp_path / f"{left}4.old").mkdir()
    remove_abandoned(place)
    assert not (tmp_path / f"{left}4.old").exists()


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Writing more than so many bytes to a file fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_an_ordinary_error_and_the_older_model_stays(tmp_path):
    """An `OSError`, which the command line puts into a sentence; not one of a library's own."""
    folder = tmp_path / "model"
    model(1).save(folder)
    for size in (100, (folder / "model.safetensors").stat().st_size + 50):
        with files_of_at_most(size), pytest.raises(OSError, match="too large"):
            model(2).save(folder)
    assert load_model(folder).random_state == 1
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_full_disk_under_a_workbook(tmp_path):
    pytest.importorskip("xlsxwriter")
    frame = pd.DataFrame({"score": np.random.default_rng(0).random(5_000)})
    with files_of_at_most(20_000), pytest.raises(OSError, match="too large"):
        write_frame(frame, tmp_path / "scores.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_under_a_checkpoint(tmp_path):
    checkpoint = pytest.importorskip("dcem.engine.checkpoint")
    import torch

    with files_of_at_most(100), pytest.raises(OSError, match="too large"):
        checkpoint.write_checkpoint(tmp_path / "c", {"w": torch.zeros(1000)}, {})
    assert list(tmp_path.iterdir()) == []


def test_a_killed_save_leaves_the_old_model(tmp_path):
    folder = tmp_path / "model"
    model(1).save(folder)
    for wait in (0.05, 0.21):
        heard, told = FORK.Pipe(duplex=False)
        writer = started(save_for_ever, folder, told)
        assert heard.recv() == "ready"
        time.sleep(wait)
        writer.kill()
        writer.join()
        assert load_model(folder).random_state in (1, 2)
    model(3).save(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
