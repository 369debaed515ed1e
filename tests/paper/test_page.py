"""docs/reproduction.md says what results/ says."""

import pages
import pytest

from dcem.paper import Recorded
from dcem.paper.exhibits.points import brackets
from dcem.paper.spread import Spread


@pytest.fixture(scope="module")
def generator():
    return pages.generator("reproduction")


def test_the_page_is_current(generator):
    written = (pages.DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert written == generator.page(written, generator.Page()), (
        "docs/reproduction.md is out of date: run `python docs/make/reproduction.py`"
    )


def test_every_place_is_filled_from_any_results(generator, recorded, tmp_path):
    """With everything recorded nothing is missing; with nothing, the page says so and is whole."""
    text = (pages.DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert len(generator.BLOCK.findall(text)) == 18
    page = generator.Page(recorded)
    full = generator.page(text, page)
    assert "Not recorded yet" not in full
    assert "| τ = 0.1 | .791 [.762,\u00a0.818] |" in full
    targeted = Recorded(recorded).table("dragonnet_targeted")
    assert (
        f"| ours with it | {brackets(Spread.of(targeted['auc']))}".replace(", ", ",\u00a0") in full
    )  # the number is the file's, not written by hand
    (tmp_path / "empty").mkdir()
    empty = generator.page(text, generator.Page(tmp_path / "empty"))
    assert empty.count("Not recorded yet") >= 8
    assert "| ours with it | – | – |" in empty
    assert generator.page(empty, page) == full  # filling again forgets nothing


def test_claims_on_package_defaults_are_counted_by_themselves(generator, recorded):
    """Ours of Figure 3 and E.6 has package defaults: neither praise nor blame of a replication."""
    page = generator.Page(recorded)
    table = page.checked_claims
    defaults = table["ours_on_defaults"]
    assert set(table.loc[defaults, "where"]) == {"5.1, Figure 3", "E.6, SELF"}
    _, published_choices, package = page.verdicts().splitlines()
    for line, part in ((published_choices, table[~defaults]), (package, table[defaults])):
        holds = part["ours_holds"].dropna().astype(bool)
        assert f" {holds.sum()} of the {len(holds)} that can be checked hold" in line
    assert "no replication" in package
    shown = page.claims()
    rows = [line for line in shown.splitlines() if line.startswith(("| 5.1, Figure 3", "| E.6"))]
    assert all(" (defaults) " in row or row.endswith("| – |") for row in rows)
    for rule in table["holds_if"]:
        assert f"| {rule} |" in shown


def test_the_pool_names_what_it_leaves_out(generator, recorded):
    text = generator.Page(recorded).tradeoff()
    assert "15 of the 15 recorded settings" in text
    assert "k 1/10 and 4 are left out" in text
