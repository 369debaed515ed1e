"""Results as JSON knows them."""

import json

import numpy as np

from dcem.metrics.plain import to_plain


def test_numbers_of_numpy_are_plain():
    found = {"n": np.int64(3), "yes": np.bool_(True), "share": np.float32(0.1), "none": np.nan}
    assert json.loads(json.dumps(to_plain(found))) == {
        "n": 3,
        "yes": True,
        "share": 0.1,
        "none": None,
    }
