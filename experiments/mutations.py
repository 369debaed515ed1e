"""Would the tests notice a wrong sign? Small changes to the code, and which of them go unseen.

    python experiments/mutations.py run                       (400 changes, all cores)
    python experiments/mutations.py run --sample 20 --jobs 1 --room 'audit/*.py'
    python experiments/mutations.py show

Each change turns one sign, comparison, connective or number into another: as many changes of each
room (`TESTS`), by chance. The tests named there are then run until one fails, those of the changed
file first. A change that no test notices is a *survivor*: either a test is missing, or the change
makes no difference (`docs/reliability.md` says which).
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
from functools import partial
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path
from resource import RLIMIT_CPU, setrlimit
from typing import Any

import pandas as pd

from _record import CORES, command, record, recorded

ROOT = Path(__file__).resolve().parents[1]
THREE = ("estimation/test_*.py", "metrics/test_*.py", "audit/test_*.py")
OF_THE_DEFAULT = (
    "methods/test_ensemble.py",
    "methods/test_imperfect.py",
    "methods/test_known_rates.py",
    "methods/test_refit.py",
    "learners/test_*.py",
)
TESTS = {  # files that are changed -> tests that should notice
    "estimation/*.py": THREE,
    "metrics/*.py": THREE,
    "audit/*.py": THREE,
    "learners/smooth.py": OF_THE_DEFAULT,
    "methods/ensemble*.py": OF_THE_DEFAULT,
}
LIMIT_S = 300  # of processor time; a change that makes the tests run for ever is noticed, too

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


def tests_of(room: str, name: str) -> list[str]:
    """Files of tests, in the order in which they are run after a change to a module."""
    own = Path(name)
    tests = ROOT / "tests"
    found = [path for each in TESTS[room] for path in sorted(tests.glob(each))]
    found.sort(key=lambda path: (path.stem != f"test_{own.stem}", path.parent.name != own.parts[0]))
    return [str(path.relative_to(ROOT)) for path in found]


def try_one(spec: tuple[str, str, int | None, float]) -> dict[str, Any] | None:
    """Write a change (None: none) into this worker's copy of the project, and run the tests.

    None if it is too late to begin.
    """
    room, name, number, latest = spec
    if time.time() > latest:
        return None
    copy = Path(tempfile.gettempdir()) / f"mutations-{os.getpid()}"
    if not copy.exists():
        for part in ("src", "tests", "docs", "results"):
            shutil.copytree(ROOT / part, copy / part)
        shutil.copy(ROOT / "pyproject.toml", copy)
    path = copy / "src" / "dcem" / name
    original = (ROOT / "src" / "dcem" / name).read_text()
    text, line, before, after = (
        (original, 0, "", "") if number is None else changed(original, number)
    )
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-W", "ignore"]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    paths = os.pathsep.join([str(copy / "src"), os.environ.get("PYTHONPATH", "")])
    path.write_text(text)
    began = time.perf_counter()
    code = subprocess.run(
        [*command, *tests_of(room, name)],
        cwd=copy,
        env={**os.environ, **threads, "PYTHONPATH": paths},
        capture_output=True,
        preexec_fn=partial(setrlimit, RLIMIT_CPU, (LIMIT_S, LIMIT_S)),
    ).returncode
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
    """Try a sample of all changes; no new one after so many minutes."""
    began = time.perf_counter()
    latest = time.time() + 60 * minutes
    source = ROOT / "src" / "dcem"
    possible, unchanged = [], {}
    for one in room or TESTS:
        modules = sorted(source.glob(one))
        names = [str(path.relative_to(source)) for path in modules]
        specs = [
            (one, name, number, latest)
            for name, path in zip(names, modules, strict=True)
            for number in range(len(list(places(ast.parse(path.read_text())))))
        ]
        random.Random(seed).shuffle(specs)
        possible.append(specs)
        unchanged[TESTS[one]] = (one, names[0], None, latest)
    in_turn = [spec for turn in zip_longest(*possible) for spec in turn if spec is not None]
    rows = [row for row in recorded("mutations", out) if row["seed"] != seed]  # other samples
    with get_context("spawn").Pool(jobs) as pool:
        for row in pool.imap_unordered(try_one, [*unchanged.values(), *in_turn[:sample]]):
            if row is None:
                continue
            print("noticed " if row["noticed"] else "SURVIVED", row, flush=True)
            if row["line"]:
                rows.append({**row, "seed": seed})
            elif row["noticed"]:
                raise SystemExit("The tests fail without any change: nothing is told by them.")
    rows.sort(key=lambda row: (row["seed"], row["file"], row["line"]))
    record("mutations", rows, out, time.perf_counter() - began, possible=len(in_turn))


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
