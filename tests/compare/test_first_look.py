"""A first look: overlap from a few thousand rows."""

import numpy as np
import pytest

from dcem import SelectiveLabels
from dcem.compare.first_look import first_look
from dcem.estimation.results import EVERYBODY


def problem(n: int, *, hole: bool, rare: float = 0.5) -> SelectiveLabels:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(n, 2))
    tested = draw.random(n) < 0.4
    if hole:
        tested &= x[:, 0] < 0.3
    y = draw.random(n) < 1 / (1 + np.exp(-x[:, 1]))
    group = np.where(draw.random(n) < rare, "a", "b")
    return SelectiveLabels.from_arrays(x, np.where(tested, y, np.nan), group=group)


@pytest.mark.parametrize("hole", [False, True])
def test_a_hole_is_seen(hole) -> None:
    look = first_look(problem(2000, hole=hole))
    assert look.rows == 2000
    assert look.overlap[EVERYBODY].complete == (not hole)
    assert (look.predictable > 0.7) == hole


def test_a_group_that_the_sample_lost_is_said_to_be_so() -> None:
    assert first_look(problem(20_000, hole=False, rare=0.01)).too_few == ("a",)
    draw, n = np.random.default_rng(0), 12_000  # rows enough, and too few people
    y = np.where(draw.random(n) < 0.5, draw.integers(0, 2, n), np.nan)
    group = np.where(np.arange(n) < 600, "a", "b")
    some = SelectiveLabels.from_arrays(
        draw.normal(size=(n, 2)), y, group=group, id=np.arange(n) // 10
    )
    assert first_look(some).too_few == ("a",)


def test_nothing_to_look_at() -> None:
    x = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.warns(match="counts as tested"):
        look = first_look(SelectiveLabels.from_arrays(x, (x[:, 0] > 0) * 1.0))
    assert look.overlap == {}
