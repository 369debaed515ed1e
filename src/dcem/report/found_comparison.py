"""Methods compared by found positives, as a document."""

from __future__ import annotations

from collections.abc import Iterator

from dcem.compare.found import FoundComparison, FoundMethod
from dcem.report.document import (
    NOTHING,
    Block,
    Cell,
    Code,
    Document,
    DotRow,
    Dots,
    Fold,
    KeyNumber,
    Missing,
    Name,
    Opening,
    Terms,
    Verdict,
    counted,
    estimate,
    listing,
    table,
)
from dcem.report.found import unknown
from dcem.report.parts import listed_findings, made_by, rows_used, sections
from dcem.text import number, of_100

METHOD_LIMITS = (
    "Not how good a method is for the outcome: only which of them ranks better.",
    "Not whether scores are risks, nor what a threshold of them means.",
    "Not that features have nothing to do with being found: a method that learns who is found from "
    "them looks better than it is.",
)


def found_comparison_document(comparison: FoundComparison, title: str = "") -> Document:
    """The comparison of methods by found positives as a document."""
    file, facts = comparison.data.get("file", ""), made_by(comparison)
    made = (
        ("methods", "Methods side by side", _side_by_side(comparison)),
        ("outcome", "What it could mean for the outcome", _for_outcome(comparison)),
        ("found", "Who was found", _counts(comparison)),
        ("unknown", "What cannot be known", unknown(comparison.stated_rates)),
    )
    return Document(
        title=title or f"Methods compared on {file or 'a table'}, by found positives",
        lead=f"{len(comparison.methods)} methods on {rows_used(comparison)}. There is no record of "
        "who was tested. Every score is of somebody the model was not fitted to "
        f"({comparison.folds}-fold cross-validation).",
        opening=_best(comparison),
        findings=listed_findings(comparison.findings),
        sections=sections(made, facts),
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
    rates = {name: estimate(rate, "ratio") for name, rate in comparison.rates.items()}
    rates[comparison.reference_group] = Missing(what="1, the reference")
    rows = [
        {
            "group": Name(name),
            "rows": counted(rows),
            "found positive": counted(found),
            "relative chance of being found": rates.get(name, NOTHING),
        }
        for name, (rows, found) in comparison.counts.items()
    ]
    yield listing("", rows)
