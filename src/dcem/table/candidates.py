"""Which column may be the label, and which says who was tested: each is known by the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from dcem.table import hints, outcome, values
from dcem.table.hints import Seen
from dcem.table.messages import listed
from dcem.text import percent

FEW = 12  # distinct values of a label
ENOUGH = 0.99  # of the rows agree: the rest are slips


@dataclass
class Candidate:
    """A column that may be the label."""

    column: Seen
    score: float
    positive: tuple[str, ...]
    untested: tuple[str, ...]
    looked: np.ndarray  # [n] whether it holds a result
    whys: list[str]
    doubts: list[str] = field(default_factory=list)
    tested: tuple[Seen, ...] = ()

    def is_one_value(self) -> bool:
        """Whether it marks those who were found positive, and nobody else."""
        return len(self.column.text.values) == 1


def candidates(seen: Sequence[Seen]) -> Iterator[Candidate]:
    """Columns with few values that may be the label, rated by name, gaps and testing."""
    yes_no = [c for c in seen if c.is_yes_no()]
    for column in seen:
        least = 0 if column.missing > 0 else 1  # a mark and blanks, or several values
        if not least < len(column.text.values) <= FEW or column.is_sensitive():
            continue
        found = _as_label(column, _value_where_not(column, yes_no))
        if found is None:
            continue
        if hints.TESTED.search(column.words) and not hints.RESULT.search(column.words):
            found.score -= 2  # the decision rather than its result, unless it has gaps
        _pair(found, [c for c in yes_no if c.name != column.name])
        yield found


def _value_where_not(column: Seen, yes_no: Sequence[Seen]) -> str | None:
    """The value that stands exactly where a decision says no, in whatever language, if there is."""
    if len(column.text.values) < 3:
        return None
    for decision in yes_no:
        if decision.missing or not hints.TESTED.search(decision.words):
            continue
        off = ~decision.says_yes()
        for code, value in enumerate(column.text.values):
            if np.mean((column.text.codes == code) == off) >= ENOUGH:
                return value
    return None


def _as_label(column: Seen, in_place: str | None = None) -> Candidate | None:
    """The column as a label, rated by its name and its values; one may stand for no test."""
    untested = tuple(
        v for v in column.text.values if v == in_place or v.casefold() in outcome.NOT_DONE
    )
    results = [v for v in column.text.values if v not in untested]
    looked = column.text.take(np.array([v not in untested for v in column.text.values]), False)
    score, whys = 0.0, []
    if hints.LABEL.search(column.words):
        score, whys = 3.0, ["Named like an outcome"]
    elif hints.RESULT.search(column.words):
        score, whys = 2.0, ["Named like a result"]
    doubts: list[str] = []
    positive: tuple[str, ...] = ()
    if values.yes_or_no(results) is None:
        bad = [
            v
            for v in results
            if hints.BAD.search(v.casefold()) and not hints.GOOD.search(v.casefold())
        ]
        if 0 < len(bad) < len(results):
            positive = tuple(bad)
            doubts.append(
                f"Of {listed(results)} in {column.name!r}, {listed(bad)} was taken as yes, all "
                "else as no. Check that."
            )
        elif (score or in_place) and len(results) == 2:
            counts = dict(zip(column.text.values, column.text.counts(), strict=True))
            positive = (min(results, key=lambda v: counts[v]),)
            doubts.append(
                f"Which of {listed(results)} in {column.name!r} means yes cannot be told; "
                f"{positive[0]!r} was taken because it is rarer."
            )
        else:
            return None
    elif len(results) != 2 and not (score and len(results) == 1 and _says_yes(results[0])):
        return None
    empty = 1 - float(looked.mean())
    if 0.01 < empty < 1:
        score += 1 + bool(untested)
        whys.append(f"no result in {percent(empty)} of the rows")
    if score:
        whys.append(f"values {listed(results)}")
    return Candidate(column, score, positive, untested, looked, whys, doubts)


def _says_yes(value: str) -> bool:
    return bool(values.yes_no([value])[0] == 1)


def _pair(candidate: Candidate, yes_no: Sequence[Seen]) -> None:
    """Find the column, or two of them, that say where this label was looked for."""
    chosen = {c.name: c.says_yes() for c in yes_no if c.missing == 0}
    named = [c for c in yes_no if c.name in chosen and hints.TESTED.search(c.words)]
    others = [c for c in yes_no if c.name in chosen and c not in named]
    if candidate.looked.mean() < ENOUGH:
        for c in [*named, *others]:
            if np.mean(chosen[c.name] == candidate.looked) >= ENOUGH:
                candidate.tested = (c,)
                break
        else:
            for a, b in combinations(named, 2):
                either = chosen[a.name] | chosen[b.name]
                if np.mean(either == candidate.looked) >= ENOUGH:
                    candidate.tested = (a, b)
                    break
        if candidate.tested:
            candidate.score += 4 if candidate.tested[0] in named else 2
            _mention_slips(candidate, chosen)
        return
    positive = _is_positive(candidate)
    for c in named:  # zeros may stand for "nobody looked"
        off = ~chosen[c.name]
        if off.sum() >= 20 and not positive[off].any() and positive[~off].mean() > 0.01:
            candidate.tested = (c,)
            candidate.score += 4
            return


def _mention_slips(candidate: Candidate, chosen: Mapping[str, np.ndarray]) -> None:
    """A decision and a label that disagree in some rows cannot both be taken as they are."""
    said = np.any([chosen[c.name] for c in candidate.tested], axis=0)
    slips = int((said != candidate.looked).sum())
    if slips:
        names = " or ".join(repr(c.name) for c in candidate.tested)
        candidate.doubts.append(
            f"{names} and {candidate.column.name!r} disagree in {slips:,} rows about who was "
            "tested, so the label alone decides. Correct these rows if the column should."
        )
        candidate.tested = ()


def why_tested(best: Candidate) -> str:
    """The sentence that goes with every column of `best.tested`."""
    share = np.any([c.says_yes() for c in best.tested], axis=0).mean()
    how = "holds no yes where it says no"
    if best.looked.mean() < ENOUGH:
        how = "has a result exactly where it says yes"
        if len(best.tested) > 1:
            how = f"has a result exactly where {' or '.join(c.name for c in best.tested)} says yes"
    return f"{best.column.name!r} {how}: {percent(share)} of the rows."


def _is_positive(candidate: Candidate) -> np.ndarray:
    text = candidate.column.text
    if candidate.positive:
        return text.take(np.array([v in candidate.positive for v in text.values]), False)
    return text.take(values.yes_no(text.values) == 1, False)
