"""How well a score ranks people, how differently it does so in different groups, how sure we are.

A model gives every person a *score*; somebody acts on those above a threshold. Move the threshold
from high to low and two shares grow: that of the positives who are caught (true positive rate) and
that of the negatives who are alarmed (false positive rate). Plotted against each other they are the
**ROC curve**, and the area under it, the **AUC**, is the probability that a random positive scores
higher than a random negative.

One curve for everybody can hide two. Draw it for each group: if the curves coincide, then at every
false positive rate both groups have the same share of their positives caught. The **ROC gap** is
the area between them, 0 where they coincide, at most 1. The difference of the two AUCs cannot
replace it, because curves that cross can have equal areas; but it has a sign, so it says *who* is
worse off. The **xAUC** compares positives of one group with negatives of the other, which matters
when all people compete for the same beds or tests. **Calibration** asks the question none of these
can see: whether a predicted 30 % happens 30 % of the time.

Three things are easy to get wrong, and are handled here:

* *Ties.* People with equal scores cannot be ordered. They count one half in the AUC and draw a
  diagonal in the curve, whatever the order of the rows.
* *Missing classes.* A group without positives has no curve. Its result is NaN, with a warning that
  names the group: not 0, which would read as "perfectly fair".
* *Noise.* A gap is an absolute value, so it is positive even for a perfectly fair score, and small
  groups look unfairer than large ones. `bootstrap` puts an interval around each metric, and next to
  the gap what it would be if the groups had one and the same curve.

All of them need the *true* label of the rows they are given. Where labels were collected
selectively, the metrics on the tested people describe the tested people.

Arguments come in the order ``y, score, group``; ``weight`` is by keyword. The functions that return
a number work in scikit-learn's ``make_scorer`` and fairlearn's ``MetricFrame``; they need numpy
alone.
"""

from dcem.metrics.bootstrap import BootstrapResult, bootstrap
from dcem.metrics.calibration import (
    CalibrationCurve,
    calibration_curve,
    calibration_error,
    group_calibration_curves,
    group_calibration_error,
    worst_group_calibration_error,
)
from dcem.metrics.credit import gini, kickout, ks
from dcem.metrics.estimate import Estimate, GapEstimate
from dcem.metrics.groups import (
    auc_differences,
    group_auc,
    group_roc_curves,
    roc_gap,
    roc_gaps,
    worst_group_auc,
    xauc,
    xauc_difference,
)
from dcem.metrics.registry import RANKING, ranking
from dcem.metrics.roc import RocCurve, auc, roc_curve

__all__ = [
    "RANKING",
    "BootstrapResult",
    "CalibrationCurve",
    "Estimate",
    "GapEstimate",
    "RocCurve",
    "auc",
    "auc_differences",
    "bootstrap",
    "calibration_curve",
    "calibration_error",
    "gini",
    "group_auc",
    "group_calibration_curves",
    "group_calibration_error",
    "group_roc_curves",
    "kickout",
    "ks",
    "ranking",
    "roc_curve",
    "roc_gap",
    "roc_gaps",
    "worst_group_auc",
    "worst_group_calibration_error",
    "xauc",
    "xauc_difference",
]
