"""How large the package is, by room, against its budgets: `make size`.

Lines are those of code, docstrings, templates, style and TOML; tokens are of code alone, without
comments and docstrings, so that dense lines gain nothing. A function is branchy if it holds more
than ten ways through: one, and one more for each condition, loop, handler or comprehension in it.
"""

import ast
import io
import tokenize
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BESIDE = {".html", ".j2", ".jinja", ".toml", ".css", ".js"}
BRANCHES = (
    *(ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension),
    *(ast.BoolOp, ast.Match),
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
MOST_BRANCHES = 10

# Lines; a room that is not named here has none, and goes. "": the files beside the rooms.
ROOMS = {
    "": 1_030, "table": 3_900, "datasets": 850, "learners": 720, "metrics": 800, "networks": 450,
    "estimation": 2_000, "methods": 3_000, "saving": 750, "statements": 1_900, "audit": 1_650,
    "compare": 1_500, "monitor": 600, "scoring": 1_250, "report": 1_700, "app": 1_450,
    "cli": 1_500,
}  # fmt: skip
WHOLE = {"files": 175, "lines": 26_000, "tokens": 180_000, "branchy share": 0.03}
BESIDES = {
    "paper": 3_000, "pretraining": 600, "validation": 1_300, "benchmarks": 750, "tests": 22_000,
}  # fmt: skip


class Size(NamedTuple):
    """What was counted; sizes add up."""

    files: int = 0
    lines: int = 0
    tokens: int = 0
    functions: int = 0
    branchy: int = 0

    def __add__(self, other: tuple[int, ...]) -> "Size":  # type: ignore[override]
        return Size(*(a + b for a, b in zip(self, other, strict=True)))


def of_file(path: Path) -> Size:
    """The size of one file; only Python counts as a file, and has tokens."""
    if path.suffix in BESIDE:
        return Size(lines=path.read_text(encoding="utf-8").count("\n"))
    if path.suffix != ".py":
        return Size()
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    docstrings = {
        node.body[0].lineno
        for node in nodes
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS))
        and ast.get_docstring(node, clean=False) is not None
    }
    tokens = sum(
        token.type not in LAYOUT
        and not (token.type == tokenize.STRING and token.start[0] in docstrings)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
    )
    functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
    branchy = sum(
        1 + sum(isinstance(inner, BRANCHES) for inner in ast.walk(function)) > MOST_BRANCHES
        for function in functions
    )
    return Size(1, text.count("\n"), tokens, len(functions), branchy)


def of_folder(folder: Path, *, deep: bool = True) -> Size:
    """The size of all files of a folder, or of those directly in it."""
    paths = folder.rglob("*") if deep else folder.glob("*")
    return sum((of_file(path) for path in paths if path.is_file()), Size())


def by_room(package: Path) -> dict[str, Size]:
    """Room -> its size; "" is what lies beside the rooms."""
    names = {path.name for path in package.iterdir() if path.is_dir()} - {"__pycache__"}
    rooms = {name: of_folder(package / name) for name in sorted(names)}
    return {"": of_folder(package, deep=False)} | rooms


def line(name: str, size: Size, budget: int | None) -> str:
    """One line of the table; a mark where a budget is exceeded."""
    share = f"{100 * size.branchy / max(size.functions, 1):5.1f} %"
    over = "over" if budget is not None and size.lines > budget else ""
    allowed = "" if budget is None else f"{budget:,}"
    return (
        f"{name:<14}{size.files:>6}{size.lines:>9,}{allowed:>9}{size.tokens:>10,}"
        f"{size.functions:>8,}{size.branchy:>6,}{share:>8}  {over}"
    ).rstrip()


def main() -> None:
    """Print the table."""
    rooms = by_room(ROOT / "src" / "dcem")
    print(
        f"{'room':<14}{'files':>6}{'lines':>9}{'budget':>9}{'tokens':>10}{'functions, branchy':>22}"
    )
    for name, size in rooms.items():
        print(line(name or "(top)", size, ROOMS.get(name, 0)))
    whole = sum(rooms.values(), Size())
    print(line("src/dcem", whole, WHOLE["lines"]))
    print(
        f"budget: {WHOLE['files']} files, {WHOLE['lines']:,} lines, {WHOLE['tokens']:,} tokens, "
        f"under {WHOLE['branchy share']:.0%} of functions branchy\n"
    )
    for name, budget in BESIDES.items():
        if (ROOT / name).is_dir():
            print(line(name, of_folder(ROOT / name), budget))


if __name__ == "__main__":
    main()
