"""Count the packages into docs/architecture.md: `python docs/make/size.py`."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "architecture.md"
SOURCE = PAGE.parents[1] / "src" / "dcem"
COLUMNS = ("files", "lines", "code", "docstrings", "blank lines, comments", "imports")
TABLE = re.compile(r"\| package \| files \|.*?\n\n", re.DOTALL)
BESIDE, ALL = "beside the packages", "**all**"


def kinds(text: str) -> Iterator[str]:
    """What each line of a module is."""
    lines = text.splitlines()
    found = ["code" if line.strip() and line.strip()[0] != "#" else COLUMNS[4] for line in lines]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            marked, kind = node, "imports"
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            marked, kind = node.body[0], "docstrings"
        else:
            continue
        found[marked.lineno - 1 : marked.end_lineno] = [kind] * (
            marked.end_lineno - marked.lineno + 1
        )
    return iter(found)


def table() -> str:
    """A row per package, the largest first, and their sum."""
    packages: dict[str, Counter[str]] = {}
    for path in SOURCE.rglob("*.py"):
        package, *inside = path.relative_to(SOURCE).parts
        text = path.read_text(encoding="utf-8")
        of_file = Counter(kinds(text)) + Counter(files=1, lines=len(text.splitlines()))
        for name in (f"`{package}`" if inside else BESIDE, ALL):
            packages[name] = packages.get(name, Counter()) + of_file
    order = sorted(
        packages, key=lambda name: (name == ALL, name == BESIDE, -packages[name]["lines"])
    )
    rows = [["package", *COLUMNS], ["---", *["---:"] * len(COLUMNS)]]
    rows += [[name, *(f"{packages[name][column]:,}" for column in COLUMNS)] for name in order]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(table(), text, count=1), encoding="utf-8")
    print(f"wrote {PAGE.name}")
