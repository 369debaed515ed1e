"""A table that can be chosen: a file, one of the tables in a file, or a folder of Parquet files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from dcem.table.formats import DATABASES, contents, parquet_files
from dcem.table.read import SUFFIXES, notes, read_batches, read_header


@dataclass(frozen=True)
class Place:
    """Where a table is: its path and, of a database or a workbook, which table of it."""

    path: Path
    query: str | None = None

    @property
    def name(self) -> str:
        """What it is called on a page."""
        if self.query is None:
            return self.path.name
        plain = re.fullmatch(r'SELECT \* FROM "(.*)"', self.query)
        return f"{self.path.name}: {plain[1] if plain else self.query}"

    @property
    def files(self) -> list[Path]:
        """The files that hold it."""
        return parquet_files(self.path) if self.path.is_dir() else [self.path]

    @property
    def stamp(self) -> tuple[int, int]:
        """When it was changed, and its bytes: the same for as long as nobody touches it."""
        about = [file.stat() for file in self.files]
        return max((one.st_mtime_ns for one in about), default=0), sum(one.st_size for one in about)

    def exists(self) -> bool:
        """Whether it is there."""
        return self.path.exists() and is_table(self.path)

    def header(self) -> list[str]:
        """The names of its columns."""
        return read_header(self.path, self.query)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Its rows in order, a batch at a time."""
        wanted = self.header() if columns is None else columns
        return read_batches(self.path, columns, verbatim=wanted, query=self.query)

    def first_rows(self, most: int) -> tuple[pa.Table, bool]:
        """The first rows, about so many, and whether these are all."""
        found: list[pa.RecordBatch] = []
        for batch in self.batches():
            if sum(one.num_rows for one in found) >= most:
                return pa.Table.from_batches(found), False
            found.append(batch)
        if not found:
            return pa.table({name: pa.array([], pa.string()) for name in self.header()}), True
        return pa.Table.from_batches(found), True

    def notes(self) -> tuple[str, ...]:
        """What a person should know about how the file is laid out."""
        return notes(self.path, self.query)


def is_table(path: Path) -> bool:
    """Whether it can be read, by its name; or a folder of Parquet files."""
    if path.is_dir():
        parts = path.glob("*.parquet"), path.glob("*=*/**/*.parquet")
        return any(next(found, None) for found in parts)
    return path.name.lower().endswith(SUFFIXES)


def choices(path: Path) -> dict[str, str]:
    """What there is to choose from in a file: name and query; empty if it is one table."""
    found = contents(path)
    return found if len(found) > 1 else {}


def takes_sql(path: Path) -> bool:
    """Whether rows can be asked for in SQL."""
    return path.suffix.lower() in DATABASES
