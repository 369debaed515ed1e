"""The default on the whole grid of simulated settings, against dcem and its own twin of the tested.

    python experiments/default_grid.py run [--workers 15] [--minutes 8] [--least 0.5]  # goes on
    python experiments/default_grid.py run --again --least 0.5  # the default alone, anew
    python experiments/default_grid.py show

The data sets are those of `results/grid.csv`, which has `dcem`: q_y, k and q_t, 12 boundaries each.
All see the same rows: `dcem` stops by the validation rows, the others learn from them too. To show
how much is luck, `dcem again` are networks that differ from `dcem` by their seed alone.
The *twin* learns from the tested alone with the same learners: boosted trees, a forest, a linear
model, a smooth one and the ensemble's network, in the same folds, weighed and averaged in the same
way. At k 4 everybody is tested and all q_t name the same data sets: they are fitted once and
counted each time.

A setting is *held* where the default is no worse than the better of the two, by more than .005, in
median AUC, worst AUC, median ROC gap and worst ROC gap: in all four.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from _record import CORES, RESULTS, command, in_time, record, recorded
from default import fitted_parts
from grid_summary import BETTER, QUESTIONS, SETTING, TOLERANCE

OURS = ("ensemble", "without smooth")
EVERYBODY = 4.0  # k at which all are tested
ROWS = ("X", "y_obs", "group")
Setting = tuple[float, float, float, int]  # q_y, k, q_t, phase in degrees
FLEET = 96  # data sets whose networks train together
PHASES = (0, 270, 210, 60, 150, 330, 120, 30, 240, 90, 300, 180)  # the order of fitting


def settings(least: float) -> list[Setting]:
    """q_y, k, q_t and phase in degrees of the data sets to fit, each once."""
    grid = pd.read_csv(RESULTS / "grid.csv")
    grid = grid[(grid["k"] >= least) & ((grid["k"] < EVERYBODY) | (grid["q_t"] == 1))]
    rows = grid[[*SETTING, "phase"]].drop_duplicates()
    # one boundary after the other: a run that ends early leaves whole ones
    order = rows["phase"].map(PHASES.index).sort_values(kind="stable")
    return list(rows.loc[order.index].itertuples(index=False, name=None))


def drawn(setting: Setting) -> Any:
    """The data set."""
    from dcem.tasks.registry import KINDS

    *ratios, phase = setting
    q_y, k, q_t = (float(Fraction(one).limit_denominator(12)) for one in ratios)  # 1/3 in the CSV
    named = {"q_y": q_y, "k": k, "q_t": q_t, "phase": phase, "stream": "independent", "seed": 0}
    return KINDS["sinusoid"].draw({"preset": "as-released"} | named)


def judged(setting: Setting, task: Any, name: str, score: np.ndarray) -> dict[str, Any]:
    from dcem import metrics

    truth, group = task.truth["test"], task.test.group
    return {
        **dict(zip((*SETTING, "phase"), setting, strict=True)), "method": name,
        "auc": round(float(metrics.auc(truth, score)), 5),
        "roc_gap": round(float(metrics.roc_gap(truth, score, group)), 5),
    }  # fmt: skip


def run_one(setting: Setting, methods: Sequence[str] = (*OURS, "twin")) -> list[dict[str, Any]]:
    """The default and its twin on one data set."""
    from dcem import SelectiveLabels

    task = drawn(setting)
    both = (task.train, task.validation)
    X, y, group = (np.concatenate([getattr(one, name) for one in both]) for name in ROWS)
    problem = SelectiveLabels.from_arrays(X, y, group=group)
    scores, seconds = fitted_parts(problem, task.test.X, methods)
    return [
        judged(setting, task, name, score) | {"seconds": round(seconds, 2)}
        for name, score in scores.items()
    ]


def dcem_again(specs: list[Setting], deadline: float) -> list[dict[str, Any]]:
    """`dcem` with another seed than in `results/grid.csv`, as many as there is time for."""
    from dcem.methods import fit_many, make

    rows = []
    for start in range(0, len(specs), FLEET):
        if time.time() > deadline:
            break
        some = specs[start : start + FLEET]
        tasks = [drawn(spec) for spec in some]
        fitted = fit_many(
            make("dcem", random_state=1),
            [task.train for task in tasks],
            validations=[task.validation for task in tasks],
        )
        for spec, task, model in zip(some, tasks, fitted, strict=True):
            score = model.predict_proba(task.test.X)[:, 1]
            rows.append(judged(spec, task, "dcem again", score))
    return rows


def run(out: Path, workers: int, minutes: float, least: float, again: bool) -> None:
    """Fit what is not recorded yet, until the time is up; or the default `again`, all of it."""
    begun, rows = time.time(), recorded("default_grid", out)
    if again:  # the others do not change with it
        kept = [row for row in rows if row["method"] not in OURS]
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            found = pool.map(partial(run_one, methods=OURS), settings(least), chunksize=1)
        record("default_grid", [*kept, *chain(*found)], out, time.time() - begun)
        return
    done = {tuple(row[key] for key in (*SETTING, "phase")) for row in rows}
    specs = [spec for spec in settings(least) if spec not in done]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        waiting = pool.imap(run_one, specs)
        rows += dcem_again(specs, begun + 60 * minutes - 90)
        for found in in_time(waiting, len(specs), begun + 60 * minutes):
            rows += found
        pool.terminate()
    record("default_grid", whole_boundaries(rows, least), out, time.time() - begun)


def whole_boundaries(rows: list[dict[str, Any]], least: float) -> list[dict[str, Any]]:
    """The rows of boundaries at which every method has every setting."""
    counts = pd.DataFrame(rows).groupby(["phase", "method"]).size().unstack()
    wanted = len(settings(least)) // len(PHASES)
    whole = set(counts.index[counts.eq(wanted).all(axis=1)])
    return [row for row in rows if row["phase"] in whole]


def show(out: Path) -> None:
    """The share of settings that are held, and where the default is worse."""
    found = pd.read_csv(out / "default_grid.csv")
    keys = [*SETTING, "phase"]
    ours = found.pivot_table(index=keys, columns="method", values=list(BETTER))
    grid = pd.read_csv(RESULTS / "grid.csv")
    # dcem of settings at k 4 is that of q_t 1, as all methods are
    once = (grid["k"] < EVERYBODY) | (grid["q_t"] == 1)
    for metric in BETTER:
        dcem = grid[once & (grid["method"] == "dcem")].set_index(keys)[metric]
        ours[metric, "dcem"] = dcem.reindex(ours.index)
    phases = ours.index.get_level_values("phase").nunique()
    better = {}
    for question, (metric, how) in QUESTIONS.items():
        by_setting = BETTER[metric] * ours[metric].groupby(SETTING).agg(how)
        better[question] = by_setting.sub(by_setting[["twin", "dcem"]].max(axis=1), axis=0)
    for method in ours["auc"].columns.drop("twin"):
        table = pd.DataFrame({question: of[method] for question, of in better.items()})
        _show(method, table, phases)
    print("\nmeans over settings of the median and the worst AUC")
    for how in ("median", "min"):
        print(how, ours["auc"].groupby(SETTING).agg(how).mean().round(4).to_dict())


def _show(method: str, table: pd.DataFrame, phases: int) -> None:
    """The share of settings at which a method is held, and its mean distance from the better."""
    counted = 1 + 6 * (table.index.get_level_values("k") == EVERYBODY)  # seven q_t, one data set
    held = table.ge(-TOLERANCE).assign(all_four=table.ge(-TOLERANCE).all(axis=1))
    print(f"\n{method}: {counted.sum()} settings, {phases} boundaries; no worse than the better at")
    for name, rows in (("all", held.index == held.index), *_by_k(held)):
        shares = held[rows].apply(np.average, weights=counted[rows])
        print(f"{name:>8}  " + "  ".join(f"{key} {value:.3f}" for key, value in shares.items()))
    means = table.apply(np.average, weights=counted).round(4)
    print("mean difference from the better of both:", means.to_dict())


def _by_k(table: pd.DataFrame) -> list[tuple[str, Any]]:
    k = table.index.get_level_values("k")
    return [("k >= 1/2", k >= 0.5)] + [(f"k {value:.3g}", k == value) for value in sorted(set(k))]


if __name__ == "__main__":
    command(__doc__, run, show, workers=CORES, minutes=120.0, least=0.0, again=False)
