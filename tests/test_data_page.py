"""The messages shown in docs/data.md are what really comes out: the page is run and compared.

Run this file as a script to write the outputs into the page anew.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import textwrap
import warnings
from pathlib import Path

import pytest

from dcem.table.checks import DataWarning, InputError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "data.md"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n.*?```\n)?", re.DOTALL)


def output_of(code: str, names: dict) -> str:
    """What the code prints, warns and raises, wrapped to the width of the page."""
    printed = io.StringIO()
    lines = []
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            exec(compile(code, str(PAGE), "exec"), names)
        except InputError as error:
            lines = [f"InputError: {error}"]
    messages = [f"{DataWarning.__name__}: {w.message}" for w in caught] + lines
    wrapped = ["\n".join(textwrap.wrap(m, 96, subsequent_indent="  ")) for m in messages]
    return "\n".join([*printed.getvalue().splitlines(), *wrapped])


def rerun(page: str) -> str:
    names: dict = {}

    def renew(match: re.Match) -> str:
        code = match.group(1)
        shown = output_of(code, names)
        text = f"\n```text\n{shown}\n```\n" if shown else ""
        return f"```python\n{code}```\n{text}"

    return BLOCK.sub(renew, page)


def test_the_page_shows_what_really_comes_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("```text") > 15
    assert rerun(page) == page


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # the page writes files
        PAGE.write_text(rerun(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
