"""The audit's document says what the audit found, and nothing of single people."""

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from math import nan

import numpy as np
import pytest
from document_cells import cells

from dcem.audit import audit_labels, remedies, without_small_cells
from dcem.audit.advice import with_conclusions
from dcem.estimation.findings import SEVERITIES
from dcem.estimation.findings import Finding as Found
from dcem.estimation.overlap import HARDLY
from dcem.metrics.estimate import Estimate
from dcem.report import audit as blocks
from dcem.report.audit import SECTIONS, audit_document
from dcem.report.audit_opening import key_numbers, limits, opening, picture, who_differs
from dcem.report.bounds import undecided_figure
from dcem.report.document import NOTHING, WITHHELD, Missing, Name, Table, Text
from dcem.report.figures import people
from dcem.report.sensitivity import _unmeasured as unmeasured_table
from dcem.report.sensitivity import draw_performance, draw_prevalence, draw_testing
from dcem.report.shared import OF_SEVERAL_GROUPS, listed_findings
from dcem.report.svg import inline_svg
from dcem.report.to_html import to_html
from dcem.report.to_json import to_json
from dcem.report.to_markdown import to_markdown
from dcem.table.labels import SelectiveLabels
from dcem.text import groups

FIGURES = (
    people.risk_figure,
    people.overlap_figure,
    people.calibration_figure,
    people.prevalence_figure,
)
CURVES = (draw_testing, draw_prevalence, draw_performance)


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
    return audit_labels(problem, sources=["pain", "age"], bounds=2.0)


@pytest.fixture(scope="module")
def document(found):
    return audit_document(found, "Audit of <a table>", {"SHA-256": "abc", "seed": "0"})


@pytest.fixture(scope="module")
def page(document):
    return to_html(document)


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def section(document, key: str):
    return next(section for section in document.sections if section.key == key)


def test_page_shows_every_section_finding_and_figure(page, document) -> None:
    for key, heading, _ in SECTIONS:
        shown = f'<h2 id="{key}">{heading}</h2>' in page
        assert shown == (key not in ("time", "deciders"))  # nothing is known of either
    for finding in document.findings.items:
        assert f'data-key="{finding.key}"' in page
    assert page.count("<svg ") == 9
    assert "Audit of &lt;a table&gt;" in page
    assert "<tiny>" not in page


def test_the_first_screen_names_who_is_tested_less(document) -> None:
    opening = document.opening
    assert opening.verdict.severity == "serious"
    assert "north is tested less" in opening.verdict.answer
    assert len(opening.numbers) == 3
    difference = opening.numbers[0].cell.estimate
    assert difference.high < 0
    assert [row.label for row in opening.picture.rows] == [Name("north"), Name("south & east")]
    assert [row.marked for row in opening.picture.rows] == [True, False]
    assert any("<tiny>" in limit for limit in opening.limits)


def test_too_little_is_known_of_groups_without_an_estimate_and_not_of_the_reference(found) -> None:
    nothing = Estimate(nan, reason="fewer than 30 of these people were tested")
    assert not any("north" in limit for limit in limits(found))
    lacking = replace(
        found,
        reference="south & east",
        testing=tuple(
            replace(one, difference=nothing if one.group == "south & east" else one.difference)
            for one in found.testing
        ),
        prevalence=tuple(
            replace(one, doubly_robust=nothing, within=nothing) if one.group == "north" else one
            for one in found.prevalence
        ),
    )
    said = limits(lacking)
    assert not any("south & east" in limit for limit in said)
    assert "How common the outcome is in group north: too little is known." in said
    assert "1 more group:" in picture(lacking).caption  # <tiny>, and not the reference


def test_the_checklist_tells_of_groups_why_and_only_what_is_clear(found) -> None:
    few = "fewer than 30 of these people were tested"
    overlap = found.overlap | {"north": replace(found.overlap["north"], reason=few)}
    kept = found.prevalence_sensitivity
    for strength, told in ((1.0, False), (2.0, True)):
        clear = replace(kept.breakdown, with_interval=strength)
        sensitivity = replace(kept, breakdown=clear)
        explained, *rest = with_conclusions(
            replace(found, overlap=overlap, prevalence_sensitivity=sensitivity)
        ).assumptions
        assert (clear.conclusion in explained.says) == told
        assert "not clear" not in explained.says
    assert any(f"north: {few}" in one.says for one in rest)


def test_many_groups_are_counted_in_the_answer(found) -> None:
    less = next(one for one in found.testing if one.group == "north")
    more = replace(less, difference=Estimate(0.2, 0.1, 0.3))
    assert who_differs([less, more, more], 3) == "north is tested less, 2 of 3 groups more,"
    assert who_differs([more, more, less], 3) == "2 of 3 groups are tested more, north less,"


def test_what_something_unrecorded_could_do_is_told_though_another_difference_is_larger(
    found,
) -> None:
    """It is asked of the surest difference; the answer opens with the largest."""
    asked = found.testing_sensitivity
    sure = next(one for one in found.testing if one.group == asked.group)
    larger = replace(sure, group="west", difference=Estimate(-0.5, -0.6, -0.4))
    people = replace(next(c for c in found.counts if c.group == asked.group), group="west")
    several = replace(found, testing=(*found.testing, larger), counts=(*found.counts, people))
    verdict = opening(several).verdict
    assert "difference for west is -50.0" in verdict.certainty
    assert f"could explain that for {asked.group}, if it accounted for" in verdict.certainty
    numbers = [one.label for one in key_numbers(several)]
    assert any(f"explain away the difference for {asked.group}" in label for label in numbers)
    alone = opening(found).verdict.certainty
    assert "Something unrecorded could, if it accounted for" in alone
    told = next(one for one in found.findings if one.key == "unmeasured-cause")
    assert f"explain away the difference for group {asked.group}" in told.headline


def test_beside_intervals_it_is_said_which_groups_are_clear_of_so_many(found) -> None:
    south = next(one for one in found.testing if one.group == "south & east")
    west = replace(south, group="west", p_value=0.2)
    several = replace(found, testing=(*found.testing, west))
    names = [one.group for one in several.clear(several.testing)]
    shown, plainly = (
        [one for one in blocks.testing_section(audit) if isinstance(one, Text)]
        for audit in (several, found)
    )
    assert "north" in names
    assert "west" not in names
    assert shown[0].paragraphs[0].endswith(f"compared: {groups(names)}.")
    assert not plainly  # of two groups


def test_small_group_is_withheld_everywhere(page, document, found) -> None:
    table = next(b for b in section(document, "testing").blocks if isinstance(b, Table))
    row = next(row for row in table.rows if row[0] == Name("<tiny>"))
    assert row[1] == WITHHELD
    assert "917 rows" in plain(page)
    told = json.loads(to_json(document))
    rows = {count["group"]: count["rows"] for count in told["counts"]}
    assert rows["<tiny>"] == -1
    assert sorted(rows.values())[1] == -1  # and another, or the difference from 917 would be 3
    open_data = audit_document(found, small_cells=True)
    assert WITHHELD not in set(cells(open_data))


def test_page_fetches_nothing_and_says_no_nan(page, document) -> None:
    assert not re.search(r"(?:src|href)=\"(?!#|data:,)", page)
    for text in (plain(page), to_markdown(document), to_json(document)):
        assert not re.search(r"\b(nan|NaN)\b", text)


def test_figures_are_valid_and_described(found) -> None:
    for draw in (*FIGURES, *CURVES):
        drawing = draw(found)
        ElementTree.fromstring(inline_svg(drawing))
        assert drawing.description
        assert drawing.caption
        assert "nan" not in f"{drawing.description} {drawing.caption}"


def test_tables_are_whole(document) -> None:
    def tables(thing):
        for block in getattr(thing, "blocks", ()):
            yield from [block] if isinstance(block, Table) else tables(block)

    found = [table for section in document.sections for table in tables(section)]
    assert len(found) >= 8
    for table in found:
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_of_two_groups_the_other_one_is_named(found) -> None:
    two = tuple(rate for rate in found.testing if rate.difference.estimable)
    first = opening(replace(found, testing=two))
    assert "in group south & east" in first.verdict.sentences[0]
    assert "against group south & east" in first.numbers[0].label
    assert "in others" in opening(found).verdict.sentences[0]
    lead = audit_document(found, data={"group": "region"}).lead
    assert "in 3 groups (`region`)" in lead


def test_page_without_most_of_it(found) -> None:
    """Where nothing could be modelled, the page still stands."""
    bare = replace(
        without_small_cells(found), drivers=(), risk_curves=(), overlap={}, calibration=None,
        independence=None, testing_sensitivity=None, prevalence_sensitivity=None,
        performance_sensitivity=None,
    )  # fmt: skip
    document = audit_document(bare, "Bare")
    assert "drivers" not in {section.key for section in document.sections}
    assert Missing(what="not possible here") in set(cells(document))
    assert "not possible here" in to_html(document)


@pytest.mark.parametrize(("extent", "severity"), [("nobody", "serious"), ("everybody", "caution")])
def test_without_untested_or_tested_nothing_is_claimed(found, extent, severity) -> None:
    verdict = opening(replace(found, extent=extent)).verdict
    assert verdict.severity == severity
    assert "than others" not in verdict.answer
    assert not verdict.answer.startswith("No clear")


def test_an_audit_shows_and_writes_itself(found, tmp_path) -> None:
    assert found.to_html(tmp_path / "a.html") == (tmp_path / "a.html").read_text()
    assert found.to_markdown().startswith("# Audit of the labels")
    assert json.loads(found.to_json())["verdict"]["severity"] == "serious"
    assert found._repr_html_().startswith("<iframe")
    assert "**How sure?**" in repr(found)
    assert len(repr(found).splitlines()) < 30
    frame = found.to_frame()
    row = frame[(frame["about"] == "testing.difference") & (frame["of"] == "north")].iloc[0]
    assert row["high"] < 0


@pytest.mark.parametrize("severity", SEVERITIES)
def test_what_is_more_serious_than_the_answer_stands_beside_it(found, severity) -> None:
    worse = Found("overlap", severity, "overlap", headline="No overlap", text="at all")
    calm = [one for one in found.findings if one.severity in ("note", "fine")]
    for findings in ([*calm, worse], [worse], list(found.findings)):
        document = audit_document(replace(found, findings=tuple(findings)), small_cells=True)
        order = SEVERITIES.index
        verdict = document.opening.verdict
        worst = min((one.severity for one in document.findings.items), key=order)
        own = opening(replace(found, findings=tuple(findings))).verdict.severity
        assert verdict.severity == own  # the mark is of the answer, not of another finding
        assert order(verdict.most_severe) <= order(worst)  # and the first line no milder than any
        assert (verdict.worst is not None) == (order(worst) < order(own))
        assert verdict.worst is None or verdict.worst.key == "overlap"


def test_no_difference_beside_a_column_that_may_contain_it_is_not_fine(found) -> None:
    none = Estimate(0.0, -0.002, 0.002)
    rates = tuple(replace(one, difference=none, p_value=1.0) for one in found.testing)
    alike = replace(found, testing=rates)
    hidden = replace(alike, suspicious={"score": "it alone predicts who was tested"})
    assert [opening(one).verdict.severity for one in (alike, hidden)] == ["fine", "caution"]
    assert any("score and what is not recorded" in limit for limit in opening(hidden).limits)


def test_a_number_says_whether_it_is_clear(found) -> None:
    clear, small = key_numbers(found)[0], key_numbers(replace(found, least_difference=1.0))[0]
    assert ("not clear" in clear.label, "not clear" in small.label) == (False, True)


@pytest.mark.parametrize(
    ("reach", "hardly", "shown"), [(0.8, 0.06, 0.2), (1, 0.06, 0.06), (1, 0, 0)]
)
def test_one_share_of_people_beyond_the_tests_is_shown(found, reach, hardly, shown) -> None:
    every = replace(found.overlap["everybody"], reach=reach, under={HARDLY: hardly}, reason="")
    changed = replace(found, overlap={"everybody": every}, testing_sensitivity=None)
    *_, last = (one.cell.estimate.value for one in key_numbers(changed))
    assert (last == pytest.approx(shown)) is (shown > 0)


def test_a_group_with_one_point_has_no_line(found) -> None:
    first, *others = found.risk_curves
    assert len(first.risk) > 1
    lines = len(people.risk_figure(found).figure.axes[0].lines)
    cut = {name: values[:1] for name, values in vars(first).items() if name != "group"}
    point = replace(first, **cut)
    drawn = people.risk_figure(replace(found, risk_curves=(point, *others)))
    assert len(drawn.figure.axes[0].lines) == lines - 1
    assert people.risk_figure(replace(found, risk_curves=(point,))) is None


def test_one_number_has_one_interval(found) -> None:
    """The prevalence, and the same number where the untested are taken to be like the tested."""
    sensitivity = found.prevalence_sensitivity
    at = int(np.argmin(np.abs(sensitivity.gamma - 1)))
    assert sensitivity.gamma[at] == pytest.approx(1)
    told = [item for item in found.prevalence if item.doubly_robust.estimable]
    assert told
    for item in told:
        curve, same = sensitivity.curves[item.group], item.doubly_robust
        assert (curve.value[at], curve.low[at], curve.high[at]) == pytest.approx(
            (same.value, same.low, same.high)
        )


def test_what_is_marked_is_said_as_each_output_shows_it(document) -> None:
    page, text = to_html(document), to_markdown(document)
    assert "Shaded: clearly different" in page
    assert "Bold: clearly different" in text
    assert "Shaded: clearly" not in text
    assert "| **north** |" in text


def test_groups_that_share_a_finding_share_its_place() -> None:
    def tested(key: str, group: str, severity: str, value: float) -> Found:
        numbers = {"difference": Estimate(value, value - 0.01, value + 0.01)}
        return Found(key, severity, "testing", (group,), numbers, headline=group, text=group)

    listed = listed_findings(
        [
            tested("tested-less", "a", "serious", -0.2),
            tested("tested-more", "b", "serious", 0.2),
            tested("tested-less", "c", "caution", -0.1),
            Found("leak", "caution", "features", headline="x", text="y"),
            Found("leak", "caution", "features", headline="z", text="y"),
        ]
    ).items
    assert [item.key for item in listed] == ["tested-less", "tested-more", "leak", "leak"]
    assert listed[0].severity == "serious"
    assert "group a and group c" in listed[0].headline.lower()
    assert "-20.0 (-21.0 to -19.0)" in listed[0].text
    assert "-10.0 (-11.0 to -9.0)" in listed[0].text
    assert listed[1].headline == "b"


def test_everything_told_to_do_belongs_to_a_finding() -> None:
    assert set(OF_SEVERAL_GROUPS) <= set(remedies.TO_DO)


def test_where_some_are_out_of_reach_the_table_tells_the_limits(found) -> None:
    beyond = Estimate(nan, reason="a fifth is out of reach")
    parts = tuple(
        replace(one, within=one.doubly_robust, limits=(0.2, 0.6), doubly_robust=beyond)
        for one in found.prevalence
    )
    document = audit_document(replace(found, prevalence=parts))
    rows = section(document, "prevalence").blocks[0]
    place = rows.columns.index("then of all")
    told = {row[0]: row[place] for row in rows.rows}
    assert told["everybody"] == "20 % to 60 %"
    assert told[Name("<tiny>")] == NOTHING  # withheld


def test_what_chance_explains_does_not_remain(found) -> None:
    """Between where the interval and where the estimate breaks down, nothing is certain."""
    asked = found.testing_sensitivity
    at = replace(asked.breakdown, with_interval=asked.breakdown.value / 2)
    for unclear in (at, replace(at, with_interval=0.0)):
        changed = replace(found, testing_sensitivity=replace(asked, breakdown=unclear))
        so = [row[-1] for row in unmeasured_table(changed).rows]
        assert so[-1] == "there could be none"
        assert any("chance" in one for one in so)
        assert ("a difference remains" in so) == (unclear.with_interval > 0)


def test_groups_that_a_figure_of_bounds_leaves_out_are_named(found) -> None:
    assert "Not drawn: <tiny>." in undecided_figure(found.bounds).caption
