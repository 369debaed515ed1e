"""Do deciders behave as an instrument must? What can be refuted, and what cannot.

*Who decides has nothing to do with the outcome, at equal features* (exclusion, and as if random).
Then no decider finds more positives than another's negatives leave room for: at no x may a lower
end exceed an upper end (the instrumental inequality; Pearl 1995). Averages over everybody hide it
where it happens to few, so the people for whom models fitted to others foretell a crossing are
looked at by themselves: chosen without them, they cross by chance half of the time only.

*Whoever is tested under one decider would be under every decider who tests more* (monotonicity;
Imbens and Angrist 1994). Then at every x a level with more tests tests, finds and clears no fewer.
Again people are chosen for whom models fitted to others foretell the contrary. The bounds do not
need it; what one more test finds, and deciders compared at equal rates, do.

Neither can be shown to hold.

J. Pearl, "On the testability of causal models with latent and instrumental variables", UAI 1995;
G. Imbens and J. Angrist, "Identification and estimation of local average treatment effects",
Econometrica 1994; T. Kitagawa, "A test for instrument validity", Econometrica 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
from scipy.stats import norm

from dcem.estimation.influence import FEWEST_PEOPLE, People, Statistic
from dcem.estimation.instrument import Instrument
from dcem.metrics.estimate import Estimate


@dataclass(frozen=True)
class Check:
    """By how much something that cannot be is seen, where it was expected from other people."""

    violation: Estimate  # above 0: seen; NaN where nobody is expected to show it
    p_value: float  # of no violation, corrected for the number of checks
    share: float  # of people for whom it was expected


def check_exclusion(
    instrument: Instrument, people: People, parts: dict[str, np.ndarray]
) -> dict[str, Check]:
    """By how much the ends cross, in each part (masks by name)."""
    low, high = instrument.predicted
    crossing = instrument.least - instrument.most
    found = {name: (people, crossing, mine & (low > high), mine) for name, mine in parts.items()}
    return {name: _check(*one, len(found)) for name, one in found.items()}


def check_monotonicity(instrument: Instrument, people: People) -> dict[str, Check]:
    """By how much levels that test more test, find or clear fewer people."""
    everybody = np.ones(len(instrument.level), bool)
    expected = {"found": instrument.found, "cleared": instrument.cleared}
    seen = {"found": instrument.finds, "cleared": instrument.clears}
    for parts in (expected, seen):
        parts["tested"] = parts["found"] + parts["cleared"]
    both = instrument.within[:, 1:] & instrument.within[:, :-1]
    found = {}
    for name, predicted in expected.items():
        against = both & (np.diff(predicted, axis=1) < 0)  # [n, levels - 1]
        falls = -(np.diff(seen[name], axis=1) * against).sum(axis=1)
        found[name] = (people, falls, against.any(axis=1), everybody)
    return {name: _check(*one, len(found)) for name, one in found.items()}


def _check(
    people: People, seen: np.ndarray, expected: np.ndarray, among: np.ndarray, checks: int
) -> Check:
    """The mean of what is seen among those of whom it was expected (masks [n])."""
    share = people.mean(expected.astype(float), among).value
    if people.count(expected) < FEWEST_PEOPLE:
        return Check(Estimate(nan, reason="expected of hardly anybody"), 1.0, share)
    found: Statistic = people.mean(seen, expected)
    error = people.error(found)
    p = float(norm.sf(found.value / error)) if error > 0 else 1.0
    return Check(people.interval(found), min(1.0, checks * p), share)
