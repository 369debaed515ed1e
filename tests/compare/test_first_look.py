"""A first look: overlap and times from a few thousand rows."""

import numpy as np
import pytest

from dcem import SelectiveLabels
from dcem.compare.first_look import first_look, seconds
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
    assert set(look.seconds) == {"audit", "compare", "fit"}


def test_a_group_that_the_sample_lost_is_said_to_be_so() -> None:
    assert first_look(problem(20_000, hole=False, rare=0.01)).too_few == ("a",)


def test_longer_tables_take_longer_and_budgets_hold() -> None:
    few, many = (seconds(problem(n, hole=False), 1e-4) for n in (2000, 20_000))
    assert all(few[step] < many[step] for step in few)
    wide = np.arange(12_000_000, dtype=np.float32).reshape(400_000, 30)
    untested = np.full(len(wide), np.nan)
    untested[:2] = 0, 1
    more = seconds(SelectiveLabels.from_arrays(wide, untested), 1e-4)
    again = seconds(SelectiveLabels.from_arrays(wide[:200_000], untested[:200_000]), 1e-4)
    assert more["audit"] == again["audit"]  # both are over the budget of rows
    assert more["compare"] == again["compare"]


def test_nothing_to_time() -> None:
    x = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.warns(match="counts as tested"):
        look = first_look(SelectiveLabels.from_arrays(x, (x[:, 0] > 0) * 1.0))
    assert look.seconds == {}
    assert look.overlap == {}
