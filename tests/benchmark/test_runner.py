"""Runs that are stopped, killed, shared, and fail: nothing is lost, nothing is done twice."""

import json
import os
import signal
import sqlite3
import threading
from io import StringIO

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from forked import FORK, started
from rich.console import Console

from dcem import metrics, tasks
from dcem.benchmark import plan as planner
from dcem.benchmark.cells import estimator_of, expand, task_of
from dcem.benchmark.fleets import measure
from dcem.benchmark.progress import Display
from dcem.benchmark.read import export, results, status
from dcem.benchmark.run import run
from dcem.benchmark.toml_file import MEASURED, load_benchmark
from dcem.engine import checkpoint
from dcem.table.messages import InputError


class Recorder(Display):
    """Keeps what a person would see."""

    def __init__(self):
        super().__init__()
        self.iterations, self.fleets, self.resumes = [], [], []

    def resumed(self, claim):
        self.resumes.append(len(claim.cells))

    def fleet(self, claim, seconds_left):
        self.fleets.append(len(claim.cells))
        assert seconds_left > 0

    def progress(self, done, total):
        self.iterations.append(done)


class Fatal(Display):
    """Counts the moments of one sort, and dies at the n-th."""

    def __init__(self, when, n):
        super().__init__()
        self.when, self.n = when, n

    def _count(self, when):
        if when == self.when:
            self.n -= 1
            if self.n == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def progress(self, done, total):
        self._count("training")

    def cell_done(self, *, failed):
        self._count("committing")


def die(file, out, when, n):
    """Run until it kills itself; it must have."""
    child = started(run, load_benchmark(file), out, device="cpu", display=Fatal(when, n))
    child.join(120)
    assert child.exitcode == -signal.SIGKILL


def by_cell(out):
    return results(out).set_index("cell").sort_index()


def same_values(one, other):
    pd.testing.assert_frame_equal(one[[*MEASURED]], other[[*MEASURED]])


def test_a_run_gives_what_fitting_one_by_one_gives(plain, tmp_path):
    summary = run(load_benchmark(plain), tmp_path / "out", device="cpu")
    assert (summary.done, summary.computed, summary.complete) == (12, 12, True)
    frame = by_cell(tmp_path / "out")
    for one in expand(load_benchmark(plain))[0]:
        task = task_of(one.cell.task)
        model = estimator_of(one.cell.method, "sinusoid").set_params(random_state=one.cell.seed)
        model.fit_problem(task.train, validation=task.validation)
        score = model.predict_proba(task.test.X)[:, 1]
        row = frame.loc[one.cell.id]
        truth = task.truth["test"]
        assert row["auc"] == pytest.approx(metrics.auc(truth, score), abs=2e-3)
        gap = metrics.roc_gap(truth, score, task.test.group, method="grid")
        assert row["roc_gap_grid"] == pytest.approx(gap, abs=5e-3)


def test_methods_without_networks_run_too(tmp_path):
    file = tmp_path / "some.toml"
    small = "n_train = 300\nn_validation = 100\nn_test = 300\nseed = [0, 1]"
    trees = 'name = "tested-only"\nparams = {learner = "boost"}'
    other = 'name = "ensemble"\nparams = {parts = ["boost"], n_folds = 2}'
    file.write_text(f"[[tasks]]\n{small}\n[[methods]]\n{trees}\n[[methods]]\n{other}\n")
    summary = run(load_benchmark(file), tmp_path / "out", device="cpu")
    assert (summary.done, summary.failed) == (4, 0), status(tmp_path / "out")


def test_results_say_what_they_are(plain, tmp_path):
    run(load_benchmark(plain), tmp_path / "out", device="cpu")
    frame = results(tmp_path / "out")
    assert set(frame["phase"]) == {0.0, 120.0}
    assert set(frame["seed"]) == {0, 1, 2}
    assert set(frame["method"]) == {"y-obs", "tested-only"}
    assert (frame["stream"] == "independent").all()
    assert (frame["fleet_size"] == 6).all()
    assert (frame["seconds"] > 0).all()
    assert frame["versions"].str.contains("torch").all()
    assert json.loads(frame["params"][0]) == {"steps": 20, "hidden": [8]}
    for name in ("a.csv", "a.parquet"):
        assert export(tmp_path / "out", tmp_path / name) == 12
        back = results(tmp_path / name)
        np.testing.assert_allclose(back["auc"], frame["auc"])


def test_what_is_done_is_not_done_again(plain, tmp_path):
    run(load_benchmark(plain).only(["y-obs"]), tmp_path / "out", device="cpu")
    before = by_cell(tmp_path / "out")
    recorder = Recorder()
    summary = run(load_benchmark(plain), tmp_path / "out", device="cpu", display=recorder)
    assert (summary.done, summary.computed) == (12, 6)
    assert recorder.fleets == [6]
    after = by_cell(tmp_path / "out")
    pd.testing.assert_frame_equal(after.loc[before.index], before)


def test_fleets_have_the_size_asked_for(plain, tmp_path):
    recorder = Recorder()
    run(load_benchmark(plain), tmp_path / "out", device="cpu", max_fleet=4, display=recorder)
    assert recorder.fleets == [3, 3, 3, 3]  # even ones rather than 4 and 2


# -- killed -----------------------------------------------------------------------------------


def test_killed_while_training_it_goes_on_from_the_checkpoint(iterative, tmp_path):
    out = tmp_path / "out"
    die(iterative, out, "training", 5)
    (file,) = (out / "checkpoints").iterdir()
    _, meta = checkpoint.read(file)
    assert meta["iterations_done"] == 5
    assert [(one.running, one.pending) for one in status(out)] == [(0, 6)]  # dead, seen at once
    recorder = Recorder()
    summary = run(load_benchmark(iterative), out, device="cpu", display=recorder)
    assert (summary.done, summary.complete) == (6, True)
    assert recorder.iterations[0] == 6  # not one iteration twice
    assert recorder.fleets == [6]
    assert recorder.resumes == [6]
    assert not list((out / "checkpoints").iterdir())
    run(load_benchmark(iterative), tmp_path / "whole", device="cpu")
    same_values(by_cell(out), by_cell(tmp_path / "whole"))


def test_a_person_reads_that_it_goes_on_and_nothing_twice(iterative, tmp_path):
    die(iterative, tmp_path / "out", "training", 5)

    def shown():
        console = Console(width=140, file=StringIO())
        run(load_benchmark(iterative), tmp_path / "out", device="cpu", display=Display(console))
        return console.file.getvalue().splitlines()

    assert "going on from a checkpoint: dcem x 6" in shown()
    assert shown() == ["6 of 6 cells"]  # nothing was left to do


def test_killed_between_two_rounds_other_methods_go_on_too(rounds, tmp_path):
    out = tmp_path / "out"
    die(rounds, out, "training", 5)
    recorder = Recorder()
    summary = run(load_benchmark(rounds), out, device="cpu", display=recorder)
    assert summary.complete
    assert recorder.iterations == list(range(6, 13))
    assert not list((out / "checkpoints").iterdir())
    run(load_benchmark(rounds), tmp_path / "whole", device="cpu")
    same_values(by_cell(out), by_cell(tmp_path / "whole"))


def test_killed_while_committing_the_rest_is_committed_and_no_more(iterative, tmp_path):
    out = tmp_path / "out"
    die(iterative, out, "committing", 3)
    before = by_cell(out)
    assert len(before) == 3
    recorder = Recorder()
    summary = run(load_benchmark(iterative), out, device="cpu", display=recorder)
    assert (summary.done, summary.computed) == (6, 3)
    assert recorder.iterations == []  # all iterations were in the checkpoint
    after = by_cell(out)
    pd.testing.assert_frame_equal(after.loc[before.index], before)  # times of finishing included
    run(load_benchmark(iterative), tmp_path / "whole", device="cpu")
    same_values(after, by_cell(tmp_path / "whole"))


def test_killed_without_a_checkpoint_only_its_fleet_is_done_again(plain, tmp_path):
    out = tmp_path / "out"
    die(plain, out, "committing", 8)  # the second fleet, two cells in
    before = by_cell(out)
    assert len(before) == 8
    summary = run(load_benchmark(plain), out, device="cpu")
    assert (summary.done, summary.computed) == (12, 4)
    pd.testing.assert_frame_equal(by_cell(out).loc[before.index], before)


def test_checkpoints_that_nobody_needs_are_removed(plain, iterative, tmp_path):
    out = tmp_path / "out"
    run(load_benchmark(iterative), out, device="cpu")
    fleet = sqlite3.connect(out / "store.sqlite").execute("SELECT fleet FROM cells").fetchone()[0]
    for name in (f"{fleet}.safetensors", f".{fleet}.safetensors.1.tmp"):
        (out / "checkpoints" / name).touch()  # as a kill between commit and tidying leaves it
    run(load_benchmark(plain), out, device="cpu")
    assert not list((out / "checkpoints").iterdir())


# -- out of time ------------------------------------------------------------------------------


class SlowClock(Recorder):
    """Lets the time run out after some iterations."""

    def __init__(self, monkeypatch, iterations):
        super().__init__()
        self.clock, self.after = [0.0], iterations
        monkeypatch.setattr(planner.time, "monotonic", lambda: self.clock[0])

    def progress(self, done, total):
        super().progress(done, total)
        self.clock[0] += 10.0


def in_short_runs(file, out, monkeypatch):
    """Run after run of 45 s, of which a round takes 10; the rounds of each."""
    seen = []
    for _ in range(10):
        with monkeypatch.context() as patch:
            clock = SlowClock(patch, 0)
            summary = run(
                load_benchmark(file), out, device="cpu", max_seconds=45, started=0.0, display=clock
            )
        seen.append(clock.iterations)
        assert clock.clock[0] <= 45
        if summary.complete:
            break
        assert summary.pending
        assert summary.pending == 6
    return seen


def test_a_run_ends_in_time_and_the_next_goes_on(iterative, tmp_path, monkeypatch):
    seen = in_short_runs(iterative, tmp_path / "out", monkeypatch)
    assert [i for part in seen for i in part] == list(range(1, 13))
    assert [len(part) for part in seen] == [4, 4, 4]
    run(load_benchmark(iterative), tmp_path / "whole", device="cpu")
    same_values(by_cell(tmp_path / "out"), by_cell(tmp_path / "whole"))


def test_runs_of_other_methods_end_between_two_rounds(rounds, tmp_path, monkeypatch):
    seen = in_short_runs(rounds, tmp_path / "out", monkeypatch)
    assert seen == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
    run(load_benchmark(rounds), tmp_path / "whole", device="cpu")
    same_values(by_cell(tmp_path / "out"), by_cell(tmp_path / "whole"))


def test_methods_that_can_go_on_are_begun_whatever_time_is_left(rounds):
    cell = expand(load_benchmark(rounds))[0][0].cell
    assert planner.guess_cost(cell, "cpu").resumable


def test_a_fleet_too_long_for_the_time_is_cut_smaller(plain, tmp_path, monkeypatch):
    """A method without checkpoints must not start from the beginning for ever."""
    sizes = []
    for _ in range(10):
        with monkeypatch.context() as patch:
            clock = SlowClock(patch, 0)
            clock.progress = lambda done, total, c=clock: c.clock.__setitem__(
                0, c.clock[0] + 0.5 * c.fleets[-1]
            )
            summary = run(
                load_benchmark(plain).only(["y-obs"]),
                tmp_path / "out",
                device="cpu",
                max_seconds=45,
                started=0.0,
                display=clock,
            )
        sizes.append(clock.fleets)
        if summary.complete:
            break
    assert summary.complete, sizes
    assert sizes[0] == [6]  # 6 cells take 60 s: cut off
    assert max(sizes[1]) < 6


# -- failures ---------------------------------------------------------------------------------


def test_a_failed_cell_is_recorded_and_tried_again_on_request_only(tmp_path):
    file = tmp_path / "some.toml"
    file.write_text(
        """
        [[tasks]]
        n_train = 300
        n_validation = 300
        n_test = 300
        seed = [0, 1]
        n_test = [4, 300]
        [[methods]]
        name = "y-obs"
        params = {steps = 5}
        """.replace("n_test = 300\n        seed", "seed")
    )
    out = tmp_path / "out"
    bad = load_benchmark(file)
    for task in bad.tasks:
        if task["n_test"] == 4:
            task["amplitude"] = "high"  # only found out when the task is made
    first = run(bad, out, device="cpu")
    assert (first.done, first.failed) == (2, 2)
    (row,) = status(out)
    assert row.failed == 2
    assert "high" in row.error
    second = run(bad, out, device="cpu")
    assert (second.computed, second.failed) == (0, 2)
    third = run(bad, out, device="cpu", retry_failed=True)
    assert (third.computed, third.failed) == (0, 2)
    attempts = sqlite3.connect(out / "store.sqlite").execute(
        "SELECT attempts FROM cells WHERE status = 'failed'"
    )
    assert {n for (n,) in attempts} == {2}


def test_a_diverged_fit_is_a_failure_not_a_number(plain, tmp_path):
    text = plain.read_text().replace("steps = 20", "steps = 20, learning_rate = 1e38")
    plain.write_text(text)
    summary = run(load_benchmark(plain).only(["y-obs"]), tmp_path / "out", device="cpu")
    assert summary.failed == 6
    assert "not finite" in status(tmp_path / "out")[0].error


def test_sepsis_cells_run_and_hide_where_the_cohort_lies(cohort, tmp_path):
    file = tmp_path / "sepsis.toml"
    file.write_text(
        """
        [[tasks]]
        kind = "sepsis"
        k = 4
        beta = [0, 0.5]
        [[methods]]
        name = ["y-obs", "y-model", "tested-only-plus-group"]
        params = {steps = 5}
        """
    )
    summary = run(load_benchmark(file, cohort=str(cohort)), tmp_path / "out", device="cpu")
    assert summary.complete
    frame = results(tmp_path / "out")
    assert sorted(frame["beta"].unique()) == [0.0, 0.5]
    assert (frame["cohort"] == "cohort.parquet").all()
    assert frame["phase"].isna().all()
    assert "artificial" not in frame


def test_results_from_artificial_patients_say_so(cohort, tmp_path):
    table = pyarrow.parquet.read_table(cohort)
    mark = {b"dcem_sepsis": b'{"artificial": true}'}
    pyarrow.parquet.write_table(table.replace_schema_metadata(mark), cohort)
    file = tmp_path / "sepsis.toml"
    file.write_text(
        """
        [[tasks]]
        kind = "sepsis"
        beta = [0, 1]
        [[methods]]
        name = "y-obs"
        params = {steps = 5}
        """
    )
    run(load_benchmark(file, cohort=str(cohort)), tmp_path / "out", device="cpu")
    assert results(tmp_path / "out")["artificial"].tolist() == [True, True]


# -- several processes ------------------------------------------------------------------------


def test_two_processes_share_a_store(plain, tmp_path):
    text = plain.read_text().replace("seed = [0, 1, 2]", f"seed = {list(range(24))}")
    plain.write_text(text)
    out = tmp_path / "out"

    both = FORK.Barrier(2)

    def work(name):
        both.wait()
        summary = run(load_benchmark(plain), out, device="cpu", max_fleet=4)
        (tmp_path / name).write_text(str(summary.computed))

    for child in [started(work, name) for name in "ab"]:
        child.join(120)
        assert child.exitcode == 0
    computed = [int((tmp_path / name).read_text()) for name in "ab"]
    assert sum(computed) == 96  # none twice
    assert min(computed) > 0, "one of them found nothing to do"
    (done,) = {row.done for row in status(out)}
    assert done == 48
    check = sqlite3.connect(out / "store.sqlite").execute("PRAGMA integrity_check").fetchone()
    assert check == ("ok",)


def test_status_does_not_wait_for_a_run_that_writes(plain, tmp_path):
    run(load_benchmark(plain), tmp_path / "out", device="cpu")
    writer = sqlite3.connect(tmp_path / "out" / "store.sqlite", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE cells SET attempts = attempts + 1")
    answer = []
    reader = threading.Thread(target=lambda: answer.append(status(tmp_path / "out")))
    reader.start()
    reader.join(timeout=60)
    assert sum(row.done for row in answer[0]) == 12
    writer.execute("ROLLBACK")


def test_rows_of_a_survey_are_judged_by_their_weight():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(600, 2)), rng.exponential(size=600)
    y = rng.random(600) < 1 / (1 + np.exp(-X[:, 0] * np.sign(weight - 0.7)))
    policy = tasks.LinearPolicy({"x1": 1.0}, slope=2, k=1)
    group = rng.integers(2, size=600)
    task = tasks.make_censored(X, y, group, policy, weight=weight, random_state=0)
    score = task.test.X[:, 0]
    found = measure(None, score, task)["auc"]
    assert found == metrics.auc(task.truth["test"], score, weight=task.test.weight)
    assert abs(found - metrics.auc(task.truth["test"], score)) > 0.05


def test_a_device_that_is_not_there_is_refused_in_words(plain, tmp_path):
    with pytest.raises(InputError, match="`device` must be auto, cpu or cuda; got 'gpu'"):
        run(load_benchmark(plain), tmp_path / "out", device="gpu")
