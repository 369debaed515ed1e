"""What drives testing, and the outcome: how much worse each is predicted when a column is permuted.

The columns that come from one raw column (its categories, its mark for missing) are permuted
together among held-out people, and the log loss of the out-of-fold model rises by what the model
owes to that column (permutation importance: Breiman 2001; Fisher, Rudin and Dominici 2019). The
direction is the predicted share when everybody had a high instead of a low value (90th against 10th
percentile), or one common category instead of another, all else as it is.

Side by side they say what a reviewer asks: a column that drives testing and not the outcome sends
people to a test for another reason than their risk.

Importance is about prediction, not cause. Columns that say the same share their importance, and a
column recorded *after* the decision to test can top the list because it is its consequence. Columns
overlap and act together, so the rises do not add up to what the model explains; a column's share is
of the sum of all rises.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from dcem.audit.results import Driver
from dcem.estimation.cross_fitting import CrossFit, Features, draw_rows, learnt_groups
from dcem.estimation.effects import rounded_values, values_in_words
from dcem.estimation.influence import People, Z
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import THRESHOLD
from dcem.table.labels import SelectiveLabels
from dcem.text import percent

HELD_OUT_ROWS = 10_000  # held-out rows, over all folds
MOVED = 2_000  # of them to show the direction
DESCRIBED = 15  # columns whose direction is described, the most important ones
CATEGORIES = 12  # a column with no more distinct values is described by its categories
GROUP = "(group)"
OTHERS = "a small group"
TIME = "(time)"


def find_drivers(
    problem: SelectiveLabels,
    people: People,
    sources: Sequence[str],
    rng: np.random.Generator,
    model: CrossFit | None,
    target: np.ndarray,
    among: np.ndarray,
    dates: Collection[str] = (),
) -> tuple[Driver, ...]:
    """Every raw column with its importance to a model of `target` [n], most important first.

    It is judged on the rows `among` [n] whose target is known. Without a model, nothing is said.
    The numbers of the columns `dates` are days.
    """
    if model is None:
        return ()
    features = Features.of(problem)
    rows = draw_rows(np.flatnonzero(among), HELD_OUT_ROWS, rng)
    asked = _Held(model, rows, features.take(rows), people.weight[rows])
    seen = target[rows].astype(bool)
    names = list(sources) + [TIME] * (features.time is not None)
    names += [GROUP] * (features.n_groups if features.group is not None else 0)
    labels = [*problem.feature_names, *[TIME] * (TIME in names)]
    if GROUP in names:
        place = learnt_groups(problem)[0].tolist()
        by_place = dict(zip(place, problem.group_names, strict=True))
        labels += [
            name if place.count(number) == 1 else OTHERS
            for number, name in sorted(by_place.items())
        ]
    is_date = problem.time is not None and problem.time.dtype.kind == "M"
    dates = {*dates, *[TIME] * is_date}
    person = None if people.person is None else people.person[rows]
    part = People(people.weight[rows], person, people.n_people)

    def losses(X: np.ndarray) -> np.ndarray:
        p = np.clip(model.chance(X, rows), 1e-6, 1 - 1e-6)
        return -np.log(np.where(seen, p, 1 - p))

    base = losses(asked.X)
    found = []
    for source in dict.fromkeys(names):
        columns = [number for number, name in enumerate(names) if name == source]
        shuffled = asked.X.copy()
        shuffled[:, columns] = asked.X[rng.permutation(len(rows))][:, columns]
        rise = part.mean(losses(shuffled) - base)
        found.append((source, columns, rise.value, Z * part.error(rise)))
    found.sort(key=lambda item: -item[2])
    everything = sum(max(rise, 0.0) for _, _, rise, _ in found)
    some = slice(None, None, -(-len(rows) // MOVED))  # evenly spaced
    few = _Held(model, rows[some], asked.X[some], asked.weight[some])
    return tuple(
        Driver(
            column=source,
            loss=Estimate(1000 * rise, 1000 * (rise - reach), 1000 * (rise + reach)),
            share=max(rise, 0.0) / everything if everything > 0 else float("nan"),
            direction=_direction(
                few, columns, [labels[c] for c in columns], source, "date" * (source in dates)
            )
            if rank < DESCRIBED
            else "",
        )
        for rank, (source, columns, rise, reach) in enumerate(found)
    )


class _Held(NamedTuple):
    """Held-out rows, each asked of the model that has not seen it."""

    model: CrossFit
    rows: np.ndarray  # [m] positions in the table
    X: np.ndarray  # [m, d]
    weight: np.ndarray  # [m]


def _direction(asked: _Held, columns: list[int], labels: list[str], source: str, kind: str) -> str:
    """In words: what the predicted share does as the column changes."""

    def rate(values: np.ndarray) -> float:
        moved = asked.X.copy()
        moved[:, columns] = values
        return float(np.average(asked.model.chance(moved, asked.rows), weights=asked.weight))

    block = asked.X[:, columns]
    filled = np.where(np.isnan(block), np.inf, block)  # to numpy, no two missing values are equal
    patterns, count = np.unique(filled, axis=0, return_counts=True)
    patterns = np.where(np.isinf(patterns), np.nan, patterns)
    if len(patterns) == 1:
        return "the same for everybody"
    if len(patterns) <= CATEGORIES or len(columns) > 2:
        common = patterns[np.argsort(-count)[:CATEGORIES]]
        if count.max() >= THRESHOLD:
            common = common[np.sort(-count)[: len(common)] <= -THRESHOLD]
        rates = [rate(pattern) for pattern in common]
        if len(rates) < 2:
            return "hardly varies"
        most, least = int(np.argmax(rates)), int(np.argmin(rates))
        return (
            f"{_pattern(common[most], labels, source, kind)}: {percent(rates[most], 1)}, "
            f"{_pattern(common[least], labels, source, kind)}: {percent(rates[least], 1)}"
        )
    many = max(range(len(columns)), key=lambda c: len(np.unique(block[:, c])))
    present = block[~np.isnan(block[:, many]), many]
    low, high = np.quantile(present, (0.1, 0.9))
    if low == high:
        return "hardly varies"
    typical = np.nanmedian(block, axis=0)
    ends = [np.where(np.arange(len(columns)) == many, value, typical) for value in (low, high)]
    below, above = (rate(end) for end in ends)
    word = "about as often" if abs(above - below) < 0.005 else "more" if above > below else "less"
    when = "late" if kind == "date" else "high"
    first, last = values_in_words(rounded_values(np.array([low, high])), kind)
    return f"{word} when {when}: {percent(below, 1)} at {first}, {percent(above, 1)} at {last}"


def _pattern(values: np.ndarray, labels: list[str], source: str, kind: str = "") -> str:
    """A combination of encoded columns as the value it stands for."""
    if np.isnan(values).any():
        return "missing"
    prefix = f"{source}="
    if len(labels) == 1:
        if not labels[0].startswith(prefix):
            return values_in_words(values, kind)[0]
        level = labels[0].removeprefix(prefix)
        return level if values[0] == 1 else f"not {level}"
    active = [label for label, value in zip(labels, values, strict=True) if value == 1]
    return " and ".join(label.removeprefix(prefix) for label in active) or "none of these"
