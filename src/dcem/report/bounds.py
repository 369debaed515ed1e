"""Bounds as blocks of a page: what they assume, for whom a decision holds, what remains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import isnan

import numpy as np

from dcem.audit.results import Audit
from dcem.compare.results import TableComparison
from dcem.estimation.bounds import ACT, BOUNDS_ASSUMPTION, FROM_KNOWN, LEAVE, OPEN, Bounds
from dcem.estimation.conformal import SET_LEVEL, Coverage
from dcem.estimation.results import EVERYBODY
from dcem.report import document as doc
from dcem.report.compare_tables import code
from dcem.report.figures import panels
from dcem.report.style import ACCENT, FAINT, INK, WARN, Drawing, in_style, new_axes
from dcem.text import number, percent

COLUMNS_TOLD = 5
HEADING = "Would decisions hold if something is unmeasured?"
LIMITS = (
    "No table can show whether a strength is realistic: you state it. The limits are for a person "
    "with these features of whom it is not yet known whether they will be tested."
)


PLAIN = "Limits as estimated, without sampling error."
WIDENED = "Limits are widened by 1.96 standard errors, so with few tests little is certain."


def assumed(found: Bounds) -> doc.Text:
    """What has to hold."""
    rests = BOUNDS_ASSUMPTION + FROM_KNOWN * found.known
    return doc.Text((f"{rests} Here gamma is {found.stated:g}. {LIMITS}",))


def people(found: Bounds, note: str = PLAIN) -> Iterator[doc.Block]:
    """For whom the decision at a risk holds; `note` says what the limits count."""
    yield _decisions(found, note)
    yield doc.Figure(partial(undecided_figure, found))
    yield doc.Figure(partial(limits_figure, found))
    if found.columns:
        strongest = sorted(found.columns.items(), key=lambda one: -one[1])[:COLUMNS_TOLD]
        columns = doc.listing(
            "How strong measured columns would be, had nobody recorded them",
            [
                {"column": doc.Name(name), "gamma, about": doc.estimate(strength, "ratio")}
                for name, strength in strongest
            ],
            note="The factor by which the odds of untested people would differ from those of "
            "tested people who are equal in all other columns, if log-odds are linear. It helps to "
            "judge gamma.",
        )
        yield doc.Fold("How strong is that?", (columns,))


def _decisions(found: Bounds, note: str) -> doc.Table:
    def part(shares: np.ndarray) -> doc.Cell:
        here = float(shares[found.at])
        return doc.Missing("too few people") if isnan(here) else doc.estimate(here, "percent")

    return doc.listing(
        f"Acting at a risk of {percent(found.cut)} or more, at gamma = {found.stated:g}",
        [
            {
                "group": doc.whose(name),
                f"certain: {ACT}": part(one.act),
                f"certain: {LEAVE}": part(one.leave),
                OPEN: part(one.open),
            }
            for name, one in found.shares.items()
        ],
        note=f"Shares of people, rounded to tens of people. {note}",
    )


def of_audit(audit: Audit) -> Iterator[doc.Block]:
    """The bounds of an audit."""
    if audit.bounds is not None:
        yield from (assumed(audit.bounds), *people(audit.bounds))


def compared_methods(comparison: TableComparison) -> Iterator[doc.Block]:
    """The bounds of a comparison: what remains of each method, and of its lead."""
    found = comparison.bounds
    if found is None:
        return
    at = found.people.at
    yield assumed(found.people)
    yield doc.listing(
        f"Methods at gamma = {found.people.stated:g}",
        [
            {
                "method": code(one.name, comparison),
                "decision right": doc.estimate(one.holds[EVERYBODY][at], "percent"),
                "decision wrong": doc.estimate(one.against[at], "percent"),
                "AUC between": _range(one.auc_low[at], one.auc_high[at]),
                "net benefit between": _range(one.benefit_low[at], one.benefit_high[at]),
                f"least lead of `{found.best}`": doc.estimate(one.lead[at], "gain")
                if one.lead
                else doc.NOTHING,
            }
            for one in found.methods
        ],
        note=f"Decisions on {comparison.decision}, against a risk of "
        f"{percent(found.people.cut)}: right or wrong whatever the unmeasured cause at this "
        "strength; for the others one cannot say. AUC, net benefit and lead: for the outcomes "
        "that are worst (or best) for each number, sampling error included.",
    )
    yield from people(found.people)


def _range(low: float, high: float) -> doc.Cell:
    return f"{number(float(low))} to {number(float(high))}"


def coverage(found: Sequence[Coverage]) -> Iterator[doc.Block]:
    """How often sets of outcomes hold the outcome, by group."""
    if not found:
        return
    yield doc.listing(
        f"How often sets of outcomes, meant to contain the true one in {percent(SET_LEVEL)}, do so",
        [
            {
                "group": doc.whose(one.group),
                "among the tested": doc.estimate(one.tested, "percent"),
                "everybody": doc.estimate(one.everybody, "percent"),
                "with the outcome": doc.estimate(one.positives, "percent"),
                "sets of both outcomes": doc.estimate(one.either, "percent"),
            }
            for one in found
        ],
        note="Conformal sets, measured on people whose labels were not used to make them. For "
        "everybody, each tested person represents others like them: right if features explain "
        "testing.",
    )


@in_style
def undecided_figure(found: Bounds) -> Drawing | None:
    """Share of people of whom one cannot say, against the strength, by group."""
    names = [name for name, one in found.shares.items() if np.isfinite(one.open).all()]
    if not names:
        return None
    grouped = len(found.shares) > 1
    looks = {name: panels.group_line(i - 1) for i, name in enumerate(found.shares) if i}
    looks[EVERYBODY] = {"color": INK, "ls": "--" if grouped else "-"}
    drawn = [name for name in names if name == EVERYBODY or list(looks).index(name) < 8]
    left_out = [name for name in found.shares if name not in drawn]
    figure, ax = new_axes(7.6, 3.8)
    for name in drawn:
        ax.plot(found.gammas, found.shares[name].open, lw=2, **looks[name])
    ax.axvline(found.stated, color=WARN, lw=1.2, ls="--")
    panels.log_marks(ax, (1, 1.5, 2, 3, 5, 10), 1, found.gammas[-1])
    ax.set_ylim(0, 1)
    for name in drawn:
        share = found.shares[name].open
        texts = [
            f"{name}: for {percent(s)} one cannot say at a strength of {g:g}"
            for g, s in zip(found.gammas, share, strict=True)
        ]
        panels.hover(ax, found.gammas, share, texts)
    ax.set(
        xlabel="strength of the unmeasured cause: largest odds ratio",
        ylabel="people for whom one cannot say",
    )
    panels.share_marks(ax.yaxis)
    panels.key(
        [panels.line(panels.shortened(name), lw=2.2, **looks[name]) for name in drawn], figure
    )
    every = found.shares[EVERYBODY].open
    return Drawing(
        figure,
        "bounds-undecided",
        "For whom one cannot say",
        f"Everybody: {percent(every[0])} at a strength of 1, {percent(every[found.at])} at "
        f"{found.stated:g}, {percent(every[-1])} at {found.gammas[-1]:g}.",
        f"One acts at a risk of {percent(found.cut)} or more. People are counted if their limits "
        "lie on both sides of it. Dashed: the stated strength."
        + f" Not drawn: {', '.join(left_out)}."
        * bool(left_out),
    )


@in_style
def limits_figure(found: Bounds) -> Drawing | None:
    """The limits of the risk of people in the order of their risk."""
    figure, ax = new_axes(7.6, 3.8)
    wide, narrow = found.bands[found.stated], found.bands[1.0]
    place = (np.arange(len(wide.risk)) + 0.5) / len(wide.risk)
    ax.fill_between(place, wide.low, wide.high, color=ACCENT, alpha=0.18, lw=0, step="mid")
    ax.fill_between(place, narrow.low, narrow.high, color=ACCENT, alpha=0.3, lw=0, step="mid")
    ax.step(place, wide.risk, color=ACCENT, lw=2, where="mid")
    ax.axhline(found.cut, color=INK, lw=1)
    ax.set(xlim=(0, 1), ylim=(0, None), xlabel="people, in the order of their risk", ylabel="risk")
    ax.grid(axis="y", color=FAINT, alpha=0.4)
    texts = [
        f"risk {percent(r)}, between {percent(low)} and {percent(high)}"
        for r, low, high in zip(wide.risk, wide.low, wide.high, strict=True)
    ]
    panels.hover(ax, place, wide.risk, texts)
    panels.share_marks(ax.xaxis, ax.yaxis)
    inner = "; darker, at 1" if (narrow.high > narrow.low).any() else ""
    return Drawing(
        figure,
        "bounds-people",
        "Everybody's risk, and its limits",
        f"From {percent(wide.risk[0])} ({percent(wide.low[0])} to {percent(wide.high[0])}) to "
        f"{percent(wide.risk[-1])} ({percent(wide.low[-1])} to {percent(wide.high[-1])}).",
        "Line: the risk at a strength of 1. Pale band: its limits at a strength of "
        f"{found.stated:g}{inner}. Horizontal line: the risk at which one acts. "
        f"Means over {len(wide.risk)} equal parts of the people.",
    )
