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
from dcem.table.known import PREVALENCE, SPELLING, concerned, stated_rates
from dcem.table.messages import InputError, InputTypeError
from dcem.text import number

if TYPE_CHECKING:
    from dcem.table.labels import SelectiveLabels


def resolve_found(
    y: Any,
    others: Mapping[str, Any],
    *,
    label_name: str = "y",
    labels: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Labels [n] and who is known [n], the found alone; `others` are roles that need a record."""
    for role, given in others.items():
        if given is not None:
            raise InputError(
                "The label was said to hold found positives only (`positives_only`), and "
                f"`{role}` was given, which needs a record of who was tested. Leave out one of the "
                "two."
            )
    found = checks.check_binary(y, label_name, labels=labels, missing="missing") == 1
    if found.all() or not found.any():
        who = "Everybody" if found.all() else "Nobody"
        raise InputError(
            f"{who} was found positive: {label_name!r} is {int(found.all())} in all {len(found):,} "
            "rows. Both the found and others are needed. Bring more rows, or check how the label "
            "was coded."
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
                f"The prevalence is stated as {one.words}, but more people{of} were found to have "
                "the outcome already. Check that the rate is of the same outcome and people."
            )
        said = "-".join(dict.fromkeys(number(min(end, 1.0), 2) for end in ends))
        rates.append(f"{one.group}={said}" * bool(one.group) or said)
    value = "" if few else f" (here {','.join(rates)})"
    alike = len(group_names) > 1 and not stated[0].group
    raise InputError(
        "With found positives alone (`positives_only`) a prevalence says which share of the "
        f"positives is found, the found share over it{value}: state that as `test_sensitivity` "
        "instead."
        + " One for all groups means that their positives are found equally often; a prevalence by "
        "group does not assume it." * alike
    )


def require_record(problem: SelectiveLabels) -> None:
    """Refuse what is not a problem, and one in which nobody recorded who was tested."""
    if not hasattr(problem, "positives_only"):
        raise InputTypeError(
            f"Expected a problem (SelectiveLabels), got {type(problem).__name__}. Of a frame or a "
            "file, `dcem.read_table(table, roles).problem` is one."
        )
    if problem.positives_only:
        raise InputError(
            "This table says only who was found positive: what is asked needs a record of who was "
            "tested. Without one there are `dcem.audit_found` and `dcem.compare_found`."
        )


def with_weight(problem: SelectiveLabels) -> SelectiveLabels:
    """Only rows that count, among which there must be people found and others."""
    if problem.weight is None or (problem.weight > 0).all():
        return problem
    kept = problem.subset(problem.weight > 0)
    if kept.extent != "some":
        raise InputError(
            "The weight is 0 for everybody who was found, or for everybody else. Rows without "
            "weight teach nothing."
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
