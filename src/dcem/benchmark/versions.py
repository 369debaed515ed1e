"""What a result was computed with: packages, Python, CUDA, and the commit of the sources.

A result is told apart from that of another state of the code by its commit, so the commit should be
known on every machine that computes: from Git in a checkout, and in a source archive
(`git archive`) from `commit.txt`, into which Git writes it. An installed wheel only has a version.
"""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dcem._version import __version__

_HERE = Path(__file__).parent


@cache
def versions() -> dict[str, str]:
    """Name of each part -> its version; the commit only where it is known."""
    found = {"dcem": __version__, "python": platform.python_version()}
    for package in ("torch", "numpy", "scipy", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
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
            told = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return told.stdout.strip() or None
    try:
        text = (package / "benchmark" / "commit.txt").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return None if text.startswith("$") else text  # "$Format...": no archive was made of it
