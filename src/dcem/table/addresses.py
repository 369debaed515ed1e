"""Tables that lie elsewhere: fetched into a folder that goes when the program ends.

A database on a server is not fetched: a file in that folder holds its address, password and all,
and stands for it from then on. What is shown of an address has no password (`shown`).
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from functools import cache
from pathlib import Path

from dcem.extras import extra_needed
from dcem.table.messages import InputError

POSTGRES = ("postgresql://", "postgres://")
SERVER = ".postgresql"  # the ending of a file that holds the address of a database
_addresses: dict[Path, str] = {}  # of what was fetched


def located(source: str | Path) -> Path:
    """The path of a table; one with an address such as `s3://bucket/visits.parquet` is fetched.

    Which addresses are known is up to fsspec and the packages beside it (s3fs, gcsfs, adlfs, ...).
    """
    address = str(source)
    if isinstance(source, Path) or "://" not in address:
        return Path(source)
    path = _fetched(address)
    _addresses[path] = address
    return path


def as_named(path: Path) -> str:
    """A table as it was named: its path, or its address without the password."""
    return shown(_addresses[path]) if path in _addresses else str(path)


def is_fetched(path: Path) -> bool:
    """Whether it lies where fetched tables do, which is nowhere to keep anything."""
    return bool(_scratch.cache_info().currsize) and path.is_relative_to(_scratch().name)


@cache  # an address is fetched once
def _fetched(address: str) -> Path:
    here = Path(_scratch().name) / hashlib.sha256(address.encode()).hexdigest()[:16]
    here.mkdir(exist_ok=True)
    if address.startswith(POSTGRES):
        database = re.sub(
            r"\W", "_", address.partition("?")[0].rpartition("@")[2].rpartition("/")[2]
        )
        file = here / f"{database or 'database'}{SERVER}"
        file.touch(0o600)
        file.write_text(address, encoding="utf-8")
        return file
    with extra_needed(shown(address)):
        import fsspec
    try:
        system, path = fsspec.url_to_fs(address)
        name = path.rstrip("/").rpartition("/")[2]
        system.get(path, str(here / name), recursive=bool(system.isdir(path)))
    except (OSError, ValueError, ImportError) as error:
        missing = isinstance(error, FileNotFoundError)
        told = "there is nothing" if missing else str(error) or type(error).__name__
        why = without_password(told, address)
        raise InputError(f"{shown(address)} cannot be fetched: {why}") from None
    return here / name


def shown(address: str) -> str:
    """An address as it may be shown.

    >>> shown("postgresql://ann:secret@db/visits?password=secret"), shown("s3://bucket/a.csv")
    ('postgresql://ann:***@db/visits?password=***', 's3://bucket/a.csv')
    """
    kind, _, rest = address.partition("://")
    user, at, place = rest.rpartition("@")
    name, colon, _ = user.partition(":")
    place = re.sub(r"(?i)((?:password|secret|token|key)=)[^&]*", r"\1***", place)
    return f"{kind}://{name}{colon}{'***' if colon else ''}{at}{place}"


def without_password(text: str, address: str) -> str:
    """What a driver says of an address, without the address and any piece of its password.

    A password with an unescaped `@` or `/` is cut in pieces by drivers, which then name one as the
    host.
    """
    text = text.replace(address, shown(address))
    secret = address.partition("://")[2].rpartition("@")[0].partition(":")[2]
    secrets = [secret, *re.findall(r"(?i)(?:password|secret|token|key)=([^&]*)", address)]
    for one in sorted({p for s in secrets for p in (s, *re.split(r"[@/:?#]", s))}, key=len)[::-1]:
        text = text.replace(one, "***") if one else text
    return text


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for this process alone, readable by its owner alone."""
    return tempfile.TemporaryDirectory(prefix="dcem-")
