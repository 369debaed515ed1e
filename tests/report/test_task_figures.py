"""The picture of a task: right panels, right words, both boundaries where they belong."""

import numpy as np
import pytest

from dcem import InputError
from dcem.report.figures.task import draw_task
from dcem.tasks import LinearPolicy, make_censored, make_sinusoid


@pytest.fixture(scope="module")
def task():
    return make_sinusoid(stream="independent", random_state=0, n_train=4_000)


def boundaries(ax):
    return [c for c in ax.collections if type(c).__name__ == "QuadContourSet"]


def test_six_panels_with_both_boundaries(task):
    axes = draw_task(task).figure.axes
    assert len(axes) == 6
    for index, ax in enumerate(axes):
        outcome, testing = boundaries(ax)
        x = outcome.get_paths()[0].vertices
        np.testing.assert_allclose(task.process.outcome_probability(x), 0.5, atol=0.02)
        t = testing.get_paths()[0].vertices
        np.testing.assert_allclose(task.process.testing_probability(t, index // 3), 0.5, atol=0.02)


def test_the_dots_of_a_panel_are_the_people_it_names(task):
    axes = draw_task(task).figure.axes
    tested = task.train.X[(task.train.group == 1) & task.train.tested]
    _others, marked = (c.get_offsets() for c in axes[4].collections[:2])
    assert len(marked) > 100
    assert set(map(tuple, marked)) <= set(map(tuple, tested))


def test_percentages_count_everybody(task):
    rows = task.train.group == 0
    share = 100 * task.train.tested[rows].mean()
    assert f"tested: {share:.1f} %" in draw_task(task).description


def test_a_fully_tested_group_has_no_testing_boundary():
    axes = draw_task(make_sinusoid(k=3.0, q_t=2.0)).figure.axes
    assert [len(boundaries(ax)) for ax in axes] == [1, 1, 1, 2, 2, 2]


def test_other_tasks_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    task = make_censored(X, y, None, LinearPolicy({"x0": 1.0}, k=1.0), random_state=0)
    with pytest.raises(InputError, match="'censored' task with 3"):
        draw_task(task)
