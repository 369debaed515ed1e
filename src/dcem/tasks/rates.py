"""Group rates: from (prevalence, k, q) to what each group must show, and whether it can.

A setting of the simulation is named by ratios: q_y = P(Y|0)/P(Y|1), q_t = P(T|0)/P(T|1) and
k = P(T)/P(Y). With the prevalence P(Y) and the share w of group 0 they fix all four rates:

    P(.|1) = total / (w q + 1 - w),    P(.|0) = q P(.|1),

where total is P(Y) for the outcome and k P(Y) for testing. Not every combination exists: nobody can
be tested with probability 1.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from dcem.table.messages import InputError

_ROUNDING = 1e-12  # 3 * .25 / .75 may miss 1 by a rounding error; that is still "all"

GroupRates = tuple[float, float]


def group_rates(
    total: float,
    ratio: float,
    share: float = 0.5,
    what: str = "rate",
    names: Sequence[str] = ("0", "1"),
) -> GroupRates:
    """Rates of group 0 and group 1 with the given total and the given ratio (group 0 / group 1).

    A total of exactly 1 means everybody, whatever the ratio. `share` is P(group 0); `what` and
    `names` are how an error calls the rate and the groups. Raises
    `InputError` naming the group whose rate would exceed 1.
    """
    if not 0 < total <= 1 + _ROUNDING:
        raise InputError(
            f"The overall {what} would be {total:.4g}, which is not in (0, 1]. Choose another "
            "multiple or prevalence."
        )
    if not 0 < ratio < float("inf"):
        raise InputError(f"The ratio of the groups' {what}s must be positive, got {ratio}.")
    if not 0 < share < 1:
        raise InputError(f"The share of group 0 must lie strictly between 0 and 1, got {share}.")
    if total >= 1 - _ROUNDING:
        return 1.0, 1.0
    rate_1 = total / (share * ratio + 1 - share)
    rates = (ratio * rate_1, rate_1)
    for name, rate in zip(names, rates, strict=True):
        if rate > 1 + _ROUNDING:
            raise InputError(
                f"Infeasible: group {name} would need a {what} of {rate:.4g}, more than 1 "
                f"(overall {what} {total:.4g}, ratio of group {names[0]} to group {names[1]} "
                f"{ratio:.4g}). Choose a ratio nearer to 1 or a smaller overall rate."
            )
    return min(rates[0], 1.0), min(rates[1], 1.0)


def rates_of_testing(
    prevalence: float,
    k: float,
    q_t: float,
    share: float = 0.5,
    names: Sequence[str] = ("0", "1"),
) -> GroupRates:
    """P(T|0) and P(T|1) when k times as many people are tested as are positive."""
    if not k > 0:
        raise InputError(f"k is P(tested) / P(positive) and must be positive, got {k}.")
    return group_rates(k * prevalence, q_t, share, what="testing rate", names=names)


def rates_of_outcome(prevalence: float, q_y: float, share: float = 0.5) -> GroupRates:
    """P(Y|0) and P(Y|1) for the prevalence P(Y) and the ratio q_y."""
    rates = group_rates(prevalence, q_y, share, what="prevalence")
    for group, rate in enumerate(rates):
        if rate >= 1 - _ROUNDING:
            raise InputError(
                f"Infeasible: everybody in group {group} would be positive. Lower the prevalence."
            )
    return rates
