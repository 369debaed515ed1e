"""What the paper's text says, sentence by sentence, compared with its own figures and ours.

A claim is a sentence with the numbers printed in it, and a test of it that can be put to either
side. A test answers with the numbers it found and whether the sentence holds; a side without the
numbers has no answer. The wording of the paper is tested: "lowest" and "tightest" with no margin,
so where the text wins by a hair, so may we; "tend to" as most of the cases; "similar" generously.
A sentence about settings in general is tested at all of them that a side has. Sentences that
nobody could find wrong ("competitive", "may") are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from dcem.paper import published
from dcem.paper.drawing import Picture, heading
from dcem.paper.exhibits import claim_checks as tests
from dcem.paper.exhibits import sensitivity, summary, tables, tradeoff
from dcem.paper.sources import Found
from dcem.paper.spread import our_rows, published_spreads, spreads_of, table_spreads
from dcem.report.style import GRID, INK, MUTED, WARN, group_colour, new_figure


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper."""

    where: str
    sentence: str
    printed: str
    test: tests.Test
    on_defaults: bool = False  # ours has package defaults there: an answer, but no replication


MAIN, OTHERS, POOL = "5.1, Figure 2", "5.1, other settings", "5.1, Figure 3"
SELF, SEPSIS = "E.6, SELF", "5.2, Figure 4"
# fmt: off
CLAIMS = (
    Claim(MAIN, "lowest median ROC gap", "DCEM .030, SELF .034", tests.first("roc_gap", "median")),
    Claim(MAIN, "lowest worst-case ROC gap", "DCEM .060, tested-only .083",
          tests.first("roc_gap", "worst")),
    Claim(MAIN, "highest worst-case AUC", "DCEM .768, tested-only .623",
          tests.first("auc", "worst")),
    Claim(MAIN, "tightest range of the ROC gap", "DCEM .048, tested-only .063",
          tests.first("roc_gap", "range")),
    Claim(MAIN, "tightest range of the AUC", "DCEM .055, DragonNet .199",
          tests.first("auc", "range")),
    Claim(MAIN, "median AUC second only to tested-only", "DCEM .787, tested-only .815",
          tests.first("auc", "median", at_most=2)),
    Claim(MAIN, "far above y-obs in AUC", "+.130", tests.ahead("y-obs", 0.05)),
    Claim(MAIN, "far above SELF in AUC", "+.110", tests.ahead("self", 0.05)),
    Claim(OTHERS, "lowest median gap where q_t ≥ 1, k from 1/3 to 2", "“similar trends”",
          tests.everywhere("roc_gap", lambda at: at[2] >= 1 and 0.33 < at[1] <= 2,
                     margin=tests.SIMILAR_TREND)),
    Claim(OTHERS, "smaller median gap than y-obs where q_t < 1",
          "“mitigates bias compared to the default approach (y-obs model)”",
          tests.everywhere("roc_gap", lambda at: at[2] < 1, rival="y-obs")),
    Claim(OTHERS, "median AUC at most second where k is 1/2 to 2", "“trends are similar”",
          tests.everywhere(
              "auc", lambda at: 0.5 <= at[1] <= 2, at_most=2, margin=tests.SIMILAR_TREND)),
    Claim("5.1, causal", "other causal estimators have AUCs like tested-only's",
          "“similar discriminative performance”", tests.like_tested_only),
    Claim(POOL, "smaller mean gap than tested-only at every AUC below .875",
          ".028 / .050 at .825 to .875", tests.every_window("tested-only", 0.875, gap=False),
          on_defaults=True),
    Claim(POOL, "similar gaps above an AUC of .875", "", tests.top_window, on_defaults=True),
    Claim("E.2, ablation", "lowest median gap of the ablation", "DCEM .031, next .056",
          tests.first("roc_gap", "median", table="ablation")),
    Claim("E.2, ablation", "highest median AUC of the ablation", "DCEM .791, next .767",
          tests.first("auc", "median", table="ablation")),
    Claim("E.3, causal", "lowest median gap of the causal estimators", "DCEM .031, IPW .048",
          tests.first("roc_gap", "median", table="causal-estimators")),
    Claim("E.3, causal", "tightest range of AUC of the causal estimators", "DCEM .057",
          tests.first("auc", "range", table="causal-estimators")),
    Claim("E.3, overlap", "AUC suffers least from less overlap", "", tests.overlap_drop("auc")),
    Claim("E.3, overlap", "ROC gap suffers least from less overlap", "",
          tests.overlap_drop("roc_gap")),
    Claim("E.3, overlap", "ranges stay as tight at every overlap", "“similarly tight”",
          tests.tight_ranges),
    Claim("E.3, overlap", "ranges of causal estimators widen with less overlap", "“widens”",
          tests.causal_ranges_widen),
    Claim("E.4, temperature", "τ away from 1 tends to give larger gaps",
          "“tend to”: .051 .025 .031 .051 .071", tests.temperature_gap),
    Claim("E.4, temperature", "τ = 1 has the best worst-case AUC", ".763", tests.temperature_worst),
    Claim("E.5, start", "the start changes medians trivially", "", tests.same_start),
    Claim(SELF, "higher mean AUC than SELF at gaps below .04", "",
          tests.every_window("self", 0.04, gap=True), on_defaults=True),
    Claim(SELF, "mean AUC like SELF's at gaps above .04", "“similar AUCs”",
          tests.similar_windows("self", 0.04), on_defaults=True),
    Claim(SEPSIS, "highest median AUC", "DCEM .620, DragonNet .593",
          tests.first("auc", "median", sepsis=True)),
    Claim(SEPSIS, "median gap below five of eight baselines", "DCEM .105",
          tests.first("roc_gap", "median", at_most=4, sepsis=True)),
    Claim(SEPSIS, "group peer loss, DragonNet and group 0 have smaller median gaps",
          "DCEM .105; .070, .088, .082", tests.three_fairer),
    Claim(SEPSIS, "lowest worst-case gap", "DCEM .133, DragonNet .144",
          tests.first("roc_gap", "worst", sepsis=True)),
    Claim(SEPSIS, "highest worst-case AUC", "DCEM .584, DragonNet .574",
          tests.first("auc", "worst", sepsis=True)),
    Claim(SEPSIS, "tightest range of the gap", "DCEM .094, next .102",
          tests.first("roc_gap", "range", sepsis=True)),
    Claim(SEPSIS, "second-tightest range of AUC", "DCEM .065, DragonNet .018",
          tests.first("auc", "range", at_most=2, sepsis=True)),
)
# fmt: on


def published_evidence() -> tests.Evidence:
    """What the paper's own figures and tables say; its pooled figures are not known as numbers."""
    return tests.Evidence(
        simulation=published_spreads(published.figures(), q_y=0.5, k=1.0, q_t=2.0),
        settings=summary.published_settings(),
        sepsis=published_spreads(published.sepsis_figures(), k=4.0, q_t=1.5),
        tables={name: table_spreads(published.tables(), name) for name in tables.TITLES},
    )


def our_evidence(
    main: Found, shown: Found, grid: Found, studies: Found, sepsis: Found
) -> tests.Evidence:
    """The same from recorded runs; artificial patients prove nothing."""
    pool, overlap = tradeoff.pooled_fits(grid.rows), studies.rows
    if "benchmark" in overlap:
        overlap = overlap[overlap["benchmark"] == "overlap"]
    return tests.Evidence(
        simulation=spreads_of(our_rows(main.rows)),
        settings=summary.settings_of(our_rows(shown.rows)),
        sepsis={} if sepsis.artificial else spreads_of(our_rows(sepsis.rows)),
        tables={name: tables.both_sides(studies.rows, name)[1] for name in tables.TITLES},
        by_auc=tradeoff.windows(pool, *tradeoff.BY_AUC),
        by_gap=tradeoff.windows(pool, *tradeoff.BY_GAP),
        overlap=sensitivity.overlap_numbers(overlap),
    )


def check_claims(theirs: tests.Evidence, ours: tests.Evidence) -> pd.DataFrame:
    """Every claim with what each side answers."""
    rows = []
    for claim in CLAIMS:
        (their_text, their_holds), (our_text, our_holds) = claim.test(theirs), claim.test(ours)
        rows.append(
            {"where": claim.where, "claim": claim.sentence, "holds_if": claim.test.rule}
            | {"printed": claim.printed, "ours_on_defaults": claim.on_defaults}
            | {"published_figures": their_text, "published_holds": their_holds}
            | {"ours": our_text, "ours_holds": our_holds}
        )
    return pd.DataFrame(rows)


def claims(main: Found, shown: Found, grid: Found, studies: Found, sepsis: Found) -> Picture:
    """All claims, and on which side they hold."""
    table = check_claims(published_evidence(), our_evidence(main, shown, grid, studies, sepsis))
    figure = _draw_answers(table)
    caption = (
        "Claims of the paper's text about DCEM, put to the points of its own figures and tables, "
        "and to our runs; in grey, when a claim is taken to hold. A dash: that side has no "
        "numbers. In brackets: ours of Figure 3 and of the SELF trade-off pools this package's "
        "defaults and replicates nothing; everything else has the published choices."
    )
    missing = [
        f"{name} is not recorded."
        for name, found in (("shown.csv", shown), ("grid.csv", grid), ("tables.csv", studies))
        if found.rows.empty
    ]
    if sepsis.rows.empty or sepsis.artificial:
        missing.append("Sepsis is not recorded on real patients, whose data need credentials.")
    return Picture(figure, {"": table}, caption, (*main.notes, *missing))


def _draw_answers(table: pd.DataFrame) -> Any:
    figure = new_figure(11.6, 1.2 + 0.3 * len(table))
    ax = figure.subplots()
    marks = {True: ("✓", group_colour(0)), False: ("✗", WARN), None: ("–", MUTED)}
    for y, row in enumerate(reversed(table.to_dict("records"))):
        ax.text(0, y, row["where"], fontsize=9, color=MUTED, va="center")
        ax.text(0.14, y, row["claim"], fontsize=9.5, color=INK, va="center")
        ax.text(0.53, y, row["holds_if"], fontsize=8.5, color=MUTED, va="center")
        for x, side in ((0.88, "published_holds"), (0.95, "ours_holds")):
            mark, colour = marks[row[side]]
            if side == "ours_holds" and row["ours_on_defaults"] and row[side] is not None:
                mark = f"({mark})"
            ax.text(x, y, mark, fontsize=12, color=colour, ha="center", va="center")
        ax.axhline(y - 0.5, color=GRID, lw=0.6)
    for x, head in ((0.88, "its figures"), (0.95, "ours")):
        ax.text(x, len(table) - 0.2, head, ha="center", fontsize=9, fontweight="bold")
    ax.text(0.53, len(table) - 0.2, "holds if", fontsize=9, fontweight="bold")
    ax.set(xlim=(0, 0.98), ylim=(-0.6, len(table) + 0.5))
    ax.axis("off")
    heading(figure, "What the text says of DCEM", "large")
    figure.supxlabel(
        "✓ holds     ✗ does not     – no numbers on that side     "
        "( ) with this package's defaults, no replication", fontsize=9, color=MUTED,
    )  # fmt: skip
    return figure
