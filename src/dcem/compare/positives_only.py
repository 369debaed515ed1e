"""Methods compared on a table that knows only who was found positive.

What a score is worth for the outcome cannot be measured where nobody knows who does not have it.
What can, if positives of a group are found at one rate whatever their features:

* *Within a group* the found are a random part of the positives, and those not found are the
  negatives with the other positives among them. With found share s and prevalence p,

      AUC for the outcome = 1/2 + (AUC against the found - 1/2) (1 - s) / (1 - p):

  which of two methods ranks better is known, by how much only up to the unknown p, which lies
  between s and a bound (`dcem.estimation.positives_only.at_most`).
* *Across groups* a found positive of a group represents 1 / c_g positives, and relative rates c_g
  are estimated from the table. How often a positive then scores higher than a random person is
  (1 - p) AUC + p / 2: again the order of methods is known.

Calibration, rates at a threshold and the ROC gap are left out: they need prevalence. Where it is
stated what share of positives is found, AUCs are those of the outcome, being found as a test that
errs (`dcem.estimation.outcomes`), and calibration by group is told, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dcem.compare import fitting
from dcem.compare.judge import Ranks, auc_of_group
from dcem.compare.results import Standing
from dcem.compare.run import DOING, FLOOR, JUDGING, MAX_ROWS, known_truth
from dcem.estimation import measures
from dcem.estimation.cross_fitting import on_one_thread
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.findings import Finding, by_severity
from dcem.estimation.folds import person_folds, within_budget
from dcem.estimation.influence import People, Statistic
from dcem.estimation.nuisances import Nuisances
from dcem.estimation.outcomes import Masses
from dcem.estimation.positives_only import at_most, fit_found, predicted_found, ratios
from dcem.estimation.results import EVERYBODY
from dcem.extras import versions
from dcem.hooks import ShowsItself
from dcem.methods import make
from dcem.methods.fitting import require_no_record
from dcem.methods.registry import MEMBERS, METHODS, works_here
from dcem.metrics.estimate import Estimate
from dcem.ray_cluster import connection
from dcem.table.disclosure import few_people, hide_groups
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError, formerly
from dcem.table.positives_only import recorded, with_weight
from dcem.text import listed

USUAL = ("purple", "purple:boost", "purple:network", "y-obs:linear", "sar-em")
AT_RATES = ("ensemble", "purple", "purple:boost")  # where rates are stated
TARGET = "found"  # under which a saved comparison keeps who ranks best
WITHIN = (
    "positives of a group are found at the same rate whatever their features: then a method that "
    "ranks the found better within groups also ranks the positives better"
)


@dataclass(frozen=True)
class FoundMethod:
    """One method, judged on people it was not fitted to."""

    name: str
    what_it_does: str
    in_short: str
    within: Estimate  # AUC against the found, mean over groups by their found
    groups: Mapping[str, Estimate]  # AUC against the found, by group
    outcome: Mapping[str, tuple[float, float]]  # AUC for the outcome: its range, by group
    across: Estimate  # how often a positive of any group scores higher than a random person
    truth: Estimate | None  # AUC for the truth, where somebody knows it
    calibration: Mapping[str, Estimate]  # mean score minus risk, where rates are stated
    seconds: float
    members: int = 1


@dataclass(frozen=True, repr=False)
class FoundComparison(ShowsItself):
    """Everything that a comparison of methods by found positives has to say."""

    _document: ClassVar[str] = "found_comparison_document"

    methods: tuple[FoundMethod, ...]
    standings: Mapping[str, Standing]  # within groups, under the key "found"
    across: Standing | None  # the same across groups
    rates: Mapping[str, Estimate]  # of being found, by group, against the reference group
    reference_group: str
    prevalence: Mapping[str, tuple[float, float]]  # between which it lies, by group
    counts: Mapping[str, tuple[Any, Any]]  # rows and found by group, as they may be shown
    floor: float
    level: float
    folds: int
    rows: int
    rows_used: int
    people: int
    findings: tuple[Finding, ...]
    configuration: Mapping[str, str]
    versions: Mapping[str, str]
    data: Mapping[str, str] = field(default_factory=dict)
    stated_rates: str = ""  # of being found, in words: then numbers are about the outcome

    def to_frame(self) -> pd.DataFrame:
        """Every estimate as one row: method, metric, of, value, low, high, reason."""
        rows = []
        for method in self.methods:
            named = {("within groups", ""): method.within, ("across groups", ""): method.across}
            named |= {("against the found", name): one for name, one in method.groups.items()}
            if method.truth is not None:
                named["against the truth", ""] = method.truth
            rows += [{"method": method.name, "metric": metric, "of": of, **vars(one)}
                     for (metric, of), one in named.items()]  # fmt: skip
        return pd.DataFrame(rows)


class _WithinGroups(Evaluator):
    """An evaluator whose AUC of everybody is the mean of those of the groups, by their found."""

    def auc_of(self, target: str, score: np.ndarray, group: str = EVERYBODY) -> Statistic:
        """AUC with its influences."""
        if group != EVERYBODY:
            return super().auc_of(target, score, group)
        positive = self.masses[target].positive
        found = Statistic(0.0, np.zeros(len(score)))
        total = sum(positive[self.rows_of(name)].sum() for name in self._known_groups(target))
        for name in self._known_groups(target):
            share = float(positive[self.rows_of(name)].sum() / total)
            found = found + super().auc_of(target, score, name) * share
        return found

    def lacking(self, target: str, group: str = EVERYBODY) -> str:
        """Why nothing is estimable, or an empty text."""
        why = super().lacking(target, group)
        if not why and group == EVERYBODY and not self._known_groups(target):
            return "too few people were found in every group"
        return why

    def _known_groups(self, target: str) -> list[str]:
        names = self.problem.group_names
        return [name for name in names if not self.lacking(target, name)]


class _AcrossGroups(Evaluator):
    """An evaluator whose AUC is a positive's, each found weighted by 1 / c_g, over anybody's.

    `rates` are c_g [groups], `moved` log c_g against that of the reference group.
    """

    def __init__(
        self,
        problem: SelectiveLabels,
        rates: np.ndarray,
        moved: Mapping[int, Statistic],
        **how: Any,
    ) -> None:
        super().__init__(problem, **how)
        self.rates, self.moved = rates, moved

    def auc_of(self, target: str, score: np.ndarray, group: str = EVERYBODY) -> Statistic:
        """AUC with its influences, those on the rates included; against the truth as it is."""
        if target == "truth":
            return Evaluator.auc_of(self, target, score, group)
        of = self.masses["tested"]
        positive = of.positive / self.rates[self.problem.group]
        found = measures.auc(score, Masses(positive, of.total))
        for code, rate in self.moved.items():
            mine = positive * (self.problem.group == code)
            if mine.sum() > 0:
                own = measures.auc(score, Masses(mine, of.total)).value
                share = float(mine.sum() / positive.sum())
                found = found + Statistic(0.0, -share * (own - found.value) * rate.influence)
        return found


def usual_methods(*, stated: bool = False) -> tuple[str, ...]:
    """What is compared unless methods are named: those that work here."""
    return tuple(name for name in (AT_RATES if stated else USUAL) if works_here(name))


@formerly(folds="n_folds", members="n_members")
@on_one_thread
def compare_found(
    problem: SelectiveLabels,
    methods: Sequence[str] | None = None,
    *,
    truth: Any = None,
    n_folds: int = 5,
    max_rows: int | None = MAX_ROWS,
    level: float = 0.95,
    floor: float = FLOOR,
    n_members: int = MEMBERS,
    random_state: int = 0,
    params: Mapping[str, Any] | None = None,
    data: Mapping[str, str] | None = None,
    progress: fitting.Announce = lambda text: None,
    backend: str = "local",
    address: str | None = None,
) -> FoundComparison:
    """Fit methods to found positives and judge what can be known of their ranking.

    Parameters are those of `compare_methods`. Methods that need to know who was tested are refused.
    """
    if not problem.positives_only:
        raise InputError("This table says who was tested: use `compare_methods`.")
    test = problem.imperfect_test
    usual = usual_methods(stated=test is not None)
    names = fitting.check_methods(usual if methods is None else methods)
    for name in names:
        if test is None:
            require_no_record(name)
        if make(name).needs_group:
            raise InputError(f"{name!r} needs a person's group to score them.")
    begun, total = time.perf_counter(), len(problem)
    truth = known_truth(truth, problem)
    if problem.weight is not None:
        truth = truth if truth is None else truth[problem.weight > 0]
        problem = with_weight(problem)
    rows = within_budget(problem, max_rows, random_state)
    problem = problem.subset(rows)
    fold = person_folds(problem, n_folds, random_state)
    with connection(backend, address) as ray:
        fits = fitting.fit_and_score(
            names,
            fitting.fold_parts(problem, fold),
            random_state,
            params,
            n_members=n_members,
            ray=ray,
        )
        of_parts = fitting.collected(fits, names, n_folds, DOING, progress)
    scored = {name: fitting.pooled_folds(of, fold) for name, of in of_parts.items()}
    progress(JUDGING)
    people = People.of(problem)
    model = fit_found(problem, fold)
    sizes = np.bincount(problem.group, minlength=problem.n_groups)
    reference = int(sizes.argmax())
    if problem.reference_group is not None:
        reference = problem.group_names.index(problem.reference_group)
    against = ratios(model, problem, people, reference)
    predicted = predicted_found(problem, fold, model.ridge)
    everybody = recorded(problem)
    none = Nuisances(np.ones(len(problem)), np.full(len(problem), everybody.y_obs.mean()))
    how: dict[str, Any] = {"fold": fold, "nuisances": none, "level": level}
    how["truth"] = None if truth is None else truth[rows]
    within = _WithinGroups(everybody, **how)
    across = Evaluator(everybody, **how)
    if test is None:
        across = _AcrossGroups(everybody, model.rates, against.rate, **how)
    ranks, ranks_across = (Ranks(one, "tested", scored) for one in (within, across))
    counts = _shown_counts(problem)
    known = [
        name
        for name in problem.group_names
        if not within.lacking("tested", name) and not isinstance(counts[name][1], str)
    ]
    prevalence, shares = {}, {}
    for name in known:
        mine = within.rows_of(name)
        share = people.proportion(problem.tested, mine)
        shares[name] = share.value
        prevalence[name] = (share.low, at_most(problem, people, mine, predicted))
    made = []
    for name, one in scored.items():
        areas = {group: auc_of_group(within, "tested", one, group) for group in known}
        made.append(
            FoundMethod(
                name,
                fitting.what_it_does(name),
                METHODS[name].in_short,
                ranks.auc(name),
                areas,
                {
                    group: _for_outcome(areas[group], shares[group], limits[1])
                    for group, limits in prevalence.items()
                    if test is None
                },
                ranks_across.auc(name),
                None if truth is None else across.auc("truth", one.rank),
                {}
                if test is None
                else {
                    group: found
                    for group, found in across.calibration_in_the_large("tested", one.score).items()
                    if group in (*known, EVERYBODY)
                },
                one.seconds,
                len(one.members),
            )
        )
    standing = ranks.standing(names, floor)
    comparison = FoundComparison(
        methods=tuple(made),
        standings={} if standing is None else {TARGET if test is None else "tested": standing},
        across=ranks_across.standing(names, floor) if problem.n_groups > 1 else None,
        rates={
            problem.group_names[code]: people.interval(one).exp()
            for code, one in against.rate.items()
            if problem.group_names[code] in known
        },
        reference_group=problem.group_names[reference],
        prevalence=prevalence,
        counts=counts,
        floor=floor,
        level=level,
        folds=n_folds,
        rows=total,
        rows_used=len(problem),
        people=len(np.unique(problem.person)),
        findings=(),
        configuration={
            "methods": ", ".join(names),
            "judged by": f"{n_folds} folds of whole people",
            "row budget": "none" if max_rows is None else f"{max_rows:,}",
            "level of intervals": f"{100 * level:g} %",
            "smallest difference in AUC called one": f"{floor:g}",
            "seed": str(random_state),
            "seconds": f"{time.perf_counter() - begun:.0f}",
        },
        versions=versions(),
        data=dict(data or {}),
        stated_rates="" if test is None else test.words,
    )
    return replace(comparison, findings=by_severity(_of_comparison(comparison)))


def _for_outcome(area: Estimate, share: float, most: float) -> tuple[float, float]:
    """Between which the AUC for the outcome lies, whatever prevalence is between its bounds."""
    widest = (1 - share) / max(1 - most, 1e-9)
    ends = [0.5 + (end - 0.5) * factor for end in (area.low, area.high) for factor in (1, widest)]
    return max(min(ends), 0.0), min(max(ends), 1.0)


def _shown_counts(problem: SelectiveLabels) -> dict[str, tuple[Any, Any]]:
    """Rows and found of each group, those that give away few people hidden."""
    counts = problem.counts()[["rows", "tested"]]
    records: Any = counts.to_dict(orient="records")
    cells = {"rows", "tested", "untested"}
    shown = hide_groups(records, [few & cells for few in few_people(problem)])
    pairs = [(one["rows"], one["tested"]) for one in shown[:-1]]
    return dict(zip(problem.group_names, pairs, strict=True))


def _of_comparison(comparison: FoundComparison) -> Iterator[Finding]:
    """What to make of the comparison, no stronger than the intervals."""
    stated = comparison.stated_rates
    if stated:
        yield Finding(
            "test-errs",
            "note",
            "found",
            headline="Numbers refer to the outcome, if positives are found at the stated rates: "
            f"{stated}.",
            text="Within a group, whether a positive is found must not depend on the features.",
            remedy="State where the rates come from wherever these numbers are used.",
        )
    else:
        yield Finding(
            "no-record",
            "note",
            "found",
            headline="Nobody recorded who was tested, so methods can be ranked, but not measured.",
            text="Calibration, rates at a threshold and differences in error rates between groups "
            "require knowing how common the outcome is.",
            remedy="To get these numbers, state what share of positives is found "
            "(`test_sensitivity`).",
        )
    for standing, where, key in (
        (next(iter(comparison.standings.values()), None), "within groups", "best"),
        (comparison.across, "across groups", "best-across"),
    ):
        if standing is None:
            continue
        behind = [name for name in standing.ahead_of if name not in standing.level_with]
        best = f"`{standing.best}`"
        text = f"Right if {WITHIN}."
        if key == "best-across" and not stated:
            text += (
                " Across groups, the outcome must also depend on the features in the same way in "
                "all of them."
            )
        if not behind and standing.ahead_of:
            headline = f"No method clearly ranks better than the others {where}; {best} is ahead."
        elif standing.level_with:
            level = listed([f"`{name}`" for name in standing.level_with], most=9)
            headline = f"{best} ranks best {where}; not clearly behind: {level}."
        else:
            headline = f"{best} clearly ranks best {where}."
        yield Finding(
            key,
            "fine" if not standing.level_with else "note",
            "methods",
            values={"best": standing.best, "level_with": standing.level_with},
            headline=headline,
            text=text,
        )
