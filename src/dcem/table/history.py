"""A person's earlier tests as columns of a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from dcem.table import read as reading
from dcem.table.addresses import located
from dcem.table.frames import as_table
from dcem.table.load import read_table
from dcem.table.messages import InputError
from dcem.table.roles import Roles
from dcem.table.times import earlier_results


def add_history(source: Any, roles: Roles, query: str | None = None) -> pa.Table:
    """A table with what was known of each person's earlier tests added to every row.

    Five columns (`dcem.table.times.earlier_results`), made from strictly earlier rows of the same
    person alone, so that they may be features. The roles `id` and `time` are needed.
    """
    if roles.id is None or roles.time is None:
        raise InputError(
            "Earlier tests are those of the same person at an earlier time: name the columns with "
            "the person (`id`) and with the time of the decision (`time`)."
        )
    roles = replace(roles, until=None)
    is_file = isinstance(source, str | Path)
    table = reading.read_whole(located(source), query=query) if is_file else as_table(source)
    problem = read_table(table, roles).problem
    assert problem.time is not None
    known = earlier_results(problem.person, problem.time, problem.tested, problem.y_obs)
    for name in known:
        if name in table.column_names:
            raise InputError(f"The table has a column {name!r} already: rename it, or leave it.")
        table = table.append_column(name, pa.array(known[name], from_pandas=True))
    return table
