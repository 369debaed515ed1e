"""Methods for learning from selectively collected labels, each an ordinary classifier.

    from dcem.methods import TestedOnlyClassifier, make, names

Classes are loaded when they are asked for: names can be listed, and learners that are not networks
fitted, where torch is not installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dcem.extras import extra_needed
from dcem.methods.registry import ENTRIES, WITHOUT_NETWORKS, make, names, published, renamed

if TYPE_CHECKING:
    from dcem.methods.base import SelectiveClassifier as SelectiveClassifier
    from dcem.methods.dcem import DCEMClassifier as DCEMClassifier
    from dcem.methods.fitting import fit_many as fit_many
    from dcem.methods.network import NetworkClassifier as NetworkClassifier

_HOME = {
    "NetworkClassifier": "network",
    "SelectiveClassifier": "base",
    "fit_many": "fitting",
} | {entry.class_name: entry.home.partition(":")[0] for entry in ENTRIES.values()}

__all__ = [*_HOME, "make", "names", "published"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        with extra_needed(name, WITHOUT_NETWORKS):
            return getattr(import_module(f"dcem.methods.{_HOME[name]}"), name)
    return renamed(__name__)(name)


def __dir__() -> list[str]:
    return sorted(__all__)
