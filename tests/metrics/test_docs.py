"""The numbers on the metrics page are those the code prints."""

import ast
import doctest
import re
from pathlib import Path

import pytest

import dcem.metrics.calibration
import dcem.metrics.groups
import dcem.metrics.roc

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def test_first_example_and_its_bootstrap():
    first, second = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[:2]
    names: dict = {}
    exec(first, names)
    shown = re.findall(r"^(metrics\..*?) +# (.*)$", first, re.M)
    assert len(shown) == 4
    for code, value in shown:
        assert eval(code, names) == pytest.approx(ast.literal_eval(value), abs=5e-4)
    exec(second, names)
    printed = re.search(r"```\n(GapEstimate.*?)\n```", PAGE.read_text(encoding="utf-8")).group(1)
    assert repr(names["result"].roc_gap) == printed


def test_every_public_name_is_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    functions = [name for name in dcem.metrics.__all__ if name.islower()]
    assert [name for name in functions if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    "module", [dcem.metrics.roc, dcem.metrics.groups, dcem.metrics.calibration], ids=str
)
def test_examples_in_docstrings(module):
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
