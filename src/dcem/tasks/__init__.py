"""Where problems with a known truth come from.

On real selective labels nobody can say how good a model is: the truth of the untested is missing.
So methods are compared where the truth is known and hidden on purpose:

* `make_sinusoid` simulates everything: the setting of the paper's main experiments, whose
  cells `sinusoid_grid` lists.
* `make_censored` takes any fully labelled table and hides labels as a testing policy
  (`LinearPolicy`) would have: the way to try methods on one's own data.
* `load_diabetes_readmission` does that for a public table with weak signal.
* `load_nhanes` has a real decision to test and the truth of everybody: nothing is simulated.
* `load_sepsis` takes intensive-care patients of MIMIC-III and simulates who was tested: the
  paper's second experiment, whose settings `sepsis_settings` lists.

Each returns a `Task`: three splits as a method may see them, and the truth kept apart.
A user's own table, whose truth nobody knows, comes in through `table`.
"""

from dcem.tasks.censored import make_censored
from dcem.tasks.diabetes import load_diabetes_readmission
from dcem.tasks.nhanes import load_nhanes
from dcem.tasks.policy import CalibratedPolicy, LinearPolicy
from dcem.tasks.sepsis.task import load_sepsis, sepsis_settings
from dcem.tasks.sinusoid.make import PHASES, GridCell, make_sinusoid, sinusoid_grid
from dcem.tasks.sinusoid.process import SinusoidConstants, SinusoidProcess
from dcem.tasks.task import Task

__all__ = [
    "PHASES",
    "CalibratedPolicy",
    "GridCell",
    "LinearPolicy",
    "SinusoidConstants",
    "SinusoidProcess",
    "Task",
    "load_diabetes_readmission",
    "load_nhanes",
    "load_sepsis",
    "make_censored",
    "make_sinusoid",
    "sepsis_settings",
    "sinusoid_grid",
]
