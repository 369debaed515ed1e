"""The demo end to end, on few people: real fits, real report."""

import csv

import pytest
import torch
from rich.console import Console

from dcem.cli.demo import METHODS, compare, show
from dcem.report import html
from dcem.report.figures.task import draw_task
from dcem.tasks import make_sinusoid


@pytest.fixture(scope="module")
def task():
    sizes = {"n_train": 1_000, "n_validation": 500, "n_test": 2_000}
    return make_sinusoid(stream="independent", random_state=0, **sizes)


@pytest.fixture(scope="module")
def comparison(task):
    # Tables this small gain nothing from threads, and lose much where cores are shared.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield compare(task, seed=0, resamples=20, console=Console(quiet=True))
    torch.set_num_threads(threads)


def test_every_method_is_judged_and_only_the_oracle_saw_the_truth(comparison) -> None:
    assert [method.name for method in comparison.methods] == list(METHODS)
    assert [m.name for m in comparison.methods if m.uses_truth] == ["y-model"]
    for method in comparison.methods:
        assert method.auc.low <= method.auc.value <= method.auc.high
        assert set(method.curves) == {"0", "1"}
        assert (method.auc_gain is None) == (method.name == "y-obs")
    by_name = {method.name: method for method in comparison.methods}
    assert by_name["y-model"].auc.value > by_name["y-obs"].auc.value + 0.1
    history = by_name["dcem"].history
    assert history is not None
    assert 1 <= history.kept <= len(history.loss["training"])


def test_counts_are_those_of_the_task(task, comparison) -> None:
    assert sum(group.people for group in comparison.groups) == len(task.train)
    assert sum(group.tested for group in comparison.groups) == task.train.tested.sum()
    assert sum(group.positives for group in comparison.groups) == task.truth["train"].sum()


def test_table_fits_a_terminal_and_ends_in_sentences(comparison, capsys) -> None:
    show(comparison, Console(width=80, highlight=False))
    printed = capsys.readouterr().out
    assert "…" not in printed
    for method in comparison.methods:
        assert method.name in printed
    assert "recorded as negative" in printed


def test_report_of_the_demo_renders(task, comparison) -> None:
    page = html.render(comparison, [draw_task(task)])
    assert page.count("<svg ") == 4
    assert "How dcem converged" in page


@pytest.mark.slow
def test_the_command_writes_its_files(dcem, tmp_path) -> None:
    done = dcem("demo", "--quick", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "Done in" in done.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "report.html",
        "report.md",
        "comparison.csv",
    }
    with open(tmp_path / "out" / "comparison.csv", newline="") as stream:
        assert [row["method"] for row in csv.DictReader(stream)] == list(METHODS)
