"""What the numbers of an overlap mean."""

import numpy as np
import pytest

from dcem.estimation.results import Overlap


@pytest.mark.parametrize(
    ("effective", "heaviest", "thin"),
    [(60, 0.1, False), (60, 0.3, True), (25, 0.1, True), (35, 0.15, False)],
)
def test_thin_where_few_tests_carry_the_weight(effective, heaviest, thin) -> None:
    found = Overlap("a", 1.0, (0.5,) * 5, {}, 100, effective, heaviest, np.zeros(1))
    assert found.thin is thin
