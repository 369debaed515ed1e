"""Figures of the documentation from recorded runs: `python experiments/figures.py`."""

from __future__ import annotations

from pathlib import Path

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


# Picture -> recorded run, what is drawn of it (column: name), and its rows: what they are called,
# which they are, and whether what was stated is true there.
HELD: dict[str, tuple[str, dict[str, str], list[tuple[str, str, bool]]]] = {
    "held-wrong-tests": (
        "wrong_tests.csv",
        {"prevalence_holds": "prevalence", "auc_holds": "AUC", "gap_holds": "ROC gap"},
        [
            ("misses half", "world == 'misses half' and told == 'the rates'", True),
            (
                "the same, told an interval",
                "world == 'misses half' and told == 'an interval'",
                True,
            ),
            (
                "misses more in one group",
                "world == 'misses more in one group' and told == 'the rates'",
                True,
            ),
            ("misses and false alarms", "world == 'misses and false alarms'", True),
            ("misses half, told nothing", "world == 'misses half' and told == 'nothing'", False),
            ("misses half, told .1 too high", "told == '.1 too high'", False),
            ("never errs, told .8", "told == 'sensitivity .8'", False),
            (
                "misses more in one group, told one rate",
                "told == 'one sensitivity for both'",
                False,
            ),
            ("misses most where risk is low", "told == 'the mean rate'", False),
        ],
    ),
    "held-known-rates": (
        "known_rates.csv",
        {"prevalence_holds": "prevalence, 2nd group", "auc_holds": "AUC", "gap_holds": "ROC gap"},
        [
            ("odds of the untested 2", "world == 'one ratio of 2' and told == 'the rate'", True),
            ("2, told an interval", "world == 'one ratio of 2' and told == 'an interval'", True),
            ("odds of .5", "world == 'one ratio of .5' and told == 'the rate'", True),
            ("1,500 people", "world.str.contains('1,500') and told == 'the rate'", True),
            ("12,000 people", "world.str.contains('12,000') and told == 'the rate'", True),
            ("a rare outcome", "world.str.contains('rare') and told == 'the rate'", True),
            ("odds of 1", "world == 'features explain testing' and told == 'the rate'", True),
            ("odds of 2, told nothing", "world == 'one ratio of 2' and told == 'nothing'", False),
            (
                "odds of 2, told a third too much",
                "world == 'one ratio of 2' and told == 'a third too high'",
                False,
            ),
            (
                "odds of 1, told a third too much",
                "world == 'features explain testing' and told == 'a third too high'",
                False,
            ),
            (
                "groups differ, told one rate",
                "world.str.startswith('2.5') and told == 'the rate'",
                False,
            ),
            (
                "an unmeasured cause, no one ratio",
                "world == 'an unmeasured cause' and told == 'the rate'",
                False,
            ),
        ],
    ),
    "held-no-record": (
        "no_record.csv",
        {"holds": "ratio of prevalences", "rate_holds": "ratio of rates found"},
        [
            ("two groups", "world == 'two groups'", True),
            ("1,000 people", "world == 'two groups, 1,000 rows'", True),
            ("five unequal groups", "world == 'five unequal groups'", True),
            ("a rare outcome", "world == 'rare: 3 %'", True),
            ("three rows per person", "world == 'three rows per person'", True),
            ("not logistic", "world == 'alike, and not logistic'", True),
            ("a feature counts more in one group", "world.str.startswith('a feature')", False),
            ("a group at higher risk at equal features", "world.str.startswith('a group')", False),
            (
                "found by a feature, in all groups",
                "world.str.endswith('alike in all groups')",
                False,
            ),
            (
                "found by a feature, in one group",
                "world.str.endswith('in one group') and alarm > .9 and ratio < 1.4",
                False,
            ),
        ],
    ),
    "held-deciders": (
        "deciders.csv",
        {"prevalence_holds": "bounds of the prevalence", "dr_holds": "doubly robust interval"},
        [
            ("deciders see more", "world == 'see more'", True),
            ("1,500 people", "world == 'see more, 1,500 people'", True),
            ("100 deciders", "world == 'see more, 100 deciders'", True),
            ("three deciders", "world == 'see more, three deciders'", True),
            ("little spread", "world == 'see more, little spread'", True),
            ("features explain testing", "world == 'features explain testing'", True),
            ("a feature says who decides", "world == 'people by features'", True),
            ("sicker people to some deciders", "world == 'sicker people to some'", False),
            ("sicker, the more a decider tests", "world.str.endswith('test more')", False),
        ],
    ),
    "held-bounds": (
        "bounds.csv",
        {"held": "everybody", "held_highest_risk": "the tenth at highest risk"},
        [
            (
                "like the tested, told 1",
                "world == 'features explain testing' and told == 1 and rows == 6000",
                True,
            ),
            (
                "twice the odds, told 2",
                "world == 'untested at the upper end' and rows == 6000",
                True,
            ),
            ("twice or half, told 2", "world.str.startswith('up for') and rows == 6000", True),
            ("a hidden cause, told 1.5", "world == 'a hidden cause' and rows == 6000", True),
            ("a rare outcome, told 2", "world == 'a rare outcome' and rows == 6000", True),
            (
                "twice the odds, prevalence stated, told 1",
                "world == 'twice the odds, prevalence stated' and rows == 6000",
                True,
            ),
            (
                "a test that errs, rates stated, told 1",
                "world.str.startswith('a test that errs') and told == 1 and rows == 6000",
                True,
            ),
            (
                "five times the odds, told 1.5",
                "world == 'stronger than told' and rows == 6000",
                False,
            ),
            ("the same, 1,500 people", "world == 'stronger than told' and rows == 1500", False),
            (
                "prevalence stated a third too high, told 1",
                "world.str.endswith('a third too high') and rows == 6000",
                False,
            ),
            (
                "true, but the risk is hard to learn",
                "world.str.startswith('bends') and rows == 6000",
                False,
            ),
        ],
    ),
}


def held() -> None:
    """How often intervals and bounds hold the truth where a statement is true, and where not."""
    for name, (run, measures, worlds) in HELD.items():
        table = pd.read_csv(RESULTS / run)
        figure = new_figure(7.4, 1.3 + 0.3 * len(worlds))
        axes = figure.add_subplot()
        first_false = sum(true for *_, true in worlds)
        places = [place + 0.8 * (place >= first_false) for place in range(len(worlds))]
        for number, (column, measure) in enumerate(measures.items()):
            shares = [100 * table.query(which)[column].item() for _, which, _ in worlds]
            offset = 0.14 * (number - (len(measures) - 1) / 2)
            axes.plot(
                shares, np.array(places) + offset, "osD"[number], ms=6, clip_on=False,
                color=group_colour(number), label=measure, zorder=3,
            )  # fmt: skip
        axes.axvspan(90, 98, color=GRID, zorder=0)
        axes.axhline(places[first_false] - 0.9, color=FAINT, lw=1)
        for place, said in ((0, "what is stated is true"), (places[first_false], "it is not")):
            axes.text(1, place - 0.45, said, color=MUTED, fontsize=9, style="italic", va="center")
        axes.set_yticks(places, [label for label, *_ in worlds])
        axes.set(xlim=(-2, 102), ylim=(places[-1] + 0.6, -0.9))
        axes.set_xticks(range(0, 101, 25), [f"{tick} %" for tick in range(0, 101, 25)])
        of = (
            "people whose risk lies within their limits"
            if "bounds" in name
            else "tables in which the truth is held"
        )
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
