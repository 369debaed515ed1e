"""Testing policies: rules by which somebody decides whom to test.

A policy is a linear score on a few columns with a soft threshold per group,

    P(T=1|x,a) = sigmoid(slope (sum_j w_j (x_j - centre_j) / scale_j - threshold_a)),

as clinicians' decisions are often simpler than the outcome they are about (Mullainathan and
Obermeyer, 2022). The thresholds are not given but found, so that a wanted share of each group is
tested: two policies with the same score and different rates differ in their bias alone.

`LinearPolicy` says what is wanted; `calibrate` meets it on a table and returns a
`CalibratedPolicy`, which knows everybody's probability of being tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from dcem.table.messages import InputError, require_columns, require_one_of, rows_text
from dcem.tasks.rates import rates_of_testing

MISSING = ("refuse", "average", "tested", "untested")


@dataclass(frozen=True)
class LinearPolicy:
    """Who is tested, as a linear score on chosen columns and a share per group.

    Attributes
    ----------
    weights
        Column -> weight in the score.
    slope
        How sharp the decision is. Around 30 almost nobody below the threshold is tested and overlap
        is poor; around 5 it is generous (for a score of standard deviation 1).
    k
        How many people are tested for each positive, P(T) / P(Y); 1 if nothing is said.
    q_t
        P(T|first group) / P(T|second group); 1 if nothing is said. Other than 1 it needs exactly
        two groups.
    rates
        Group name -> share tested, instead of `k` and `q_t`; for any number of groups.
    centers, scales
        Column -> number; by default mean and standard deviation of the rows the policy is
        calibrated on, missing values ignored.
    missing
        What a missing value of a policy column means. "refuse" raises; "average": it counts as the
        centre, as if nothing spoke for or against; "tested" and "untested": the row always or never
        is, because the missing value itself drove the decision.
    name
        What tables of results call it.
    """

    weights: Mapping[str, float]
    slope: float = 30.0
    k: float | None = None
    q_t: float | None = None
    rates: Mapping[str, float] | None = None
    centers: Mapping[str, float] | None = None
    scales: Mapping[str, float] | None = None
    missing: Literal["refuse", "average", "tested", "untested"] = "refuse"
    name: str = "linear"

    def __post_init__(self) -> None:
        scales = {f"scale of {column!r}": one for column, one in (self.scales or {}).items()}
        finite = [*self.weights.values(), *(self.centers or {}).values()]
        if not self.weights or not np.isfinite(finite).all():
            raise InputError(
                f"Policy {self.name!r} needs at least one column, and finite weights and centres; "
                f"got weights {dict(self.weights)}, centres {dict(self.centers or {})}."
            )
        for what, one in {"slope": self.slope, **scales}.items():
            if not 0 < one < np.inf:
                raise InputError(f"Policy {self.name!r}: {what} must be positive, got {one}.")
        require_one_of("missing", self.missing, MISSING)
        if self.rates is not None and (self.k is not None or self.q_t is not None):
            raise InputError(
                f"Policy {self.name!r}: give either rates, or k and q_t, but not both; each says "
                "how many are tested."
            )
        for given in (self.centers, self.scales):
            require_columns(self.weights, given or (), f"Policy {self.name!r}")

    def as_dict(self) -> dict[str, Any]:
        """Plain values that make it again: `LinearPolicy(**policy.as_dict())`."""
        return asdict(self)

    def group_targets(
        self, y: np.ndarray, group: np.ndarray, group_names: Sequence[str], weight: np.ndarray
    ) -> tuple[float, ...]:
        """Wanted share of tested people in each group, from rates or from k and q_t."""
        if self.rates is not None:
            rates = {str(name): float(rate) for name, rate in self.rates.items()}  # 1 is called "1"
            if set(rates) != set(group_names):
                raise InputError(
                    f"Policy {self.name!r} has rates for {', '.join(rates)}, but the groups "
                    f"are {', '.join(group_names)}. Give each group its rate."
                )
            wrong = {name: rate for name, rate in rates.items() if not 0 < rate <= 1}
            if wrong:
                raise InputError(f"Policy {self.name!r}: rates must lie in (0, 1], got {wrong}.")
            return tuple(rates[name] for name in group_names)
        k = 1.0 if self.k is None else self.k
        q_t = 1.0 if self.q_t is None else self.q_t
        prevalence = float(np.average(y, weights=weight))
        if q_t == 1:
            rate, _ = rates_of_testing(prevalence, k, 1.0)  # the same for everybody
            return (rate,) * len(group_names)
        if len(group_names) != 2:
            raise InputError(
                f"q_t = {q_t:g} compares two groups, but there are {len(group_names)} "
                f"({', '.join(group_names)}). Give rates={{group: share tested}} instead."
            )
        share = float(np.average(group == 0, weights=weight))
        return rates_of_testing(prevalence, k, q_t, share, group_names)

    def calibrate(
        self,
        X: np.ndarray,
        y: np.ndarray,
        group: np.ndarray,
        *,
        feature_names: Sequence[str],
        group_names: Sequence[str],
        weight: np.ndarray | None = None,
    ) -> CalibratedPolicy:
        """Find centres, scales and thresholds on these rows (X [n, d], truth y [n], group [n]).

        The expected share of tested rows meets each group's target; no decision is drawn. Raises
        `InputError` if a group's target cannot be met.
        """
        columns = self.columns_in(X, feature_names)
        weight = np.ones(len(X)) if weight is None else weight
        centers, scales = self._standards(X[:, columns])
        found = CalibratedPolicy(
            policy=self,
            columns=columns,
            centers=centers,
            scales=scales,
            group_names=tuple(group_names),
            targets=self.group_targets(y, group, group_names, weight),
            thresholds=(0.0,) * len(group_names),
        )
        score = found.score(X)
        thresholds = []
        for code, name in enumerate(group_names):
            rows = group == code
            if not weight[rows].sum() > 0:
                raise InputError(
                    f"Group {name!r} has no rows, or none that count, to calibrate policy "
                    f"{self.name!r} on."
                )
            thresholds.append(
                _threshold(score[rows], weight[rows], self.slope, found.targets[code], name)
            )
        return replace(found, thresholds=tuple(thresholds))

    def columns_in(self, X: np.ndarray, feature_names: Sequence[str]) -> tuple[int, ...]:
        """Positions of the policy's columns in X, which must be there and usable."""
        require_columns(feature_names, self.weights, f"The table for policy {self.name!r}")
        columns = tuple(list(feature_names).index(name) for name in self.weights)
        self.refuse_missing(X[:, columns])
        return columns

    def refuse_missing(self, chosen: np.ndarray) -> None:
        """Raise if a value that matters is missing and nothing says what that means."""
        if self.missing != "refuse":
            return
        for (name, weight), values in zip(self.weights.items(), chosen.T, strict=True):
            if weight != 0 and np.isnan(values).any():
                raise InputError(
                    f"Policy {self.name!r} uses {name!r}, which is missing in "
                    f"{rows_text(np.isnan(values))}. Say how to treat these rows with missing="
                    "'average', 'tested' or 'untested'."
                )

    def _standards(self, chosen: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
        centers, scales = [], []
        for name, values in zip(self.weights, chosen.T, strict=True):
            seen = values[~np.isnan(values)]
            if not len(seen):
                raise InputError(
                    f"Policy {self.name!r} uses {name!r}, which is missing in every row."
                )
            centers.append(float((self.centers or {}).get(name, seen.mean())))
            scales.append(float((self.scales or {}).get(name, seen.std())))
            if not scales[-1] > 0:
                raise InputError(
                    f"Policy {self.name!r} uses {name!r}, which is constant. Choose another "
                    "column, or give its scale."
                )
        return tuple(centers), tuple(scales)


@dataclass(frozen=True)
class CalibratedPolicy:
    """A policy with everything found: P(T=1|x,a) for any row.

    Attributes
    ----------
    policy
        What was asked for.
    columns
        Positions of the policy's columns in X.
    centers, scales
        One per column.
    group_names
        Indexed by group code, like the next two.
    targets
        Wanted share of tested rows.
    thresholds
        Of the score; -inf where everybody is tested.
    """

    policy: LinearPolicy
    columns: tuple[int, ...]
    centers: tuple[float, ...]
    scales: tuple[float, ...]
    group_names: tuple[str, ...]
    targets: tuple[float, ...]
    thresholds: tuple[float, ...]

    def score(self, X: np.ndarray) -> np.ndarray:
        """The linear score [n]; +-inf where a missing value alone decides."""
        self.policy.refuse_missing(X[:, self.columns])
        standard = (X[:, self.columns] - self.centers) / self.scales  # [n, columns]
        absent = np.isnan(standard)
        weights = np.array(list(self.policy.weights.values()))
        score: np.ndarray = np.where(absent, 0.0, standard) @ weights
        decided = (absent & (weights != 0)).any(axis=1)
        if self.policy.missing == "tested":
            score[decided] = np.inf
        elif self.policy.missing == "untested":
            score[decided] = -np.inf
        return score

    def testing_probability(self, X: np.ndarray, group: np.ndarray | int) -> np.ndarray:
        """P(T=1|x,a) for rows X [n, d] and their group codes."""
        score = self.score(X)
        tau = np.broadcast_to(np.asarray(self.thresholds)[np.asarray(group)], score.shape)
        everybody = np.isneginf(tau)
        margin = np.where(everybody, np.inf, score - np.where(everybody, 0.0, tau))
        return expit(self.policy.slope * margin)


def _threshold(
    score: np.ndarray, weight: np.ndarray, slope: float, target: float, group: str
) -> float:
    """Threshold at which the weighted mean of sigmoid(slope (score - threshold)) is the target."""
    if target >= 1:
        return -np.inf
    share = weight / weight.sum()
    free = np.isfinite(score)
    floor = float(share[np.isposinf(score)].sum())  # tested whatever the threshold
    ceiling = floor + float(share[free].sum())
    if not floor < target < ceiling:
        raise InputError(
            f"Infeasible: group {group!r} should be tested at a rate of {target:.4g}, but for some "
            f"of its rows missing values alone decide, so every threshold gives a rate between "
            f"{floor:.4g} and {ceiling:.4g}. Change the rates, or how missing values are treated."
        )
    score, share = score[free], share[free]

    def excess(threshold: float) -> float:
        return floor + float(share @ expit(slope * (score - threshold))) - target

    reach = 40 / slope
    return brentq(excess, score.min() - reach, score.max() + reach, xtol=1e-13, rtol=1e-14)
