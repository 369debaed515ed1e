"""The machine that computes: its packages, its processes, its device and memory.

A result is told apart from that of another state of the code by its commit, so the commit should be
known on every machine that computes: from Git in a checkout, and in a source archive
(`git archive`) from `commit.txt`, into which Git writes it. An installed wheel only has a version.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path

from dcem import extras

REMOTE_CARD = "remote-cuda"  # a card of another machine: its tasks say which
_HERE = Path(__file__).parent


@cache
def machine_versions() -> dict[str, str]:
    """Name of each part -> its version; the commit only where it is known."""
    found = extras.versions()
    if extras.is_installed("torch"):
        import torch

        if torch.version.cuda:
            found["cuda"] = torch.version.cuda
    known = commit()
    return found | ({"commit": known} if known else {})


def commit(package: Path = _HERE.parent) -> str | None:
    """The commit of the sources, "-dirty" if they were changed since; None where nobody knows.

    `package` is the folder `dcem`: two above it is the checkout, if it is one. Git is not asked
    from elsewhere: the repository around an installed package is somebody else's.
    """
    root = package.parent.parent
    if (root / ".git").exists():
        command = ["git", "describe", "--always", "--dirty"]
        try:
            answer = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return answer.stdout.strip() or None
    try:
        text = (package / "benchmark" / "commit.txt").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return None if text.startswith("$") else text  # "$Format...": no archive was made of it


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


def device_name(device: str) -> str:
    """The device in words that mean something elsewhere, and how exactly it multiplies."""
    if device in ("cpu", REMOTE_CARD):
        return device
    import torch

    rounding = " (tf32)" if torch.backends.cuda.matmul.allow_tf32 else ""
    return torch.cuda.get_device_name(device) + rounding


def free_memory(device: str) -> float:
    """Bytes to spare where a fleet will live."""
    if device == REMOTE_CARD:
        return 16e9  # most cards have more; one that has less splits its fleets
    if device != "cpu":
        import torch

        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(torch.cuda.mem_get_info(device)[0] + kept)
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES"))
    except (ValueError, OSError):  # not every system says
        return 2e9


def reset_peak(device: str) -> None:
    """Begin to measure the peak of a card anew."""
    if device != "cpu":
        import torch

        torch.cuda.reset_peak_memory_stats(device)


def peak_memory(device: str) -> float:
    """Bytes at the peak: of the card since the reset, or of this process so far."""
    if device != "cpu":
        import torch

        return float(torch.cuda.max_memory_allocated(device))
    if sys.platform == "win32":
        return float("nan")
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
