"""What estimates without the truth rest on: whom they speak of, overlap, nuisance models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil, nan

import numpy as np

from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import THRESHOLD
from dcem.table.groups import EVERYBODY as EVERYBODY  # the key of what is not of one group
from dcem.text import percent

# said beside every share of people out of reach: audit and comparison count alike, `predict` not
COUNTED = (
    "People are out of reach if next to nobody like them was tested, by a model of who is tested."
)
EXTRAPOLATION = "extrapolation, and a risk may be half or twice the truth"  # beyond the tests
WITHIN = "those within reach of the tests"  # of whom one speaks where some are not
COMPLETE = 0.98  # share of people within reach from which on estimates are about everybody
WITHHELD = Estimate(nan, reason=f"withheld: it would show a count under {THRESHOLD}")


@dataclass(frozen=True)
class Target:
    """Whom a number is about, and what has to hold for it."""

    key: str  # "tested", "ipw", "dr" or "truth"
    name: str  # "among the tested", "everybody, doubly robust", ...: a table's heading
    assumption: str  # one sentence: when the number is right
    available: bool = True  # False: nothing of this target is estimable here, and `reason` why
    reason: str = ""
    reach: float = 1.0  # share of people it is about, where the tests do not reach everybody

    @property
    def whom(self) -> str:
        """Of whom an estimate speaks that lets the tested represent others."""
        return WITHIN if self.reach < 1 else EVERYBODY


@dataclass(frozen=True)
class Histogram:
    """Shares of people by a probability; counted in tens, fewer than ten as none."""

    edges: np.ndarray  # [bins + 1] from 0 to 1
    share: Mapping[str, np.ndarray]  # by group -> [bins], of that group's people counted


@dataclass(frozen=True)
class Overlap:
    """The probabilities of being tested in one group, or of everybody, and whom tests reach."""

    group: str
    reach: float  # share of people whom the tests represent
    quantiles: tuple[float, ...]  # of the probability: 5, 25, 50, 75, 95 %
    under: Mapping[float, float]  # threshold -> share of people with a smaller probability
    tested: int
    effective: float  # Kish effective sample size of the inverse-probability weights
    heaviest: float  # share of the weight on the heaviest hundredth of the tested
    histogram: np.ndarray  # [bins] share of the group's rows by `overlap.BIN_EDGES`, in tens
    reason: str = ""  # why nothing is estimated here, or nothing

    @property
    def estimable(self) -> bool:
        """Whether anything is estimated, for those within reach at least."""
        return not self.reason

    @property
    def complete(self) -> bool:
        """Whether estimates are about everybody."""
        return self.estimable and self.reach >= COMPLETE

    @property
    def beyond(self) -> str:
        """Why there is no number for everybody, where there is one for those within reach."""
        return f"{percent(1 - self.reach)} of people are out of reach of the tests"

    def shareable(self, rows: int) -> Overlap:
        """Of so many rows: shares of under ten people, or of all but so few, are NaN."""
        under = {
            level: nan if 0 < min(share, 1 - share) * rows < THRESHOLD else share
            for level, share in self.under.items()
        }
        lost = THRESHOLD * ceil((1 - self.reach) * rows / THRESHOLD - 1e-9)
        return replace(self, under=under, reach=max(0.0, 1 - lost / rows))

    @property
    def effective_share(self) -> float:
        """Effective sample size over the number tested."""
        return self.effective / self.tested if self.tested > 0 else 0.0

    @property
    def thin(self) -> bool:
        """Whether weighting, though possible, rests on few of the tests."""
        return self.effective_share < 0.3 or self.heaviest > 0.2


@dataclass(frozen=True)
class Nuisance:
    """One of the models that the population estimates rely on."""

    name: str  # "who is tested" or "what a test would show"
    chosen: str  # the kind of model, with its share if several were combined
    log_loss: float  # out of fold
    log_loss_of_rate: float  # of predicting everybody the overall rate
    auc: float  # out of fold; NaN if there are more than two classes
    each: Mapping[str, float] = field(default_factory=dict)  # log loss of each kind on its own


@dataclass(frozen=True)
class Effect:
    """What one raw column does to a prediction, asked of a sample of people."""

    column: str
    share: float  # of the permutation importances of all columns
    moved: float  # root mean square change of the prediction when the column is permuted
    at: tuple[str, ...] = ()  # values of the column, each of at least ten people: levels, or ends
    # of bins in rising order; last "missing", where that is one
    place: np.ndarray = field(default_factory=lambda: np.zeros(0))  # [points] of a number, the
    # value; of levels and of "missing", NaN
    value: np.ndarray = field(default_factory=lambda: np.zeros(0))  # [points] accumulated local
    # effect on the prediction, 0 on average over people
    most: float = nan  # the largest share in any of the models that were asked
