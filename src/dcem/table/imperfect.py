"""Imperfect tests: how often, as stated by whoever uses them, and what a result then tells.

A test with sensitivity s finds a share s of those who have the outcome; with specificity c it is
negative for a share c of those who do not. Given the truth (and the group), whether it errs is
taken not to depend on the features. A result y* of 0 or 1 then says two things of the truth y:

* (y* - (1 - c)) / (s + c - 1) has mean y whatever y is. It may be negative or exceed 1, and takes
  the place of y in sums (Rogan and Gladen 1978; for losses Natarajan et al. 2013);
* the odds that y = 1 change by P(y* | y = 1) / P(y* | y = 0): Bayes' rule, for likelihoods.

A rate is spelt `.6`; `.5-.7`, a 95 % interval; `F=.6,M=.5-.7`, by group; or the name of a column.

W. Rogan and B. Gladen, "Estimating prevalence from the results of a screening test", American
Journal of Epidemiology 1978. N. Natarajan et al., "Learning with noisy labels", NeurIPS 2013.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from dcem.table.disclosure import THRESHOLD
from dcem.table.known_rates import Stated, Z, concerned, stated_rates
from dcem.table.messages import InputError, rows_text
from dcem.text import number, percent

if TYPE_CHECKING:  # a process that trains networks does without it
    import pandas as pd

SENSITIVITY, SPECIFICITY = "sensitivity", "specificity"
SPELLING = "a number such as .6, an interval such as .5-.7, `F=.6,M=.8` by group, or a column"
TEST_ASSUMPTION = (
    "The test errs at the stated rates, and given the truth and the group, its errors do not "
    "depend on the features."
)
ABSURD = (  # who would have to have the outcome at the least, and what more or fewer would mean
    (SENSITIVITY, "everybody", "more people with the outcome than people"),
    (SPECIFICITY, "nobody", "fewer than zero people with the outcome"),
)
CERTAIN = 30.0  # log-odds that stand for certainty
FAR = 3.0  # standard errors by which rates and results must disagree to be called incompatible
FEWEST = 30  # tests of a group before its results are compared with the rates


@dataclass(frozen=True, eq=False)
class ImperfectTest:
    """How often the test of each row errs.

    Rows whose rates come from one number that is stated err together, if it is wrong.
    """

    rates: np.ndarray  # sensitivity and specificity of each row's test [n, 2]
    stated: tuple[Stated, ...]  # the numbers that they come from
    source: np.ndarray  # which of these each comes from [n, 2]

    def take(self, rows: Any) -> ImperfectTest:
        """Of these rows."""
        return replace(self, rates=self.rates[rows], source=self.source[rows])

    def unbiased(self, result: np.ndarray) -> np.ndarray:
        """`unbiased` of results [n] of these rows."""
        return unbiased(result, self.rates)

    def moved(self) -> list[tuple[ImperfectTest, ImperfectTest]]:
        """With each uncertain number one standard error higher, and lower."""
        return [
            tuple(  # type: ignore[misc]
                replace(self, rates=self.rates + side * one.error * (self.source == place))
                for side in (1, -1)
            )
            for place, one in enumerate(self.stated)
            if one.error > 0
        ]

    @property
    def words(self) -> str:
        """The rates in words: "sensitivity .50 [.40, .60], specificity 1.00"."""
        return "; ".join(
            f"{rate} " + ", ".join(one.words for one in self.stated if one.rate == rate)
            for rate in (SENSITIVITY, SPECIFICITY)
        )


def unbiased(result: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """A number for each result [n] whose mean is the truth; also of the probability of a result."""
    sensitivity, specificity = rates.T
    return np.asarray((result - (1 - specificity)) / (sensitivity + specificity - 1))


def result_probability(risk: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """The probability of a positive result [..., n], from that of the outcome."""
    sensitivity, specificity = rates.T
    return np.asarray(risk * sensitivity + (1 - risk) * (1 - specificity))


def evidence(result: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """By how much each result [n] changes the log-odds of the truth; `CERTAIN` at most."""
    sensitivity, specificity = rates.T
    with np.errstate(divide="ignore"):
        found = np.where(
            result > 0,
            np.log(sensitivity) - np.log(1 - specificity),
            np.log(1 - sensitivity) - np.log(specificity),
        )
    return np.clip(found, -CERTAIN, CERTAIN)


def is_per_row(given: Any) -> bool:
    """Whether a rate is given as one number per row."""
    return isinstance(given, np.ndarray | list | tuple) or hasattr(given, "to_numpy")


def imperfect_test(
    sensitivity: Any,
    specificity: Any,
    *,
    y_obs: np.ndarray,
    tested: np.ndarray,
    group: np.ndarray,
    group_names: Sequence[str],
    columns: Mapping[str, str] | None = None,
    labels: pd.Index | None = None,
) -> ImperfectTest | None:
    """What is stated of a test, checked against its results; None for a test that never errs.

    Parameters
    ----------
    sensitivity, specificity
        None (never errs), a number, a text (see the module), a mapping from groups to either, or
        one number per row.
    y_obs, tested, group, group_names
        The results, as `SelectiveLabels` has them.
    columns
        The names of the columns that rates per row come from.
    labels
        What errors call the rows.
    """
    stated: list[Stated] = []
    rates, source = np.ones((len(y_obs), 2)), np.zeros((len(y_obs), 2), np.int64)
    for place, (rate, given) in enumerate(((SENSITIVITY, sensitivity), (SPECIFICITY, specificity))):
        name = (columns or {}).get(rate, "")
        if name or is_per_row(given):
            rates[:, place] = _per_row(rate, given, name, tested, group, labels)
            source[:, place] = len(stated)
            mean = float(rates[tested, place].mean())
            stated.append(Stated(rate, "", mean, (mean, mean), name or "given"))
            continue
        rates_stated = [Stated(rate, "", 1.0, (1.0, 1.0))]
        if given is not None:
            rates_stated = stated_rates(rate, given, group_names, SPELLING)
        for one in rates_stated:
            mine = concerned(one, group, group_names)
            rates[mine, place], source[mine, place] = one.value, len(stated)
            stated.append(one)
    if (rates == 1).all() and not any(one.error for one in stated):
        return None
    found = ImperfectTest(rates, tuple(stated), source)
    _check_informative(found)
    _check_results(found, y_obs, tested, group, group_names)
    return found


def _per_row(
    rate: str, given: Any, name: str, tested: np.ndarray, group: np.ndarray, labels: pd.Index | None
) -> np.ndarray:
    """Rates of a column [n]; the untested, who need none, get the mean of their group's tests."""
    from dcem.table.checks import to_numbers
    from dcem.table.frames import as_series

    values, _ = to_numbers(as_series(given, name or f"test_{rate}"))
    of = f"Column {name!r}, the test {rate}," if name else f"The test {rate} per row"
    bad = tested & ~((values > 0) & (values <= 1))
    if bad.any():
        raise InputError(
            f"{of} must be above 0 and at most 1 for everybody tested; it is not in "
            f"{rows_text(bad, labels)}."
        )
    found = np.where(tested, values, values[tested].mean())
    for code in np.unique(group):
        mine = group == code
        if (mine & tested).any():
            found[mine & ~tested] = values[mine & tested].mean()
    return found


def _check_informative(test: ImperfectTest) -> None:
    at_worst = test.rates.sum(axis=1) - 1
    for place, one in enumerate(test.stated):
        at_worst = at_worst - Z * one.error * (test.source == place).any(axis=1)
    if (at_worst <= 0).any():
        worst = test.rates[int(at_worst.argmin())]
        says, sums = "says nothing about the truth", "add up to 1 or less"
        if worst.sum() > 1:
            says = "may say nothing about the truth"
            sums = "could add up to 1 or less within their intervals"
        raise InputError(
            f"A test with sensitivity {number(worst[0], 2)} and specificity {number(worst[1], 2)} "
            f"{says}: the two {sums}. It would then be positive at least as often without the "
            "outcome as with it. Check the rates, and whether the label is reversed."
        )


def _check_results(
    test: ImperfectTest,
    y_obs: np.ndarray,
    tested: np.ndarray,
    group: np.ndarray,
    group_names: Sequence[str],
) -> None:
    """Refuse rates under which the results, as they are, could hardly have come about."""
    for code, name in enumerate(group_names):
        mine = tested & (group == code)
        tests = int(mine.sum())
        if tests < FEWEST:
            continue
        found = int(y_obs[mine].sum())
        seen = found / tests
        error = max(seen * (1 - seen), 1 / tests) / tests
        of = f" of group {name}" if len(group_names) > 1 else ""
        share = percent(seen, 1)
        if min(found, tests - found) < THRESHOLD:  # it would be a count of few people
            share = "hardly any" if found < tests / 2 else "nearly all"
        for place, (rate, who, absurd) in enumerate(ABSURD):
            given = float(test.rates[mine, place].mean())
            limit = given if rate == SENSITIVITY else 1 - given
            sources = np.unique(test.source[mine, place])
            spread = sqrt(error + max(test.stated[one].error for one in sources) ** 2)
            beyond = seen - limit if rate == SENSITIVITY else limit - seen
            if beyond > FAR * spread:
                raise InputError(
                    f"Of the tests{of}, {share} are positive. With a {rate} of {number(given, 2)}, "
                    f"{percent(limit, 1)} would be positive if {who} had the outcome, so there "
                    f"would have to be {absurd}. The {rate} must be higher than stated."
                )
