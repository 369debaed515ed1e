"""What found positives say, as documents: the audit and the comparison without a record of testing.

Nothing here speaks of who is tested: nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isinf, isnan

from dcem.audit.found_findings import ASSUMPTION, UNKNOWN, without_small_found
from dcem.audit.found_results import FoundAudit, FoundGroup
from dcem.audit.results import HIDDEN
from dcem.compare.found import FoundComparison, FoundMethod
from dcem.extras import made_with
from dcem.report.document import (
    NOTHING,
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
    Missing,
    Name,
    Opening,
    Section,
    Terms,
    Text,
    Verdict,
    counted,
    estimate,
    table,
)
from dcem.report.findings import listed_findings, no_milder
from dcem.text import count, group, number, of_100, p_value, ratio

LIMITS = (
    "Not how common the outcome is in any group: only how the groups compare.",
    "Not why a group is found less: fewer tests, worse tests and fewer visits look alike.",
    f"Not that its assumption holds. {ASSUMPTION}",
)
METHOD_LIMITS = (
    "Not how good a method is for the outcome: only which of them ranks better.",
    "Not whether scores are risks, nor what a threshold of them means.",
    "Not that features have nothing to do with being found: a method that learns who is found from "
    "them looks better than it is.",
)


# ------------------------------------------------------------------------------------- audit
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
        ("unknown", "What cannot be known", _unknown(audit.stated_rates)),
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


def _unknown(stated: str) -> Iterator[Block]:
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
        return Opening(verdict, numbers, None, LIMITS)
    most = max(known, key=lambda one: abs(_log(one)))
    to = group(audit.reference)
    clear = [one for one in known if one.rate_p_value < 0.05]
    fails = any(one.key == "groups-unlike" for one in audit.findings)
    answer = f"Positives of {group(most.group)} and {to} are found about equally often"
    if clear:
        most = max(clear, key=lambda one: abs(_log(one)))
        word = "less" if most.rate.value < 1 else "more"
        answer = f"Positives of {group(most.group)} are found {word} often than those of {to}"
    if fails:
        answer = "The table contradicts what comparing groups takes"
    sentences = [
        f"A positive of {group(most.group)} is {most.rate:ratio} times as likely to be found as "
        f"one of {to}.",
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
        LIMITS,
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
    worse = (
        " On held-out people a model of each group alone lowers the log loss by "
        f"{check.loss:ratio} thousandths of a nat per row."
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


# -------------------------------------------------------------------------------- comparison
def found_comparison_document(comparison: FoundComparison, title: str = "") -> Document:
    """The comparison of methods by found positives as a document."""
    file = comparison.data.get("file", "")
    versions = ", ".join(f"{name} {version}" for name, version in comparison.versions.items())
    facts = {**comparison.data, **comparison.configuration, "versions": versions}
    used = f"{count(comparison.rows_used)} rows"
    if comparison.rows_used != comparison.rows:
        used = f"{count(comparison.rows_used)} of {count(comparison.rows)} rows, drawn at random"
    sections = (
        ("methods", "Methods side by side", _side_by_side(comparison)),
        ("outcome", "What it could mean for the outcome", _for_outcome(comparison)),
        ("found", "Who was found", _counts(comparison)),
        ("unknown", "What cannot be known", _unknown(comparison.stated_rates)),
    )
    return Document(
        title=title or f"Methods compared on {file or 'a table'}, by found positives",
        lead=f"{len(comparison.methods)} methods on {used}. There is no record of who was tested. "
        f"Every score is of somebody the model was not fitted to ({comparison.folds}-fold "
        "cross-validation).",
        opening=_best(comparison),
        findings=listed_findings(comparison.findings),
        sections=(
            *(
                Section(key, heading, tuple(blocks))
                for key, heading, made in sections
                if (blocks := list(made))
            ),
            Section("made", "How it was made", (Facts(facts),)),
        ),
        footer=f"Made with dcem {comparison.versions['dcem']}. It shows sums over people; no row "
        "or score of a person is on it.",
        names=frozenset(comparison.counts),
        data={"made": facts, **vars(comparison)},
    )


def _best(comparison: FoundComparison) -> Opening:
    standing = next(iter(comparison.standings.values()), None)
    stated = bool(comparison.stated_rates)
    by_name = {method.name: method for method in comparison.methods}
    best = by_name[standing.best] if standing else comparison.methods[0]
    said = next((one for one in comparison.findings if one.key == "best"), None)
    if standing is None or said is None:
        verdict = Verdict(
            "serious", "Nothing can be told of these methods",
            (f"Why: {best.within.reason}.",), "There is nothing to go by.",
        )  # fmt: skip
        return Opening(verdict, (), None, METHOD_LIMITS)
    times, about = of_100(best.within.value, best.within.low, best.within.high)
    with_it = "with the outcome and one without" if stated else "found and one not"
    sentences = (
        said.headline,
        f"Of two people of one group, one {with_it}, `{best.name}` ranks the first higher {times} "
        f"times in 100 ({about}; tossing a coin, 50).",
    )
    doubtful = not best.within.low > 0.5
    answer = f"Use `{best.name}`: it ranks best, as far as found positives tell"
    whom = "for the outcome" if stated else "against the found"
    if standing.level_with:
        answer = f"`{best.name}` is ahead, not clearly"
    if doubtful:
        answer = "No method can be told from chance"
    return Opening(
        Verdict("caution" if doubtful else "note", answer, sentences, said.text),
        (
            KeyNumber(estimate(best.within), f"AUC of `{best.name}` {whom}, within groups"),
            KeyNumber(
                estimate(best.across),
                "the same of all together" if stated else "the same across groups, against anybody",
            ),
        ),
        Dots(
            "How well methods rank",
            ("within groups", "across groups"),
            tuple(
                DotRow(
                    Code(method.name, about=method.in_short),
                    (estimate(method.within), estimate(method.across)),
                    marked=method.name == best.name,
                )
                for method in comparison.methods
            ),
            "AUC for the outcome, at the stated rates of being found."
            if stated
            else "Within groups: how often somebody found scores higher than somebody of the same "
            "group who was not. Across groups: how often a positive scores higher than anybody, "
            "each group's found weighted by one over its rate of being found.",
            marked="ranks best within groups",
        ),
        METHOD_LIMITS[2:] if stated else METHOD_LIMITS,
    )


def _side_by_side(comparison: FoundComparison) -> Iterator[Block]:
    known = any(method.truth is not None for method in comparison.methods)
    groups = list(comparison.prevalence)
    heads = ("method", *groups, *(["against the truth"] if known else []))
    rows = [
        (
            Code(method.name),
            *(estimate(method.groups.get(name)) for name in groups),
            *([estimate(method.truth)] if known else []),
        )
        for method in comparison.methods
    ]
    whom = "for the outcome" if comparison.stated_rates else "against the found"
    yield table(f"AUC {whom}, by group", heads, rows)
    if comparison.stated_rates:
        whose = list(dict.fromkeys(name for m in comparison.methods for name in m.calibration))
        yield table(
            "Mean score minus risk, by group",
            ("method", *whose),
            [
                (Code(m.name), *(estimate(m.calibration.get(name), "points") for name in whose))
                for m in comparison.methods
            ],
            note="Above 0 where risk is overstated. Only scores that are calibrated, as those of "
            "`ensemble`, are meant to be risks.",
        )
    told = tuple((Code(m.name), m.what_it_does) for m in comparison.methods)
    yield Fold("What the methods do", (Terms(told),))


def _for_outcome(comparison: FoundComparison) -> Iterator[Block]:
    groups = list(comparison.prevalence)

    def between(method: FoundMethod, name: str) -> Cell:
        ends = method.outcome.get(name)
        return NOTHING if ends is None else f"{number(ends[0], 2)} to {number(ends[1], 2)}"

    if groups and not comparison.stated_rates:
        yield table(
            "Between which the AUC for the outcome lies, by group",
            ("method", *groups),
            [
                (Code(method.name), *(between(method, name) for name in groups))
                for method in comparison.methods
            ],
            words=tuple(range(1, len(groups) + 1)),
            note="The AUC for the outcome grows with prevalence, which is unknown: the low end is "
            "for a prevalence as low as the found share, the high end for one as high as the "
            "table allows. Methods keep their order at any.",
        )


def _counts(comparison: FoundComparison) -> Iterator[Block]:
    rows = [
        (
            Name(name),
            counted(rows),
            counted(found),
            Missing(what="1, the reference")
            if name == comparison.reference_group
            else estimate(comparison.rates.get(name), "ratio"),
        )
        for name, (rows, found) in comparison.counts.items()
    ]
    yield table("", ("group", "rows", "found positive", "relative chance of being found"), rows)
