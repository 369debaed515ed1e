"""The difference in testing at equal features, on a whole population: no sampling, no fitting."""

import numpy as np
import pytest
from scipy.special import expit

from dcem.audit.testing import equal_features
from dcem.estimation.influence import People


def population(gap):
    """Every x, group and decision as one row, weighted by how common it is; and its two models."""
    x = np.linspace(-2, 2, 401)
    member = expit(x)
    others = 0.25 + 0.7 * expit(0.2 + 0.8 * x)
    own = others + gap(x)
    cells = [(a, t) for a in (False, True) for t in (False, True)]
    weight = np.concatenate(
        [np.where(a, member, 1 - member) * abs((own if a else others) - (not t)) for a, t in cells]
    )
    mine, tested = (np.repeat([cell[k] for cell in cells], len(x)) for k in (0, 1))
    people = People(1000 * weight, None, len(weight))
    testing = member * own + (1 - member) * others
    return people, mine, tested, np.tile(testing, 4), np.tile(member, 4)


def difference(people, mine, tested, testing, member) -> float:
    here, there = equal_features(people, mine, tested, testing, member)
    return (here - there).value


def test_right_models_give_the_overlap_weighted_difference() -> None:
    people, mine, tested, testing, member = population(lambda x: -0.1 - 0.05 * x)
    found = difference(people, mine, tested, testing, member)
    x, h = np.linspace(-2, 2, 401), (member * (1 - member))[:401]
    assert found == pytest.approx(np.average(-0.1 - 0.05 * x, weights=h))


def test_errors_of_the_group_model_enter_squared() -> None:
    """Twice the error, four times the bias; a tenth of a point at an error of two points."""
    people, mine, tested, testing, member = population(lambda x: np.full_like(x, -0.2))
    bias = {
        off: difference(people, mine, tested, testing, member + off) + 0.2 for off in (0.02, 0.04)
    }
    assert 0 < bias[0.02] < 0.001
    assert bias[0.04] / bias[0.02] == pytest.approx(4, rel=0.05)


def test_a_wrong_model_of_testing_does_no_harm_beside_a_right_one_of_the_group() -> None:
    people, mine, tested, testing, member = population(lambda x: np.full_like(x, -0.2))
    assert difference(people, mine, tested, 0 * testing + 0.3, member) == pytest.approx(-0.2)


@pytest.mark.parametrize("visits", [1, 8])
def test_none_tested_of_a_few_people_is_not_beyond_chance(visits) -> None:
    """Two of forty were expected: none happens in every eighth table. Of 400 it never does.

    Visits of people who are tested at each of them, or never, are no more people.
    """
    for size, beyond in ((40, False), (400, True)):
        rng = np.random.default_rng(0)
        testing = expit(rng.normal(-3, 0.5, 50 * size))
        mine = np.arange(50 * size) < size
        tested = (rng.random(50 * size) < testing) & ~mine
        person = np.repeat(np.arange(50 * size), visits)
        people = People(np.ones(len(person)), person, 50 * size)
        rows = mine[person], tested[person], testing[person], np.full(len(person), 0.02)
        here, there = equal_features(people, *rows)
        assert people.interval(here - there).excludes(0) == beyond
