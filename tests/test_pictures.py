"""Every picture of the documentation can be drawn again, and every one is shown."""

import re

import pages
import pytest

from dcem.paper import find

PICTURES = {path.name for path in (pages.DOCS / "img").iterdir()}
EXPERIMENTS = pages.DOCS.parent / "experiments"


@pytest.fixture(scope="module")
def generator():
    return pages.generator("pictures")


def test_every_picture_has_a_generator(generator):
    drawn = {name for names in generator.GENERATORS for name in names} | set(generator.MEASURED)
    drawn |= {f"{name}.svg" for name in pages.generator("theory").FIGURES}
    drawn |= {f"reproduction-{e.name}.png" for e in find(pages.generator("reproduction").PICTURES)}
    drawn |= set(pages.generator("app").PICTURES)
    figures = (EXPERIMENTS / "figures.py").read_text()
    saved = re.findall(r'save\(figure, "([\w-]+)"\)|"(held-[\w-]+)":', figures)
    assert drawn | {f"{one or other}.svg" for one, other in saved} == PICTURES


def test_every_picture_is_shown():
    shown = "".join(page.read_text(encoding="utf-8") for page in pages.DOCS.glob("*.md"))
    assert set(re.findall(r"img/([\w-]+\.\w+)", shown)) == PICTURES


def test_what_needs_other_data_is_left_as_it_is(generator, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(generator, "IMAGES", tmp_path)
    absent = {
        names: (draw, tmp_path / "absent" / "table.csv")
        for names, (draw, needs) in generator.GENERATORS.items()
        if needs is not None
    }
    monkeypatch.setattr(generator, "GENERATORS", absent)
    generator.main([])
    told = capsys.readouterr().out
    assert told.count("no table.csv in absent") == len(absent)
    assert not list(tmp_path.iterdir())


def test_a_picture_is_drawn(generator, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(generator, "IMAGES", tmp_path)
    generator.main(["sinusoid-task.png"])
    assert (tmp_path / "sinusoid-task.png").stat().st_size > 50_000
    assert "wrote sinusoid-task.png" in capsys.readouterr().out
