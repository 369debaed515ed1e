"""How good is a score, and is one score better than another?

* :func:`paired_differences` compares scores on the same resampled people, where the truth is known.
* :class:`Evaluator` judges scores where most of the truth is missing.
"""

from dcem.evaluate.missing_labels import Evaluator
from dcem.evaluate.paired import paired_differences

__all__ = ["Evaluator", "paired_differences"]
