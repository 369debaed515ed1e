"""The default and its rivals where the truth is known: tables, policies, simulations, timings.

    python experiments/default.py run --data FOLDER [--workers 15] [--packages | --fresh] [--again]
    python experiments/default.py show

`FOLDER` holds credit-default.csv.gz, diabetes130.csv.gz and nhanes.csv.gz (docs/data.md); with
`--packages` or `--fresh`, the tables that `package_tables.py` wrote, recorded as default_packages
and default_fresh: the latter were read when the default was settled. Each task is a table, and a
policy that decides whose label is seen; or a fresh draw of the simulation. All methods get the same
rows. The parts of the ensemble are the fair rivals: the same folds, early stopping and averaging.
An *ablation* weighs the other parts anew. `--again` keeps the recorded `dcem` and `tested-only`.
None of these policies was used to choose anything: the choosing is told in docs/default.md.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit

from _record import CORES, command, in_time, record
from grid_summary import BETTER, QUESTIONS, TOLERANCE
from package_tables import FRESH
from package_tables import TABLES as PACKAGE_TABLES

TABLES = (
    "credit default", "readmission", "long stay", "prediabetes", "diabetes", "digits",
    "clusters 1", "clusters 2", "curved 1", "curved 2",
)  # fmt: skip
SETTINGS = ((0.5, 1.0, 2.0), (0.5, 0.5, 2.0), (0.25, 1.0, 3.0))
SHAPES = ("linear",) * 6 + ("steps", "interaction", "low risk first", "high risk first")
SLOPES = (5, 5, 5, 2, 10, 30)
NETWORKS = ("dcem", "tested-only")
SINGLE = ["network", "boost", "forest", "linear", "smooth", *NETWORKS]  # methods, one model each
RIVALS = ["dcem", "twin"]
N_POLICIES, N_PHASES = 34, 12
N_PACKAGE_POLICIES, LOOKED_AT = 20, 5  # per table of a package, and how many columns they look at
FEWEST_TESTS = 8  # of either result: with fewer there is nothing to learn
TRAIN, TEST = 10_000, 20_000  # rows, at most
SEED = 20_264  # policies and draws that were looked at before had other seeds
DATA = os.environ.get("DCEM_DATA", ".")
RECORDS = ("default", "default_packages", "default_fresh")


# -- tables -----------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def table(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """Features, truth, group, and the columns that policies look at."""
    kind, _, number = name.rpartition(" ")
    if name in PACKAGE_TABLES or name in FRESH:
        frame = pd.read_csv(f"{DATA}/{name}.csv.gz")
        y, group = frame.pop("y").to_numpy(), frame.pop("group")
        return _parts(frame, y, group, list(frame)[:LOOKED_AT])
    if name == "credit default":
        frame = pd.read_csv(f"{DATA}/credit-default.csv.gz").drop(columns="ID")
        y = frame.pop("class").to_numpy()
        chosen = ["PAY_0", "LIMIT_BAL", "AGE", "PAY_AMT1", "BILL_AMT1", "PAY_2"]
        return _parts(frame, y, frame["SEX"] == 2, chosen)
    if name in ("readmission", "long stay"):
        from dcem.tasks.diabetes import diabetes_features, read_encounters

        encounters = read_encounters(f"{DATA}/diabetes130.csv.gz")
        frame = diabetes_features(encounters)
        y = (encounters["readmitted"] != "NO").to_numpy()
        chosen = ["number_inpatient", "age", "num_medications", "number_diagnoses"]
        if name == "long stay":
            y = (encounters["time_in_hospital"].astype(int) > 4).to_numpy()
            frame = frame.drop(columns="time_in_hospital")
        return _parts(frame, y, encounters["race"] == "AfricanAmerican", chosen)
    if name in ("prediabetes", "diabetes"):
        from dcem.tasks.nhanes import nhanes_features, read_nhanes

        people = read_nhanes(f"{DATA}/nhanes.csv.gz")
        y = (people["LBXGH"] >= (5.7 if name == "prediabetes" else 6.5)).to_numpy()
        chosen = ["age", "bmi", "waist", "income_to_poverty", "health"]
        return _parts(nhanes_features(people), y, people["RIDRETH1"] == 4, chosen)
    rng = np.random.default_rng(int(number) if number.isdigit() else 0)
    if name == "digits":
        from sklearn.datasets import load_digits

        X, digit = load_digits(return_X_y=True)
        X = X[:, X.std(axis=0) > 0.5]
        return X, (digit >= 5).astype(int), rng.integers(0, 2, len(X)), list(range(5, 35, 5))
    if kind == "clusters":
        from sklearn.datasets import make_classification

        X, y = make_classification(
            16_000, 20, n_informative=8, n_redundant=4, n_clusters_per_class=3, weights=[0.7],
            flip_y=0.1, class_sep=0.7, random_state=77 + int(number),
        )  # fmt: skip
        group = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
        return X, y, group, list(rng.permutation(20)[:6])
    X = rng.normal(size=(16_000, 8)) @ (np.eye(8) + 0.3 * rng.normal(size=(8, 8)))
    X /= X.std(axis=0)
    z = X[:, 0] + np.sin(1.5 * X[:, 1]) + 0.5 * X[:, 2] * X[:, 3] - 0.4 * X[:, 4] ** 2
    y = (rng.random(len(X)) < expit(1.5 * (z - np.quantile(z, 0.7)))).astype(int)
    return X, y, (X[:, 1] + rng.normal(size=len(X)) > 0).astype(int), list(range(6))


def _parts(
    frame: pd.DataFrame, y: np.ndarray, group: pd.Series, chosen: list[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    columns = [list(frame).index(name) for name in chosen]
    return frame.to_numpy(float), y.astype(int), group.to_numpy().astype(int), columns


def censored(name: str, number: int, again: int = 0, seed: int = SEED) -> dict[str, Any]:
    """A table, and who is tested under policy `number`: drawn again where all tests agree."""
    from sklearn.linear_model import LogisticRegression

    X, y, group, columns = table(name)
    rng = np.random.default_rng([seed, number, sum(map(ord, name)), *[again] * (again > 0)])
    order = rng.permutation(len(X))
    n_train = min(TRAIN, int(0.6 * len(X)))
    train, test = order[:n_train], order[n_train : n_train + TEST]
    Z = X[:, columns]
    Z = np.where(np.isnan(Z), np.nanmean(Z, axis=0), Z)
    Z = (Z - Z.mean(axis=0)) / (Z.std(axis=0) + 1e-12)
    a, b = (rng.choice([-1, 1]) * Z[:, j] for j in rng.permutation(len(columns))[:2])
    shape = SHAPES[number % len(SHAPES)]
    score = {
        "linear": a + rng.uniform(0.3, 1) * b,
        "steps": 2.0 * (a > np.median(a)) + 2.0 * (b > np.median(b)) + 0.3 * a,
        "interaction": a * b + 0.5 * a,
    }.get(shape)
    if score is None:
        score = Z @ LogisticRegression().fit(Z[train], y[train]).coef_[0]
        score = -score if shape == "low risk first" else score
    score = (score - score.mean()) / score.std()
    slope = SLOPES[number % len(SLOPES)] if shape == "linear" else int(rng.choice([3, 5, 10]))
    k, q_t = rng.choice([0.5, 1.0]), rng.choice([0.5, 2.0])
    rate = float(np.clip(y[train].mean() * k, 0.05, 0.5))
    if len(train) < 2000 or y.mean() < 0.1:
        rate = max(rate, 0.25)
    share = (group[train] == 0).mean()
    second = rate / (share * q_t + 1 - share)
    chance = np.empty(len(X))
    for code, wanted in ((0, q_t * second), (1, second)):
        mine, rows = group == code, score[train][group[train] == code]
        threshold = _threshold(rows, slope, min(float(wanted), 0.95))
        chance[mine] = expit(slope * (score[mine] - threshold))
    tested = rng.random(len(X)) < chance
    if np.bincount(y[train][tested[train]], minlength=2).min() < FEWEST_TESTS:
        return censored(name, number, again + 1, seed)
    return {
        "task": name, "policy": f"{shape}, slope {slope}, k {k:g}, q_t {q_t:g}",
        "X": X[train], "y": y[train], "tested": tested[train], "group": group[train],
        "X_test": X[test], "truth": y[test], "group_test": group[test],
        "hardly_ever": float((chance[test] < 0.05).mean()),
    }  # fmt: skip


def _threshold(score: np.ndarray, slope: float, target: float) -> float:
    def excess(threshold: float) -> float:
        return float(expit(slope * (score - threshold)).mean()) - target

    return float(brentq(excess, score.min() - 30, score.max() + 30))


def simulated(setting: tuple[float, float, float], number: int) -> dict[str, Any]:
    """A fresh draw of the simulation at one of twelve boundaries."""
    from dcem.tasks import make_sinusoid

    drawn = make_sinusoid(
        *setting, 2 * np.pi * number / N_PHASES, stream="independent", n_validation=1000,
        random_state=SEED + number,
    )  # fmt: skip
    train, test = drawn.train, drawn.test
    chance = drawn.process.testing_probability(test.X, test.group)
    return {
        "task": "simulation " + ", ".join(f"{value:g}" for value in setting),
        "policy": f"phase {360 * number // N_PHASES}",
        "X": train.X, "y": train.y_imputed, "tested": train.tested, "group": train.group,
        "X_test": test.X, "truth": drawn.truth["test"], "group_test": test.group,
        "hardly_ever": float((chance < 0.05).mean()),
    }  # fmt: skip


def tasks(name: str) -> Iterator[tuple[Any, int]]:
    """What is run for a record, most telling first."""
    if name != "default":
        of_packages = FRESH if name == "default_fresh" else PACKAGE_TABLES
        yield from ((one, n) for n in range(N_PACKAGE_POLICIES) for one in of_packages)
        return
    for number in range(max(N_PHASES, N_POLICIES)):
        if number < N_PHASES:
            yield from ((setting, number) for setting in SETTINGS)
        if number < N_POLICIES:
            yield from ((name, number) for name in TABLES)


def make(spec: tuple[Any, int]) -> dict[str, Any]:
    return censored(*spec) if isinstance(spec[0], str) else simulated(*spec)


def problem_of(task: dict[str, Any]) -> Any:
    from dcem import SelectiveLabels

    seen = np.where(task["tested"], task["y"], np.nan)
    return SelectiveLabels.from_arrays(task["X"], seen, group=task["group"])


# -- methods ----------------------------------------------------------------------------------


def fitted_parts(
    problem: Any, X_test: np.ndarray, wanted: Sequence[str] = ()
) -> tuple[dict[str, np.ndarray], float]:
    """Scores of the ensemble, its parts, what is left without each of them, a plain average, of its
    *twin*, the same with a network of the tested for that of DCEM; and seconds of the fit.
    """
    import warnings

    warnings.simplefilter("ignore")
    from dcem.methods import make as make_method
    from dcem.methods.ensemble_parts import PARTS, Parts, folds_of

    kept: list[Parts] = []
    model = make_method("ensemble", random_state=0, n_jobs=1)
    weigh = model._weigh
    model._weigh = lambda problem, fitted, *given, **kw: (
        kept.append(fitted),
        weigh(problem, fitted, *given, **kw),
    )
    begun = time.perf_counter()
    model.fit_problem(problem)
    seconds = time.perf_counter() - begun
    del model._weigh
    (parts,) = kept
    z = {name: _mean_log_odds(models, X_test) for name, models in parts.models.items()}

    if not wanted or "twin" in wanted:
        _add_tested_networks(problem, parts, z, folds_of(problem, model.n_folds, 0), X_test)

    def scores(names: tuple[str, ...]) -> np.ndarray:
        model.parts = names
        model._weigh(problem, parts, problem.tested, honest=True)
        mean = sum(model.weights_[part] * z[part] for part in names)
        line = model.calibration_
        return np.asarray(expit(line["intercept"] + line["slope"] * mean))

    chosen = {"ensemble": PARTS} | {part: (part,) for part in PARTS}
    chosen |= {f"without {part}": tuple(p for p in PARTS if p != part) for part in PARTS}
    chosen |= {"twin": ("tested network", *PARTS[1:])}
    found = {name: scores(of) for name, of in chosen.items() if not wanted or name in wanted}
    if not wanted:
        found["plain average"] = np.asarray(expit(sum(z[part] for part in PARTS) / len(PARTS)))
    return found, seconds


def _add_tested_networks(
    problem: Any, parts: Any, z: dict[str, np.ndarray], fold: np.ndarray, X_test: np.ndarray
) -> None:
    """Fit the twin's part, networks of the tested, and put its log-odds beside the others'."""
    from dcem.learners import Sample, make_learner

    networks, out_of_fold = [], np.full(len(problem), np.nan)
    for k in np.unique(fold):
        rows, held = ((fold != k) & problem.tested), ((fold == k) & problem.tested)
        sample = Sample(problem.X, problem.y_obs, np.ones(len(problem)))
        network = make_learner("perceptron", int(k)).fit(sample.take(rows), sample.take(held))
        out_of_fold[held] = network.predict_logit(problem.X[held])
        networks.append(network)
    parts.log_odds["tested network"] = out_of_fold
    parts.by_model["tested network"] = np.stack(
        [network.predict_logit(problem.X[parts.asked]) for network in networks]
    )
    z["tested network"] = _mean_log_odds(networks, X_test)


def _mean_log_odds(models: list[Any], X: np.ndarray) -> np.ndarray:
    return np.mean([one.predict_logit(X) for one in models], axis=0)


def run_one(spec: tuple[Any, int]) -> list[dict[str, Any]]:
    """A task, and how good all the ensembles are at it."""
    task = make(spec)
    found, seconds = fitted_parts(problem_of(task), task["X_test"])
    rows = [_judged(task, name, score) for name, score in found.items()]
    rows[0]["seconds"] = round(seconds, 2)
    return rows


def _judged(task: dict[str, Any], name: str, score: np.ndarray) -> dict[str, Any]:
    from dcem.metrics import auc, calibration_error, roc_gap

    truth = task["truth"]
    return {
        "task": task["task"], "policy": task["policy"], "method": name,
        "auc": round(float(auc(truth, score)), 5),
        "roc_gap": round(float(roc_gap(truth, score, task["group_test"])), 5),
        "calibration_error": round(float(calibration_error(truth, score)), 5),
        "hardly_ever": round(task["hardly_ever"], 4), "tested": round(task["tested"].mean(), 4),
    }  # fmt: skip


def run_networks(specs: list[tuple[Any, int]], deadline: float, rows: list[dict[str, Any]]) -> None:
    """`dcem` and `tested-only`, five networks each, in full batches: a fleet for each table."""
    from dcem.methods import fit_many
    from dcem.methods import make as make_method

    groups: dict[Any, list[tuple[Any, int]]] = {}
    for spec in specs:
        groups.setdefault(spec[0], []).append(spec)
    for alike in groups.values():
        made = [make(spec) for spec in alike]
        for name in NETWORKS:
            if time.time() > deadline:
                return
            method = make_method(name, n_members=5, random_state=0)
            for task, one in zip(
                made, fit_many(method, [problem_of(t) for t in made]), strict=True
            ):
                rows.append(_judged(task, name, one.predict_proba(task["X_test"])[:, 1]))


def run(
    data: Path, out: Path, workers: int, minutes: float, again: bool, packages: bool, fresh: bool
) -> None:
    global DATA
    DATA = os.environ["DCEM_DATA"] = str(data)
    begun, rows = time.time(), []
    name = "default_fresh" if fresh else "default_packages" if packages else "default"
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        specs = list(tasks(name))
        waiting = pool.imap_unordered(run_one, specs)
        networks: list[dict[str, Any]] = []
        if again:  # they do not change with the ensemble
            before = pd.read_csv(out / f"{name}.csv")
            networks = before[before["method"].isin(NETWORKS)].to_dict("records")
        else:
            run_networks(specs, begun + 60 * minutes - 60, networks)
        print(f"networks: {len(networks)} fits, {time.time() - begun:.0f} s", flush=True)
        for found in in_time(waiting, len(specs), begun + 60 * minutes):
            rows += found
    record(name, rows + networks, out, time.time() - begun)


def show(out: Path) -> None:
    """What was recorded, of both kinds of tables."""
    for name in RECORDS:
        if (out / f"{name}.csv").exists():
            print(f"\n== {name} ==\n")
            show_record(pd.read_csv(out / f"{name}.csv"))


def show_record(found: pd.DataFrame) -> None:
    """Median and worst AUC over policies or phases, and mean calibration error."""
    by = found.groupby(["task", "method"], sort=False)
    table = by["auc"].agg(["median", "min"])
    print("AUC, median [worst]")
    cell = table.apply(lambda row: f"{row['median']:.3f} [{row['min']:.3f}]".replace("0.", "."), 1)
    print(cell.unstack("task").to_string())
    real = ~table.index.get_level_values("task").str.startswith("simulation")
    print(
        "\nmean over tables, and over settings of the simulation: median, worst, gap, calibration"
    )
    gap = by[["roc_gap", "calibration_error"]].mean()
    for which, rows in (("tables", real), ("simulation", ~real)):
        if not rows.any():
            continue
        print(f"\n{which}")
        means = pd.concat([table, gap], axis=1)[rows].groupby("method", sort=False).mean()
        print(means.round(4).to_string())
    print(f"\nseconds of a fit of the ensemble, median: {found['seconds'].median():.1f}")
    print("\nthe ensemble minus the best single method, and minus the better of dcem and its twin")
    compared = {"best single": table["median"].unstack("method")}
    for question, (metric, how) in QUESTIONS.items():
        compared[question] = BETTER[metric] * by[metric].agg(how).unstack("method")
    ahead = pd.DataFrame(
        {
            name: of["ensemble"] - of[SINGLE if name == "best single" else RIVALS].max(axis=1)
            for name, of in compared.items()
        }
    )
    print(ahead.round(4).to_string())
    print(f"\ntables on which a method is no worse than that, by {TOLERANCE}, in all four")
    held = pd.Series(True, table.index).unstack("method")
    for question in QUESTIONS:
        of = compared[question]
        held &= of.ge(of[RIVALS].max(axis=1) - TOLERANCE, axis=0)
    held = held[~held.index.str.startswith("simulation")]
    print(held.sum().to_dict(), "any:", held.any(axis=1).sum(), "of", len(held))
    print(
        "\ncalibration error on tables, by the share of people whose chance of a test is below .05"
    )
    parts = pd.cut(found["hardly_ever"], [0, 0.3, 0.5, 0.7, 1], include_lowest=True)
    tables = found[~found["task"].str.startswith("simulation")]
    by_overlap = tables.pivot_table(
        index="method", columns=parts, values="calibration_error", sort=False, observed=False
    )
    print(by_overlap.round(4).to_string())
    print(tables[tables["method"] == "ensemble"].groupby(parts, observed=False).size().to_dict())


if __name__ == "__main__":
    command(
        __doc__, run, show,
        data=Path("."), workers=CORES, minutes=60.0, again=False, packages=False, fresh=False,
    )  # fmt: skip
