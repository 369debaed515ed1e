"""Every figure and table of the paper, drawn again: published and ours beside each other.

An *exhibit* is one figure or table of T. Chang and J. Wiens, "From Biased Selective Labels to
Pseudo-Labels" (ICML 2024), by its number there. `exhibits.catalogue` lists them; each says which
results it needs and how it is drawn: a new one is a function and its entry there. `sources` finds
the results: in recorded tables, in a store, or by running the benchmark. What is not there is said,
not invented: a picture shows the side that exists.

Three exhibits are not in the paper: its summary compared with the numbers (`exhibits.summary`), its
claims one by one (`exhibits.claims`), and robustness as a user needs it (`exhibits.robustness`).
`theory` has its theorems as code.
"""

from dcem.paper.drawing import Drawn, Exhibit, reproduce, reservations
from dcem.paper.exhibits.catalogue import EXHIBITS, find
from dcem.paper.sources import Recorded, Runs

__all__ = [
    "EXHIBITS",
    "Drawn",
    "Exhibit",
    "Recorded",
    "Runs",
    "find",
    "reproduce",
    "reservations",
]
