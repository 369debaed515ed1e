"""Files as Arrow columns: whole, or batch by batch in bounded memory.

Every cell of a CSV is read as text. Guessing types while reading would turn a "None" that means
"never ordered" into a missing value, and "007" into 7, before anybody could say otherwise.
"""

from __future__ import annotations

import csv
import errno
import gzip
import os
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from dcem.table import checks
from dcem.table.checks import InputError

SUFFIXES = (".csv", ".csv.gz", ".parquet")
DELIMITERS = ",;\t|"
BLOCK_BYTES = 8 << 20  # of CSV text a batch
BATCH_ROWS = 32_768


@dataclass(frozen=True)
class Source:
    """Where a table came from: enough to know it again, nothing about a person."""

    name: str  # of the file, without its folders
    rows: int
    columns: int
    sha256: str


def read_whole(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows of a .csv, .csv.gz or .parquet file; only `columns`, if given."""
    header = read_header(path)
    with readable(path):
        if is_parquet(path):
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path, columns=columns)
        import pyarrow.csv

        options = _csv_options(path, header, columns)
        try:
            return pyarrow.csv.read_csv(path, **options)
        except pa.ArrowInvalid:  # read by several threads, none of which knows the row's number
            for _ in pyarrow.csv.open_csv(path, **options):
                pass
            raise


def read_batches(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    verbatim: Collection[str] = (),
    rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The rows in order, a batch at a time; memory does not grow with the file.

    Text in a Parquet file comes as codes into its distinct values, as it is stored, except for the
    columns in `verbatim`.
    """
    header = read_header(path)
    with readable(path):
        if is_parquet(path):
            import pyarrow.parquet

            schema = pyarrow.parquet.read_schema(path)
            text = [f.name for f in schema if pa.types.is_string(f.type) and f.name not in verbatim]
            file = pyarrow.parquet.ParquetFile(path, read_dictionary=text, pre_buffer=False)
            yield from file.iter_batches(batch_size=rows, columns=columns)
            return
        import pyarrow.csv

        for batch in pyarrow.csv.open_csv(path, **_csv_options(path, header, columns)):
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)


def read_header(path: Path) -> list[str]:
    """The names of the columns, each of which must be there once."""
    if not path.name.lower().endswith(SUFFIXES):
        raise InputError(f"{path}: unknown kind of file. Allowed: {', '.join(SUFFIXES)}.")
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    with readable(path):
        if is_parquet(path):
            import pyarrow.parquet

            header = list(pyarrow.parquet.read_schema(path).names)
        else:
            header = next(csv.reader([_first_line(path)], delimiter=_delimiter(path)), [])
            if not header:
                raise InputError("The file is empty: not even a header.")
        checks.require_unique(header)
    return header


def file_hash(path: Path) -> str:
    """SHA-256 of the file's bytes."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def is_parquet(path: Path) -> bool:
    """Whether the name says so."""
    return path.name.lower().endswith(".parquet")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Say of a file that cannot be read which file, and what is wrong with it.

    A parser quotes the line it stumbled over. That line is somebody's record, so its place is told
    and not its content.
    """
    kind = "Parquet" if is_parquet(path) else "CSV"
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error}). Save the file as UTF-8.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: not a complete gzip file: {error}. Copy it again.") from None
    except InputError as error:
        known = str(error).startswith(str(path))
        raise error if known else InputError(f"{path}: {error}") from None
    except pa.ArrowException as error:
        why = _first_sentence(error) if is_parquet(path) else _parse_failure(str(error))
        raise InputError(f"{path}: not a readable {kind} file: {why}") from None
    except OSError as error:
        if error.filename is not None:
            raise
        raise InputError(f"{path}: not a readable {kind} file: {_first_sentence(error)}") from None


def _parse_failure(message: str) -> str:
    """What Arrow says of a CSV, without the line that it quotes."""
    found = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", message)
    if found is None:
        return "it cannot be split into rows. Look for a quote that is never closed."
    row, expected, got = (int(number or 0) for number in found.groups())
    where = f"row {row:,} (the header is row 1)" if row else "a row"
    hint = (
        "The file may be truncated."
        if got < expected
        else "A value that holds the delimiter must be quoted."
    )
    return f"{where} has {got} columns, the header {expected}. {hint}"


def _first_sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) < 200 else text[:200] + " ..."


def _first_line(path: Path) -> str:
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        return str(file.readline()).rstrip("\r\n")


def _delimiter(path: Path) -> str:
    """The comma, unless the header has none and something else in its place."""
    line = _first_line(path)
    return "," if "," in line else next((mark for mark in DELIMITERS if mark in line), ",")


def _csv_options(path: Path, header: list[str], columns: Sequence[str] | None) -> dict[str, Any]:
    import pyarrow.csv as arrow

    return {
        "read_options": arrow.ReadOptions(block_size=BLOCK_BYTES, column_names=header, skip_rows=1),
        "parse_options": arrow.ParseOptions(delimiter=_delimiter(path), newlines_in_values=True),
        "convert_options": arrow.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()),
            strings_can_be_null=False,
            include_columns=None if columns is None else list(columns),
        ),
    }
