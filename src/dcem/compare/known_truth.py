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
from dcem.compare.fitting import Progress, history_of
from dcem.compare.paired import paired_differences
from dcem.compare.results import Curve, GroupCounts
from dcem.compare.run import versions
from dcem.compare.truth_results import Comparison, MethodResult
from dcem.table.labels import SelectiveLabels


def compare_on_truth(
    splits: tuple[SelectiveLabels, SelectiveLabels, SelectiveLabels],
    truth: tuple[np.ndarray, np.ndarray, np.ndarray],
    described: Mapping[str, str],
    *,
    title: str,
    description: str,
    resamples: int = 300,
    level: float = 0.95,
    random_state: int = 0,
    configuration: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Fit methods to the first split, stop by the second, judge on the truth of the third.

    Args:
        splits: people to learn from, to validate, and to judge by.
        truth: their true outcomes, 0 or 1. Only methods that declare themselves oracles are given
            those of the first two.
        described: method -> what it does, in one sentence. The first is what others are compared
            with.
        title, description: for the report.
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
                uses_truth=found["uses_truth"],
                auc=judged.auc,
                roc_gap=judged.roc_gap,
                gap_by_chance=float(np.quantile(by_chance, 0.95)) if len(by_chance) else np.nan,
                auc_difference=next(iter(judged.auc_differences.values())),
                auc_gain=gain["auc"] if gain else None,
                gap_change=gain["roc_gap"] if gain else None,
                curves={str(of): Curve(c.fpr, c.tpr) for of, c in curves.items()},
                seconds=found["seconds"],
                history=found["history"],
            )
        )
    return Comparison(
        title=title,
        description=description,
        level=level,
        resamples=resamples,
        groups=_counts(train, truth[0]),
        methods=tuple(results),
        configuration=dict(configuration or {}),
        versions=versions(),
    )


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
