"""Files and folders appear whole or not at all.

A file is written beside its final place and renamed into it, which the operating system does in one
step: an interrupted run leaves the old file or the new one, never half of either. A folder that
takes the place of another changes places with it, in one step too where the system can. Behind a
link it is the linked file or folder that is replaced.

Each writer has a name of its own for what is not finished, and holds a lock on it. So two writers
of one place, in two containers too, leave what one of them wrote; and what has no lock was left by
a run that ended, and is removed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dcem.table.messages import InputError

try:
    import fcntl
except ImportError:  # elsewhere than on Linux and macOS nothing that was left behind is removed
    fcntl = None  # type: ignore[assignment]

TICK = 50_000_000  # nanoseconds, longer than systems take to move the times of files on
TRIAL = 1 << 16  # bytes written to see whether there is room
LARGEST = 1 << 31  # bytes of a file that is read at once
TRIES = 100  # renamings of a folder that others replace at the same time
LEFT = re.compile(r"[0-9a-f]{16}\.(old|partial)")  # what stands behind the name of the place


def real_place(path: Path) -> Path:
    """The file or folder behind a link; a chain of links that never ends is refused."""
    try:
        real = path.resolve()
        is_loop = real.is_symlink()  # where it leads back to itself
    except (OSError, RuntimeError):
        is_loop = True
    except ValueError:
        raise InputError(f"{str(path)!r} cannot be the name of a file.") from None
    if is_loop:
        raise InputError(f"{path} is a link that leads back to itself. Name another place.")
    return real


def require_file_place(path: Path) -> None:
    """Refuse before the work is done a place that no file could be written to after it."""
    real = real_place(path)
    if real.is_dir():
        raise InputError(f"{path} is a folder. Give the name of a file to write.")
    if real.exists() and not real.is_file():
        raise InputError(f"{path} is a device or a pipe. Give the name of a file to write.")
    require_folder_place(path.parent)


def require_folder_place(folder: Path) -> None:
    """Refuse a folder that is not writable or could not be created; its parents need not exist."""
    real_place(folder)
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
    path = real_place(path) if path.is_symlink() else path
    with _in_the_name_of(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(path)
        with _beside(path, is_folder=False) as partial:
            yield partial
            os.replace(partial, path)


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
    place = real_place(place) if place.is_symlink() else place
    with _in_the_name_of(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(place)
        with _beside(place, is_folder=True) as partial:
            yield partial
            exchange(partial, place)


@contextmanager
def _in_the_name_of(place: Path) -> Iterator[None]:
    """Name the place that was wanted in an error about the one beside it."""
    try:
        yield
    except OSError as error:
        file = None if error.filename is None else Path(os.fsdecode(error.filename))
        is_beside = file is not None and _is_left(file, place)
        if not (file is None or is_beside or file in place.parents):
            raise
        raise OSError(error.errno, error.strerror or str(error), str(place)) from error


@contextmanager
def _beside(place: Path, *, is_folder: bool) -> Iterator[Path]:
    """A new file or folder beside `place`, locked as long as it is used and then removed."""
    while True:
        partial = _left(place, "partial")
        if is_folder:
            partial.mkdir()
        else:
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        lock = _locked(partial, wait=True)
        if partial.exists():  # else another run removed it before it was locked
            break
        _release(lock)
    try:
        yield partial
    finally:
        _release(lock)
        _remove(partial)


def exchange(new: Path, place: Path) -> None:
    """Give the finished folder `new` the name `place`; what had it before is removed.

    Where the system can exchange two names (Linux), a folder is there at every moment.
    Elsewhere there is one, between two renames, and the older folder is put back if the second
    fails. Where others do the same at the same time, one of the folders stays, whole.
    """
    for attempt in range(TRIES):
        if place.exists() and _swap(new, place):
            _remove(new)
            return
        old = _left(place, "old")
        with suppress(FileNotFoundError):  # another writer has moved it
            os.rename(place, old)
        try:
            os.rename(new, place)
        except OSError:
            if attempt + 1 < TRIES and place.exists():  # another writer was faster
                _remove(old)
                continue
            if old.exists():
                os.rename(old, place)
            raise
        _remove(old)
        return


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
    with suppress(OSError):
        for path in [path for path in place.parent.iterdir() if _is_left(path, place)]:
            ended_between = path.suffix == ".old"  # two renames: it may be the only one
            remove_unheld(path, place if ended_between else None)


def _left(place: Path, kind: str) -> Path:
    """A name beside `place` that nobody else has; that of a long one is cut."""
    name = os.fsdecode(os.fsencode(place.name)[:220])
    return place.with_name(f".{name}.{secrets.token_hex(8)}.{kind}")


def _is_left(path: Path, place: Path) -> bool:
    name = os.fsdecode(os.fsencode(place.name)[:220])
    own = path.parent == place.parent and path.name.startswith(f".{name}.")
    return own and LEFT.fullmatch(path.name.removeprefix(f".{name}.")) is not None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


# -- who is still at work --------------------------------------------------------------------------


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Lock a file or folder for as long as the block runs, or until this process ends."""
    lock = _locked(path, wait=True)
    try:
        yield
    finally:
        _release(lock)


def is_held(path: Path) -> bool:
    """Whether a process holds the lock of a file or folder, or nobody can tell."""
    lock = _locked(path, shared=True)
    _release(lock)
    return lock is None


def remove_unheld(path: Path, keep_as: Path | None = None) -> None:
    """Remove a file or folder that nobody holds; or rename it to `keep_as`, if that is not there.

    It is locked meanwhile: whoever has just made it finds it gone, and makes another.
    """
    lock = _locked(path)
    if lock is None:
        return
    try:
        if keep_as is None or keep_as.exists():
            _remove(path)
        else:
            os.rename(path, keep_as)
    finally:
        _release(lock)


def _locked(path: Path, *, wait: bool = False, shared: bool = False) -> int | None:
    """A lock on a file or folder; None if another has it, or if there is no lock to be had."""
    if fcntl is None:
        return None
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(number, kind if wait else kind | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        return None
    return number


def _release(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


# -- what is read ----------------------------------------------------------------------------------


def read_bytes(path: Path, most: int = LARGEST) -> bytes:
    """The content of an ordinary file of at most so many bytes; neither pipe nor device is read."""
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(number, "rb") as file:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "not an ordinary file", str(path))
        if about.st_size > most:
            raise OSError(errno.EFBIG, f"larger than {most:,} bytes", str(path))
        return file.read()
