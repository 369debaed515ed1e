"""Methods judged by who decides, in the page of a comparison."""

from __future__ import annotations

from collections.abc import Iterator

from dcem.compare.results import JudgedByDeciders, TableComparison
from dcem.report.audit_deciders import ends
from dcem.report.compare_tables import code
from dcem.report.document import NOTHING, Block, Fold, Text, estimate, table
from dcem.text import percent


def by_deciders(comparison: TableComparison) -> Iterator[Block]:
    """Bounds that need no features to explain testing, and contraction."""
    found = comparison.deciders
    if found is None:
        return
    if not found.methods:
        yield Text((f"Nothing can be told: {found.reason}.",))
        return
    judged = {one.name: one.judgements.get("dr") for one in comparison.methods}
    yield table(
        "AUC over all risks that deciders allow",
        ("method", "at least", "at most", "doubly robust"),
        [
            (
                code(name, comparison),
                *ends(one.auc, "score"),
                estimate(dr.auc) if (dr := judged[name]) is not None else NOTHING,
            )
            for name, one in found.methods.items()
        ],
        note="If, at equal features, who decides has nothing to do with the outcome; features need "
        "not explain who is tested. The truth lies between the outer limits 95 times in 100.",
    )
    yield from _contraction(comparison, found)
    yield Fold("Acting, and the lead of the best", tuple(_more(comparison, found)))


def _contraction(comparison: TableComparison, found: JudgedByDeciders) -> Iterator[Block]:
    levels = next(iter(found.methods.values())).contraction
    if not levels:
        return
    deciders = [
        estimate(one.deciders, "percent", f"{percent(one.rate.value)} tested") for one in levels
    ]
    yield table(
        "Found with as many tests as deciders make (contraction)",
        ("method", *(f"level “{one.level}”" for one in levels)),
        [
            ("the deciders themselves", *deciders),
            *(
                (
                    code(name, comparison),
                    *(estimate(level.score, "percent") for level in one.contraction),
                )
                for name, one in found.methods.items()
            ),
        ],
        note="Share of everybody found positive if, of the tests of those who make the most, only "
        "those of the highest scores are kept, as many as deciders of each level make. It is what "
        "score and decider agree on: of people who are tested by nobody it says nothing.",
    )


def _more(comparison: TableComparison, found: JudgedByDeciders) -> Iterator[Block]:
    yield table(
        f"Acting on {comparison.decision}, by who decides",
        (
            "method",
            "true positive rate at least",
            "at most",
            "precision at least",
            "at most",
        ),
        [
            (code(name, comparison), *ends(one.true_positive_rate), *ends(one.precision))
            for name, one in found.methods.items()
        ],
    )
    if found.ahead_of:
        yield table(
            f"AUC of `{found.best}` minus that of others, at the same risks",
            ("method", "at least", "at most"),
            [(code(name, comparison), *ends(one, "gain")) for name, one in found.ahead_of.items()],
            note="Over all risks that deciders allow: above 0 at both ends, the lead does not hang "
            "on features explaining testing.",
        )
