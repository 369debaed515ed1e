"""What a model remembers of the table it was fitted to: enough to notice change, and no person.

Columns are remembered as shares of people in bins of at least ten; who was tested as a logistic
regression on features and group, with the covariance of its coefficients; what was found as rates
with their errors. How good the model was is added if somebody judged it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import nan
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from dcem.estimation import measures
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.influence import (
    FEWEST_PEOPLE,
    People,
    Z,
    clustered_covariance,
    kish,
    logistic,
)
from dcem.estimation.periods import latest_rows
from dcem.estimation.results import COMPLETE, EVERYBODY, WITHHELD
from dcem.metrics.estimate import Estimate
from dcem.metrics.plain import six_digits
from dcem.table.columns import MOST_LEVELS, RARE
from dcem.table.disclosure import THRESHOLD, people_of
from dcem.table.encoder import Encoder, Encoding
from dcem.table.known_rates import known_words
from dcem.table.labels import SelectiveLabels
from dcem.table.summary import shown_counts
from dcem.table.times import period

BINS = 8  # of a number
INPUTS = 60  # columns that the model of testing has, at most
RIDGE = 1.0  # of its coefficients, on standardised columns
MISSING, OTHERS, GROUP, UNLIKE = "missing", "others", "(group)", "(unlike anybody tested)"


@dataclass(frozen=True)
class Bins:
    """A column as shares of people: of a number, between cuts; of a category, by level."""

    column: str
    cuts: tuple[float, ...]  # rising; a number x is in bin sum(x > cuts)
    names: tuple[str, ...]  # of the bins
    levels: tuple[tuple[int, ...], ...]  # of a category: the levels of each bin
    share: tuple[float, ...]  # of people in each bin

    def __post_init__(self) -> None:
        if self.share and len(self.share) != len(self.names):
            raise ValueError(f"the bins of {self.column!r} have other names than shares")
        if not all(0 <= share <= 1 + 1e-9 for share in self.share):
            raise ValueError(f"the shares of {self.column!r} are no shares")

    def place(self, encoding: Encoding, own: np.ndarray) -> np.ndarray:
        """The bin of each row [n], from the features of its column [n, features]."""
        last = len(self.names) - 1  # what is missing, or a level of its own
        if self.levels:
            level = _level_of_rows(encoding, own)
            found = np.full(len(own), last)
            for number, members in enumerate(self.levels):
                found[np.isin(level, members)] = number
            return found
        absent = np.isnan(own[:, 0])
        found = np.searchsorted(np.array(self.cuts), np.nan_to_num(own[:, 0]), side="left")
        return np.where(absent, last, found)

    def place_groups(self, problem: SelectiveLabels) -> np.ndarray:
        """The bin of each row [n] by its group: one that is small or new is in the last."""
        codes = {name: code for code, name in enumerate(self.names[:-1])}
        bins = [codes.get(name, len(codes)) for name in problem.group_names]
        return np.array(bins)[problem.group]

    def expected(self, encoding: Encoding, people: float, now: np.ndarray) -> np.ndarray:
        """Shares to be expected of the next table [bins]; `people` were behind those remembered.

        Only the most frequent levels have indicators of their own. Those that chance put among them
        are rarer in the next table although nothing changed: by as much, at most, as the largest of
        equally frequent levels exceed their mean. Within that, it is as the shares `now` say.
        """
        share, other = np.array(self.share), len(encoding.levels)
        place = np.array([*map(max, self.levels), -1])
        count, own = people * share, (place >= 0) & (place < other)
        if encoding.is_single or other not in place or not own.any():
            return share
        least = max(THRESHOLD, RARE * people, count[own].min() if other >= MOST_LEVELS else 0)
        chosen = own & (count < least + 3 * np.sqrt(2 * least))  # the rest is clearly frequent
        if chosen.any():
            rest, total = place == other, share[chosen].sum()
            part = total / (total + share[rest].sum())
            excess = norm.pdf(norm.ppf(part)) / part / np.sqrt(count[chosen].mean())
            moved = np.clip(1 - now[chosen].sum() / total, 0, min(excess, 1)) * share[chosen]
            share[chosen] -= moved
            share[rest] += moved.sum()
        return share


@dataclass(frozen=True)
class Judged:
    """How good a model was on rows that it had not seen: everybody, then each group."""

    target: str  # as in a comparison: "dr" or "tested"
    auc: Mapping[str, Estimate]
    calibration_in_the_large: Mapping[str, Estimate]
    calibration_slope: Mapping[str, Estimate] = field(default_factory=dict)
    reach: float = 1.0  # share of people whom it is about, by their tests


@dataclass(frozen=True)
class Baseline:
    """What was so when a model was fitted."""

    rows: int
    people: int
    period: tuple[str, str] | None  # the first and last time, but for a few rows
    columns: tuple[Bins, ...]
    unlike: float  # share of people unlike anybody tested
    inputs: tuple[int, ...]  # which standardised columns the model of testing has
    groups: tuple[str, ...]  # whose indicators it has, but for the first
    coefficients: np.ndarray = field(repr=False)  # [k]
    covariance: np.ndarray = field(repr=False)  # [k, k]
    tested: Mapping[str, Estimate] = field(default_factory=dict)  # share, everybody and groups
    positive: Mapping[str, Estimate] = field(default_factory=dict)  # share of the tested
    prevalence: Mapping[str, Estimate] = field(default_factory=dict)  # doubly robust
    stated: str = ""  # a prevalence that was stated, in words
    judged: Judged | None = None
    # how uncertain its mean risk and its calibration slope are: it was fitted to a sample
    doubt: Mapping[str, float] = field(default_factory=dict)
    effective_sample_size: float = nan  # people who would tell as much if all counted alike
    # share of people within reach of the tests, everybody and groups; 1 if (almost) all of them
    reach: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        size = len(self.coefficients)
        is_one = np.shape(self.covariance) == (size, size) and min(self.rows, self.people) >= 1
        if not is_one or min(self.inputs, default=0) < 0 or not all(c.share for c in self.columns):
            raise ValueError("what it remembers of its table does not fit together")

    @classmethod
    def of(
        cls,
        problem: SelectiveLabels,
        encoder: Encoder,
        standard: np.ndarray,
        unlike: np.ndarray,
        score: np.ndarray,
        evaluator: Evaluator,
    ) -> Baseline:
        """Of a table: `standard [n, inputs]` are its standardised features, `score [n]` risks."""
        people, known = People.of(problem), rates(problem, evaluator)
        inputs = _chosen_inputs(standard, problem.tested)
        coefficients, covariance = _logistic(
            design(standard, problem, inputs, problem.group_names), problem, people
        )
        return cls(
            rows=len(problem),
            people=people.n_people,
            period=None if problem.time is None else period(problem.time),
            columns=tuple(_column_bins(problem, encoder)),
            unlike=_shared(
                Bins(UNLIKE, (), ("no", "yes"), (), ()), unlike.astype(int), problem
            ).share[1],
            inputs=inputs,
            groups=problem.group_names,
            coefficients=coefficients,
            covariance=covariance,
            tested=known["tested"],
            positive=known["positive"],
            prevalence=known["prevalence"],
            stated=known_words(problem.known_prevalence),
            doubt=_doubt(problem, score, evaluator),
            effective_sample_size=kish(np.bincount(problem.person, counted_once(problem))),
            reach=reaches(evaluator),
        )

    def expected(
        self, standard: np.ndarray, problem: SelectiveLabels
    ) -> tuple[np.ndarray, np.ndarray]:
        """P(tested) of new rows as it was then [n], and its slopes in the coefficients [n, k].

        Of a group that there was not, it is the mean of what it would be in those there were.
        """
        X = design(standard, problem, self.inputs, self.groups)
        p = expit(X @ self.coefficients)
        slopes = X * (p * (1 - p))[:, None]
        new = ~np.isin(problem.group_names, self.groups)[problem.group]
        if new.any():
            own = next((one for one in self.columns if one.column == GROUP), None)
            shares = dict(zip(own.names, own.share, strict=True)) if own else {}
            known = [shares.get(name, 0.0) for name in self.groups]
            p[new] = slopes[new] = 0.0
            for name, share in zip(self.groups, known, strict=True):
                X = design(standard[new], problem.subset(new), self.inputs, self.groups, name)
                as_one = expit(X @ self.coefficients)
                part = share / sum(known) if sum(known) else 1 / len(known)
                p[new] += part * as_one
                slopes[new] += part * X * (as_one * (1 - as_one))[:, None]
        return p, slopes

    def judged_by(self, judgements: Mapping[str, Any], reach: float = 1.0) -> Baseline:
        """With how good a comparison found the method, for everybody or else among the tested.

        `reach` is the share of people within reach of its tests.
        """
        for target in ("dr", "tested"):
            one = judgements.get(target)
            if one is not None and one.auc.estimable:
                auc = {EVERYBODY: one.auc, **one.group_auc}
                off, slope = dict(one.calibration_in_the_large), dict(one.calibration_slope)
                return replace(self, judged=Judged(target, auc, off, slope, reach))
        return self


def counted_once(problem: SelectiveLabels) -> np.ndarray:
    """Weights of rows [n] that let every person count once, or by the weight of their rows."""
    if problem.id is None:
        return problem.weights
    return problem.weights / np.bincount(problem.person)[problem.person]


def reaches(evaluator: Evaluator) -> dict[str, float]:
    """Share of people within reach of the tests, everybody and groups, as it may be told."""
    rows, each = len(evaluator.problem), evaluator.reach.overlap
    return {
        name: six_digits(one.shareable(rows).reach) if one.reach < COMPLETE else 1.0
        for name, one in each.items()
    }


def rates(problem: SelectiveLabels, evaluator: Evaluator) -> dict[str, dict[str, Estimate]]:
    """Shares tested and positive among them, and the prevalence: everybody, then groups.

    A group of which hardly anybody is tested any more has only the first, and needs it most. The
    last is what tests show. A prevalence that was stated would be the same whatever they do.
    """
    people, shown = evaluator.people, evaluator
    if problem.known_prevalence:
        alike = replace(problem, known_prevalence=())
        shown = Evaluator(alike, fold=evaluator.fold, nuisances=evaluator.nuisances)
    found: dict[str, dict[str, Estimate]] = {"tested": {}, "positive": {}, "prevalence": {}}
    counts = shown_counts(problem, problem.counts()).to_dict(orient="records")
    hidden = {
        name: {cell for cell, count in one.items() if isinstance(count, str)}
        for name, one in zip((*problem.group_names, EVERYBODY), counts, strict=True)
    }
    if (problem.sent != problem.tested).any():  # counts that the rule does not know of
        every = set().union(*hidden.values())
        hidden = {name: own if name == EVERYBODY else every for name, own in hidden.items()}
    for name, mine in problem.parts().items():
        # a share with its interval tells both of its counts
        shares = [("tested", "rows", problem.sent, mine)]
        if name == EVERYBODY or not evaluator.lacking("tested", name):
            shares.append(("positive", "tested", problem.y_obs == 1, mine & problem.tested))
            found["prevalence"][name] = shown.prevalence("dr", name)
        elif people.count(mine) < FEWEST_PEOPLE:
            continue
        for rate, whole, yes, of in shares:
            few = hidden[name] & {rate, whole}
            found[rate][name] = WITHHELD if few else people.proportion(yes, of)
    return found


def _doubt(problem: SelectiveLabels, score: np.ndarray, evaluator: Evaluator) -> dict[str, float]:
    """Standard errors of what recalibrated a model: weighted tests, for its level the latest."""
    of = evaluator.masses["ipw"]
    level = of if problem.time is None else of.among(latest_rows(problem, 1 / 3))
    found = {
        "calibration": measures.calibration_in_the_large(score, level),
        "slope": measures.calibration_slope(score, of),
    }
    errors = {name: one.standard_error(evaluator.person) for name, one in found.items()}
    return {name: error if np.isfinite(error) else 0.0 for name, error in errors.items()}


def column_features(encoder: Encoder, X: np.ndarray) -> list[tuple[Encoding, np.ndarray]]:
    """Each raw column with its features [n, its]."""
    found, start = [], 0
    for encoding in encoder.encodings:
        found.append((encoding, X[:, start : start + len(encoding.features)]))
        start += len(encoding.features)
    return found


def _level_of_rows(encoding: Encoding, own: np.ndarray) -> np.ndarray:
    """The level of each row [n]: the place of its indicator, -1 if none is set, -2 if unknown."""
    level = np.where(np.nansum(own, axis=1) > 0, np.nan_to_num(own).argmax(axis=1), -1)
    return np.where(np.isnan(own).all(axis=1), -2, level)


def _column_bins(problem: SelectiveLabels, encoder: Encoder) -> list[Bins]:
    """Columns and group in bins of ten people; dates are left out, which move by themselves."""
    found = []
    person = problem.person
    for encoding, own in column_features(encoder, problem.X):
        if encoding.kind == "date":
            continue
        if encoding.kind == "category":
            one = _category(encoding, own, person)
        else:
            one = _number_bins(encoding.name, own[:, 0], person, yes_no=encoding.kind == "boolean")
        if one is not None:
            found.append(_shared(one, one.place(encoding, own), problem))
    if problem.n_groups > 1:
        sizes = people_of(problem.group, person, problem.n_groups)
        large = [problem.group_names[code] for code in np.flatnonzero(sizes >= THRESHOLD)]
        one = Bins(GROUP, (), (*large, OTHERS), (), ())
        found.append(_shared(one, one.place_groups(problem), problem))
    return found


def _shared(bins: Bins, code: np.ndarray, problem: SelectiveLabels) -> Bins:
    """Bins with the shares of people in them, in tens where there is a small one."""
    weight, size = counted_once(problem), len(bins.names)
    share = np.bincount(code, weight, minlength=size) / weight.sum()
    few = few_in(code, problem.person, size)
    if few.any():
        share = in_public(share, few, len(np.unique(problem.person)))
    return replace(bins, share=tuple(map(six_digits, share)))


def few_in(code: np.ndarray, person: np.ndarray, size: int) -> np.ndarray:
    """Which bins one to nine people are in [bins]."""
    people = people_of(code, person, size)
    return (people > 0) & (people < THRESHOLD)


def in_public(share: np.ndarray, few: np.ndarray, people: int) -> np.ndarray:
    """Shares of people in bins; those of a bin with `few` count as five.

    The others are counted in tens: exact shares would tell how many those few are.
    """
    fives = few * THRESHOLD / 2
    others = np.where(few, 0, share)
    left = max(people - fives.sum(), THRESHOLD)
    tens = np.round(left * others / max(others.sum(), 1e-300) / THRESHOLD)
    tens = np.maximum(tens, others > 0)
    found = fives + left * tens / max(tens.sum(), 1)
    return np.asarray(found / found.sum())


def _category(encoding: Encoding, own: np.ndarray, person: np.ndarray) -> Bins | None:
    level = _level_of_rows(encoding, own)
    people = people_of(level + 2, person, own.shape[1] + 2)
    first = -1 if encoding.is_single and encoding.levels else 0  # else -1 is of rare levels
    kept = [number for number in range(first, own.shape[1]) if people[number + 2] >= THRESHOLD]
    if not kept:
        return None
    names = [
        encoding.levels[0]
        if number < 0
        else encoding.features[number].removeprefix(f"{encoding.name}=")
        for number in kept
    ]
    levels = tuple((number,) for number in kept)
    return Bins(encoding.name, (), (*names, OTHERS), levels, ())


def _number_bins(
    name: str, x: np.ndarray, person: np.ndarray, *, yes_no: bool = False
) -> Bins | None:
    known = x[~np.isnan(x)]
    if len(known) < THRESHOLD:
        return None
    values = np.unique(known)
    cuts = np.unique(np.quantile(known, np.arange(1, BINS) / BINS, method="inverted_cdf"))
    if len(values) <= BINS:
        cuts = values[:-1]
    cuts = cuts[cuts < values[-1]]
    kept: list[float] = []  # cuts that leave at least ten people on either side
    code = np.searchsorted(cuts, known, side="left")
    enough = people_of(code, person[~np.isnan(x)], len(cuts) + 1) >= THRESHOLD
    since = 0  # the first bin after the last cut that was kept
    for number, cut in enumerate(cuts):
        if enough[since : number + 1].any() and enough[number + 1 :].any():
            kept.append(six_digits(cut))
            since = number + 1
    ends = ["", *(f"{float(f'{cut:.3g}'):,.9g}" for cut in kept), ""]
    names = [
        f"over {a}" if not b else f"up to {b}" if not a else f"{a} to {b}"
        for a, b in pairwise(ends)
    ]
    if len(values) == 2 and kept:  # `smoker` yes, not: over 0
        names = ["no", "yes"] if yes_no else [f"{six_digits(value):,.9g}" for value in values]
    if not kept:
        names = ["recorded"]
    return Bins(name, tuple(kept), (*names, MISSING), (), ())


def _chosen_inputs(standard: np.ndarray, tested: np.ndarray) -> tuple[int, ...]:
    """The columns that go with testing most, if there are too many for all."""
    if standard.shape[1] <= INPUTS:
        return tuple(range(standard.shape[1]))
    centred = standard - standard.mean(axis=0)
    size = np.maximum(centred.std(axis=0), 1e-12)
    tie = np.abs((centred * (tested - tested.mean())[:, None]).mean(axis=0) / size)
    return tuple(sorted(np.argsort(-tie, kind="stable")[:INPUTS].tolist()))


def design(
    standard: np.ndarray,
    problem: SelectiveLabels,
    inputs: Sequence[int],
    groups: Sequence[str],
    as_group: str | None = None,
) -> np.ndarray:
    """What the model of testing sees [n, k]: 1, columns, their squares, and the group.

    That is their own, or everybody's `as_group`.
    """
    Z_ = np.clip(standard[:, list(inputs)], -4, 4)
    names = np.array(problem.group_names, dtype=object)[problem.group]
    if as_group is not None:
        names[:] = as_group
    member = names[:, None] == np.array(groups[1:], dtype=object)
    return np.concatenate([np.ones((len(Z_), 1)), Z_, Z_**2, member], axis=1).astype(float)


def _logistic(
    X: np.ndarray, problem: SelectiveLabels, people: People
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of a ridge regression of who is tested, and their clustered covariance."""
    t, w = problem.tested.astype(float), people.weight / people.weight.mean()
    penalty = np.full(X.shape[1], RIDGE)
    penalty[0] = 1e-6
    beta, pull, curvature = logistic(X, w * t, w, ridge=penalty)
    return beta, clustered_covariance(pull, curvature, people.person)


def standard_error(found: Estimate) -> float:
    """Half the width of an interval, in standard errors."""
    return (found.high - found.low) / (2 * Z)
