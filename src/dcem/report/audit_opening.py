"""The first screen of an audit: is the labelling biased, for whom, and how sure is that?"""

from __future__ import annotations

from dcem.audit.findings import COMPATIBLE
from dcem.audit.results import Audit, Prevalence, TestingRate, TestingSensitivity
from dcem.estimation.determined import DETERMINED
from dcem.estimation.findings import SEVERITIES
from dcem.estimation.hidden_cause import in_words
from dcem.estimation.overlap import HARDLY
from dcem.estimation.results import EVERYBODY, WITHHELD, Overlap
from dcem.metrics.estimate import Estimate
from dcem.report import document as doc
from dcem.report.style import group_key
from dcem.text import capitalised, decimal, group, groups, listed, named_groups, percent, points

MOST_ROWS = 10  # groups in the picture of the first screen
# Key of a finding -> how often tests of a group are positive then, and which bar that tells of.
BARS = {
    "higher-bar": ("more", "higher"),
    "lower-bar": ("less", "lower"),
    "stricter-bar": ("less", "stricter"),
    "laxer-bar": ("more", "laxer"),
}


def opening(audit: Audit) -> doc.Opening:
    """The answer to the question that an audit is asked."""
    return doc.Opening(verdict(audit), key_numbers(audit), picture(audit), limits(audit))


def verdict(audit: Audit) -> doc.Verdict:
    """Two or three sentences, and how sure they are."""
    if audit.extent == "nobody":
        return doc.Verdict(
            "serious",
            "Nobody was tested",
            ("There is not a single outcome in this table: nothing can be learnt from it.",),
            "There is nothing to estimate.",
        )
    if audit.extent == "everybody" and audit.tested_stated:
        return doc.Verdict(
            "caution" if audit.suspicious else "note",
            "Everybody was tested, as stated",
            ("No label is missing, so no group is tested less than another.", *_record(audit)),
            "This is as certain as the statement: if untested people were recorded as negative, no "
            "table can show it.",
        )
    if audit.extent == "everybody":
        return doc.Verdict(
            "caution",
            "It cannot be determined: everybody counts as tested",
            (
                "No label is missing. If untested people were recorded as negative, that is the "
                "bias itself, and this table hides it.",
                *(_record(audit) if audit.stated_rates else ()),
            ),
            "Not sure at all: state who was tested, and audit again.",
        )
    clear = _clear_disparities(audit)
    known = [rate for rate in audit.testing if rate.difference.estimable]
    if clear:
        return _disparity(audit, clear)
    if not audit.grouped:
        return doc.Verdict(
            "note",
            "No groups were given, so they were not compared",
            ("To compare how often groups are tested, name a group column.", *_record(audit)),
            _assumption(audit),
        )
    if not known:
        why = {rate.difference.reason: None for rate in audit.testing}
        told = [reason for reason in why if reason.startswith(DETERMINED)]
        because = f" {capitalised(told[0])}." if told else ""
        return doc.Verdict(
            "caution",
            "It cannot be determined whether groups are tested unequally",
            (f"No group can be compared with others at equal features.{because}", *_record(audit)),
            "Not sure at all. This does not mean that the groups are treated alike.",
        )
    comparable = len(audit.counts) - bool(audit.reference)
    if len(known) < comparable / 2:  # a few speak neither for the rest nor against it
        return doc.Verdict(
            "caution",
            "It cannot be determined whether groups are tested unequally",
            (
                f"Only {len(known)} of {comparable} groups can be compared with others at "
                f"equal features{_too_small(audit)}.",
                *_record(audit),
            ),
            "Not sure at all. This does not mean that the other groups are treated alike.",
        )
    widest, alike = decimal(max(100 * audit.widest, 0.1), 1), audit.widest <= COMPATIBLE
    seen = (
        "People with the same features are tested about equally often in every group that can be "
        "compared."
        if alike
        else "No group's rate differs clearly from that of others with the same features."
    )
    return doc.Verdict(
        "caution" if audit.suspicious else "fine" if alike else "note",
        "No clear sign that groups are tested unequally",
        (seen, *_record(audit)),
        _not_before_asked(audit)
        or f"Differences of up to {widest} percentage points could have gone unnoticed.",
    )


def _too_small(audit: Audit) -> str:
    """Why most groups are not compared, as the end of a sentence, if they are too small."""
    lost = [rate.difference.reason for rate in audit.testing if not rate.difference.estimable]
    small = [one for one in lost if one != WITHHELD.reason and not one.startswith(DETERMINED)]
    return "; most are too small" if 2 * len(small) > len(audit.counts) else ""


def _not_before_asked(audit: Audit) -> str:
    """That nothing is sure while a column may have been recorded too late; nothing without one."""
    if not audit.suspicious:
        return ""
    one = len(audit.suspicious) == 1
    return (
        f"Not sure at all while {listed(list(audit.suspicious))} {'is' if one else 'are'} "
        f"included: ask whether {'it was' if one else 'they were'} known before the decision."
    )


def _clear_disparities(audit: Audit) -> list[TestingRate]:
    """Clear disparities, the largest first; of two groups, the one that is tested less."""
    clear = audit.clear(audit.testing)
    if audit.mirrored:
        clear = [rate for rate in clear if rate.difference.value < 0]
    return sorted(clear, key=lambda rate: -abs(rate.difference.value))


def _disparity(audit: Audit, clear: list[TestingRate]) -> doc.Verdict:
    worst = clear[0]
    severities = [
        finding.severity
        for finding in audit.findings
        if finding.key in ("tested-less", "tested-more")
        or (finding.key in BARS and worst.group in finding.groups)
    ]
    gap = worst.difference
    opposite = [r for r in clear if (r.difference.value < 0) != (gap.value < 0)][:1]
    shares = "; ".join(
        f"{percent(rate.equal.value)} in group {rate.group}, {percent(rate.others.value)} in "
        f"{_others(audit, rate)}"
        for rate in (worst, *opposite)
    )
    sentences = [
        f"Of people with the same recorded features, these are tested: {shares}.{_also(clear)}",
        *[audit.unseen_others] * bool(audit.unseen_others),
        *_who_seems_to_differ(audit),
        *_bar(audit, clear),
        *_record(audit),
    ]
    whose = f" for {group(worst.group)}" if len(clear) > 1 else ""
    like_them = f"people of {audit.others} like them" if audit.reference else "others like them"
    certainty = (
        f"Chance does not explain it: the difference{whose} is {points(gap.value)} percentage "
        f"points, 95 % interval {points(gap.low)} to {points(gap.high)}."
    )
    if found := _about_unrecorded(audit, clear):
        which = "" if found.group == worst.group else f" explain that for {group(found.group)}"
        certainty += (
            f" Something unrecorded could{which}, if it accounted for "
            f"{percent(found.breakdown.value)} of what the features leave open about both group "
            f"and testing; the strongest recorded column accounts for {percent(_strongest(found))}."
        )
    return doc.Verdict(
        min(severities, key=SEVERITIES.index, default="caution"),
        capitalised(
            f"{who_differs(clear, len(audit.counts))} than {like_them}", [r.group for r in clear]
        ),
        tuple(sentences),
        certainty,
    )


def _who_seems_to_differ(audit: Audit) -> list[str]:
    """Who seems to be tested differently, but only as long as other groups are counted."""
    seem = [rate for rate in audit.testing if rate.beside]
    if not seem:
        return []
    names, others = [rate.group for rate in seem], seem[0].beside
    said = (
        f"{groups(names)} {'seems' if len(names) == 1 else 'seem'} to differ too, but not clearly "
        f"with {groups(others)} left out."
    )
    return [capitalised(said, names)]


def _about_unrecorded(audit: Audit, clear: list[TestingRate]) -> TestingSensitivity | None:
    """What something unrecorded could do to one of the differences that are told, if that is known.

    It is known for the surest of them, which need not be the largest: that of a large group.
    """
    found = audit.testing_sensitivity
    told = {rate.group for rate in clear}
    return found if found is not None and found.group in told else None


def _strongest(found: TestingSensitivity) -> float:
    """The largest partial R² that any recorded column has with both group and testing."""
    return max((min(b.with_group, b.with_testing) for b in found.benchmarks), default=0.0)


def _others(audit: Audit, rate: TestingRate) -> str:
    """Whom a group is compared with; of two groups, the other."""
    names = [one.group for one in audit.testing if one.difference.estimable]
    other = [name for name in names if name != rate.group]
    return (
        f"group {other[0]}" if audit.mirrored and len(names) == len(audit.testing) else audit.others
    )


def who_differs(clear: list[TestingRate], n_groups: int) -> str:
    """Who is tested less and more, the largest difference first; counted where there are many."""
    by_way = _by_way(clear)
    if len(clear) <= 2:
        return " and ".join(
            f"{groups(names)} {'is' if len(names) == 1 else 'are'} tested {how}"
            for how, names in by_way.items()
        )
    subjects = {
        how: group(names[0]) if len(names) == 1 else f"{len(names)} of {n_groups} groups"
        for how, names in by_way.items()
    }
    (how, first), *second = subjects.items()
    verb = "is" if len(by_way[how]) == 1 else "are"
    others = "".join(f", {subject} {other}," for other, subject in second)
    return f"{first} {verb} tested {how}{others}"


def _by_way(clear: list[TestingRate]) -> dict[str, list[str]]:
    """Groups that are tested less, and more; the largest difference first."""
    by_way: dict[str, list[str]] = {}
    for rate in clear:
        by_way.setdefault("less" if rate.difference.value < 0 else "more", []).append(rate.group)
    return by_way


def _also(clear: list[TestingRate]) -> str:
    """The groups whose shares are not told, by name."""
    also = [f"also tested {how}: {groups(n[1:])}" for how, n in _by_way(clear).items() if n[1:]]
    said = "; ".join(also)
    return f" {capitalised(said)}." if said else ""


def _bar(audit: Audit, clear: list[TestingRate]) -> list[str]:
    """Whether the tests of the groups that stand out most tell of a higher or a lower bar."""
    alike = next(iter(_by_way(clear).values()))
    said = []
    for key, (often, bar) in BARS.items():
        named = {
            name for finding in audit.findings if finding.key == key for name in finding.groups
        }
        names = [name for name in alike if name in named]
        if names:
            those = f"people of {audit.others}" if audit.reference else audit.others
            said.append(
                f"In {named_groups(names)}, tests are positive {often} often than in {those} who "
                f"were equally likely to be tested: both signs point to a {bar} bar for "
                f"{'this group' if len(names) == 1 else 'these groups'}."
            )
    return said


def _everybody(audit: Audit) -> Prevalence | None:
    """How common the outcome is among everybody, if anything is recorded of it."""
    every = (p for p in audit.prevalence if p.group == EVERYBODY and p.recorded.estimable)
    return next(every, None)


def _record(audit: Audit) -> list[str]:
    """What the record hides, of everybody."""
    every = _everybody(audit)
    if every is None:
        return []
    recorded = f"The record shows the outcome in {percent(every.recorded.value)} of people"
    found, stated = _known_best(every), audit.stated_rates
    if not found.estimable:
        return [
            f"{recorded}; how common it really is cannot be estimated here, and could be anything "
            f"{_between(every.bounds)}."
        ]
    corrected = f", corrected for the errors of the test ({stated})" if stated else ""
    corrected *= not audit.stated_for_everybody
    low, high = percent(found.low), percent(found.high)
    unsure = f" ({low} to {high})" * (low != high)  # a stated rate may have no interval
    beyond = ""
    if found is every.within:
        beyond = f"; for everybody it lies {_between(every.limits)}, {audit.limits_hold}"
    prevalence = (
        f"{recorded}; {_source(audit)} it is {percent(found.value)}{unsure}{corrected}{beyond}."
    )
    if audit.hidden_cause is not None:
        prevalence += f" {capitalised(in_words(audit.hidden_cause, 'that'))}."
    sentences = [prevalence]
    if any(one.disagrees for one in audit.known):
        sentences.append(
            "That prevalence contradicts the assumption that features explain who is tested: "
            "see the findings."
        )
    return sentences


def _source(audit: Audit) -> str:
    """Where the number beyond the tested comes from, and of whom it is."""
    met = {one.group for one in audit.known if one.odds_ratio.estimable}
    if EVERYBODY in met or audit.stated_for_everybody:
        return "known for everybody"
    whom = EVERYBODY
    if audit.whom != EVERYBODY and EVERYBODY in audit.overlap:
        whom = f"the {percent(audit.overlap[EVERYBODY].reach)} of people within reach of the tests"
    return f"estimated for {whom}" + " with what is known of groups" * bool(met)


def _known_best(every: Prevalence) -> Estimate:
    """The number for everybody, or else for those within reach of the tests."""
    both = every.doubly_robust, every.within
    return next((one for one in both if one.estimable), every.doubly_robust)


def _between(limits: tuple[float, float]) -> str:
    low, high = map(percent, limits)
    return f"between {low} and {high}"


def _assumption(audit: Audit) -> str:
    if any(one.odds_ratio.estimable for one in audit.known):
        return (
            "This is as certain as the stated prevalence, and as the assumption that untested "
            "people differ from tested people with the same features by one factor."
        )
    return (
        "This is as certain as the assumption that the recorded features explain who was tested, "
        "which no table can show."
    )


def key_numbers(audit: Audit) -> tuple[doc.KeyNumber, ...]:
    """The largest difference in testing, how common the outcome is, what could overturn it."""
    found = []
    clear = _clear_disparities(audit)
    known = [rate for rate in audit.testing if rate.difference.estimable]
    if known:
        worst = clear[0] if clear else max(known, key=lambda rate: abs(rate.difference.value))
        label = (
            f"difference in testing: {group(worst.group)} against {_others(audit, worst)} with the "
            "same features"
        )
        if not clear:
            many = f", the largest of {len(known)}; not clear, given how many are compared"
            label += many if len(known) > 2 else "; not clear"
        found.append(doc.KeyNumber(doc.estimate(worst.difference, "points"), label))
    every, corrected = _everybody(audit), bool(audit.stated_rates)
    if every is not None:
        best = _known_best(every)
        label = "how many " * (not best.estimable) + "have the outcome"
        corrected &= not audit.stated_for_everybody
        label += f", {_source(audit)}{' and corrected for the test' * corrected}"
        if best is every.within or not best.estimable:
            label += f"; for everybody {_between(every.limits)}"
        label += f"; the record shows {percent(every.recorded.value)}"
        found.append(doc.KeyNumber(doc.estimate(best, "percent"), label))
    if unrecorded := _about_unrecorded(audit, clear):
        whose = f" for {group(unrecorded.group)}" if len(clear) > 1 else ""
        found.append(
            doc.KeyNumber(
                doc.estimate(unrecorded.breakdown.value, "percent"),
                f"strength that something unrecorded would need to explain away the "
                f"difference{whose} (partial R²); the strongest recorded column has "
                f"{percent(_strongest(unrecorded))}",
            )
        )
    if len(found) < 3 and EVERYBODY in audit.overlap:
        found += _beyond_tests(audit.overlap[EVERYBODY])
    return tuple(found)


def _beyond_tests(every: Overlap) -> list[doc.KeyNumber]:
    """How many are out of reach; where (almost) nobody is, who had next to no chance of a test."""
    lost, what = every.under[HARDLY], f"had hardly any chance of a test (under {percent(HARDLY)})"
    if not every.complete:
        lost, what = 1 - every.reach, "are out of reach of the tests"
    label = f"of people {what}: for them no estimate can be trusted"
    return [doc.KeyNumber(doc.estimate(lost, "percent"), label)] * (lost >= 0.0005)  # as shown


def picture(audit: Audit) -> doc.Dots | None:
    """Testing rates at equal features by group, each beside that of the others."""
    if not audit.grouped:
        return _prevalences(audit)
    places = {item.group: place for place, item in enumerate(audit.counts)}
    known = [rate for rate in audit.testing if rate.difference.estimable]
    if not known:
        return None
    shown = sorted(known, key=lambda rate: -abs(rate.difference.value))[:MOST_ROWS]
    shown.sort(key=lambda rate: rate.difference.value)
    clear = {rate.group for rate in _clear_disparities(audit)}
    left = len(audit.testing) - len(shown) - bool(audit.reference)
    return doc.Dots(
        "Tested, at equal features",
        ("share tested",),
        tuple(
            doc.DotRow(
                doc.whose(rate.group),
                (doc.estimate(rate.equal, "percent"),),
                (doc.estimate(rate.others.value, "percent"),),
                group_key(places[rate.group]),
                rate.group in clear,
            )
            for rate in shown
        ),
        f"Each group next to people of {audit.others if audit.reference else 'other groups'} with "
        "the same recorded features, with 95 % intervals. People unlike anybody in another group "
        "are not counted."
        + (f" {left} more group{'s' * (left > 1)}: see “Who is tested”." if left else ""),
        f"{audit.others} with the same features",
        marked="clearly different, given how many groups are compared" if clear else "",
    )


def _prevalences(audit: Audit) -> doc.Dots | None:
    every = _everybody(audit)
    if every is None:
        return None
    kinds = {
        "recorded: the untested count as negative": every.recorded,
        "among the tested": every.tested_only,
        **(
            {"within reach of the tests, doubly robust": every.within}
            if every.within.estimable
            else {
                "everybody, weighted": every.weighted,
                "everybody, doubly robust": every.doubly_robust,
            }
        ),
    }
    return doc.Dots(
        "How common is the outcome?",
        ("share with the outcome",),
        tuple(doc.DotRow(name, (doc.estimate(e, "percent"),)) for name, e in kinds.items()),
        f"The record, the tested, and the estimate for {audit.whom}, with 95 % intervals.",
    )


def limits(audit: Audit) -> tuple[str, ...]:
    """What a hasty reader might take from it, and must not."""
    found = []
    if audit.suspicious:
        found.append(
            f"Anything yet: {listed(list(audit.suspicious))} may have been recorded after the "
            "decision to test."
        )
    if _clear_disparities(audit):
        found.append(
            "Not that it is intended or unfair: a reason for testing that is not in the table may "
            "explain it."
        )
    elif audit.grouped and audit.extent == "some":
        hides = listed([*audit.suspicious, "what is not recorded"])
        found.append(f"Not that the groups are treated alike: {hides} may hide a difference.")
    if audit.extent == "some":
        found.append(
            "Not that the untested are negative: a model of the record learns who was tested."
        )
    lost = {
        rate.group: rate.difference.reason
        for rate in audit.testing
        if not rate.difference.estimable and rate.group != audit.reference
    }
    hidden = [name for name, reason in lost.items() if reason == WITHHELD.reason]
    told = [name for name, reason in lost.items() if reason.startswith(DETERMINED)]
    small = [name for name in lost if name not in (*hidden, *told)]
    if audit.grouped and audit.extent == "some":
        if told:
            found.append(
                f"Anything about how {groups(told)} would be tested at equal features: the "
                "features determine the group."
            )
        if small:
            found.append(f"Anything about {groups(small)}: too little is known.")
        if hidden:
            found.append(f"Anything about {groups(hidden)}: the numbers are withheld.")
    everybody, *of_groups = audit.prevalence or (None,)
    unknown = [
        one.group
        for one in of_groups
        if not (best := _known_best(one)).estimable
        and best.reason != WITHHELD.reason
        and one.group not in lost
    ]
    if everybody is not None and _known_best(everybody).estimable and unknown:
        found.append(f"How common the outcome is in {named_groups(unknown)}: too little is known.")
    every = audit.overlap.get(EVERYBODY)
    if every is not None and not every.complete:
        found.append(
            "Anything about people unlike anybody tested: for them every number is extrapolation. "
            "How many they are is estimated anew each time, so a comparison may differ."
        )
    return tuple(found)
