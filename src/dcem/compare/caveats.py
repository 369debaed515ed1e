"""What a reader of a comparison must know before believing a number."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from dcem.compare.findings import found, not_compared, recommended_first, whom_beyond
from dcem.compare.results import MethodResult, TableComparison
from dcem.estimation.findings import Finding
from dcem.estimation.results import COUNTED, EVERYBODY
from dcem.methods.registry import entry_of
from dcem.table.labels import SelectiveLabels
from dcem.table.times import time_words
from dcem.text import capitalised, number, percent
from dcem.text import groups as named


def about_time(problem: SelectiveLabels, block: np.ndarray) -> Finding:
    """From when on rows were judged, and how many of them are of people met before."""
    assert problem.time is not None
    later = block > 0
    first = pd.Series(block).groupby(problem.person).transform("min").to_numpy()
    met = float((first < block)[later].mean())
    since = time_words(np.sort(problem.time[later])[min(9, int(later.sum()) - 1)])
    sentence = f"Judged on later rows: those from {since} on, each by models of earlier rows alone."
    text = (
        f"{percent(met)} of them belong to people with earlier rows, which the models had seen, as "
        "they will in use. Only part of the table is judged, so intervals are wider than in a "
        "cross-validation."
    )
    return found("judged-later", sentence, text, since=since, met=met)


def warn(
    comparison: TableComparison,
    suspicious: Mapping[str, str],
    enough: Collection[str] = (),
    *,
    stated: bool = False,
) -> Iterator[Finding]:
    """What a reader must know before believing a number.

    `suspicious` are columns with their sign; `enough`: groups that the whole table, of which rows
    were drawn, has enough tests of to be judged.
    """
    for name, sign in suspicious.items():
        sentence = f"Column {name!r} may have been recorded after the decision to test: {sign}."
        text = "If so, these numbers overstate what a model could do at the time of the decision."
        yield found("leak", sentence, text, column=name)
    known = any(target.key == "truth" and target.available for target in comparison.targets)
    if not (known or stated) and all(group.tested == group.people for group in comparison.groups):
        sentence = "Everybody counts as tested."
        text = (
            "No label is missing. If untested people were recorded as negative, all numbers here "
            "are about the record, not about the outcome."
        )
        yield found("everybody-tested", sentence, text)
    overlap, share = comparison.overlap, comparison.overlap.effective_share
    if not overlap.estimable:
        sentence = f"Numbers for everybody are not estimable here ({overlap.reason})."
        text = "The numbers among the tested say nothing about people unlike them."
        finding = found("no-overlap", sentence, text)
        if known:
            sentence = (
                "Without the truth, numbers for everybody could not have been estimated here "
                f"({overlap.reason})."
            )
            finding = replace(finding, severity="note", headline=sentence, remedy="")
        yield finding
    elif share < 0.2:
        sentence = (
            "A few tested people represent many: the effective sample size is "
            f"{percent(share)} of the number tested."
        )
        yield found("little-overlap", sentence, "The intervals are wide.", effective_share=share)
    rows, used = comparison.rows, comparison.rows_used
    judged = sum(group.people for group in comparison.groups)
    if overlap.estimable and (judged < rows or not overlap.complete):
        lost = "nobody is" if overlap.complete else f"{percent(1 - overlap.reach)} of people are"
        of_all = f"{judged:,} of {rows:,}" if judged < rows else f"{rows:,}"
        sentence = f"In the {of_all} rows judged, {lost} out of reach of the tests."
        text = (
            f"{COUNTED} The audit fits its own model to all rows and may count a few more or fewer."
        )
        yield found("reach", sentence, text, rows=judged, reach=overlap.reach)
    if used < rows:
        sentence = f"{used:,} of {rows:,} rows were used (the row budget)."
        text = "Models fitted to all rows may be better than shown."
        yield found("row-budget", sentence, text, rows=rows, rows_used=used)
    for one in comparison.nuisances:
        if one.name == "what a test would show" and one.log_loss >= one.log_loss_of_rate:
            sentence = "There is no evidence that the features predict what a test shows."
            text = (
                "Either they hardly do, or there are too few tests with the rarer result. "
                "Differences between methods mean little."
            )
            yield found("unpredictable", sentence, text)
    if len(comparison.groups) > 1 and comparison.targets[0].available:
        yield from about_lost_groups(comparison, enough)
    whom = whom_beyond(comparison)
    both = [m for m in recommended_first(comparison) if {"ipw", "dr"} <= m.judgements.keys()]
    for method in both[:1]:
        yield from about_estimates(method, whom)
    for method in both:
        yield from about_assumption(method, comparison.known_rates, whom)


def about_lost_groups(comparison: TableComparison, enough: Collection[str]) -> Iterator[Finding]:
    """Groups that could not be judged: too few tests in the table, or the draw; little overlap."""
    judgements, unfair = (
        comparison.methods[0].judgements,
        ("That does not mean that they are treated fairly."),
    )
    small = not_compared(judgements[comparison.targets[0].key])
    drawn = [name for name in small if name in enough]
    if scarce := [name for name in small if name not in enough]:
        sentence = f"Too few people were tested positive, or negative, to judge {named(scarce)}."
        yield found("small-groups", sentence, unfair, groups=scarce)
    if drawn:
        sentence = (
            f"Among the {comparison.rows_used:,} rows drawn, too few people were tested positive, "
            f"or negative, to judge {named(drawn)}."
        )
        text = f"The whole table has more of these people. {unfair}"
        yield found("small-draw", sentence, text, groups=drawn)
    if "dr" not in judgements or not comparison.overlap.estimable:
        return
    reasons = {
        name: auc.reason
        for name, auc in judgements["dr"].group_auc.items()
        if not auc.estimable and name not in small
    }
    if reasons:
        sentence = f"Too little overlap to judge the untested people of {named(list(reasons))}."
        text = f"{capitalised('; '.join(reasons.values()))}. {unfair}"
        yield found("groups-beyond", sentence, text, groups=list(reasons))


def about_estimates(method: MethodResult, whom: str = EVERYBODY) -> Iterator[Finding]:
    """That the two estimates for everybody differ, if they do."""
    ipw, dr = (method.judgements[key].auc for key in ("ipw", "dr"))
    if ipw.low > dr.high or ipw.high < dr.low:
        sentence = (
            f"The two AUC estimates of `{method.name}` for {whom} disagree ({number(ipw.value)} by "
            f"inverse propensity, {number(dr.value)} doubly robust)."
        )
        text = "One of the models behind them is wrong."
        values = {"method": method.name, "ipw": ipw.value, "dr": dr.value}
        yield found("estimates-disagree", sentence, text, **values)


def about_assumption(method: MethodResult, known: str, whom: str = EVERYBODY) -> Iterator[Finding]:
    """That a method assumes something else than the numbers it is judged by, if it does."""
    if entry_of(method.name).kind != "selection":
        return
    sentence = (
        f"`{method.name}` allows for an unrecorded cause of both test and outcome; the numbers for "
        f"{whom} assume that there is none."
    )
    text = "If there is one, these numbers ignore it and favour methods that ignore it too."
    if known:
        sentence = (
            f"`{method.name}` models an unrecorded cause of both test and outcome differently from "
            f"the numbers for {whom}."
        )
        text = "These numbers assume that the odds of untested people differ by a single factor."
    yield found("other-assumption", sentence, text, method=method.name)
