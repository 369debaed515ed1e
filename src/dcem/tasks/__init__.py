"""Where problems with a known truth come from.

On real selective labels nobody can say how good a model is: the truth of the untested is missing.
So methods are compared where the truth is known and hidden on purpose:

* :func:`make_sinusoid` simulates everything: the setting of the paper's main experiments, whose
  cells :func:`sinusoid_grid` lists.
* :func:`make_censored` takes any fully labelled table and hides labels as a testing policy
  (:class:`LinearPolicy`) would have: the way to try methods on one's own data.
* :func:`load_diabetes_readmission` does that for a public table with weak signal.
* :func:`load_sepsis` takes intensive-care patients of MIMIC-III and simulates who was tested: the
  paper's second experiment, whose settings :func:`sepsis_settings` lists.

Each returns a :class:`Task`: three splits as a method may see them, and the truth kept apart.

A user's own table, whose truth nobody knows, comes in through :func:`load_table` with its
:class:`Roles`, and is a :class:`UserTable`.
"""

from dcem.tasks._censored import make_censored
from dcem.tasks._diabetes import load_diabetes_readmission
from dcem.tasks._grid import PHASES, GridCell, sinusoid_grid
from dcem.tasks._policy import CalibratedPolicy, LinearPolicy
from dcem.tasks._process import SinusoidConstants, SinusoidProcess
from dcem.tasks._sepsis.task import load_sepsis, sepsis_settings
from dcem.tasks._sinusoid import make_sinusoid
from dcem.tasks._table.columns import Column
from dcem.tasks._table.encoder import Encoder
from dcem.tasks._table.load import UserTable, load_table
from dcem.tasks._table.reading import Source, read_batches, read_header
from dcem.tasks._table.roles import Roles
from dcem.tasks._table.rows import group_codes, tested_rows
from dcem.tasks._task import Task

__all__ = [
    "PHASES",
    "CalibratedPolicy",
    "Column",
    "Encoder",
    "GridCell",
    "LinearPolicy",
    "Roles",
    "SinusoidConstants",
    "SinusoidProcess",
    "Source",
    "Task",
    "UserTable",
    "group_codes",
    "load_diabetes_readmission",
    "load_sepsis",
    "load_table",
    "make_censored",
    "make_sinusoid",
    "read_batches",
    "read_header",
    "sepsis_settings",
    "sinusoid_grid",
    "tested_rows",
]
