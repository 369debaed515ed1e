"""The figures of the theory page: drawn whole, the same each time, and all shown."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from dcem.paper.theory import figures as theory_figures

ROOT = Path(__file__).resolve().parents[3]


def test_figures_are_svg_and_the_same_bytes_each_time(tmp_path, capsys):
    for run in ("first", "second"):
        theory_figures.main(["--out", str(tmp_path / run)])
    written = sorted((tmp_path / "first").iterdir())
    assert [p.stem for p in written] == sorted(theory_figures.FIGURES)
    for path in written:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes()
    assert str(written[0]) in capsys.readouterr().out


def test_the_page_shows_every_figure_and_they_are_committed():
    shown = re.findall(r"\]\(img/(theory-[\w-]+)\.svg\)", (ROOT / "docs/theory.md").read_text())
    assert sorted(shown) == sorted(theory_figures.FIGURES)
    for name in shown:
        assert (ROOT / "docs/img" / f"{name}.svg").is_file()
