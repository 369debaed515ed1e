"""The account of a sepsis cohort: its flow diagram and the page on the quality of its data.

Everything arrives counted, with small counts already hidden; nothing is computed here. What was
built from artificial tables says so across every figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dcem.files import whole_file
from dcem.report import document as doc
from dcem.report.style import FAINT, INK, MUTED, PAPER, Drawing, group_colour, in_style, new_figure
from dcem.table.disclosure import WITHHELD
from dcem.text import decimal

_ROW, _BOX_HEIGHT = 1.0, 0.62
_LEFT_X, _LEFT_WIDTH = 0.0, 3.0
_OUT_X, _OUT_WIDTH = 3.7, 5.4
_GROUPS = ("Black", "white")
_ASIDE: dict[str, Any] = {"ha": "right", "va": "center", "color": MUTED, "fontsize": 9}


def amount(value: int | str | None) -> str:
    """A count inside a figure or a sentence."""
    return doc.on_one_line(doc.count_cell(value))


def draw_flow(flow: Mapping[str, Any]) -> Drawing:
    """How many stays are left after each criterion, and why the others left."""
    steps = flow["steps"]
    figure = new_figure(9.6, 0.62 * (len(steps) + 3))
    axes = figure.add_subplot()
    bottom = -(len(steps) + 1.35)
    axes.set(xlim=(-0.1, 9.2), ylim=(bottom, 0.5))
    axes.axis("off")
    published = [flow["all_stays"]["published"], *(s["left"]["published"] for s in steps)]
    _box(axes, _LEFT_X, 0, _LEFT_WIDTH, _count_text("ICU stays", flow["all_stays"]))
    row = 0
    for stage in flow["stages"]:
        above, row = row, row + len(stage["steps"])
        _arrow(axes, -above * _ROW, -row * _ROW)
        if len(stage["steps"]) > 1:  # numbers between would give a small one away
            middle = -(above + row) / 2 * _ROW
            text = f"− {amount(stage['removed'])} in these\n{len(stage['steps'])} steps together"
            axes.text(_LEFT_WIDTH / 2 - 0.12, middle, text, **_ASIDE)
        _box(axes, _LEFT_X, -row * _ROW, _LEFT_WIDTH, _count_text("left", steps[row - 1]["left"]))
    for row, step in enumerate(steps, start=1):
        y = -row * _ROW
        start = _LEFT_WIDTH if step["left"]["count"] != WITHHELD else _LEFT_WIDTH / 2
        axes.plot([start, _OUT_X], [y, y], color=FAINT, lw=1, zorder=0)
        known = step["removed"]["published"]
        beside = f" (published {known:,})" if known is not None else ""
        _box(axes, _OUT_X, y, _OUT_WIDTH, step["reason"] + beside, removed=step["removed"]["count"])
    study = flow["study"]
    ends = [
        (study["sepsis"]["count"], "with sepsis"),
        (study["no_sepsis"]["count"], "without"),
        *((study["groups"][group]["all"]["count"], group) for group in _GROUPS),
    ]
    summary = ", ".join(f"{amount(count)} {who}" for count, who in ends if count != WITHHELD)
    if any(count == WITHHELD for count, _ in ends):
        summary += "; the other counts are withheld"
    axes.text(_LEFT_X, -(len(steps) + 1) * _ROW, f"Study: {summary}", color=INK, va="center")
    _watermark(figure, flow["build"])
    final = amount(study["all"]["count"])
    return Drawing(
        figure=figure,
        name="cohort-flow",
        title="Flow of stays into the study",
        description=f"{amount(flow['all_stays']['count'])} ICU stays, {final} in the study. "
        + " ".join(f"{amount(s['removed']['count'])} removed: {s['reason']}." for s in steps),
        caption="Criteria apply from top to bottom. "
        + "Published counts are those of the full release under the same rule, where known."
        * any(count is not None for count in published)
        + " Steps are shown together where a number between them would reveal a small count."
        * any(len(stage["steps"]) > 1 for stage in flow["stages"]),
    )


@in_style
def draw_distributions(quality: Mapping[str, Any]) -> Drawing:
    """Each feature's distribution in both groups, in shares of the group per unit of the axis."""
    features = quality["features"]
    figure = new_figure(9.6, 9.2)
    axes = figure.subplots(5, 3).ravel()
    for ax, (name, feature) in zip(axes, features.items(), strict=False):
        for code, group in enumerate(_GROUPS):
            shown = feature["distribution"].get(group)
            if shown is not None:
                edges, shares = shown["edges"], shown["shares"]
                heights = [
                    share / (right - left)
                    for share, left, right in zip(shares, edges, edges[1:], strict=False)
                ]
                ax.stairs(heights, edges, color=group_colour(code), lw=1.6, label=group)
        if not any(feature["distribution"].values()):
            ax.text(0.5, 0.5, "too few to show", transform=ax.transAxes, ha="center", color=MUTED)
            ax.set_xticks([])
        ax.set_title(name, fontsize=9.5)
        ax.set_xlabel(feature["unit"], fontsize=8.5)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.tick_params(labelsize=8)
    for ax in axes[len(features) :]:
        ax.axis("off")
    for code, group in enumerate(_GROUPS):
        axes[-1].plot([], [], color=group_colour(code), lw=1.6, label=group)
    axes[-1].legend(loc="center", fontsize=10, labelcolor=INK, frameon=False)
    _watermark(figure, quality["build"])
    return Drawing(
        figure=figure,
        name="feature-distributions",
        title="Distributions of the features",
        description="One panel for each of the 13 features, with a curve for each group. The table "
        "below gives the median and quartiles.",
        caption="Shares of each group per unit. Values beyond the axis are counted at its ends; "
        "bins are joined until each holds at least ten stays.",
    )


def cohort_document(flow: Mapping[str, Any], quality: Mapping[str, Any]) -> doc.Document:
    """The account as a document."""
    first, left_out = _flow(flow, quality), _values(quality, flow["build"])
    return doc.Document(
        title="Sepsis cohort: flow and data quality",
        lead=_lead(flow["build"]),
        opening=None,
        findings=None,
        sections=(
            doc.Section("flow", "Who is in the study, and why the others are not", first),
            doc.Section("missing", "Missing features", (_missing(quality),)),
            doc.Section("distributions", "Distributions", _distributions(quality)),
            doc.Section("values", "Charted values that a cleaned feature leaves out", (left_out,)),
        ),
        footer="Counts of stays in the study, and of charted values in the first three hours. No "
        "individual value or identifier is on this page.",
        data={"flow": flow, "quality": quality},
    )


def _lead(build: Mapping[str, Any]) -> str:
    source = f"Built from MIMIC-III v1.4 ({build['release']} release)."
    if build["artificial"]:
        source = (
            "Built from artificial tables. No number on this page says anything about patients."
        )
    elif build["release"] == "demo":
        source = (
            f"{source[:-1]}: open data of 100 patients, all of whom died. It shows that the "
            "pipeline runs; it is not a basis for a model's performance."
        )
    hidden = "Small counts are shown: for open data only."
    if build["small_cells"] == "hidden":
        hidden = "Counts under 10 are shown as “<10”; counts that would reveal one are withheld."
    rules = f"Suspicion rule `{build['suspicion']}`, features `{build['features']}`."
    return f"{source} {rules} {hidden}"


def _share_cell(part: Mapping[str, Any]) -> doc.Cell:
    """`{"count": 1200, "share": 0.031}`."""
    if isinstance(part["count"], int) and part["share"] is not None:
        return doc.estimate(part["share"], "percent", f"{amount(part['count'])} stays")
    return doc.count_cell(part["count"])


def _flow(flow: Mapping[str, Any], quality: Mapping[str, Any]) -> tuple[doc.Block, ...]:
    study, cultured = flow["study"], quality["cultured"]
    parts = {"all": study, **{group: study["groups"][group] for group in _GROUPS}}
    labels = {"in_cohort": "all", "suspected": "infection suspected", "sofa_2": "SOFA 2 or more"}
    labels["sepsis3"] = "sepsis (both)"

    def beside_published(what: str, pairs: Mapping[str, Any]) -> doc.Table:
        rows = [
            (name, doc.count_cell(p["count"]), doc.count_cell(p["published"]))
            for name, p in pairs.items()
        ]
        return doc.table("", (what, "here", "published"), rows)

    return (
        doc.Figure(lambda: draw_flow(flow)),
        beside_published("flag on its own", flow["flags_on_their_own"]),
        beside_published(
            "of the cohort", {words: flow["cohort"][name] for name, words in labels.items()}
        ),
        doc.table(
            "",
            ("of the study", "all", "sepsis", "no sepsis", "cultured"),
            [
                (
                    name,
                    *(
                        doc.count_cell(part[kind]["count"])
                        for kind in ("all", "sepsis", "no_sepsis")
                    ),
                    _share_cell(cultured[name]),
                )
                for name, part in parts.items()
            ],
            note="Cultured: any specimen within a day of admission to the ICU. The paper reports "
            "that about 90 % were, and therefore takes the recorded outcome as the truth.",
        ),
    )


def _missing(quality: Mapping[str, Any]) -> doc.Table:
    rows = [
        {
            "feature": doc.Code(name),
            "meaning": feature["meaning"],
            "unit": feature["unit"],
            "missing": _share_cell(feature["missing"]["all"]),
            **{group: _share_cell(feature["missing"][group]) for group in _GROUPS},
        }
        for name, feature in quality["features"].items()
    ]
    return doc.listing("", rows, words=(1,))


def _distributions(quality: Mapping[str, Any]) -> tuple[doc.Block, ...]:
    rows: list[tuple[doc.Cell, ...]] = []
    for name, feature in quality["features"].items():
        for group in _GROUPS:
            found = (feature["distribution"].get(group) or {"quantiles": {}})["quantiles"]
            quantiles = (found.get(q) for q in ("0.05", "0.25", "0.5", "0.75", "0.95"))
            cells = (doc.NOTHING if q is None else str(q) for q in quantiles)
            rows.append((doc.Code(name), group, *cells))
    spreads = " ".join(
        f"Standard deviation of `{name}`: "
        f"{spread['here'] if spread['here'] is not None else 'too few'} (published, training "
        f"split: {decimal(spread['published'], 3)})."
        for name, spread in quality["standard_deviations"].items()
    )
    heads = ("feature", "group", "5 %", "25 %", "median", "75 %", "95 %")
    note = f"A quantile is given where at least ten stays lie on either side of it. {spreads}"
    return doc.Figure(lambda: draw_distributions(quality)), doc.table("", heads, rows, note=note)


def _values(quality: Mapping[str, Any], build: Mapping[str, Any]) -> doc.Table:
    used = "cleaned features: these values were left out"
    if build["features"] == "published":
        used = "features as published: these values were used"
    kinds = ("all", "error", "other quantity", "implausible", "no number")
    return doc.table(
        "",
        ("measurement", "values", "marked wrong", *kinds[2:]),
        [
            (row["meaning"], *(doc.count_cell(row[kind]) for kind in kinds))
            for row in quality["values"].values()
        ],
        note=f"This cohort has the {used}. "
        "Other quantity: alarm limits, ventilator settings, pressures in other vessels.",
    )


def save_figure(drawing: Drawing, path: Path) -> None:
    """Write a drawing as a file of its own (by its ending: svg, pdf, png) in one step."""
    with whole_file(path) as partial:
        drawing.figure.savefig(partial, format=path.suffix[1:], facecolor=PAPER)


def _count_text(what: str, pair: Mapping[str, Any]) -> str:
    known = f"   (published {pair['published']:,})" if pair["published"] is not None else ""
    return f"{amount(pair['count'])} {what}{known}"


def _arrow(axes: Any, above: float, below: float) -> None:
    axes.annotate(
        "",
        xy=(_LEFT_WIDTH / 2, below + _BOX_HEIGHT / 2),
        xytext=(_LEFT_WIDTH / 2, above - _BOX_HEIGHT / 2),
        arrowprops={"arrowstyle": "-|>", "color": MUTED, "lw": 1, "shrinkA": 0, "shrinkB": 0},
    )


def _box(
    axes: Any, x: float, y: float, width: float, text: str, *, removed: int | str | None = None
) -> None:
    """A box with a line in it; in front of the reasons for leaving, how many left."""
    from matplotlib.patches import FancyBboxPatch

    box = FancyBboxPatch(
        (x, y - _BOX_HEIGHT / 2),
        width,
        _BOX_HEIGHT,
        boxstyle="round,pad=0,rounding_size=0.08",
        mutation_aspect=0.6,
        edgecolor=MUTED if removed is None else FAINT,
        facecolor=PAPER,
        linewidth=1,
    )
    axes.add_patch(box)
    if removed is None:
        axes.text(x + width / 2, y, text, ha="center", va="center", color=INK, fontsize=9)
        return
    how_many = f"− {amount(removed)}"
    axes.text(x + 0.85, y, how_many, ha="right", va="center", color=INK, fontsize=9, weight="bold")
    axes.text(x + 1.0, y, text, ha="left", va="center", color=INK, fontsize=9)


def _watermark(figure: Any, build: Mapping[str, Any]) -> None:
    if build["artificial"]:
        figure.text(
            0.5, 0.5, "artificial", fontsize=72, color=FAINT, alpha=0.45, rotation=30,
            ha="center", va="center", zorder=10,
        )  # fmt: skip
