"""A real decision to test, the truth of everybody: what each way of reading the table would say.

    python experiments/nhanes.py run --data nhanes.csv.gz [--workers 2] [--again METHOD]
    python experiments/nhanes.py show
    python docs/make/nhanes.py  # writes the numbers into docs/nhanes.md

Every method is fitted to four fifths of the people of NHANES (`dcem.tasks.load_nhanes`) and scores
the rest, five times, for both outcomes. It sees labels of the tested alone; the truth judges.
Intervals, but for the audit's, respect strata and sampling units of the survey; rows count alike
here (`weighted` repeats it with survey weights). `--again` fits some methods anew and keeps the
others as recorded; no further networks are begun after so many `--minutes`.

The audit is asked how often groups would be tested at equal features, and how common the outcome is
in each; the truth stands beside it (`results/nhanes_audit.csv`).

Last, `next-tests` is tried: of four fifths of the people 2,000 untested ones are tested, chosen in
three ways, and the default is fitted anew and judged on the rest (`results/nhanes_next_tests.csv`).
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from _record import CORES, command, record, recorded

OUTCOMES = ("diabetes", "prediabetes")
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "ensemble": ("ensemble", {"n_jobs": 1}),
    "tested-only, linear": ("tested-only", {"learner": "linear"}),
    "tested-only, boost": ("tested-only", {"learner": "boost"}),
    "tested-only, forest": ("tested-only", {"learner": "forest"}),
    "ipw, linear": ("ipw", {"learner": "linear"}),
    "y-obs, boost": ("y-obs", {"learner": "boost"}),
    "truth of everybody, boost": ("y-model", {"learner": "boost"}),
}
NETWORKS = (  # of the paper, all in one run of a GPU; five members each
    "dcem", "tested-only", "y-obs", "ipw", "dr-learner", "dragonnet", "imputation-only",
    "no-causal-regularization", "sar-em", "tested-only-plus-group", "peer-loss",
    "group-peer-loss", "truncated-lq", "gjs", "self", "dividemix",
)  # fmt: skip
FOLDS = 5
ERRORS = 1.96  # standard errors on either side of 95 %
BUDGET = 2_000  # of further tests
DRAWS = 500  # of who is tested, behind the spread of an estimate


def problem_of(data: str, outcome: str, weighted: bool) -> tuple[Any, np.ndarray, np.ndarray, Any]:
    """All people, their truth, their folds, and the survey's design."""
    from dcem.tasks.nhanes import nhanes_problem, read_nhanes, survey_design

    people = read_nhanes(data)
    problem, truth = nhanes_problem(people, outcome, weights=weighted)
    fold = np.random.default_rng(0).permutation(len(people)) % FOLDS
    return problem, truth, fold, survey_design(people)


def score_fold(job: tuple[str, str, bool, str, int]) -> tuple[Any, np.ndarray]:
    """Scores of one fold by a model of the others."""
    warnings.simplefilter("ignore")
    from dcem.methods import make

    data, outcome, weighted, label, k = job
    problem, truth, fold, _ = problem_of(data, outcome, weighted)
    name, params = METHODS[label]
    model = make(name, random_state=k, **params)
    given = {"truth": truth[fold != k]} if model.uses_truth else {}
    model.fit_problem(problem.subset(fold != k), **given)
    return job, model.predict_proba(problem.X[fold == k])[:, 1]


def networks(data: str, outcome: str, weighted: bool, label: str) -> np.ndarray:
    """The same of networks, all folds as one fleet."""
    from dcem.methods import fit_many, make

    problem, _, fold, _ = problem_of(data, outcome, weighted)
    names = np.array(problem.group_names)[problem.group]
    parts = [problem.subset(fold != k) for k in range(FOLDS)]
    fitted = fit_many(make(label, random_state=0, n_members=5), parts)
    score = np.empty(len(problem))
    for k, one in enumerate(fitted):
        rows = fold == k
        given = {"sensitive_features": names[rows]} if one.needs_group else {}
        score[rows] = one.predict_proba(problem.X[rows], **given)[:, 1]
    return score


def auc_with_error(
    truth: np.ndarray, score: np.ndarray, weight: np.ndarray, design: Any
) -> tuple[float, float]:
    """The weighted AUC, and its standard error by strata and sampling units."""
    from dcem.estimation.influence import survey_error

    order = np.argsort(score, kind="stable")
    y, w, s = truth[order], weight[order], score[order]
    _, first, inverse = np.unique(s, return_index=True, return_inverse=True)

    def below(mass: np.ndarray) -> np.ndarray:
        """Share of a class with a lower score, ties half."""
        total = np.r_[0.0, np.cumsum(mass)]
        last = np.r_[first[1:], len(s)]
        return ((total[first] + total[last]) / 2 / total[-1])[inverse]

    positive, negative = w * y, w * (1 - y)
    lower, higher = below(negative), 1 - below(positive)
    area = float(positive @ lower / positive.sum())
    influence = np.empty(len(s))
    influence[order] = positive * (lower - area) / positive.sum()
    influence[order] += negative * (higher - area) / negative.sum()
    return area, survey_error(influence, *design)


def judged(job: tuple[str, str, bool, dict[str, np.ndarray]]) -> list[dict[str, Any]]:
    """What is known with the truth in hand, and what could be said without it."""
    warnings.simplefilter("ignore")
    from dcem.estimation.evaluator import Evaluator
    from dcem.estimation.folds import percentiles
    from dcem.estimation.influence import survey_error
    from dcem.metrics import calibration_error

    data, outcome, weighted, scores = job
    problem, truth, fold, design = problem_of(data, outcome, weighted)
    weight = np.ones(len(truth)) if problem.weight is None else problem.weight
    evaluator = Evaluator(problem, truth=truth, fold=fold)
    rows = []
    for label, score in scores.items():
        rank = percentiles(score, fold)  # a place among the people that one model scored
        area, error = auc_with_error(truth, rank, weight, design)
        row = {
            "outcome": outcome, "weighted": weighted, "method": label,
            "auc": round(area, 4), "standard_error": round(error, 4),
        }  # fmt: skip
        for target in ("tested", "ipw", "dr"):
            found = evaluator.auc_of(target, rank)
            half = ERRORS * survey_error(found.influence, *design)
            row |= {
                f"auc_{target}": round(found.value, 4),
                f"low_{target}": round(found.value - half, 4),
                f"high_{target}": round(found.value + half, 4),
            }
        error = float(calibration_error(truth, score, weight=weight))
        row |= {
            "calibration_error": round(error, 4),
            "mean_risk": round(float(np.average(score, weights=weight)), 4),
            "prevalence": round(float(np.average(truth, weights=weight)), 4),
        }
        rows.append(row)
    return rows


def odds_ratio(data: str, outcome: str) -> dict[str, Any]:
    """The odds of the outcome of the untested over the tested, at equal features and group."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import SplineTransformer, StandardScaler

    from dcem.estimation.influence import survey_error

    problem, truth, _, design = problem_of(data, outcome, weighted=False)
    X = np.where(np.isnan(problem.X), np.nanmedian(problem.X, axis=0), problem.X)
    many = [j for j in range(X.shape[1]) if len(np.unique(X[:, j])) > 10]
    curves = SplineTransformer(5, include_bias=False).fit_transform(X[:, many])
    dummies = (problem.group[:, None] == np.arange(1, problem.n_groups)).astype(float)
    Z = np.column_stack([curves, X, np.isnan(problem.X)[:, :], dummies])
    Z = StandardScaler().fit_transform(Z[:, Z.std(axis=0) > 0])
    Z = np.column_stack([~problem.tested, Z])
    model = LogisticRegression(C=100.0, max_iter=2000).fit(Z, truth)
    p = model.predict_proba(Z)[:, 1]
    design_matrix = np.column_stack([np.ones(len(Z)), Z])
    hessian = (design_matrix * (p * (1 - p))[:, None]).T @ design_matrix + 0.01 * np.eye(
        design_matrix.shape[1]
    )
    row = np.linalg.solve(hessian, design_matrix.T)[1]  # influence of a row on the coefficient
    error = survey_error(row * (truth - p), *design)
    value = float(model.coef_[0, 0])
    low, high = (float(np.exp(value + side * ERRORS * error)) for side in (-1, 1))
    return {"value": round(float(np.exp(value)), 3), "low": round(low, 3), "high": round(high, 3)}


def audited(data: str, outcome: str) -> list[dict[str, Any]]:
    """What the audit says of each group without the truth, and what is true."""
    warnings.simplefilter("ignore")
    from dcem import audit_labels

    problem, truth, _, _ = problem_of(data, outcome, weighted=False)
    audit = audit_labels(problem)
    testing = {rate.group: rate for rate in audit.testing}
    rows = []
    for one in audit.prevalence:
        mine = problem.parts()[one.group]
        row = {
            "outcome": outcome, "group": one.group, "people": int(mine.sum()),
            "tested": round(float(problem.tested[mine].mean()), 4),
            "truth": round(float(truth[mine].mean()), 4),
        }  # fmt: skip
        estimates = {"recorded": one.recorded, "tested_only": one.tested_only}
        estimates["doubly_robust"] = one.doubly_robust
        row |= {"least": one.limits[0], "most": one.limits[1]}  # nothing assumed out of reach
        if one.group in testing:
            estimates["difference"] = testing[one.group].difference
        for name, found in estimates.items():
            row |= {name: found.value, f"low_{name}": found.low, f"high_{name}": found.high}
        rows.append(row)
    print(f"audit of {outcome}:", *(f"[{one.severity}] {one.headline}" for one in audit.findings),
          sep="\n  ")  # fmt: skip
    return rows


def next_tests_tried(job: tuple[str, str, int]) -> list[dict[str, Any]]:
    """Further tests chosen in three ways: who is found, what is known of all, and a new model."""
    warnings.simplefilter("ignore")
    from dcem import Roles, SelectiveLabels, read_table
    from dcem.methods import make
    from dcem.metrics import auc, calibration_error
    from dcem.scoring import draw, fit_table, next_tests

    data, outcome, k = job
    problem, truth, fold, _ = problem_of(data, outcome, False)
    known, held = problem.subset(fold != k), problem.subset(fold == k)
    y, y_held = truth[fold != k], truth[fold == k]
    names = np.array(problem.group_names)[known.group]
    frame = pd.DataFrame(known.X, columns=list(known.feature_names))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        frame.assign(label=known.y_obs, group=names).to_csv(path, index=False)
        model = fit_table(read_table(path, Roles(label="label", group="group")), random_state=k)
        table = next_tests(model, path, BUDGET).table
    untested, rng = table["row"].to_numpy(), np.random.default_rng(k)
    alike = np.full(len(untested), BUDGET / len(untested))
    highest = np.zeros(len(untested))
    highest[np.argsort(-table["risk"].to_numpy())[:BUDGET]] = 1
    ways = {"next-tests": table["probability"].to_numpy(), "at random": alike}
    rows = []
    for way, chance in {"none": 0 * alike, "highest risk": highest, **ways}.items():
        chosen = untested[draw(chance, rng)] if way != "none" else untested[:0]
        seen = known.y_obs.copy()
        seen[chosen] = y[chosen]
        again = SelectiveLabels.from_arrays(frame, seen, group=names)
        fitted = make("ensemble", random_state=k, n_jobs=1).fit_problem(again)
        score = fitted.predict_proba(held.X)[:, 1]
        row = {
            "outcome": outcome, "fold": k, "way": way, "tests": len(chosen),
            "found": int(y[chosen].sum()), "auc": round(float(auc(y_held, score)), 4),
            "calibration_error": round(float(calibration_error(y_held, score)), 4),
            "prevalence_of_untested": round(float(y[untested].mean()), 4),
        }  # fmt: skip
        if way in ways:  # results weighted by one over the chance speak for all untested
            share = y[untested] / chance / len(untested)
            drawn = [share[draw(chance, rng)].sum() for _ in range(DRAWS)]
            row |= {"estimate": round(np.mean(drawn), 4), "spread": round(np.std(drawn), 5)}
        rows.append(row)
    return rows


def run(data: Path, out: Path, workers: int, again: list[str], minutes: float) -> None:
    begun = time.time()
    labels = [label for label in METHODS if not again or label in again]
    of_networks = [label for label in NETWORKS if not again or label in again]
    rows = [row for row in recorded("nhanes", out) if again and row["method"] not in again]
    cases = [(outcome, weighted) for weighted in (False, True) for outcome in OUTCOMES]
    jobs = [
        (str(data), *case, label, k) for case in cases for label in labels for k in range(FOLDS)
    ]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        waiting = pool.imap_unordered(score_fold, jobs)
        audits = [pool.apply_async(audited, (str(data), outcome)) for outcome in OUTCOMES]
        tried = [(str(data), outcome, k) for outcome in OUTCOMES for k in range(FOLDS)]
        trying = pool.imap_unordered(next_tests_tried, tried)
        scores: dict[tuple[str, bool], dict[str, np.ndarray]] = {case: {} for case in cases}
        for label in of_networks:
            if time.time() > begun + 60 * minutes:
                print(f"no time for {label} and those behind it", flush=True)
                break
            for case in cases[:2]:
                scores[case][label] = networks(str(data), *case, label)
            print(f"{label}: {time.time() - begun:.0f} s", flush=True)
        fold = problem_of(str(data), "diabetes", False)[2]
        for (_, outcome, weighted, label, k), score in waiting:
            whole = scores[outcome, weighted].setdefault(label, np.empty(len(fold)))
            whole[fold == k] = score
        print(f"fits: {time.time() - begun:.0f} s", flush=True)
        for found in pool.map(judged, [(str(data), *case, scores[case]) for case in cases]):
            rows += found
        record("nhanes_audit", [row for one in audits for row in one.get()], out,
               time.time() - begun)  # fmt: skip
        further = [row for found in trying for row in found]
    record("nhanes_next_tests", further, out, time.time() - begun)
    ratios = {outcome: odds_ratio(str(data), outcome) for outcome in OUTCOMES}
    record("nhanes", rows, out, time.time() - begun, odds_ratio_untested_to_tested=ratios)


def show(out: Path) -> None:
    for name in ("nhanes", "nhanes_audit"):
        print(pd.read_csv(out / f"{name}.csv").round(4).to_string(index=False))
    tried = pd.read_csv(out / "nhanes_next_tests.csv")
    print(tried.groupby(["outcome", "way"]).mean().drop(columns="fold").round(4).to_string())


if __name__ == "__main__":
    command(__doc__, run, show, data=Path("nhanes.csv.gz"), workers=CORES, again=[], minutes=120.0)
