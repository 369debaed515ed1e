"""Every name of the package that a golden uses, in one place.

This is the one golden file that may be edited when rooms and names move. A golden asks for a method
by its public name and for a setting by its meaning (`PARAMETER`); what comes back is plain: arrays,
numbers, text. An edit here may follow a name, and must not change a value.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import dcem
from dcem import SelectiveLabels
from dcem.methods import fit_many, published
from dcem.methods import make as make_method
from dcem.metrics import auc, roc_gap

__all__ = ["auc", "roc_gap"]

Told = dcem.DataWarning  # what is read, with a word about it
Refused = dcem.InputError  # what is told in a sentence rather than guessed

ROOT = Path(__file__).resolve().parents[2]
RECORDED_RUNS = ROOT / "results" / "methods.csv"  # the fits that were compared with the paper

# -- methods ---------------------------------------------------------------------------------------

SUPERVISED = (
    *("y-obs", "y-model", "group-only", "tested-only", "tested-only-plus-group"),
    *("dragonnet", "peer-loss", "group-peer-loss", "truncated-lq", "gjs"),
)
WEIGHTED = ("ipw", "dr-learner")
EM = ("dcem", "imputation-only", "no-causal-regularization", "sar-em")
PAPER = (*SUPERVISED, *WEIGHTED, *EM, "self", "dividemix")  # the 18 methods of the paper
BESIDES = ("heckman", "ensemble")
WITH_VARIANTS = (
    *("ipw", "dragonnet", "peer-loss", "group-peer-loss", "self", "dividemix", "sar-em"),
    *("dcem", "imputation-only", "no-causal-regularization"),
)
VARIANTS = ("corrected", "published")
TOLD_THE_TRUTH = (  # besides y-model, as published only
    *("peer-loss published", "group-peer-loss published", "sar-em published"),
)

# Meaning of a setting -> the parameter that has it. Methods have some of them each.
PARAMETER = {
    "seed": "random_state",
    "widths": "hidden",
    "members": "n_members",
    "rows_per_step": "batch_size",
    "precision": "dtype",
    "scaling": "preprocess",
    "steps": "steps",
    "rounds": "max_iter",
    "rate": "learning_rate",
    "decay": "weight_decay",
    "patience": "patience",
    "learner": "learner",
    "group": "group",
    # loss functions
    "exponent": "q",
    "cut": "k",
    "predictions": "n_distributions",
    "label_weight": "label_weight",
    "input_noise": "noise",
    "missed": "noise_rate",
    "missed_by_group": "noise_rates",
    "smallest_chance": "clip",
    # dragonnet
    "reference": "reference",
    "group_head_weight": "group_weight",
    "targeted_weight": "targeted_weight",
    # DCEM
    "schedule": "schedule",
    "start": "start",
    "causal_weight": "regularization",
    "temperature": "temperature",
    "recorded_decision": "hard_t",
    "keeps_weights": "carry_weights",
    "testing_model": "propensity_settings",
    "testing_classifier": "propensity",
    # SAR-EM
    "testing_rate": "propensity_learning_rate",
    # SELF
    "momentum": "momentum",
    "agreement_weight": "consistency",
    "teacher_decay": "teacher_decay",
    "prediction_decay": "ensemble_decay",
    "drops_positives": "filter_positives",
    # DivideMix
    "warm_up": "warm_up",
    "doubtful_weight": "unlabelled_weight",
    "ramp": "ramp",
    "mixing": "mixup",
    "prior": "prior",
    "protects_positives": "protect_positives",
    # heckman and ensemble
    "excluded": "excluded",
    "folds": "n_folds",
    "processes": "n_jobs",
}


def variants(method: str) -> tuple[str, ...]:
    """Names of the variants of a method; a method without has one, called ""."""
    return VARIANTS if method in WITH_VARIANTS else ("",)


def has(method: str, setting: str) -> bool:
    """Whether a method has a setting."""
    setting = "testing_model" if setting == "testing_steps" else setting
    return PARAMETER[setting] in make_method(method).get_params(deep=False)


def made(method: str, variant: str = "", **settings: Any) -> Any:
    """The method with these settings, unfitted."""
    if "testing_steps" in settings:  # of the network for P(tested), otherwise as published
        from dcem.methods.registry import PropensitySettings

        settings["testing_model"] = PropensitySettings(steps=settings.pop("testing_steps"))
    given = {PARAMETER[meaning]: value for meaning, value in settings.items()}
    out = make_method(method, **({"variant": variant} if variant else {}), **given)
    # where the networks live must not depend on what the machine has
    return out.set_params(device="cpu") if "device" in out.get_params(deep=False) else out


def table(rows: Mapping[str, Any], **facts: Any) -> SelectiveLabels:
    """Rows as methods take them: `X`, `truth`, `tested`, `group`, maybe `weight`, `person`, `time`.

    `facts` are `sensitivity` and `specificity` of the test, and a known `prevalence`.
    """
    names = {"sensitivity": "test_sensitivity", "specificity": "test_specificity"}
    return SelectiveLabels.from_arrays(
        rows["X"],
        np.where(rows["tested"], rows["truth"], np.nan),
        group=rows["group"],
        weight=rows.get("weight"),
        id=rows.get("person"),
        time=rows.get("time"),
        **{names.get(name, name): value for name, value in facts.items()},
    )


def _truth(method: str, variant: str, rows: Any, held: Any) -> Any:
    """The truth of training and validation rows, for the methods that are told."""
    if method != "y-model" and f"{method} {variant}" not in TOLD_THE_TRUTH:
        return None
    return rows["truth"] if held is None else (rows["truth"], held["truth"])


def fit(
    method: str,
    variant: str,
    rows: Mapping[str, Any],
    *,
    held: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Any:
    """A fitted model; `held` are rows to decide on stopping, else some of `rows` are held out."""
    facts = facts or {}
    return made(method, variant, **settings).fit_problem(
        table(rows, **facts),
        validation=None if held is None else table(held, **facts),
        truth=_truth(method, variant, rows, held),
    )


def fit_together(
    method: str,
    variant: str,
    tables: Sequence[Mapping[str, Any]],
    seeds: Sequence[int],
    **settings: Any,
) -> list[Any]:
    """A fitted model of each table, by one call."""
    return fit_many(
        made(method, variant, **settings),
        [table(rows) for rows in tables],
        truths=[_truth(method, variant, rows, None) for rows in tables],
        random_states=list(seeds),
    )


def _group(model: Any, rows: Mapping[str, Any]) -> dict[str, Any]:
    return {"sensitive_features": rows["group"]} if model.needs_group else {}


def scores(model: Any, rows: Mapping[str, Any]) -> np.ndarray:
    """The score of each row."""
    return np.asarray(model.predict_proba(rows["X"], **_group(model, rows))[:, 1])


def disagreement(model: Any, rows: Mapping[str, Any]) -> np.ndarray:
    """Standard deviation of the members' scores of each row."""
    return np.asarray(model.spread(rows["X"], **_group(model, rows)))


def kept_at(model: Any) -> list[int]:
    """How far each member came: the step (or, in EM, the number of rounds) it reports."""
    return [int(number) for number in np.atleast_1d(model.n_iter_)]


def has_testing_model(model: Any) -> bool:
    """Whether a fitted model says how probable each test was."""
    return hasattr(model, "propensity_")


def testing_probability(model: Any) -> np.ndarray:
    """P(tested) of each training row, by a model that has a model of testing."""
    return np.asarray(model.propensity_)


def held_out(model: Any, n_rows: int) -> np.ndarray:
    """Which rows were held out of training `[n]`."""
    out = np.ones(n_rows, dtype=bool)
    out[model.train_rows_] = False
    return out


# -- published choices -----------------------------------------------------------------------------

_ROUNDS_OF = {"dcem", "imputation-only", "no-causal-regularization"}
_STAGE = ("steps", "rate", "decay", "patience")
_OWN = {
    "group-only": ("group",),
    "ipw": ("smallest_chance",),
    "dr-learner": ("smallest_chance",),
    "dragonnet": ("reference", "group_head_weight"),
    "truncated-lq": ("exponent", "cut"),
    "gjs": ("predictions", "label_weight"),
    "self": (
        *("rounds", "momentum", "agreement_weight", "input_noise", "teacher_decay"),
        *("prediction_decay", "drops_positives"),
    ),
    "dividemix": (
        *("warm_up", "doubtful_weight", "ramp", "temperature", "mixing", "prior"),
        "protects_positives",
    ),
    "sar-em": ("rounds", "testing_rate", "keeps_weights"),
    "dcem": ("start", "causal_weight", "temperature", "recorded_decision", "keeps_weights"),
}


def choices(method: str, task: str) -> dict[str, Any]:
    """Every choice of the published run of a method on a task ("sinusoid", "sepsis"), by meaning.

    What a parameter leaves to a schedule or a variant is resolved: the values are those that count.
    """
    run = published(method, task)
    value = run.get_params(deep=False)
    own = _OWN.get("dcem" if method in _ROUNDS_OF else method, ())
    names = ("seed", "widths", "members", "rows_per_step", "precision", "scaling", *own)
    if method not in _ROUNDS_OF:
        names += tuple(name for name in _STAGE if PARAMETER[name] in value)
    out = {name: value[PARAMETER[name]] for name in names}
    out["variant"] = value.get("variant", "")
    if "start" in out:
        out["start"] = run._start
    if method == "dragonnet":
        out["targeted_weight"] = run._targeted
    if method in WEIGHTED:
        from dcem.methods.weighting_networks import PUBLISHED

        _add_testing_model(out, value["propensity_settings"] or PUBLISHED)
    if method in _ROUNDS_OF:
        _add_rounds(out, run)
    if own == _OWN["self"]:
        out.pop("patience")
        out["rounds_without_gain"] = value["patience"]
    return dict(sorted(out.items()))


def _add_rounds(out: dict[str, Any], run: Any) -> None:
    """How long EM runs, what it watches and keeps, and how its testing model is trained."""
    em, testing = run._settings(SimpleNamespace(pace=None, batch_size=None))
    out |= {
        "rounds": em.max_iter,
        "steps_per_round": em.steps,
        "rate": em.learning_rate,
        "decay": em.weight_decay,
        "rounds_without_gain": em.patience,
        "fresh_optimizer_each_round": em.fresh_optimizer,
        "watched_loss": em.watch,
        "returned_round": em.keep,
        "keeps_weights": em.carry_weights,
        "causal_weight": em.strength,
        "recorded_decision": em.hard_t,
    }
    _add_testing_model(out, testing)


def _add_testing_model(out: dict[str, Any], settings: Any) -> None:
    out |= {
        "testing_widths": settings.hidden,
        "testing_steps": settings.steps,
        "testing_rate": settings.learning_rate,
        "testing_steps_between_checks": settings.check_every,
        "testing_patience": settings.patience,
        "testing_weights_kept": settings.keep,
    }


# -- published draws and the paper -----------------------------------------------------------------


def draw(q_y: float, k: float, q_t: float, phase: float) -> dict[str, dict[str, np.ndarray]]:
    """The rows of a published draw: split -> `X`, `tested`, `truth`, `group`."""
    from dcem.tasks import make_sinusoid

    task = make_sinusoid(q_y=q_y, k=k, q_t=q_t, phase=phase, preset="as-released")
    return {
        name: {"X": part.X, "tested": part.tested, "truth": task.truth[name], "group": part.group}
        for name, part in (("train", task.train), ("validation", task.validation))
    } | {
        "test": {
            "X": task.test.X,
            "tested": task.test.tested,
            "truth": task.truth["test"],
            "group": task.test.group,
        }
    }


def simulated(
    q_y: float, k: float, q_t: float, phase: float, *, seed: int, n_train: int, n_test: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Training and test rows of a fresh draw of the simulation."""
    from dcem.tasks import make_sinusoid

    task = make_sinusoid(
        q_y, k, q_t, phase, stream="independent", random_state=seed,
        n_train=n_train, n_validation=100, n_test=n_test,
    )  # fmt: skip
    train, test = (
        {"X": part.X, "tested": part.tested, "truth": task.truth[name], "group": part.group}
        for name, part in (("train", task.train), ("test", task.test))
    )
    return train, test


def compared_with_paper() -> pd.DataFrame:
    """The recorded runs beside the published figures: a row for each setting, method, metric."""
    from dcem.benchmark.read import results
    from dcem.paper.agreement import compare_published

    return compare_published(results(RECORDED_RUNS, None, unfinished=True))


# -- tables, audits, comparisons ------------------------------------------------------------------


def read(source: Any, **roles: Any) -> Any:
    """A table read with these roles."""
    return dcem.read_table(source, dcem.Roles(**roles))


def read_alike(table: Any, source: Any) -> Any:
    """Another table read as a model of the first would read it."""
    return dcem.read_table(source, table.roles, encoder=table.encoder)


def features(table: Any) -> dict[str, np.ndarray]:
    """Name of a feature -> its values; NaN where missing."""
    return dict(zip(table.problem.feature_names, table.problem.X.T, strict=True))


def columns(table: Any) -> dict[str, tuple[str, str]]:
    """Name of a column of the file -> what it was read as, and the note about it."""
    return {
        one.name: (one.kind if one.role == "feature" else one.role, one.note)
        for one in table.columns
    }


def rows(table: Any) -> dict[str, Any]:
    """Labels (NaN where untested), who was tested, and the group of each row."""
    problem = table.problem
    names = np.asarray(problem.group_names, dtype=object)
    return {"label": problem.y_obs, "tested": problem.tested, "group": names[problem.group]}


def sinusoid(rows: int) -> pd.DataFrame:
    """A draw of the paper's simulation as a table: features, group and the label `flu`."""
    task = dcem.tasks.make_sinusoid(q_y=0.5, k=1.0, q_t=2.0)
    people = task.train
    frame = pd.DataFrame(people.X, columns=["x1", "x2"])
    frame = frame.assign(group=people.group, flu=people.y_obs)
    return frame[:: len(frame) // rows]


def audit(table: Any, **options: Any) -> Any:
    """The audit of a table that `read` returned."""
    found = {leak.column: leak.sentence for leak in table.leaks}
    return dcem.audit_labels(table.problem, suspicious=found, **options)


NOT_ESTIMATES = ("findings.", "testing.each")  # said elsewhere


def audit_numbers(table: Any) -> pd.DataFrame:
    """Every estimate of an audit: about, of, value, low, high."""
    frame = audit(table).to_frame()
    frame = frame[~frame["about"].str.startswith(NOT_ESTIMATES)]
    return _numbered(frame)


COMPARED = ("tested-only:linear", "tested-only:boost")


def compare_numbers(table: Any) -> pd.DataFrame:
    """Every estimate of a comparison: about (method, target, metric), of, value, low, high."""
    result = dcem.compare_methods(table.problem, COMPARED, planted=0, n_resamples=100)
    frame = result.to_frame()
    about = frame["method"] + " " + frame["target"] + " " + frame["metric"]
    return _numbered(frame.assign(about=about))


def _numbered(frame: pd.DataFrame) -> pd.DataFrame:
    """The estimates, numbered where several have one name."""
    frame = frame.assign(of=frame["of"].fillna("").astype(str))
    again = frame.groupby(["about", "of"]).cumcount()
    frame["of"] += [f" #{n}" if n else "" for n in again]
    return frame[["about", "of", "value", "low", "high"]].reset_index(drop=True)


def is_exact(about: str) -> bool:
    """True if an estimate counts people and rests on no model of testing or risk."""
    return about in (
        "testing.crude",
        "yields.rate",
        "prevalence.recorded",
        "prevalence.tested_only",
    )


def model(table: Any, method: str = "tested-only:linear") -> Any:
    """A fitted model of a table that `read` returned."""
    return dcem.scoring.fit_table(table, method, random_state=0).explained(table)


def quick_default(table: Any) -> Any:
    """The default of a table that `read` returned, made of one part, which is fast."""
    fitted = make_method("ensemble", parts=("linear",), random_state=0).fit_problem(table.problem)
    from dcem.scoring import TableModel

    return TableModel(fitted, table.encoder, table.roles, table.source).explained(table)


def watched(fitted: Any, later: pd.DataFrame) -> Any:
    """Monitoring of a model on people who came later."""
    table = dcem.read_table(later, fitted.roles_of_new, encoder=fitted.encoder)
    return dcem.monitor_model(fitted, table)


def monitor_numbers(fitted: Any, later: pd.DataFrame) -> pd.DataFrame:
    """Every change that monitoring works out: about, of, value, low, high.

    What was and what is have the width of the interval of their difference.
    """
    frame = watched(fitted, later).to_frame()
    half = (frame["high"] - frame["low"]) / 2
    parts = []
    for what in ("then", "now", "difference"):
        part = frame.assign(about=frame["about"] + " " + what, value=frame[what])
        if what != "difference":
            part = part.assign(low=part["value"] - half, high=part["value"] + half)
        parts.append(part)
    return _numbered(pd.concat(parts))


def next_tests_numbers(fitted: Any, later: pd.DataFrame, budget: float) -> pd.DataFrame:
    """Probabilities of being tested next, by group and by fifths of the risk."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "later.csv"
        later.to_csv(file, index=False)
        listed = dcem.scoring.next_tests(fitted, file, budget)
    people = listed.table
    fifth = pd.qcut(people["risk" if "risk" in people else "score"], 5, labels=False).astype(str)
    by_group = people.groupby("group")["probability"].sum()
    by_risk = people.groupby(fifth)["probability"].sum()
    parts = [("tests in group", by_group), ("tests in fifth", by_risk)]
    frame = pd.concat(
        pd.DataFrame({"about": about, "of": sums.index, "value": sums}) for about, sums in parts
    )
    # how far a sum may move: some 1.3 % of it
    return _numbered(frame.assign(low=0.9 * frame["value"], high=1.1 * frame["value"]))


def findings(result: Any) -> dict[str, Any]:
    """Key -> the findings that carry it, each with `severity` and `groups`."""
    keys: dict[str, Any] = {}
    for finding in result.findings:
        keys.setdefault(finding.key, []).append(finding)
    return keys


def arrays(features: Any, label: Any, **facts: Any) -> SelectiveLabels:
    """People from arrays or frames, checked; `facts` are roles such as `group` and `decider`."""
    return SelectiveLabels.from_arrays(features, label, **facts)


def people(problem: SelectiveLabels) -> np.ndarray:
    """The person behind each row, as a number."""
    return problem.person


def chance_of_testing(table: Any) -> np.ndarray:
    """The known probability of being tested of each row that was kept."""
    return table.problem.testing_probability


def leaks(table: Any) -> set[str]:
    """Columns that look as if they were recorded after the decision."""
    return {leak.column for leak in table.leaks}


def proposed(source: Any, **known: Any) -> dict[str, Any]:
    """Roles that looking at a table proposes."""
    return dcem.table.propose_roles(source, **known).roles


def _linear(classes: int, seed: int) -> dict[str, Any]:
    return {"linear": LogisticRegression(max_iter=200)}


def audit_of(problem: SelectiveLabels, **options: Any) -> Any:
    """The audit of people from arrays, by straight lines, which is fast."""
    return dcem.audit_labels(problem, learners=_linear, **options)


def judge(
    problem: SelectiveLabels,
    chance: np.ndarray,
    risk: np.ndarray,
    *,
    known: bool = False,
    **options: Any,
) -> Any:
    """Estimates about people with these chances of a test and risks, such as `auc(target, score)`.

    `known` says that tests were drawn with these chances.
    """
    from dcem.estimation.nuisances import Nuisances

    given = Nuisances(chance, risk, known=known)
    return dcem.estimation.Evaluator(problem, nuisances=given, **options)


def testing(result: Any) -> dict[str, Any]:
    """Group -> how often it is tested: `crude`, `others`, and more."""
    return {rate.group: rate for rate in result.testing}


def tested_differently(result: Any) -> set[str]:
    """Groups that are clearly tested more or less than others at equal features."""
    return {rate.group for rate in result.clear(result.testing)}


def decider_comparison(result: Any) -> Any:
    """What an audit says of deciders: p-values of `mix` and `testing`, and features `within`."""
    return result.deciders.compared


def changes(result: Any, about: str) -> dict[str, Any]:
    """Group -> a change that monitoring worked out: `then`, `now`, `difference`, `clear`."""
    return {change.of: change for change in result.about(about)}


def scorer(target: str) -> Any:
    """A scorer of scikit-learn's form: of a model, features and labels that may be missing."""
    return dcem.estimation.scorer(target)


def comparison(problem: SelectiveLabels, methods: Sequence[str] = COMPARED, **options: Any) -> Any:
    """A quick comparison of methods."""
    quick: dict[str, Any] = {"planted": 0, "n_resamples": 2, "n_folds": 2, "n_members": 1}
    return dcem.compare_methods(problem, methods, **(quick | options))


def ordered_by(result: Any) -> set[str]:
    """Targets by which a comparison orders methods: "tested", "ipw", "dr", "truth"."""
    return set(result.standings)


def gap_by_chance(y: Any, score: Any, group: Any) -> Any:
    """The ROC gap with its interval and p-value."""
    return dcem.metrics.bootstrap(y, score, group, n_resamples=50).roc_gap


def scored_together(models: Sequence[Any], problems: Sequence[SelectiveLabels]) -> list[np.ndarray]:
    """Scores of several models, by one call."""
    from dcem.methods.fleets import score_many

    return [np.asarray(score) for score in score_many(models, problems)]


def fit_all(method: Any, problems: Sequence[SelectiveLabels], seeds: Sequence[int]) -> list[Any]:
    """A fitted model of each problem, by one call."""
    return fit_many(method, list(problems), random_states=list(seeds))


def reloaded(model: Any, folder: Path) -> Any:
    """A model that was saved to a folder and loaded from there."""
    from dcem.saving import load_model

    model.save(folder)
    return load_model(folder)


def fit_learner(table: Any, method: str, learner: str) -> Any:
    """A model of a table, of a method with a learner."""
    return dcem.scoring.fit_table(table, method, learner=learner, n_members=1)


def like_tested(fitted: Any, source: Any) -> np.ndarray:
    """Which rows of a frame are like those who were tested."""
    return np.asarray(fitted.score(source).like_tested)


def auc_limits(result: Any) -> tuple[float, float]:
    """Lowest and highest AUC of the first method at the first strength of a hidden cause."""
    method = result.bounds.methods[0]
    return float(method.auc_low[0]), float(method.auc_high[0])


def scores_of_folder(folder: Path, frame: pd.DataFrame) -> np.ndarray:
    """Scores of a frame by the model that lies in a folder now."""
    import pyarrow as pa

    batches = list(dcem.scoring.score_batches(folder, [pa.Table.from_pandas(frame)]))
    name = "risk" if "risk" in batches[0].schema.names else "score"
    return np.concatenate([batch.column(name).to_numpy() for batch in batches])


def taken(table: Any, saved: Mapping[str, Any], folder: Path) -> str:
    """The method that `fit` takes for a table by a comparison of it that was saved."""
    about = {"SHA-256": table.source.sha256, "rows": str(len(table.problem)), "label": "y"}
    place = folder / "comparison.json"
    place.write_text(json.dumps({"data": about, **saved}))
    return dcem.scoring.choice_for(table, place).method
