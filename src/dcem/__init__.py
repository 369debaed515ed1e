"""Learning from labels that somebody decided to collect.

A hospital cannot know who has an infection; it knows who was *tested* and what the test said. A
bank knows who repaid among those it lent to. The label of everybody else is not zero and not
random: it is **absent**, because a person decided not to look. Such labels are *selective labels*.

Each row has features ``x``, a group ``a``, a decision ``t`` (was this person tested?) and an
outcome ``y`` that exists for everybody but is seen only where ``t = 1``. Tables usually store
``y_obs = y * t``: the untested count as negative. If one group is tested less than another at
equal risk, its positives turn into negatives more often, and a model trained on ``y_obs`` learns
who gets tested instead of who is ill. This is *disparate censorship*.

Three ways out, from naive to careful, are all in `dcem.methods`:

* train on ``y_obs`` as if it were the truth (``"y-obs"``), and inherit the bias;
* train on the tested alone (``"tested-only"``), fair if the tested resemble the rest;
* treat the missing outcome as a latent variable and let an expectation-maximisation loop fill it
  in, while a model of the testing decision explains the zeros that mean "nobody looked"
  (``"dcem"``, `dcem.DCEMClassifier`).

None of them is free: all assume that the features explain the testing decision (no unmeasured
cause of both testing and outcome) and that everybody had *some* chance of being tested. Where
that fails, no method recovers what was never seen.

    >>> import dcem
    >>> task = dcem.tasks.make_sinusoid(q_y=0.5, k=1.0, q_t=2.0)
    >>> people = task.train                     # a SelectiveLabels: X, y_obs, tested, group
    >>> float(people.tested.mean().round(2))    # one person in four was tested
    0.25

Reference: Chang and Wiens, "From Biased Selective Labels to Pseudo-Labels: An
Expectation-Maximization Framework for Learning from Biased Decisions", ICML 2024.
"""

from typing import TYPE_CHECKING

from dcem.extras import on_first_use

if TYPE_CHECKING:
    from dcem import audit as audit
    from dcem import compare as compare
    from dcem import estimation as estimation
    from dcem import learners as learners
    from dcem import methods as methods
    from dcem import metrics as metrics
    from dcem import monitor as monitor
    from dcem import paper as paper
    from dcem import report as report
    from dcem import saving as saving
    from dcem import scoring as scoring
    from dcem import table as table
    from dcem import tasks as tasks
    from dcem.audit.positives_only import audit_found as audit_found
    from dcem.audit.run import audit_labels as audit_labels
    from dcem.compare.positives_only import compare_found as compare_found
    from dcem.compare.run import compare_methods as compare_methods
    from dcem.methods.dcem import DCEMClassifier as DCEMClassifier
    from dcem.scoring.model import load_model as load_model
    from dcem.scoring.monitoring import monitor_model as monitor_model
    from dcem.table.labels import SelectiveLabels as SelectiveLabels
    from dcem.table.load import read_table as read_table
    from dcem.table.messages import DataWarning as DataWarning
    from dcem.table.messages import InputError as InputError
    from dcem.table.roles import Roles as Roles

__version__ = "0.1.0"

# Where each public name lives. Loaded on first use: torch alone takes seconds to import, and
# neither `import dcem` nor `dcem --help` should wait for it.
_HOME = {
    "DCEMClassifier": "methods.dcem",
    "DataWarning": "table.messages",
    "InputError": "table.messages",
    "Roles": "table.roles",
    "SelectiveLabels": "table.labels",
    "audit_found": "audit.positives_only",
    "audit_labels": "audit.run",
    "compare_found": "compare.positives_only",
    "compare_methods": "compare.run",
    "load_model": "scoring",
    "monitor_model": "scoring",
    "read_table": "table.load",
}
_PACKAGES = ["audit", "compare", "estimation", "learners", "methods", "metrics"]
_PACKAGES += ["monitor", "paper", "report", "saving", "scoring", "table", "tasks"]

__all__ = sorted([*_HOME, *_PACKAGES, "__version__"])
__getattr__, __dir__ = on_first_use(__name__, _HOME | {name: name for name in _PACKAGES})
