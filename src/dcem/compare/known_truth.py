"""Methods compared where the truth is known: on simulated people, or on a table that was censored.

Fit on one table, judge on the truth of another. Intervals come from resamples of the people who are
judged by: they cover the luck of that draw, not that of the training data or of training itself.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from dcem import methods, metrics
from dcem.compare.findings import conclude
from dcem.compare.fitting import Progress, history_of
from dcem.compare.paired import paired_differences
from dcem.compare.results import Curve, GroupCounts, Judgement, MethodResult, TableComparison
from dcem.compare.run import versions
from dcem.estimation.results import Target
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels

TRUTH = Target("truth", "truth", "The truth of everybody judged by is known.")


def compare_on_truth(
    splits: tuple[SelectiveLabels, SelectiveLabels, SelectiveLabels],
    truth: tuple[np.ndarray, np.ndarray, np.ndarray],
    described: Mapping[str, str],
    *,
    resamples: int = 300,
    level: float = 0.95,
    random_state: int = 0,
    configuration: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> TableComparison:
    """Fit methods to the first split, stop by the second, judge on the truth of the third.

    Args:
        splits: people to learn from, to validate, and to judge by.
        truth: their true outcomes, 0 or 1. Only methods that declare themselves oracles are given
            those of the first two.
        described: method -> what it does, in one sentence. The first is what others are compared
            with.
        resamples: of the people to judge by, behind every interval.
        level: of the intervals.
        random_state: seed of networks and resamples.
        configuration: what the report says about how it was made.
        progress: told in words what is being done.
    """
    say = progress or (lambda _: None)
    train, validation, test = splits
    fitted = {}
    for name in described:
        say(f"fitting {name}")
        fitted[name] = _fit(name, train, validation, test, truth, random_state)
    say("resampling the people to judge by")
    scores = {name: found["scores"] for name, found in fitted.items()}
    group = np.asarray(test.group_names)[test.group]
    gains = paired_differences(
        truth[2],
        scores,
        group,
        reference=next(iter(described)),
        n_replicates=resamples,
        random_state=random_state,
    )
    results = []
    for name, found in fitted.items():
        judged = metrics.bootstrap(
            truth[2],
            scores[name],
            group,
            n_replicates=resamples,
            random_state=random_state,
            level=level,
        )
        curves = metrics.group_roc_curves(truth[2], scores[name], group)
        by_chance = judged.roc_gap.reference
        gain = gains.get(name)
        results.append(
            MethodResult(
                name=name,
                what_it_does=described[name],
                judgements={
                    TRUTH.key: Judgement(
                        target=TRUTH.key,
                        auc=judged.auc,
                        group_auc={str(of): e for of, e in judged.group_auc.items()},
                        auc_differences={
                            (str(a), str(b)): e for (a, b), e in judged.auc_differences.items()
                        },
                        roc_gap=judged.roc_gap,
                        gap_pair=_widest(judged),
                        gap_by_chance=(
                            float(np.quantile(by_chance, 0.95)) if len(by_chance) else np.nan
                        ),
                        gap_p_value=np.nan,
                        calibration_error=Estimate(np.nan, reason="not asked"),
                        calibration_in_the_large={},
                        precision_at_capacity={},
                        net_benefit={},
                        auc_gain=gain["auc"] if gain else None,
                        roc_curves={str(of): Curve(c.fpr, c.tpr) for of, c in curves.items()},
                        calibration_curves={},
                        decision_curve=None,
                    )
                },
                testing_by_score={},
                pseudo_labels=None,
                history=found["history"],
                seconds=found["seconds"],
                uses_truth=found["uses_truth"],
            )
        )
    groups = _counts(train, truth[0])
    return TableComparison(
        methods=tuple(results),
        targets=(TRUTH,),
        groups=groups,
        overlap=None,
        probability=None,
        nuisances=(),
        planted=None,
        level=level,
        folds=0,
        rows=len(train),
        rows_used=len(train),
        people=len(train),
        resamples=resamples,
        sentences=conclude(results, (TRUTH,), groups),
        warnings=(),
        configuration=dict(configuration or {}),
        versions=versions(),
    )


def _widest(judged: metrics.BootstrapResult) -> tuple[str, str] | None:
    gaps = {pair: e.value for pair, e in judged.roc_gaps.items() if e.estimable}
    if not gaps:
        return None
    a, b = max(gaps, key=lambda pair: gaps[pair])
    return str(a), str(b)


def _fit(
    name: str,
    train: SelectiveLabels,
    validation: SelectiveLabels,
    test: SelectiveLabels,
    truth: tuple[np.ndarray, np.ndarray, np.ndarray],
    random_state: int,
) -> dict[str, Any]:
    begun = time.perf_counter()
    model = methods.make(name, random_state=random_state)
    known = {"truth": truth[:2]} if model.uses_truth else {}
    model.fit_problem(train, validation=validation, **known)
    return {
        "seconds": time.perf_counter() - begun,
        "scores": model.predict_proba(test.X)[:, 1],
        "history": history_of(model),
        "uses_truth": model.uses_truth,
    }


def _counts(train: SelectiveLabels, truth: np.ndarray) -> tuple[GroupCounts, ...]:
    return tuple(
        GroupCounts(
            name=name,
            people=int(here.sum()),
            tested=int(train.tested[here].sum()),
            positives_seen=int((train.y_imputed[here] == 1).sum()),
            positives=int(truth[here].sum()),
        )
        for name, here in ((n, train.group == code) for code, n in enumerate(train.group_names))
    )
