"""Simulated patients for the demo: who has an infection, and whom a doctor tests for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit, logit

SHARE_B, FEVER_B = 0.4, 0.2  # group B: share of the patients, and how much warmer they are
FEVER, SPREAD = 37.3, 0.8
LESS_TESTED = -0.9  # log-odds of a test in group B, against group A with the same symptoms


@dataclass(frozen=True, eq=False)
class Patients:
    """Simulated patients.

    Attributes
    ----------
    frame
        What a hospital records: symptoms, `group`, and `infection`, empty where nobody tested.
    infected
        The truth of everybody [n].
    difference
        True difference in testing between group B and group A with the same symptoms, averaged as
        an audit does: over the patients that both groups have (overlap weights).
    """

    frame: pd.DataFrame
    infected: np.ndarray
    difference: float


def simulate_patients(n: int, random_state: int) -> Patients:
    """Draw `n` patients. Fever and cough lead to a test; age and low oxygen matter as much.

    Infections are most common among the very young and the very old, and fever shows them in
    people under 70 alone: no straight line tells who is infected.
    """
    rng = np.random.default_rng(random_state)
    in_b = rng.random(n) < SHARE_B
    age = rng.integers(1, 95, n)
    fever = rng.normal(FEVER + FEVER_B * in_b, SPREAD).round(1) - FEVER
    cough = rng.random(n) < 0.4
    oxygen = np.minimum(rng.normal(95.5 - 0.03 * (age - 55), 2), 100).round()
    pulse = rng.normal(88 + 5 * fever, 14).round().astype(int)
    risk = -2.9 + 1.2 * ((age - 45) / 27) ** 2 + 0.5 * fever * (age < 70)
    risk += 0.4 * cough - 0.25 * (oxygen - 95)
    asked = -0.3 + 1.4 * fever + 0.9 * cough - 0.02 * (age - 50)
    infected = rng.random(n) < expit(risk)
    tested = rng.random(n) < expit(asked + LESS_TESTED * in_b)
    belongs = expit(logit(SHARE_B) + FEVER_B * (2 * fever - FEVER_B) / (2 * SPREAD**2))
    frame = pd.DataFrame(
        {
            "age": age,
            "temperature": (FEVER + fever).round(1),
            "cough": np.where(cough, "yes", "no"),
            "oxygen": oxygen.astype(int),
            "pulse": pulse,
            "group": np.where(in_b, "B", "A"),
            "infection": np.where(tested, np.where(infected, "yes", "no"), ""),
        }
    )
    less = expit(asked + LESS_TESTED) - expit(asked)
    return Patients(frame, infected, float(np.average(less, weights=belongs * (1 - belongs))))
