"""`dcem report`: a page from saved numbers."""

import json

import pytest
from made_up import made_up_comparison
from rich.console import Console

from dcem.cli._outputs import Outputs
from dcem.estimation.findings import Finding
from dcem.report.compare import compare_document
from dcem.report.document import Document, Findings
from dcem.report.to_json import to_json

pytestmark = pytest.mark.usefixtures("linear_models")


@pytest.fixture(scope="module")
def result() -> str:
    return to_json(compare_document(made_up_comparison(n_methods=2)))


@pytest.fixture
def saved(result, tmp_path):
    path = tmp_path / "comparison.json"
    path.write_text(result, encoding="utf-8")
    return path


def test_every_format_from_a_folder(saved, inside) -> None:
    places = [saved.parent / name for name in ("page.html", "page.md", "page.json")]
    told = [word for place in places for word in ("--out", place)]
    done = inside("report", saved.parent, *told, "--words", "credit")
    assert done.returncode == 0
    assert places[0].read_text().startswith("<!doctype html>")
    assert "approved" in places[1].read_text()
    numbers = [json.loads(path.read_text())["methods"] for path in (saved, places[2])]
    assert numbers[0] == numbers[1]


def test_a_page_beside_the_result_by_default(saved, inside) -> None:
    done = inside("report", saved)
    assert done.returncode == 0
    assert saved.with_suffix(".html").exists()
    told = done.stdout.splitlines()  # the answer, and where the page is
    assert len(told) < 20
    assert any("Use tested-only" in line for line in told)
    assert saved.with_suffix(".html").name in done.stdout.replace("\n", "")


def test_the_words_are_those_of_the_result_unless_others_are_asked_for(tmp_path, inside) -> None:
    saved, page = tmp_path / "comparison.json", tmp_path / "page.md"
    document = compare_document(made_up_comparison(n_methods=2))
    saved.write_text(to_json(document, "credit"), encoding="utf-8")
    for words, spoken in (((), "approved"), (("--words", "policing"), "searched")):
        assert inside("report", saved, "--out", page, *words, cwd=tmp_path).returncode == 0
        assert spoken in page.read_text()


@pytest.mark.parametrize("out", ["page.pdf", "comparison.json"])
def test_what_cannot_be_written_is_refused_first(saved, inside, out) -> None:
    before = saved.read_text()
    assert inside("report", saved, "--out", saved.parent / out).returncode == 2
    assert saved.read_text() == before


def test_pages_of_a_command_name_options_and_columns_stay_columns(tmp_path, capsys) -> None:
    finding = Finding(
        "row-budget", "caution", "methods", headline="`weight` counts", remedy="More (`max_rows`)."
    )
    document = Document(
        "T", "", None, Findings((finding,)), (), names=frozenset({"weight"}), data={"f": finding}
    )
    places = [tmp_path / f"page.{kind}" for kind in ("html", "md", "json")]
    files = [(path, path.suffix[1:]) for path in places]
    Outputs(files, tmp_path / "table.csv").write(document, Console(highlight=False))
    html, markdown, plain = (path.read_text() for path in places)
    for text in (html, markdown, capsys.readouterr().out):
        assert "--max-rows" in text
        assert "max_rows" not in text
        assert "--weight" not in text
    assert "max_rows" in plain  # numbers and keys, as Python has them
