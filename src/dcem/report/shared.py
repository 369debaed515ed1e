"""What documents share: findings as they list them, sections, and what made them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dcem.audit.positives_only_findings import FoundAudit
from dcem.audit.remedies import OF_SEVERAL_GROUPS, merge_findings
from dcem.audit.results import HIDDEN, Audit, MethodAdvice
from dcem.estimation.findings import ABOVE_ALL, SEVERITIES, Finding
from dcem.extras import made_with
from dcem.report import document as doc
from dcem.text import count

if TYPE_CHECKING:
    from dcem.compare.positives_only import FoundComparison
    from dcem.compare.results import TableComparison

Made = Iterable[tuple[str, str, Iterable[doc.Block]]]  # key, heading, blocks of each section


def listed_findings(found: Iterable[Finding]) -> doc.Findings:
    """Findings, one for all groups that share it, in the order of the worst of them.

    A table of eight groups has one finding "three groups are tested less", not three. Where groups
    are attributes crossed, those of each attribute alone have their own.
    """
    by_key: dict[tuple[str, str], list[Finding]] = {}
    for finding in found:
        merges = finding.key in OF_SEVERAL_GROUPS
        key = finding.key if merges else str(len(by_key)), finding.values.get("attribute", "")
        by_key.setdefault(key, []).append(finding)
    return doc.Findings(tuple(merge_findings(alike) for alike in by_key.values()))


def with_worst(
    verdict: doc.Verdict, findings: doc.Findings, said: Collection[str] = ()
) -> doc.Verdict:
    """The verdict, and above it the worst finding, if that is more serious than the answer.

    That one column carries the score stands above every answer. Findings with one of the keys
    `said` are in its sentences already: they make it as serious.
    """
    above_all = next((one for one in findings.items if one.key == ABOVE_ALL), None)
    if above_all is not None:
        others = doc.Findings(tuple(one for one in findings.items if one is not above_all))
        rest = with_worst(verdict, others, said)
        severity = rest.severity if rest.worst is None else "caution"
        return replace(rest, severity=severity, worst=above_all)
    worst = min(findings.items, key=lambda one: SEVERITIES.index(one.severity), default=None)
    if worst is None or SEVERITIES.index(worst.severity) >= SEVERITIES.index(verdict.severity):
        return verdict
    if worst.key in said:
        return replace(verdict, severity=worst.severity)
    return replace(verdict, worst=worst)


def sections(made: Made, facts: Mapping[str, str]) -> tuple[doc.Section, ...]:
    """The sections that have something to say, and at their end how it was made."""
    every = (doc.Section(key, heading, tuple(blocks)) for key, heading, blocks in made)
    last = doc.Section("made", "How it was made", (doc.Facts(facts),))
    return (*(section for section in every if section.blocks), last)


def audit_page(
    audit: Audit | FoundAudit,
    title: str,
    data: Mapping[str, str],
    opening: doc.Opening,
    made: Made,
    columns: Iterable[str],
    *,
    of: str,
    about: str = "",
) -> doc.Document:
    """The document of an audit, with or without a record of testing.

    `of` is what is counted beside the rows, and `about` said after it; `columns` are named on it.
    """
    total, column = audit.total, data.get("group", "")
    groups = f" in {len(audit.counts)} groups" if audit.grouped else ""
    groups += f" (`{column}`)" * bool(groups and column)
    some = "" if total.tested == HIDDEN else f", {count(total.tested)} {of}"
    hidden = " Counts below ten, and counts that would reveal one, are withheld." * bool(
        audit.withheld
    )
    facts = {
        **data,
        **audit.configuration,
        "learners": "; ".join(f"{what}: {who}" for what, who in audit.learners.items()),
        "versions": data.get("versions") or made_with(),
    }
    findings = listed_findings(audit.findings)
    names = [*(item.group for item in audit.counts), *columns, *audit.suspicious]
    return doc.Document(
        title=title,
        lead=f"{count(total.rows)} rows{groups}{some}.{about}{hidden}",
        opening=replace(opening, verdict=with_worst(opening.verdict, findings)),
        findings=findings,
        sections=sections(made, facts),
        footer="Made with dcem. No individual row is on this page.",
        names=frozenset(names),
        data={"made": facts, **vars(audit)},
    )


def rows_used(comparison: TableComparison | FoundComparison) -> str:
    """How many rows of a table methods were compared on."""
    used, rows = comparison.rows_used, comparison.rows
    return (
        f"{count(used)} rows"
        if used == rows
        else f"{count(used)} of {count(rows)} rows, drawn at random"
    )


def of_a_draw(comparison: TableComparison | FoundComparison) -> tuple[str, ...]:
    """That a model of all rows may be better than those judged, where only some were drawn."""
    if comparison.rows_used == comparison.rows:
        return ()
    return (
        "Not that a model fitted to all rows is no better: those judged learned from "
        f"{rows_used(comparison)}.",
    )


def comparison_page(
    comparison: TableComparison | FoundComparison,
    title: str,
    lead: str,
    opening: doc.Opening,
    findings: Iterable[Finding],
    made: Made,
    names: Iterable[str],
    *,
    by: str = "",
) -> doc.Document:
    """The document of a comparison, with or without a record of testing.

    `names` are those on it; `by` is put behind its file where it has no title.
    """
    file = comparison.data.get("file") or "a table"
    versions = ", ".join(f"{name} {version}" for name, version in comparison.versions.items())
    facts = {**comparison.data, **comparison.configuration, "versions": versions}
    return doc.Document(
        title=title or f"Methods compared on {file}{by}",
        lead=lead,
        opening=opening,
        findings=listed_findings(findings),
        sections=sections(made, facts),
        footer=f"Made with dcem {comparison.versions['dcem']}. No individual row or score is on "
        "this page.",
        names=frozenset(names),
        data={"made": facts, **vars(comparison)},
    )


def counted_rows(value: int) -> doc.Cell:
    """The cell of a count of an audit."""
    return doc.WITHHELD if value == HIDDEN else doc.Count(value)


def advice(methods: Sequence[MethodAdvice]) -> Iterator[doc.Block]:
    """Which methods are defensible, and why."""
    if not methods:
        return
    for verdict in ("defensible", "with care"):
        named = [f"`{method.name}`" for method in methods if method.verdict == verdict]
        yield doc.Text((f"{verdict.capitalize()}: {', '.join(named) or 'none'}.",))
    terms = tuple((doc.Code(m.name), f"{m.verdict}: {m.reason}") for m in methods)
    yield doc.Fold("Why", (doc.Terms(terms),))
