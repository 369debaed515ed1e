"""Methods that draw random numbers as they learn, by distribution over seeds: class *statistical*.

Noise on inputs, partners in mixing, and the half that a row falls into may be drawn in another way
one day; the models have to stay alike. A record holds mean and standard deviation of each statistic
over 100 seeds. Here 20 other seeds are fitted: their mean has to lie within one standard deviation
of the recorded mean (4.1 standard errors of the difference, which chance exceeds once in 20,000),
and their standard deviation within a factor of two.
"""

from typing import Any

import names
import numpy as np
import pytest
from made_rows import made

RECORDED, FRESH = range(100), range(1000, 1020)
FACTOR = 2.0
BASE = {"widths": (16, 8), "precision": "float64"}
BATCHES = {"rows_per_step": 64}
ROUNDS = {"steps": 40, "rate": 0.05, "rounds": 3}
CASES: dict[str, dict[str, Any]] = {
    "self corrected": ROUNDS | {"input_noise": 0.5},
    "self published": ROUNDS | {"input_noise": 0.5},
    "self corrected, batches": ROUNDS | BATCHES,
    "dividemix corrected": {"steps": 60, "rate": 0.01},
    "dividemix published": {"steps": 60, "rate": 0.01},
    "dividemix corrected, batches": {"steps": 60, "rate": 0.01, "protects_positives": True}
    | BATCHES,
    "gjs, copies": {"steps": 60, "rate": 0.01, "predictions": 3, "input_noise": 0.7},
    "ipw corrected": {"steps": 60, "rate": 0.01, "testing_steps": 300},
    "ipw corrected, sharp": {"steps": 60, "rate": 0.01, "smallest_chance": 0.5},
    "ipw corrected, batches": {"steps": 60, "rate": 0.01} | BATCHES,
    "ipw corrected, weights": {"steps": 60, "rate": 0.01},
    "dr-learner": {"steps": 60, "rate": 0.01, "testing_steps": 300},
    "dr-learner, sharp": {"steps": 60, "rate": 0.01, "smallest_chance": 0.5},
    "dr-learner, batches": {"steps": 60, "rate": 0.01} | BATCHES,
    "dr-learner, weights": {"steps": 60, "rate": 0.01},
}
N_ROWS = 200


def statistics(score: np.ndarray, test: dict[str, Any]) -> list[float]:
    """Rank, level, spread, difference between groups, and the slopes of the log-odds."""
    z = np.log(np.clip(score, 0.005, 0.995) / np.clip(1 - score, 0.005, 0.995))
    slopes = np.linalg.lstsq(np.column_stack([np.ones(len(z)), test["X"]]), z, rcond=None)[0][1:]
    second = test["group"] == "b"
    return [
        names.auc(test["truth"], score),
        score.mean(),
        score.std(),
        score[second].mean() - score[~second].mean(),
        *slopes,
    ]


NAMES = ("auc", "mean", "sd", "group_difference", "slope_0", "slope_1", "slope_2", "testing")


def gap_in_testing(model: Any, rows: dict[str, Any]) -> list[float]:
    """How far P(tested) sets the tested apart: too far where a model has seen their decision."""
    if not names.has_testing_model(model):
        return []
    tested = rows["tested"][~names.held_out(model, N_ROWS)]
    chance = names.testing_probability(model)
    return [chance[tested].mean() - chance[~tested].mean()]


def over_seeds(name: str, seeds: range) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the statistics of fits with these seeds."""
    method, _, variant = name.split(",")[0].partition(" ")
    sharpness = 3.0 if name.endswith("sharp") else 1.5
    rows, test = made(N_ROWS, 1, sharpness=sharpness), made(400, 9, missing=False)
    if name.endswith("weights"):  # that say much of the outcome
        rows |= {"weight": np.where(rows["truth"] > 0, 8.0, 0.5)}
    models = names.fit_together(method, variant, [rows] * len(seeds), seeds, **BASE, **CASES[name])
    values = np.array(
        [
            statistics(names.scores(model, test), test) + gap_in_testing(model, rows)
            for model in models
        ]
    )
    return values.mean(axis=0), values.std(axis=0, ddof=1)


@pytest.mark.parametrize("name", CASES)
def test_other_seeds_give_models_alike(golden, name):
    key = f"over seeds: {name}"
    if golden.record:
        mean, sd = over_seeds(name, RECORDED)
        golden.write(key, "statistical", FACTOR, dict(zip(NAMES, np.c_[mean, sd], strict=False)))
    recorded = golden.cases[key]["values"]
    for statistic, mean, sd in zip(recorded, *over_seeds(name, FRESH), strict=True):
        before, spread = recorded[statistic]
        assert abs(mean - before) <= spread, f"{statistic}: {mean:.4g}, was {before:.4g}"
        assert spread / FACTOR < sd < spread * FACTOR, f"{statistic}: sd {sd:.3g}, was {spread:.3g}"
