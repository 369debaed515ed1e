"""Would the tests notice a wrong sign? Small changes to the code, and which of them go unseen.

    python experiments/mutations.py run                       (400 changes, all cores)
    python experiments/mutations.py run --sample 20 --jobs 1 --room estimation
    python experiments/mutations.py show

Each change turns one sign, comparison, connective or number of `estimation/`, `metrics/` or
`audit/` into another. The tests of these three rooms are then run until one fails, those of the
changed file's own room first. A change that no test notices is a *survivor*: either a test is
missing, or the change makes no difference (`docs/reliability.md` says which).
"""

from __future__ import annotations

import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

from _record import CORES, command, record

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("estimation", "metrics", "audit")
LIMIT_S = 400  # a change that makes the tests run for ever is noticed, too

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.USub: ast.UAdd,
}


def places(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Any]]:
    """Node, field and new value of every change; annotations and text are left alone."""
    annotations = {
        id(inner)
        for node in ast.walk(tree)
        for outer in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if outer is not None
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if id(node) in annotations:
            continue
        if isinstance(node, ast.BinOp | ast.BoolOp | ast.UnaryOp) and type(node.op) in SWAPS:
            yield node, "op", SWAPS[type(node.op)]()
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            yield node, "ops", [SWAPS[type(node.ops[0])](), *node.ops[1:]]
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, "value", 2 * node.value if node.value not in (0, 1) else 1 - node.value


def changed(text: str, number: int) -> tuple[str, int, str, str]:
    """A module with its change of this number, the line, and the expression before and after."""
    tree = ast.parse(text)
    node, field, value = list(places(tree))[number]
    before = ast.unparse(node)
    setattr(node, field, value)
    return ast.unparse(tree), node.lineno, before, ast.unparse(node)  # type: ignore[attr-defined]


def try_one(spec: tuple[str, int | None]) -> dict[str, Any]:
    """Write a change (None: none) into this worker's copy of the project, and run the tests."""
    name, number = spec
    copy = Path(tempfile.gettempdir()) / f"mutations-{os.getpid()}"
    if not copy.exists():
        for part in ("src", "tests", "docs"):
            shutil.copytree(ROOT / part, copy / part)
        shutil.copy(ROOT / "pyproject.toml", copy)
    path = copy / "src" / "dcem" / name
    original = (ROOT / "src" / "dcem" / name).read_text()
    text, line, before, after = (
        (original, 0, "", "") if number is None else changed(original, number)
    )
    room = name.split("/")[0]
    rooms = [room, *(other for other in ROOMS if other != room)]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-W", "ignore"]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    paths = os.pathsep.join([str(copy / "src"), os.environ.get("PYTHONPATH", "")])
    path.write_text(text)
    began = time.perf_counter()
    try:
        code: int | str = subprocess.run(
            [*command, *(f"tests/{one}" for one in rooms)],
            cwd=copy,
            env={**os.environ, **threads, "PYTHONPATH": paths},
            capture_output=True,
            timeout=LIMIT_S,
        ).returncode
    except subprocess.TimeoutExpired:
        code = "too long"
    path.write_text(original)
    return {
        "file": name,
        "line": line,
        "before": before[:100],
        "after": after[:100],
        "noticed": code != 0,
        "seconds": round(time.perf_counter() - began, 1),
    }


def run(out: Path, room: list[str], sample: int, jobs: int, seed: int, minutes: float) -> None:
    """Try a sample of all changes, and record what was tried before the time was up."""
    began = time.perf_counter()
    source = ROOT / "src" / "dcem"
    specs = [
        (str(path.relative_to(source)), number)
        for one in room or ROOMS
        for path in sorted((source / one).glob("*.py"))
        for number in range(len(list(places(ast.parse(path.read_text())))))
    ]
    random.Random(seed).shuffle(specs)
    if try_one((specs[0][0], None))["noticed"]:
        raise SystemExit("The tests fail without any change: nothing can be told from them.")
    rows = []
    with get_context("spawn").Pool(jobs) as pool:
        for row in pool.imap_unordered(try_one, specs[:sample]):
            rows.append(row)
            print(f"{len(rows)}/{sample}", "noticed " if row["noticed"] else "SURVIVED", row)
            if time.perf_counter() - began > 60 * minutes:
                break
        pool.terminate()
    rows.sort(key=lambda row: (row["file"], row["line"]))
    record("mutations", rows, out, time.perf_counter() - began, possible=len(specs))


def show(out: Path) -> None:
    """How many changes are noticed in each room, and the survivors."""
    table = pd.read_csv(out / "mutations.csv")
    room = table["file"].str.split("/").str[0]
    print(table.groupby(room)["noticed"].agg(["size", "sum", "mean"]).round(3).to_string())
    for row in table[~table["noticed"]].itertuples():
        print(f"{row.file}:{row.line}  {row.before}  ->  {row.after}")


if __name__ == "__main__":
    options = {"sample": 400, "jobs": CORES, "seed": 0, "minutes": 60.0}
    command(__doc__, run, show, room=[], **options)
