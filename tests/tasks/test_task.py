"""The truth of a task is kept apart, and cannot be changed."""

import pickle

import numpy as np
import pytest

from dcem.table.messages import InputError
from dcem.tasks.task import Truth


def test_truth_is_a_frozen_mapping() -> None:
    source = np.array([0, 1, 1])
    truth = Truth({"train": source, "test": [True, False]})
    source[0] = 1
    np.testing.assert_array_equal(truth["train"], [0, 1, 1])
    assert truth["test"].dtype == np.int64
    assert list(truth) == ["train", "test"]
    assert len(truth) == 2
    with pytest.raises(ValueError, match="read-only"):
        truth["train"][0] = 1
    with pytest.raises(TypeError):
        truth.splits["train"] = source  # type: ignore[index]
    with pytest.raises(KeyError, match="no split 'valid'; there are 'train', 'test'"):
        truth["valid"]
    assert truth.get("valid") is None
    assert repr(truth) == "Truth(positive in train: 2 (66.7 %), test: 1 (50.0 %))"
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(truth))["train"], truth["train"])


@pytest.mark.parametrize("values", [[0, 2], [0, np.nan], ["a", "b"]])
def test_truth_holds_only_zero_and_one(values: list) -> None:
    with pytest.raises(InputError, match="truth"):
        Truth({"train": values})
