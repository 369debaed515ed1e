"""Hide labels of a fully labelled table on purpose, the way a testing policy would have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dcem.table import checks
from dcem.table.frames import check_aligned
from dcem.table.groups import check_groups
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError
from dcem.tasks.policy import LinearPolicy
from dcem.tasks.task import Task, seed_from


def make_censored(
    X: Any,
    y: Any,
    group: Any = None,
    policy: LinearPolicy | None = None,
    *,
    id: Any = None,
    weight: Any = None,
    shares: Sequence[float] = (0.6, 0.2, 0.2),
    random_state: int | np.random.Generator | None = None,
    feature_names: Sequence[str] | None = None,
    group_names: Sequence[str] | None = None,
) -> Task:
    """Turn a fully labelled table into a selectively labelled task with known truth.

    This is how to try methods on your own data: take a table whose labels are complete, let a
    policy of your choice decide whose label would have been collected, and see which method
    recovers the rest. The paper does so for sepsis. What it shows holds for the policies that were
    tried; a real one may depend on things the table does not record.

    Everything the policy needs is estimated on training rows alone: prevalence, group shares,
    centres and scales of its columns, and the thresholds, which meet the wanted rates in
    expectation over those rows.

    Parameters
    ----------
    X
        Features [n, d], an array or a frame; missing values are kept.
    y
        The complete truth [n], 0 or 1.
    group
        One value per row, or several columns to cross; None for a single group.
    policy
        Who is tested; see `LinearPolicy`. With two groups, q_t is the rate of the first
        level over that of the second.
    id
        The person behind each row; a person's rows stay in one split.
    weight
        How much each row counts.
    shares
        Of rows in train, validation and test.
    random_state
        Seed, or generator to take one from. The split and the luck of the draw depend on it alone,
        so tasks with other policies and the same seed are paired.
    feature_names
        If `X` has no column names of its own ("x0", "x1", ... by default).
    group_names
        The levels of `group` in order; q_t refers to it.

    Returns
    -------
    Task
        `task.process` is the `CalibratedPolicy`. The `row` of each split says where a row stood in
        the given table.
    """
    if not isinstance(policy, LinearPolicy):
        raise InputError(
            "make_censored needs a policy that decides who is tested, for example "
            "LinearPolicy({'age': 1.0}, slope=5, k=1, q_t=2)."
        )
    if len(shares) != 3:
        raise InputError(f"Give three shares, for train, validation and test; got {tuple(shares)}.")
    labels = check_aligned({"X": X, "y": y, "group": group, "id": id, "weight": weight})
    table, names = checks.check_features(X, feature_names, labels=labels)
    levels: tuple[str, ...] = ("all",)
    codes = np.zeros(len(table), np.int64)
    if group is not None:
        codes, levels = check_groups(group, "group", labels=labels, levels=group_names)
    full = SelectiveLabels(  # the truth, before anything is hidden
        X=table,
        y_obs=checks.check_binary(y, "y", labels=labels),
        tested=np.ones(len(table), bool),
        group=codes,
        id=None if id is None else checks.check_id(id, "id", labels=labels),
        weight=None if weight is None else checks.check_weight(weight, "weight", labels=labels),
        feature_names=names,
        group_names=levels,
        row=np.arange(len(table)),
    )
    policy.columns_in(full.X, full.feature_names)  # here an error can name rows of the given table
    truth = full.y_obs.astype(np.int64)
    seed = seed_from(random_state)
    for_split, for_testing = np.random.default_rng(seed).spawn(2)
    parts = full.split(shares, for_split)

    fit = parts[0]
    process = policy.calibrate(
        fit.X,
        truth[fit.row],
        fit.group,
        feature_names=full.feature_names,
        group_names=full.group_names,
        weight=fit.weight,
    )
    luck = for_testing.random(len(full))  # one number per row, whatever the policy
    tested = luck < process.testing_probability(full.X, full.group)
    y_obs = np.where(tested, truth, np.nan)
    parts = tuple(replace(p, tested=tested[p.row], y_obs=y_obs[p.row]) for p in parts)
    train = parts[0]
    checks.check_learnable(train.y_obs, train.tested, "y", "tested")
    checks.warn_limits(train.X, train.tested, train.group, train.feature_names, train.group_names)
    given = {"policy": policy.as_dict(), "shares": tuple(float(share) for share in shares)}
    return Task.of(parts, truth, "censored", given | {"random_state": seed}, process)
