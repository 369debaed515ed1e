"""Tables damaged on purpose, each with what a faithful reader makes of it.

A `Case` writes one file and knows who is tested, which label and which group every row has, or that
nobody could know. `judge` reads it and says what happened: "right", "refused" with a message, or
one of the two that must never be: "wrong" and "crash".
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dcem.table import Roles, UserTable, group_codes, read_batches, read_table, tested_rows
from dcem.table.messages import InputError

N = 160
ROLES = Roles(label="result", group=("race",), id="patient")
COLUMNS = ("patient", "age", "lactate", "ward", "seen", "race", "result")
Writer = Callable[[Path], Path]


@dataclass(frozen=True)
class Case:
    """One damaged table.

    `people` has a row per row of the table: `tested`, `label` (NaN where untested), `group`. None
    means that the table must be refused. `may_refuse`: an error is an honest answer too. A column
    of `people` called `person` says whose rows belong together. `kinds` are the kinds of some
    columns; one that is not a number needs a note. `foreign` is a column in another unit than the
    model of the sound table knows, which scoring must name.
    """

    name: str
    write: Writer = field(repr=False)
    people: pd.DataFrame | None = field(repr=False)
    roles: Roles = ROLES
    may_refuse: bool = False
    kinds: dict[str, str] = field(default_factory=dict)
    foreign: str = ""

    @property
    def family(self) -> str:
        """What kind of damage it is, in a word."""
        return self.name.partition(":")[0]


def cells(n: int = N, seed: int = 0) -> pd.DataFrame:
    """A sound table of visits as text, the way a CSV holds it."""
    return _cells(n, seed).copy()


@lru_cache
def _cells(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    tested = rng.random(n) < 0.5
    ill = rng.random(n) < 0.4
    day = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D")
    lactate = np.where(rng.random(n) < 0.1, "", rng.gamma(2, 1, n).round(2).astype(str))
    return pd.DataFrame(
        {
            "patient": [f"P{i:04d}" for i in range(n)],
            "age": rng.integers(18, 95, n).astype(str),
            "lactate": lactate,
            "ward": rng.choice(["ICU", "ER", "surgery"], n),
            "seen": day.strftime("%Y-%m-%d"),
            "race": rng.choice(["A", "B", "C"], n),
            "result": np.where(tested, ill.astype(int).astype(str), ""),
        }
    ).astype(object)


def people_of(frame: pd.DataFrame, untested: tuple[str, ...] = ("",)) -> pd.DataFrame:
    """Who is tested, with which label, in which group, as the sound cells say."""
    tested = ~frame["result"].isin(untested)
    return pd.DataFrame(
        {
            "tested": tested,
            "label": pd.to_numeric(frame["result"], errors="coerce").where(tested),
            "group": frame["race"].where(frame["race"] != "", "(missing)"),
        }
    )


def csv_bytes(frame: pd.DataFrame, delimiter: str = ",", end: str = "\n", quoting: int = 0) -> str:
    """The text of a CSV."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow(frame.columns)
    writer.writerows(frame.to_numpy().tolist())
    return out.getvalue()


def as_bytes(content: bytes, name: str = "t.csv") -> Writer:
    """Write these bytes."""

    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def as_csv(frame: pd.DataFrame, **how: Any) -> Writer:
    """Write a CSV."""
    return as_bytes(csv_bytes(frame, **how).encode())


def as_parquet(table: pa.Table) -> Writer:
    """Write a Parquet file."""

    def write(folder: Path) -> Path:
        pq.write_table(table, folder / "t.parquet")
        return folder / "t.parquet"

    return write


def agrees(table: UserTable, people: pd.DataFrame) -> str:
    """What of the table is not as it should be, or nothing."""
    problem = table.problem
    if len(problem) != len(people):
        return f"{len(problem)} rows, not {len(people)}"
    if (problem.tested != people["tested"].to_numpy(bool)).any():
        return "who is tested"
    if not np.array_equal(problem.y_obs, people["label"].to_numpy(float), equal_nan=True):
        return "the label"
    found = np.array(problem.group_names, dtype=object)[problem.group]
    if (found != people["group"].to_numpy(object)).any():
        return "the group"
    if "person" in people and (problem.person != pd.factorize(people["person"])[0]).any():
        return "whose row it is"
    return ""


def kinds_agree(table: UserTable, kinds: dict[str, str]) -> str:
    """Which column was read as another kind than it should be, or nothing."""
    for column in table.columns:
        wanted = kinds.get(column.name, column.kind)
        if column.kind != wanted and (wanted != "text" or column.kind == "number"):
            return f"{column.name} is a {column.kind}"
        if wanted == "text" and not column.note:
            return f"{column.name} has no note"
    return ""


def batches_agree(path: Path, table: UserTable) -> str:
    """Whether a file read in batches says the same of everybody as the whole file."""
    tested, groups = [], []
    for batch in read_batches(path, rows=37):
        tested.append(tested_rows(batch, table.roles))
        codes, found = group_codes(batch, table.roles) or ((), ())
        groups += [found[code] for code in codes]
    problem = table.problem
    if not np.array_equal(np.concatenate(tested), problem.tested):
        return "who is tested, in batches"
    expected = [problem.group_names[g] for g in problem.group]
    return "" if groups == expected else "the group, in batches"


def judge(
    case: Case, folder: Path, then: Callable[[Path, UserTable], None] | None = None
) -> tuple[str, str]:
    """What came of a case: "right", "refused", "wrong" or "crash", and the details.

    `then` goes on with a table that was read.
    """
    path = case.write(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            table = read_table(path, case.roles)
            wrong = "" if case.people is None else agrees(table, case.people)
            wrong = wrong or kinds_agree(table, case.kinds) or batches_agree(path, table)
            if not wrong and then is not None:
                then(path, table)
        except InputError as error:
            honest = case.people is None or case.may_refuse
            said = str(error)
            return ("refused", said) if honest else ("wrong", f"refused: {said[:300]}")
        except Exception as error:
            return "crash", f"{type(error).__name__}: {error}"[:500]
    if case.people is None and not case.may_refuse:
        return "wrong", "read, though it cannot be"
    return ("wrong", wrong) if wrong else ("right", "")
