"""Every figure and table of the paper, drawn again: published and ours beside each other.

An *exhibit* is one figure or table of T. Chang and J. Wiens, "From Biased Selective Labels to
Pseudo-Labels" (ICML 2024), by its number there. `catalogue` lists them; each says which results it
needs and how it is drawn. `sources` finds the results: in recorded tables, in a store, or by
running the benchmark. What is not there is said, not invented: a picture shows the side that
exists.

Three kinds of exhibit are not in the paper: its summary held against the numbers (`summary`), its
claims one by one (`claims`), and robustness as a user needs it (`robustness`).
"""

from dcem.paper.drawing import Outcome, reproduce, reservations
from dcem.paper.exhibits.catalogue import EXHIBITS, Exhibit, find
from dcem.paper.sources import Recorded, Runs

__all__ = [
    "EXHIBITS",
    "Exhibit",
    "Outcome",
    "Recorded",
    "Runs",
    "find",
    "reproduce",
    "reservations",
]
