"""From a user's table to a model of it, and from the model to scores and to whom to test next.

A `TableModel` is a fitted method together with the encoder of the table it was fitted to: it reads
raw rows. `predict_file` scores files of any length in bounded memory; `next_tests` gives everybody
who was not tested a probability of being tested next.
"""

from dcem.scoring.all_rows import fit_all_rows
from dcem.scoring.allocation import allocate, draw
from dcem.scoring.fit import choice_for, fit_table, require_method
from dcem.scoring.folders import predict_folder
from dcem.scoring.model import Scores, TableModel, load_model
from dcem.scoring.monitoring import monitor_model
from dcem.scoring.next_tests import NextTests, next_tests
from dcem.scoring.stream import Predicted, predict_file, score_batches

__all__ = [
    "NextTests",
    "Predicted",
    "Scores",
    "TableModel",
    "allocate",
    "choice_for",
    "draw",
    "fit_all_rows",
    "fit_table",
    "load_model",
    "monitor_model",
    "next_tests",
    "predict_file",
    "predict_folder",
    "require_method",
    "score_batches",
]
