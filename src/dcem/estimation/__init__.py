"""How good is a score, how common an outcome, how different two groups, when truth is missing?

All that audit and comparison share. A number about people whose labels were collected selectively
comes from four steps, a file each:

* **who represents whom** (`outcomes`): the tested for themselves, weighted for everybody, or
  together with predictions (doubly robust); where untested people may differ, at an odds ratio;
* with the help of **models** (`nuisances`, `nuisance_learners`) that predict
  everybody out of fold (`folds`);
* for those **within reach** of the tests (`overlap`);
* **measured** (`measures`, `ranking`) with intervals, and comparisons corrected for their
  number (`influence`).

`Evaluator` does all four for a table. `scorer` and `SelectiveKFold` bring them to scikit-learn's
model selection. What is found is passed on as `findings`.
"""

from typing import TYPE_CHECKING

from dcem.extras import on_first_use

if TYPE_CHECKING:
    from dcem.estimation.evaluator import Evaluator
    from dcem.estimation.folds import SelectiveKFold
    from dcem.estimation.scorers import scorer

__all__ = ["Evaluator", "SelectiveKFold", "scorer"]

__getattr__, __dir__ = on_first_use(
    __name__, {"Evaluator": "evaluator", "SelectiveKFold": "folds", "scorer": "scorers"}
)
