"""Whom the tests represent, and why nothing can be said of the others."""

import numpy as np
import pytest

from dcem.estimation.overlap import assess
from dcem.table.labels import SelectiveLabels


@pytest.mark.parametrize(
    ("heavy", "chance", "why"),
    [(16, 0.2, "too few tests"), (1, 0.01, "hardly any overlap")],
)
def test_few_tests_are_not_called_a_lack_of_overlap(heavy, chance, why) -> None:
    n = 160
    tested = np.arange(n) % 5 == 0  # 32 people; 30 are the fewest that are judged
    testing = np.full(n, 0.6)
    testing[: 10 * heavy : 10] = chance  # these stand for more people than the others
    y = np.where(tested, np.arange(n) % 2, np.nan)
    people = SelectiveLabels.from_arrays(np.arange(n)[:, None], y, tested=tested)
    found = next(iter(assess(people, testing, known=True).overlap.values()))
    assert found.effective < 30
    assert found.reason.startswith(why)
