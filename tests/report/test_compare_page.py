import re
from dataclasses import replace
from math import nan

import pytest
from made_up import GROUPS, made_up_comparison

from dcem.compare.results import GroupCounts, estimates
from dcem.metrics.estimate import Estimate
from dcem.report.compare import comparison_to_markdown, render_comparison
from dcem.report.compare_tables import groups_table, main_pair, shown_targets
from dcem.report.words import with_interval


@pytest.fixture(scope="module")
def text() -> str:
    return render_comparison(made_up_comparison())


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)).replace("&lt;", "<")


@pytest.mark.parametrize("of", ["page", "markdown"])
def test_every_estimate_is_shown_with_its_interval(of, text, table_comparison) -> None:
    shown = plain(text) if of == "page" else comparison_to_markdown(table_comparison)
    for method in table_comparison.methods:
        for judged in method.judgements.values():
            for metric, of_whom, estimate in estimates(judged):
                digits = 4 if metric == "net_benefit" else 3
                expected = with_interval(estimate, digits)
                assert expected in shown, (method.name, metric, of_whom)
    for score in table_comparison.planted.scores:
        assert with_interval(score.auc) in shown
        assert with_interval(score.roc_gap) in shown


@pytest.mark.parametrize("of", ["page", "markdown"])
def test_assumptions_conclusions_and_provenance_are_told(of, text, table_comparison) -> None:
    shown = text if of == "page" else comparison_to_markdown(table_comparison)
    if of == "page":
        shown = plain(shown.replace("<code>", "`").replace("</code>", "`")).replace("\u00a0", " ")
    shown = shown.replace("&amp;", "&")
    told = [
        *(target.assumption for target in table_comparison.targets),
        *table_comparison.sentences,
        *table_comparison.warnings,
        *table_comparison.planted.sentences,
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
    wanted = {"overlap", "forest", "pseudo-labels", "planted", "history-dcem", "testing-y-obs"}
    wanted |= {f"{what}-{t}" for what in ("roc", "calibration", "decisions")
               for t in ("tested", "ipw", "dr")}  # fmt: skip
    assert wanted <= set(names)


def test_without_overlap_nothing_is_said_of_everybody() -> None:
    comparison = made_up_comparison(estimable=False, n_methods=2)
    assert [target.key for target in shown_targets(comparison)] == ["tested"]
    text = render_comparison(comparison)
    reason = comparison.overlap.reason.rstrip(".")
    assert f"cannot be estimated from the tests: {reason}" in plain(text).replace("\u00a0", " ")
    assert 'id="roc-dr-title"' not in text
    assert f"not estimable: {reason}" in comparison_to_markdown(comparison)


def test_a_number_that_is_missing_is_not_drawn_as_one() -> None:
    table_comparison = made_up_comparison(n_methods=2)
    first, *rest = table_comparison.methods
    lost = {
        key: replace(judged, auc=Estimate(nan, reason="no positives"), gap_by_chance=nan)
        for key, judged in first.judgements.items()
    }
    changed = replace(table_comparison, methods=(replace(first, judgements=lost), *rest))
    text = plain(render_comparison(changed))
    assert "not estimable: no positives" in text
    assert "nan" not in text.lower().split()


def test_truth_comes_first_where_it_exists() -> None:
    targets = shown_targets(made_up_comparison(truth=True))
    assert [target.key for target in targets] == ["truth", "dr", "ipw", "tested"]


def test_the_pair_shown_first_is_the_two_largest_groups(table_comparison) -> None:
    assert main_pair(table_comparison) == (GROUPS[0], GROUPS[1])


def test_small_counts_cannot_be_read_or_worked_out(table_comparison) -> None:
    """Four positives in the last group: neither they nor what they could be subtracted from."""
    *others, last = groups_table(table_comparison).rows[:-1]
    total = groups_table(table_comparison).rows[-1]
    assert last[3] == "<10"
    shown = [row[3] for row in others if re.match(r"[\d,]+ ", row[3])]
    assert len(shown) < len(others), "all but one shown beside the total: it can be subtracted"
    assert re.match(r"[\d,]+", total[3])


def test_a_group_called_like_a_total_is_a_group_like_any_other(table_comparison) -> None:
    groups = tuple(GroupCounts(name, 900, 300, 100) for name in ("0", "all", "3"))
    rows = groups_table(replace(table_comparison, groups=groups)).rows
    assert [row[1] for row in rows] == ["900", "900", "900", "2,700"]


def test_names_from_the_table_are_escaped(text, table_comparison) -> None:
    assert "Hispanic <b>" not in text
    assert "Hispanic &lt;b&gt;" in text
    table = comparison_to_markdown(replace(table_comparison, data={"file": "a|b"}))
    assert "# Methods compared on a|b" in table
    assert "| Hispanic \\<b> $1$ |" in table
    assert ">Hispanic &lt;b&gt; $1$</text>" in text, "a name is not mathematics"


def test_small_groups_do_not_just_vanish_from_figures(text) -> None:
    assert "Not drawn, since there are too few people: other &amp; unknown." in text


def test_what_has_no_number_is_one_sentence_not_a_table(table_comparison) -> None:
    caption = f"AUC difference: {GROUPS[0]} minus {GROUPS[3]}"
    text = comparison_to_markdown(table_comparison)
    assert f"- {caption}: not estimable: one group has 7 positives, and 10 are needed." in text
    assert f"**{caption}**" not in text


def test_same_comparison_same_page() -> None:
    comparison = made_up_comparison(n_methods=1)
    assert render_comparison(comparison) == render_comparison(comparison)
