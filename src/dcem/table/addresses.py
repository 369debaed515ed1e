"""Tables that lie elsewhere: fetched into a folder that goes when the program ends."""

from __future__ import annotations

import hashlib
import tempfile
from functools import cache
from pathlib import Path

from dcem.extras import extra_needed
from dcem.table.messages import InputError


def located(source: str | Path) -> Path:
    """The path of a table; one with an address such as `s3://bucket/visits.parquet` is fetched.

    Which addresses are known is up to fsspec and the packages beside it (s3fs, gcsfs, adlfs, ...).
    """
    address = str(source)
    if isinstance(source, Path) or "://" not in address:
        return Path(source)
    return _fetched(address)


def is_fetched(path: Path) -> bool:
    """Whether it lies where fetched tables do, which is nowhere to keep anything."""
    return bool(_scratch.cache_info().currsize) and path.is_relative_to(_scratch().name)


@cache  # an address is fetched once
def _fetched(address: str) -> Path:
    with extra_needed(address):
        import fsspec
    try:
        system, path = fsspec.url_to_fs(address)
        here = Path(_scratch().name) / hashlib.sha256(address.encode()).hexdigest()[:16]
        name = path.rstrip("/").rpartition("/")[2]
        here.mkdir(exist_ok=True)
        system.get(path, str(here / name), recursive=bool(system.isdir(path)))
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"{address} cannot be fetched: {error or type(error).__name__}") from None
    return here / name


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for this process alone, readable by its owner alone."""
    return tempfile.TemporaryDirectory(prefix="dcem-")
