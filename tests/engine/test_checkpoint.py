"""What a run keeps as it goes: stages once, rounds as often as it is worth, its own file alone."""

from itertools import pairwise

import pytest
import torch

from dcem.engine import checkpoint
from dcem.engine.checkpoint import Saves, nested, part


class Run:
    """A run whose state is a number of rounds; what it computed is counted."""

    def __init__(self, path, identity="this"):
        self.value, self.stages, self.rounds = torch.zeros(2), 0, []
        self.saves = Saves(path, identity)

    def state(self):
        return {"value": self.value, "history": [float("nan"), *self.rounds]}

    def load(self, state):
        self.value = state["value"]

    def stage(self):
        self.stages += 1
        return torch.full((2,), 5.0)

    def go(self, rounds, die_at=None):
        start = self.saves.once("start", self.stage)
        self.done = self.saves.resume(self.load) or 0
        while self.done < rounds:
            self.value = self.value + start
            self.done += 1
            self.rounds.append(self.done)
            with self.saves.after(self.done, self.state):
                if self.done == die_at:
                    raise KeyboardInterrupt
        self.saves.write(self.done, self.state)
        return self


def test_a_run_goes_on_after_its_last_round_and_no_stage_is_done_twice(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        Run(path).go(5, die_at=3)
    run = Run(path).go(5)
    assert (run.stages, run.rounds) == (0, [4, 5])
    assert run.value.tolist() == [25.0, 25.0]
    again = Run(path).go(5)
    assert (again.stages, again.rounds, again.value.tolist()) == (0, [], [25.0, 25.0])


def test_a_stage_is_kept_before_any_round(tmp_path):
    first = Run(tmp_path / "run")
    kept = first.saves.once("start", first.stage)
    kept += 1  # what was handed out may be trained on
    assert first.saves.once("start", first.stage).tolist() == [5.0, 5.0]
    second = Run(tmp_path / "run")
    assert second.saves.resume(second.load) is None
    assert second.go(1).value.tolist() == [5.0, 5.0]
    assert second.stages == 0


def test_the_file_of_another_run_is_not_used(tmp_path):
    Run(tmp_path / "run", "other").go(2)
    run = Run(tmp_path / "run").go(2)
    assert (run.stages, run.rounds) == (1, [1, 2])


def test_without_a_path_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Run(None).go(3).rounds == [1, 2, 3]
    assert not list(tmp_path.iterdir())


def test_dear_writes_are_spaced_and_the_end_is_always_written(tmp_path, monkeypatch):
    """A write of 1 s: at most a tenth of the time goes into writing, at most 9 s are lost."""
    clock, written = [0.0], []

    def slow(path, tensors, meta):
        clock[0] += 1.0
        written.append((meta["iterations_done"], clock[0]))
        original(path, tensors, meta)

    original = checkpoint.write_checkpoint
    monkeypatch.setattr(checkpoint, "write_checkpoint", slow)
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: clock[0])
    run = Run(tmp_path / "run")

    class Ticking(list):
        def append(self, done):
            super().append(done)
            clock[0] += 2.0  # a round

    run.rounds = Ticking()
    run.go(12)
    numbers = [number for number, _ in written]
    assert numbers == [None, 1, 6, 11, 12]  # the stage, then rounds that lie 9 s apart, the end
    for (_, before), (_, after) in pairwise(written[1:-1]):
        assert 9 <= after - 1 - before <= 9 + 2


def test_what_ends_a_run_finds_it_saved_though_no_write_is_due(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "CHEAP", -1.0)
    monkeypatch.setattr(checkpoint, "SPACING", 1e9)  # the first write is the last that is due
    with pytest.raises(KeyboardInterrupt):
        Run(tmp_path / "run").go(5, die_at=4)
    assert checkpoint.read(tmp_path / "run")[1]["iterations_done"] == 4


def test_states_nest():
    state = nested(a={"x": 1}, ab={"x": 2})
    assert (part(state, "a"), part(state, "ab")) == ({"x": 1}, {"x": 2})
