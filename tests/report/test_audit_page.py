"""The audit's page, Markdown and figures say what the audit found, and nothing of single people."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest

from dcem.audit import audit, to_plain, without_small_cells
from dcem.report import audit_tables
from dcem.report.audit import SECTIONS, render_audit
from dcem.report.figures.audit import draw_audit
from dcem.report.style import inline_svg
from dcem.table.labels import SelectiveLabels


@pytest.fixture(scope="module")
def found():
    """A small table with a group that is tested less, and a group of three."""
    rng = np.random.default_rng(0)
    n = 917
    group = rng.choice(["north", "south & east"], n).astype("<U16")
    group[:3] = "<tiny>"
    x = rng.normal(size=(n, 2))
    tested = rng.random(n) < 1 / (1 + np.exp(0.2 - 0.6 * x[:, 0] + 1.2 * (group == "north")))
    y = (rng.random(n) < 1 / (1 + np.exp(0.5 - x[:, 0]))).astype(float)
    problem = SelectiveLabels.from_arrays(
        x, np.where(tested, y, np.nan), group=group, feature_names=["pain=yes", "age"]
    )
    return without_small_cells(audit(problem, sources=["pain", "age"]))


@pytest.fixture(scope="module")
def page(found):
    return render_audit(found, "Audit of <a table>", {"SHA-256": "abc", "seed": "0"})


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def test_page_shows_every_section_and_every_finding(page, found) -> None:
    for name, (heading, _, _) in SECTIONS.items():
        assert f'<h2 id="{name}">{heading}</h2>' in page
    shown = plain(page)
    for finding in found.findings:
        assert finding.severity in shown
    assert "Group north is tested less often" in shown
    assert page.count("<svg ") == len(draw_audit(found)) == 8
    assert "Audit of &lt;a table&gt;" in page
    assert "<tiny>" not in page
    assert "not yet bias" in shown


def test_small_group_is_withheld_everywhere(page, found) -> None:
    assert found.withheld == ("<tiny>",)
    row = next(row for row in audit_tables.testing(found).rows if row[0] == "<tiny>")
    assert row[1] == row[2] == "withheld"
    assert "about 900" in found.configuration["rows"]
    shown = plain(page)
    assert not re.search(r"\b917\b", shown)
    assert "About 900 rows" in shown
    total = found.overlap["everybody"].tested
    assert total % 100 == 0
    assert total == found.total.tested
    counts = to_plain(found)["counts"]
    assert next(c for c in counts if c["group"] == "<tiny>")["rows"] == -1


def test_page_fetches_nothing_and_says_no_nan(page) -> None:
    assert not re.search(r"(?:src|href)=\"(?!#|data:,)", page)
    assert not re.search(r"\bnan\b", plain(page))


def test_figures_are_valid_and_described(found) -> None:
    for drawing in draw_audit(found):
        ElementTree.fromstring(inline_svg(drawing))
        assert drawing.description
        assert drawing.caption
        assert "nan" not in f"{drawing.description} {drawing.caption}"


def test_markdown_has_the_tables_and_findings(found) -> None:
    text = audit_tables.to_markdown(found, "Audit", {"seed": "0"})
    for table in audit_tables.all_tables(found).values():
        assert f"## {table.title}" in text
        for row in table.rows:
            assert len(row) == len(table.columns)
    assert all(finding.headline in text for finding in found.findings)


def test_page_without_most_of_it(found) -> None:
    """Where nothing could be modelled, the page still stands."""
    bare = replace(
        found, drivers=(), risk_curves=(), overlap={}, calibration=None, independence=None,
        testing_sensitivity=None, prevalence_sensitivity=None, performance_sensitivity=None,
    )  # fmt: skip
    text = render_audit(bare, "Bare", {})
    assert "not possible here" in text
    assert 'id="drivers"' not in text
