"""docs/reproduction.md says what results/ says."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generator():
    path = DOCS / "generate_reproduction.py"
    spec = importlib.util.spec_from_file_location("generate_reproduction", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(generator):
    written = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert written == generator.page(written, generator.Page()), (
        "docs/reproduction.md is out of date: run `python docs/generate_reproduction.py`"
    )


def test_every_place_is_filled_from_any_results(generator, recorded, tmp_path):
    """With everything recorded nothing is missing; with nothing, the page says so and is whole."""
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert len(generator.BLOCK.findall(text)) == 17
    full = generator.page(text, generator.Page(recorded))
    assert "Not recorded yet" not in full
    assert "| τ = 0.1 | .791 [.762,\u00a0.818] |" in full
    (tmp_path / "empty").mkdir()
    empty = generator.page(text, generator.Page(tmp_path / "empty"))
    assert empty.count("Not recorded yet") >= 8
    assert generator.page(empty, generator.Page(recorded)) == full  # filling again forgets nothing
