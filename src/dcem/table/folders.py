"""A folder of Parquet files as one table, whatever its files disagree about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from dcem.table.messages import InputError

BUFFER = 1 << 18  # bytes of a column of a Parquet file that are read ahead
Batches = Callable[[list[str] | None, int], Iterator[pa.RecordBatch]]


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files under a folder in order; names that begin with `_` or `.` do not count."""
    return sorted(
        path
        for path in folder.rglob("*.parquet")
        if path.is_file()
        and not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)
    )


@lru_cache(maxsize=64)
def read_folder(
    folder: Path, only: str | None, files: tuple[Path, ...], changed: int
) -> tuple[list[str], Batches]:
    """Parquet files as one table; a subfolder called `ward=A` is a column `ward`.

    `only` is the one whose rows are read; it has the columns and types of all.
    """
    import pyarrow.dataset as ds
    import pyarrow.fs
    import pyarrow.parquet

    if not files:
        raise InputError(f"{folder}: a folder without .parquet files.")
    if only is not None and folder / only not in files:
        raise InputError(f"{folder} has no file {only!r}.")
    factory = ds.FileSystemDatasetFactory(
        pyarrow.fs.LocalFileSystem(),
        [str(file) for file in files],
        ds.ParquetFileFormat(),
        ds.FileSystemFactoryOptions(
            partition_base_dir=str(folder), partitioning=ds.HivePartitioning.discover()
        ),
    )
    # All files are asked: a number that is whole in one of them may not be in the next.
    schemas = [_schema(file) for file in files]
    found = factory.inspect(fragments=1)
    named = pa.schema([field for field in found if field.name not in schemas[0].names])
    schema = _common([*schemas, named])
    dataset = factory.finish(schema)

    def batches(columns: list[str] | None, rows: int) -> Iterator[pa.RecordBatch]:
        wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        for fragment in dataset.get_fragments():  # in order, and one file at a time
            if only is None or Path(fragment.path) == folder / only:
                keys = ds.get_partition_keys(fragment.partition_expression)
                yield from _part(fragment.path, wanted, keys, rows)

    return schema.names, batches


def _schema(file: Path) -> pa.Schema:
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_schema(file)
    except pa.ArrowException as error:
        raise InputError(f"{file}: not a readable Parquet file: {error}") from None


def _common(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The columns of all files; one that is text in some and not in others is text."""
    kinds: dict[str, set[pa.DataType]] = {}
    for field in (field for schema in schemas for field in schema):
        kinds.setdefault(field.name, set()).add(field.type)
    text = {
        name
        for name, found in kinds.items()
        if len(found) > 1 and any(map(_is_text, found)) and not any(map(pa.types.is_nested, found))
    }
    plain = [
        pa.schema([pa.field(f.name, pa.string()) if f.name in text else f for f in schema])
        for schema in schemas
    ]
    return pa.unify_schemas(plain, promote_options="permissive")


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _part(
    path: str, wanted: pa.Schema, keys: dict[str, Any], rows: int
) -> Iterator[pa.RecordBatch]:
    """The rows of one file of a folder, with the columns of all and those its path tells (`keys`).

    Through a small buffer for each column: a file may be one row group, larger than memory.
    """
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER) as file:
        own = file.schema_arrow.names
        stored = [name for name in wanted.names if name in own and name not in keys]
        for batch in file.iter_batches(min(rows, 1 << 20), columns=stored or own[:1]):
            n = batch.num_rows
            arrays = [
                batch.column(field.name).cast(field.type)
                if field.name in stored
                else pa.repeat(pa.scalar(keys.get(field.name), field.type), n)
                for field in wanted
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted)
