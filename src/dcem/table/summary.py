"""A table of people in a few lines of text: sizes, who is tested, what was found."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dcem.table.disclosure import few_people, hide_groups
from dcem.table.encoder import MISSING
from dcem.text import counted, percent

if TYPE_CHECKING:
    from dcem.table.labels import SelectiveLabels


MOST_GROUPS = 20  # that a terminal shows


def more_groups(number: int, most: int = MOST_GROUPS) -> list[str]:
    """A line on the groups that are not shown, where there are any."""
    return [f"... and {number - most:,} more groups"] if number > most else []


def counts(problem: SelectiveLabels) -> pd.DataFrame:
    """Rows, tested rows and positives among them, per group level."""
    whose = {"rows": slice(None), "tested": problem.tested, "positive": problem.y_obs == 1}
    many = {
        name: np.bincount(problem.group[rows], minlength=problem.n_groups)
        for name, rows in whose.items()
    }
    return pd.DataFrame(many, index=pd.Index(problem.group_names, name="group"))


def of(
    problem: SelectiveLabels, most: int, *, small_cells: bool, say: Callable[[str], str] = str
) -> str:
    """A line on all, and one per group, at most `most`; or without small cells."""
    n_people = len(np.unique(problem.person))
    people = "" if problem.id is None else f" of {counted(n_people, 'person')}"
    # A category with missing values has an indicator of them.
    gaps = np.isnan(problem.X).any(axis=0).sum()
    gaps += sum(name.endswith(f"={MISSING}") for name in problem.feature_names)
    lines = [
        say(f"{counted(len(problem), 'row')}{people}, ")
        + counted(len(problem.feature_names), "feature")
        + (f" ({gaps} with missing values)" if gaps else "")
        + (", weighted" if problem.weight is not None else "")
    ]
    each = counts(problem)
    shown = pd.concat([each, each.sum().to_frame("all").T])
    if not small_cells:
        shown = shown_counts(problem, each)
    first = range(min(most, problem.n_groups)) if problem.n_groups > 1 else ()
    shown = shown.iloc[[*first, -1]]
    width = max(len("group"), *(len(str(name)) for name in shown.index))
    heads = ("found positive", "") if problem.positives_only else ("tested", "positive of tested")
    rows = [("group", "rows", *map(say, heads))]
    wide = max(18, *map(len, rows[0]))
    for name, n, tested, positive in shown.itertuples():
        of_tested = "" if problem.positives_only else _part(positive, tested)
        rows.append((name, _shown_count(n), _part(tested, n), of_tested))
    lines += [f"{a:<{width}}  {b:>10}  {c:>{wide}}  {d:>{wide}}".rstrip() for a, b, c, d in rows]
    lines[-1:] = [*more_groups(problem.n_groups, most), *lines[-1:]]
    if problem.positives_only:
        lines.append(say("There is no record of testing: nothing is known about those not found."))
    return "\n".join(lines)


def in_short(problem: SelectiveLabels) -> str:
    """All in one line."""
    tested, positive = int(problem.tested.sum()), int(np.nansum(problem.y_obs))
    groups = ", ".join(problem.group_names[:6]) + (", ..." if problem.n_groups > 6 else "")
    known = f"tested {_part(tested, len(problem))}, positive among them {_part(positive, tested)}"
    if problem.positives_only:
        known = f"found positive {_part(positive, len(problem))}, no record of testing"
    return (
        f"SelectiveLabels({counted(len(problem), 'row')}, "
        f"{counted(len(problem.feature_names), 'feature')}, {known}, groups: {groups})"
    )


def shown_counts(problem: SelectiveLabels, counts: pd.DataFrame) -> pd.DataFrame:
    """Counts of the groups and, last, of all together, as everybody may see them."""
    records: Any = counts.to_dict(orient="records")
    hidden = hide_groups(records, few_people(problem))
    return pd.DataFrame(hidden, index=[*counts.index, "all"], dtype=object)


def _part(some: int | str, whole: int | str) -> str:
    if isinstance(some, str) or isinstance(whole, str):
        return _shown_count(some)
    return f"{some:,} ({percent(some / whole, 1)})" if whole else f"{some:,} (-)"


def _shown_count(count: int | str) -> str:
    return count if isinstance(count, str) else f"{count:,}"
