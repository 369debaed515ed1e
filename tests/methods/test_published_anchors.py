"""Single published numbers, from the published draws: slow, but the whole chain at once."""

import pytest

from dcem.methods import make, published
from dcem.metrics import auc, roc_gap
from dcem.tasks import make_sinusoid


@pytest.fixture(scope="module")
def task():
    return make_sinusoid(q_y=0.5, k=1.0, q_t=2.0, phase=0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "published_auc", "published_gap"),
    [("y-obs", 0.6323, 0.1043), ("gjs", 0.6228, 0.1091), ("truncated-lq", 0.2156, 0.0334)],
)
def test_single_stage_methods_give_their_plotted_point(task, name, published_auc, published_gap):
    model = published(name, task).fit_problem(task.train, validation=task.validation)
    score = model.predict_proba(task.test)[:, 1]
    assert auc(task.truth["test"], score) == pytest.approx(published_auc, abs=0.002)
    assert roc_gap(task.truth["test"], score, task.test.group) == pytest.approx(
        published_gap, abs=0.002
    )


@pytest.mark.slow
def test_the_default_is_far_above_tested_only_where_that_fails(task):
    # phase 0 is the boundary at which tested-only extrapolates worst: .70 as published
    model = make("dcem", random_state=0).fit_problem(task.train, validation=task.validation)
    score = model.predict_proba(task.test)[:, 1]
    assert auc(task.truth["test"], score) > 0.82
    assert roc_gap(task.truth["test"], score, task.test.group) < 0.06


def test_group_only_refuses_a_group_that_nobody_tested():
    task = make_sinusoid(
        stream="independent", random_state=0, n_train=400, n_validation=100, n_test=100
    )
    from dataclasses import replace

    import numpy as np

    people = task.train
    tested = people.tested & (people.group == 1)
    silent = replace(people, tested=tested, y_obs=np.where(tested, people.y_obs, np.nan))
    with pytest.raises(ValueError, match="Nobody in group 0 was tested"):
        make("group-only", group=0, steps=2, patience=None).fit_problem(silent)
    make("group-only", group=1, steps=2, patience=None).fit_problem(silent)
