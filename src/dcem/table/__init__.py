"""A person's table, from the file to `SelectiveLabels`: one question a file.

`labels` (the checked problem), `messages` and `checks` (what is wrong, where, what to do), `roles`
(which column plays which part), `read` (files to Arrow columns), `values` (one column as codes or
numbers), `columns` (what kind of column is it?), `encoder` (columns to features), `outcome` (label,
tested and truth), `leaks` (columns that may be recorded after the decision), `rows` (who is tested
in any batch), `load` (all of it in order), `disclosure` (one rule for small counts).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dcem.table.columns import Column
    from dcem.table.encoder import Encoder
    from dcem.table.load import UserTable, load_table
    from dcem.table.read import Source, read_batches, read_header
    from dcem.table.roles import Roles
    from dcem.table.rows import group_codes, tested_rows

# Loaded on first use: a check of arrays needs no reader of files.
_HOME = {
    "Column": "columns",
    "Encoder": "encoder",
    "Roles": "roles",
    "Source": "read",
    "UserTable": "load",
    "group_codes": "rows",
    "load_table": "load",
    "read_batches": "read",
    "read_header": "read",
    "tested_rows": "rows",
}

__all__ = [
    "Column",
    "Encoder",
    "Roles",
    "Source",
    "UserTable",
    "group_codes",
    "load_table",
    "read_batches",
    "read_header",
    "tested_rows",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dcem.table' has no attribute {name!r}")
    value = getattr(import_module(f"dcem.table.{_HOME[name]}"), name)
    globals()[name] = value
    return value
