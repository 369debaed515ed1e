"""Which settings can exist: nobody is tested more often than always."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from dcem.table.checks import InputError
from dcem.tasks.rates import rates_of_testing
from dcem.tasks.sepsis.task import read_cohort


def possible(tasks: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The tasks whose settings can exist; and why the others cannot."""
    feasible, notes = [], []
    for task in tasks:
        reason = infeasible(task)
        if reason is None:
            feasible.append(task)
        elif reason not in notes:
            notes.append(reason)
    return feasible, notes


def infeasible(task: dict[str, Any]) -> str | None:
    """Why a setting cannot exist: a group would be tested more often than always."""
    prevalence, share = task.get("prevalence", 0.25), task.get("group_share", 0.5)
    if task["kind"] == "sepsis":
        prevalence, share, _ = read_rates(task)
        if task["k"] * prevalence >= 1:
            return None  # everybody is tested
    try:
        rates_of_testing(prevalence, task["k"], task["q_t"], share)
    except InputError as error:
        return f"k {task['k']:g}, q_t {task['q_t']:g}: {error}"
    return None


def read_rates(task: dict[str, Any]) -> tuple[float, float, str]:
    """Prevalence, share of group 0, and hash of the cohort that a sepsis task reads."""
    if "cohort" not in task:
        raise InputError(
            "Sepsis tasks need a cohort, the Parquet file that 'dcem sepsis build' wrote: pass "
            '--cohort, or write cohort = "FILE" under [[tasks]].'
        )
    return _read_cohort(task["cohort"])


@lru_cache(maxsize=4)
def _read_cohort(path: str) -> tuple[float, float, str]:
    content = Path(path).read_bytes()
    frame, _ = read_cohort(path)
    prevalence, share = float(frame["y"].mean()), float((frame["a"] == 0).mean())
    return prevalence, share, hashlib.sha256(content).hexdigest()
