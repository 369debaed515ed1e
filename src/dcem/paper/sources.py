"""Where the results behind an exhibit come from: recorded tables, a store, or a run now.

A source answers one question: the rows for this `Need`. An empty answer is legal and carries the
reason, so that a picture can be drawn from the published side alone and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from dcem.benchmark.database import STORE
from dcem.benchmark.read import WHAT, results
from dcem.benchmark.toml_file import Benchmark, load_benchmark
from dcem.files import write_text
from dcem.paper.published import CLOSE, at
from dcem.table.messages import InputError


@dataclass(frozen=True)
class Need:
    """Which results an exhibit is drawn from."""

    preset: str  # the benchmark that makes them; "" if `compute` does
    recorded: tuple[str, ...]  # recorded tables that hold them, by preference
    where: Mapping[str, float] = field(default_factory=dict)  # the setting; empty: all of them
    methods: tuple[str, ...] = ()  # empty: all of the preset
    optional: bool = False  # read where it is, but nothing is run for it
    compute: Callable[..., pd.DataFrame] | None = None  # given the device

    @property
    def sepsis(self) -> bool:
        """Whether it takes a cohort of patients."""
        return self.preset.startswith("sepsis")

    @property
    def command(self) -> str:
        """How to make the results."""
        if not self.preset:
            return f"python experiments/{self.recorded[0]}.py"
        return f"dcem benchmark run {self.preset}"


# Nothing found, in the columns that tables of fits have: what asks for some of it gets none.
NO_ROWS = pd.DataFrame(columns=[*WHAT, "auc", "roc_gap"])


@dataclass(frozen=True)
class Found:
    """The rows for a need, where they are from, and what a reader must know about them."""

    rows: pd.DataFrame = field(default_factory=NO_ROWS.copy)
    origin: str = ""  # the name of a table or store; "" where nothing was found
    artificial: bool = False  # from made-up patients
    notes: tuple[str, ...] = ()


class ResultSource(Protocol):
    """Anything that can be asked for rows."""

    def rows(self, need: Need) -> Found:
        """The rows for a need; none is an answer, with the reason in `notes`."""


class Recorded:
    """Results that are there already: a folder of exported tables, or the folder of a store."""

    def __init__(self, folder: Path):
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise InputError(
                f"No folder {self.folder} of recorded results. Name the one that holds "
                "shown.csv, or none: the results are then computed."
            )
        self._tables: dict[str, pd.DataFrame] = {}

    def table(self, name: str) -> pd.DataFrame | None:
        """One recorded table, or None."""
        if name not in self._tables:
            for ending in (".csv", ".csv.gz", ".parquet"):
                path = self.folder / f"{name}{ending}"
                if path.exists():
                    self._tables[name] = results(path)
        return self._tables.get(name)

    @cached_property
    def _store(self) -> pd.DataFrame | None:
        return results(self.folder) if (self.folder / STORE).exists() else None

    def rows(self, need: Need) -> Found:
        """From the first table that is there, else from the store in the folder."""
        named = {f"{name}.csv": self.table(name) for name in need.recorded}
        for origin, table in (named | {STORE: self._store}).items():
            rows = NO_ROWS if table is None else matching(table, need)
            if len(rows):
                return Found(rows, origin, made_up(rows) or "_artificial" in origin)
        why = f"Ours is not recorded: no {' or '.join(named)} here ({need.command})."
        return Found(notes=(why,))


@dataclass
class Runs:
    """Results computed now, or taken from an earlier run into the same store."""

    out: Path
    cohort: Path | None = None
    device: str = "auto"
    max_seconds: float | None = None
    display: Any = None

    def rows(self, need: Need) -> Found:
        """Run what has no result yet; a store that is complete is only read."""
        from dcem.benchmark.run import run

        if need.compute is not None:
            self._compute(need.recorded[0], need.compute)
        if need.optional or need.compute is not None:
            return Recorded(self.out).rows(need)
        if need.sepsis and self.cohort is None:
            why = "Ours is not computed: sepsis needs the cohort that 'dcem sepsis build' writes."
            return Found(notes=(why,))
        cohort = None if self.cohort is None else str(self.cohort.absolute())
        benchmark = narrowed(load_benchmark(need.preset, cohort=cohort), need)
        limits: Any = {"device": self.device, "max_seconds": self.max_seconds}
        summary = run(benchmark, self.out, **limits, display=self.display)
        notes = []
        if summary.pending or summary.elsewhere:
            left = summary.pending + summary.elsewhere
            notes.append(f"{left} fits are still to do: run the same command again to go on.")
        if summary.failed:
            notes.append(f"{summary.failed} fits failed: see 'dcem benchmark status'.")
        rows = matching(results(self.out), need)
        return Found(rows, STORE if len(rows) else "", made_up(rows), tuple(notes))

    def _compute(self, name: str, compute: Callable[..., pd.DataFrame]) -> None:
        """Make a table that no benchmark makes, once."""
        self.out.mkdir(parents=True, exist_ok=True)
        if Recorded(self.out).table(name) is None:
            text = compute(device=self.device).to_csv(index=False, float_format="%.6f")
            write_text(self.out / f"{name}.csv", text)


def made_up(rows: pd.DataFrame) -> bool:
    """Whether any result is from artificial patients, as the benchmark records it."""
    return "artificial" in rows and bool(rows["artificial"].eq(True).any())


def narrowed(benchmark: Benchmark, need: Need) -> Benchmark:
    """The benchmark at the setting and with the methods that are needed, and no more."""
    tasks = tuple(
        task
        for task in benchmark.tasks
        if all(abs(task[name] - value) < CLOSE for name, value in need.where.items())
    )
    return replace(benchmark, tasks=tasks).only(list(need.methods))


def matching(table: pd.DataFrame, need: Need) -> pd.DataFrame:
    """The rows of a table at the setting, and of the methods, that are needed."""
    keep = at(table, **need.where)
    if need.methods and "method" in table:
        keep &= table["method"].isin(need.methods)
    if need.sepsis:
        keep &= table["beta"].notna() if "beta" in table else False
    return table[keep].reset_index(drop=True)
