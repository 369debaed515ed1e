"""How good is a score, and is one score better than another?

* :func:`paired_differences` compares scores on the same resampled people.
"""

from dcem.evaluate.paired import paired_differences

__all__ = ["paired_differences"]
