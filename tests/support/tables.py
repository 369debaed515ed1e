"""Made-up tables in the shape of real ones, for pages that are clicked through."""

from pathlib import Path

import numpy as np
import pandas as pd


def write_survey(path: Path, rows: int = 400) -> Path:
    """A table shaped like NHANES: an interview, a test that a doctor ordered, its result."""
    rng = np.random.default_rng(0)
    age, bmi = rng.integers(20, 80, rows), rng.normal(28, 5, rows).round(1)
    race = rng.choice(["Mexican American", "Non-Hispanic Black", "Non-Hispanic White"], rows)
    ill = rng.random(rows) < 1 / (1 + np.exp(6 - 0.05 * age - 0.08 * bmi))
    likely = 1 / (1 + np.exp(-0.03 * (age - 45) + 1.0 * (race == "Mexican American")))
    tested = rng.random(rows) < likely
    frame = pd.DataFrame(
        {
            "SEQN": 31127 + np.arange(rows),
            "RIDAGEYR": age,
            "RIDRETH1": race,
            "RIAGENDR": rng.choice(["Male", "Female"], rows),
            "BMXBMI": np.where(rng.random(rows) < 0.05, np.nan, bmi),
            "smoker": rng.choice(["yes", "no"], rows),
            "tested": np.where(tested, "yes", "no"),
            "diabetes": np.where(tested, np.where(ill, "yes", "no"), ""),
        }
    )
    frame.to_csv(path, index=False)
    return path


def write_stops(path: Path, rows: int = 400) -> Path:
    """A table shaped like police stops: a search, what it found, and an arrest that followed."""
    rng = np.random.default_rng(1)
    race, hour = rng.choice(["black", "hispanic", "white"], rows), rng.integers(0, 24, rows)
    searched = rng.random(rows) < np.where(race == "white", 0.3, 0.5)
    found = rng.random(rows) < 0.2 + 0.15 * (race == "white") + 0.1 * (hour > 20)
    frame = pd.DataFrame(
        {
            "stop_id": 100_000 + np.arange(rows),
            "hour": hour,
            "precinct": rng.integers(1, 30, rows),
            "subject_race": race,
            "subject_age": rng.integers(16, 70, rows),
            "reason": rng.choice(["suspicion", "traffic", "call"], rows),
            "searched": np.where(searched, "TRUE", "FALSE"),
            "contraband_found": np.where(searched, np.where(found, "TRUE", "FALSE"), "NA"),
            "arrest_made": np.where(searched & found, "TRUE", "FALSE"),
        }
    )
    frame.to_csv(path, index=False)
    return path
