"""A run that kills itself (SIGKILL) at a chosen moment: python run_and_die.py FILE OUT WHEN N."""

import os
import signal
import sys
from pathlib import Path

from dcem.benchmark.file import load
from dcem.benchmark.progress import Display
from dcem.benchmark.run import run


class Fatal(Display):
    """Counts the moments of one sort, and dies at the n-th."""

    def __init__(self, when: str, n: int):
        super().__init__()
        self.when, self.n = when, n

    def _count(self, when: str) -> None:
        if when == self.when:
            self.n -= 1
            if self.n == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def progress(self, done, total):
        self._count("training")

    def cell_done(self, *, failed):
        self._count("committing")


if __name__ == "__main__":
    file, out, when, n = sys.argv[1:]
    run(load(file), Path(out), device="cpu", display=Fatal(when, int(n)))
