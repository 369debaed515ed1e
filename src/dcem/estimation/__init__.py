"""How good is a score, how common an outcome, how different two groups, when truth is missing?

All that audit and comparison share. A number about people whose labels were collected selectively
comes from four steps, a file each:

* **who stands for whom** (`outcomes`): the tested for themselves, weighted for everybody, or
  together with predictions (doubly robust); where untested people may differ, at an odds ratio;
* with the help of **models** (`nuisances`, `nuisance_learners`) that predict
  everybody out of fold (`folds`);
* for those **within reach** of the tests (`overlap`);
* **measured** (`measures`, `ranking`) with intervals, and comparisons corrected for their
  number (`influence`).

`Evaluator` does all four for a table. `scorer` and `SelectiveKFold` bring them to scikit-learn's
model selection. What is found is passed on as `findings`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dcem.estimation.evaluator import Evaluator
    from dcem.estimation.folds import SelectiveKFold
    from dcem.estimation.scorers import scorer

__all__ = ["Evaluator", "SelectiveKFold", "scorer"]

_HOME = {"Evaluator": "evaluator", "SelectiveKFold": "folds", "scorer": "scorers"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dcem.estimation' has no attribute {name!r}")
    value = getattr(import_module(f"dcem.estimation.{_HOME[name]}"), name)
    globals()[name] = value
    return value
