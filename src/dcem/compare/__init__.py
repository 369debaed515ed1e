"""Which method serves a table, how good is it, and how alike does it serve the groups?

:func:`compare_methods` fits methods and judges them on people they did not see: by the truth where
it is known, and without it among the tested and, estimated, for everybody. It also hides outcomes
of its own making in the table's features, and sees which method finds them.
"""

from typing import TYPE_CHECKING

from dcem.extras import on_first_use

if TYPE_CHECKING:
    from dcem.compare.run import compare_methods

__all__ = ["compare_methods"]

# Loaded on first use: whoever draws results needs neither scikit-learn nor torch.
__getattr__, __dir__ = on_first_use(__name__, {"compare_methods": "run"})
