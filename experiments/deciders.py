"""Deciders: do bounds hold, are deciders told apart rightly, what does training gain?

    python experiments/deciders.py run                   (200 and 12 repetitions, all cores)
    python experiments/deciders.py run --repetitions 4 --fits 1 --only "see more" --jobs 2
    python experiments/deciders.py show

Worlds whose truth is known. Deciders see a cause of the outcome that the table lacks and test whom
they think at risk, some many and some few people. `deciders.csv`: for each world how often the
truth lies between the outer limits of the bounds (prevalence of everybody and of a small group,
AUC, gain in AUC, true positive rate and precision of fixed scores), how often intervals hold it
(spread of deciders; with three deciders also either end of the prevalence, and contraction), how
often the doubly robust interval does, how wide the bounds are, and how often each check raises an
alarm. `deciders_training.csv`: methods fitted to such tables, on 20,000 new people.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from _record import CORES, command, finished, means, record_means, scores_beside, show_tables

FEW = (-2.0, 0.0, 2.5)  # how much three deciders test, in log-odds
METHODS = (
    "instrument",
    "instrument:linear",
    "instrument:boost",
    "instrument partial",
    "tested-only:forest",
    "tested-only:linear",
    "ipw:linear",
    "dr-learner:linear",
    "y-obs:linear",
    "ensemble",
)


@dataclass(frozen=True)
class World:
    """How people come to deciders, and what these go by."""

    name: str
    deciders: int = 20  # three test as `FEW` says; more, as chance draws them
    rows: int = 4_000
    spread: float = 1.5  # standard deviation of how much they test, in log-odds
    seen: float = 1.0  # how much the unrecorded cause weighs in their decision
    by_feature: float = 0.0  # how much a feature says who decides
    common: float = -1.2  # log-odds of the outcome
    sick: float = 0.0  # by how much every other decider gets people of higher risk
    sick_more: float = 0.0  # by how much log-odds rise with how much a decider tests
    turned: float = 0.0  # by how much every other decider prefers one group, the rest the other
    part: bool = False  # whether the unrecorded cause counts for half of the people only


WORLDS = (
    World("see more"),
    World("see more, 1,500 people", rows=1_500),
    World("see more, 8,000 people", rows=8_000),
    World("see more, 100 deciders", deciders=100),
    World("see more, little spread", spread=0.4),
    World("see more, three deciders", deciders=3),
    World("see more, rare", common=-4.2, rows=8_000),
    World("see more in some people", part=True, seen=2.0),
    World("features explain testing", seen=0.0),
    World("people by features", by_feature=1.0),
    World("alike", spread=0.0),
    World("sicker people to some", sick=1.5),
    World("sicker people to those who test more", sick_more=0.6),
    World("preferences turned", turned=1.5),
)
TRAINED = (
    "see more in some people",
    "features explain testing",
    "sicker people to those who test more",
)


@dataclass(frozen=True)
class Drawn:
    """A table with its truth; arrays [n]."""

    X: np.ndarray  # [n, 3]
    group: np.ndarray  # 0, or 1 for one person in eight
    who: np.ndarray
    tested: np.ndarray
    y: np.ndarray
    risk: np.ndarray  # P(y = 1 | X)


def draw(world: World, seed: int, rows: int | None = None) -> Drawn:
    """People, their deciders, and what these did."""
    rng = np.random.default_rng([seed, len(world.name), world.deciders])
    n = rows or world.rows
    lenient = np.array(FEW) if world.deciders == 3 else rng.normal(0, world.spread, world.deciders)
    odd = np.arange(world.deciders) % 2
    X, seen = rng.normal(size=(n, 3)), rng.normal(size=n)
    group = (rng.random(n) < expit(-2.2 + X[:, 2])).astype(int)
    # Who decides: more of the even or of the odd deciders, by the last feature.
    side = rng.random(n) < expit(world.by_feature * X[:, 2])
    half = [np.flatnonzero(odd == one) for one in (0, 1)]
    who = np.where(side, rng.choice(half[1], n), rng.choice(half[0], n))
    if not world.by_feature:
        who = rng.integers(world.deciders, size=n)
    base = world.common + X[:, 0] + 0.6 * X[:, 1] + world.sick * odd[who]
    base += world.sick_more * lenient[who]
    y = (rng.random(n) < expit(base + 1.2 * seen)).astype(float)
    heeded = world.seen * seen * ((X[:, 1] < 0) if world.part else 1)
    push = world.turned * np.where(odd[who] == group, 1, -1)
    tests = 0.6 * X[:, 0] - 0.4 * X[:, 2] + heeded + push + lenient[who] + rng.logistic(size=n)
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    risk = expit(base[:, None] + 1.2 * nodes) @ weights / weights.sum()
    return Drawn(X, group, who, tests > 0.3, y, risk)


def scores_of(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two fixed scores; the first is the better one."""
    return X[:, 0] + 0.6 * X[:, 1], X[:, 0] - 0.2 * X[:, 2]


def truths(number: int) -> list[dict[str, Any]]:
    """What the numbers are in truth, from 400,000 people."""
    from dcem.metrics import auc

    world = WORLDS[number]
    many = [draw(world, 10**6 + i, 20_000) for i in range(20)]
    X, group, y = (np.concatenate([getattr(one, k) for one in many]) for k in ("X", "group", "y"))
    score, other = scores_of(X)
    acted = score > 1
    found = {
        "prevalence": y.mean(),
        "group": y[group == 1].mean(),
        "auc": auc(y, score),
        "gain": auc(y, score) - auc(y, other),
        "reached": y[acted].sum() / y.sum(),
        "precision": y[acted].mean(),
    }
    told = {name: float(value) for name, value in found.items()}
    return [{"world": number} | told | _of_deciders(world)]


def _of_deciders(world: World) -> dict[str, float]:
    """Standard deviation of how much deciders test; with three of them, what they find."""
    fewest = 3 if world.deciders == 3 else 40
    rates, found, cleared, contracted = [], [], [], []
    for i in range(fewest):
        rng = np.random.default_rng([i, 77])
        n = 100_000 if world.deciders == 3 else 40_000
        one = draw(world, 10**6, n)
        at = FEW[i] if world.deciders == 3 else world.spread * norm.ppf((i + 0.5) / fewest)
        seen, again = rng.normal(size=n), rng.random(n)
        base = world.common + one.X[:, 0] + 0.6 * one.X[:, 1]
        y = again < expit(base + 1.2 * seen)
        heeded = world.seen * seen * ((one.X[:, 1] < 0) if world.part else 1)
        tests = 0.6 * one.X[:, 0] - 0.4 * one.X[:, 2] + heeded + at + rng.logistic(size=n) > 0.3
        rates.append(tests.mean())
        found.append((y & tests).mean())
        cleared.append((~y & tests).mean())
        if world.deciders == 3 and i == 2:
            score = scores_of(one.X)[0]
            kept = tests & (score >= np.quantile(score[tests], 1 - rates[1] / rates[2]))
            contracted.append((y & kept).mean())
    if world.deciders != 3:
        return {"spread": float(np.std(rates)) if world.spread else 0.0}
    return {"low": max(found), "high": 1 - max(cleared), "contraction": contracted[0]}


def smooth(n_classes: int, seed: int) -> dict[str, Any]:
    """Kinds of models, without boosted trees: the worlds are smooth, and trees take most time."""
    from dcem.estimation.nuisance_learners import candidate_models

    made = candidate_models(n_classes, seed)
    return {name: made[name] for name in ("logistic regression", "splines")}


def judged(number: int, seed: int, known: dict[str, float]) -> list[dict[str, Any]]:
    """One table of a world: which bounds and intervals hold the truth, which checks alarm."""
    from dcem.estimation import by_decider
    from dcem.estimation import instrument as iv
    from dcem.estimation.by_decider import check_exclusion, check_monotonicity, contraction
    from dcem.estimation.deciders import compare_deciders
    from dcem.estimation.evaluator import Evaluator
    from dcem.estimation.folds import person_folds
    from dcem.estimation.influence import People
    from dcem.estimation.nuisances import fit_nuisances

    warnings.simplefilter("ignore")
    world, one = WORLDS[number], draw(WORLDS[number], seed)
    problem = _problem(one)
    fold = person_folds(problem, 3, seed)
    fitted = fit_nuisances(problem, fold, seed, learners=smooth)
    judge = Evaluator(problem, fold=fold, nuisances=fitted)
    people, models = People.of(problem), judge.nuisances
    found = compare_deciders(problem, people, models.testing, models.outcome)
    made = iv.fit_instrument(problem, fold, models.testing, seed, learners=smooth)
    assert not isinstance(found, str)
    assert made is not None
    score, other = scores_of(one.X)
    everybody, few = np.ones(len(problem), bool), one.group == 1
    bounds = {
        "prevalence": by_decider.prevalence_bounds(made, people, everybody),
        "group": by_decider.prevalence_bounds(made, people, few),
        "auc": by_decider.auc_bounds(made, people, score),
        "gain": by_decider.gain_bounds(made, people, score, other),
    }
    acting = by_decider.acting_bounds(made, people, score > 1)
    bounds |= {"reached": acting["true_positive_rate"], "precision": acting["precision"]}
    row: dict[str, Any] = {"world": world.name, "rows": world.rows}
    for name, both in bounds.items():
        row[f"{name}_holds"] = both.low.low <= known[name] <= both.high.high
        row[f"{name}_width"] = both.width
    robust = judge.prevalence("dr")
    row["dr_holds"] = robust.low <= known["prevalence"] <= robust.high
    row["dr_error"] = robust.value - known["prevalence"]
    row["manski_width"] = 1 - problem.tested.mean()
    if "spread" in known:
        spread = found.testing.deviation
        row["spread_holds"] = spread.low <= known["spread"] <= spread.high
        row["spread_error"] = spread.value - known["spread"]
    else:
        both = bounds["prevalence"]
        for name, end in (("low", both.low), ("high", both.high)):
            row[f"{name}_holds"] = end.low <= known[name] <= end.high
        kept = contraction(made, people, score)[-1].score
        row["contraction_holds"] = kept.low <= known["contraction"] <= kept.high
    crossed = check_exclusion(made, people, {"everybody": everybody})["everybody"].p_value
    falls = check_monotonicity(made, people)
    row["alarm_spread"] = found.testing.p_value < 0.05
    row["alarm_mix"] = found.mix.p_value < 0.05
    row["alarm_equal_rates"] = found.at_equal_rates.p_value < 0.05
    row["alarm_order"] = min((o.p_value for o in found.order.values()), default=1.0) < 0.05
    row["alarm_exclusion"] = crossed < 0.05
    row["alarm_monotone"] = min(one.p_value for one in falls.values()) < 0.05
    return [row]


def trained(number: int, name: str, seed: int) -> list[dict[str, Any]]:
    """One method fitted to one table, scored on new people."""
    from dcem import methods

    warnings.simplefilter("ignore")
    world, begin = WORLDS[number], time.perf_counter()
    plain = name.removesuffix(" partial")
    model = methods.make(plain, random_state=seed)
    if plain != name:
        model.set_params(identification="partial")
    model.fit_problem(_problem(draw(world, seed)))
    new = draw(world, seed + 10**7, 20_000)
    score = model.predict_proba(new.X)[:, 1]
    row = {"world": world.name, "method": name}
    row |= scores_beside(new.y, new.risk, score, begin)
    return [row | {"mean_risk": float(new.y.mean())}]


def _problem(one: Drawn) -> Any:
    from dcem.table.labels import SelectiveLabels

    return SelectiveLabels.from_arrays(
        one.X,
        np.where(one.tested, one.y, np.nan),
        group=one.group.astype(str),
        decider=one.who,
    )


def averaged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over repetitions; empty where there is nothing of that kind."""
    return means(rows, ("world", "method"), [*(world.name for world in WORLDS), *METHODS])


def run(out: Path, repetitions: int, fits: int, jobs: int, only: str, seconds: float) -> None:
    worlds = [i for i, world in enumerate(WORLDS) if only in world.name]
    some = [i for i in worlds if WORLDS[i].name in TRAINED]
    training = [(trained, i, name, seed) for seed in range(fits) for i in some for name in METHODS]
    known = {one.pop("world"): one for one in finished([(truths, i) for i in worlds], jobs, np.inf)}
    judging = [(judged, i, seed, known[i]) for seed in range(repetitions) for i in worlds]
    tables = {"deciders_training": (training, 0.35), "deciders": (judging, 1.0)}
    record_means(tables, out, jobs, seconds, averaged)


if __name__ == "__main__":
    show = show_tables("deciders", "deciders_training")
    command(__doc__, run, show, repetitions=200, fits=12, jobs=CORES, only="", seconds=3600.0)
