"""Which workers of a store are gone: the lease ran out, or the process can be seen to be dead."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from pathlib import Path


def gone(db: sqlite3.Connection) -> list[str]:
    """Workers that hold cells and will not finish them."""
    workers = db.execute(
        "SELECT DISTINCT workers.id, machine, pid, birth, lease FROM workers "
        "JOIN cells ON cells.owner = workers.id WHERE status = 'running'"
    )
    return [
        worker
        for worker, where, pid, born, lease in workers.fetchall()
        if lease < time.time() or (where == machine() and birth(pid) != born)
    ]


def machine() -> str:
    """Where process numbers mean the same: the host, and on Linux the namespace of processes."""
    try:
        return f"{platform.node()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def birth(pid: int) -> str | None:
    """When a process started, so that a reused number is not taken for it; None if it is gone."""
    try:
        # The name in parentheses may hold anything; the start time is the 20th field after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in ("Z", "X") else fields[19]
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc/self/stat").exists():
            return None
    try:  # no /proc here: all that can be asked is whether it lives
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "alive"
