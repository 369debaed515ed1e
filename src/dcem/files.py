"""Files appear whole or not at all.

A file is written beside its final place and renamed into it, which the operating system does in one
step: an interrupted run leaves the old file or the new one, never half of either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dcem.table.checks import InputError


def require_file_place(path: Path) -> None:
    """Refuse before the work is done a place that no file could be written to after it."""
    if path.is_dir():
        raise InputError(f"{path} is a folder. Give the name of a file to write.")
    require_folder_place(path.parent)


def require_folder_place(folder: Path) -> None:
    """Refuse a folder that is not writable or could not be created; its parents need not exist."""
    nearest = next((p for p in (folder, *folder.absolute().parents) if p.exists()), Path("/"))
    if not nearest.is_dir():
        raise InputError(f"{folder} cannot be a folder: {nearest} is a file, not a folder.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(f"{folder} cannot be written to: no permission to write in {nearest}.")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place beside `path` to write to; at the end it becomes `path`, whole or not at all.

    Folders on the way are made. What fails names the file that was wanted.
    """
    partial = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        os.replace(partial, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            partial.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file in one step."""
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")
