"""A table of people in a few lines of text: sizes, who is tested, what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dcem.table.disclosure import few_people, hide_groups
from dcem.text import percent

if TYPE_CHECKING:
    from dcem.table.labels import SelectiveLabels


def counts(problem: SelectiveLabels) -> pd.DataFrame:
    """Rows, tested rows and positives among them, per group level."""
    columns = {
        "rows": np.ones(len(problem), bool),
        "tested": problem.tested,
        "positive": problem.y_obs == 1,
    }
    return pd.DataFrame(
        {
            name: np.bincount(problem.group[mask], minlength=problem.n_groups)
            for name, mask in columns.items()
        },
        index=pd.Index(problem.group_names, name="group"),
    )


def of(problem: SelectiveLabels, most: int, *, small_cells: bool) -> str:
    """A line on all, and one per group, at most `most`; or without small cells."""
    people = "" if problem.id is None else f" of {_count(len(np.unique(problem.person)), 'person')}"
    gaps = int(np.isnan(problem.X).any(axis=0).sum())
    lines = [
        f"{_count(len(problem), 'row')}{people}, {_count(len(problem.feature_names), 'feature')}"
        + (f" ({gaps} with missing values)" if gaps else "")
        + (", weighted" if problem.weight is not None else "")
    ]
    counted = counts(problem)
    shown = pd.concat([counted, counted.sum().to_frame("all").T])
    if not small_cells:
        shown = without_small_cells(problem, counted)
    first = range(min(most, problem.n_groups)) if problem.n_groups > 1 else ()
    shown = shown.iloc[[*first, -1]]
    width = max(len("group"), *(len(str(name)) for name in shown.index))
    rows = [("group", "rows", "tested", "positive of tested")]
    if problem.positives_only:
        rows = [("group", "rows", "found positive", "")]
    for name, n, tested, positive in shown.itertuples():
        of_tested = "" if problem.positives_only else _part(positive, tested)
        rows.append((name, _number(n), _part(tested, n), of_tested))
    lines += [f"{a:<{width}}  {b:>10}  {c:>18}  {d:>18}".rstrip() for a, b, c, d in rows]
    if problem.n_groups > most:
        lines.insert(-1, f"... and {problem.n_groups - most} more groups")
    if problem.positives_only:
        lines.append("There is no record of testing: of everybody not found nothing is known.")
    return "\n".join(lines)


def in_short(problem: SelectiveLabels) -> str:
    """All in one line."""
    tested, positive = int(problem.tested.sum()), int(np.nansum(problem.y_obs))
    groups = ", ".join(problem.group_names[:6]) + (", ..." if problem.n_groups > 6 else "")
    known = f"tested {_part(tested, len(problem))}, positive among them {_part(positive, tested)}"
    if problem.positives_only:
        known = f"found positive {_part(positive, len(problem))}, no record of testing"
    return (
        f"SelectiveLabels({_count(len(problem), 'row')}, "
        f"{_count(len(problem.feature_names), 'feature')}, {known}, groups: {groups})"
    )


def without_small_cells(problem: SelectiveLabels, counts: pd.DataFrame) -> pd.DataFrame:
    """Counts of the groups and, last, of all together, as everybody may see them."""
    records: Any = counts.to_dict(orient="records")
    hidden = hide_groups(records, few_people(problem))
    return pd.DataFrame(hidden, index=[*counts.index, "all"], dtype=object)


def _part(some: int | str, whole: int | str) -> str:
    if isinstance(some, str) or isinstance(whole, str):
        return _number(some)
    return f"{some:,} ({percent(some / whole, 1)})" if whole else f"{some:,} (-)"


def _number(count: int | str) -> str:
    return count if isinstance(count, str) else f"{count:,}"


def _count(number: int, noun: str) -> str:
    plural = "people" if noun == "person" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
