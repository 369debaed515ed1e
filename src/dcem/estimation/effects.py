"""What a prediction relies on, whoever learnt it: permutation importance and accumulated effects.

A model is asked about a sample of people once as they are and then with one raw column changed (all
features that come from it together: its categories, its mark for missing).

*Permutation importance* (Breiman 2001; Fisher, Rudin and Dominici 2019): each person gets the
column of another one, and the mean squared change of the prediction is what it owes to the column.
No outcome is needed, so the score of everybody can be asked, and who is tested in the same unit.
Columns that say the same share their importance; a column's share is of the sum over all.

*Accumulated local effects* (Apley and Zhu, JRSS B 2020): people move to both ends of their own bin
of a column, nobody further, and the mean changes are added up from bin to bin. Unlike a partial
dependence, which asks everybody at every value, this does not credit a column with the effect of
another one that goes with it, and asks about no person who could not exist. Bins of a number hold
equal numbers of people. People with one of few values, or a level of a category, move to the
neighbours of their own; levels are in the order of how alike their people are otherwise. Whoever
lacks the value moves to the middle one.

Disclosure: every value that is shown belongs to at least ten people of the sample, and ends of bins
are rounded, with at least ten people beyond the outermost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, log10

import numpy as np

from dcem.estimation.cross_fitting import CrossFit, Features, draw_rows
from dcem.estimation.results import Effect
from dcem.table.disclosure import THRESHOLD, people_of
from dcem.table.encoder import MISSING, OTHER, Encoder, Encoding
from dcem.table.labels import SelectiveLabels

EXPLAINED_ROWS = 50_000  # rows that a saved model is explained by and remembers
TESTING_ROWS = 5_000  # rows that its model of who is tested is fitted to
ASKED_PEOPLE = 2_000  # people asked, at most
FEWEST = 200  # and at least, if there are so many
ASKED = 200_000  # rows that a model is asked about, at most: three per person and column
AT_ONCE = 20_000  # rows asked about together, and
CELLS = 4_000_000  # numbers in them, at most
BINS = 10
ENDS = (0.05, 0.95)  # quantiles: what lies beyond is not shown
MOST = 12  # columns that are shown
NOWHERE = -1
# A column drives testing more than something else: at least so much of it, so many times as much,
# and not in a prediction that hardly varies.
MUCH, TIMES, MOVED = 0.1, 2.0, 0.01

Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]  # X [n, d], positions [n] -> [n]


@dataclass(frozen=True)
class _Column:
    """A raw column, where it stands among the features, and where people in it move to."""

    name: str
    features: np.ndarray  # [f] positions
    stops: np.ndarray  # [stops, f]
    names: tuple[str, ...]  # [stops]
    own: np.ndarray  # [rows] the stop, or the bin, that a person is in; NOWHERE
    binned: bool  # whether `own` is a bin, between a stop and the next
    number: bool
    lacking: np.ndarray  # [rows] whether a number is missing

    @property
    def moves(self) -> tuple[np.ndarray, np.ndarray]:
        """The stops that a person moves to, down and up [rows]; NOWHERE if there is none."""
        if len(self.stops) < 2:
            return (np.full(len(self.own), NOWHERE),) * 2
        there = self.own != NOWHERE
        down = np.where(there, self.own - (not self.binned), NOWHERE)
        up = np.where(there & (self.own + 1 < len(self.stops)), self.own + 1, NOWHERE)
        return np.where(self.lacking, len(self.stops) // 2, down), up


@dataclass(frozen=True)
class Questions:
    """The same questions for any number of models of one table."""

    rows: np.ndarray  # [m] positions in the table, rising
    X: np.ndarray  # [m, d]
    weight: np.ndarray  # [m]
    columns: tuple[_Column, ...]
    donors: np.ndarray  # [columns, m] whose column a person gets

    @classmethod
    def about(
        cls, problem: SelectiveLabels, encoder: Encoder | None, random_state: int
    ) -> Questions:
        """About a sample of a table's people; without an encoder a column is a feature."""
        rng = np.random.default_rng(random_state)
        encodings = (
            encoder.encodings
            if encoder is not None
            else tuple(Encoding(name, "number") for name in problem.feature_names)
        )
        most = int(np.clip(ASKED // (3 * len(encodings)), FEWEST, ASKED_PEOPLE))
        rows = draw_rows(np.arange(len(problem)), most, rng)
        X, person = problem.X[rows], problem.person[rows]
        ends = np.cumsum([0, *(len(one.features) for one in encodings)])
        columns = tuple(
            _column(one, X, np.arange(first, last), person)
            for one, first, last in zip(encodings, ends[:-1], ends[1:], strict=True)
        )
        donors = np.stack([rng.permutation(len(rows)) for _ in columns])
        return cls(rows, X, problem.weights[rows], columns, donors)

    def among(self, part: np.ndarray) -> PartQuestions:
        """The same questions about those who are in a part of the table; `part [n]` is a mask."""
        some = np.flatnonzero(part[self.rows])
        return PartQuestions(self, some, (np.cumsum(part) - 1)[self.rows[some]])

    def ask(self, predict: Predict, some: np.ndarray | None = None) -> np.ndarray:
        """What a model says of (`some` of) the people, as they are and changed [1 + 3 c, people].

        `predict` is given features, and the positions of the people they are made from. Whom a
        question leaves as they are, it need not ask about.
        """
        some = np.arange(len(self.rows)) if some is None else some
        n_questions = 1 + 3 * len(self.columns)
        if not len(some):
            return np.empty((n_questions, 0))
        X, at_once = self.X[some], min(AT_ONCE, CELLS // self.X.shape[1])
        found = np.tile(predict(X, np.arange(len(some))), (n_questions, 1))
        waiting: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # question, person, features
        n_waiting = 0
        for number in range(1, n_questions):
            own = self.columns[(number - 1) // 3].features
            values = self._changed(number, some)
            at = np.flatnonzero((values != X[:, own]).any(axis=1))
            rows = X[at]
            rows[:, own] = values[at]
            waiting.append((np.full(len(at), number), at, rows))
            n_waiting += len(at)
            if number == n_questions - 1 or n_waiting >= at_once:
                asked, people, rows = map(np.concatenate, zip(*waiting, strict=True))
                if len(people):
                    found[asked, people] = predict(rows, people)
                waiting, n_waiting = [], 0
        return found

    def _changed(self, number: int, some: np.ndarray) -> np.ndarray:
        """The column that a question changes `[people, features of it]`, as it then is."""
        place, what = divmod(number - 1, 3)
        column = self.columns[place]
        if what == 0:
            return self.X[self.donors[place, some][:, None], column.features]
        values = self.X[some[:, None], column.features]
        to = column.moves[what - 1][some]
        moved = np.flatnonzero(to != NOWHERE)
        values[moved] = column.stops[to[moved]]
        return values

    def answer(self, found: np.ndarray, by: np.ndarray | None = None) -> tuple[Effect, ...]:
        """What each column does, in the order of the table, from what `ask` returned of all.

        `by [m]` is the model that somebody was asked of, where there are several.
        """
        base, by = found[0], np.zeros(len(self.rows)) if by is None else by
        change = self.weight / self.weight.sum() * (found[1::3] - base) ** 2  # [columns, m]
        most = np.max(
            [_shares_of_change(change[:, by == model]) for model in np.unique(by)], axis=0
        )
        effects = []
        for place, column in enumerate(self.columns):
            down, up = found[2 + 3 * place : 4 + 3 * place]
            moved = float(np.sqrt(change[place].sum()))
            effects.append(_accumulated(column, base, down, up, self.weight, moved))
        return tuple(
            replace(one, share=float(share), most=float(largest))
            for one, share, largest in zip(effects, _shares_of_change(change), most, strict=True)
        )


def _shares_of_change(change: np.ndarray) -> np.ndarray:
    """Of each column in all changes `[columns, people]`; NaN where nothing changes."""
    of, whole = change.sum(axis=1), change.sum()
    return of / whole if whole > 0 else np.full(len(of), np.nan)


@dataclass(frozen=True)
class PartQuestions:
    """Questions about those of the people who are in one part of the table."""

    questions: Questions
    some: np.ndarray  # their positions among all who are asked
    places: np.ndarray  # their positions in the part

    def answers(self, predict: Predict) -> np.ndarray:
        """What `Questions.ask` returns, of these people."""
        return self.questions.ask(predict, self.some)


def effects_on_testing(
    questions: Questions, model: CrossFit | None, problem: SelectiveLabels
) -> tuple[Effect, ...]:
    """What each column does to who is tested, by models that have not seen the person."""
    if model is None:
        return ()
    # time and group
    own = Features.of(problem).take(questions.rows)[:, problem.X.shape[1] :]

    def predict(X: np.ndarray, at: np.ndarray) -> np.ndarray:
        return model.chance(np.concatenate([X, own[at]], axis=1), questions.rows[at])

    return questions.answer(questions.ask(predict))


def _accumulated(
    column: _Column,
    base: np.ndarray,
    down: np.ndarray,
    up: np.ndarray,
    weight: np.ndarray,
    moved: float,
) -> Effect:
    """The accumulated local effect, from what is predicted one stop down and one stop up."""
    effect = Effect(column.name, float("nan"), moved)
    if len(column.stops) < 2:
        return effect
    n, own = len(column.stops), column.own
    below, above = (to != NOWHERE for to in column.moves)
    below &= ~column.lacking
    bin_sum, bin_weight = np.zeros(n - 1), np.zeros(n - 1)
    steps: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]] = (
        [(below & above, own, up - down)]
        if column.binned
        else [(below, own - 1, base - down), (above, own, up - base)]
    )
    for rows, which, change in steps:
        bin_sum += np.bincount(which[rows], (weight * change)[rows], n - 1)
        bin_weight += np.bincount(which[rows], weight[rows], n - 1)
    curve = np.concatenate([[0.0], np.cumsum(bin_sum / np.maximum(bin_weight, 1e-300))])
    at_own = (curve[:-1] + curve[1:]) / 2 if column.binned else curve
    here = own != NOWHERE
    total, mean = weight[here].sum(), float(weight[here] @ at_own[own[here]])
    names, place = column.names, np.full(n, np.nan)
    if column.number:
        place = column.stops[:, 0]
    lacking = column.lacking
    if lacking.any():
        from_middle = np.average((base - down)[lacking], weights=weight[lacking])
        curve = np.append(curve, curve[n // 2] + from_middle)
        names, place = (*names, "missing"), np.append(place, np.nan)
        total, mean = total + weight[lacking].sum(), mean + weight[lacking].sum() * curve[-1]
    return replace(effect, at=names, place=place, value=curve - mean / total)


def _column(encoding: Encoding, X: np.ndarray, features: np.ndarray, person: np.ndarray) -> _Column:
    """Where the people of a column may move to."""
    block = X[:, features]
    nobody = np.zeros(len(X), bool)
    if encoding.kind == "category":
        marks = [*encoding.levels, *[OTHER] * encoding.other, *[MISSING] * encoding.missing]
        stops = np.array([[0.0], [1.0]]) if encoding.is_single else np.eye(len(marks))
        same = (block[:, None, :] == stops[None]).all(axis=2)  # [rows, marks]
        names = [mark.strip("()") if mark in (OTHER, MISSING) else mark for mark in marks]
        own = np.where(same.any(axis=1), same.argmax(axis=1), NOWHERE)
        kept, own = _of_enough_people(own, len(stops), person)
        order = _alike(np.delete(X, features, axis=1), own, len(kept))
        own = np.where(own == NOWHERE, NOWHERE, np.argsort(order)[own])
        kept = kept[order]
        return _Column(
            encoding.name,
            features,
            stops[kept],
            tuple(names[i] for i in kept),
            own,
            False,
            False,
            nobody,
        )
    values = block[:, 0]
    present = ~np.isnan(values)
    distinct = np.unique(values[present])
    binned = len(distinct) > BINS + 1
    if binned:
        stops, own = _bins_of_people(values, present, person)
    else:
        own = np.where(present, np.searchsorted(distinct, values), NOWHERE)
        kept, own = _of_enough_people(own, len(distinct), person)
        stops = distinct[kept]
    enough = len(stops) > 1 and len(np.unique(person[~present])) >= THRESHOLD
    return _Column(
        encoding.name,
        features,
        stops[:, None],
        values_in_words(stops, encoding.kind),
        own,
        binned,
        encoding.kind != "boolean",
        ~present if enough else nobody,
    )


def _of_enough_people(own: np.ndarray, n: int, person: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of `n` stops at least ten people are at, and everybody's among them [rows]."""
    here = own != NOWHERE
    kept = np.flatnonzero(people_of(own[here], person[here], n) >= THRESHOLD)
    place = np.full(n + 1, NOWHERE)  # the last is for those who are nowhere
    place[kept] = np.arange(len(kept))
    return kept, place[own]


def _bins_of_people(
    values: np.ndarray, present: np.ndarray, person: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rounded ends of bins of about equal numbers of people, and the bin of each [rows]."""
    ends = np.quantile(values[present], np.linspace(*ENDS, BINS + 1))
    ends = np.unique(rounded_values(ends))
    few = np.zeros(1, bool)
    while len(ends) > 1 and few.size:
        own = np.where(present, np.searchsorted(ends, values, side="left"), 0)
        counts = people_of(own[present], person[present], len(ends) + 1)
        few = np.flatnonzero(counts < THRESHOLD)
        if few.size:  # an end goes, and its bin joins the one before
            ends = np.delete(ends, min(max(few[0] - 1, 0), len(ends) - 1))
    if len(ends) < 2:
        return np.zeros(0), np.full(len(values), NOWHERE)
    inside = present & (values >= ends[0]) & (own < len(ends))
    return ends, np.where(inside, np.maximum(own - 1, 0), NOWHERE)


def _alike(others: np.ndarray, own: np.ndarray, n: int) -> np.ndarray:
    """Levels in the order of how alike their people are in all other columns [n].

    Along the first principal axis of the levels' means: neighbours are levels between which a
    person could be imagined to move.
    """
    if n < 3 or not others.shape[1]:
        return np.arange(n)
    spread = np.nanstd(others, axis=0)
    varies = np.isfinite(spread) & (spread > 0)
    scaled = (others[:, varies] - np.nanmean(others[:, varies], axis=0)) / spread[varies]
    scaled = np.nan_to_num(scaled)
    means = np.stack([scaled[own == level].mean(axis=0) for level in range(n)])
    means -= means.mean(axis=0)
    axis = np.linalg.svd(means, full_matrices=False)[2][:1]
    along = (means @ axis.T)[:, 0] if axis.size else np.zeros(n)
    return np.argsort(along * (1 if along[0] <= along[-1] else -1), kind="stable")


def rounded_values(values: np.ndarray) -> np.ndarray:
    """Rising values to about a thirtieth of their span, as a reader would write them.

    >>> rounded_values(np.array([20812.0, 50377.0, 81577.0]))
    array([21000., 50000., 82000.])
    """
    span = values[-1] - values[0]
    if not span > 0:
        return values
    step = 10.0 ** floor(log10(span / 30))
    return np.round(values / step) * step


def values_in_words(values: np.ndarray, kind: str) -> tuple[str, ...]:
    """Values of a column of this kind (`Encoding.kind`) as a reader knows them."""
    if kind == "boolean":
        return tuple("yes" if value else "no" for value in values)
    if kind == "date":
        return tuple(str(np.datetime64(int(value), "D")) for value in values)
    return tuple(f"{value:,.10g}" if abs(value) >= 10_000 else f"{value:.6g}" for value in values)


def most_telling(
    testing: Sequence[Effect], scores: Mapping[str, Sequence[Effect]], most: int = MOST
) -> list[str]:
    """The columns that drive testing or any of the scores most, the strongest first."""
    largest: dict[str, float] = {}
    for effects in (testing, *scores.values()):
        for one in effects:
            largest[one.column] = max(largest.get(one.column, 0.0), np.nan_to_num(one.share))
    return sorted(largest, key=lambda column: -largest[column])[:most]


def drives_testing_more(
    testing: Sequence[Effect], score: Sequence[Effect]
) -> dict[str, tuple[float, float]]:
    """Columns that drive testing more than the score, by any of its models; shares in both.

    Models of several folds have seen other people each. Where few tests are positive, what drives
    them is chance, and they disagree.
    """
    other = {one.column: one for one in score}
    return {
        one.column: (one.share, other[one.column].share)
        for one in testing
        if one.moved >= MOVED
        and one.share >= MUCH
        and one.column in other
        and one.share >= TIMES * other[one.column].most
    }
