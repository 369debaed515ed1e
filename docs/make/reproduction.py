"""Write the tables of docs/reproduction.md from results/: `python docs/make/reproduction.py`.

The page is prose with marked places; each place is filled by the function of its name below.
A table whose results are not recorded says so.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from dcem.paper import EXHIBITS, Recorded, agreement, published
from dcem.paper.drawing import write_picture
from dcem.paper.exhibits import calibration, claims, robustness, sensitivity
from dcem.paper.exhibits import summary as summaries
from dcem.paper.exhibits import tables as appendix
from dcem.paper.exhibits import tradeoff as tradeoffs
from dcem.paper.exhibits.catalogue import ELSEWHERE, find
from dcem.paper.exhibits.claim_checks import Evidence, temperature_gap
from dcem.paper.exhibits.points import brackets
from dcem.paper.published import METHOD_NAMES, METRIC_NAMES
from dcem.paper.sources import Found
from dcem.paper.spread import NOTHING, Spread, Spreads, our_rows, published_spreads, spreads_of
from dcem.text import fraction, number

DOCS = Path(__file__).resolve().parents[1]
PAGE = DOCS / "reproduction.md"
RESULTS = DOCS.parent / "results"
PICTURES = ["figure2", "summary", "robustness"]
BLOCK = re.compile(r"(<!-- begin (\S+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def markdown(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table; cells are written as they are."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    text = "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
    return re.sub(r"\[([^]]*), ", "[\\1,\u00a0", text)  # a range is not broken over two lines


def missing(*names: str) -> str:
    """What a place says when there is nothing to put there."""
    return f"*Not recorded yet ({' and '.join(f'`results/{name}.csv`' for name in names)}).*"


class Page:
    """The places of the page, by the names of the methods."""

    def __init__(self, results: Path = RESULTS):
        self.source = Recorded(results)
        self.found = {
            exhibit.id: [self.source.rows(need) for need in exhibit.needs] for exhibit in EXHIBITS
        }

    def rows(self, id: str, place: int = 0) -> Found:
        """What was found for a need of an exhibit."""
        return self.found[id][place]

    # -- agreement with the figures and tables -------------------------------------------------

    def agreement(self) -> str:
        """Counts of the comparison by rule, and everything that is off."""
        shown = self.rows("summary")
        if shown.rows.empty:
            return missing("shown")
        table = agreement.compare_published(shown.rows)
        judged = table[table["verdict"] != "reported"]
        off = judged[judged["verdict"] != "agrees"]
        points = judged[judged["method"].isin(published.SINGLE_STAGE)]["points"].dropna()
        text = (
            f"Single-stage methods: the median distance of the twelve sorted points is at most "
            f"{number(points.max(), 4)}, and at most .001 in {(points <= 0.001).mean():.0%} of "
            f"{len(points)} comparisons. `dcem benchmark compare results/{shown.origin}`: "
            f"{len(judged) - len(off)} of {len(judged)} agree within the tolerances"
        )
        if off.empty:
            return text + "."
        rows = [
            (r.setting, METHOD_NAMES[r.method], METRIC_NAMES[r.metric], number(r.ours),
             number(r.published), r.why)
            for r in off.itertuples()
        ]  # fmt: skip
        head = ("setting", "method", "metric", "ours", "published", "why")
        return text + "; these do not:\n\n" + markdown(head, rows)

    def figure2(self) -> str:
        """All methods at q_y 1/2, k 1, q_t 2, both sides."""
        (exhibit,) = find(["k1-qt2"])
        ours = spreads_of(our_rows(self.rows(exhibit.id).rows))
        theirs = published_spreads(published.figures(), q_y=0.5, k=1.0, q_t=2.0)
        return self._sides(theirs, ours, METHOD_NAMES, METHOD_NAMES)

    def _sides(
        self,
        theirs: Spreads,
        ours: Spreads,
        names: Iterable[str],
        labels: dict[str, str],
        eleven: Spreads | None = None,
    ) -> str:
        sides = {"published": theirs, "ours": ours} | ({"ours, 11": eleven} if eleven else {})
        rows = []
        for name in names:
            cells = [
                side.get((name, metric), NOTHING)
                for metric in ("auc", "roc_gap")
                for side in sides.values()
            ]
            if not all(np.isnan(cell.median) for cell in cells):
                rows.append((labels.get(name, name), *map(brackets, cells)))
        return markdown(
            ("", *(f"{metric} {side}" for metric in ("AUC", "gap") for side in sides)), rows
        )

    def settings(self) -> str:
        """DCEM, tested-only and y-obs at every setting of the figures."""
        shown = self.rows("summary").rows
        if shown.empty:
            return missing("shown")
        ours, theirs = summaries.settings_of(our_rows(shown)), summaries.published_settings()
        rows = []
        for (q_y, k, q_t), spreads in sorted(ours.items()):
            paper = theirs.get((q_y, k, q_t), {})
            cells = []
            for metric in ("auc", "roc_gap"):
                for name in ("y-obs", "tested-only", "dcem"):
                    mine = number(spreads.get((name, metric), NOTHING).median)
                    theirs_too = paper.get((name, metric))
                    cells.append(mine + (f" ({number(theirs_too.median)})" if theirs_too else ""))
            rows.append((fraction(k), fraction(q_t), *cells))
        head = [
            f"{what} {name}" for what in ("AUC", "gap") for name in ("y-obs", "tested-only", "DCEM")
        ]
        return markdown(("k", "q_t", *head), rows)

    def tables(self) -> str:
        """The four appendix tables."""
        parts = []
        for place, (name, title) in enumerate(appendix.TITLES.items(), start=1):
            found = self.rows(f"table{place}")
            theirs, ours, names = appendix.both_sides(found.rows, name)
            labels = {row: appendix.row_name(name, row) for row in names}
            eleven = appendix.eleven(found.rows, name)
            parts.append(
                f"**Table {place}. {title}**\n\n{self._sides(theirs, ours, names, labels, eleven)}"
            )
            if not ours:
                parts.append(missing("tables"))
        return "\n\n".join(parts)

    def eleven(self) -> str:
        """What the twelfth boundary changes in the table of temperatures."""
        rows = self.rows("table3").rows
        theirs, ours, _ = appendix.both_sides(rows, "temperature")
        fewer = appendix.eleven(rows, "temperature")
        if not fewer:
            return missing("tables")
        parts = []
        for side, words in ((ours, "all twelve"), (fewer, "the eleven")):
            auc, gap = (
                max(
                    abs(side[row, metric].median - theirs[row, metric].median)
                    for row in ("0.1", "10", "100")
                )
                for metric in ("auc", "roc_gap")
            )
            gaps, _ = temperature_gap(Evidence(tables={"temperature": side}))
            parts.append(
                f"- On {words}, medians at τ = .1, 10 and 100 within {number(auc)} (AUC) and "
                f"{number(gap)} (gap) of the published; gaps {gaps}."
            )
        return "\n".join(parts)

    def dragonnet(self) -> str:
        """DragonNet at q_y 1/2, k 1, q_t 2 with the targeted term and without."""
        name = "dragonnet"
        targeted = self.source.table("dragonnet_targeted")
        ours = spreads_of(our_rows(self.rows("figure2").rows))
        sides = {
            "published figure": published_spreads(published.figures(), q_y=0.5, k=1.0, q_t=2.0),
            "ours without the term": ours,
            "ours with it": {} if targeted is None else spreads_of(our_rows(targeted)),
        }
        rows = [
            (side, *(brackets(spreads.get((name, m), NOTHING)) for m in ("auc", "roc_gap")))
            for side, spreads in sides.items()
        ]
        text = markdown(("", "AUC", "gap"), rows)
        return text if targeted is not None else f"{text}\n\n{missing('dragonnet_targeted')}"

    def dividemix(self) -> str:
        """Median AUCs of DivideMix from several seeds."""
        others = self.source.table("dividemix_chance")
        shown = our_rows(self.rows("summary").rows)
        keys = ["k", "q_t", "phase"]
        lines = []
        for (_, k, q_t), theirs in sorted(summaries.published_settings().items()):
            runs = [shown[shown["method"] == "dividemix"]] if len(shown) else []
            if others is not None:
                runs += [part for _, part in others.groupby("label")]
            runs = [run[(run["k"] - k).abs().lt(1e-3) & (run["q_t"] == q_t)] for run in runs]
            runs = [run for run in runs if len(run)]
            medians = [number(run["auc"].median()) for run in runs]
            apart = np.nan
            if len(runs) > 1:
                apart = pd.concat(runs).groupby(keys)["auc"].agg(np.ptp).max()
            first, *rest = medians or ["–"]
            paper = number(theirs["dividemix", "auc"].median)
            others_too = ", ".join(rest) or "–"
            lines.append((fraction(k), fraction(q_t), paper, first, others_too, number(apart)))
        head = ("k", "q_t", "published", "ours", "other seeds", "most apart at a boundary")
        text = markdown(head, lines)
        return text if others is not None else f"{text}\n\n{missing('dividemix_chance')}"

    def peer(self) -> str:
        """How far peer loss is from y-obs, on both sides."""
        figures = published.figures()
        wide = figures.pivot_table(
            index=["q_y", "k", "q_t", "metric"], columns="method", values="values", aggfunc="first"
        )
        theirs = max(
            np.abs(a - b).max() for a, b in zip(wide["peer-loss"], wide["y-obs"], strict=True)
        )
        text = (
            f"The largest difference between two of their sorted published points is {theirs:.4f}"
        )
        rows = our_rows(self.rows("summary").rows)
        if rows.empty or not {"peer-loss", "y-obs"} <= set(rows["method"]):
            return text + "."
        cube = rows.pivot_table(
            index=["q_y", "k", "q_t", "phase"], columns="method", values=["auc", "roc_gap"]
        )
        ours = max(
            (cube[m, "peer-loss"] - cube[m, "y-obs"]).abs().max() for m in ("auc", "roc_gap")
        )
        return f"{text}; of ours, {ours:.4f}, over {len(cube)} fits of each."

    # -- pooled and sensitivity figures --------------------------------------------------------

    def tradeoff(self) -> str:
        """Means of Figure 3 and of the SELF trade-off."""
        grid = self.rows("summary", 1)
        rows = tradeoffs.pooled_fits(grid.rows)
        if rows.empty:
            return missing("grid")
        parts = []
        for by, of, edges, methods in (tradeoffs.BY_AUC, tradeoffs.BY_GAP):
            rival = methods[0]
            common = tradeoffs.in_common(rows, methods)
            if common.empty:
                parts.append(f"*{METHOD_NAMES[rival]} is not recorded yet (`results/grid.csv`).*")
                continue
            means = tradeoffs.windows(common, by, of, edges, methods)
            lines = []
            for (low, high), part in means.groupby(["low", "high"]):
                one = part.set_index("method")
                cells = [
                    f"{number(one.loc[m, f'mean_{of}'])} (n {one.loc[m, 'n']})"
                    for m in ("dcem", rival)
                ]
                printed = [number(one.loc[m, "published_mean"]) for m in ("dcem", rival)]
                window = f"over {number(low)}" if high >= 1 else f"{number(low)} to {number(high)}"
                lines.append((window, *cells, " / ".join(printed) if "–" not in printed else ""))
            head = (f"{METRIC_NAMES[by]}", "DCEM", METHOD_NAMES[rival], "printed in the paper")
            what = f"{METRIC_NAMES[of]} at similar {METRIC_NAMES[by]}"
            every = tradeoffs.in_common(tradeoffs.pooled_fits(grid.rows, every_k=True), methods)
            cells = (
                f"{tradeoffs.n_settings(common)} of the {tradeoffs.n_settings(every)} recorded "
                f"settings, {len(common)} fits"
            )
            parts.append(f"**Mean {what}** ({cells})\n\n{markdown(head, lines)}")
        return "\n\n".join([*parts, f"Of the recorded settings, {tradeoffs.LEFT_OUT}."])

    def overlap(self) -> str:
        """Medians by slope."""
        frame = sensitivity.overlap_numbers(self.rows("figure7").rows)
        if frame.empty:
            return missing("tables")
        rows = []
        for method in sensitivity.CAUSAL:
            for metric in ("auc", "roc_gap"):
                part = frame[(frame["method"] == method) & (frame["metric"] == metric)]
                cells = {r.slope_factor: number(r.ours_median) for r in part.itertuples()}
                if cells:
                    medians = [cells.get(factor, "–") for factor in (0.25, 0.5, 1, 2, 4)]
                    rows.append((METHOD_NAMES[method], METRIC_NAMES[metric], *medians))
        return markdown(("", "median", "slope × ¼", "× ½", "× 1", "× 2", "× 4"), rows)

    def calibration(self) -> str:
        """Expected calibration error by temperature and group."""
        found = self.rows("figure8")
        if found.rows.empty:
            return missing("calibration")
        off = calibration.errors(found.rows.assign(group=found.rows["group"].astype(str)))
        rows = []
        for temperature, part in off.groupby("temperature"):
            cells = [part[part["group"] == g]["error"] for g in ("all", "0", "1")]
            rows.append((f"{temperature:g}", *(brackets(Spread.of(cell)) for cell in cells)))
        return markdown(("τ", "everybody", "group 0", "group 1"), rows)

    # -- summary, claims, robustness -----------------------------------------------------------

    def summary(self) -> str:
        """The paper's summary: of the settings a word speaks about, what is found."""
        shown, grid = self.rows("summary"), self.rows("summary", 1)
        sides = {
            "published": summaries.published_settings(),
            "ours": summaries.settings_of(our_rows(shown.rows)),
        }
        checked = summaries.statements(summaries.check_summary(sides))
        parts = [self._statements(checked)]
        over_grid = summaries.grid_settings(grid.rows)
        if over_grid:
            checked_grid = summaries.check_summary({"grid": over_grid})
            known = {name for spreads in over_grid.values() for name, _ in spreads}
            rivals = [n for n in METHOD_NAMES if n in known - {"dcem", "y-model"}]
            text = (
                f"Over {len(over_grid)} settings of the grid, package defaults on draws of their "
                f"own, against {' and '.join(METHOD_NAMES[n] for n in rivals)} alone; k 4, where "
                "everybody is tested and q_t means nothing, is left out:"
            )
            parts += [text, self._statements(summaries.statements(checked_grid))]
        else:
            parts.append("The whole grid: " + missing("grid"))
        return "\n\n".join(parts)

    def _statements(self, table: pd.DataFrame) -> str:
        spoken = table[table["settings"] > 0]
        rows = [
            (r.paper_says, r.side, f"{METRIC_NAMES[r.metric]}, {r.statistic}", r.settings,
             r.found_best, r.found_similar, r.found_worse)
            for r in spoken.sort_values("paper_says", kind="stable").itertuples()
        ]  # fmt: skip
        head = ("the paper says", "side", "by", "settings", "best", "similar", "worse")
        return markdown(head, rows)

    @cached_property
    def checked_claims(self) -> pd.DataFrame:
        """What each claim says, and whether it holds."""
        ours = claims.our_evidence(*self.found["claims"])
        return claims.check_claims(claims.published_evidence(), ours)

    def verdicts(self) -> str:
        """How many claims hold, and which do not."""
        whole = self.checked_claims
        on_defaults = whole["ours_on_defaults"]
        parts = []
        for side, table, words in (
            ("published", whole, "the paper's own figures"),
            ("ours", whole[~on_defaults], "our runs with the published choices"),
            ("ours", whole[on_defaults], "our runs with the package's defaults (no replication)"),
        ):
            holds = table[f"{side}_holds"].dropna().astype(bool)
            failing = table.loc[holds.index[~holds], ["claim", "where"]]
            text = f"- In {words}, {holds.sum()} of the {len(holds)} that can be checked hold"
            names = [f"{claim} ({where})" for claim, where in failing.itertuples(index=False)]
            parts.append(text + (f"; not: {'; '.join(names)}." if names else "."))
        return "\n".join(parts)

    def claims(self) -> str:
        """Every claim with both answers."""
        table = self.checked_claims
        marks = {True: "holds: ", False: "**does not hold**: ", None: ""}
        rows = [
            (r.where, r.claim, r.holds_if, r.printed,
             marks[r.published_holds] + r.published_figures,
             "(defaults) " * (r.ours_on_defaults and bool(r.ours))
             + marks[r.ours_holds] + (r.ours or "–"))
            for r in table.itertuples()
        ]  # fmt: skip
        head = (
            *("where", "what the text says of DCEM", "holds if", "printed", "in its figures"),
            "ours",
        )
        return markdown(head, rows)

    def paired(self) -> str:
        """Differences to DCEM over all settings, with intervals and ranks."""
        rows = our_rows(self.rows("robustness").rows)
        if rows.empty:
            return missing("shown")
        paired, order = robustness.paired_differences(rows), robustness.ranks(rows)
        whole = paired[paired["k"] == "all"]
        settings = len(rows.groupby(["q_y", "k", "q_t"]))
        lines = []
        for name in METHOD_NAMES:
            cells: list[str] = []
            for metric in ("auc", "roc_gap"):
                one = whole[(whole["method"] == name) & (whole["metric"] == metric)]
                if len(one):
                    r = one.iloc[0]
                    text = f"{number(r['difference'])} [{number(r['low'])}, {number(r['high'])}]"
                    text += " unclear" if r["says"] == "unclear" else ""
                    cells.append(text + (f" ({r['n']} settings)" if r["n"] < settings else ""))
                else:
                    cells.append("")
                rank = order[
                    (order["method"] == name)
                    & (order["metric"] == metric)
                    & (order["statistic"] == "median")
                ]
                cells.append(f"{rank['mean_rank'].iloc[0]:.1f}" if len(rank) else "")
            if any(cells):
                lines.append((METHOD_NAMES[name], *cells))
        head = ("", "AUC minus DCEM's", "mean rank", "gap minus DCEM's", "mean rank")
        return f"{settings} settings, 12 boundaries each:\n\n{markdown(head, lines)}"

    def seeds(self) -> str:
        """Medians over independent draws, with intervals."""
        table = robustness.over_seeds(robustness.independent(self.rows("robustness", 1).rows))
        if table.empty:
            return missing("seeds")
        lines = []
        for (_, k, q_t), part in table.groupby(["q_y", "k", "q_t"]):
            for name in METHOD_NAMES:
                one = part[part["method"] == name].set_index("metric")
                if one.empty:
                    continue
                cells = []
                for metric in ("auc", "roc_gap"):
                    r = one.loc[metric]
                    cells.append(_interval(r, "median"))
                    cells.append("" if name == "dcem" else _interval(r, "minus_dcem"))
                lines.append((fraction(k), fraction(q_t), METHOD_NAMES[name], *cells))
        head = ("k", "q_t", "", "AUC", "minus DCEM's", "gap", "minus DCEM's")
        return markdown(head, lines)

    def starts(self) -> str:
        """What the first pseudo-labels decide."""
        path = RESULTS / "dcem_schedules.csv"
        table = pd.read_csv(path)
        table = table[(table["k"] == 1) & (table["q_t"] == 2) & (table["q_y"] == 0.5)]
        rows = []
        for model, part in table.groupby("model", sort=False):
            spreads = spreads_of(part.assign(method=model))
            iterations = part["n_iter"].dropna()
            count = (
                f"{iterations.min():.0f} to {iterations.max():.0f}"
                if part["method"].iloc[0] == "dcem"
                else ""
            )
            rows.append(
                (model, brackets(spreads[model, "auc"]), brackets(spreads[model, "roc_gap"]), count)
            )
        text = markdown(("", "AUC", "gap", "EM iterations"), rows)
        return "\n\n".join(filter(None, (text, self._again(table))))

    def _again(self, table: pd.DataFrame) -> str:
        """How far the same configurations are from each other in table 4 and in this table."""
        here = table.set_index(["model", "phase"])
        there = appendix.rows_of_table(self.rows("table4").rows, "initialization")
        medians, points = [], []
        for model, label in (
            ("published", "random"),
            ("published, Algorithm 1", "algorithm-1"),
            ("published, tested-only weights", "tested-only"),
        ):
            one = here.loc[model]
            two = there[there["label"] == label].set_index("phase") if len(there) else there
            if two.empty:
                return ""
            both = [frame[["auc", "roc_gap"]] for frame in (one, two)]
            medians.append((both[0].median() - both[1].median()).abs())
            points.append((both[0] - both[1]).abs().max())
        median, point = (pd.DataFrame(one).max().map(number) for one in (medians, points))
        return (
            "The first three are the rows of table 4, the first also the DCEM of Figure 2, trained "
            "a second time on the same data and kind of card, in fleets of another size. So this "
            f"is the noise of a run: medians differ by up to {median['auc']} in AUC and "
            f"{median['roc_gap']} in gap, single boundaries by up to {point['auc']} and "
            f"{point['roc_gap']}."
        )

    def exhibits(self) -> str:
        """Every exhibit and where ours is recorded."""
        rows = []
        for one in EXHIBITS:
            origins = dict.fromkeys(f.origin for f in self.found[one.id] if f.origin)
            ours = ", ".join(f"`{name}`" for name in origins)
            rows.append(
                (
                    f"`{one.id}`",
                    one.title,
                    ours or ("a formula" if not one.needs else "not recorded"),
                )
            )
        rows += [(f"`{name}`", why, "") for name, why in ELSEWHERE.items()]
        return markdown(("exhibit", "", "ours from"), rows)


def _interval(row: pd.Series, name: str) -> str:
    return f"{number(row[name])} [{number(row[f'{name}_low'])}, {number(row[f'{name}_high'])}]"


def page(text: str, places: Page) -> str:
    """The page with every marked place filled."""

    def fill(match: re.Match[str]) -> str:
        make: Callable[[], str] = getattr(places, match.group(2))
        return f"{match.group(1)}\n{make()}\n\n{match.group(3)}"

    return BLOCK.sub(fill, text)


def draw(folder: Path, results: Path = RESULTS) -> None:
    """The pictures of the page."""
    source = Recorded(results)
    for exhibit in find(PICTURES):
        picture = exhibit.picture([source.rows(need) for need in exhibit.needs])
        write_picture(replace(picture, numbers={}), folder, f"reproduction-{exhibit.name}", ["png"])


if __name__ == "__main__":
    draw(DOCS / "img")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), Page()), encoding="utf-8")
    print(f"wrote {PAGE.name}")
