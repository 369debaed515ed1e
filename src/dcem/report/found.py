"""What found positives say of groups, as a document: the audit without a record of testing.

Nothing here speaks of who is tested: nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isinf, isnan

from dcem.audit.found_findings import ASSUMPTION, UNKNOWN, without_small_found
from dcem.audit.found_results import FoundAudit, FoundGroup
from dcem.audit.results import HIDDEN
from dcem.extras import made_with
from dcem.report.document import (
    WITHHELD,
    Block,
    Cell,
    Code,
    Count,
    Document,
    DotRow,
    Dots,
    Facts,
    Fold,
    KeyNumber,
    Name,
    Opening,
    Section,
    Terms,
    Text,
    Verdict,
    estimate,
    table,
)
from dcem.report.findings import listed_findings, no_milder
from dcem.text import count, group, p_value, ratio

LIMITS = (
    "Not how common the outcome is in any group: only how the groups compare.",
    "Not why a group is found less: fewer tests, worse tests and fewer visits look alike.",
    f"Not that its assumption holds. {ASSUMPTION}",
)


def found_document(
    audit: FoundAudit,
    title: str = "Audit of found positives",
    data: Mapping[str, str] | None = None,
    *,
    small_cells: bool = False,
) -> Document:
    """The audit as a document; counts under ten are withheld unless `small_cells` is true."""
    if not (small_cells or audit.withheld):
        audit = without_small_found(audit)
    facts = {
        **(data or {}),
        **audit.configuration,
        "learners": "; ".join(f"{what}: {who}" for what, who in audit.learners.items()),
        "versions": (data or {}).get("versions") or made_with(),
    }
    findings, first = listed_findings(audit.findings), _opening(audit)
    sections = (
        ("found", "Who was found", _found(audit)),
        ("relative", "How groups compare", _relative(audit)),
        ("check", "Do features bear on being found alike in all groups?", _check(audit)),
        ("sensitivity", "What if being found depends on the features?", _sensitivity(audit)),
        ("range", "How common could the outcome be?", _range(audit)),
        ("methods", "Which methods are defensible here", _methods(audit)),
        ("unknown", "What cannot be known", unknown(audit.stated_rates)),
    )
    columns = [one.column for one in audit.check.departures] if audit.check else []
    return Document(
        title=title,
        lead=_lead(audit, (data or {}).get("group", "")),
        opening=replace(first, verdict=no_milder(first.verdict, findings)),
        findings=findings,
        sections=(
            *(
                Section(key, heading, tuple(blocks))
                for key, heading, made in sections
                if (blocks := list(made))
            ),
            Section("made", "How it was made", (Facts(facts),)),
        ),
        footer="Made with dcem. No individual row is on this page.",
        names=frozenset([*(item.group for item in audit.counts), *columns, *audit.suspicious]),
        data={"made": facts, **vars(audit)},
    )


def unknown(stated: str) -> Iterator[Block]:
    """What cannot be known, with and without a stated rate of being found."""
    yield Text(UNKNOWN[2:] if stated else UNKNOWN, bullets=True)


def _lead(audit: FoundAudit, column: str) -> str:
    total = audit.total
    groups = f" in {len(audit.counts)} groups" if audit.grouped else ""
    groups += f" (`{column}`)" * bool(groups and column)
    found = "" if total.tested == HIDDEN else f", {count(total.tested)} found positive"
    hidden = " Counts under ten are withheld, and what would give them away." * bool(audit.withheld)
    return f"{count(total.rows)} rows{groups}{found}. There is no record of who was tested.{hidden}"


def _opening(audit: FoundAudit) -> Opening:
    known = [one for one in audit.groups if one.prevalence.estimable]
    limits = LIMITS[1:] if audit.stated_rates else LIMITS
    if not known:
        verdict = Verdict(
            "caution",
            "Found positives alone tell nothing here",
            (
                "Without a record of testing only groups can be compared, and there are no two "
                "groups in which enough people were found.",
            ),
            "There is nothing to go by.",
        )
        numbers = (KeyNumber(estimate(audit.found, "percent"), "found positive"),)
        return Opening(verdict, numbers, None, limits)
    told = [one for one in known if one.rate.estimable]  # others would give counts away
    most = max(told or known, key=lambda one: abs(_log(one)))
    to = group(audit.reference)
    clear = [one for one in told if one.rate_p_value < 0.05]
    fails = any(one.key == "groups-unlike" for one in audit.findings)
    answer = "No group's positives are clearly found more or less often than those of others"
    if clear:
        most = max(clear, key=lambda one: abs(_log(one)))
        word = "less" if most.rate.value < 1 else "more"
        answer = f"Positives of {group(most.group)} are found {word} often than those of {to}"
    if fails:
        answer = "The table contradicts what comparing groups takes"
    sentences = [
        f"A positive of {group(most.group)} is {most.rate:ratio} times as likely to be found as "
        f"one of {to}."
        if most.rate.estimable
        else "How often positives of each group are found is withheld: it would give small counts "
        "away.",
        f"The outcome is {most.prevalence:ratio} times as common in {group(most.group)} as in {to}"
        + (f"; found shares alone say {most.crude:ratio}." if most.crude.estimable else "."),
    ]
    severity = "serious" if clear or fails else "note"
    return Opening(
        Verdict(severity, answer, tuple(sentences), f"Right if: {ASSUMPTION}"),
        (
            KeyNumber(estimate(audit.found, "percent"), "found positive, of everybody"),
            KeyNumber(
                estimate(most.rate, "ratio"),
                f"times as often a positive of {group(most.group)} is found, against {to}",
            ),
            KeyNumber(
                estimate(most.prevalence, "ratio"),
                f"times as common the outcome is in {group(most.group)}, against {to}",
            ),
        ),
        Dots(
            f"Groups against {audit.reference}",
            ("found share", "chance that a positive is found", "how common the outcome is"),
            tuple(
                DotRow(
                    Name(one.group),
                    (
                        estimate(one.crude, "ratio"),
                        estimate(one.rate, "ratio"),
                        estimate(one.prevalence, "ratio"),
                    ),
                )
                for one in known
            ),
            "Ratios; 1 is no difference. The first is the product of the other two, about.",
        ),
        limits,
    )


def _log(one: FoundGroup) -> float:
    return one.rate.value - 1 if one.rate.value >= 1 else 1 - 1 / one.rate.value


def _count(value: int) -> Cell:
    return WITHHELD if value == HIDDEN else Count(value)


def _found(audit: FoundAudit) -> Iterator[Block]:
    by_name = {one.group: one for one in audit.groups}
    rows = [
        (
            Name(item.group),
            _count(item.rows),
            _count(item.tested),
            estimate(by_name[item.group].found, "percent"),
        )
        for item in audit.counts
    ]
    yield table("", ("group", "rows", "found positive", "share found"), rows)


def _relative(audit: FoundAudit) -> Iterator[Block]:
    if not audit.grouped:
        return
    rows = [
        (
            Name(one.group),
            *(
                estimate(found, "ratio")
                for found in (one.crude, one.rate, one.prevalence, one.without_form)
            ),
        )
        for one in audit.groups
        if one.group != audit.reference
    ]
    heads = ("group", "found share", "chance of being found", "prevalence", "by flexible models")
    yield table(
        f"Against group {audit.reference}",
        heads,
        rows,
        note=f"Ratios, with 95 % intervals. {ASSUMPTION} Prevalence is that of a logistic model of "
        "the features, by maximum likelihood; the last column is the same without that form, the "
        "chance of being found compared over the features that both groups have.",
    )


def _check(audit: FoundAudit) -> Iterator[Block]:
    check = audit.check
    if check is None:
        return
    told = "None clearly does otherwise" if check.p_value >= 0.05 else "At least one does not"
    better = "predicts better" if check.loss.low > 0 else "does not clearly predict better"
    worse = (
        f" On held-out people a model of each group alone {better}: the log loss of the common one "
        f"exceeds its own by {check.loss:ratio} thousandths per row."
    )
    yield Text((f"{told} ({p_value(check.p_value)}, all features and groups).{worse}",))
    rows = [
        (Name(one.column), Name(one.group), "more" if one.more else "less", p_value(one.p_value))
        for one in check.departures
    ]
    parts = [
        table(
            "The clearest departures",
            ("column", "group", "where it is high, found", "p-value, corrected"),
            rows,
            words=(2, 3),
        )
    ]
    points = [
        (Name(curve.group), *(estimate(v, "percent") for v in (a, b, low, high)))
        for curve in check.curves
        for a, b, low, high in zip(curve.predicted, curve.found, curve.low, curve.high, strict=True)
    ]
    if points:
        parts.append(
            table(
                "Share found against what the common model predicts, by fifths of it",
                ("group", "predicted", "found", "from", "to"),
                points,
                note="Of people whom the model was not fitted to.",
            )
        )
    yield Fold("Which columns, in which groups", tuple(parts))


def _sensitivity(audit: FoundAudit) -> Iterator[Block]:
    found = audit.sensitivity
    if found is None:
        return
    for name, stands in found.breakdown.items():
        factor = stands.with_interval
        said = (
            f"Whatever the factor, the outcome is not equally common in {group(name)} and "
            f"{group(audit.reference)}."
            if isinf(factor)
            else f"From a factor of {ratio(factor)} on, the outcome could be equally common in "
            f"{group(name)} and {group(audit.reference)}."
            if factor > 1
            else f"That {group(name)} and {group(audit.reference)} differ is not clear to begin "
            "with."
        )
        yield Text((said,))
    names = list(found.low)
    rows = [
        (
            ratio(float(factor)),
            *(f"{ratio(found.low[name][at])} to {ratio(found.high[name][at])}" for name in names),
        )
        for at, factor in enumerate(found.factor)
    ]
    yield Fold(
        "The range at each factor",
        (
            table(
                f"Prevalence against group {audit.reference}",
                ("factor", *names),
                rows,
                words=tuple(range(1, len(names) + 1)),
                note="If the chance of being found varies with the features by at most this "
                "factor, up and down, alike in all groups. Sampling is included. Nothing in the "
                "table speaks against any of it.",
            ),
        ),
    )


def _range(audit: FoundAudit) -> Iterator[Block]:
    if audit.stated_rates:
        told = [
            (Name(one.group), estimate(one.found, "percent"), estimate(one.at_stated, "percent"))
            for one in audit.groups
        ]
        yield table(
            "",
            ("group", "found", "have the outcome"),
            told,
            note=f"Stated share of positives that is found: {audit.stated_rates}. What is "
            "uncertain about it is in the intervals. Right if, within a group, whether a positive "
            "is found has nothing to do with the features.",
        )
        return
    rows = [
        (
            Name(one.group),
            *(
                WITHHELD if isnan(end) else estimate(end, "percent")
                for end in (one.found.value, one.at_least, one.at_most)
            ),
        )
        for one in audit.groups
    ]
    yield table(
        "",
        ("group", "found", "at least", "at most"),
        rows,
        note="Bounds of prevalence, at 95 %, if being found has nothing to do with the features. "
        "At least: everybody found has it, and of the group found most often no more than all are "
        "found. At most: where people are found most often, no more than all have it. "
        "Between the two, nothing is known.",
    )


def _methods(audit: FoundAudit) -> Iterator[Block]:
    for verdict in ("defensible", "with care"):
        named = [f"`{advice.name}`" for advice in audit.methods if advice.verdict == verdict]
        yield Text((f"{verdict.capitalize()}: {', '.join(named) or 'none'}.",))
    told = tuple((Code(m.name), f"{m.verdict}: {m.reason}") for m in audit.methods)
    yield Fold("Why", (Terms(told),))
