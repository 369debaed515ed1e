"""Files appear whole or not at all.

Text is written beside its final place and renamed into it, which the operating system does in one
step: an interrupted run leaves the old file or the new one, never half of either.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dcem.checks import InputError


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


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file in one step, with the permissions any new file would get."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
