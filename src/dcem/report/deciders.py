"""Deciders in pages: how they differ, what they bound, what was checked, and whom methods find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from dcem.audit.results import Audit, Deciders
from dcem.compare.results import JudgedByDeciders, TableComparison
from dcem.estimation.by_decider import Check
from dcem.estimation.deciders import DeciderEffect, Variation
from dcem.estimation.instrument import DECIDERS_ASSUMPTION, LEVELS, Ends
from dcem.report import document as doc
from dcem.report.compare_tables import code
from dcem.report.figures import panels
from dcem.report.style import ACCENT, FAINT, INK, MUTED, Drawing, in_style, new_figure, tell
from dcem.text import capitalised, decimal, p_value, percent, points

OURS = {name for names in LEVELS.values() for name in names}  # other levels are single deciders
CHECKED = {
    "tested": "as tests grow, no kind of person is tested less",
    "found": "as tests grow, no kind of person is found positive less often",
    "cleared": "as tests grow, no kind of person is found negative less often",
}


def deciders(audit: Audit) -> Iterator[doc.Block]:
    """Where it is known who decided."""
    found = audit.deciders
    if found is None:
        return
    if found.reason:
        yield doc.Text((f"{capitalised(found.reason)}.",))
    if found.compared is None:
        return
    yield doc.Figure(partial(effects, audit))
    if not found.levels:
        return
    yield _bounds_table(audit, found)
    yield doc.Fold("Levels of deciders", (_levels(found),))
    yield doc.Fold("Checks of the deciders", (_checks(found),))


def ends(bounds: Ends, form: str = "percent") -> tuple[doc.Cell, doc.Cell]:
    """At least and at most."""
    return doc.estimate(bounds.low, form), doc.estimate(bounds.high, form)


def _bounds_table(audit: Audit, found: Deciders) -> doc.Block:
    robust = {item.group: item.doubly_robust for item in audit.prevalence}
    rows: list[tuple[doc.Cell, ...]] = [
        (doc.Name(name), *ends(bounds), doc.estimate(robust.get(name), "percent"))
        for name, bounds in found.prevalence.items()
    ]
    if found.auc is not None:
        rows.append(
            ("AUC of the model of what a test would show", *ends(found.auc, "score"), doc.NOTHING)
        )
    rests = "the known prevalence holds" if audit.known else "features explain who is tested"
    return doc.table(
        "How common the outcome is, by who decides",
        ("group", "at least", "at most", "doubly robust"),
        rows,
        note=f"{DECIDERS_ASSUMPTION}: then nobody's risk is below what any decider finds positive "
        "in people like them, or above what any decider does not find negative. Each end has its "
        "interval; the truth lies between the outer limits 95 times in 100. Doubly robust: if, "
        f"instead, {rests}.",
    )


def _levels(found: Deciders) -> doc.Block:
    return doc.listing(
        "",
        [
            {
                "deciders": one.name if one.name in OURS else doc.Name(one.name),
                "tested": doc.estimate(one.tested, "percent"),
                "found positive, of everybody": doc.estimate(one.found, "percent"),
            }
            for one in found.levels
        ],
        note="Deciders grouped by how much they have tested of other people, and what they "
        "would find among everybody, by their features. Where they hardly differ, their order is "
        "chance.",
    )


def _checks(found: Deciders) -> doc.Block:
    compared = found.compared
    assert compared is not None
    rows: list[tuple[doc.Cell, ...]] = [
        ("testing varies no more than by chance", *_spread(compared.testing)),
        ("deciders see people of the same risk, by features", *_spread(compared.mix)),
        ("equal rates of testing find equally many", *_spread(compared.at_equal_rates)),
        *(
            (f"one order from strict to lenient: {name} against others", *_spread(one))
            for name, one in compared.order.items()
        ),
        *(
            (f"bounds do not cross: {name}", *_check_cells(one))
            for name, one in found.exclusion.items()
        ),
        *((CHECKED[name], *_check_cells(one)) for name, one in found.monotone.items()),
    ]
    return doc.table(
        "",
        ("what should hold", "standard deviation, or by how much it fails", "p-value"),
        rows,
        note="Standard deviations are between deciders, without sampling noise. By how much "
        "something fails is measured on people for whom models fitted to others predict a failure; "
        "p-values are corrected for the number of groups or kinds. None of this can show that the "
        "assumption holds.",
    )


def _spread(one: Variation) -> tuple[doc.Cell, doc.Cell]:
    if not one.deviation.estimable:
        return doc.Missing(one.deviation.reason), doc.NOTHING
    return doc.estimate(one.deviation, "percent"), p_value(one.p_value)


def _check_cells(one: Check) -> tuple[doc.Cell, doc.Cell]:
    if not one.violation.estimable:
        return "predicted for hardly anybody", doc.NOTHING
    return doc.estimate(one.violation, "points"), p_value(one.p_value)


def by_deciders(comparison: TableComparison) -> Iterator[doc.Block]:
    """Bounds that need no features to explain testing, and contraction."""
    found = comparison.deciders
    if found is None:
        return
    if not found.methods:
        yield doc.Text((f"Nothing can be said: {found.reason}.",))
        return
    robust = {
        one.name: one.judgements["dr"].auc for one in comparison.methods if "dr" in one.judgements
    }
    yield doc.table(
        "AUC over all risks that deciders allow",
        ("method", "at least", "at most", "doubly robust"),
        [
            (code(name, comparison), *ends(one.auc, "score"), doc.estimate(robust.get(name)))
            for name, one in found.methods.items()
        ],
        note="If, at equal features, who decides has nothing to do with the outcome; features need "
        "not explain who is tested. The truth lies between the outer limits 95 times in 100.",
    )
    yield from _contraction(comparison, found)
    yield doc.Fold("Acting, and the lead of the best", tuple(_more(comparison, found)))


def _contraction(comparison: TableComparison, found: JudgedByDeciders) -> Iterator[doc.Block]:
    levels = next(iter(found.methods.values())).contraction
    if not levels:
        return
    themselves = [
        doc.estimate(one.deciders, "percent", f"{percent(one.rate.value)} tested") for one in levels
    ]
    yield doc.table(
        "Found with as many tests as deciders make (contraction)",
        ("method", *(f"level “{one.level}”" for one in levels)),
        [
            ("the deciders themselves", *themselves),
            *(
                (
                    code(name, comparison),
                    *(doc.estimate(level.score, "percent") for level in one.contraction),
                )
                for name, one in found.methods.items()
            ),
        ],
        note="Share of everybody found positive if, of the tests of those who make the most, only "
        "those with the highest scores are kept, as many as deciders of each level make. It covers "
        "tests on which score and decider agree, and says nothing about people whom nobody tests.",
    )


def _more(comparison: TableComparison, found: JudgedByDeciders) -> Iterator[doc.Block]:
    heads = ("true positive rate at least", "at most", "precision at least", "at most")
    yield doc.table(
        f"Acting on {comparison.decision}, by who decides",
        ("method", *heads),
        [
            (code(name, comparison), *ends(one.true_positive_rate), *ends(one.precision))
            for name, one in found.methods.items()
        ],
    )
    if found.ahead_of:
        yield doc.table(
            f"AUC of `{found.best}` minus that of others, at the same risks",
            ("method", "at least", "at most"),
            [(code(name, comparison), *ends(one, "gain")) for name, one in found.ahead_of.items()],
            note="Over all risks that deciders allow. If both ends are above 0, the lead does not "
            "depend on features explaining testing.",
        )


@in_style
def effects(audit: Audit) -> Drawing | None:
    """Each decider's rate against what features predict, and what is found with it."""
    found = audit.deciders and audit.deciders.compared
    if not found or not found.effects:
        return None
    shown = found.effects
    figure = new_figure(9.2, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    for place, one in enumerate(shown):
        clear = one.shrunken.excludes(0)
        colour = ACCENT if clear else MUTED
        left.vlines(place, one.shrunken.low, one.shrunken.high, color=colour, lw=1.6)
        left.plot(place, one.testing.value, "o", mfc="none", mec=FAINT, ms=4, zorder=1)
        (mark,) = left.plot(place, one.shrunken.value, "o", color=colour, ms=4.5)
        name = one.decider or "a decider"
        drawn_in = doc.in_sentence(one.shrunken, "points")
        tell(mark, [f"{name}: {drawn_in}, as seen {points(one.testing.value)}"])
    _names(left, shown)
    left.axhline(0, color=INK, lw=1)
    left.set_xticks([])
    left.set_xlabel("deciders, from the lowest rate to the highest")
    left.set_ylabel("share tested, against what features predict")
    right.plot([one.testing.value for one in shown], [one.found for one in shown], "o", ms=4.5,
               color=ACCENT, alpha=0.75)  # fmt: skip
    slope = found.one_more_test
    if slope.estimable and found.testing.p_value < 0.05:
        ends = [min(one.testing.value for one in shown), max(one.testing.value for one in shown)]
        right.plot(ends, [slope.value * end for end in ends], color=INK, lw=1.2)
    right.set_xlabel("share tested, likewise")
    right.set_ylabel("share found positive, likewise")
    panels.share_marks(left.yaxis, right.xaxis, right.yaxis)
    spread = found.testing.deviation
    return Drawing(
        figure,
        "decider-effects",
        "How much depends on who decides",
        f"{found.number} deciders; the standard deviation of their rates at equal features is "
        f"{decimal(100 * spread.value, 1)} percentage points.",
        "Left: each decider's rate of testing minus what the features of their people predict; "
        "hollow: as observed; filled: shrunk for noise, with 95 % intervals; coloured where the "
        "interval excludes zero. Right: the same against the share found positive, and "
        "what one more test finds (the line). Deciders of the same height but far above or below "
        "the line choose better or worse, or see other people. Deciders of whom fewer than ten "
        "people are on any side are left out.",
    )


def _names(ax: Any, shown: Sequence[DeciderEffect]) -> None:
    """The names of deciders that may be named, beside their marks."""
    many = len(shown) > 12
    for place, one in enumerate(shown):
        if not one.decider or (many and 3 <= place < len(shown) - 3):
            continue
        low = place < len(shown) / 2
        end = one.shrunken.high if low else one.shrunken.low
        ax.annotate(
            panels.shortened(one.decider), (place, end), xytext=(0, 5 if low else -5),
            textcoords="offset points", rotation=90, ha="center", va="bottom" if low else "top",
            fontsize=8.5, color=INK,
        )  # fmt: skip
