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


@pytest.mark.parametrize("known", [False, True])
def test_weights_of_a_design_are_what_they_are(known) -> None:
    row = np.arange(400)
    tested, testing = row % 2 == 0, np.where(row % 2 == 0, 1.0, 0.5)
    testing[:20] = 1e-4  # ten of them were tested nonetheless
    y = np.where(tested, row // 2 % 2, np.nan)
    people = SelectiveLabels.from_arrays(row[:, None], y, tested=tested)
    found = assess(people, testing, known=known).overlap["everybody"]
    assert found.effective == pytest.approx(10 if known else 12, abs=0.1)
