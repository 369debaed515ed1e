"""Files and folders appear whole or not at all.

A file is written beside its final place and renamed into it, which the operating system does in one
step: an interrupted run leaves the old file or the new one, never half of either. A folder that
takes the place of another changes places with it, in one step too where the system can. Behind a
link it is the linked file or folder that is replaced.
"""

from __future__ import annotations

import ctypes
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dcem.table.messages import InputError

TICK = 50_000_000  # nanoseconds, longer than systems take to move the times of files on
TRIAL = 1 << 16  # bytes written to see whether there is room


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
    try:  # permission is not room: a full disk or a file system that is read only shows here
        with tempfile.TemporaryFile(dir=nearest) as file:
            file.write(bytes(TRIAL))
            file.flush()
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise InputError(f"{folder} cannot be written to: {why}.") from None


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place beside `path` to write to; at the end it becomes `path`, whole or not at all.

    Folders on the way are made. What fails names the file that was wanted.
    """
    path = path.resolve() if path.is_symlink() else path
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(path)
        yield partial
        os.replace(partial, path)
    except OSError as error:
        if error.filename is not None and Path(error.filename) not in (partial, *path.parents):
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            partial.unlink()


def stamp(path: Path) -> tuple[int, ...]:
    """Numbers that change whenever a file does, for a cache: also if its times were set back.

    A file that changed a moment ago may do so again within a tick of the clock: its stamp is new
    each time.
    """
    about = path.stat()
    changed = max(about.st_ctime_ns, about.st_mtime_ns)
    recent = abs(time.time_ns() - changed) < TICK
    moment = time.monotonic_ns() if recent else 0
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns, moment


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file in one step."""
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def whole_folder(place: Path) -> Iterator[Path]:
    """A folder beside `place` to fill; at the end it takes its name, whole or not at all."""
    place = place.resolve() if place.is_symlink() else place
    partial = place.with_name(f".{place.name}.{os.getpid()}.partial")
    remove_abandoned(place)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        exchange(partial, place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def exchange(new: Path, place: Path) -> None:
    """Give the finished folder `new` the name `place`; what had it before is removed.

    Where the system can exchange two names (Linux), a folder is there at every moment.
    Elsewhere there is one, between two renames, and the older folder is put back if the second
    fails.
    """
    if place.exists() and _swap(new, place):
        shutil.rmtree(new, ignore_errors=True)
        return
    old = place.with_name(f".{place.name}.{os.getpid()}.old")
    if place.exists():
        os.rename(place, old)
    try:
        os.rename(new, place)
    except OSError:
        if old.exists():
            os.rename(old, place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _swap(one: Path, other: Path) -> bool:
    """Exchange two names in one step; whether the system did."""
    here, both = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    return rename(here, os.fsencode(one), here, os.fsencode(other), both) == 0


def remove_abandoned(place: Path) -> None:
    """Remove what runs that no longer exist left beside `place` on their way to it."""
    for path in place.parent.glob(f".{glob.escape(place.name)}.*"):
        number, _, kind = path.name.removeprefix(f".{place.name}.").partition(".")
        if number.isdigit() and kind in ("tmp", "old", "partial") and not is_running(int(number)):
            if kind == "old" and not place.exists():  # ended between two renames: the only one
                os.rename(path, place)
            elif path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()


def is_running(process: int) -> bool:
    """Whether there is a process of this number."""
    if os.name == "nt":  # where asking would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
