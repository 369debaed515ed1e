"""Deciders in pictures: how much each of them differs, and what those who test more find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dcem.audit.results import Audit
from dcem.estimation.deciders import DeciderEffect
from dcem.report.cells import said
from dcem.report.figures.panels import share_marks, shortened
from dcem.report.style import ACCENT, FAINT, INK, MUTED, Drawing, in_style, new_figure, tell
from dcem.text import decimal, points


@in_style
def effects(audit: Audit) -> Drawing | None:
    """Each decider's rate against what features foretell, and what is found with it."""
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
        tell(mark, [f"{name}: {said(one.shrunken, 'points')}, as seen {points(one.testing.value)}"])
    _names(left, shown)
    left.axhline(0, color=INK, lw=1)
    left.set_xticks([])
    left.set_xlabel("deciders, from the lowest rate to the highest")
    left.set_ylabel("share tested, against what features foretell")
    right.plot([one.testing.value for one in shown], [one.found for one in shown], "o", ms=4.5,
               color=ACCENT, alpha=0.75)  # fmt: skip
    slope = found.one_more_test
    if slope.estimable and found.testing.p_value < 0.05:
        ends = [min(one.testing.value for one in shown), max(one.testing.value for one in shown)]
        right.plot(ends, [slope.value * end for end in ends], color=INK, lw=1.2)
    right.set_xlabel("share tested, likewise")
    right.set_ylabel("share found positive, likewise")
    share_marks(left.yaxis, right.xaxis, right.yaxis)
    spread = found.testing.deviation
    return Drawing(
        figure,
        "decider-effects",
        "How much hangs on who decides",
        f"{found.number} deciders; the standard deviation of their rates at equal features is "
        f"{decimal(100 * spread.value, 1)} percentage points.",
        "Left: each decider's rate of testing minus what the features of their people foretell; "
        "hollow as seen, filled drawn in by as much as it is noise, with 95 % intervals; coloured "
        "where the interval leaves zero out. Right: the same against what is found positive, and "
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
            shortened(one.decider), (place, end), xytext=(0, 5 if low else -5),
            textcoords="offset points", rotation=90, ha="center", va="bottom" if low else "top",
            fontsize=8.5, color=INK,
        )  # fmt: skip
