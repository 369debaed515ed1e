"""Fits of every method on 200 rows, with fixed seeds: class *exact*, the default *announced*.

Fits are in float64, so that another processor's rounding stays far below the tolerance of 1e-6
(`keeping` tries that while recording). What draws random numbers in each step (noise, mixing,
halves) is left out here where it can be switched off, and else held by distribution
(`test_random.py`).
"""

from typing import Any

import names
import numpy as np
import pytest
from made_rows import at_times, made, of_people, signature, weighted
from sklearn.linear_model import LogisticRegression

PLAIN = {"precision": "float64", "seed": 7}
SMALL = PLAIN | {"widths": (16, 8)}
# What each method needs besides, to be quick, and to draw nothing at random in its steps.
QUICK: dict[str, dict[str, Any]] = {
    "dcem": {"steps": 10, "rounds": 3},
    "no-causal-regularization": {"steps": 10, "rounds": 3},
    "imputation-only": {"steps": 30},
    "sar-em": {"steps": 10, "rounds": 3},
    "self": {"steps": 30, "rounds": 2, "input_noise": 0.0},
    "dividemix": {"steps": 20},  # as long as it warms up, nothing is mixed
    "ipw": {"steps": 30, "testing_steps": 100},
    "heckman": {},
    "ensemble": {"steps": 60, "folds": 2, "processes": 1},
}
ROUNDS = ("dcem", "no-causal-regularization", "imputation-only", "sar-em")
HALVES = ("ipw corrected", "dr-learner")  # which half a row falls into is drawn
CASES = [
    f"{method} {variant}".strip()
    for method in (*names.PAPER, *names.BESIDES)
    for variant in names.variants(method)
]
NETWORKS = [case for case in CASES if case not in (*HALVES, "heckman", "ensemble")]
# The default is announced when it changes. Its trees choose among splits, which may nearly tie.
SPECIAL: dict[str, dict[str, Any]] = {"ensemble": {"kind": "announced", "tolerance": 1e-3}}


def split(case: str) -> tuple[str, str]:
    """Method and variant of a case."""
    method, _, variant = case.partition(" ")
    return method, variant


def settings(case: str, base: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What a fit is told: of `base`, the quick settings and `more`, as far as the method has it."""
    method, _ = split(case)
    chosen = base | QUICK.get(method, {"steps": 30}) | more
    return {name: value for name, value in chosen.items() if names.has(method, name)}


def without_stopping(case: str, base: dict[str, Any], rate: float = 0.01) -> dict[str, Any]:
    """The same with all steps taken, by the methods that can: those of rounds always look."""
    method, _ = split(case)
    stops = names.has(method, "patience") and method not in (*ROUNDS, "self")
    return settings(case, base, rate=rate) | ({"patience": None} if stops else {})


def values(model: Any, rows: dict[str, Any]) -> dict[str, Any]:
    """Scores of rows, and how far each member came."""
    steps = {"kept_at": names.kept_at(model)} if hasattr(model, "n_iter_") else {}
    return {"scores": names.scores(model, rows), **steps}


@pytest.mark.parametrize("case", [case for case in CASES if case not in HALVES])
def test_full_batches(golden, case):
    """30 steps of the usual network on all rows, validation rows given."""
    method, variant = split(case)

    def compute(nudge: float) -> dict[str, Any]:
        rows, held = made(200, 1, nudge=nudge), made(80, 2, nudge=nudge)
        if method in names.BESIDES:
            held = None
        given = without_stopping(case, PLAIN, rate=0.001)
        model = names.fit(method, variant, rows, held=held, **given)
        return values(model, made(24, 3))

    golden.check(f"full batches: {case}", compute, **SPECIAL.get(method, {}))


# Seed and learning rate with which one check less of patience, and two more, give other models.
STOPS: dict[str, tuple[int, float]] = {
    "y-obs": (59, 0.01),
    "y-model": (12, 0.02),
    "group-only": (49, 0.014),
    "tested-only": (18, 0.007),
    "tested-only-plus-group": (9, 0.01),
    "dragonnet corrected": (4, 0.02),
    "dragonnet published": (30, 0.02),
    "peer-loss corrected": (12, 0.02),
    "peer-loss published": (59, 0.01),
    "group-peer-loss corrected": (27, 0.02),
    "group-peer-loss published": (21, 0.02),
    "truncated-lq": (7, 0.02),
    "gjs": (27, 0.014),
    "ipw published": (31, 0.02),
    "dcem corrected": (19, 0.02),
    "dcem published": (1, 0.02),
    "imputation-only corrected": (11, 0.02),
    "imputation-only published": (9, 0.02),
    "no-causal-regularization corrected": (14, 0.02),
    "no-causal-regularization published": (2, 0.02),
    "sar-em corrected": (1, 0.02),
    "sar-em published": (1, 0.02),
}


def in_batches(case: str, nudge: float = 0.0, **more: Any) -> Any:
    """A fit in batches that stops early: a budget of 200 steps, two checks of patience."""
    method, variant = split(case)
    seed, rate = STOPS[case]
    given = settings(case, SMALL, rows_per_step=64, rate=rate, seed=seed, steps=200, patience=2)
    if method in ROUNDS:
        given |= {"steps": 10, "rounds": 20}
    return names.fit(method, variant, made(200, 1, nudge=nudge), **given | more)


@pytest.mark.parametrize("case", STOPS)
def test_batches_that_stop(golden, case):
    """Batches of 64 and two checks of patience: training ends before its budget."""

    def compute(nudge: float) -> dict[str, Any]:
        model = in_batches(case, nudge)
        budget = 20 if split(case)[0] in ROUNDS else 200 - 2 * 10
        assert all(number < budget for number in names.kept_at(model)), names.kept_at(model)
        return values(model, made(24, 3)) | {"held_out": np.flatnonzero(names.held_out(model, 200))}

    if golden.record:  # a golden that every patience satisfies would not see a wrong one
        expected = names.scores(in_batches(case), made(24, 3))
        for patience in (1, 4):
            other = names.scores(in_batches(case, patience=patience), made(24, 3))
            assert np.abs(other - expected).max() > 1e-4, (case, patience)
    golden.check(f"batches that stop: {case}", compute)


@pytest.mark.parametrize("case", [case for case in CASES if case not in HALVES])
def test_sample_weights(golden, case):
    method, variant = split(case)

    def compute(nudge: float) -> dict[str, Any]:
        rows = weighted(made(200, 1, nudge=nudge), 4)
        given = without_stopping(case, SMALL)
        return values(names.fit(method, variant, rows, **given), made(24, 3))

    golden.check(f"sample weights: {case}", compute, **SPECIAL.get(method, {}))


@pytest.mark.parametrize("case", [*NETWORKS, "heckman"])
def test_two_members(golden, case):
    method, variant = split(case)

    def compute(nudge: float) -> dict[str, Any]:
        rows, test = made(200, 1, nudge=nudge), made(24, 3)
        given = settings(case, SMALL, rate=0.01, members=2)
        model = names.fit(method, variant, rows, **given)
        spread = names.disagreement(model, test)
        assert spread.max() > 1e-4
        return values(model, test) | {"spread": spread}

    golden.check(f"two members: {case}", compute)


@pytest.mark.parametrize(
    ("case", "batches"),
    [(case, False) for case in NETWORKS]
    # unclipped weights in batches of few tested rows would hang on rounding
    + [(case, True) for case in STOPS if case != "ipw published"],
)
def test_three_tables_together(golden, case, batches):
    """Tables of 200, 140 and 171 rows in one call: shorter ones are padded inside."""
    method, variant = split(case)

    def compute(nudge: float) -> dict[str, Any]:
        tables = [made(n, 10 + n, nudge=nudge) for n in (200, 140, 171)]
        given = settings(case, SMALL, rate=0.01) | ({"rows_per_step": 64} if batches else {})
        models = names.fit_together(method, variant, tables, (3, 4, 5), **given)
        test = made(10, 3)
        return {f"scores_{k}": names.scores(model, test) for k, model in enumerate(models)}

    golden.check(f"three tables{', batches' if batches else ''}: {case}", compute)


@pytest.mark.parametrize("case", [case for case in CASES if case not in HALVES])
def test_long_tables(golden, case):
    """Scores of 70,000 rows by a network in single precision, which scores in double precision.

    Single precision keeps seven digits: after 30 steps, 1e-4 is left to other processors.
    """
    method, variant = split(case)
    test = made(70_000, 5)
    single = {"precision": "float32", "seed": 7, "widths": (16, 8)}

    def compute(nudge: float) -> dict[str, Any]:
        rows = made(200, 1, nudge=1e6 * nudge)
        model = names.fit(method, variant, rows, **without_stopping(case, single))
        scores = names.scores(model, test)
        row = {name: column[66_001:66_002] for name, column in test.items()}
        assert names.scores(model, row)[0] == pytest.approx(scores[66_001], abs=1e-12)
        assert (scores != scores.astype(np.float32)).any()
        return signature(scores) | {"rows": scores[::3500]}

    # where its two terms nearly cancel, Adam turns the last digits of peer loss into whole steps
    tolerance = {"tolerance": 0.01 if case == "peer-loss corrected" else 1e-4}
    golden.check(f"long tables: {case}", compute, **tolerance | SPECIAL.get(method, {}))


STOPPING = {"steps": 10, "rounds": 20, "patience": 2, "rate": 0.02}
LONG = {"steps": 100, "rate": 0.2, "rounds": 6, "patience": 2}
# Settings away from their defaults: a default of 1 or 0 would hide that something is not used.
OPTIONS: dict[str, dict[str, Any]] = {
    "dcem corrected": {"temperature": 2.0},
    "dcem corrected, cold": {"temperature": 0.25, "start": "tested-only"},
    # with these seeds the temperature of validation rows decides when to stop
    "dcem published, cold": STOPPING | {"temperature": 0.25, "seed": 13},
    "dcem published, warm": STOPPING | {"temperature": 3.0, "seed": 15},
    "dcem corrected, literal": {"start": "algorithm-1", "keeps_weights": False},
    "dcem corrected, half": {"causal_weight": 0.5},
    "dcem corrected, decided": {"recorded_decision": True},
    "dcem corrected, foreign": {"testing_classifier": LogisticRegression()},
    "dcem corrected, decay": {"decay": 0.1},
    "dcem published": {"schedule": "published", "testing_steps": 50},
    "no-causal-regularization published": {"schedule": "published", "testing_steps": 50},
    "imputation-only published": {"schedule": "published", "testing_steps": 50, "start": "variant"},
    "sar-em corrected": {"keeps_weights": False, "testing_rate": 0.003, "decay": 0.1},
    "sar-em published": {"testing_rate": 0.003},
    "truncated-lq": {"exponent": 0.5, "cut": 0.45},
    "gjs": {"label_weight": 0.3},
    "group-only": {"group": 1},
    "dragonnet corrected": {"targeted_weight": 0.5, "group_head_weight": 2.0, "reference": 1},
    "dragonnet published": {"targeted_weight": 1.0},
    "peer-loss corrected": {"missed": 0.3},
    "group-peer-loss corrected": {"missed_by_group": (0.4, 0.2)},
    "self corrected": {"drops_positives": True, "agreement_weight": 3.0, "momentum": 0.5},
    "self published": {"teacher_decay": 0.5, "prediction_decay": 0.5, "rate": 0.1, "rounds": 4},
    # long enough to drop labels and to end by themselves, where the variants part
    "self corrected, long": LONG | {"seed": 5},
    "self published, long": LONG | {"seed": 5},
    "self corrected, slow": LONG | {"seed": 5, "steps": 200, "rate": 0.1},
    "self published, slow": LONG | {"seed": 5, "steps": 200, "rate": 0.1},
    "y-obs": {"decay": 0.1, "scaling": None},
    "tested-only": {"widths": (8,), "decay": 0.01},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(golden, name):
    case = name.split(",")[0]
    method, variant = split(case)

    def compute(nudge: float) -> dict[str, Any]:
        unscaled = OPTIONS[name].get("scaling", "") is None  # features as they are: without gaps
        rows, test = made(200, 1, nudge=nudge, missing=not unscaled), made(24, 3, missing=False)
        given = settings(case, SMALL, rate=0.01) | OPTIONS[name]
        return values(names.fit(method, variant, rows, **given), test)

    golden.check(f"options: {name}", compute)


@pytest.mark.parametrize(
    "case",
    [
        *(
            "tested-only-plus-group",
            "ipw published",
            "dragonnet corrected",
            "group-peer-loss corrected",
        ),
        *("group-peer-loss published", "sar-em corrected", "dcem corrected", "dcem published"),
    ],
)
def test_four_groups(golden, case):
    method, variant = split(case)

    def compute(nudge: float) -> dict[str, Any]:
        rows, test = made(200, 6, n_groups=4, nudge=nudge), made(24, 3, n_groups=4)
        return values(names.fit(method, variant, rows, **settings(case, SMALL, rate=0.01)), test)

    golden.check(f"four groups: {case}", compute)


@pytest.mark.parametrize("case", ["y-obs", "tested-only", "dcem corrected", "sar-em corrected"])
@pytest.mark.parametrize("change", [of_people, at_times])
def test_rows_held_out(golden, case, change):
    """Visits of 80 people, who are held out as a whole; and rows in time, the last held out."""
    method, variant = split(case)

    def compute(nudge: float) -> dict[str, Any]:
        model = names.fit(
            method, variant, change(made(200, 1, nudge=nudge), 8), **settings(case, SMALL)
        )
        held = np.flatnonzero(names.held_out(model, 200))
        return values(model, made(24, 3)) | {"held_out": held}

    golden.check(f"{change.__name__}: {case}", compute)


FACTS = {
    "imperfect test": {"sensitivity": 0.8, "specificity": 0.95},
    "known prevalence": {"prevalence": 0.25},
    "both": {"sensitivity": 0.8, "specificity": 0.95, "prevalence": {"a": 0.2, "b": ".4-.5"}},
}


@pytest.mark.parametrize("facts", FACTS)
@pytest.mark.parametrize("case", ["tested-only", "dcem corrected", "sar-em corrected", "ensemble"])
def test_stated_facts(golden, case, facts):
    method, variant = split(case)

    def compute(nudge: float) -> dict[str, Any]:
        rows = made(200, 1, nudge=nudge)
        given = settings(case, SMALL, rate=0.01)
        return values(names.fit(method, variant, rows, facts=FACTS[facts], **given), made(24, 3))

    golden.check(f"{facts}: {case}", compute, **SPECIAL.get(method, {}))


@pytest.mark.parametrize("learner", ["linear", "boost"])
@pytest.mark.parametrize("method", ["y-obs", "y-model", "group-only", "tested-only", "ipw"])
def test_other_learners(golden, method, learner):
    """Methods with another learner than networks; trees get the room of a split that ties."""

    def compute(nudge: float) -> dict[str, Any]:
        variant = "corrected" if method in names.WITH_VARIANTS else ""
        rows = weighted(made(400, 1, nudge=nudge), 4)
        model = names.fit(method, variant, rows, seed=7, learner=learner, members=2)
        return {"scores": names.scores(model, made(24, 3))}

    golden.check(f"learners: {method}:{learner}", compute, tolerance=1e-3)


def test_heckman_with_an_excluded_variable(golden):
    def compute(nudge: float) -> dict[str, Any]:
        rows = made(400, 1, nudge=nudge)
        model = names.fit("heckman", "", rows, seed=7, excluded=(1,))
        return {"scores": names.scores(model, made(24, 3))}

    golden.check("heckman with an excluded variable", compute)


@pytest.mark.parametrize(
    "method", [m for m in names.WITH_VARIANTS if m not in ("ipw", "dividemix")]
)
def test_the_records_tell_the_variants_apart(golden, method):
    """Of `ipw` and `dividemix` the records by distribution do."""
    corrected = {
        case: record["values"]
        for case, record in golden.cases.items()
        if f": {method} corrected" in case
    }
    differing = [
        case
        for case, values in corrected.items()
        if (other := golden.cases.get(case.replace("corrected", "published")))
        and np.abs(np.subtract(*(r.get("scores", 0) for r in (values, other["values"])))).max()
        > 1e-3
    ]
    assert differing
