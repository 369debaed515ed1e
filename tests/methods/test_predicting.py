"""Scores for a whole fleet are those of its estimators, one by one."""

import numpy as np
import pytest

from dcem.methods import fit_many, make
from dcem.methods.fleets import score_many
from dcem.tasks import make_sinusoid

SMALL = {"steps": 5, "hidden": (8,)}


def tasks(*lengths):
    return [
        make_sinusoid(
            phase=0.5 * i, stream="independent", random_state=i,
            n_train=100, n_validation=80, n_test=n,
        )
        for i, n in enumerate(lengths)
    ]  # fmt: skip


@pytest.mark.parametrize("lengths", [(60, 60, 60), (60, 40, 60)])
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("y-obs", {}),
        ("tested-only", {"n_members": 2}),
        ("tested-only-plus-group", {}),
        ("dr-learner", {}),
        ("dividemix", {"warm_up": 2}),
        ("dragonnet", {"variant": "published"}),
    ],
)
def test_a_fleet_of_scores_is_one_by_one(name, more, lengths):
    made = tasks(*lengths)
    fitted = fit_many(
        make(name, **SMALL | more),
        [task.train for task in made],
        validations=[task.validation for task in made],
        random_states=[1, 2, 3],
    )
    found = score_many(fitted, [task.test for task in made])
    for one, task, score in zip(fitted, made, found, strict=True):
        group = {}
        if one.needs_group:
            group = {"sensitive_features": np.asarray(task.test.group_names)[task.test.group]}
        np.testing.assert_allclose(
            score, one.predict_proba(task.test, **group)[:, 1], rtol=0, atol=1e-12
        )
    assert not np.allclose(found[0], found[2])
