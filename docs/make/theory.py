"""Draw the figures of docs/theory.md: `python docs/make/theory.py`."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dcem.files import write_text
from dcem.paper import theory
from dcem.paper.exhibits.sensitivity import m_step_contours, unit_ticks
from dcem.report.style import FAINT, GRID, MUTED, RC, WARN, group_colour, new_figure

# Two kinds of patient and two groups; the second group is tested half as often.
EXAMPLE = theory.DiscreteModel.censored(
    p_xa=np.array([[0.3, 0.3], [0.2, 0.2]]),
    p_y_given_x=np.array([0.1, 0.5]),
    p_t_given_xa=np.array([[0.2, 0.1], [0.6, 0.3]]),
)


def sensitivity() -> Any:
    """How fast the optimum moves with t̂, beside an inverse-propensity weight."""
    figure = new_figure(7.4, 4.6)
    ax = figure.subplots()
    t = np.geomspace(1e-3, 1, 1500)
    ax.plot(t, theory.ipw_sensitivity(t), color=WARN, lw=2.4)
    ax.annotate("IPW: 1/t̂²", (0.012, 1.3e4), color=WARN, fontweight="bold")
    ax.axhline(2, color=MUTED, lw=1.2, ls=(0, (4, 3)))
    ax.annotate("bound for every Q and t̂: 2", (1.1e-3, 2.6), color=MUTED)
    for code, q in enumerate((0.1, 0.5, 0.95, 1.0)):
        slope = -theory.optimum_sensitivity(q, t)
        drawn = np.where(slope > 1e-10, slope, np.nan)  # Q = 1 is flat below t̂ = ½: no logarithm
        ax.plot(t, drawn, color=group_colour(code), lw=1.8)
        if q < 1:
            ax.annotate(
                f"Q = {q:g}", (t[0], slope[0]), xytext=(4, 4), textcoords="offset points",
                color=group_colour(code), fontweight="bold", fontsize=9.5,
            )  # fmt: skip
    ax.annotate(
        "Q = 1: zero, then\na kink at t̂ = ½", (0.51, 1.75), xytext=(0.1, 0.33), ha="center",
        color=group_colour(3), fontweight="bold", fontsize=9.5,
        arrowprops={"arrowstyle": "-", "color": group_colour(3)},
    )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlim=(1e-3, 1), ylim=(2e-3, 1e6))
    ax.set(xlabel="testing probability t̂", ylabel="|change per unit of t̂|")
    ax.set_title("DCEM's optimum answers to t̂ within a bound; an IPW weight has none")
    ax.grid(color=GRID)
    return figure


def what_em_reaches() -> Any:
    """The likelihood along EM with and without the regulariser, and where the former ends."""
    figure = new_figure(9.6, 4.2)
    left, right = figure.subplots(1, 2)
    colours = {0.0: group_colour(0), 1.0: group_colour(1)}
    starts = {"½ everywhere": np.full(2, 0.5), "the truth": EXAMPLE.p_y[:, 0]}
    for reg, name in ((0.0, "exact EM"), (1.0, "DCEM's M-step")):
        for (start, f0), dashes in zip(starts.items(), ("-", (0, (2, 1.5))), strict=True):
            path = theory.em(EXAMPLE, f0, 25, reg)
            value = [
                theory.conditional_log_likelihood(EXAMPLE, EXAMPLE.with_outcome(f)) for f in path
            ]
            left.plot(value, color=colours[reg], lw=1.8, ls=dashes, label=f"{name}, from {start}")
    left.legend(loc="lower right", fontsize=9.5)
    left.set(xlabel="EM iteration", ylabel="mean log-likelihood of the record")
    left.set_title("DCEM ends below the best likelihood")
    left.grid(axis="y", color=GRID)

    t = np.linspace(0.001, 1, 200)
    for p in (0.1, 0.3, 0.5, 0.7, 0.9):
        right.axhline(p, color=FAINT, lw=1.2, ls=(0, (4, 3)))
        right.plot(t, theory.saturated_fixed_point(p, t), color=colours[1.0], lw=1.8)
        right.annotate(f"risk {p:g}", (0.02, p), xytext=(0, -10), textcoords="offset points",
                       color=MUTED, fontsize=9)  # fmt: skip
    right.set_title("and above the true risk (dashed)")
    right.set(xlabel="testing probability t̂", ylabel="prediction at convergence")
    unit_ticks(right)
    return figure


FIGURES = {
    "theory-m-step-optimum": m_step_contours,
    "theory-sensitivity": sensitivity,
    "theory-what-em-reaches": what_em_reaches,
}


IMAGES = Path(__file__).resolve().parents[1] / "img"


def main(folder: Path = IMAGES, figures: Mapping[str, Any] = FIGURES) -> None:
    """Write figures into a folder, the same bytes each time."""
    import matplotlib

    # A page shows these as images, outside the reach of its fonts and colours: letters are drawn
    # as outlines, on white.
    look: dict[Any, Any] = {**RC, "svg.fonttype": "path", "svg.hashsalt": "dcem"}
    with matplotlib.rc_context(look):
        for name, draw in figures.items():
            stream = io.StringIO()
            metadata = {"Date": None, "Creator": None}
            draw().savefig(stream, format="svg", facecolor="white", metadata=metadata)
            path = folder / f"{name}.svg"
            write_text(path, stream.getvalue())
            print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
