"""Does a model still hold? What changed since it was fitted, in four questions.

*Who arrives* (the columns), *who is tested* (at equal features), *what is found* (how common the
outcome is, doubly robust) and *whether the model still ranks and its risks are still calibrated*. A
`Baseline` is what a model remembers of its table, without any person: `watch` holds a new table
against it.
"""

from dcem.monitor.baseline import Baseline, Judged
from dcem.monitor.results import Change, ColumnChange, Monitoring
from dcem.monitor.run import NewRows, watch

__all__ = ["Baseline", "Change", "ColumnChange", "Judged", "Monitoring", "NewRows", "watch"]
