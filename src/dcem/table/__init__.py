"""A person's table, from the file to `SelectiveLabels`: one question per file.

`labels` (the checked problem), `roles` (which column plays which part: declared once), `messages`
and `checks` (what is wrong, where, what to do), `read` (files and frames to Arrow columns; the only
reader) with `csv_files`, `formats` and `remote` (databases too), `sampling` (people drawn from a
large table), `values` and `dates` (what a cell says; the only parsers), `groups` (the only coding
of groups), `columns` (what kind of column is it?), `encoder` (columns to features), `outcome`
(label, tested and truth, in the whole table and in any batch), `known_rates` and `imperfect`
(stated rates), `design` (tests drawn from a list), `leaks` (columns that may be recorded after the
decision), `load` (all of it in order), `propose` with `candidates` (roles by looking at a table),
`settings` (`dcem.toml`), `disclosure` (one rule for small counts).
"""

from typing import TYPE_CHECKING

from dcem.extras import on_first_use

if TYPE_CHECKING:
    from dcem.table.columns import Column as Column
    from dcem.table.encoder import Encoder as Encoder
    from dcem.table.leaks import Leak as Leak
    from dcem.table.load import UserTable as UserTable
    from dcem.table.load import read_table as read_table
    from dcem.table.outcome import group_codes as group_codes
    from dcem.table.outcome import person_names as person_names
    from dcem.table.outcome import tested_rows as tested_rows
    from dcem.table.propose import Proposal as Proposal
    from dcem.table.propose import propose_roles as propose_roles
    from dcem.table.read import Source as Source
    from dcem.table.read import read_batches as read_batches
    from dcem.table.read import read_header as read_header
    from dcem.table.roles import Roles as Roles
    from dcem.table.transformer import TableEncoder as TableEncoder

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

__all__ = [*_HOME]

__getattr__, __dir__ = on_first_use(__name__, _HOME)
