"""What found positives say of groups and of methods, as documents: no record of testing.

Nothing here speaks of who is tested: nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isinf

from dcem.audit.positives_only_findings import (
    FOUND_ASSUMPTION,
    UNKNOWN,
    FoundAudit,
    FoundGroup,
    without_small_found,
)
from dcem.compare.positives_only import FoundComparison
from dcem.report import document as doc
from dcem.report.shared import advice, audit_page, comparison_page, counted_rows, rows_used
from dcem.text import group, number, of_100, p_value, ratio

LIMITS = (
    "Not how common the outcome is in any group: only how the groups compare.",
    "Not why a group is found less often: fewer tests, worse tests and fewer visits look alike.",
    f"Not that its assumption holds. {FOUND_ASSUMPTION}",
)


METHOD_LIMITS = (
    "Not how good a method is for the outcome: only which of them ranks better.",
    "Not whether scores are risks, nor what a threshold on them means.",
    "Not that features have nothing to do with being found: a method that learns who is found "
    "looks better than it is.",
)


def found_document(
    audit: FoundAudit,
    title: str = "Audit of found positives",
    data: Mapping[str, str] | None = None,
    *,
    small_cells: bool = False,
) -> doc.Document:
    """The audit as a document; counts under ten are withheld unless `small_cells` is true."""
    if not (small_cells or audit.withheld):
        audit = without_small_found(audit)
    columns = [one.column for one in audit.check.departures] if audit.check else []
    made = (
        ("found", "Who was found", _found_section(audit)),
        ("relative", "How groups compare", _relative_section(audit)),
        ("check", "Do features affect being found alike in all groups?", _check_section(audit)),
        (
            "sensitivity",
            "What if being found depends on the features?",
            _sensitivity_section(audit),
        ),
        ("range", "How common could the outcome be?", _prevalence_range(audit)),
        ("methods", "Which methods are defensible here?", advice(audit.methods)),
        ("unknown", "What cannot be known", unknown(audit.stated_rates)),
    )
    about = " There is no record of who was tested."
    return audit_page(
        audit,
        title,
        data or {},
        _audit_opening(audit),
        made,
        columns,
        of="found positive",
        about=about,
    )


def unknown(stated: str) -> Iterator[doc.Block]:
    """What cannot be known, with and without a stated rate of being found."""
    yield doc.Text(UNKNOWN[2:] if stated else UNKNOWN, bullets=True)


def _audit_opening(audit: FoundAudit) -> doc.Opening:
    known = [one for one in audit.groups if one.prevalence.estimable]
    limits = LIMITS[1:] if audit.stated_rates else LIMITS
    if not known:
        verdict = doc.Verdict(
            "caution",
            "Found positives alone tell nothing here",
            (
                "Without a record of testing only groups can be compared, and there are no two "
                "groups in which enough people were found.",
            ),
            "Nothing can be estimated.",
        )
        numbers = (doc.KeyNumber(doc.estimate(audit.found, "percent"), "found positive"),)
        return doc.Opening(verdict, numbers, None, limits)
    estimable = [one for one in known if one.rate.estimable]  # others would give counts away
    most = max(estimable or known, key=lambda one: abs(_log(one)))
    to = group(audit.reference)
    clear = [one for one in estimable if one.rate_p_value < 0.05]
    fails = any(one.key == "groups-unlike" for one in audit.findings)
    answer = "No group's positives are clearly found more or less often than those of others"
    if clear:
        most = max(clear, key=lambda one: abs(_log(one)))
        word = "less" if most.rate.value < 1 else "more"
        answer = f"Positives of {group(most.group)} are found {word} often than those of {to}"
    if fails:
        answer = "The table contradicts what comparing groups assumes"
    sentences = [
        f"A positive of {group(most.group)} is {most.rate:ratio} times as likely to be found as "
        f"one of {to}."
        if most.rate.estimable
        else "How often positives of each group are found is withheld: it would give small counts "
        "away.",
        f"The outcome is {most.prevalence:ratio} times as common in group {most.group} as in "
        f"group {audit.reference}"
        + (f"; found shares alone say {most.crude:ratio}." if most.crude.estimable else "."),
    ]
    severity = "serious" if clear or fails else "note"
    return doc.Opening(
        doc.Verdict(severity, answer, tuple(sentences), f"Right if: {FOUND_ASSUMPTION}"),
        (
            doc.KeyNumber(doc.estimate(audit.found, "percent"), "found positive, of everybody"),
            doc.KeyNumber(
                doc.estimate(most.rate, "ratio"),
                f"times as often a positive of {group(most.group)} is found, against {to}",
            ),
            doc.KeyNumber(
                doc.estimate(most.prevalence, "ratio"),
                f"times as common the outcome is in group {most.group}, against group "
                f"{audit.reference}",
            ),
        ),
        doc.Dots(
            f"Groups against {audit.reference}",
            ("found share", "chance that a positive is found", "how common the outcome is"),
            tuple(
                doc.DotRow(
                    doc.whose(one.group),
                    tuple(doc.estimate(e, "ratio") for e in (one.crude, one.rate, one.prevalence)),
                )
                for one in known
            ),
            "Ratios; 1 is no difference. The first is about the product of the other two.",
        ),
        limits,
    )


def _log(one: FoundGroup) -> float:
    return one.rate.value - 1 if one.rate.value >= 1 else 1 - 1 / one.rate.value


def _found_section(audit: FoundAudit) -> Iterator[doc.Block]:
    by_name = {one.group: one for one in audit.groups}
    rows = [
        {
            "group": doc.Name(item.group),
            "rows": counted_rows(item.rows),
            "found positive": counted_rows(item.tested),
            "share found": doc.estimate(by_name[item.group].found, "percent"),
        }
        for item in audit.counts
    ]
    yield doc.listing("", rows)


def _relative_section(audit: FoundAudit) -> Iterator[doc.Block]:
    if not audit.grouped:
        return
    rows = [
        {
            "group": doc.Name(one.group),
            "found share": doc.estimate(one.crude, "ratio"),
            "chance of being found": doc.estimate(one.rate, "ratio"),
            "prevalence": doc.estimate(one.prevalence, "ratio"),
            "by flexible models": doc.estimate(one.without_form, "ratio"),
        }
        for one in audit.groups
        if one.group != audit.reference
    ]
    yield doc.listing(
        f"Relative to group {audit.reference}",
        rows,
        note=f"Ratios, with 95 % intervals. {FOUND_ASSUMPTION} Prevalence is that of a logistic "
        "model of the features, by maximum likelihood; the last column is the same without that "
        "form, the chance of being found compared over the features that both groups have.",
    )


def _check_section(audit: FoundAudit) -> Iterator[doc.Block]:
    check = audit.check
    if check is None:
        return
    answer = "No clear exception" if check.p_value >= 0.05 else "At least one does not"
    better = "predicts better" if check.loss.low > 0 else "does not clearly predict better"
    worse = (
        f" On held-out people a model of each group alone {better}: the log loss of the common one "
        f"exceeds its own by {check.loss:ratio} thousandths per row."
    )
    yield doc.Text((f"{answer} ({p_value(check.p_value)}, all features and groups).{worse}",))
    rows = [
        (
            doc.Name(one.column),
            doc.Name(one.group),
            "more" if one.more else "less",
            p_value(one.p_value),
        )
        for one in check.departures
    ]
    heads = ("column", "group", "where it is high, found", "p-value, corrected")
    parts = [doc.table("The clearest departures", heads, rows, words=(2, 3))]
    points = [
        (doc.Name(curve.group), *(doc.estimate(v, "percent") for v in (a, b, low, high)))
        for curve in check.curves
        for a, b, low, high in zip(curve.predicted, curve.found, curve.low, curve.high, strict=True)
    ]
    if points:
        parts.append(
            doc.table(
                "Share found against what the common model predicts, by fifths of it",
                ("group", "predicted", "found", "from", "to"),
                points,
                note="For people whom the model was not fitted to.",
            )
        )
    yield doc.Fold("Which columns, in which groups", tuple(parts))


def _sensitivity_section(audit: FoundAudit) -> Iterator[doc.Block]:
    found = audit.sensitivity
    if found is None:
        return
    for name, stands in found.breakdown.items():
        factor, both = stands.with_interval, f"{group(name)} and {group(audit.reference)}"
        said = f"It is not clear that {both} differ at all."
        if isinf(factor):
            said = f"Whatever the factor, the outcome is not equally common in {both}."
        elif factor > 1:
            since = f"From a factor of {ratio(factor)} on"
            said = f"{since}, the outcome could be equally common in {both}."
        yield doc.Text((said,))
    names = list(found.low)
    rows = [
        (
            ratio(float(factor)),
            *(f"{ratio(found.low[name][at])} to {ratio(found.high[name][at])}" for name in names),
        )
        for at, factor in enumerate(found.factor)
    ]
    ranges = doc.table(
        f"Prevalence against group {audit.reference}",
        ("factor", *names),
        rows,
        words=tuple(range(1, len(names) + 1)),
        note="If the chance of being found varies with the features by at most this factor, up and "
        "down, alike in all groups. Sampling error is included. Nothing in the table rules out any "
        "of it.",
    )
    yield doc.Fold("The range at each factor", (ranges,))


def _prevalence_range(audit: FoundAudit) -> Iterator[doc.Block]:
    if audit.stated_rates:
        yield doc.listing(
            "",
            [
                {
                    "group": doc.Name(one.group),
                    "found": doc.estimate(one.found, "percent"),
                    "have the outcome": doc.estimate(one.at_stated, "percent"),
                }
                for one in audit.groups
            ],
            note=f"Stated share of positives that is found: {audit.stated_rates}. The intervals "
            "include its uncertainty. Right if, within a group, whether a positive is found has "
            "nothing to do with the features.",
        )
        return
    yield doc.listing(
        "",
        [
            {
                "group": doc.Name(one.group),
                "found": doc.share(one.found.value),
                "at least": doc.share(one.at_least),
                "at most": doc.share(one.at_most),
            }
            for one in audit.groups
        ],
        note="Bounds of prevalence, at 95 %, if being found has nothing to do with the features. "
        "At least: everybody found has it, and of the group found most often no more than all are "
        "found. At most: where people are found most often, no more than all have it. "
        "Between the two, nothing is known.",
    )


# -- methods compared -----------------------------------------------------------------------------


def found_comparison_document(comparison: FoundComparison, title: str = "") -> doc.Document:
    """The comparison of methods by found positives as a document."""
    made = (
        ("methods", "Methods side by side", _side_by_side(comparison)),
        ("outcome", "What it could mean for the outcome", _for_outcome(comparison)),
        ("found", "Who was found", _counts_section(comparison)),
        ("unknown", "What cannot be known", unknown(comparison.stated_rates)),
    )
    lead = (
        f"{len(comparison.methods)} methods on {rows_used(comparison)}. There is no record of who "
        "was tested. Every score is for somebody the model was not fitted to "
        f"({comparison.folds}-fold cross-validation)."
    )
    opening, names = _best(comparison), comparison.counts
    findings, by = comparison.findings, ", by found positives"
    return comparison_page(comparison, title, lead, opening, findings, made, names, by=by)


def _best(comparison: FoundComparison) -> doc.Opening:
    standing = next(iter(comparison.standings.values()), None)
    stated = bool(comparison.stated_rates)
    by_name = {method.name: method for method in comparison.methods}
    best = by_name[standing.best] if standing else comparison.methods[0]
    said = next((one for one in comparison.findings if one.key == "best"), None)
    if standing is None or said is None:
        why = (f"Why: {best.within.reason}.",)
        answer = "Nothing can be said about these methods"
        verdict = doc.Verdict("serious", answer, why, "Nothing can be estimated.")
        return doc.Opening(verdict, (), None, METHOD_LIMITS)
    times, about = of_100(best.within.value, best.within.low, best.within.high)
    with_it = "with the outcome and one without" if stated else "found and one not"
    sentences = (
        said.headline,
        f"Of two people of one group, one {with_it}, `{best.name}` ranks the first higher {times} "
        f"times in 100 ({about}; by chance, 50).",
    )
    doubtful = not best.within.low > 0.5
    answer = f"Use `{best.name}`: it ranks best, as far as found positives tell"
    whom = "for the outcome" if stated else "against the found"
    if standing.level_with:
        answer = f"`{best.name}` is ahead, not clearly"
    if doubtful:
        answer = "No method can be distinguished from chance"
    return doc.Opening(
        doc.Verdict("caution" if doubtful else "note", answer, sentences, said.text),
        (
            doc.KeyNumber(doc.estimate(best.within), f"AUC of `{best.name}` {whom}, within groups"),
            doc.KeyNumber(
                doc.estimate(best.across),
                "the same of all together" if stated else "the same across groups, against anybody",
            ),
        ),
        doc.Dots(
            "How well methods rank",
            ("within groups", "across groups"),
            tuple(
                doc.DotRow(
                    doc.Code(method.name, about=method.in_short),
                    (doc.estimate(method.within), doc.estimate(method.across)),
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


def _side_by_side(comparison: FoundComparison) -> Iterator[doc.Block]:
    known = any(method.truth is not None for method in comparison.methods)
    groups = list(comparison.prevalence)
    rows = [
        (
            doc.Code(method.name),
            *(doc.estimate(method.groups.get(name)) for name in groups),
            *([doc.estimate(method.truth)] if known else []),
        )
        for method in comparison.methods
    ]
    heads = ("method", *groups, *["against the truth"] * known)
    whom = "for the outcome" if comparison.stated_rates else "against the found"
    yield doc.table(f"AUC {whom}, by group", heads, rows)
    if comparison.stated_rates:
        whose = list(dict.fromkeys(name for m in comparison.methods for name in m.calibration))
        yield doc.table(
            "Mean score minus risk, by group",
            ("method", *whose),
            [
                (
                    doc.Code(m.name),
                    *(doc.estimate(m.calibration.get(name), "points") for name in whose),
                )
                for m in comparison.methods
            ],
            note="Above 0, risk is overstated. Only calibrated scores, such as those of "
            "`ensemble`, are meant to be risks.",
        )
    terms = tuple((doc.Code(m.name), m.what_it_does) for m in comparison.methods)
    yield doc.Fold("What the methods do", (doc.Terms(terms),))


def _for_outcome(comparison: FoundComparison) -> Iterator[doc.Block]:
    groups = list(comparison.prevalence)

    def between(ends: tuple[float, float] | None) -> doc.Cell:
        return doc.NOTHING if ends is None else f"{number(ends[0], 2)} to {number(ends[1], 2)}"

    if groups and not comparison.stated_rates:
        yield doc.table(
            "Limits of the AUC for the outcome, by group",
            ("method", *groups),
            [
                (doc.Code(method.name), *(between(method.outcome.get(name)) for name in groups))
                for method in comparison.methods
            ],
            words=tuple(range(1, len(groups) + 1)),
            note="The AUC for the outcome grows with prevalence, which is unknown: the low end is "
            "for a prevalence as low as the found share, the high end for one as high as the "
            "table allows. The order of the methods does not change.",
        )


def _counts_section(comparison: FoundComparison) -> Iterator[doc.Block]:
    rates = {name: doc.estimate(rate, "ratio") for name, rate in comparison.rates.items()}
    rates[comparison.reference_group] = doc.Missing(what="1, the reference")
    rows = [
        {
            "group": doc.Name(name),
            "rows": doc.count_cell(rows),
            "found positive": doc.count_cell(found),
            "relative chance of being found": rates.get(name, doc.NOTHING),
        }
        for name, (rows, found) in comparison.counts.items()
    ]
    yield doc.listing("", rows)
