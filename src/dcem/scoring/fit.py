"""A model fitted to a user's table: by which method, and what that takes.

The method is one that is named, the default, or the one that a saved comparison of the table shows
to be clearly better.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dcem import methods
from dcem.compare.one_column import about_dominant
from dcem.files import read_bytes
from dcem.learners import make_learner
from dcem.methods.choosing import Choice, choose, choose_from
from dcem.methods.registry import MEMBERS, delivered
from dcem.scoring.model import TableModel
from dcem.table import UserTable
from dcem.table.disclosure import THRESHOLD
from dcem.table.labels import SelectiveLabels
from dcem.table.load import FROM_FRAME
from dcem.table.messages import InputError, LeakWarning, formerly, notice, require_kind
from dcem.text import counted

FEW_RESULTS = 50  # people of the rarer result; with fewer, features are counted as well
FEWEST_PER_FEATURE = 0.2  # of these people
AUTO = "auto"  # the method by the rule of `dcem.methods.choosing`


@formerly(members="n_members")
def fit_table(
    table: UserTable,
    method: str | Choice = AUTO,
    *,
    learner: Any = None,
    n_members: int = MEMBERS,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
    start: TableModel | None = None,
) -> TableModel:
    """Fit a method to a user's table.

    "auto" is the default method; a `Choice` names one and says why (`choice_for`). Methods that
    need the truth, or the group of each person to predict, are refused. `learner` is the
    underlying model, for methods that allow a choice; None is the method's own. With a model to
    `start` from, its method and parameters are kept, and `table` must have been read with its
    encoder (`refit`). `progress` is called with the work done and the total, by methods that know
    them.
    """
    require_kind(table, UserTable, FROM_FRAME)
    dominant = about_dominant(table.problem, table.encoder)
    if dominant is not None:
        notice(f"{dominant.headline} {dominant.remedy}", LeakWarning)
    usual = missing_shares(table)
    mention_few_results(table.problem)
    if start is not None:
        waiting = table.problem.awaited
        if waiting is not None and waiting.any():
            raise InputError(
                f"{counted(int(waiting.sum()), 'row')} tested, without a result yet. Enter the "
                "results before fitting, or leave these rows out (`until`)."
            )
        for note in start.strange_cells(table):
            notice(note)
        estimator = start.estimator.refit(
            table.problem, random_state=random_state, progress=progress
        )
        why, before = start.why, start.source
        return TableModel(
            estimator, table.encoder, table.roles, table.source, usual, why, before, dominant
        )
    choice = choose(record=not table.roles.no_record) if method == AUTO else method
    name, why = (choice.method, choice.reason) if isinstance(choice, Choice) else (choice, "")
    require_method(name, learner)
    params: dict[str, Any] = {"random_state": random_state}
    if learner is not None:
        params["learner"] = learner
    estimator = delivered(name, n_members=n_members, params=params)
    methods.fit_many(estimator, [table.problem], copy=False, progress=progress)
    return TableModel(
        estimator, table.encoder, table.roles, table.source, usual, why, dominant=dominant
    )


def mention_few_results(problem: SelectiveLabels) -> None:
    """Say that a model will rest on few positive, or negative, results; or few for its features.

    Ten per feature are the usual advice for a regression. Learners that shrink need far fewer, but
    with less than one for five features they choose by chance among those that seem to matter.
    """
    width = len(problem.feature_names)
    was = "found" if problem.positives_only else "tested"
    for outcome, word in ((1, "positive"), (0, "negative"))[: 1 if problem.positives_only else 2]:
        people = len(np.unique(problem.person[problem.y_obs == outcome]))
        if people < THRESHOLD:
            notice(
                f"Fewer than {THRESHOLD} people were {was} {word}. A model fitted to so few says "
                "little, and nobody can tell how good it is: collect more results before you use "
                "its scores."
            )
        elif people < min(FEW_RESULTS, FEWEST_PER_FEATURE * width):
            below = THRESHOLD * (people // THRESHOLD + 1)  # with groups, the count could tell one
            notice(
                f"Fewer than {below} people were {was} {word}, and there are {width} features. "
                "Among so many, a model finds chance patterns: use only the few that matter "
                "(`features`)"
                f"{'' if problem.positives_only else ', or the method tested-only:linear'}."
            )


def missing_shares(table: UserTable) -> dict[str, float]:
    """Share of the rows in which each raw column is empty, to the next twentieth.

    A finer share of a short table would tell a small count.
    """
    missing = {column.name: round(20 * column.missing) / 20 for column in table.columns}
    return {name: missing[name] for name in table.encoder.columns}


def require_method(name: str, learner: Any = None) -> None:
    """Refuse a method that cannot be fitted to a user's table, or not used on the next one."""
    method = methods.make(name, **({} if learner is None else {"learner": learner}))
    if isinstance(learner, str) and learner != "network":
        make_learner(learner, 0)  # says which there are
    if not method.uses_truth and not method.needs_group:
        return
    why = (
        "learns from everybody's true outcome, which is known only in simulations"
        if method.uses_truth
        else "needs a person's group to score them, and whoever scores people may not have it"
    )
    usable = [one for one in methods.names(usable=True) if not methods.make(one).needs_group]
    raise InputError(f"{name!r} {why}. Choose one of: {', '.join(usable)}.")


def find_comparison(table: UserTable, given: Path | None, *beside: Path) -> Path | None:
    """The saved comparison of a table: the one given, else the first of those `beside` it.

    `given` is a `comparison.json` that `dcem compare` wrote; it must be of this table. In the
    folders `beside` one of another table, or of the same with other roles, is passed over.
    """
    for place in [given] if given else [folder / "comparison.json" for folder in beside]:
        try:
            if (given or place.is_file()) and _saved_choice(place, table) is not None:
                return place
        except InputError as error:
            if given is not None:
                raise
            notice(f"{error} It is ignored.")
    if given is not None:
        raise InputError(
            f"{given} is not a comparison of this table with these roles, or the table has changed "
            "since. Compare again, or name the method."
        )
    return None


def choice_for(table: UserTable, comparison: Path | None, *beside: Path) -> Choice:
    """The method to take for a table by its saved comparison (`find_comparison`), and why."""
    place = find_comparison(table, comparison, *beside)
    record = not table.roles.no_record
    return (_saved_choice(place, table) if place else None) or choose(record=record)


def _saved_choice(place: Path, table: UserTable) -> Choice | None:
    try:
        saved = json.loads(read_bytes(place))
        roles = table.roles.in_words()
        return choose_from(saved, table.source.sha256, roles, record=not table.roles.no_record)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{place} cannot be read as a comparison: {error}.") from None
