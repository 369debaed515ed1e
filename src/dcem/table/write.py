"""Tables on their way out: in the formats they come in, whole or not at all, and safe to open.

A spreadsheet runs what begins with `=`, `+`, `-` or `@`. Text of a CSV that begins so, and is not
a number, gets an apostrophe in front; files with types keep it as it is. What begins so after some
apostrophes gets one more: so `unguarded` gives back exactly what was written.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dcem.extras import extra_needed
from dcem.files import require_file_place, whole_file
from dcem.table.messages import InputError, notice
from dcem.table.values import is_known, is_plain_text
from dcem.text import counted

STATISTICS = {".dta": "write_dta", ".sav": "write_sav", ".xpt": "write_xport"}  # of pyreadstat
SUFFIXES = (".csv", ".csv.gz", ".parquet", ".arrow", ".feather", ".xlsx", *STATISTICS)
SHEET_ROWS = (1 << 20) - 1  # of a workbook, below the header
LONGEST_CELL = 32_767  # characters of a cell of a workbook
LONGEST_NUMBER = 10**15  # a spreadsheet keeps fifteen digits
RUNS = r"^'*[=+\-@\t\r]"
GUARDED = r"^'('*[=+\-@\t\r])"
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def require_output(out: Path, source: Path | None = None) -> None:
    """Refuse before the work is done what would fail after it."""
    if not out.name.lower().endswith(SUFFIXES):
        raise InputError(f"{out}: the name must end in one of {', '.join(SUFFIXES)}.")
    require_file_place(out)
    if source is not None and out.exists() and source.exists() and out.samefile(source):
        raise InputError(f"{out} is the input table. Write the result to another file.")


Write = Callable[[pa.RecordBatch], None]


@contextmanager
def table_writer(out: Path) -> Iterator[Write]:
    """A function that appends batches to `out`, which appears when all is written, or not."""
    with whole_file(out) as partial, ExitStack() as opened:
        begun: list[Write] = []

        def write(batch: pa.RecordBatch) -> None:
            _refuse_lost(out, batch)
            if not begun:
                begun.append(opened.enter_context(_writer(out, partial, batch.schema)))
            begun[0](batch)

        yield write


def _refuse_lost(out: Path, batch: pa.RecordBatch) -> None:
    """Refuse what a format cannot hold, and text that it cuts: two people would become one."""
    suffix = out.suffix.lower()
    if suffix in (".parquet", ".arrow", ".feather"):
        return
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = column.type
        if not is_known(column):
            raise InputError(
                f"{out}: column {name!r} holds values of the type {kind}, which a {suffix} file "
                "cannot hold. Write a .parquet file, or leave the column out."
            )
        text = column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column
        if not (pa.types.is_string(text.type) or pa.types.is_large_string(text.type)):
            continue
        if pc.any(pc.match_substring(text, "\0")).as_py():
            raise InputError(
                f"{out}: column {name!r} holds NUL characters, at which a {suffix} file would cut "
                "its text. Write a .parquet file."
            )
        if suffix == ".xlsx" and (pc.max(pc.utf8_length(text)).as_py() or 0) > LONGEST_CELL:
            raise InputError(
                f"{out}: column {name!r} holds text of more than {LONGEST_CELL:,} characters, at "
                "which a workbook would cut it. Write a .parquet or .csv file."
            )


@contextmanager
def _writer(out: Path, partial: Path, schema: pa.Schema) -> Iterator[Write]:
    """What writes batches of the kind that the name `out` asks for to the file `partial`."""
    suffix = out.suffix.lower()
    if suffix == ".parquet":
        import pyarrow.parquet

        with pyarrow.parquet.ParquetWriter(partial, schema) as writer:
            yield writer.write_batch
    elif suffix in (".arrow", ".feather"):
        with pa.ipc.new_file(str(partial), schema) as writer:
            yield writer.write_batch
    else:
        kinds = {".xlsx": _workbook, **dict.fromkeys(STATISTICS, _statistics)}
        with kinds.get(suffix, _csv)(out, partial, schema) as write:
            yield write


def write_frame(frame: pd.DataFrame, out: Path) -> None:
    """Write a finished table, whole or not at all."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with table_writer(out) as write:
        for batch in table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]:
            write(batch)


def csv_text(frame: pd.DataFrame, **how: Any) -> str:
    """A small table as the text of a CSV that is safe to open; `how` as pandas takes it."""
    texts = frame.select_dtypes(include=["object", "string", "category"])
    safe = {name: texts[name].map(guarded) for name in texts.columns}
    columns = [guarded(name) for name in frame.columns]
    return frame.assign(**safe).set_axis(columns, axis=1).to_csv(index=False, **how)


def _runs(column: Any) -> Any:
    """Which cells of text a spreadsheet would run, or hold an apostrophe of ours before such."""
    return pc.and_not(
        pc.match_substring_regex(column, RUNS), pc.match_substring_regex(column, NUMBER)
    )


def guarded(value: Any) -> Any:
    """Text that a spreadsheet would run, with an apostrophe in front; all else as it is.

    >>> guarded("=1+1"), guarded("-9"), guarded("A")
    ("'=1+1", '-9', 'A')
    """
    if not isinstance(value, str) or not re.match(RUNS, value):
        return value
    is_number = pc.match_substring_regex(pa.scalar(value), NUMBER).as_py()
    return value if is_number else f"'{value}"


def unguarded(table: pa.Table) -> pa.Table:
    """The text of a table, names of columns included, as it was before it went into a CSV.

    >>> unguarded(pa.table({"'=x": ["'+49 30", "''-a", "-9", "A"]})).to_pydict()
    {'=x': ['+49 30', "'-a", '-9', 'A']}
    """
    columns = [
        pc.replace_substring_regex(column, GUARDED, r"\1") if is_plain_text(column) else column
        for column in table.columns
    ]
    return pa.table(columns, names=[re.sub(GUARDED, r"\1", name) for name in table.column_names])


def _guarded_batch(batch: pa.RecordBatch, counts: Counter[str]) -> pa.RecordBatch:
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = column.cast(pa.string())
            runs = _runs(column)
            if pc.any(runs).as_py():
                safe = pc.binary_join_element_wise("'", column, "")
                column = pc.if_else(runs, safe, column)
                counts[name] += pc.sum(runs).as_py()
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


@contextmanager
def _csv(out: Path, partial: Path, schema: pa.Schema) -> Iterator[Write]:
    """A CSV file whose text is quoted only where it must be, so that the identifier 7 is `7`.

    Arrow quotes all text or none, and refuses none where a value holds a comma, a quote or the end
    of a line: then that batch is quoted. Both are the same CSV to a reader.
    """
    import pyarrow.csv

    counts: Counter[str] = Counter()

    def write(batch: pa.RecordBatch) -> None:
        rows = _guarded_batch(batch, counts)
        for quoting in ("none", "needed"):
            buffer = pa.BufferOutputStream()  # a refused batch leaves nothing in the file
            options = pyarrow.csv.WriteOptions(include_header=False, quoting_style=quoting)
            try:
                pyarrow.csv.write_csv(rows, buffer, options)
            except pa.ArrowInvalid:
                if quoting == "needed":
                    raise
            else:
                file.write(buffer.getvalue())
                return

    packed = "gzip" if out.suffix.lower() == ".gz" else None
    with pa.output_stream(partial, compression=packed) as file:
        header = io.StringIO()
        csv.writer(header, lineterminator="\n").writerow(map(guarded, schema.names))
        file.write(header.getvalue().encode())
        yield write
    for name, cells in counts.items():
        notice(
            f"{out.name}: {counted(cells, 'value')} of column {name!r} would run in a spreadsheet, "
            "because of = + - or @ at the beginning, and got an apostrophe in front. A list of "
            "tests is read without it; to write values as they are, choose .parquet or .xlsx."
        )


def _as_cells(rows: Any) -> Any:
    """A table or batch as workbooks and statistics packages hold it, whose numbers are floats.

    Longer whole numbers go as text, or two people would become one; times of a zone are in UTC, as
    they are read; an infinity is missing.
    """
    columns = []
    for column in rows.columns:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        kind = column.type
        if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            ends = [end for end in pc.min_max(column).as_py().values() if end is not None]
            if any(abs(end) >= LONGEST_NUMBER for end in ends):
                column = column.cast(pa.string())
            elif pa.types.is_decimal(kind):
                column = column.cast(pa.float64())
        elif pa.types.is_floating(kind):
            column = pc.if_else(pc.is_finite(column), column, pa.scalar(None, kind))
        elif pa.types.is_timestamp(kind) and kind.tz is not None:
            column = column.cast(pa.timestamp(kind.unit))
        columns.append(column)
    return type(rows).from_arrays(columns, names=rows.schema.names)


@contextmanager
def _workbook(out: Path, partial: Path, schema: pa.Schema) -> Iterator[Write]:
    """An Excel workbook of one sheet, written row by row; no text in it is run."""
    with extra_needed(out.name):
        import xlsxwriter
    as_text = dict.fromkeys(("strings_to_formulas", "strings_to_urls", "strings_to_numbers"), False)
    how = {"constant_memory": True, "default_date_format": "yyyy-mm-dd hh:mm:ss", **as_text}
    try:
        with closing(xlsxwriter.Workbook(str(partial), how)) as book:
            sheet, rows = book.add_worksheet(), 0
            sheet.write_row(0, 0, schema.names)

            def write(batch: pa.RecordBatch) -> None:
                nonlocal rows
                if rows + batch.num_rows > SHEET_ROWS:
                    raise InputError(
                        f"{out}: a sheet holds at most {SHEET_ROWS:,} rows, and there are more. "
                        "Write a .parquet or .csv file."
                    )
                columns = _as_cells(batch).columns
                for row in zip(*(column.to_pylist() for column in columns), strict=True):
                    rows += 1
                    sheet.write_row(rows, 0, row)

            yield write
    except xlsxwriter.exceptions.FileCreateError as error:  # of a full disk, say
        raise error.args[0] from None


@contextmanager
def _statistics(out: Path, partial: Path, schema: pa.Schema) -> Iterator[Write]:
    """A file of Stata, SPSS or SAS, which is written at the end, all at once."""
    with extra_needed(out.name):
        import pyreadstat
    batches: list[pa.RecordBatch] = []
    yield batches.append
    frame = _as_cells(pa.Table.from_batches(batches, schema)).to_pandas()
    yes_no = frame.select_dtypes("bool").columns
    try:
        write = getattr(pyreadstat, STATISTICS[out.suffix.lower()])
        write(frame.astype(dict.fromkeys(yes_no, "int8")), str(partial))
    except (pyreadstat.PyreadstatError, pyreadstat.ReadstatError) as error:
        raise InputError(f"{out} cannot be written: {error}. Try .csv.") from None
