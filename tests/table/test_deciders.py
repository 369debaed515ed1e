"""Who decided: codes, names, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning, InputError

X, y = np.arange(12.0)[:, None], np.tile([0, 1, np.nan], 4)


def made(decider: object) -> SelectiveLabels:
    return SelectiveLabels.from_arrays(X, y, decider=decider)


def test_deciders_are_names_in_order_and_may_be_missing():
    problem = made(pd.Series([10, 2, 10, None] * 3))
    assert problem.decider_names == ("2", "10")
    assert problem.decider.tolist() == [1, 0, 1, -1] * 3
    part = problem.subset([1, 3])
    assert part.decider.tolist() == [0, -1]
    assert part.decider_names == problem.decider_names
    again = pickle.loads(pickle.dumps(problem))
    assert again.decider.tolist() == problem.decider.tolist()
    with pytest.raises(ValueError, match="read-only"):
        problem.decider[0] = 0


def test_by_column():
    frame = pd.DataFrame({"x": X[:, 0], "y": y, "clinic": ["north", "south"] * 6})
    problem = SelectiveLabels.from_frame(frame, label="y", decider="clinic")
    assert problem.feature_names == ("x",)
    assert problem.decider_names == ("north", "south")


@pytest.mark.parametrize(
    ("decider", "said"),
    [
        (["a"] * 12, "one decider, 'a'"),
        ([None] * 12, "is empty"),
        (list(range(12)), "looks like an identifier"),
        (["a", "b"], "2"),
    ],
)
def test_what_cannot_be_deciders_is_refused(decider: list, said: str):
    with pytest.raises(InputError, match=said):
        made(decider)


def test_who_did_the_test_is_not_who_decided():
    """Known where somebody was tested alone, a decider would have tested everybody."""
    looked = ~np.isnan(y)
    reviewer = np.where(looked, np.tile(["a", "b", "c"], 4), None)
    with pytest.raises(InputError, match="has a value in 100 % of the tested rows and in 0 %"):
        made(reviewer)
    reviewer[np.flatnonzero(~looked)[:2]] = "a"  # of half of the untested
    with pytest.warns(DataWarning, match="in 50 % of the others"):
        made(reviewer)
