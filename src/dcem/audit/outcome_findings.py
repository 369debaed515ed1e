"""Findings about the outcome: yield, prevalence, dependence on the group, what could turn them."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isnan

from dcem.audit.results import Audit, Breakdown, Finding, TestingRate
from dcem.audit.wording import between, percent, points, share
from dcem.estimation.influence import Z, two_sided
from dcem.metrics.estimate import Estimate

CLEAR = 0.05
FRAGILE = 1.5  # an odds ratio that unrecorded causes reach easily


def clear_disparities(audit: Audit) -> list[TestingRate]:
    """Groups tested clearly more or less often than others with the same features."""
    usable = [rate for rate in audit.testing if rate.difference.estimable]
    return [rate for rate in usable if rate.p_value * _tries(len(usable)) < CLEAR]


def _tries(groups: int) -> int:
    """Comparisons that Bonferroni's correction counts: of two groups one mirrors the other."""
    return groups if groups > 2 else 1


def _clear(estimates: list[Estimate]) -> list[bool]:
    """Which differences are clearly not 0, each with a normal interval, corrected for their number.

    An estimate that is not estimable is not clear, and no comparison.
    """
    tries = _tries(sum(e.estimable for e in estimates))
    return [e.estimable and _p_value(e) * tries < CLEAR for e in estimates]


def _p_value(difference: Estimate) -> float:
    error = (difference.high - difference.low) / (2 * Z)
    return two_sided(difference.value / error) if error > 0 else float(difference.value == 0)


def _outcome_test(audit: Audit) -> Iterator[Finding]:
    if not audit.grouped:
        return
    usable = [item for item in audit.yields if item.difference.estimable]
    clear = any(_clear([item.difference for item in usable]))
    caveat = (
        "A difference in these rates alone is not yet bias: they average over everybody tested, "
        "not over those at the margin, and groups whose risk is distributed differently have "
        "different rates under one and the same rule (infra-marginality)."
    )
    if clear:
        rates = ", ".join(f"{i.group} {percent(i.rate.value)}" for i in usable)
        yield Finding(
            "note", "yield", "Tests are positive more often in some groups", f"{rates}. {caveat}"
        )
    sure = _clear([item.at_equal_probability for item in usable])
    nearer = [item for item, yes in zip(usable, sure, strict=True) if yes]
    tested_less = {r.group for r in clear_disparities(audit) if r.difference.value < 0}
    told_twice = len(usable) == 2
    for item in nearer:
        if item.at_equal_probability.value < 0 and told_twice:
            continue
        gap = item.at_equal_probability
        both = item.group in tested_less and gap.value > 0
        yield Finding(
            "serious" if both else "caution",
            "yield",
            f"At equal testing probability, tests of group {item.group} are positive "
            f"{'more' if gap.value > 0 else 'less'} often",
            f"Difference {points(gap)}. "
            + (
                "Together with fewer tests at equal features, both signs point to a higher bar "
                "for this group."
                if both
                else "This is nearer to a comparison at the margin than the plain rates, as far "
                "as the features describe what the decision was based on."
            ),
        )


def _prevalence(audit: Audit) -> Iterator[Finding]:
    if not audit.prevalence:
        return
    every, *groups = audit.prevalence
    if audit.extent != "some":
        return
    if every.doubly_robust.estimable:
        yield Finding(
            "note",
            "prevalence",
            f"The record shows {percent(every.recorded.value)}, the estimate for everybody is "
            f"{percent(every.doubly_robust.value)}",
            f"Doubly robust, {between(every.doubly_robust)}; among the tested "
            f"{percent(every.tested_only.value)}. It assumes that features and group explain who "
            f"was tested. Without any assumption it lies between {percent(every.bounds[0])} and "
            f"{percent(every.bounds[1])}.",
        )
    else:
        yield Finding(
            "caution",
            "prevalence",
            "How common the outcome is cannot be estimated for everybody",
            f"{every.doubly_robust.reason}. Without any assumption it lies between "
            f"{percent(every.bounds[0])} and {percent(every.bounds[1])}.",
        )
    spans = {g.group: g.hidden for g in groups if g.hidden.estimable}
    if len(spans) >= 2:
        worst = max(spans, key=lambda name: spans[name].value)
        best = min(spans, key=lambda name: spans[name].value)
        if spans[worst].low > spans[best].high:
            yield Finding(
                "caution",
                "prevalence",
                f"Counting the untested as negative hides more in group {worst} than in {best}",
                f"{share(spans[worst])} of the outcomes in group {worst}, {share(spans[best])} in "
                f"group {best}, by the doubly robust estimate.",
            )


def _independence(audit: Audit) -> Iterator[Finding]:
    found = audit.independence
    if found is None:
        return
    if isnan(found.p_value):
        yield Finding(
            "caution",
            "outcome",
            "Whether the outcome depends on the group could not be tested",
            f"{found.reason}. Methods that assume it does not (DCEM) rest on faith here.",
        )
        return
    usable = {name: e for name, e in found.odds_ratio.items() if e.estimable}
    if found.p_value < CLEAR:
        far = [n for n, e in usable.items() if e.low > 1.25 or e.high < 0.8]
        named = far or [n for n, e in usable.items() if e.excludes(1)]
        listed = "; ".join(
            f"{n}: odds ratio {usable[n].value:.2f} ({usable[n].low:.2f} to {usable[n].high:.2f})"
            for n in named
        )
        yield Finding(
            "serious" if far else "caution",
            "outcome",
            "The outcome depends on the group at equal features",
            f"Among the tested, p = {found.p_value:.2g}. {listed or 'No single group stands out'}. "
            "Methods that assume independence (DCEM and its kin) are off by about that much; or "
            "the features lack something that differs between groups.",
        )
        return
    limits = [found.detectable[n] for n in usable]
    yield Finding(
        "note",
        "outcome",
        "No sign that the outcome depends on the group at equal features",
        f"Among the tested, p = {found.p_value:.2g}. That is no proof: depending on the group, "
        f"odds ratios of {min(limits):.2f} to {max(limits):.2f} could have gone unnoticed, and "
        "only tested people could be asked.",
    )


def _sensitivity(audit: Audit) -> Iterator[Finding]:
    for found, what in (
        (audit.prevalence_sensitivity, "prevalence"),
        (audit.performance_sensitivity, "performance"),
    ):
        if found is not None:
            yield _fragile(found.breakdown, what)


def _fragile(b: Breakdown, about: str) -> Finding:
    conclusion = b.conclusion[0].upper() + b.conclusion[1:]
    if isnan(b.value):
        return Finding(
            "note", about, f"“{conclusion}” could not be put to the test", f"{b.reason}."
        )
    if b.with_interval <= 1:
        return Finding(
            "note",
            about,
            f"“{conclusion}” is not clear to begin with",
            "Even if untested people are like tested people with the same features, the interval "
            "allows for no difference at all.",
        )
    if b.value == inf and b.with_interval == inf:
        return Finding(
            "fine",
            about,
            f"“{conclusion}” holds whatever the untested are like",
            "Even the limits without any assumption leave it standing.",
        )
    weak = b.with_interval < FRAGILE
    return Finding(
        "caution" if weak else "note",
        about,
        f"“{conclusion}” stands up to an odds ratio of {_times(b.with_interval)}",
        "If the odds of untested people differ from those of tested people with the same features "
        f"by that factor, the interval no longer excludes the opposite; at {_times(b.value)} the "
        "estimate itself turns." + (" That is little." if weak else ""),
    )


def _times(value: float) -> str:
    return "any size" if value == inf else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


PARTS = (_outcome_test, _prevalence, _independence, _sensitivity)
