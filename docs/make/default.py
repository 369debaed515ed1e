"""Fill the tables of docs/default.md from what experiments/default.py recorded."""

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from dcem.text import number

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "default.md"
PARTS = ("network", "boost", "forest", "linear", "smooth")
METHODS = ("ensemble", *PARTS, "plain average", "dcem", "tested-only")
CODE = ("dcem", "tested-only")
BLOCK = "<!-- {name} -->\n{text}<!-- end -->"


def table(rows: list[list[str]]) -> str:
    """The rows in Markdown, the first as the head."""
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cells(found: pd.DataFrame) -> list[str]:
    """`median [worst]` of each method, the highest in bold."""
    best = found.round(3).max()
    texts = []
    for median, worst in found.to_numpy():
        pair = number(median), f"[{number(worst)}]"
        bold = [round(one, 3) == top for one, top in zip((median, worst), best, strict=True)]
        if all(bold):
            texts.append(f"**{' '.join(pair)}**")
        else:
            texts.append(" ".join(f"**{a}**" if b else a for a, b in zip(pair, bold, strict=True)))
    return texts


def auc(found: pd.DataFrame) -> pd.DataFrame:
    """Median and worst AUC by task and method, tasks in their order."""
    by = found.groupby(["task", "method"], sort=False)["auc"]
    # a median halfway between two fifth digits is not rounded by chance
    return by.agg(["median", "min"]).round(9)


def compared(found: pd.DataFrame, order: Callable[[str], object]) -> str:
    """A row per task, the mean of tables after the last of them, the simulation below."""
    by = auc(found)
    tasks = sorted(by.index.unique("task"), key=order)
    real = [task for task in tasks if not task.startswith("simulation")]
    head = ["", *(f"`{name}`" if name in CODE else name for name in METHODS)]
    rows = [[task, *cells(by.loc[task].loc[list(METHODS)])] for task in real]
    mean = by.loc[real].groupby("method").mean().loc[list(METHODS)]
    rows.append(["*mean of tables*", *cells(mean)])
    for task in tasks[len(real) :]:
        rows.append([task.replace("0.", "."), *cells(by.loc[task].loc[list(METHODS)])])
    return table([head, *rows])


def ablation(*records: pd.DataFrame) -> str:
    """What is left without each part: the three sets of tables, the simulation."""
    at_hand, packages, fresh = map(auc, records)
    simulated = at_hand.index.get_level_values("task").str.startswith("simulation")
    means = [
        rows.groupby("method").mean()
        for rows in (at_hand[~simulated], packages, fresh, at_hand[simulated])
    ]
    names = {"ensemble": "all five"} | {f"without {part}": f"without `{part}`" for part in PARTS}
    names |= {"plain average": "all five, each a fifth"}
    rows = [
        [text, *(f"{number(of['median'][name])} [{number(of['min'][name])}]" for of in means)]
        for name, text in names.items()
    ]
    return table([["", "ten tables", "fourteen", "fifteen", "simulation"], *rows])


def page() -> str:
    """The page, its tables made anew."""
    records = [
        pd.read_csv(ROOT / "results" / f"default{end}.csv") for end in ("", "_packages", "_fresh")
    ]
    settings = ("0.5, 1, 2", "0.5, 0.5, 2", "0.25, 1, 3")
    order = [
        "credit default", "readmission", "long stay", "prediabetes", "diabetes", "digits",
        "clusters 1", "clusters 2", "curved 1", "curved 2",
        *(f"simulation {setting}" for setting in settings),
    ]  # fmt: skip
    text = PAGE.read_text(encoding="utf-8")
    for name, made in {
        "tables": compared(records[0], order.index),
        "packages": compared(records[1], str),
        "fresh": compared(records[2], str),
        "ablation": ablation(*records),
    }.items():
        block = re.compile(re.escape(f"<!-- {name} -->\n") + r".*?<!-- end -->", re.DOTALL)
        text, times = block.subn(lambda _, n=name, m=made: BLOCK.format(name=n, text=m), text)
        assert times == 1, name
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
