"""The figures of the theory page: drawn whole, the same each time, and all shown."""

import re
import xml.etree.ElementTree as ElementTree

import pages
import pytest


@pytest.fixture(scope="module")
def generator():
    return pages.generator("theory")


def test_the_figures_are_whole_and_the_same_bytes_each_time(generator, tmp_path):
    generator.main(tmp_path / "all")
    written = sorted((tmp_path / "all").iterdir())
    assert [path.stem for path in written] == sorted(generator.FIGURES)
    for path in written:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    name = "theory-sensitivity"
    generator.main(tmp_path / "one", {name: generator.FIGURES[name]})
    first, second = (tmp_path / run / f"{name}.svg" for run in ("all", "one"))
    assert first.read_bytes() == second.read_bytes()


def test_the_page_shows_every_figure(generator):
    page = (pages.DOCS / "theory.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\(img/(theory-[\w-]+)\.svg\)", page)) == sorted(generator.FIGURES)
