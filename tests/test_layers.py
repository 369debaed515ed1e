"""The layers hold: a module imports only from layers before its own.

The rules are read off the imports themselves (all of them, those inside functions too), so a
shortcut taken anywhere fails here with the file, the line and the rule.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pages import generator

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
SOURCE = Path(__file__).resolve().parents[1] / "src" / "dcem"

# From the ground up. Members of one layer do not import each other, except `table` its `files`.
LAYERS = [
    {"files", "table"},
    {"ray_cluster", "engine", "learners"},
    {"metrics"},
    {"estimation"},
    {"methods"},
    {"saving"},
    {"audit", "compare", "monitor"},
    {"scoring", "tasks"},
    {"benchmark"},
    {"report"},
    {"paper"},
    {"app"},
    {"cli"},
    {"__main__"},
]
ORDER = {part: height for height, layer in enumerate(LAYERS) for part in layer}
GROUND = {"files", "table"}
NARROWER = {"tasks": GROUND, "engine": {"files"}}  # engine knows nothing of selective labels
# text: numbers as people write them; hooks: the declared way up; extras: what may be missing;
# parallel: limits on threads
ANYWHERE = {"__version__", "text", "hooks", "extras", "parallel"}
# what options are made from
LIGHT = {"dcem.table.roles", "dcem.table.messages", "dcem.table.settings", "dcem.table"}
HEAVY = {
    "duckdb",
    "joblib",
    "matplotlib",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "safetensors",
    "scipy",
    "sklearn",
    "torch",
}


class Import(NamedTuple):
    module: str
    line: int
    runs_at_import: bool


def allowed_for(part: str) -> set[str]:
    if part in NARROWER:
        return NARROWER[part] | {part} | ANYWHERE
    below = {other for other, height in ORDER.items() if height < ORDER[part]}
    return below | {part} | ANYWHERE | (GROUND if part in GROUND else set())


def waits(node: ast.AST) -> bool:
    """Whether what is inside does not run when the module is imported."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def imports_of(path: Path) -> Iterator[Import]:
    """Every import of a file; relative ones made absolute, `from dcem import x` as `dcem.x`."""
    package = ("dcem", *path.relative_to(SOURCE).parent.parts)

    def walk(node: ast.AST, runs: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for name in child.names:
                    yield Import(name.name, child.lineno, runs)
            elif isinstance(child, ast.ImportFrom):
                base = ".".join(package[: len(package) - child.level + 1]) if child.level else ""
                module = ".".join(piece for piece in (base, child.module) if piece)
                for name in child.names:
                    full = f"{module}.{name.name}" if module == "dcem" else module
                    yield Import(full, child.lineno, runs)
            else:
                yield from walk(child, runs and not waits(child))

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), True)


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_every_part_has_a_layer() -> None:
    unplaced = {part_of(path) for path in modules()} - set(ORDER) - ANYWHERE - {"__init__"}
    assert not unplaced, f"add to LAYERS (and to docs/architecture.md): {sorted(unplaced)}"


@pytest.mark.parametrize("part", sorted(ORDER))
def test_imports_only_from_layers_before(part: str) -> None:
    broken = []
    for path in modules():
        if part_of(path) != part:
            continue
        for found in imports_of(path):
            root, target = (*found.module.split("."), "__init__")[:2]
            if root == "dcem" and target not in allowed_for(part):
                broken.append(f"{path.relative_to(SOURCE)}:{found.line} imports {found.module}")
    assert not broken, f"{part} may import {sorted(allowed_for(part))} only:\n" + "\n".join(broken)


def is_front_door(path: Path) -> bool:
    return part_of(path) in {"__init__", "cli"}


@pytest.mark.parametrize("path", [*filter(is_front_door, modules())], ids=lambda path: path.stem)
def test_front_doors_import_nothing_heavy(path: Path) -> None:
    """`import dcem` and every command module answer at once: heavy imports wait in functions."""
    heavy = []
    for found in imports_of(path):
        root, target = (*found.module.split("."), "__init__")[:2]
        if found.runs_at_import and (
            root in HEAVY
            or (root == "dcem" and target not in {"cli"} | ANYWHERE and found.module not in LIGHT)
        ):
            heavy.append(f"line {found.line}: {found.module}")
    assert not heavy, "move into the function that needs it: " + "; ".join(heavy)


def test_one_import_reaches_every_package_without_torch() -> None:
    """`import dcem` is enough to write `dcem.estimation.scorer(...)`, and a notebook offers it."""
    code = """
import sys
import dcem
for package in ("audit", "compare", "estimation", "learners", "methods", "metrics", "monitor"):
    assert package in dir(dcem), package
    assert set(getattr(dcem, package).__all__) <= set(dir(getattr(dcem, package))), package
for package in ("paper", "report", "saving", "scoring", "table", "tasks"):
    assert package in dir(dcem) and getattr(dcem, package), package
assert repr(dcem.estimation.scorer("dr-auc")) and dcem.scoring.score_batches
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
SPELLS_OPTIONS = {("cli",), ("report", "to_terminal.py")}


def strings_of(path: Path) -> Iterator[tuple[int, str]]:
    """Every string of a file with its line; docstrings, which no user is shown, left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, DOCUMENTED)]
    documents = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in documents:
            yield node.lineno, node.value


def test_options_are_spelt_by_the_command_line_alone() -> None:
    """Other rooms name arguments in backticks; whoever uses them from Python has no options."""
    commands = [command for _, command in generator("cli").commands()]
    ours = {option for command in commands for one in command.params for option in one.opts}
    assert {"--label", "--budget", "--untested-value"} <= ours
    broken = []
    for path in modules():
        place = path.relative_to(SOURCE).parts
        if place in SPELLS_OPTIONS or place[:1] in SPELLS_OPTIONS:
            continue
        for line, text in strings_of(path):
            for option in ours.intersection(OPTION.findall(text)):
                broken.append(f"{'/'.join(place)}:{line} spells {option}")
    assert not broken, "\n".join(broken)


def test_the_walker_sees_what_it_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules above are only as good as the reading of imports."""
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    file = tmp_path / "methods" / "x.py"
    file.parent.mkdir()
    file.write_text(
        "import numpy as np\n"
        "from dcem import tasks, problem\n"
        "from ..metrics import roc\n"
        "from . import base\n"
        "def f():\n    import torch\n"
        "class C:\n    import pandas\n"
    )
    found = {(item.module, item.runs_at_import) for item in imports_of(file)}
    assert found == {
        ("numpy", True),
        ("dcem.tasks", True),
        ("dcem.problem", True),
        ("dcem.metrics", True),
        ("dcem.methods", True),
        ("torch", False),
        ("pandas", True),
    }
