"""Progress: every step of long work is announced, and what is left is estimated."""

import json
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

import dcem
from dcem.audit.run import audit_labels, audit_steps
from dcem.cli._progress import EVERY, Progress, telling
from dcem.compare.durations import compare_steps
from dcem.compare.run import compare_methods
from dcem.methods.choosing import DEFAULT, RIVALS
from dcem.report.words import speak
from dcem.text import remaining

pytestmark = pytest.mark.usefixtures("linear_models")


@dataclass
class Clock:
    """Time that passes when it is told to, and what was shown meanwhile."""

    now: float = 0.0
    lines: list[str] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def update(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def watched(steps: dict[str, float], clock: Clock, **how: Any) -> tuple[Progress, Console]:
    console = Console(record=True, width=80, file=StringIO(), **how)
    return Progress(steps, console, clock, clock), console


def people(every: int) -> dcem.SelectiveLabels:
    return dcem.tasks.make_sinusoid().train.subset(slice(0, None, every))


def test_the_steps_of_an_audit_are_those_announced() -> None:
    some = people(20)
    alone = {"one": some}
    told: list[str] = []
    audit_labels(some, attributes=alone, progress=told.append)
    assert told == list(audit_steps(some, alone))


def test_the_steps_of_a_comparison_are_those_announced() -> None:
    some, told = people(40), []
    names = ["tested-only:linear", "tested-only:boost"]
    compare_methods(some, names, n_folds=2, planted=2, n_resamples=10, progress=told.append)
    assert told == list(compare_steps(some, names, n_folds=2, planted=2))


def test_a_fit_tells_how_much_of_it_is_done() -> None:
    told: list[tuple[int, int]] = []
    model = dcem.methods.make("ensemble", parts=("network", "linear"), n_folds=2, steps=200)
    tell = lambda done, total: told.append((done, total))  # noqa: E731
    dcem.methods.fit_many(model, [people(80)], progress=tell, copy=False)
    done = [one for one, _ in told]
    assert done == sorted(done)
    assert len({total for _, total in told}) == 1
    assert len(done) > 5
    assert done[-1] <= told[0][1]


def test_what_is_left_by_known_steps(clock) -> None:
    progress, _ = watched({"first": 1.0, "second": 3.0, "third": 4.0}, clock)
    progress("first")
    assert progress.left() is None
    clock.now = 10
    progress("second")
    assert progress.left() == pytest.approx(70)
    clock.now = 25  # within the step it counts down
    assert progress.left() == pytest.approx(55)
    clock.now = 80  # twice as slow as the step before: it waits where the third should begin
    assert progress.left() == pytest.approx(80)
    progress("third")
    assert progress.left() == pytest.approx(80)
    progress("something else")
    assert progress.left() is None


def test_a_series_that_counts_tells_its_own_pace(clock) -> None:
    steps = {"first": 60.0} | {f"planted, {k} of 40": 1.0 for k in range(1, 41)} | {"last": 20.0}
    progress, _ = watched(steps, clock)
    progress("first")
    clock.now = 60
    for k in range(1, 21):
        progress(f"planted, {k} of 40")
        clock.now += 3
    progress("planted, 21 of 40")
    by_all = 120 * 40 / 80  # seconds left if all went on as so far
    truth = 20 * 3 + 20 * 1.5
    assert by_all < 0.7 * truth < progress.left() < truth


def test_a_fit_leaves_time_for_what_comes_after_it(clock) -> None:
    progress, _ = watched({"fitting": 10.0, "asking": 30.0}, clock)
    for done in (0, 1, 2):
        progress.counted("fitting", done, 4)
        clock.now += 5
    progress.counted("fitting", 3, 4)
    assert progress.left() == pytest.approx(5 + 60)
    clock.now = 20
    progress("asking")
    assert progress.left() == pytest.approx(60)


def test_the_estimate_of_a_comparison_stays_within_reason(clock) -> None:
    """Steps that take up to twice as long or short as expected, each as luck will have it."""
    import numpy as np

    steps = compare_steps(people(1), (DEFAULT, *RIVALS))
    took = np.array(list(steps.values())) * 2 ** np.random.default_rng(0).uniform(-1, 1, len(steps))
    progress, _ = watched(steps, clock)
    ends, first = took.sum(), None
    for step, seconds in zip(steps, took, strict=True):
        progress(step)
        if (left := progress.left()) is not None and clock.now < 0.95 * ends:
            first = clock.now if first is None else first
            assert 0.5 < left / (ends - clock.now) < 2, step
        clock.now += seconds
    assert first is not None
    assert first < 0.06 * ends


def test_off_a_terminal_a_line_now_and_then(clock) -> None:
    steps = {f"step {number}": 1.0 for number in range(600)}
    progress, console = watched(steps, clock, force_terminal=False)
    for step in steps:
        progress(step)
        clock.now += 0.1
    lines = console.export_text().splitlines()
    assert len(lines) == 60 / EVERY
    assert "left" not in lines[0]
    assert "about 50 seconds left" in lines[1]
    clock.now += EVERY  # a long step is not silent either
    progress.tick()
    assert len(console.export_text(clear=False).splitlines()) == 1
    unknown, console = watched({}, clock, force_terminal=False)
    unknown("looking")
    for _ in range(100):  # the same again is said now and then
        clock.now += 1
        unknown.tick()
    assert len(console.export_text().splitlines()) == 2
    terminal, console = watched(steps, clock, force_terminal=True)
    terminal("step 300")
    assert console.export_text() == ""
    assert clock.lines[-1].startswith("step 300 ... (0 s")


def test_progress_in_the_words_of_a_field(clock) -> None:
    console = Console(file=StringIO())
    progress = Progress({"who is tested": 1.0}, console, clock, clock, speak("credit"))
    progress("who is tested")
    assert progress.share == 0  # a step is known by its name
    assert clock.lines[-1].startswith("who is approved ...")


def test_work_that_begins_anew_is_told_without_an_estimate(clock) -> None:
    progress, _ = watched({}, clock)
    for done in (1, 5, 9):
        clock.now += 1
        progress.counted("fitting", done, 10)
    assert progress.left() == pytest.approx(3 / 9)
    for done in (1, 9):
        progress.counted("fitting", done, 10)
        assert progress.left() is None


def test_whoever_waits_reads_lines_of_json(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DCEM_PROGRESS", str(tmp_path / "progress"))
    console = Console(force_terminal=False, file=StringIO())
    with telling({"first": 1.0, "second": 3.0}, console) as progress:
        for step in ("first", "second", "something else"):
            progress(step)
    lines = map(json.loads, (tmp_path / "progress").read_text().splitlines())
    told = {line["doing"]: (line["share"], line["left"] is None) for line in lines}
    assert told == {
        "first": (0.0, True),
        "second": (0.25, False),
        "something else": (None, True),
    }


@pytest.mark.parametrize(("left", "said"), [(None, ""), (30, ", about 30 seconds left"), (0.1, "")])
def test_what_is_left(left, said) -> None:
    assert remaining(left) == said
