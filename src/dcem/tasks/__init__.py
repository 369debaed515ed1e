"""Where problems with a known truth come from.

On real selective labels nobody can say how good a model is: the truth of the untested is missing.
So methods are compared where the truth is known and hidden on purpose:

* :func:`make_sinusoid` simulates everything, the setting of the paper's main experiments.

Each returns a :class:`Task`: three splits as a method may see them, and the truth kept apart.
"""

from dcem.tasks._grid import PHASES, GridCell, sinusoid_grid
from dcem.tasks._process import SinusoidConstants, SinusoidProcess
from dcem.tasks._sinusoid import make_sinusoid
from dcem.tasks._task import Task

__all__ = [
    "PHASES",
    "GridCell",
    "SinusoidConstants",
    "SinusoidProcess",
    "Task",
    "make_sinusoid",
    "sinusoid_grid",
]
