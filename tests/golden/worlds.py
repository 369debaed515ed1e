"""Sixty simulated tables whose truth is known, and the findings that must and must not come.

A world is a table, the statements a user would make about it, and two sets of keys. `must` holds
what the truth puts there and these rows can show; `must_not` what would be a false alarm. Keys in
neither set may come or stay away. Level and groups of a finding are checked where a world names
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

GROUP_FOLLOWS = "features-determine-group"  # key of the finding


@dataclass(frozen=True)
class World:
    """A table, its roles, and what its audit must and must not find."""

    name: str
    table: Callable[[], pd.DataFrame]
    must: frozenset[str] = frozenset()
    must_not: frozenset[str] = frozenset()
    about: dict[str, str] = field(default_factory=dict)  # key -> group that the finding names
    roles: dict[str, Any] = field(default_factory=dict)
    levels: dict[str, str] = field(default_factory=dict)  # key -> level


def people(
    seed: int,
    n: int = 2000,
    groups: Sequence[str] = ("A", "B"),
    shares: Sequence[float] = (0.6, 0.4),
    base: float = -0.3,
    by_group: dict[str, float] | None = None,
    by_risk: float = 0.8,
    by_chance: float = 0.4,
    outcome: float = -0.8,
    outcome_by_group: dict[str, float] | None = None,
    signal: float = 1.0,
    visits: int = 1,
) -> pd.DataFrame:
    """Rows in which testing follows risk, a feature that is no risk, and the group.

    Parameters
    ----------
    by_group, outcome_by_group
        What a group adds to the log-odds of a test, and of the outcome.
    by_risk, by_chance
        How much the features that matter for the outcome, and one that does not, drive testing.
    visits
        Rows of each person: features, and much of what is tested, stay the same.
    """
    rng = np.random.default_rng(seed)
    n_people = n // visits
    group = rng.choice(groups, n_people, p=np.asarray(shares) / np.sum(shares))
    x = rng.normal(size=(n_people, 4))
    person = np.repeat(np.arange(n_people), visits)
    group, x = group[person], x[person]
    if visits > 1:
        x = x + 0.3 * rng.normal(size=x.shape)
    risk = signal * (0.9 * x[:, 0] + 0.6 * x[:, 1])
    testing = base + by_risk * x[:, 0] + by_chance * x[:, 2]
    testing = testing + pd.Series(group).map(by_group or {}).fillna(0).to_numpy()
    chance = outcome + risk + pd.Series(group).map(outcome_by_group or {}).fillna(0).to_numpy()
    truth = (rng.random(n) < expit(chance)).astype(float)
    tested = rng.random(n) < expit(testing)
    frame = pd.DataFrame(x, columns=["age", "lactate", "distance", "weight"]).round(4)
    frame["race"] = group
    if visits > 1:
        frame["patient"] = person
    frame["flu"] = np.where(tested, truth, np.nan)
    return frame.assign(truth_=truth, chance_=expit(testing), risk_=expit(chance))


def hidden_truth(frame: pd.DataFrame) -> pd.DataFrame:
    """The table as a user has it."""
    return frame.drop(columns=[name for name in frame if name.endswith("_")])


FIVE = ("A", "B", "C", "D", "E")
TWELVE = tuple("ABCDEFGHIJKL")


def fair(seed: int, **changes: Any) -> Callable[[], pd.DataFrame]:
    """A table in which nobody is treated differently at equal features, unless `changes` say so."""
    return lambda: people(seed, **changes)


def features_differ(seed: int, n: int = 2000) -> pd.DataFrame:
    """Group B is sicker, and is tested more for that reason alone."""
    frame = people(seed, n)
    rng = np.random.default_rng(1000 + seed)
    x = frame["age"] + 0.7 * (frame["race"] == "B")
    tested = rng.random(n) < expit(-0.5 + 0.8 * x)
    truth = rng.random(n) < expit(-0.9 + 0.9 * x + 0.6 * frame["lactate"])
    return frame.assign(age=x, flu=np.where(tested, truth, np.nan).astype(float), truth_=truth)


def by_risk_alone(seed: int, n: int = 2000) -> pd.DataFrame:
    """Only the features drive testing, through a sine and a product."""
    frame = people(seed, n)
    rng = np.random.default_rng(2000 + seed)
    testing = expit(np.sin(2 * frame["age"]) + 0.7 * frame["age"] * frame["lactate"] - 0.2)
    tested = rng.random(n) < testing
    return frame.assign(flu=np.where(tested, frame["truth_"], np.nan))


def feature_is_group(seed: int, kind: str, n: int = 2000) -> pd.DataFrame:
    """A feature says to which group a person belongs: as a code, a cut-off or a category."""
    frame = people(seed, n, by_group={"B": -1.0})
    rng = np.random.default_rng(3000 + seed)
    is_b = (frame["race"] == "B").to_numpy()
    columns = {
        "code": {"clinic": np.where(is_b, 7, 3) + 0},
        "cut-off": {"income": np.where(is_b, rng.uniform(0, 1, n), rng.uniform(1, 4, n)).round(3)},
        "category": {"language": np.where(is_b, rng.choice(["es", "pt"], n), "en")},
    }
    return frame.assign(**columns[kind])


def cut_off(seed: int, group_sees_it: bool = False, n: int = 2000) -> pd.DataFrame:
    """Nobody below a limit is tested."""
    frame = people(seed, n, by_group={"B": -0.8} if group_sees_it else None)
    return frame.assign(flu=frame["flu"].where(frame["age"] > 0.3))


def wrong_results(
    seed: int, sensitivity: dict[str, float], specificity: float = 1.0, **changes: Any
) -> pd.DataFrame:
    """The test misses some of the ill, perhaps more of them in one group."""
    frame = people(seed, **changes)
    rng = np.random.default_rng(4000 + seed)
    finds = frame["race"].map(sensitivity).to_numpy()
    chance = np.where(frame["truth_"] == 1, finds, 1 - specificity)
    result = (rng.random(len(frame)) < chance).astype(float)
    return frame.assign(flu=np.where(frame["flu"].notna(), result, np.nan))


def unseen_cause(seed: int, n: int = 3000, strength: float = 2.0) -> pd.DataFrame:
    """A cause that nobody recorded makes people both ill and tested."""
    frame = people(seed, n)
    rng = np.random.default_rng(5000 + seed)
    cause = rng.normal(size=n)
    tested = rng.random(n) < expit(-0.4 + 0.6 * frame["age"] + strength * cause)
    truth = rng.random(n) < expit(-1.2 + 0.9 * frame["age"] + strength * cause)
    labels = np.where(tested, truth, np.nan).astype(float)
    return frame.assign(flu=labels, truth_=truth.astype(float))


def decided(seed: int, *, strictness: float, mix: float = 0.0, n: int = 3000) -> pd.DataFrame:
    """Six clinics: how differently they test, and how differently ill their patients are."""
    frame = people(seed, n)
    rng = np.random.default_rng(6000 + seed)
    clinic = rng.integers(6, size=n)
    offset = np.linspace(-1, 1, 6)
    tested = rng.random(n) < expit(-0.2 + 0.7 * frame["age"] + strictness * offset[clinic])
    chance = -0.8 + 0.9 * frame["age"] + mix * offset[(clinic * 5) % 6]
    truth = rng.random(n) < expit(chance)
    labels = np.where(tested, truth, np.nan).astype(float)
    return frame.assign(flu=labels, clinic=np.array(list("uvwxyz"))[clinic])


def leaking(seed: int, kind: str, n: int = 2000) -> pd.DataFrame:
    """A column that is recorded after the decision, and because of it."""
    frame = people(seed, n)
    rng = np.random.default_rng(7000 + seed)
    tested, positive = frame["flu"].notna().to_numpy(), (frame["flu"] == 1).to_numpy()
    columns = {
        "ordered": {"swab_ordered": tested.astype(int)},
        "minutes": {"minutes_to_result": np.where(tested, rng.gamma(3, 20, n), np.nan).round(1)},
        "treated": {"antiviral": (positive & (rng.random(n) < 0.97)).astype(int)},
        "copy": {"code": np.where(tested, positive, 0).astype(int)},
    }
    return frame.assign(**columns[kind])


def over_time(seed: int, *, testing: float = 0.0, outcome: float = 0.0, n: int = 4000) -> Any:
    """Two years, in the second of which testing or the outcome changed."""
    frame = people(seed, n)
    rng = np.random.default_rng(8000 + seed)
    day = np.sort(rng.integers(0, 730, n))
    late = day >= 365
    tested = rng.random(n) < expit(-0.2 + 0.7 * frame["age"] + testing * late)
    truth = rng.random(n) < expit(-0.8 + 0.9 * frame["age"] + outcome * late)
    labels = np.where(tested, truth, np.nan).astype(float)
    return frame.assign(flu=labels, day=day)


def _worlds() -> list[World]:
    def world(name: str, table: Any, must: str = "", must_not: str = "", **rest: Any) -> World:
        return World(name, table, frozenset(must.split()), frozenset(must_not.split()), **rest)

    alike = "tested-less tested-more higher-bar lower-bar leak"
    made = [
        # nobody is treated differently
        *(world(f"fair-{i}", fair(i), "tested-alike", alike) for i in range(1, 7)),
        *(
            world(f"fair-five-{i}", fair(i, groups=FIVE, shares=(5, 2, 1, 1, 1)), "", alike)
            for i in (10, 12)
        ),
        world("fair-twelve", fair(13, n=3000, groups=TWELVE, shares=[1] * 12), "", alike),
        *(
            world(
                f"fair-visits-{i}",
                fair(i, n=2400, visits=4),
                "",
                alike,
                roles={"id": "patient"},
            )
            for i in (14, 15)
        ),
        world("fair-few-tests", fair(16, n=1500, base=-3.6), "few-tests", alike),
        *(world(f"sicker-{i}", lambda i=i: features_differ(i), "", alike) for i in (17, 18)),
        *(world(f"wavy-{i}", lambda i=i: by_risk_alone(i), "", alike) for i in (19, 20)),
        # somebody is tested less, or more
        *(
            world(
                f"less-{i}",
                fair(i, by_group={"B": -1.0}),
                "tested-less",
                "tested-more tested-alike leak",
                about={"tested-less": "B"},
            )
            for i in (21, 22, 23)
        ),
        world(
            "less-of-five",
            fair(24, n=2500, groups=FIVE, shares=[1] * 5, by_group={"C": -1.3}),
            "tested-less",
            "tested-more tested-alike",
            about={"tested-less": "C"},
        ),
        world(
            "less-of-twelve",
            fair(25, n=4000, groups=TWELVE, shares=[1] * 12, by_group={"K": -1.8}),
            "tested-less",
            "tested-more tested-alike",
            about={"tested-less": "K"},
        ),
        world(
            "less-visits",
            fair(26, n=3200, visits=4, by_group={"B": -1.2}),
            "tested-less",
            "tested-more tested-alike",
            about={"tested-less": "B"},
            roles={"id": "patient"},
        ),
        *(
            world(
                f"more-{i}",
                fair(i, by_group={"B": 1.0}, shares=(0.7, 0.3)),
                "",
                "tested-alike leak",
            )
            for i in (27, 28)
        ),
        world(
            "more-of-five",
            fair(29, n=2500, groups=FIVE, shares=[1] * 5, by_group={"D": 1.3}),
            "tested-more",
            "tested-less tested-alike",
            about={"tested-more": "D"},
        ),
        # those at low risk come first
        *(
            world(
                f"low-risk-first-{i}",
                fair(i, by_risk=-1.2, base=0.2),
                "safer-tested",
                "tested-less tested-more higher-bar leak",
            )
            for i in (31, 32, 33)
        ),
        *(
            world(f"high-risk-first-{i}", fair(i, by_risk=1.2), "", "safer-tested " + alike)
            for i in (34, 35)
        ),
        # the outcome depends on the group
        *(
            world(
                f"outcome-by-group-{i}",
                fair(i, n=3000, outcome_by_group={"B": 1.4}),
                "depends-on-group",
                "tested-less tested-more leak",
            )
            for i in (36, 37, 38)
        ),
        *(
            world(
                f"outcome-alike-{i}",
                fair(i, n=3000),
                "no-dependence-seen",
                "depends-on-group " + alike,
            )
            for i in (39, 42)
        ),
        # features determine the group
        *(
            world(
                f"group-follows-{kind}",
                lambda kind=kind: feature_is_group(41, kind),
                GROUP_FOLLOWS,
                "tested-less tested-more tested-alike",
            )
            for kind in ("code", "cut-off", "category")
        ),
        # no overlap
        *(
            world(
                f"cut-off-{i}",
                lambda i=i: cut_off(i),
                "overlap",
                "tested-less tested-more",
                levels={"overlap": "serious"},
            )
            for i in (44, 45)
        ),
        # groups of twenty
        world(
            "groups-of-twenty",
            fair(46, n=1500, groups=("A", "B", "C", "D"), shares=(1440, 20, 20, 20)),
            "",
            alike,
        ),
        world(
            "group-of-six",
            fair(47, n=1500, groups=("A", "B", "C"), shares=(1000, 494, 6)),
            "",
            alike,
        ),
        # the test errs
        world(
            "test-errs-stated",
            lambda: wrong_results(48, {"A": 0.7, "B": 0.7}),
            "test-errs",
            alike,
            roles={"test_sensitivity": 0.7},
        ),
        world(
            "test-misses-in-B",
            lambda: wrong_results(49, {"A": 0.95, "B": 0.5}, n=3000),
            "",
            alike.replace("lower-bar", ""),
        ),
        world(
            "test-errs-by-group",
            lambda: wrong_results(50, {"A": 0.9, "B": 0.6}, n=3000, by_group={"B": -1.0}),
            "test-errs tested-less",
            "tested-more",
            about={"tested-less": "B"},
            roles={"test_sensitivity": {"A": 0.9, "B": 0.6}},
        ),
        # a stated prevalence
        *(
            world(
                f"prevalence-agrees-{i}",
                fair(i, n=3000),
                "",
                "known-rate-disagrees " + alike,
                roles={"prevalence": "true"},
            )
            for i in (51, 52)
        ),
        *(
            world(
                f"prevalence-disagrees-{i}",
                lambda i=i: unseen_cause(i),
                "known-rate-disagrees",
                "known-rate-agrees",
                roles={"prevalence": "true"},
            )
            for i in (53, 54)
        ),
        # deciders
        world(
            "deciders-alike",
            lambda: decided(55, strictness=0.0),
            "deciders-alike",
            "deciders-differ deciders-mix deciders-refuted " + alike,
            roles={"decider": "clinic"},
        ),
        *(
            world(
                f"deciders-differ-{i}",
                lambda i=i: decided(i, strictness=1.0),
                "deciders-differ",
                "deciders-alike deciders-refuted " + alike,
                roles={"decider": "clinic"},
            )
            for i in (56, 57)
        ),
        world(
            "deciders-get-different-people",
            lambda: decided(58, strictness=1.0, mix=1.5),
            "deciders-differ",
            "deciders-alike " + alike,
            roles={"decider": "clinic"},
        ),
        # recorded afterwards
        *(
            world(f"leak-{kind}", lambda kind=kind: leaking(59, kind), "leak", "")
            for kind in ("ordered", "minutes", "treated", "copy")
        ),
        # time
        world(
            "time-nothing-changed",
            lambda: over_time(63),
            "",
            "testing-changed outcome-changed late-results " + alike,
            roles={"time": "day"},
        ),
        world(
            "time-testing-changed",
            lambda: over_time(64, testing=1.5),
            "testing-changed",
            alike,
            roles={"time": "day"},
        ),
        world(
            "time-outcome-changed",
            lambda: over_time(65, outcome=1.5),
            "outcome-changed",
            alike,
            roles={"time": "day"},
        ),
    ]
    assert len({one.name for one in made}) == len(made)
    return made


WORLDS = _worlds()


@dataclass(frozen=True)
class Drift:
    """What changed since a model was fitted, and what monitoring must and must not find."""

    name: str
    changes: dict[str, Any]
    must: frozenset[str] = frozenset()
    must_not: frozenset[str] = frozenset()


BEFORE: dict[str, Any] = {"n": 2500, "base": 0.2}
NO_ALARM = frozenset({"refit", "recalibrate"})
UNCHANGED = NO_ALARM | {"who-is-tested", "what-is-found"}
DRIFTS = [
    Drift("nothing-changed", {}, must_not=UNCHANGED),
    Drift("nothing-changed-again", {"n": 2400}, must_not=UNCHANGED),
    Drift("fewer-tests", {"base": -0.6}, frozenset({"who-is-tested"}), NO_ALARM),
    Drift("more-common", {"outcome": 0.6}, frozenset({"what-is-found"}), frozenset({"refit"})),
    Drift("no-signal", {"signal": 0.1}, frozenset({"refit"})),
    Drift("turned", {"signal": -1.0}, frozenset({"refit"})),
]
