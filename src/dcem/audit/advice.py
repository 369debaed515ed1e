"""What the conclusions rest on, and which methods may be used here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isnan

from dcem.audit.findings import all_findings
from dcem.audit.remedies import each_group, stands
from dcem.audit.results import CLEAR_P, Assumption, Audit, MethodAdvice
from dcem.estimation.instrument import DECIDERS_ASSUMPTION
from dcem.estimation.results import EVERYBODY
from dcem.methods.choosing import DEFAULT
from dcem.methods.registry import ENTRIES, names
from dcem.table.imperfect import TEST_ASSUMPTION
from dcem.table.known_rates import PREVALENCE_ASSUMPTION
from dcem.text import decimal, groups, number, p_value, percent

RANDOM = 0.55  # an AUC of the testing model up to which testing is about random


def with_conclusions(audit: Audit) -> Audit:
    """The audit with its findings, its checklist and its advice."""
    audit = replace(audit, findings=all_findings(audit))
    return replace(audit, assumptions=tuple(_assumptions(audit)), methods=advise_methods(audit))


def _assumptions(audit: Audit) -> Iterator[Assumption]:
    """Everything that has to hold, and what the data say of it."""
    b, c = audit.prevalence_sensitivity, audit.performance_sensitivity
    conclusions = [
        f"“{found.breakdown.conclusion}” {stands(found.breakdown)}"
        for found in (b, c)
        if found is not None and found.breakdown.with_interval > 1
    ]
    asked = [one for one in audit.known if one.difference.estimable]
    against = [one for one in asked if one.disagrees]
    verdict = "contradicted" if against else "not contradicted"
    held = f"Compared with a known prevalence: {verdict}. "
    refuted = _refuted(audit)
    by_deciders = "What deciders find contradicts it, or people do not reach them as if at random. "
    yield Assumption(
        "Features and group explain who was tested: nothing unrecorded affects both testing and "
        "outcome",
        "tested" if asked else "untestable",
        "serious" if against or refuted else "fine" if asked else "caution",
        held * bool(asked)
        + by_deciders * refuted
        + ("; ".join(conclusions) + "." if conclusions else "Nothing in the table can show it."),
    )
    if audit.deciders is not None and audit.deciders.prevalence:
        crossed = any(finding.key == "deciders-refuted" for finding in audit.findings)
        yield Assumption(
            f"{DECIDERS_ASSUMPTION} (for bounds by decider)",
            "partly",
            "serious" if crossed else "caution",
            "Contradicted: bounds of some deciders cross."
            if crossed
            else "Bounds of deciders do not clearly cross, which does not prove it.",
        )
    if asked:
        yield Assumption(
            PREVALENCE_ASSUMPTION.removesuffix("."),
            "untestable",
            "caution",
            "The table cannot show it: a rate that refers to other people or to another outcome "
            "would not be noticed, nor would odds that differ more for some people than for "
            "others.",
        )
    every = audit.overlap.get(EVERYBODY)
    told = (one.values["reasons"] for one in audit.findings if one.key == "overlap-groups")
    lost: Mapping[str, str] = next(told, {})
    yield Assumption(
        "Everybody had a real chance of being tested (overlap)",
        "tested",
        "note"
        if every is None
        else "serious"
        if not every.complete
        else "caution"
        if lost
        else "fine",
        "Testing does not vary."
        if every is None
        else f"{percent(every.reach)} of people are within reach of the tests."
        + (f" It is not shown in every group. {each_group(lost)}." if lost else ""),
    )
    calibration = audit.calibration
    if calibration is not None:
        yield Assumption(
            "The model of testing is right",
            "partly",
            "fine" if calibration.is_right else "caution",
            f"Calibration slope {decimal(calibration.slope.value)}, mean error "
            f"{decimal(100 * calibration.error, 1)} percentage points (by chance alone, "
            f"{decimal(100 * calibration.error_by_chance, 1)}). Calibration is necessary, not "
            "sufficient.",
        )
    found = audit.independence
    if found is not None:
        rejected = not isnan(found.p_value) and found.p_value < CLEAR_P
        yield Assumption(
            "The outcome does not depend on the group, given the features",
            "partly",
            "caution" if rejected or isnan(found.p_value) else "fine",
            found.reason + "."
            if isnan(found.p_value)
            else f"Among the tested: {p_value(found.p_value)}, "
            + ("contradicted." if rejected else "not contradicted, which does not prove it."),
        )
    stated = audit.stated_rates
    yield Assumption(
        TEST_ASSUMPTION.removesuffix(".")
        if stated
        else "Test results are the truth, in every group",
        "untestable",
        "caution",
        (f"Stated: {stated}. " if stated else "")
        + "The table cannot show it. If a test errs more in one group than in another, its errors "
        "look like differences in the outcome.",
    )
    late = ", ".join(audit.suspicious)
    yield Assumption(
        "Features were recorded before the decision to test",
        "partly",
        "caution" if late else "note",
        f"Doubtful: {late}."
        if late
        else "No column looks suspicious. But a consequence of the result that is only weakly "
        "related to testing would not be noticed: only somebody who knows when each column is "
        "recorded can tell.",
    )
    given = "one per row" not in audit.configuration.get("people", "")
    yield Assumption(
        "Rows of different people are independent",
        "untestable",
        "fine" if given else "note",
        "A person's rows were kept together."
        if given
        else "Each row was treated as a different person. If people have several rows, name the id "
        "column; otherwise intervals are too narrow.",
    )


def _refuted(audit: Audit) -> bool:
    """Whether deciders contradict that features explain who is tested."""
    return any(finding.key == "features-refuted" for finding in audit.findings)


def advise_methods(audit: Audit) -> tuple[MethodAdvice, ...]:
    """A verdict on every method that needs no truth, the defensible ones first."""
    order = ("defensible", "with care", "not here")
    found = [MethodAdvice(name, *_verdict(name, audit)) for name in names(usable=True)]
    return tuple(
        sorted(found, key=lambda advice: (order.index(advice.verdict), advice.name != DEFAULT))
    )


def _by_decider(audit: Audit) -> tuple[str, str]:
    """Of methods that learn from how deciders differ."""
    if audit.deciders is None:
        return "not here", "no column says who decided"
    if not audit.deciders.prevalence:
        return "not here", audit.deciders.reason
    keys = {finding.key for finding in audit.findings}
    if "deciders-refuted" in keys:
        return "not here", "who decides is related to the outcome"
    if "deciders-differ" not in keys:
        return "not here", "deciders hardly differ, so little can be learnt from them"
    condition = "right if, at equal features, who decides is unrelated to the outcome"
    if keys & {"deciders-mix", "deciders-not-monotone"}:
        return (
            "with care",
            f"{condition}; deciders see different people, or differ in who is tested",
        )
    return "defensible", f"{condition}; features need not explain testing"


def _verdict(name: str, audit: Audit) -> tuple[str, str]:
    kind, caution = ENTRIES[name].kind, ENTRIES[name].caution
    if audit.extent == "nobody":
        return "not here", "nobody was tested"
    if audit.extent == "everybody":
        if kind in ("imputed", "tested", "grouped", "mixed"):
            if audit.tested_stated:
                return "defensible", "everybody was tested, as stated"
            return "with care", "right if everybody was really tested, which the table cannot show"
        return "not here", "everybody was tested, so there is nothing to correct"
    if kind in ("comparison", "found"):
        return "not here", caution
    if kind == "instrument":
        return _by_decider(audit)
    independence = audit.independence
    depends = independence is not None and independence.p_value < CLEAR_P  # False for NaN
    if kind in ("imputed", "noise"):
        predictable = audit.calibration.auc if audit.calibration is not None else 0.5
        if predictable <= RANDOM and not audit.clear(audit.testing):
            return "with care", f"testing looks random here; {caution}"
        way = "; those at lower risk are the ones tested" if audit.prefers_low_risk else ""
        return "not here", (
            f"testing follows features or group (AUC {number(predictable)}){way}; {caution}"
        )
    if kind == "grouped":
        if depends:
            return "with care", (
                "the outcome depends on the group here, which this method can learn; prediction "
                "needs the group, and it may learn the testing policy"
            )
        return "with care", "prediction needs the group, and nothing here says that it helps"
    overlap = audit.overlap[EVERYBODY]
    lost = bool(overlap.reason)
    weak = [o.group for o in audit.overlap.values() if o.reason and o.group != EVERYBODY]
    refuted = _refuted(audit)
    own = f"; {caution}" if caution else ""
    scarce = " or ".join(cell for cell in ("positive", "negative") if cell in audit.total.few)
    noted = "; what deciders find contradicts that features explain testing" * refuted + own
    noted += f"; fewer than ten people were tested {scarce}" if scarce else ""
    but = (f"; not for {groups(weak)}" if weak else "") + noted
    extrapolates = f"; it extrapolates where hardly anybody was tested{noted}" if lost else but
    best = "with care" if lost or caution or refuted or scarce else "defensible"
    if kind == "weighted" and lost:
        return "not here", "no overlap: a few rows would carry all the weight"
    if kind == "weighted" and (overlap.thin or not overlap.complete):
        return "with care", f"thin overlap: the weights rest on few people{but}"
    if kind == "latent":
        if not audit.grouped:
            return "with care", f"made for groups that are tested differently{extrapolates}"
        if depends:
            return "with care", (
                "it assumes that the outcome does not depend on the group given the features, "
                f"which the tested contradict{extrapolates}"
            )
        return best, f"its assumption about group and outcome is not contradicted{extrapolates}"
    if kind == "selection":
        return "with care", f"it allows for an unrecorded cause of test and outcome{own}"
    default = "the default; " if name == DEFAULT else ""
    if lost:
        return best, f"{default}right if features explain testing{extrapolates}"
    if kind == "mixed":
        return best, f"{default}it weights models of several kinds by held-out tests{but}"
    return best, f"right if features explain testing: tested and untested people overlap{but}"
