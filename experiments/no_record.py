"""No record of testing: what found positives say of groups, where it holds and where it does not.

    python experiments/no_record.py run                    (200 and 15 repetitions, all cores)
    python experiments/no_record.py run --repetitions 4 --fits 1 --only "two groups" --jobs 2
    python experiments/no_record.py show

Worlds whose truth is known; the audit sees the found alone. `no_record.csv`: how often intervals
hold the truth, for the ratio of prevalences (by maximum likelihood, by flexible models, and of
found shares as they are) and for the ratio of rates of being found; the mean error of the logarithm
of the ratio; how often the check of the assumption raises an alarm; how often the range at a factor
of 2 holds the ratio, and the bounds of prevalence the prevalence, of every group.
`no_record_training.csv`: methods fitted to the found, on 20,000 new people: AUC for the truth, of
all and within groups, and AUC against the found within groups, which is all that a comparison sees.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from _record import CORES, command, means, record_means, show_tables

METHODS = ("purple", "purple:boost", "purple:network", "y-obs:linear", "y-obs:boost", "y-obs",
           "sar-em")  # fmt: skip


@dataclass(frozen=True)
class World:
    """How people become positive, and how positives become known."""

    name: str
    rates: tuple[float, ...] = (0.6, 0.25)  # of being found, by group
    shares: tuple[float, ...] = (0.6, 0.4)
    rows: int = 4_000
    intercept: float = -1.5
    visits: int = 1  # rows per person
    bent: float = 0.0  # of a risk that is not a line
    slope: float = 0.0  # by which a feature counts more in the second group
    shift: float = 0.0  # by which the second group is at higher risk at equal features
    by_feature: float = 0.0  # log of the factor by which being found varies with a feature
    where: str = "all"  # in which groups it does: "all" or "second"


WORLDS = (
    World("two groups"),
    World("two groups, 1,000 rows", rows=1_000),
    World("five unequal groups", (0.7, 0.5, 0.4, 0.3, 0.2), (0.4, 0.25, 0.2, 0.1, 0.05), 10_000),
    World("rare: 3 %", rows=12_000, intercept=-4.2),
    World("three rows per person", rows=4_500, visits=3),
    World("alike, and not logistic", bent=0.6),
    World("a feature counts more in one group", slope=1.0),
    World("a group at higher risk at equal features", shift=0.7),
    World("found by a feature, alike in all groups", by_feature=np.log(2.0)),
    World("found by a feature, in one group", by_feature=np.log(2.0), where="second"),
)
TRAINED = ("two groups", "alike, and not logistic", "a group at higher risk at equal features",
           "found by a feature, alike in all groups")  # fmt: skip


def draw(world: World, seed: int, rows: int = 0) -> tuple[np.ndarray, ...]:
    """Features [n, 4], group [n], found [n], truth [n] and person [n]."""
    rows = rows or world.rows
    rng = np.random.default_rng([seed, rows, len(world.name)])
    person = np.arange(rows) // world.visits
    n_people = int(person.max()) + 1
    group = rng.choice(len(world.rates), n_people, p=world.shares)
    own = rng.normal(size=(n_people, 4))  # what stays the same between visits
    own[:, 0] += 0.5 * group
    own[:, 3] += 1.2 * (group > 0)  # tells the group, and has nothing to do with the outcome
    X = own[person] + (0.5 * rng.normal(size=(rows, 4)) if world.visits > 1 else 0.0)
    group = group[person]
    second = group == 1
    z = world.intercept + X[:, 0] + (0.6 + world.slope * second) * X[:, 1] + world.shift * second
    z = z + world.bent * (X[:, 1] ** 2 - 1)
    luck = rng.random(n_people)[person] if world.visits > 1 else rng.random(rows)
    truth = luck < expit(z)
    rate = np.array(world.rates)[group]
    if world.by_feature:
        bears = np.ones(rows, bool) if world.where == "all" else second
        rate = rate * np.exp(world.by_feature * np.clip(X[:, 0] - 0.2, -1, 1) * bears)
    found = truth & (rng.random(rows) < np.minimum(rate, 1))
    return X, group, found, truth.astype(float), person


@cache
def prevalences(number: int) -> np.ndarray:
    """What is to be known, from a million people [groups]."""
    world = WORLDS[number]
    _, group, _, truth, _ = draw(world, 10**6, 999_999)
    return np.array([truth[group == code].mean() for code in range(len(world.rates))])


def problem_of(world: World, drawn: tuple[np.ndarray, ...]) -> Any:
    """The table as it is known."""
    from dcem.table.labels import SelectiveLabels

    X, group, found, _, person = drawn
    return SelectiveLabels.from_arrays(
        X,
        found * 1,
        group=group.astype(str),
        id=person if world.visits > 1 else None,
        reference_group="0",
        positives_only=True,
    )


def judged(number: int, seed: int) -> list[dict[str, Any]]:
    """The audit of one table: a row per group but the reference."""
    from dcem.audit.positives_only import audit_found

    warnings.simplefilter("ignore")
    world, known = WORLDS[number], prevalences(number)
    audit = audit_found(problem_of(world, draw(world, seed)), random_state=seed)
    assert audit.sensitivity is not None
    alarm = any(one.key == "groups-unlike" for one in audit.findings)
    bounded = [one.at_least <= known[int(one.group)] <= one.at_most for one in audit.groups]
    two = int(np.flatnonzero(audit.sensitivity.factor == 2)[0])
    rows = []
    for one in audit.groups:
        if not one.prevalence.estimable:
            continue
        code = int(one.group)
        ratio, rate = known[code] / known[0], world.rates[code] / world.rates[0]
        low, high = (
            ends[one.group][two] for ends in (audit.sensitivity.low, audit.sensitivity.high)
        )
        rows.append(
            {
                "world": world.name,
                "group": code,
                "ratio": ratio,
                "holds": one.prevalence.low <= ratio <= one.prevalence.high,
                "flexible_holds": one.without_form.low <= ratio <= one.without_form.high,
                "found_shares_hold": one.crude.low <= ratio <= one.crude.high,
                "rate_holds": one.rate.low <= rate <= one.rate.high,
                "error": np.log(one.prevalence.value / ratio),
                "flexible_error": np.log(one.without_form.value / ratio),
                "width": np.log(one.prevalence.high / one.prevalence.low),
                "alarm": alarm,
                "range_holds": low <= ratio <= high,
                "bounds_hold": np.mean(bounded),
            }
        )
    return rows


def trained(number: int, name: str, seed: int) -> list[dict[str, Any]]:
    """One method fitted to one table, scored on new people."""
    from dcem import methods
    from dcem.metrics import auc

    warnings.simplefilter("ignore")
    world = WORLDS[number]
    begin = time.perf_counter()
    model = methods.make(name, random_state=seed)
    model.fit_problem(problem_of(world, draw(world, seed)))
    seconds = time.perf_counter() - begin
    X, group, found, truth, _ = draw(world, seed + 10**7, 20_000)
    score = model.predict_proba(X)[:, 1]

    def within(y: np.ndarray) -> float:
        codes = range(len(world.rates))
        of = [float(auc(y[group == code], score[group == code])) for code in codes]
        return float(np.average(of, weights=[found[group == code].sum() for code in codes]))

    return [
        {
            "world": world.name,
            "method": name,
            "auc": float(auc(truth, score)),
            "auc_within": within(truth),
            "auc_found_within": within(found * 1.0),
            "seconds": seconds,
        }
    ]


def averaged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over repetitions and groups."""
    rows = [{name: value for name, value in row.items() if name != "group"} for row in rows]
    return means(rows, ("world", "method"), [world.name for world in WORLDS], "estimates")


def run(out: Path, repetitions: int, fits: int, jobs: int, only: str, seconds: float) -> None:
    worlds = [i for i, world in enumerate(WORLDS) if only in world.name]
    some = [i for i in worlds if WORLDS[i].name in TRAINED]
    training = [(trained, i, name, seed) for seed in range(fits) for i in some for name in METHODS]
    judging = [(judged, i, seed) for seed in range(repetitions) for i in worlds]
    tables = {"no_record_training": (training, 0.3), "no_record": (judging, 1.0)}
    record_means(tables, out, jobs, seconds, averaged)


if __name__ == "__main__":
    show = show_tables("no_record", "no_record_training")
    command(__doc__, run, show, repetitions=200, fits=15, jobs=CORES, only="", seconds=3600.0)
