"""Testing and its results along time, where rows have one.

Four questions. *How did it go?* The share tested and the share positive among them, period by
period, for everybody and each group. *Did the decision change?* The share tested in each of four
periods against all others with the same features: period takes the place of the group, and the
models are those of `testing`. *Did the outcome change?* Whether what tests show at equal features
depends on the period (`independence`): then a model of the past need not hold. *Do earlier results
drive testing?* The share tested of people whose last result was positive, or negative, or who were
never tested, against all others with the same features. If they do, and the features do not tell
earlier results, features do not explain who is tested: earlier results tell of the outcome too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from dcem.audit.independence import check_independence, enough_results
from dcem.audit.remedies import audit_finding, each_named, points_of
from dcem.audit.results import CLEAR_P, FAR_RATIO, Audit, OverTime, Period, TestingRate
from dcem.audit.testing import testing_rates
from dcem.estimation.findings import Finding
from dcem.estimation.influence import People
from dcem.estimation.nuisances import Nuisances
from dcem.estimation.periods import late_results, periods
from dcem.estimation.results import EVERYBODY, WITHHELD
from dcem.table.disclosure import few_people
from dcem.table.labels import SelectiveLabels
from dcem.table.times import HISTORY, earlier_results, period, time_words
from dcem.text import p_value, ratio

SHOWN, COMPARED = 12, 4  # periods that are shown, and compared at equal features
PERIOD, EARLIER = "the period", "earlier results"  # what is modelled, for `progress`


def over_time(problem: SelectiveLabels, people: People, fit: Callable[..., Nuisances]) -> OverTime:
    """All of it; small counts are left out from the start.

    `fit` makes the models of a table of the same rows, and says whether `outcomes` are modelled and
    what it is `about`.
    """
    assert problem.time is not None
    late = late_results(problem)
    code, starts = periods(problem, SHOWN)
    begins = _begin(problem, starts)
    shown = tuple(_shown(problem, people, code, begins))
    found = OverTime(*period(problem.time), shown, (), None, (), late)
    if problem.extent != "some":
        return found

    def asked_of(codes: np.ndarray, names: tuple[str, ...]) -> SelectiveLabels:
        # in place of the group, which becomes a feature
        member = problem.group[:, None] == np.arange(1, problem.n_groups)
        return replace(
            problem,
            X=np.concatenate([problem.X, member], axis=1),
            feature_names=(*problem.feature_names, *problem.group_names[1:]),
            group=codes,
            group_names=names,
            reference_group=None,
        )

    code, starts = periods(problem, COMPARED)
    if len(starts) > 1:
        names = tuple(f"from {start}" for start in _begin(problem, starts))
        asked = replace(asked_of(code, names), time=None)
        fitted = fit(asked, about=PERIOD)
        found = replace(
            found,
            testing=_without_counts(testing_rates(asked, people, fitted)),
            outcome=check_independence(asked, people, fitted) if enough_results(asked) else None,
        )
    if problem.id is not None:
        known = earlier_results(problem.person, problem.time, problem.tested, problem.y_obs)
        codes = np.where(known["last_result"].isna(), 0, 1 + known["last_result"].fillna(0))
        asked = asked_of(codes.astype(np.int64), HISTORY)
        if len(np.unique(codes)) > 1:
            fitted = fit(asked, outcomes=False, about=EARLIER)
            told_by = testing_rates(asked, people, fitted)
            found = replace(found, earlier=_without_counts(told_by))
    return found


def _without_counts(rates: Sequence[TestingRate]) -> tuple[TestingRate, ...]:
    """Without the crude rates, which tell how many people they are of."""
    return tuple(replace(rate, crude=WITHHELD) for rate in rates)


def _begin(problem: SelectiveLabels, starts: Sequence[Any]) -> list[str]:
    """When periods begin; the very first time is somebody's own."""
    assert problem.time is not None
    return [period(problem.time)[0], *map(time_words, starts[1:])]


def _shown(
    problem: SelectiveLabels, people: People, code: np.ndarray, begins: Sequence[str]
) -> Iterator[Period]:
    """Shares of everybody, then of groups, in periods so long that no count is small.

    A share with its interval tells how many people it is of; what is left for the others, or for
    another period, is told by the rates of the whole table. So all periods are shown or none.
    """
    parts = problem.parts()
    for names in list(parts)[:1], list(parts)[1:]:
        code, begins = _put_together(problem, code, begins, groups=EVERYBODY not in names)
        for name, (i, since) in product(names, enumerate(begins)):
            mine = parts[name] & (code == i)
            tested = people.proportion(problem.tested, mine * 1.0)
            positive = people.proportion(problem.y_obs == 1, (mine & problem.tested) * 1.0)
            yield Period(since, name, tested, positive)


def _put_together(
    problem: SelectiveLabels, code: np.ndarray, begins: Sequence[str], *, groups: bool
) -> tuple[np.ndarray, Sequence[str]]:
    """Periods made of these, as many as leave no count small, of everybody or `groups`; or none.

    They are not cut anew: between two cuts there could be a few people.
    """
    n = len(begins)
    for number in [n, *(n // each for each in (2, 3, 4, 6) if n // each > 1)]:
        longer = (np.arange(n) * number // n)[code]
        few = (few_people(problem.subset(longer == one)) for one in range(number))
        if not any(any(each if groups else each[-1:]) for each in few):
            return longer, [begins[-(-one * n // number)] for one in range(number)]
    return code, ()


def about_time(audit: Audit) -> Iterator[Finding]:
    """Results that may not be in yet, and what changed."""
    found = audit.over_time
    if found is None:
        return
    if found.late is not None:
        yield audit_finding(
            "late-results",
            "caution",
            "time",
            f"Hardly anybody is tested after {found.late.until}: results may not have arrived yet",
            f"{found.late.words} If results take longer than that, these rows may have been "
            "tested, with results not yet known; what the audit says about who is tested is then "
            "wrong for them.",
            **vars(found.late),
        )
    changed = {rate.group: rate.difference for rate in audit.clear(found.testing)}
    if changed:
        yield audit_finding(
            "testing-changed",
            "note",
            "time",
            "Who is tested at equal features changed over time",
            f"Share tested against all other periods: {each_named(changed, points_of)}.",
            periods=changed,
        )
    outcome = found.outcome
    if outcome is not None and outcome.p_value < CLEAR_P:
        ratios = {name: e for name, e in outcome.odds_ratio.items() if e.excludes(1)}
        odds = ""
        if ratios:
            each = each_named(
                ratios, lambda e: f"{ratio(e.value)} [{ratio(e.low)}, {ratio(e.high)}]"
            )
            odds = f" Odds ratios against all other periods: {each}."
        yield audit_finding(
            "outcome-changed",
            "caution"
            if any(e.low > FAR_RATIO or e.high < 1 / FAR_RATIO for e in ratios.values())
            else "note",
            "time",
            "What tests show at equal features changed over time",
            f"{p_value(outcome.p_value)}, all periods jointly.{odds} A model fitted to the past "
            "may no longer hold.",
            odds_ratios=ratios,
            p_value=outcome.p_value,
        )
    driven = {rate.group: rate.difference for rate in audit.clear(found.earlier)}
    if driven:
        yield audit_finding(
            "earlier-results",
            "caution",
            "time",
            "Who is tested depends on earlier results",
            f"Share tested against others with the same features: {each_named(driven, points_of)}. "
            "Earlier results are also related to the outcome. Unless the features include them, "
            f"features do not explain who is tested, and estimates for {audit.whom} are off.",
            history=driven,
        )
