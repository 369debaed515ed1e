"""Tables that know only who was found positive: nobody recorded who was tested.

`SelectiveLabels.positives_only` marks them. The found are positives; of everybody else nothing is
known. Where it is stated what share of positives is found, being found is a test that everybody
had and that misses the rest (`dcem.table.imperfect`): `recorded` makes such a table of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dcem.table import checks
from dcem.table.disclosure import THRESHOLD
from dcem.table.imperfect import ImperfectTest
from dcem.table.known_rates import PREVALENCE, SPELLING, concerned, stated_rates
from dcem.table.messages import InputError, InputTypeError
from dcem.text import number

if TYPE_CHECKING:
    from dcem.table.labels import SelectiveLabels


def resolve_found(
    y: Any, others: Mapping[str, Any], *, label_name: str = "y", labels: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Labels [n] and who is known [n], the found alone; `others` are roles that need a record."""
    for role, given in others.items():
        if given is not None:
            raise InputError(
                "With `positives_only` there is no record of who was tested, but "
                f"`{role}` needs one. Leave out one of the two."
            )
    found = checks.check_binary(y, label_name, labels=labels, missing="missing") == 1
    if found.all() or not found.any():
        who = "Everybody" if found.all() else "Nobody"
        raise InputError(
            f"{who} was found positive: {label_name!r} is {int(found.all())} in all {len(found):,} "
            "rows. The table needs people who were found positive and people who were not. Add "
            "rows, or check how the label is coded."
        )
    return np.where(found, 1.0, np.nan), found


def refuse_prevalence(
    prevalence: Any,
    found: np.ndarray,
    group: np.ndarray,
    group_names: Sequence[str],
    weight: np.ndarray | None,
) -> NoReturn:
    """Say which share of positives is found at a stated prevalence, so that it can be stated.

    It is not taken for that: one prevalence of several groups would be met by many shares of each,
    and in which of them positives are found less often is what such a table is asked.
    """
    stated = stated_rates(PREVALENCE, prevalence, group_names, SPELLING, every=False)
    w = np.ones(len(found)) if weight is None else weight
    rates, few = [], False
    for one in stated:
        mine = concerned(one, group, group_names)
        share = float(w[mine] @ found[mine]) / (float(w[mine].sum()) or 1.0)
        few |= int(found[mine].sum()) < THRESHOLD
        ends = [share / end for end in one.interval[::-1]]
        if ends[0] > 1:
            of = f" of group {one.group}" if one.group else ""
            raise InputError(
                f"The prevalence is stated as {one.words}, but more people{of} have already been "
                "found to have the outcome. Check that the rate refers to the same outcome and "
                "people."
            )
        said = "-".join(dict.fromkeys(number(min(end, 1.0), 2) for end in ends))
        rates.append(f"{one.group}={said}" * bool(one.group) or said)
    value = "" if few else f" (here {','.join(rates)})"
    alike = len(group_names) > 1 and not stated[0].group
    raise InputError(
        "With `positives_only`, state which share of the positives is found, as "
        f"`test_sensitivity`, instead of a prevalence: the share found, divided by the prevalence"
        f"{value}."
        + " One number for all groups means that positives are found equally often in each; a "
        "prevalence by group does not assume this." * alike
    )


def require_problem(problem: SelectiveLabels) -> None:
    """Refuse what is not a problem."""
    if not hasattr(problem, "y_obs"):
        raise InputTypeError(
            f"Expected a problem (SelectiveLabels), got {type(problem).__name__}. For a frame or a "
            "file, use `dcem.read_table(table, roles).problem`."
        )


def require_record(problem: SelectiveLabels) -> None:
    """Refuse what is not a problem, and one in which nobody recorded who was tested."""
    require_problem(problem)
    if problem.positives_only:
        raise InputError(
            "This table says only who was found positive, but a record of who was tested is "
            "needed. Without one, use `dcem.audit_found` and `dcem.compare_found`."
        )


def with_weight(problem: SelectiveLabels) -> SelectiveLabels:
    """Only rows that count, among which there must be people found and others."""
    if problem.weight is None or (problem.weight > 0).all():
        return problem
    kept = problem.subset(problem.weight > 0)
    if kept.extent != "some":
        raise InputError(
            "The weight is 0 for everybody who was found positive, or for everybody else. Nothing "
            "is learnt from rows of weight 0."
        )
    return kept


def recorded(problem: SelectiveLabels, found_rates: np.ndarray | None = None) -> SelectiveLabels:
    """Everybody as if tested, those not found as negative.

    `found_rates` [groups] are the shares of positives that are found, as a test's sensitivity; None
    leaves what is stated of them.
    """
    errs = problem.imperfect_test
    if found_rates is not None:
        rates = np.column_stack([found_rates[problem.group], np.ones(len(problem))])
        errs = ImperfectTest(rates, (), np.zeros((len(problem), 2), np.int64))
    return replace(
        problem,
        y_obs=problem.y_imputed,
        tested=np.ones(len(problem), bool),
        imperfect_test=errs,
        positives_only=False,
    )
