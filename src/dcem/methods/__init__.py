"""Methods for learning from selectively collected labels, each an ordinary classifier."""

from dcem.methods.base import NetworkClassifier, fit_many
from dcem.methods.dcem import DCEMClassifier
from dcem.methods.published import published
from dcem.methods.registry import make, names

__all__ = [
    "DCEMClassifier",
    "NetworkClassifier",
    "fit_many",
    "make",
    "names",
    "published",
]
