"""Tables whose truth is known: who is tested, why, and what everybody's outcome is."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit

from dcem.audit import audit_labels
from dcem.table.labels import SelectiveLabels


class World(NamedTuple):
    problem: SelectiveLabels
    truth: np.ndarray  # [n] everybody's outcome
    testing: np.ndarray  # [n] the true probability of being tested
    risk: np.ndarray  # [n] the true P(y | x)


def make_world(
    n: int = 6000,
    *,
    seed: int = 0,
    disparity: float = 0.0,
    group_effect: float = 0.0,
    gamma: float = 1.0,
    base: float = -0.8,
    rows_a_person: int = 1,
) -> World:
    """Two features drive risk and testing; group b is shifted in the first one.

    `disparity`: log odds by which group b is tested more at equal features; `group_effect`: log
    odds of the outcome in b at equal features; `gamma`: odds of the outcome of untested people over
    those of tested ones with the same features.
    """
    rng = np.random.default_rng(seed)
    people = -(-n // rows_a_person)
    group = rng.choice(3, people, p=[0.5, 0.3, 0.2]).repeat(rows_a_person)[:n]
    own = rng.normal(size=people).repeat(rows_a_person)[:n]
    x = np.stack([own + 0.7 * (group == 1), rng.normal(size=n)], axis=1)
    testing = expit(base + 0.6 * x[:, 0] + disparity * (group == 1))
    tested = rng.random(n) < testing
    logit = -0.7 + 0.8 * x[:, 0] - 0.5 * x[:, 1] + group_effect * (group == 1)
    risk = expit(logit + np.where(tested, 0.0, np.log(gamma)))
    truth = (rng.random(n) < risk).astype(int)
    problem = SelectiveLabels.from_arrays(
        x,
        np.where(tested, truth, np.nan),
        group=np.array(["a", "b", "c"])[group],
        id=np.arange(n) // rows_a_person if rows_a_person > 1 else None,
        feature_names=["pain", "age"],
    )
    return World(problem, truth, testing, expit(logit))


@pytest.fixture(scope="session")
def fair() -> World:
    return make_world(seed=1)


@pytest.fixture(scope="session")
def unfair() -> World:
    return make_world(seed=2, disparity=-1.0)


@pytest.fixture(scope="session")
def fair_audit(fair):
    return audit_labels(fair.problem)


@pytest.fixture(scope="session")
def unfair_audit(unfair):
    return audit_labels(unfair.problem)
