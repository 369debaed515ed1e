"""A part of a table that is too large to be read whole: people drawn by a seed, all of their rows.

Every person has a number from 0 to 1 that follows from the seed and the identifier alone, and is
drawn if it is small enough. So who is drawn does not depend on the order of the rows or on how they
are cut into files, and whoever passes through the rows again can tell who was drawn.

A table in memory is cut into random parts of people, too (`divide`); for a look at a table there
are blocks of its rows (`blocks_of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dcem.table.messages import InputError
from dcem.table.read import read_batches, read_header, read_whole
from dcem.table.values import require_known

BATCH = 1 << 17  # rows looked at at a time
WHOLE = r"^-?(0|[1-9][0-9]{0,17})(\.0+)?$"
SLACK = 1.25  # times as many rows are kept on the way, at most
SAMPLE_ROWS, BLOCK = 50_000, 2048  # of a look at a table, and how many of them together
MOST_ROWS = 1_000_000  # among which they are


@dataclass(frozen=True, eq=False)
class Draw:
    """How rows were drawn from a larger table."""

    numbers: np.ndarray  # of each row that was drawn [n]
    rows: np.ndarray  # their positions in the table [n]
    share: float  # rows with a number below it were drawn
    seed: int  # from which numbers follow


def read_some(
    path: Path, most: int, by: str | None = None, seed: int = 0, query: str | None = None
) -> tuple[pa.Table, int, Draw | None]:
    """All rows of a file, or, of one with more than `most`, about so many; how many there are; and
    how they were drawn, if they were.

    All rows with one value of the column `by` are drawn, or none; without it, each row by itself.
    Memory is bounded where the format can be read in batches, whatever the length of the file.
    """
    header = read_header(path, query)
    by = by if by in header else None
    parts: list[tuple[pa.RecordBatch, np.ndarray, np.ndarray]] = []
    share, seen, kept = 1.0, 0, 0
    for batch in read_batches(path, verbatim=header, names=(by,), rows=BATCH, query=query):
        place = np.arange(seen, seen + batch.num_rows)
        drawn = batch, numbers_of(batch, by, seed, seen), place
        seen += batch.num_rows
        parts.append(drawn if share == 1 else _below(share, *drawn))
        kept += parts[-1][0].num_rows
        if kept > SLACK * most:
            share = most / seen
            parts = [_below(share, *part) for part in parts]
            kept = sum(rows.num_rows for rows, *_ in parts)
    if not parts:
        return read_whole(path, query=query), 0, None
    if seen > most:
        share = min(share, most / seen)
        parts = [_below(share, *part) for part in parts]
    batches, numbers, places = zip(*parts, strict=True)
    table = pa.Table.from_batches(batches)
    if seen <= most:
        return table, seen, None
    return table, seen, Draw(np.concatenate(numbers), np.concatenate(places), share, seed)


def _below(
    share: float, rows: pa.RecordBatch, numbers: np.ndarray, places: np.ndarray
) -> tuple[pa.RecordBatch, np.ndarray, np.ndarray]:
    drawn = numbers < share
    return rows.filter(pa.array(drawn)), numbers[drawn], places[drawn]


def numbers_of(batch: Any, by: str | None, seed: int, start: int) -> np.ndarray:
    """The number of each row of a batch `[n]`, the first of which is row `start` of the table."""
    rows = np.arange(start, start + batch.num_rows)
    if by is None:
        return hashed(rows, seed)
    who = batch.column(by)
    require_known(who, by)
    kind = who.type.value_type if pa.types.is_dictionary(who.type) else who.type
    who, absent = who.cast(kind), who.is_null().to_numpy(zero_copy_only=False)
    # A whole number counts alike however a format stores it: 7, 7.0 and "7" are one person.
    if pa.types.is_string(kind):
        who = pc.utf8_trim_whitespace(who).fill_null("")
        absent = pc.equal(who, "").to_numpy(zero_copy_only=False)
        is_whole = pc.match_substring_regex(who, WHOLE)
        digits = pc.replace_substring_regex(pc.if_else(is_whole, who, "0"), r"\.0+$", "")
        people = hashed(digits.cast(pa.int64()).to_numpy(), seed)
        if not pc.all(is_whole).as_py():
            texts = hashed(who.to_numpy(zero_copy_only=False), seed)
            people = np.where(is_whole.to_numpy(zero_copy_only=False), people, texts)
    elif pa.types.is_integer(kind):  # not by way of pandas, where a gap makes them floats
        people = hashed(who.fill_null(0).cast(pa.int64(), safe=False).to_numpy(), seed)
    elif pa.types.is_floating(kind):
        sizes = who.fill_null(0).cast(pa.float64()).to_numpy()
        whole = np.where((np.abs(sizes) < 2**53) & (sizes % 1 == 0), sizes, 0).astype(np.int64)
        people = np.where(whole == sizes, hashed(whole, seed), hashed(sizes, seed))
    else:
        people = hashed(who.to_pandas().to_numpy(), seed)
    return np.where(absent, hashed(rows, seed), people) if absent.any() else people


def hashed(values: np.ndarray, seed: int) -> np.ndarray:
    """A number from 0 to 1 for each value, the same wherever it occurs."""
    once = pd.util.hash_array(values, categorize=False) + np.uint64(seed)
    twice = pd.util.hash_array(once)  # neighbouring seeds draw unrelated people
    return np.asarray(twice / float(1 << 64))


def divide(person: np.ndarray, shares: Sequence[float], random_state: Any) -> list[np.ndarray]:
    """Masks [n] of random parts with these shares of the rows; `person` [n] says whose each is."""
    shares = [float(share) for share in shares]
    if not shares or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
        raise InputError(
            f"Shares must be positive and sum to 1; {tuple(shares)} sum to {sum(shares):g}."
        )
    sizes = np.bincount(person)
    order = np.random.default_rng(random_state).permutation(len(sizes))
    # A person goes where the middle of their rows falls, all rows laid in random order.
    middle = np.cumsum(sizes[order]) - sizes[order] / 2
    chosen = np.split(order, np.searchsorted(middle, np.cumsum(shares[:-1]) * len(person)))
    if any(len(one) == 0 for one in chosen):
        raise InputError(
            f"Shares {tuple(shares)} leave a part empty: there are only {len(sizes)} "
            f"{'rows' if len(sizes) == len(person) else 'people'} to divide. Use larger shares."
        )
    return [np.isin(person, one) for one in chosen]


def blocks_of(batches: Iterable[pa.RecordBatch]) -> tuple[pa.Table, bool]:
    """Blocks of rows from all over a table, which may be sorted, and whether it has more rows.

    Rows of a block stand together, so that people who come again are seen to.
    """
    blocks: list[pa.RecordBatch] = []
    every, place, rows = 1, 0, 0
    for batch in batches:
        for first in range(0, batch.num_rows, BLOCK):
            if place % every == 0:
                few = np.arange(first, min(first + BLOCK, batch.num_rows))
                blocks.append(batch.take(pa.array(few)))  # a slice would hold the whole batch
            place += 1
            if len(blocks) > SAMPLE_ROWS // BLOCK:
                blocks, every = blocks[::2], 2 * every
        rows += batch.num_rows
        if rows >= MOST_ROWS:
            break
    table = pa.Table.from_batches(blocks) if blocks else pa.table({})
    return table, rows > table.num_rows
