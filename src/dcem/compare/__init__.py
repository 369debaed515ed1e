"""How good is a score, and is one score better than another?

* :func:`paired_differences` compares scores on the same resampled people, where the truth is known.
* :class:`Evaluator` judges scores where most of the truth is missing.
* :func:`compare_on_truth` fits methods and judges them on a known truth, as in a simulation.
* :func:`compare_table` fits methods to a table, fold by fold, and judges them so.
* :func:`plant` hides outcomes of its own making in a table's features, and sees who finds them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dcem.compare.known_truth import compare_on_truth
    from dcem.compare.paired import paired_differences
    from dcem.compare.planted import plant
    from dcem.compare.run import compare_table
    from dcem.estimation.evaluator import Evaluator

__all__ = ["Evaluator", "compare_on_truth", "compare_table", "paired_differences", "plant"]

# Loaded on first use: whoever draws results needs neither scikit-learn nor torch.
_HOME = {
    "Evaluator": "dcem.estimation.evaluator",
    "compare_on_truth": "dcem.compare.known_truth",
    "compare_table": "dcem.compare.run",
    "paired_differences": "dcem.compare.paired",
    "plant": "dcem.compare.planted",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dcem.compare' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
