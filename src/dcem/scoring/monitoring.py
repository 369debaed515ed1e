"""A model watched in use: the new table scored and compared with what the model remembers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from dcem.estimation.folds import within_budget
from dcem.monitor import Monitoring, NewRows, watch
from dcem.scoring.model import FROM_FOLDER, TableModel
from dcem.table import UserTable
from dcem.table.load import FROM_FRAME
from dcem.table.messages import InputError, notice, require_kind
from dcem.table.positives_only import require_record

MOST_ROWS = 100_000  # of a new table that are looked at


def monitor_model(
    model: str | Path | TableModel,
    table: UserTable,
    *,
    random_state: int = 0,
    data: Mapping[str, str] | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Monitoring:
    """Whether a model still holds on a new table, and what changed since it was fitted.

    Parameters
    ----------
    model
        A model that `dcem fit` wrote, or its folder; or `fit_table(table).explained(table)`.
    table
        The new table, read with the model's encoder and roles:
        `read_table(path, model.roles_of_new, encoder=model.encoder)`.
    random_state
        Seed of folds and nuisance models.
    data
        What the report says about the model and the table.
    progress
        Called with a few words before each step.
    """
    model = TableModel.load(model) if isinstance(model, str | Path) else model
    require_kind(model, TableModel, FROM_FOLDER)
    require_kind(table, UserTable, FROM_FRAME)
    require_record(table.problem)
    if model.baseline is None:
        raise InputError(
            "The model holds no summary of the table it was fitted to: it was fitted by an older "
            "version of dcem, or in Python without `explained`. To monitor it, fit it again with "
            "`dcem fit`, or as `fit_table(table).explained(table)`."
        )
    for note in model.strange_cells(table):
        notice(note)
    if table.source.sha256 == model.source.sha256:
        notice(
            "The model was fitted to this very table. It ranks people it has seen better than new "
            "ones, and their risks look too alike. Use rows that came later."
        )
    rows = within_budget(table.problem, MOST_ROWS, random_state)
    if len(rows) < len(table.problem):
        notice(f"{len(rows):,} of {len(table.problem):,} rows are used, drawn at random.")
    return watch(
        model.baseline,
        NewRows.of(model.estimator, table.problem.subset(rows)),
        model.encoder,
        attributes={name: alone.subset(rows) for name, alone in table.by_attribute().items()},
        calibrated=bool(model.estimator.calibrated),
        random_state=random_state,
        data=data,
        progress=progress,
    )
