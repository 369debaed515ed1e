"""Every input check and the wording of every error.

Wrong input is cheapest to repair where it enters, by the person who brought it. So each message
says what is wrong, where (column, how many rows, the first few), what is allowed, and what to do.
Mistakes raise `InputError`. What is legal but limits what can be learnt (everybody tested, a group
in which nobody is) warns with `DataWarning`, and says what it means.

Rows are never matched by guesswork: pandas objects whose indices disagree are refused rather than
lined up by position.
"""

from dcem.table.checks.columns import (
    check_binary,
    check_features,
    check_id,
    check_weight,
)
from dcem.table.checks.fit import check_fit_input, encode_classes
from dcem.table.checks.groups import MISSING_LEVEL, check_groups
from dcem.table.checks.reading import as_frame, as_series, read_table
from dcem.table.checks.roles import assign_roles, check_features_have_no_role
from dcem.table.checks.rows import check_aligned, check_learnable, resolve_tested, warn_limits
from dcem.table.messages import (
    DataWarning,
    InputError,
    nearest,
    notice,
    require_columns,
    require_unique,
    rows_text,
)

__all__ = [
    "MISSING_LEVEL",
    "DataWarning",
    "InputError",
    "as_frame",
    "as_series",
    "assign_roles",
    "check_aligned",
    "check_binary",
    "check_features",
    "check_features_have_no_role",
    "check_fit_input",
    "check_groups",
    "check_id",
    "check_learnable",
    "check_weight",
    "encode_classes",
    "nearest",
    "notice",
    "read_table",
    "require_columns",
    "require_unique",
    "resolve_tested",
    "rows_text",
    "warn_limits",
]
