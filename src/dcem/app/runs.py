"""A command in a process of its own, with a folder that tells everything about it.

    job.json     step, command, when it began, which file says that it is done
    dcem.toml    the roles, where it needs them; same.py: the Python that would do the same
    log.txt      what it said
    progress     what it is doing, a line of JSON each
    process      its number, and a lock that it holds for as long as it lives
    ended.json   how it ended, if somebody was there to see it

A closed tab, or an app that ended, loses nothing: the folder is read again. By its lock a run that
was killed is never taken for one that goes on, though another process may have its number by then.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from dcem.app.places import Place, preview
from dcem.files import is_held, read_bytes, write_text
from dcem.text import remaining

try:
    import fcntl
except ImportError:  # elsewhere than on Linux and macOS: the end of the app is the end of its runs
    fcntl = None  # type: ignore[assignment]

PATIENCE = 3.0  # seconds that a process has to end by itself
INTERNAL = ("job.json", "ended.json", "progress", "process")
SHOWN = 16_000  # characters of the end of a log
NAME = re.compile(r"[a-z-]{1,40}-[0-9]{1,9}")  # of a run
NUMBER = re.compile(r"-?\d*\.\d{4,}(e-?\d+)?")


@dataclass(frozen=True)
class Run:
    """One run, and what it found, read from its folder."""

    folder: Path

    @property
    def name(self) -> str:
        """Its name in addresses: the step and a number."""
        return self.folder.name

    @property
    def job(self) -> dict[str, Any]:
        """What was asked for."""
        return _json(self.folder / "job.json")

    @property
    def result(self) -> Path:
        """The file, or folder, that is written last."""
        result = (self.folder / str(self.job["result"])).resolve()
        is_own = result.is_relative_to(self.folder.resolve())
        return result if is_own else self.folder / "none"

    @property
    def ended(self) -> dict[str, Any]:
        """How it ended: `code`, `cancelled`; empty if it goes on or nobody saw it end."""
        return _json(self.folder / "ended.json")

    @property
    def state(self) -> str:
        """One of "running", "done", "cancelled", "failed" (and says why), "killed" (unawares)."""
        ended = self.ended
        if not ended and self._is_locked():
            return "running"
        if ended.get("cancelled"):
            return "cancelled"
        code = ended.get("code")
        if self.result.exists() and code in (0, None):
            return "done"
        return "killed" if code is None or code < 0 else "failed"

    @property
    def seconds(self) -> float:
        """How long it took, or has taken so far."""
        return float(self.ended.get("time", time.time())) - float(self.job["time"])

    @property
    def progress(self) -> dict[str, Any]:
        """What it did last: `doing`; the `share` that is done and the seconds `left`, or None."""
        for line in reversed(_tail(self.folder / "progress").splitlines()):
            with suppress(ValueError):
                return dict(json.loads(line))
        said = [line.strip() for line in self.log.splitlines() if line.strip()]
        return {"doing": said[-1] if said else "starting", "share": None, "left": None}

    @property
    def doing(self) -> str:
        """What it is doing, and how long the rest will take, if that is known."""
        progress = self.progress
        return str(progress["doing"]) + remaining(progress.get("left"))

    @property
    def log(self) -> str:
        """The end of what it said."""
        return _tail(self.folder / "log.txt")

    @property
    def verdict(self) -> dict[str, Any] | None:
        """The answer of its report, if that is what it wrote."""
        return _json(self.result).get("verdict") if self.result.suffix == ".json" else None

    @property
    def first_rows(self) -> tuple[list[str], list[list[str]]] | None:
        """The names of columns and the first rows of its list of people, if it wrote one."""
        if self.result.suffix != ".csv":
            return None
        seen = preview(Place(self.result))
        return [one.name for one in seen.columns], [list(map(_rounded, row)) for row in seen.rows]

    @property
    def model(self) -> dict[str, str] | None:
        """The method of its model, and why it was taken, if it fitted one."""
        described = _json(self.result / "model.json")
        return (
            {"method": described["model"]["method"], "why": described["table"]["why"]}
            if described
            else None
        )

    def files(self) -> list[Path]:
        """What it wrote, relative to its folder; its log, roles and Python too, and no links."""
        found = (p for p in self.folder.rglob("*") if p.is_file() and _is_inside(p, self.folder))
        inside = sorted(path.relative_to(self.folder) for path in found)
        return [path for path in inside if path.name[0] != "." and path.name not in INTERNAL]

    def _is_locked(self) -> bool:
        process = self.folder / "process"
        return process.is_file() and is_held(process)

    def cancel(self) -> None:
        """End it and all processes that it started."""
        if self.state != "running":
            return
        text = _tail(self.folder / "process")
        if not (text.isascii() and text.isdecimal()) or int(text[:20]) < 2:
            return
        number = int(text)
        _note_end(self.folder, cancelled=True)
        _end(number, signal.SIGTERM)
        until = time.monotonic() + PATIENCE
        while self._is_locked() and time.monotonic() < until:
            time.sleep(0.05)
        if self._is_locked():
            _end(number, getattr(signal, "SIGKILL", signal.SIGTERM))


def start(
    folder: Path, words: Sequence[str], result: str, where: Path, files: Mapping[str, str]
) -> Run:
    """Begin a run in a new folder, `STEP-NUMBER`: `dcem` with these words, in the folder `where`.

    `files` are put into the folder first. A folder that is there already belongs to another run,
    which somebody began at the same moment: it is left alone.
    """
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return Run(folder)
    step = folder.name.rpartition("-")[0]
    job = {"step": step, "command": list(words), "result": result, "time": time.time()}
    for name, text in files.items():
        write_text(folder / name, text)
    surroundings = {**os.environ, "DCEM_PROGRESS": str(folder / "progress"), "COLUMNS": "100"}
    lock = (folder / "process").open("w")  # held until its end is noted, here or by the child
    kept: tuple[int, ...] = ()
    if fcntl is not None:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = (lock.fileno(),)
    with (folder / "log.txt").open("wb") as log:
        write_text(folder / "job.json", json.dumps(job, indent=1, ensure_ascii=False))
        process = subprocess.Popen(
            [sys.executable, "-m", "dcem", *words],
            cwd=where,
            env=surroundings,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=kept,
            start_new_session=True,  # a group of its own, to be ended as one
        )
    lock.write(str(process.pid))
    lock.flush()
    threading.Thread(target=_wait, args=(process, folder, lock), daemon=True).start()
    return Run(folder)


def next_folder(parent: Path, step: str) -> Path:
    """Where the next run of a step will be."""
    number = 1
    while (parent / f"{step}-{number}").exists():
        number += 1
    return parent / f"{step}-{number}"


def runs(parent: Path, step: str = "*") -> list[Run]:
    """The runs of a step, the latest first."""

    named = [path for path in parent.glob(f"{step}-*") if NAME.fullmatch(path.name)]
    found = [Run(path) for path in named if _is_job(_json(path / "job.json"))]
    return sorted(found, key=lambda run: -int(run.name.rpartition("-")[2]))


def _is_job(job: Mapping[str, Any]) -> bool:
    """Whether it is what `start` writes: nothing else is shown, or begun again."""
    kinds: dict[str, Any] = {"step": str, "command": list, "result": str, "time": (int, float)}
    return all(isinstance(job.get(name), kind) for name, kind in kinds.items())


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve() == folder.resolve() / path.relative_to(folder)


def _wait(process: subprocess.Popen[bytes], folder: Path, lock: TextIO) -> None:
    with lock:  # else it would seem killed until its end is noted
        _note_end(folder, code=process.wait())


def _note_end(folder: Path, **how: Any) -> None:
    """Note the end, unless it was noted before."""
    if folder.is_dir() and not (folder / "ended.json").exists():
        write_text(folder / "ended.json", json.dumps({**how, "time": time.time()}))


def _end(number: int, how: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(number, how)
        else:
            os.kill(number, how)


def _rounded(cell: str) -> str:
    """A number with the digits that anybody reads."""
    return f"{float(cell):.3g}" if NUMBER.fullmatch(cell) else cell


def _json(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(read_bytes(file)))
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


def _tail(file: Path) -> str:
    """The end of a text, from a whole line on."""
    if not file.is_file():  # a pipe would be waited for
        return ""
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, file.stat().st_size - SHOWN))
            text = opened.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return text if len(text) < SHOWN else text.partition("\n")[2]
