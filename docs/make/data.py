"""Write the outputs into docs/data.md by running the page: `python docs/make/data.py`."""

import contextlib
import re
import tempfile
from pathlib import Path
from typing import Any

from running import output_of

PAGE = Path(__file__).resolve().parents[1] / "data.md"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n.*?```\n)?", re.DOTALL)


def page() -> str:
    """The page with what its code gives now; the code writes small files."""
    names: dict[str, Any] = {}

    def renew(match: re.Match[str]) -> str:
        shown = output_of(match.group(1), names, str(PAGE), may_fail=True)
        text = f"\n```text\n{shown}\n```\n" if shown else ""
        return f"```python\n{match.group(1)}```\n{text}"

    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return BLOCK.sub(renew, text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
