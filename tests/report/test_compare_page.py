import json
import re
from dataclasses import fields, replace
from html import escape, unescape
from math import nan

import pytest
from document_cells import cells
from made_up import GROUPS, made_up_comparison

from dcem.compare.results import ComparedGroup, Judgement, estimates
from dcem.estimation.findings import Finding
from dcem.estimation.measures import WHEN_ACTING
from dcem.metrics.estimate import Estimate
from dcem.report.compare import compare_document
from dcem.report.compare_opening import opening, recommended, shown_targets
from dcem.report.compare_tables import (
    ABOUT,
    CAPTIONS,
    LENDING,
    _caption,
    groups_table,
    main_pair,
)
from dcem.report.document import Code, Count, Missing, Name, Number
from dcem.report.to_html import to_html
from dcem.report.to_json import to_json
from dcem.report.to_markdown import to_markdown

SHORT = "in a few words"


@pytest.fixture(scope="module")
def document():
    return compare_document(made_up_comparison())


@pytest.fixture(scope="module")
def text(document) -> str:
    return to_html(document)


def plain(text: str) -> str:
    flat = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)).replace("\u00a0", " ")
    return unescape(flat)


def test_every_estimate_is_in_the_document(document, table_comparison) -> None:
    shown = {cell.estimate for cell in cells(document) if isinstance(cell, Number)}
    for method in table_comparison.methods:
        for judged in method.judgements.values():
            for metric, of_whom, estimate in estimates(judged):
                if estimate.estimable:
                    assert estimate in shown, (method.name, metric, of_whom)
    for score in table_comparison.planted.scores:
        assert {score.auc, score.roc_gap, score.auc_gain} <= shown


@pytest.mark.parametrize("of", ["page", "markdown"])
def test_assumptions_conclusions_and_provenance_are_told(
    of, text, document, table_comparison
) -> None:
    shown = to_markdown(document)
    if of == "page":
        shown = plain(text.replace("<code>", "`").replace("</code>", "`"))
    told = [
        *(target.assumption for target in table_comparison.targets),
        *(one.headline for one in table_comparison.findings),
        *(one.headline.removesuffix(".") for one in table_comparison.warnings),
        *(one.headline for one in table_comparison.planted.findings),
        *(family.what for family in table_comparison.planted.families),
        *table_comparison.configuration.values(),
        *table_comparison.data.values(),
        *(f"{name} {version}" for name, version in table_comparison.versions.items()),
    ]
    for sentence in told:
        assert sentence in shown, sentence


def test_every_figure_is_there(text) -> None:
    names = re.findall(r'<title id="([\w-]+)-title">', text)
    assert len(names) == len(set(names))
    wanted = {"overlap", "pseudo-labels", "history-dcem", "testing-y-obs"}
    wanted |= {f"{what}-{t}" for what in ("roc", "calibration", "decisions")
               for t in ("tested", "ipw", "dr")}  # fmt: skip
    assert wanted <= set(names)


def test_the_first_screen_names_the_method_that_ranks_everybody_best(document, text) -> None:
    opening = document.opening
    assert "`sar-em`" in opening.verdict.answer  # the highest doubly robust AUC
    assert opening.numbers[0].cell.estimate.value == pytest.approx(0.78)
    marked = [row.label for row in opening.picture.rows if row.marked]
    assert marked == [Code("sar-em", "recommended", SHORT)]
    assert f"`sar-em` (recommended): {SHORT}" in to_markdown(document)
    assert f'<span class="beside">{SHORT}</span>' in text


@pytest.mark.parametrize(
    ("values", "raised"), [({}, True), ({"method": "dcem"}, False), ({"method": "sar-em"}, True)]
)
def test_beside_the_answer_stands_what_is_more_serious_of_its_method(
    table_comparison, values, raised
) -> None:
    worse = Finding("flattered", "serious", "methods", values=values, headline="It is flattered.")
    verdict = compare_document(replace(table_comparison, warnings=(worse,))).opening.verdict
    assert verdict.severity == "caution"
    assert (verdict.worst is not None and verdict.worst.key == "flattered") is raised
    assert verdict.answer.startswith("Use `sar-em`, with care: ")


def test_captions_say_which_group_they_are_of() -> None:
    comparison = replace(made_up_comparison(n_methods=1), reference_group="1")
    assert _caption(comparison, ("auc_against", "2")).startswith(
        "AUC of group 2 minus that of group 1"
    )
    assert _caption(comparison, ("group_auc", "north")) == "AUC within north"
    assert _caption(comparison, ("net_benefit", 0.2)) == "Net benefit of acting at a risk of 20 %"


def test_an_oracle_is_never_recommended() -> None:
    comparison = made_up_comparison(truth=True, n_methods=3)
    *others, best = comparison.methods
    standings = {
        key: replace(one, best=others[-1].name) for key, one in comparison.standings.items()
    }
    methods = (*others, replace(best, uses_truth=True))
    comparison = replace(comparison, methods=methods, standings=standings)
    rows = compare_document(comparison).opening.picture.rows
    assert [row.label.tag for row in rows] == ["", "recommended", "given the truth"]


@pytest.mark.parametrize(("worst", "said"), [(5, "No method"), (4, "no better than chance")])
def test_what_may_be_chance_is_not_recommended_without_a_word(worst, said) -> None:
    comparison = made_up_comparison()
    methods = list(comparison.methods)
    for place, one in enumerate(methods[::-1][:worst]):  # the last has the highest AUC
        judged = replace(one.judgements["dr"], auc=Estimate(0.61, 0.45, 0.75))
        methods[-1 - place] = replace(one, judgements={**one.judgements, "dr": judged})
    changed = replace(comparison, methods=tuple(methods))
    verdict, picture = opening(changed).verdict, opening(changed).picture
    assert said in verdict.answer
    assert any(row.label.tag == "recommended" for row in picture.rows) == (said != "No method")
    assert f"`{recommended(changed).name}`" in verdict.answer + verdict.sentences[0]
    assert verdict.severity in ("caution", "serious")


def test_a_group_that_cannot_be_judged_is_named_in_the_answer() -> None:
    comparison = made_up_comparison()
    methods = []
    for one in comparison.methods:
        judged = one.judgements["dr"]
        name = list(judged.group_auc)[-1]
        areas = {**judged.group_auc, name: Estimate(nan, reason="too few")}
        judgements = {**one.judgements, "dr": replace(judged, group_auc=areas)}
        methods.append(replace(one, judgements=judgements))
    verdict = opening(replace(comparison, methods=tuple(methods))).verdict
    assert name in verdict.answer
    assert verdict.severity in ("caution", "serious")
    assert name not in opening(comparison).verdict.answer


def test_without_overlap_nothing_is_said_of_everybody() -> None:
    comparison = made_up_comparison(estimable=False, n_methods=2)
    assert [target.key for target in shown_targets(comparison)] == ["tested"]
    document = compare_document(comparison)
    assert document.opening.verdict.severity == "serious"
    assert not document.opening.verdict.answer.startswith("Use")
    said = document.opening.limits
    assert any("these numbers are of the tested" in one for one in said)
    assert not any("features explain" in one for one in said)  # labels of the tested are known
    everybody = compare_document(made_up_comparison(n_methods=2)).opening.limits
    assert any("features explain" in one for one in everybody)
    text = to_html(document)
    reason = comparison.overlap.reason.rstrip(".")
    assert f"cannot be estimated from the tests: {reason}" in plain(text)
    assert 'id="roc-dr-title"' not in text
    assert Missing(reason) in set(cells(document))


def test_a_number_that_is_missing_is_not_drawn_as_one() -> None:
    table_comparison = made_up_comparison(n_methods=1)
    first, *rest = table_comparison.methods
    lost = {
        key: replace(judged, auc=Estimate(nan, reason="no positives"), gap_by_chance=nan)
        for key, judged in first.judgements.items()
    }
    changed = replace(table_comparison, methods=(replace(first, judgements=lost), *rest))
    text = plain(to_html(compare_document(changed)))
    assert "not estimable: no positives" in text
    assert "nan" not in text.lower().split()


def test_truth_comes_first_where_it_exists() -> None:
    targets = shown_targets(made_up_comparison(truth=True))
    assert [target.key for target in targets] == ["truth", "dr", "ipw", "tested"]


def test_the_pair_shown_first_is_the_two_largest_groups(table_comparison) -> None:
    assert main_pair(table_comparison) == (GROUPS[0], GROUPS[1])


def test_small_counts_cannot_be_read_or_worked_out(table_comparison, document) -> None:
    """Four positives in the last group: neither they nor what they could be subtracted from."""
    *others, last, total = groups_table(table_comparison).rows
    assert last[3] == Missing(what="<10")
    shown = [row for row in others if isinstance(row[3], Count)]
    assert len(shown) < len(others), "all but one shown beside the total: it can be subtracted"
    assert isinstance(total[3], Count)
    told = json.loads(to_json(document))["groups"]
    assert told[3]["positives_seen"] == "<10"


def test_a_group_called_like_a_total_is_a_group_like_any_other(table_comparison) -> None:
    groups = tuple(ComparedGroup(name, 900, 300, 100) for name in ("0", "all", "3"))
    rows = groups_table(replace(table_comparison, groups=groups)).rows
    assert [row[1] for row in rows] == [Count(900)] * 3 + [Count(2_700)]


def test_names_from_the_table_are_escaped(text, table_comparison) -> None:
    assert "Hispanic <b>" not in text
    assert "Hispanic &lt;b&gt;" in text
    table = to_markdown(compare_document(replace(table_comparison, data={"file": "a|b"})))
    assert "# Methods compared on a|b" in table
    assert r"| Hispanic &lt;b> \$1\$ |" in table
    assert ">Hispanic &lt;b&gt; $1$</text>" in text, "a name is not mathematics"


def test_small_groups_do_not_just_vanish_from_figures(text) -> None:
    assert "Not drawn, because of too few people: other &amp; unknown." in text


def test_what_has_no_number_is_told_once_with_its_reason_not_in_a_table(document) -> None:
    captions = [f"AUC difference: {name} minus {GROUPS[3]}" for name in GROUPS[:2]]
    text = plain(to_html(document))
    assert f"One group has 7 positives, and 10 are needed: {'; '.join(captions)}; " in text
    assert not [one for one in captions if f'aria-label="{escape(one)}"' in to_html(document)]


def test_markdown_is_a_document_that_a_person_reads(table_comparison) -> None:
    """Seven methods in five groups once took 1,136 lines."""
    text = to_markdown(compare_document(table_comparison))
    assert len(text.splitlines()) < 300
    assert "Also in the HTML report: differences in ranking, acting on the scores" in text


def test_every_other_number_is_in_one_view(table_comparison) -> None:
    named = [metric for metrics in ABOUT.values() for metric in metrics]
    assert sorted(named) == sorted(CAPTIONS.keys() - {metric for metric, _ in LENDING})


def test_findings_about_the_method_to_take_come_before_those_about_others(table_comparison) -> None:
    """Of the same severity; a more serious one stays before them."""

    def about(severity: str, **values) -> Finding:
        name = f"{severity} of {values or 'all'}"
        return Finding("estimates-disagree", severity, "methods", values=values, headline=name)

    taken = recommended(table_comparison).name
    caution = [about("caution", method="ipw"), about("caution", methods=["y-obs", "ipw"]),
               about("caution", method=taken), about("caution"),
               about("caution", methods=["ipw", taken])]  # fmt: skip
    serious = [about("serious", method="ipw"), about("serious", method=taken)]
    found = (*caution[2:], *serious)
    mixed = replace(table_comparison, warnings=tuple(caution[:2]), findings=found)
    shown = compare_document(mixed).findings.items
    assert shown == (*serious[::-1], *caution[2:], *caution[:2])


def test_groups_keep_their_place_and_colour(document) -> None:
    rows = groups_table(made_up_comparison()).rows
    assert [row[0] for row in rows[:4]] == [Name(group) for group in GROUPS]


def test_same_comparison_same_page() -> None:
    once, again = (made_up_comparison(n_methods=1).to_html() for _ in range(2))
    assert once == again


def test_a_comparison_shows_and_writes_itself(table_comparison, tmp_path) -> None:
    assert table_comparison.to_markdown(tmp_path / "a.md") == (tmp_path / "a.md").read_text()
    assert json.loads(table_comparison.to_json())["methods"][3]["name"] == "dcem"
    assert table_comparison._repr_html_().startswith("<iframe")


def test_every_number_of_a_judgement_has_a_caption() -> None:
    numbers = {one.name for one in fields(Judgement) if "Estimate" in str(one.type)}
    assert numbers - {"when_acting"} | set(WHEN_ACTING) == set(CAPTIONS)
