"""A model watched in use and judged in time: are alarms true, do intervals hold, what is the cost?

    python experiments/monitor.py run                       (300 and 150 repetitions, all cores)
    python experiments/monitor.py run --repetitions 4 --splits 2 --jobs 2 --out FOLDER
    python experiments/monitor.py show

`monitor.csv`: a model is fitted to 4,000 visits and judged; then a new table comes in which nothing
or one thing has changed (`CHANGES`), of 1,000 visits (`SIZES`: of more too), of one visit per
person or of up to four. Counted are alarms by kind and answers, and how often the
intervals of the new prevalence, AUC and calibration in the large hold the truth of the new world,
known from 20,000 people. Where nothing changed, `any_alarm` is the rate of false alarms, all four
questions together.

`monitor_time.csv`: a table of two years, steady or drifting, and the same model judged by
cross-validation and in time. What a judge should tell is how the model, fitted to all rows, does in
the three months that follow (truth of 20,000 people): errors and widths of AUC and of mean risk
minus share of positives; and how far the model's risks are off there, fitted with the time of each
row and without it.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from _record import CORES, command, means, record_means, show_tables

FITTED, NEW, MANY = 4_000, 1_000, 20_000
PARTS = {"parts": ("linear",)}  # of the ensemble: quick, calibrated, and right but for a bend
GROUP = "outcome's relation in one group"
CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "nothing, several visits": {"visits": 4},
    "features": {"shift": 0.5},
    "features, several visits": {"shift": 0.5, "visits": 4},
    "testing": {"policy": -0.5},
    "testing of one group": {"policy_m": -0.8},
    "outcome more common": {"level": 0.6},
    "outcome's relation": {"relation": 0.7},
    GROUP: {"relation_m": 0.8},
    "results late": {"late": True},
}
SIZES = {
    "nothing": (NEW, FITTED),
    "nothing, several visits": (NEW, FITTED),
    GROUP: (NEW, 2_000, FITTED),
}
KINDS = ("who-comes", "who-is-tested", "what-is-found", "late-results", "recalibrate", "refit")


def visits(n: int, seed: Any, **world: Any) -> pd.DataFrame:
    """A table with the truth beside it; one change at a time."""
    rng = np.random.default_rng(seed)
    get = lambda name: world.get(name, 0.0)  # noqa: E731
    most = int(world.get("visits", 1))
    who = np.repeat(np.arange(n), rng.integers(1, most + 1, n))[:n]
    own = rng.normal(size=(n, 4))[who]
    x = own if most == 1 else np.sqrt(0.7) * own + np.sqrt(0.3) * rng.normal(size=(n, 4))
    x[:, 0] += get("shift")
    sex = np.where(rng.random(n) < 0.4, "m", "f")[who]
    ward = rng.choice(["er", "icu", "other"], n, p=[0.5, 0.3, 0.2])
    day = rng.integers(0, 365, n)
    m = sex == "m"
    own_slope = 1 - get("relation") - get("relation_m") * m
    z = -1.2 + own_slope * x[:, 0] + 0.7 * x[:, 1] + 0.4 * (ward == "icu") + get("level")
    y = rng.random(n) < expit(z + get("drift") * (day / 365 - 0.5))
    policy = get("policy") + get("policy_m") * m
    chance = expit(0.2 + 0.6 * x[:, 0] - 0.5 * m + 0.5 * (x[:, 2] > 0.5) + policy)
    tested = rng.random(n) < np.where((day > 335) & bool(get("late")), 0.1, 1) * chance
    frame = pd.DataFrame(x, columns=["a", "b", "c", "d"])
    return frame.assign(
        who=who, ward=ward, sex=sex, day=day, tested=tested * 1, truth=y * 1.0,
        y=np.where(tested, y, np.nan).astype(float),
    )  # fmt: skip


def fitted(frame: pd.DataFrame, roles: Any, seed: int, *, judged: bool = True) -> Any:
    """A model of a table, judged by a comparison."""
    from dcem.compare.run import compare_methods
    from dcem.methods import make
    from dcem.scoring import TableModel
    from dcem.table import read_table

    table = read_table(frame, roles)
    estimator = make("ensemble", random_state=seed, **PARTS)
    estimator.fit_problem(table.problem)
    model = TableModel(estimator, table.encoder, table.roles, table.source)
    if not judged:
        return model, None
    comparison = compare_methods(
        table.problem, ["ensemble"], planted=0, n_resamples=20, params=PARTS, random_state=seed
    )
    return model.explained(table, seed), comparison


def watched(several: int, seed: int) -> list[dict[str, Any]]:
    """One model, held against tables of every change."""
    from dcem.scoring import monitor_model
    from dcem.table import Roles, read_table

    warnings.simplefilter("ignore")
    roles = Roles(label="y", tested="tested", group="sex", id="who", time="day", exclude=("truth",))
    model, comparison = fitted(visits(FITTED, [seed, several], visits=several), roles, seed)
    baseline = model.baseline.judged_by(comparison.methods[0].judgements)
    model = replace(model, baseline=baseline)
    rows = []
    for name, world in CHANGES.items():
        if world.get("visits", 1) != several:
            continue
        many = read_table(
            visits(MANY, [seed, 9, len(name)], **{**world, "late": False}),
            replace(model.roles_of_new, truth="truth"),
            encoder=model.encoder,
        )
        truths = _truths(model, many)
        for size in SIZES.get(name, (NEW,)):
            new = visits(size, [seed, size, len(name)], **world)
            table = read_table(new, model.roles_of_new, encoder=model.encoder)
            found = monitor_model(model, table, random_state=seed)
            keys = {finding.key for finding in found.findings}
            row = {"change": name, "rows": size}
            row |= {f"alarm_{kind}": kind in keys for kind in KINDS}
            row["any_alarm"] = bool(keys & set(KINDS))
            row |= {f"says_{word}": found.answer == word for word in ("holds", "cannot tell")}
            for about, truth in truths.items():
                now = next(c.now for c in found.about(about) if c.of == "everybody")
                row[f"{about}_holds"] = now.low <= truth <= now.high
            for change in found.changes:
                if change.of == "everybody" and "nothing" in name:
                    row[f"no_change_in_{change.about}_holds"] = not change.difference.excludes(0)
            rows.append(row)
    return rows


def _truths(model: Any, table: Any) -> dict[str, float]:
    """What the new numbers are in truth."""
    from dcem.metrics import auc
    from dcem.monitor import NewRows

    score = NewRows.of(model.estimator, table.problem).score
    truth = table.truth
    return {
        "prevalence": float(truth.mean()),
        "auc": float(auc(truth, score)),
        "calibration": float(score.mean() - truth.mean()),
    }


def split(drift: float, seed: int) -> list[dict[str, Any]]:
    """One table of two years, judged by cross-validation and in time."""
    from dcem.table import Roles, read_table

    warnings.simplefilter("ignore")
    timed = Roles(label="y", tested="tested", group="sex", time="day", exclude=("truth",))
    plain = replace(timed, time=None, exclude=("truth", "day"))
    frame = visits(FITTED, [seed, 5], drift=drift)
    # the three months after the last: the drift goes on
    later = visits(MANY, [seed, 7], level=drift * (0.5 + 1 / 8))
    rows = []
    for name, roles in (("cross-validation", plain), ("time", timed)):
        model, comparison = fitted(frame, roles, seed)
        new = replace(roles, exclude=("day",) if name == "cross-validation" else (), truth="truth")
        truth = _truths(model, read_table(later, new, encoder=model.encoder))
        judged = comparison.methods[0].judgements["dr"]
        off = judged.calibration_in_the_large["everybody"]
        rows.append(
            {
                "drift": drift,
                "judged_by": name,
                "auc_error": judged.auc.value - truth["auc"],
                "auc_width": judged.auc.high - judged.auc.low,
                "auc_holds": judged.auc.low <= truth["auc"] <= judged.auc.high,
                "calibration_told": off.value,
                "calibration_true": truth["calibration"],
                "calibration_width": off.high - off.low,
                "calibration_off": abs(truth["calibration"]),
            }
        )
    return rows


def run(out: Path, repetitions: int, splits: int, jobs: int, seconds: float) -> None:
    watching = [(watched, several, seed) for seed in range(repetitions) for several in (1, 4)]
    splitting = [(split, drift, seed) for seed in range(splits) for drift in (0.0, 1.5)]
    tables = {"monitor": (watching, 0.75), "monitor_time": (splitting, 1.0)}
    keys = ("change", "rows", "drift", "judged_by")
    record_means(tables, out, jobs, seconds, lambda rows: means(rows, keys))


if __name__ == "__main__":
    show = show_tables("monitor", "monitor_time", upright=True)
    command(__doc__, run, show, repetitions=300, splits=150, jobs=CORES, seconds=3600.0)
