"""Write docs/examples/ by running examples/*.py: `python docs/make/examples.py [NAME ...]`.

An example is a plain script: its docstring is the title and the introduction, a comment after
`# %%` is a paragraph, and the code below is shown with what it prints.
"""

import ast
import contextlib
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from running import output_of

DOCS = Path(__file__).resolve().parents[1]
PAGES = DOCS / "examples"
SCRIPTS = {path.stem: path for path in sorted((DOCS.parent / "examples").glob("*.py"))}
CELL = re.compile(r"^# %%$\n", re.MULTILINE)
PARAGRAPH = re.compile(r"\A((?:#.*\n)*)")

INTRODUCTION = """\
# Gallery

Small studies on made-up people, so that the truth is known and the answer can be checked. Each is a
script of the folder `examples/` that runs in seconds; what it prints is shown on its page.
"""


class Cell(NamedTuple):
    """A paragraph and the code below it."""

    text: str
    code: str


def read(path: Path) -> tuple[str, str, list[Cell]]:
    """Title, introduction and cells of a script."""
    source = path.read_text(encoding="utf-8")
    title, _, introduction = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    cells = []
    for part in CELL.split(source)[1:]:
        comment = PARAGRAPH.match(part).group(1)  # type: ignore[union-attr]
        text = "\n".join(line[1:].removeprefix(" ") for line in comment.splitlines())
        cells.append(Cell(text, part[len(comment) :].strip("\n")))
    return title.rstrip("."), introduction.strip(), cells


def page(name: str, names: dict[str, Any]) -> str:
    """The page of an example; `names` is filled with what the script leaves behind."""
    path = SCRIPTS[name]
    title, introduction, cells = read(path)
    parts = [f"# {title}", introduction, f"*`python examples/{name}.py`*"]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in cells:
            shown = output_of(cell.code, names, str(path))
            parts += [cell.text, f"```python\n{cell.code}\n```" if cell.code else ""]
            parts += [f"```text\n{shown}\n```" if shown else ""]
    return "\n\n".join(part for part in parts if part) + "\n"


def index() -> str:
    """The list of all examples, with the first sentence of each introduction."""
    rows = []
    for name, path in SCRIPTS.items():
        title, introduction, _ = read(path)
        first = re.split(r"(?<=[.?])\s", introduction.replace("\n", " "), maxsplit=1)[0]
        rows.append(f"- [{title}]({name}.md): {first[0].lower()}{first[1:]}")
    return INTRODUCTION + "\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:] or SCRIPTS:
        (PAGES / f"{name}.md").write_text(page(name, {}), encoding="utf-8")
        print(f"wrote examples/{name}.md")
    (PAGES / "index.md").write_text(index(), encoding="utf-8")
