"""Do the sensitivity analyses of the audit recover a planted confounder of known strength?

    python experiments/sensitivity.py run
    python experiments/sensitivity.py show

*Outcome and testing.* Simulated tables in which untested people have gamma times the odds of the
outcome that tested people with the same features have. All models are fitted to what was seen. The
analysis at the planted gamma should give the true prevalence and the true difference in AUC between
the groups (of a score that is poorer in one of them); the usual one, at 1, should not.

*Group and testing.* Tables in which a hidden cause is tied to the group and to testing, and the
group itself has no effect. The bias that the analysis computes from the hidden cause's true
strength should be the whole difference that is seen.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from _record import command, record

GAMMAS = (1 / 3, 1 / 2, 1.0, 2.0, 3.0)
HIDDEN = (0.0, 0.3, 0.6, 0.9)
ROWS = 6000


def dependence(gamma: float, seed: int) -> list[dict[str, Any]]:
    """One table with a planted odds ratio."""
    from dcem import metrics
    from dcem.estimation.folds import person_folds
    from dcem.estimation.influence import People
    from dcem.estimation.nuisances import fit_nuisances
    from dcem.estimation.outcomes import Unseen
    from dcem.estimation.ranking import RankedScore
    from dcem.table.labels import SelectiveLabels

    rng = np.random.default_rng([seed, round(1000 * gamma)])
    group = rng.integers(0, 2, ROWS)
    x = rng.normal(size=(ROWS, 3)) + 0.4 * group[:, None] * [1, 0, 0]
    # Group 0 is tested the more, the higher its risk; group 1 the less: gamma bends their ROC
    # curves in opposite directions.
    tested = rng.random(ROWS) < expit(-0.3 + np.where(group == 0, 1.0, -0.7) * x[:, 0])
    seen = -0.6 + x[:, 0] - 0.6 * x[:, 1]
    truth = rng.random(ROWS) < expit(seen + np.where(tested, 0, np.log(gamma)))
    score = seen + 0.8 * group * rng.normal(size=ROWS)  # poorer in group 1
    problem = SelectiveLabels.from_arrays(x, np.where(tested, truth, np.nan), group=group)
    people = People.of(problem)
    models = fit_nuisances(problem, person_folds(problem, 3, rng), rng)
    unseen = Unseen.of(problem, models.outcome, models.truncated_testing)
    ranked = RankedScore(score, people.weight)
    first, second = ((group == code) * 1.0 for code in (0, 1))
    real = {
        "prevalence": truth.mean(),
        "AUC difference": metrics.auc(truth[group == 0], score[group == 0])
        - metrics.auc(truth[group == 1], score[group == 1]),
    }
    rows = []
    for assumed in dict.fromkeys((1.0, gamma)):
        q = unseen.outcomes(assumed)
        found = {
            "prevalence": people.mean(q),
            "AUC difference": ranked.auc(q, first) - ranked.auc(q, second),
        }
        for what, moving in found.items():
            e = people.interval(moving)
            rows.append(
                {
                    "analysis": what, "planted": gamma, "assumed": assumed, "seed": seed,
                    "truth": real[what], "estimate": e.value, "low": e.low, "high": e.high,
                }
            )  # fmt: skip
    return rows


def unmeasured(strength: float, seed: int) -> list[dict[str, Any]]:
    """One table with a hidden cause of group and testing."""
    from dcem.audit.testing import testing_rates
    from dcem.audit.unmeasured import bias_scale, largest_bias
    from dcem.estimation.folds import person_folds
    from dcem.estimation.influence import People
    from dcem.estimation.nuisances import fit_nuisances
    from dcem.table.labels import SelectiveLabels

    rng = np.random.default_rng([seed, round(1000 * strength), 1])
    x, hidden = rng.normal(size=(ROWS, 2)), rng.normal(size=ROWS)
    group = (rng.random(ROWS) < expit(0.4 * x[:, 0] + strength * hidden)).astype(int)
    tested = rng.random(ROWS) < expit(-0.5 + 0.6 * x[:, 0] - strength * hidden)
    y = np.where(tested, rng.random(ROWS) < expit(x[:, 1]), np.nan)
    problem = SelectiveLabels.from_arrays(x, y, group=group)
    people = People.of(problem)
    models = fit_nuisances(problem, person_folds(problem, 3, rng), rng, groups=True)
    rate = testing_rates(problem, people, models)[1]
    assert models.membership is not None
    assert models.testing_alone is not None
    surplus = group - models.membership[:, 1]
    scale = bias_scale(problem, people, models.testing_alone, surplus, rate.difference.value)
    ones = np.ones(ROWS)
    with_group = _partial(group, hidden, ones, x)
    with_testing = _partial(tested * 1.0, hidden, ones, x, group)
    bias = -scale * largest_bias(with_group, with_testing)  # the hidden cause lowers testing
    d = rate.difference
    return [
        {
            "analysis": "difference in testing", "planted": strength, "assumed": assumed,
            "seed": seed, "truth": 0.0, "estimate": d.value - off, "low": d.low - off,
            "high": d.high - off,
        }
        for assumed, off in {0.0: 0.0, strength: bias}.items()
    ]  # fmt: skip


def _partial(target: np.ndarray, hidden: np.ndarray, *given: np.ndarray) -> float:
    """The share of what `given` leaves open of `target` that `hidden` explains, linearly."""

    def left(*columns: np.ndarray) -> float:
        design = np.column_stack(columns)
        return float((target - design @ np.linalg.lstsq(design, target, rcond=None)[0]).var())

    return 1 - left(*given, hidden) / left(*given)


def run(out: Path, repetitions: int) -> None:
    begin = time.perf_counter()
    rows = []
    for seed in range(repetitions):
        for gamma in GAMMAS:
            rows += dependence(gamma, seed)
        for strength in HIDDEN:
            rows += unmeasured(strength, seed)
        print(f"repetition {seed + 1} of {repetitions}", flush=True)
    record("sensitivity", rows, out, time.perf_counter() - begin)


def show(out: Path) -> None:
    table = pd.read_csv(out / "sensitivity.csv")
    table["error"] = table["estimate"] - table["truth"]
    table["covered"] = (table["low"] <= table["truth"]) & (table["truth"] <= table["high"])
    table["assumption"] = np.where(table["assumed"] == table["planted"], "as planted", "none")
    keys = ["analysis", "planted", "assumption"]
    summary = table.groupby(keys, sort=False)[["truth", "estimate", "error", "covered"]].mean()
    print(summary.round(3).to_string())


if __name__ == "__main__":
    command(__doc__, run, show, repetitions=10)
