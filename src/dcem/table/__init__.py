"""A person's table, from the file to `SelectiveLabels`: one question per file.

`labels` (the checked problem), `roles` (which column plays which part: declared once), `messages`
and `checks` (what is wrong, where, what to do), `layout` and `read` (files and frames to Arrow
columns; the only reader), `folders` (of Parquet files), `drawing` (people drawn from a large
table), `values` (what a cell says; the only parser), `groups` (the only coding of groups),
`columns` (what kind of column is it?), `encoder` (columns to features), `outcome` (label, tested
and truth, in the whole table and in any batch), `design` (tests drawn from a list), `leaks`
(columns that may be recorded after the decision), `load` (all of it in order), `propose` with
`hints` and `candidates` (roles by looking at a table), `settings` (`dcem.toml`), `disclosure` (one
rule for small counts).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dcem.table.columns import Column
    from dcem.table.encoder import Encoder
    from dcem.table.leaks import Leak
    from dcem.table.load import UserTable, read_table
    from dcem.table.outcome import group_codes, person_names, tested_rows
    from dcem.table.propose import Proposal, propose_roles
    from dcem.table.read import Source, read_batches, read_header
    from dcem.table.roles import Roles
    from dcem.table.transformer import TableEncoder

# Loaded on first use: a check of arrays needs no reader of files.
_HOME = {
    "Column": "columns",
    "Encoder": "encoder",
    "Leak": "leaks",
    "Proposal": "propose",
    "Roles": "roles",
    "Source": "read",
    "TableEncoder": "transformer",
    "UserTable": "load",
    "group_codes": "outcome",
    "person_names": "outcome",
    "propose_roles": "propose",
    "read_batches": "read",
    "read_header": "read",
    "read_table": "load",
    "tested_rows": "outcome",
}

__all__ = [
    "Column",
    "Encoder",
    "Leak",
    "Proposal",
    "Roles",
    "Source",
    "TableEncoder",
    "UserTable",
    "group_codes",
    "person_names",
    "propose_roles",
    "read_batches",
    "read_header",
    "read_table",
    "tested_rows",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dcem.table' has no attribute {name!r}")
    value = getattr(import_module(f"dcem.table.{_HOME[name]}"), name)
    globals()[name] = value
    return value
