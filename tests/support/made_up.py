"""A comparison on a table with made-up numbers: pages must show them and invent none."""

from math import nan

import numpy as np

from dcem.compare.results import (
    CalibrationPoints,
    ComparedGroup,
    Curve,
    DecisionCurve,
    FitHistory,
    Judgement,
    MethodResult,
    Planted,
    PlantedFamily,
    PlantedScore,
    Standing,
    TableComparison,
    TestingByScore,
)
from dcem.estimation.findings import Finding
from dcem.estimation.results import EVERYBODY, Histogram, Nuisance, Overlap, Target
from dcem.metrics.estimate import Estimate

GROUPS = ("Caucasian", "AfricanAmerican", "Hispanic <b> $1$", "other & unknown")
TARGETS = (
    Target("tested", "among the tested", "Always right, of the tested."),
    Target("ipw", "everybody, weighted", "Right if the features explain who is tested."),
    Target(
        "dr", "everybody, doubly robust", "Right if one of two models is: of testing, of outcome."
    ),
)
TRUTH = Target("truth", "truth", "Always right.")


def around(value: float, width: float = 0.02) -> Estimate:
    return Estimate(value, value - width, value + width)


def judgement(target: str, auc: float, rng: np.random.Generator, first: bool) -> Judgement:
    rise = np.linspace(0, 1, 400)
    power = [(1 - auc) / auc * factor for factor in (0.9, 1.0, 1.15, 1.3)]
    risk = np.linspace(0.03, 0.6, 10)

    def points(bias: float, bins: int = 10) -> CalibrationPoints:
        seen = np.clip(risk * bias + rng.normal(0, 0.01, 10), 0, 1)[:bins]
        low, high = seen - 0.04, seen + 0.04
        return CalibrationPoints(risk[:bins], seen, low, high, np.full(bins, 0.1))

    threshold = np.linspace(0.02, 0.5, 25)
    benefit = 0.18 * (1 - threshold / 0.55)
    missing = Estimate(nan, reason="one group has 7 positives, and 10 are needed")
    return Judgement(
        target=target,
        auc=around(auc),
        group_auc={g: around(auc - 0.01 * i) for i, g in enumerate(GROUPS)},
        auc_differences={
            (a, b): around(0.01, 0.03) if b != GROUPS[3] else missing
            for i, a in enumerate(GROUPS)
            for b in GROUPS[i + 1 :]
        },
        roc_gap=Estimate(0.06, 0.03, 0.11),
        gap_pair=(GROUPS[0], GROUPS[2]),
        auc_against={g: around(-0.03) if i else missing for i, g in enumerate(GROUPS[1:])},
        gap_by_chance=0.034,
        gap_p_values={(GROUPS[0], GROUPS[2]): 0.01},
        xauc={(GROUPS[0], GROUPS[1]): around(0.7), (GROUPS[1], GROUPS[0]): around(0.68)},
        when_acting={
            "true_positive_rate": {g: around(0.4) for g in GROUPS},
            "precision": {g: around(0.3) for g in GROUPS},
            "share_acted_on": {g: around(0.1) for g in GROUPS},
        },
        calibration_error=around(0.03, 0.01),
        calibration_in_the_large={g: around(-0.02) for g in (EVERYBODY, *GROUPS)},
        precision_at_capacity={0.05: around(0.7), 0.1: around(0.6)},
        net_benefit={0.1: around(0.12, 0.005), 0.2: around(0.08, 0.005)},
        auc_gain=None if first else around(auc - 0.7),
        roc_curves={
            g: Curve(rise, rise ** max(p, 0.05)) for g, p in zip(GROUPS, power, strict=True)
        },
        calibration_curves={EVERYBODY: points(0.9)}
        | {g: points(0.8 + 0.1 * i, 10 if i < 3 else 0) for i, g in enumerate(GROUPS)},
        decision_curves={
            name: DecisionCurve(
                threshold,
                benefit - lower,
                benefit - lower - 0.01,
                benefit - lower + 0.01,
                0.2 - 0.8 * threshold / (1 - threshold),
            )
            for name, lower in ((EVERYBODY, 0.0), (GROUPS[0], 0.01))
        },
    )


def made_up_comparison(
    *, estimable: bool = True, truth: bool = False, n_methods: int = 5
) -> TableComparison:
    """Up to five methods and four groups; without overlap, or with a column of truth, if wanted."""
    rng = np.random.default_rng(0)
    reason = "52 % of people had next to no chance of a test"
    targets = tuple(
        t if estimable or t.key == "tested" else Target(t.key, t.name, t.assumption, False, reason)
        for t in TARGETS
    ) + ((TRUTH,) if truth else ())
    edges = np.linspace(0, 1, 21)

    def shares(peak: float) -> np.ndarray:
        height = np.exp(-((edges[:-1] - peak) ** 2) / 0.02)
        return height / height.sum()

    methods = []
    names = {
        "y-obs": "Takes the table at its word: whoever was not tested counts as negative.",
        "tested-only": "Learns from the tested alone and applies that to everybody.",
        "ipw": "Weighs each tested person by how unlikely the test was.",
        "dcem": "Fills in the missing outcomes by expectation-maximisation.",
        "sar-em": "Learns when positives are labelled with a probability that features explain.",
    }
    for place, (name, what) in enumerate(names.items()):
        auc = 0.7 + 0.03 * place
        history = FitHistory(
            {"training": 0.7 * 0.95 ** np.arange(12), "the tested": 0.72 * 0.96 ** np.arange(12)},
            kept=9,
            termination="EM stopped when the loss on tested validation rows no longer fell.",
        )
        methods.append(
            MethodResult(
                name=name,
                what_it_does=what,
                in_short="in a few words",
                judgements={
                    t.key: judgement(t.key, auc - 0.02 * i, rng, place == 0)
                    for i, t in enumerate(targets)
                },
                testing_by_score={
                    g: TestingByScore(
                        np.linspace(0.05, 0.7, 10 if i < 3 else 0),  # the last is too small
                        (rate := np.linspace(0.1, 0.5 - 0.08 * i, 10 if i < 3 else 0)),
                        rate - 0.03,
                        rate + 0.03,
                    )
                    for i, g in enumerate(GROUPS)
                },
                pseudo_labels=Histogram(
                    edges, {g: shares(0.1 + 0.1 * i) for i, g in enumerate(GROUPS)}
                )
                if name in ("dcem", "sar-em")
                else None,
                history=history if name in ("dcem", "sar-em") else None,
                seconds=1.5,
            )
        )
    families = (
        PlantedFamily("linear", "A logistic model of all features.", ""),
        PlantedFamily("trees", "Boosted trees fitted to what was seen.", ""),
        PlantedFamily("outcome-dependent", "Testing looks at the outcome itself.", "testing fails"),
    )
    return TableComparison(
        methods=tuple(methods[:n_methods]),
        reference=methods[0].name,
        reference_group=GROUPS[0],
        standings={
            t.key: Standing(
                methods[n_methods - 1].name,
                {m.name: around(0.03) for m in methods[: n_methods - 1]},
                tuple(m.name for m in methods[: n_methods - 1][-1:]),
            )
            for t in targets
            if t.available
        },
        decision="the 10 % of people with the highest scores",
        floor=0.005,
        targets=targets,
        groups=(
            ComparedGroup(GROUPS[0], 7000, 1400, 500, 1900 if truth else None),
            ComparedGroup(GROUPS[1], 2500, 400, 180, 800 if truth else None),
            ComparedGroup(GROUPS[2], 480, 60, 20, 150 if truth else None),
            ComparedGroup(GROUPS[3], 120, 13, 4, 31 if truth else None),
        ),
        overlap=Overlap(
            group=EVERYBODY,
            reach=0.97 if estimable else 0.06,
            quantiles=(0.02, 0.1, 0.2, 0.4, 0.7),
            under={0.01: 0.034 if estimable else 0.52, 0.05: 0.1},
            tested=1873,
            effective=768,
            heaviest=0.08,
            histogram=np.full(17, 1 / 17),
            reason="" if estimable else reason + ".",
        ),
        probability=Histogram(edges, {g: shares(0.3 - 0.05 * i) for i, g in enumerate(GROUPS)}),
        nuisances=(
            Nuisance("who is tested", "boosted trees 0.7, logistic 0.3", 0.41, 0.47, 0.72),
            Nuisance("what a test would show", "logistic", 0.55, 0.61, 0.69),
        ),
        planted=Planted(
            families,
            tuple(
                PlantedScore(f.name, m, around(0.75 + 0.03 * i), around(0.04), around(0.03 * i))
                for f in families
                for i, m in enumerate([*names, "y-model"])
            ),
            repetitions=5,
            findings=(
                Finding(
                    "planted",
                    "fine",
                    "methods",
                    headline="`dcem` comes first in all three families, by far.",
                ),
            ),
            seconds=40.0,
        ),
        level=0.95,
        folds=5,
        rows=101_766,
        rows_used=10_100,
        people=9_000,
        findings=(
            Finding(
                "tested",
                "fine",
                "methods",
                headline="In group other & unknown, 11 % were tested; in group Caucasian, 20 %.",
            ),
            Finding(
                "gain",
                "fine",
                "methods",
                headline="`dcem` ranks people better than `y-obs` (AUC .750 against .660).",
            ),
        ),
        warnings=(
            Finding(
                "leak",
                "serious",
                "methods",
                headline="Column `insulin` may have been recorded after the test.",
            ),
        ),
        configuration={"label": "A1Cresult", "seed": "0"},
        versions={"dcem": "0.0.test", "numpy": "2"},
        data={"file": "diabetes.csv", "sha256": "ab" * 32},
    )
