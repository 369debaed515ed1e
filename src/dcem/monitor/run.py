"""A new table compared with what a model remembers of its own.

Four questions are asked, each with a quarter of an error of 5 %; within a question numbers are
corrected for how many there are (Holm). An alarm is beyond chance *and* large enough to matter.

*Who arrives.* Shares of people in the bins of each column, then and now, by Pearson's test of two
samples; how much they changed is the population stability index.

*Who is tested.* The share tested minus what the earlier model of testing expects of the new
people. What is uncertain about that model is one more influence.

*What is found.* The doubly robust prevalence now minus that at the fit.

The last two questions are about people whom tests reach. Where these are not all, then or now, they
are compared only if they are about as many as then and who is tested did not clearly change: those
whom tests reach now may be others, and differ without any change (`not_comparable`).

*Does the model hold.* Doubly robust AUC, mean risk minus share of positives and calibration slope,
of everybody and of groups. They are compared with what they were in a comparison, where the model
was judged, everybody's slope against 1; otherwise risks against what is found now, knowing how
uncertain what was found then is. Only a lower AUC is asked for, in a one-sided test.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any

import numpy as np
from scipy.stats import chi2, norm

from dcem.estimation.evaluator import Evaluator
from dcem.estimation.folds import person_folds, rows_that_count, usual_folds
from dcem.estimation.influence import People, Z, kish, two_sided
from dcem.estimation.nuisances import fit_nuisances
from dcem.estimation.outcomes import POPULATION
from dcem.estimation.periods import late_results
from dcem.estimation.results import COMPLETE, EVERYBODY
from dcem.metrics.estimate import Estimate
from dcem.monitor.baseline import (
    GROUP,
    UNLIKE,
    Baseline,
    Bins,
    column_features,
    counted_once,
    few_in,
    in_public,
    rates,
    reaches,
    standard_error,
)
from dcem.monitor.findings import with_verdict
from dcem.monitor.results import Change, ColumnChange, Monitoring
from dcem.table.disclosure import THRESHOLD, WITHHELD, people_of
from dcem.table.encoder import Encoder
from dcem.table.known_rates import known_words
from dcem.table.labels import SelectiveLabels
from dcem.text import percent

ERROR = 0.05  # of an alarm although nothing changed, all four questions together
QUESTIONS = 4
STABILITY = 0.02  # population stability index below which a change does not matter
LEAST = {"tested": 0.02, "prevalence": 0.02, "calibration": 0.02, "auc": 0.02, "slope": 0.2}
OWN_LEVELS = 1.5  # variances of a level: that of the model, and of those judged in its stead
FEW_OUT = 1 - COMPLETE  # share of people by which those within reach may differ
FEW = 5  # people that a bin should expect, for the test to be right
FEW_PEOPLE = f"fewer than {THRESHOLD} people"


@dataclass(frozen=True)
class NewRows:
    """A new table as a model sees it."""

    problem: SelectiveLabels
    score: np.ndarray  # [n]
    standard: np.ndarray  # [n, inputs] standardised features
    unlike: np.ndarray  # [n] whether unlike anybody tested

    @classmethod
    def of(cls, estimator: Any, problem: SelectiveLabels) -> NewRows:
        """Rows scored by a fitted method."""
        standard = estimator.standardized(problem.X)
        score = estimator.combined(estimator.risks(problem.X, standard, exact=False))
        unlike = ~estimator.reach(problem.X, standard)["supported"].to_numpy()
        return cls(problem, score, np.asarray(standard, float), unlike)

    def subset(self, rows: np.ndarray) -> NewRows:
        """Some of the rows (a mask)."""
        parts = (self.score, self.standard, self.unlike)
        return NewRows(self.problem.subset(rows), *(part[rows] for part in parts))


def watch(
    then: Baseline,
    new: NewRows,
    encoder: Encoder,
    *,
    attributes: Mapping[str, SelectiveLabels] | None = None,
    calibrated: bool = True,
    random_state: int = 0,
    data: Mapping[str, str] | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Monitoring:
    """What changed since a model was fitted, and whether it still holds.

    Parameters
    ----------
    then
        What the model remembers.
    new
        The new table, scored by it.
    encoder
        The model's own.
    attributes
        The new table with each sensitive attribute by itself as the group, where its groups are
        several crossed: what is off for all who share one is seen in them, and not in small parts.
    calibrated
        Whether its scores are risks; otherwise they are only asked to rank.
    random_state, data, progress
        As for `dcem.monitor_model`.
    """
    counted = rows_that_count(new.problem)
    if counted is not None:
        new = new.subset(counted)
        attributes = {name: alone.subset(counted) for name, alone in (attributes or {}).items()}
    columns = _column_changes(then, new, encoder)
    late = late_results(new.problem)
    total, people = len(new.problem), People.of(new.problem).n_people
    if late is not None:
        moment = new.problem.moment
        assert moment is not None
        rows = moment < late.at
        new = new.subset(rows)
        attributes = {name: alone.subset(rows) for name, alone in (attributes or {}).items()}
    problem = new.problem
    fold = person_folds(problem, usual_folds(problem), random_state)
    nuisances = fit_nuisances(problem, fold, random_state, progress=progress)
    progress("judging")
    evaluator = Evaluator(problem, fold=fold, nuisances=nuisances)
    now = rates(problem, evaluator)
    targets = {one.key: one for one in evaluator.targets}
    target = "dr" if targets["dr"].available else "tested"
    if then.judged is not None and then.judged.target not in POPULATION:
        target = "tested"
    tests = _testing_changes(then, new, now["tested"])
    moved = {one.of for one in tests if one.clear}
    others = not_comparable(replace(then, judged=None), evaluator, "dr", moved)
    unlike = not_comparable(then, evaluator, target, moved)
    prevalence = _prevalence_changes(then, now["prevalence"])
    performance = _performance_changes(then, new, evaluator, target, calibrated)
    changes = (*tests, *_held(_refused(prevalence, others)), *_held(_refused(performance, unlike)))
    by_attribute: dict[str, Estimate] = {}
    if calibrated and not problem.known_prevalence:  # which is stated of the crossed groups
        for attribute, alone in (attributes or {}).items():
            judge = Evaluator(alone, fold=fold, nuisances=nuisances)
            off = judge.calibration_in_the_large(target, new.score)
            by_attribute |= {
                f"group {name} of {attribute}": by for name, by in off.items() if name != EVERYBODY
            }
    found = Monitoring(
        answer="",
        columns=columns,
        changes=changes,
        by_attribute=by_attribute,
        positive={
            name: (before, now["positive"][name])
            for name, before in then.positive.items()
            if name in now["positive"]
        },
        target=targets[target].name,
        assumption=targets[target].assumption,
        late=late,
        rows=total,
        people=people,
        rows_judged=len(problem),
        fitted_rows=then.rows,
        findings=(),
        configuration={
            "false alarms": f"in at most about {100 * ERROR:g} % of tables in which nothing "
            "changed",
            "judged before": "by a comparison" if then.judged else "no",
            "fitted to": f"{then.rows:,} rows"
            + (f", {then.period[0]} to {then.period[1]}" if then.period else ""),
            "seed": str(random_state),
        }
        | _awaited(new.problem),
        data=dict(data or {}),
        not_comparable=unlike.get(EVERYBODY, ""),
    )
    stated = frozenset(one.group or EVERYBODY for one in problem.known_prevalence)
    if then.stated != known_words(problem.known_prevalence):
        stated = frozenset()
    return with_verdict(found, then, evaluator.lacking(target), stated)


def _awaited(problem: SelectiveLabels) -> dict[str, str]:
    """What the page says of tests whose results are not in yet."""
    if problem.awaited is None or not problem.awaited.any():
        return {}
    rows = int(problem.awaited.sum())
    some = f"fewer than {THRESHOLD}" if rows < THRESHOLD else f"{rows:,}"
    return {"results not in yet": f"{some} rows, which count as tested but enter no other number"}


def holm(p_values: np.ndarray) -> np.ndarray:
    """P-values corrected for their number (Holm 1979); NaN stays and does not count."""
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    steps = p_values[order] * np.arange(len(order), 0, -1)
    found = np.full(len(p_values), nan)
    found[order] = np.minimum(np.maximum.accumulate(steps), 1) if len(order) else steps
    return found


# -- who arrives ---------------------------------------------------------------------------------


def _column_changes(then: Baseline, new: NewRows, encoder: Encoder) -> tuple[ColumnChange, ...]:
    problem = new.problem
    weight, person = counted_once(problem), problem.person
    everybody = len(np.unique(person))
    size = then.effective_sample_size
    size = float(then.people) if isnan(size) else size
    sizes = size, kish(np.bincount(person, weight))
    own = {encoding.name: (encoding, X) for encoding, X in column_features(encoder, problem.X)}
    asked = []
    unlike = Bins(UNLIKE, (), ("no", "yes"), (), (1 - then.unlike, then.unlike))
    for bins in (*then.columns, unlike):
        if bins.column in own:
            code = bins.place(*own[bins.column])
        else:
            code = bins.place_groups(problem) if bins.column == GROUP else new.unlike.astype(int)
        now = np.bincount(code, weight, minlength=len(bins.names)) / weight.sum()
        before = np.array(bins.share)
        if bins.levels:
            before = bins.expected(own[bins.column][0], size, now)
        asked.append((bins, before, now, code))
    p_values = holm(np.array([_pearson(before, now, *sizes) for _, before, now, _ in asked]))
    found = []
    for (bins, before, now, code), p in zip(asked, p_values, strict=True):
        name, names, share = bins.column, bins.names, bins.share
        most = 1 if name == UNLIKE else int(np.abs(now - before).argmax())
        index = stability(before, now, *sizes)
        clear = bool(p < ERROR / QUESTIONS and index >= STABILITY)
        people = people_of(code, person, len(names))[most]
        few = few_in(code, person, len(names))
        unsaid = name == GROUP and names[most] in _withheld_groups(problem)
        said = (
            _few_words(round(share[most] * then.people), then.people),
            _few_words(people, everybody) or WITHHELD * unsaid,
        )
        shown = (nan if said[0] else share[most], nan if said[1] else now[most])
        if few.any() or said[1]:  # from both numbers a small count would follow; the alarm stays
            now, p = in_public(now, few, everybody), nan
            before = bins.expected(own[name][0], size, now) if bins.levels else before
            index = stability(before, now, *sizes)
        found.append(ColumnChange(name, index, float(p), names[most], *shown, clear, said))
    return tuple(sorted(found, key=lambda one: (not one.clear, -one.index)))


def _withheld_groups(problem: SelectiveLabels) -> set[str]:
    """Groups whose rows an audit of the same table withholds."""
    rows = problem.counts(small_cells=False)["rows"]
    return {str(name) for name, count in rows.items() if isinstance(count, str)}


def _few_words(people: float, of: int) -> str:
    """What to say in place of a share that would show a count under ten, on either side."""
    if 0 < people < THRESHOLD:
        return FEW_PEOPLE
    return f"all but {FEW_PEOPLE}" if 0 < of - people < THRESHOLD else ""


def _pearson(before: np.ndarray, now: np.ndarray, n: float, m: float) -> float:
    """P-value of equal shares in two samples of so many people; rare bins are put together."""
    mean = (n * before + m * now) / (n + m)
    common = min(n, m) * mean >= FEW
    if not common.all():
        before, now, mean = (np.append(x[common], x[~common].sum()) for x in (before, now, mean))
    used = mean > 0
    if used.sum() < 2:
        return nan
    square = ((now - before)[used] ** 2 / mean[used]).sum() / (1 / n + 1 / m)
    return float(chi2.sf(square, used.sum() - 1))


def stability(before: np.ndarray, now: np.ndarray, n: float, m: float) -> float:
    """Population stability index, half a person added to every bin."""
    p, q = (n * before + 0.5) / (n + len(before) / 2), (m * now + 0.5) / (m + len(now) / 2)
    return float(((q - p) * np.log(q / p)).sum())


# -- the other questions -----------------------------------------------------------------------


def _testing_changes(then: Baseline, new: NewRows, now: Mapping[str, Estimate]) -> list[Change]:
    """The share tested against what it would have been then.

    Where the share is withheld, so is the change, from which it follows; that it is clear stays.
    """
    problem = new.problem
    people, masks = People.of(problem), problem.parts()
    expected, slopes = then.expected(new.standard, problem)
    found = []
    for name, share in now.items():
        mine = masks[name]
        if name != EVERYBODY and name not in then.groups:
            continue
        change = people.mean(problem.sent - expected, mine)
        slope = np.average(slopes, axis=0, weights=people.weight * mine)
        doubt = np.sqrt(max(float(slope @ then.covariance @ slope), 0.0))
        counts = people.weight * mine / (people.weight @ mine)
        hidden = people.hidden_error(change, counts, problem.sent == 1, expected)
        difference = people.interval(change.plus([doubt, hidden]))
        usual = Estimate(float(np.average(expected, weights=people.weight * mine)))
        found.append(_change("tested", name, usual, share, difference))
    return [one if one.now.estimable else replace(one, difference=one.now) for one in _held(found)]


def not_comparable(
    then: Baseline, evaluator: Evaluator, target: str, moved: Collection[str]
) -> dict[str, str]:
    """Why numbers of a target are not about the same people as then, of the parts where so.

    `moved` are the parts of whom clearly others are tested.
    """
    found, before = {}, then.judged.target if then.judged else "dr"
    for name, now in reaches(evaluator).items():
        reach = then.reach.get(name, 1.0)
        if then.judged and name == EVERYBODY:
            reach = min(reach, then.judged.reach)
        others = name in moved or EVERYBODY in moved
        people = min(then.people, evaluator.people.count(evaluator.rows_of(name)))
        by_chance = Z * np.sqrt((reach + now) / people * (1 - (reach + now) / 2))
        if target not in POPULATION and before in POPULATION:
            found[name] = "it is known of the tested alone now, and was known of others"
        elif target not in POPULATION and others:
            found[name] = "it is known of the tested alone, and others are tested than then"
        elif target not in POPULATION or min(reach, now) == 1:
            continue
        elif others or abs(reach - now) > FEW_OUT + by_chance:
            found[name] = (
                f"tests reach {percent(now)} of the people now and reached {percent(reach)} then, "
                "who may be others"
            )
    return found


def _refused(changes: list[Change], why: Mapping[str, str]) -> list[Change]:
    """The same, without differences that are not between the same people."""
    return [
        replace(one, difference=Estimate(nan, reason=why[one.of]), p_value=nan)
        if one.of in why and one.difference.estimable
        else one
        for one in changes
    ]


def _prevalence_changes(then: Baseline, now: Mapping[str, Estimate]) -> list[Change]:
    return [
        _change("prevalence", name, before, now[name], now[name].minus(before))
        for name, before in then.prevalence.items()
        if name in now
    ]


def _performance_changes(
    then: Baseline, new: NewRows, evaluator: Evaluator, target: str, calibrated: bool
) -> list[Change]:
    """AUC and calibration, everybody and groups."""
    score, before = new.score, then.judged
    unknown = Estimate(nan, reason="it was not judged then")
    found = []
    for name in evaluator.problem.parts():
        was = before.auc.get(name, unknown) if before else unknown
        auc = evaluator.auc(target, score, name)
        found.append(_change("auc", name, was, auc, auc.minus(was)))
    if not calibrated:
        return found
    level = np.sqrt(OWN_LEVELS) * then.doubt["calibration"]
    for key, off in evaluator.calibration_in_the_large(target, score).items():
        was = before.calibration_in_the_large.get(key, unknown) if before else unknown
        difference = Estimate(nan, reason=was.reason)
        if was.estimable:
            # the models that were judged had levels of their own, if these are of the latest rows
            difference = _doubted(off.minus(was), level if then.period else 0.0)
        elif key == EVERYBODY:  # it was right then, as far as what was found then is certain
            difference = _doubted(off, then.doubt["calibration"])
        found.append(_change("calibration", key, was, off, difference))
    for key, slope in evaluator.calibration_slope(target, score).items():
        was = before.calibration_slope.get(key, unknown) if before else unknown
        difference = slope.minus(was)
        if key == EVERYBODY:  # it was made to be right: nothing that was estimated
            was = Estimate(1.0)
            difference = _doubted(slope.minus(Estimate(1.0, 1.0, 1.0)), then.doubt["slope"])
        found.append(_change("slope", key, was, slope, difference))
    return found


def _doubted(found: Estimate, error: float) -> Estimate:
    """A difference with one more error, that of what it is compared with."""
    return found.minus(Estimate(0.0, -Z * error, Z * error))


def _change(about: str, of: str, then: Estimate, now: Estimate, difference: Estimate) -> Change:
    """A number then and now; whether it is clear is told when all of its question are known."""
    error = standard_error(difference)
    z = difference.value / error if error > 0 else nan
    p = float(norm.cdf(z)) if about == "auc" else two_sided(z)  # only a lower AUC is an alarm
    if about != "slope":  # of two rates
        difference = difference.clipped(-1.0)
    return Change(about, of, then, now, difference, p, False)


def _held(changes: list[Change]) -> list[Change]:
    """The changes of one question, corrected for their number."""
    p_values = holm(np.array([one.p_value for one in changes]))
    beyond = (p_values < ERROR / QUESTIONS).tolist()
    return [
        replace(one, p_value=float(p), clear=b and abs(one.difference.value) >= LEAST[one.about])
        for one, p, b in zip(changes, p_values, beyond, strict=True)
    ]
