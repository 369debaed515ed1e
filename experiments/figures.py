"""Figures of the documentation from recorded runs: `python experiments/figures.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd

from _record import RESULTS
from dcem.report.style import FAINT, GRID, INK, MUTED, RC, group_colour, new_figure

IMAGES = RESULTS.parent / "docs" / "img"


def engine_steps() -> None:
    """Time of one M-step against the number of networks trained as one."""
    table = pd.read_csv(RESULTS / "engine_steps.csv")
    figure = new_figure(6.4, 3.6)
    axes = figure.add_subplot()
    for number, (kind, part) in enumerate(table.groupby("kind", sort=False)):
        axes.plot(part.networks, part.ms_per_step, "o-", color=group_colour(number), ms=4)
        last = part.iloc[-1]
        axes.annotate(
            kind, (last.networks, last.ms_per_step), (6, -3), textcoords="offset points",
            color=group_colour(number), fontsize=9,
        )  # fmt: skip
    axes.axhline(9.4, color=MUTED, lw=0.8, ls=":")
    axes.text(1, 10.2, "one network, the paper's loop: 9.4 ms", color=MUTED, fontsize=9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(0.9, 4200)
    axes.set_xticks(table.networks.unique(), table.networks.unique())
    axes.set_xlabel("networks trained as one (20,000 rows each)")
    axes.set_ylabel("milliseconds a step")
    axes.grid(axis="y")
    save(figure, "engine-steps")


def schedules() -> None:
    """Fast against published schedule, phase by phase, at the five settings."""
    table = pd.read_csv(RESULTS / "dcem_schedules.csv")
    settings = sorted(set(zip(table.q_y, table.k, table.q_t, strict=True)))
    figure = new_figure(8.2, 4.4)
    panels = figure.subplots(2, len(settings), sharey="row")
    models = {
        "tested-only, published": ("tested-only", 2),
        "published": ("DCEM, published", 1),
        "fast": ("DCEM, fast", 0),
    }
    for column, (q_y, k, q_t) in enumerate(settings):
        part = table[(table.q_y == q_y) & (table.k == k) & (table.q_t == q_t)]
        for row, metric in enumerate(("auc", "roc_gap")):
            axes = panels[row, column]
            for place, (model, (_, colour)) in enumerate(models.items()):
                values = part[part.model == model].sort_values("phase")[metric]
                spots = place + np.linspace(-0.25, 0.25, len(values))
                axes.plot(spots, values, "o", ms=3, color=group_colour(colour), alpha=0.8)
                axes.plot([place - 0.35, place + 0.35], [values.median()] * 2, color=INK, lw=1.5)
            axes.set_xticks(
                range(3), [name for name, _ in models.values()], rotation=90, fontsize=8
            )
            axes.grid(axis="y")
            if row == 0:
                axes.set_title(f"q_y {q_y:g}, k {k:g}, q_t {q_t:g}", fontsize=8.5)
                axes.set_xticks([])
    panels[0, 0].set_ylabel("AUC")
    panels[1, 0].set_ylabel("ROC gap")
    save(figure, "schedules")


def rows() -> None:
    """Time and memory of a default fit against the number of rows."""
    path = RESULTS / "rows.csv"
    if not path.exists():
        return
    table = pd.read_csv(path)
    figure = new_figure(7.2, 3.2)
    left, right = figure.subplots(1, 2)
    left.plot(table.rows, table.fit_seconds, "o-", color=group_colour(0), ms=4)
    left.set(xscale="log", yscale="log", xlabel="rows (20 features)", ylabel="seconds to fit")
    right.plot(table.rows, table.peak_mb, "o-", color=group_colour(0), ms=4, label="peak")
    right.plot(table.rows, table.table_mb, "o--", color=group_colour(1), ms=4, label="the table")
    right.set(xscale="log", xlabel="rows (20 features)", ylabel="megabytes")
    right.legend()
    for axes in (left, right):
        axes.grid(axis="y")
    save(figure, "rows")


class Held(NamedTuple):
    """What of a recorded run is drawn, and of which of its rows."""

    run: str
    by: list[str]  # columns that name a row
    measures: dict[str, str]  # column -> its name in the picture
    true: dict[str, Any]  # world in which what is stated is true -> its row
    false: dict[str, Any]  # and in which it is not


ONE_RATE = ("misses more in one group", "one sensitivity for both")
HELD = {
    "held-wrong-tests": Held(
        "wrong_tests.csv",
        ["world", "told"],
        {"prevalence_holds": "prevalence", "auc_holds": "AUC", "gap_holds": "ROC gap"},
        {
            "misses half": ("misses half", "the rates"),
            "the same, told an interval": ("misses half", "an interval"),
            "misses more in one group": ("misses more in one group", "the rates"),
            "misses and false alarms": ("misses and false alarms", "the rates"),
        },
        {
            "misses half, told nothing": ("misses half", "nothing"),
            "misses half, told .1 too high": ("misses half", ".1 too high"),
            "never errs, told .8": ("never errs", "sensitivity .8"),
            "misses more in one group, told one rate": ONE_RATE,
            "misses most where risk is low": (
                "misses half, most where risk is low",
                "the mean rate",
            ),
        },
    ),
    "held-known-rates": Held(
        "known_rates.csv",
        ["world", "told"],
        {"prevalence_holds": "prevalence, 2nd group", "auc_holds": "AUC", "gap_holds": "ROC gap"},
        {
            "odds of the untested 2": ("one ratio of 2", "the rate"),
            "2, told an interval": ("one ratio of 2", "an interval"),
            "odds of .5": ("one ratio of .5", "the rate"),
            "1,500 people": ("a ratio of 2, 1,500 people", "the rate"),
            "12,000 people": ("a ratio of 2, 12,000 people", "the rate"),
            "a rare outcome": ("a ratio of 2, rare outcome", "the rate"),
            "odds of 1": ("features explain testing", "the rate"),
        },
        {
            "odds of 2, told nothing": ("one ratio of 2", "nothing"),
            "odds of 2, told a third too much": ("one ratio of 2", "a third too high"),
            "odds of 1, told a third too much": ("features explain testing", "a third too high"),
            "groups differ, told one rate": ("2.5 in one group, .6 in the other", "the rate"),
            "an unmeasured cause, no one ratio": ("an unmeasured cause", "the rate"),
        },
    ),
    "held-no-record": Held(
        "no_record.csv",
        ["world"],
        {"holds": "ratio of prevalences", "rate_holds": "ratio of rates found"},
        {
            "two groups": "two groups",
            "1,000 people": "two groups, 1,000 rows",
            "five unequal groups": "five unequal groups",
            "a rare outcome": "rare: 3 %",
            "three rows per person": "three rows per person",
            "not logistic": "alike, and not logistic",
        },
        {
            "a feature counts more in one group": "a feature counts more in one group",
            "a group at higher risk at equal features": "a group at higher risk at equal features",
            "found by a feature, in all groups": "found by a feature, alike in all groups",
            "found by a feature, in one group": "found by a feature, in one group",
        },
    ),
    "held-deciders": Held(
        "deciders.csv",
        ["world"],
        {"prevalence_holds": "bounds of the prevalence", "dr_holds": "doubly robust interval"},
        {
            "deciders see more": "see more",
            "1,500 people": "see more, 1,500 people",
            "100 deciders": "see more, 100 deciders",
            "three deciders": "see more, three deciders",
            "little spread": "see more, little spread",
            "features explain testing": "features explain testing",
            "a feature says who decides": "people by features",
        },
        {
            "sicker people to some deciders": "sicker people to some",
            "sicker, the more a decider tests": "sicker people to those who test more",
        },
    ),
    "held-bounds": Held(
        "bounds.csv",
        ["world", "told", "rows"],
        {"held": "everybody", "held_highest_risk": "the tenth at highest risk"},
        {
            "like the tested, told 1": ("features explain testing", 1.0, 6000),
            "twice the odds, told 2": ("untested at the upper end", 2.0, 6000),
            "twice or half, told 2": ("up for some, down for others", 2.0, 6000),
            "a hidden cause, told 1.5": ("a hidden cause", 1.5, 6000),
            "a rare outcome, told 2": ("a rare outcome", 2.0, 6000),
            "prevalence stated, told 1": (
                "twice the odds, prevalence stated",
                1.0,
                6000,
            ),
            "rates of a test stated, told 1": ("a test that errs, rates stated", 1.0, 6000),
        },
        {
            "five times the odds, told 1.5": ("stronger than told", 1.5, 6000),
            "the same, 1,500 people": ("stronger than told", 1.5, 1500),
            "prevalence a third too high, told 1": (
                "stated prevalence a third too high",
                1.0,
                6000,
            ),
            "true, but the risk is hard to learn": ("bends that are hard to learn", 2.0, 6000),
        },
    ),
}


def held() -> None:
    """How often intervals and bounds hold the truth where a statement is true, and where not."""
    for name, (run, by, measures, true, false) in HELD.items():
        table = pd.read_csv(RESULTS / run).set_index(by)
        worlds, first_false = true | false, len(true)
        figure = new_figure(7.4, 1.3 + 0.3 * len(worlds))
        axes = figure.add_subplot()
        places = [place + 0.8 * (place >= first_false) for place in range(len(worlds))]
        for number, (column, measure) in enumerate(measures.items()):
            shares = [100 * table[column].loc[row].item() for row in worlds.values()]
            offset = 0.14 * (number - (len(measures) - 1) / 2)
            axes.plot(
                shares, np.array(places) + offset, "osD"[number], ms=6, clip_on=False,
                color=group_colour(number), label=measure, zorder=3,
            )  # fmt: skip
        axes.axvspan(90, 98, color=GRID, zorder=0)
        axes.axhline(places[first_false] - 0.9, color=FAINT, lw=1)
        for place, said in ((0, "what is stated is true"), (places[first_false], "it is not")):
            axes.text(1, place - 0.45, said, color=MUTED, fontsize=9, style="italic", va="center")
        axes.set_yticks(places, list(worlds))
        axes.set(xlim=(-2, 102), ylim=(places[-1] + 0.6, -0.9))
        axes.set_xticks(range(0, 101, 25), [f"{tick} %" for tick in range(0, 101, 25)])
        of = "people whose risk lies within their limits"
        of = of if "bounds" in name else "tables in which the truth is held"
        axes.set_xlabel(f"{of} (shaded: 90 to 98 %)")
        axes.grid(axis="y", color=GRID, lw=0.6)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)
        save(figure, name)


def save(figure: object, name: str) -> None:
    """Write an SVG that is the same from run to run."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(RC | {"svg.hashsalt": name}):
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None}, facecolor="white")  # type: ignore[attr-defined]
    print("wrote", Path("docs/img") / f"{name}.svg")


if __name__ == "__main__":
    with matplotlib.rc_context(RC):
        engine_steps()
        schedules()
        rows()
        held()
