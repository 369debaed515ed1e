"""The demo end to end, on few people: real fits, real report."""

import csv

import pytest
import torch
from rich.console import Console

from dcem.cli.demo import METHODS, compare_on_truth, demo_steps
from dcem.compare.durations import compare_steps
from dcem.report.compare import compare_document
from dcem.report.document import Count, Figure, Table
from dcem.report.figures.task import draw_task
from dcem.report.to_html import to_html
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
    yield compare_on_truth(task, seed=0, resamples=20, console=Console(quiet=True))
    torch.set_num_threads(threads)


def test_every_method_is_judged_and_only_the_oracle_saw_the_truth(comparison) -> None:
    assert [method.name for method in comparison.methods] == list(METHODS)
    assert [m.name for m in comparison.methods if m.uses_truth] == ["y-model"]
    by_name = {method.name: method for method in comparison.methods}
    judged = {name: method.judgements["truth"] for name, method in by_name.items()}
    for name, one in judged.items():
        assert one.auc.low <= one.auc.value <= one.auc.high
        assert set(one.roc_curves) == {"0", "1"}
        assert one.gap_pair == ("0", "1")
        assert (one.auc_gain is None) == (name == comparison.reference)
    assert judged["y-model"].auc.value > judged["y-obs"].auc.value + 0.1
    history = by_name["dcem"].history
    assert history is not None
    assert 1 <= history.kept <= len(history.loss["training"])


def test_what_is_left_counts_on_judging_each_method_and_on_the_first_network_most(task) -> None:
    steps = demo_steps(task)
    computed = compare_steps(task.train, METHODS, split=True, planted=0)
    assert list(steps) == [*computed, "writing"]  # a page takes as long to draw as some fits
    assert [step for step in steps if step.startswith("judging")][-1] == "judging, 4 of 4"
    assert max(steps, key=steps.get) == "fitting methods, 1 of 4"
    assert min(steps.values()) > 0


def test_counts_are_those_of_the_task(task, comparison) -> None:
    assert sum(group.people for group in comparison.groups) == len(task.train)
    assert sum(group.tested for group in comparison.groups) == task.train.tested.sum()
    assert sum(group.positives for group in comparison.groups) == task.truth["train"].sum()


def test_where_the_truth_is_known_it_is_what_could_not_have_been_known(comparison) -> None:
    said = next(one for one in comparison.warnings if one.key == "no-overlap")
    assert said.headline.startswith("Without the truth, numbers for everybody could not have")
    assert (said.severity, said.remedy) == ("note", "")  # the answer is the truth's


def test_report_of_the_demo_is_that_of_a_comparison(task, comparison) -> None:
    document = compare_document(comparison, "Demo", "", [Figure(lambda: draw_task(task))])
    tested = next(section for section in document.sections if section.key == "tested")
    table = next(block for block in tested.blocks if isinstance(block, Table))
    assert table.rows[-1][-1] == Count(int(task.truth["train"].sum()), len(task.train))
    page = to_html(document)
    for name in ("task-train", "roc-truth", "history-dcem"):
        assert f'id="{name}-title"' in page


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
        found = {row["method"] for row in csv.DictReader(stream) if row["metric"] == "auc"}
        assert found == set(METHODS)
