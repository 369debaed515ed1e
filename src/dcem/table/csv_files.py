"""CSV files: how one is laid out (encoding, delimiter, a name for every column), and its rows.

Nothing is asked of the person who brings it. The bytes say whether they are UTF-8, UTF-16 or an
old Windows page; the first rows say what separates their fields. Where the layout leaves a doubt,
a note says how it was decided.

Every cell is read as text. Guessing types while reading would turn a "None" that means "never
ordered" into a missing value, and "007" into 7, before anybody could say otherwise.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dcem.files import stamp
from dcem.table.formats import Names, Stored, unique_names
from dcem.table.marks import Marks, find_marks, with_points
from dcem.table.messages import InputError
from dcem.text import counted

DELIMITERS = ",;\t|"
NAMED = re.compile(r"\s*sep=([,;\t|])\s*?\n", re.I)  # a first line that Excel understands
PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
SUFFIXES = tuple(kind + packed for kind in (".csv", ".tsv", ".txt") for packed in ("", *PACKED))
SIGNATURES = {b"PK": ".xlsx", b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz"}
NOT_IN_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
SAMPLE_ROWS = 100
SAMPLE_TEXT = 1 << 20
BLOCK = 8 << 20  # bytes of text at a time


@dataclass(frozen=True)
class Layout:
    """The layout of one file."""

    encoding: str
    delimiter: str
    skip: int  # lines before the first row of data
    fields: tuple[str, ...]  # a name for every column of the rows, also without one in the header
    header: tuple[str, ...]  # names of the table's columns, some of them perhaps several times
    must_be_empty: tuple[str, ...]  # fields after the last delimiter of every row
    has_rows: bool  # below the header
    has_long_cells: bool  # a quoted cell seems to go on over the end of a line
    notes: tuple[str, ...]  # what a person should know


def _layout(path: Path) -> Layout:
    """How a file is laid out; it is looked at once for as long as it does not change."""
    return _layout_of(path, stamp(path))


@lru_cache(maxsize=16)
def _layout_of(path: Path, about: tuple[int, ...]) -> Layout:
    encoding, has_long_cells = _scan(path)
    notes = []
    if encoding != "utf8" and not encoding.startswith("utf-16"):
        notes.append(
            f"{path.name} is not UTF-8 text; it is read as {encoding}. If accented letters look "
            "wrong, save it as UTF-8."
        )
    lines = _sample(path, encoding)
    start = next((i for i, line in enumerate(lines.splitlines()) if line.strip()), None)
    if start is None:
        raise InputError("The file is empty: it has no header.")
    named = NAMED.match(lines)
    lines = lines[named.end() :] if named else lines
    start += bool(named)
    delimiter = named[1] if named else _delimiter(lines)
    header, *rows = _first_records(lines, delimiter)
    if len(header) == 1:
        notes.append(
            f"{path.name} has only one column, {header[0]!r}. Columns must be separated by commas, "
            "semicolons, tabs or bars."
        )
    if _is_padded(header):
        header = [name.strip() for name in header]
    names = unique_names(header)
    fields, empty = names, []
    if rows and all(len(row) == len(header) + 1 for row in rows):
        if all(row[-1].strip() == "" for row in rows):
            fields = unique_names([*names, "(after the last)"])
            empty = fields[-1:]
        elif _name_rows([row[0].strip() for row in rows]):
            fields = [unique_names([*names, "(row names)"])[-1], *names]
            notes.append(
                f"The rows of {path.name} have one field more than the header. The first field is "
                "taken as a row name and left out."
            )
    # The header is as many lines as its quoted names have line breaks, and one.
    skip = start + 1 + sum(name.count("\n") for name in header)
    return Layout(
        encoding,
        delimiter,
        skip,
        tuple(fields),
        tuple(header),
        tuple(empty),
        bool(rows),
        has_long_cells,
        tuple(notes),
    )


def _is_padded(header: Sequence[str]) -> bool:
    """Whether blanks go with the delimiters, and so belong to no name."""
    before = all(name.startswith(" ") for name in header[1:])
    return len(header) > 1 and (before or all(name.endswith(" ") for name in header[:-1]))


def _name_rows(first: list[str]) -> bool:
    """Whether the first fields of all rows look like names or numbers of the rows."""
    if all(field.isdecimal() for field in first):
        return all(int(b) == int(a) + 1 for a, b in itertools.pairwise(first)) and len(first) > 1
    return len(set(first)) == len(first) and not any(field.isdecimal() for field in first)


def is_csv(path: Path) -> bool:
    """Whether the name is that of a text table, packed or not."""
    return path.name.lower().endswith(SUFFIXES) and not path.is_dir()


def _opened(path: Path) -> Any:
    return pa.input_stream(path, compression=PACKED.get(path.suffix.lower()))


def _scan(path: Path) -> tuple[str, bool]:
    """The encoding, and whether some line holds an odd number of quotes, in one pass."""
    with _opened(path) as file:
        start = file.read(4)
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16", True
    if len(start) == 4 and start.count(0) == 2:  # without a mark, as SQL Server writes it
        for encoding, ends in (("utf-16-le", start[1::2]), ("utf-16-be", start[::2])):
            if not any(ends):
                return encoding, True
    decoder: Any = codecs.getincrementaldecoder("utf-8")()
    is_utf8, is_cp1252, odd, rest, block = True, True, False, b"", b"start"
    with _opened(path) as file:
        while block:
            block = file.read(BLOCK)
            if b"\0" in block:
                kind = next((k for mark, k in SIGNATURES.items() if start.startswith(mark)), "")
                hint = f" It seems to be a {kind} file: give it that ending." if kind else ""
                raise InputError(f"The file contains NUL bytes, so it is not a text table.{hint}")
            try:
                is_utf8 and decoder.decode(block, final=not block)
            except UnicodeDecodeError:
                is_utf8 = False
            is_cp1252 = is_cp1252 and not NOT_IN_CP1252.search(block)
            whole, _, rest = (rest + block).rpartition(b"\n") if block else (rest, b"", b"")
            odd = odd or _has_odd_line(whole)
    return "utf8" if is_utf8 else "cp1252" if is_cp1252 else "latin-1", odd


def _has_odd_line(text: bytes) -> bool:
    """Whether a line holds an odd number of quotes: then a cell may go on in the next line."""
    if b'"' not in text:
        return False
    characters = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(characters == ord('"'))
    ends = np.flatnonzero(characters == ord("\n"))
    line = np.searchsorted(ends, quotes)
    return bool((np.bincount(line) % 2).any())


def _sample(path: Path, encoding: str) -> str:
    """The first rows as text, cut at the end of a line where there is more."""
    with _opened(path) as file:
        reader = io.TextIOWrapper(file, encoding="utf-8-sig" if encoding == "utf8" else encoding)
        text = reader.readline()  # the header whole, however long
        text += reader.read(SAMPLE_TEXT)
        more = bool(reader.read(1))
    return text.rpartition("\n")[0] if more and text.count("\n") > 1 else text


def _first_records(text: str, delimiter: str) -> list[list[str]]:
    """The first rows, header included; blank lines are none."""
    longest = csv.field_size_limit(sys.maxsize)  # a name may be longer than what csv expects
    try:
        rows = csv.reader(io.StringIO(text), delimiter=delimiter)
        return [*itertools.islice(filter(None, rows), SAMPLE_ROWS + 1)]
    finally:
        csv.field_size_limit(longest)


def _delimiter(text: str) -> str:
    """What cuts the header and the first rows into the same number of fields, the more the better.

    Where nothing does, what the header holds most of.
    """
    best, most = "", 1
    for mark in DELIMITERS:
        header, *rows = _first_records(text, mark)
        widths = {len(row) for row in rows} or {len(header)}
        fits = len(widths) == 1 and widths <= {len(header), len(header) + 1}
        if fits and len(header) > most:
            best, most = mark, len(header)
    if best:
        return best
    first = next(line for line in text.splitlines() if line.strip())
    return max(DELIMITERS, key=lambda mark: (first.count(mark), mark == ","))


def stored_csv(path: Path) -> Stored:
    """What is in a CSV file."""
    layout = _layout(path)

    def batches(
        columns: list[str] | None, _rows_each: int, _verbatim: Names, names: Names
    ) -> Iterator[pa.RecordBatch]:
        wanted = unique_names(layout.header) if columns is None else columns
        return _rows(path, layout, wanted, names) if layout.has_rows else iter(())

    return Stored(list(layout.header), batches, layout.notes)


def _rows(path: Path, layout: Layout, columns: list[str], names: Names) -> Iterator[pa.RecordBatch]:
    # A quote that is never closed can swallow rows in any column, also in one nobody asked for.
    wanted = list(layout.fields) if layout.has_long_cells else [*columns, *layout.must_be_empty]
    try:
        marks = {name: own for name, own in _marks(path).items() if name not in names}
        for batch in _text(path, layout, wanted):
            _refuse_swallowed(batch, layout)
            yield _with_decimal_points(batch.select(columns), marks)
    except pa.ArrowInvalid:
        for _ in _text(path, layout, wanted, use_threads=False):  # one thread knows in which row
            pass
        raise


def _text(
    path: Path, layout: Layout, columns: list[str], *, use_threads: bool = True
) -> Iterator[pa.RecordBatch]:
    """The cells as they are written."""
    import pyarrow.csv as arrow

    yield from arrow.open_csv(
        _opened(path),
        read_options=arrow.ReadOptions(
            use_threads=use_threads,
            block_size=BLOCK,
            column_names=list(layout.fields),
            skip_rows=layout.skip,
            encoding=layout.encoding,
        ),
        parse_options=arrow.ParseOptions(
            delimiter=layout.delimiter, newlines_in_values=layout.has_long_cells
        ),
        convert_options=arrow.ConvertOptions(
            column_types=dict.fromkeys(layout.fields, pa.string()),
            strings_can_be_null=False,
            include_columns=columns,
        ),
    )


def _marks(path: Path) -> dict[str, Marks]:
    """What points and commas mean in each column, looked at once for as long as a file stays."""
    return _marks_of(path, stamp(path))


@lru_cache(maxsize=16)
def _marks_of(path: Path, about: tuple[int, ...]) -> dict[str, Marks]:
    layout = _layout(path)
    if layout.delimiter == ",":  # then a comma in a number is in quotes, and parts thousands
        return {}
    text = _text(path, layout, list(layout.fields))
    return find_marks(text, semicolons=layout.delimiter == ";")


def _refuse_swallowed(batch: pa.RecordBatch, layout: Layout) -> None:
    """No cell may hold whole rows, and nothing may stand where the header has no name."""
    for name in layout.must_be_empty:
        if pc.any(pc.not_equal(batch.column(name), "")).as_py():
            raise InputError(
                "the rows have one field more than the header, and some have a value in it. Give "
                "the last column a name."
            )
    if not layout.has_long_cells:
        return
    between = len(layout.fields) - 1
    for name in batch.schema.names:
        column = batch.column(name)
        long = column.filter(pc.match_substring(column, "\n")).to_pylist()
        for cell in long:
            # blank lines, and what follows the last line break, are not rows
            below = sum(not line.isspace() for line in io.StringIO(cell)) - 1
            if between and below > 0 and cell.count(layout.delimiter) >= below * between:
                shown = name or "(no name)"
                raise InputError(
                    f"a cell of column {shown!r} contains {counted(below + 1, 'line')} and as many "
                    "delimiters as whole rows: an unclosed quotation mark seems to have swallowed "
                    "rows. Remove unpaired quotation marks, or double them."
                )


def _with_decimal_points(batch: pa.RecordBatch, marks: Mapping[str, Marks]) -> pa.RecordBatch:
    """`3,5` as `3.5` in the columns whose commas are decimal, and fields that know their marks."""
    fields, arrays = [], []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        own = marks.get(field.name)
        fields.append(own.on(field) if own else field)
        arrays.append(with_points(column, own))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def parse_failure(path: Path, message: str) -> str:
    """What Arrow says of a CSV, without the line that it quotes."""
    found = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", message)
    if found is None:
        return "it cannot be split into rows. Look for an unclosed quotation mark."
    row, expected, got = (int(number or 0) for number in found.groups())
    where = f"row {row:,} (the header is row 1)" if row else "a row"
    if got < expected:
        hint = "The file may be truncated. " + (
            "Otherwise look for an unclosed quotation mark, there or above."
            if _layout(path).has_long_cells
            else "Remove lines below the table, such as a row count."
        )
    elif expected == 1:
        hint = "Remove lines above the header, such as a title."
    else:
        hint = "A value that contains the delimiter must be in quotation marks."
    return f"{where} has {counted(got, 'column')}, the header {expected}. {hint}"
