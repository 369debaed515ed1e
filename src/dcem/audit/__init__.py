"""Is my labelling biased? An audit of who was tested, and of what can be learnt from it.

`audit_labels(problem)` answers from a `SelectiveLabels` alone, without any truth about untested
people:

* who is tested, crudely and **at equal features**, and what drives it (`testing`, `drivers`);
* whether the tested represent the untested (`dcem.estimation.overlap`), and whether the
  models behind it are right (`model_checks`);
* whether tests of one group are positive more often, and why that alone is not bias (`yields`);
* how common the outcome is, under each of four assumptions (`prevalence`);
* whether the outcome depends on the group given the features: tested, not ticked
  (`independence`);
* how strong something unmeasured would have to be to overturn it: three sensitivity analyses
  (`unmeasured`, `sensitivity`, `performance`);
* what to make of it: findings, assumptions, defensible methods (`findings`, `outcome_findings`;
  `advice`).

Every number is an estimate with an interval or says why there is none. `without_small_cells`
prepares an audit for sharing.
"""

from dcem.audit.disclosure import without_small_cells
from dcem.audit.performance import performance_sensitivity
from dcem.audit.results import Audit
from dcem.audit.run import audit_labels
from dcem.audit.sensitivity import prevalence_sensitivity
from dcem.estimation.outcomes import Unseen

__all__ = [
    "Audit",
    "Unseen",
    "audit_labels",
    "performance_sensitivity",
    "prevalence_sensitivity",
    "without_small_cells",
]
