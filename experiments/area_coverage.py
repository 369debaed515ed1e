"""Do the intervals of small groups, of the worst group and of calibration hold what they promise?

    python experiments/area_coverage.py run [--repetitions 200]    (again: cells not yet recorded)
    python experiments/area_coverage.py show

Two normal classes per group, so that every true value is known, judged by `metrics.bootstrap`:
the AUC difference between a group with 12, 20 or 40 positives and a large one; the AUC of the worst
of two, four and six groups that are all alike, or of which one is worse; and the calibration error
of risks that are right, or overstated. Recorded are how often the 95 % interval holds the true
value, how often it lies above and below it, and the mean estimate.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

from _record import command, record, recorded, show_tables
from dcem.metrics import Estimate, bootstrap

RESAMPLES = 100
Sample = Callable[[np.random.Generator], tuple[Estimate, float]]


def people(
    rng: np.random.Generator, sizes: list[tuple[int, int, float]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Label, score and group of groups given as (positives, negatives, AUC)."""
    y, score, group = [], [], []
    for code, (positives, negatives, auc) in enumerate(sizes):
        mine = np.arange(positives + negatives) < positives
        y.append(mine)
        score.append(rng.normal(size=len(mine)) + mine * norm.ppf(auc) * np.sqrt(2))
        group.append(np.full(len(mine), code))
    return np.concatenate(y), np.concatenate(score), np.concatenate(group)


def difference(positives: int, auc: float, other: float) -> Sample:
    """A small group against a large one."""

    def sample(rng: np.random.Generator) -> tuple[Estimate, float]:
        data = people(rng, [(positives, 6 * positives, auc), (200, 1000, other)])
        found = bootstrap(*data, n_resamples=RESAMPLES, random_state=rng)
        return found.auc_differences[0, 1], auc - other

    return sample


def worst(n_groups: int, lowest: float) -> Sample:
    """The worst of several groups of different sizes; the AUC of the others is .75."""

    def sample(rng: np.random.Generator) -> tuple[Estimate, float]:
        sizes = [(30 * (k + 1), 150 * (k + 1), 0.75) for k in range(n_groups)]
        sizes[-1] = (*sizes[-1][:2], lowest)
        found = bootstrap(*people(rng, sizes), n_resamples=RESAMPLES, random_state=rng)
        return found.worst_group_auc, lowest

    return sample


def calibration(n: int, overstated: float) -> Sample:
    """Risks whose log-odds are overstated by a constant."""
    u = (np.arange(10**5) + 0.5) / 10**5
    true = float(np.abs(expit(logit(u) - overstated) - u).mean())

    def sample(rng: np.random.Generator) -> tuple[Estimate, float]:
        score = rng.random(n)
        y = rng.random(n) < expit(logit(score) - overstated)
        found = bootstrap(y, score, n_resamples=RESAMPLES, random_state=rng)
        return found.calibration_error, true

    return sample


CELLS: dict[str, Sample] = {
    "difference, 12 positives, .75 and .75": difference(12, 0.75, 0.75),
    "difference, 12 positives, .90 and .80": difference(12, 0.90, 0.80),
    "difference, 20 positives, .90 and .80": difference(20, 0.90, 0.80),
    "difference, 40 positives, .75 and .75": difference(40, 0.75, 0.75),
    "worst of two alike": worst(2, 0.75),
    "worst of four alike": worst(4, 0.75),
    "worst of six alike": worst(6, 0.75),
    "worst of six, one lower": worst(6, 0.65),
    "calibration error, right risks, 500 people": calibration(500, 0.0),
    "calibration error, right risks, 2,000 people": calibration(2000, 0.0),
    "calibration error, overstated, 2,000 people": calibration(2000, 0.5),
}


def run(repetitions: int, out: Path) -> None:
    begin = time.perf_counter()
    rows = recorded("area_coverage", out)
    for name, sample in CELLS.items():
        if name in {row["cell"] for row in rows}:
            continue
        drawn = [sample(np.random.default_rng(seed)) for seed in range(repetitions)]
        true = drawn[0][1]
        low, high, value = np.array([(e.low, e.high, e.value) for e, _ in drawn]).T
        above, below = low > true + 1e-9, high < true - 1e-9
        rows.append(
            {
                "cell": name, "repetitions": repetitions, "true": true, "mean": value.mean(),
                "coverage": 1 - (above | below).mean(), "above": above.mean(),
                "below": below.mean(), "width": (high - low).mean(),
            }
        )  # fmt: skip
        record("area_coverage", rows, out, time.perf_counter() - begin, resamples=RESAMPLES)


if __name__ == "__main__":
    command(__doc__, run, show_tables("area_coverage"), repetitions=200)
