"""A model's card: how good it is, for whom, at which threshold, or that nobody knows."""

from dataclasses import replace
from math import nan

import numpy as np
import pandas as pd
import pytest
from document_cells import cells

from dcem import Roles, compare_methods, read_table
from dcem.estimation.results import EVERYBODY
from dcem.report.card import UNJUDGED, card_document
from dcem.report.document import Name, Number
from dcem.report.to_html import to_html
from dcem.report.to_markdown import to_markdown
from dcem.scoring import fit_table

METHOD = "tested-only:linear"


@pytest.fixture(scope="module")
def people():
    draw = np.random.default_rng(0)
    n = 1200
    x = draw.normal(size=n)
    race = draw.choice(["north <b>", "south"], n)
    noise = draw.normal(size=n)  # decides about tests, and not about the outcome
    tested = draw.random(n) < 1 / (1 + np.exp(0.5 * (race == "north") - noise))
    y = pd.Series((draw.random(n) < 1 / (1 + np.exp(-2 * x))) * 1.0).where(tested)
    frame = pd.DataFrame({"x": x, "noise": noise, "race": race, "y": y})
    return read_table(frame, Roles(label="y", group="race"))


@pytest.fixture(scope="module")
def model(people):
    return fit_table(people, METHOD)


@pytest.fixture(scope="module")
def comparison(people):
    return compare_methods(people.problem, [METHOD], planted=0, n_folds=2, n_resamples=20)


def test_the_first_screen_holds_the_judgement(model, comparison) -> None:
    document = card_document(model, comparison)
    judged = comparison.methods[0].judgements["dr"]
    assert model.name == METHOD
    assert document.opening.numbers[0].cell == Number(judged.auc)
    assert len(document.opening.numbers) == 3
    rows = document.opening.picture.rows
    assert [row.label for row in rows] == ["everybody", Name("north <b>"), Name("south")]
    areas = {EVERYBODY: judged.auc, **judged.group_auc}
    for row, name in zip(rows, areas, strict=True):
        rate = judged.when_acting["true_positive_rate"][name]
        assert row.values == (Number(areas[name]), Number(rate, "percent"))
    caught = judged.when_acting["true_positive_rate"][EVERYBODY]
    assert f"finds about {100 * caught.value:.0f} of 100" in document.opening.verdict.sentences[1]
    assert "north <b>" not in to_html(document)  # as text, never as markup
    assert "| south |" in to_markdown(document)


@pytest.mark.parametrize(("end", "severity"), [(0.04, "fine"), (0.06, "note")])
def test_fine_is_only_what_is_known_to_serve_the_groups_alike(
    model, comparison, end, severity
) -> None:
    method = comparison.methods[0]
    judged = method.judgements["dr"]
    gap = replace(judged.roc_gap, value=0.01, low=0.0, high=end)
    judgements = {**method.judgements, "dr": replace(judged, roc_gap=gap)}
    changed = replace(comparison, methods=(replace(method, judgements=judgements),), findings=())
    assert card_document(model, changed).opening.verdict.severity == severity


def test_a_model_of_all_rows_is_not_said_to_be_as_good_as_those_of_a_draw(
    model, comparison
) -> None:
    drawn = replace(comparison, rows=40_000, rows_used=10_000)
    for judged, times in ((comparison, 0), (drawn, 1)):
        said = card_document(model, judged).opening.limits
        assert sum("fitted to all rows" in limit for limit in said) == times
    assert sum("10,000 of 40,000 rows" in limit for limit in said) == 1


def test_what_holds_within_reach_is_not_said_of_everybody(model, comparison) -> None:
    whole = card_document(model, comparison).opening
    targets = tuple(replace(one, reach=0.7) for one in comparison.targets)
    partly = card_document(model, replace(comparison, targets=targets)).opening
    assert partly.verdict.answer == f"{whole.verdict.answer}, among those within reach of the tests"
    assert len(partly.limits) == len(whole.limits) + 1
    assert "30 %" in partly.limits[0]
    finds = " of 100 people with the outcome, within reach of the tests, ("
    assert finds in partly.verdict.sentences[1]
    assert finds not in whole.verdict.sentences[1]


def test_numbers_say_of_whom_they_are(people, model, comparison) -> None:
    """The lowest AUC is one of those known; the highest scores are those of the same people."""
    targets = tuple(replace(one, reach=0.7) for one in comparison.targets)
    method = comparison.methods[0]
    judged = method.judgements["dr"]
    unknown = replace(judged.auc, value=nan, low=nan, high=nan, reason="too few")

    def second(groups) -> str:
        judgements = {**method.judgements, "dr": replace(judged, group_auc=groups)}
        changed = replace(method, judgements=judgements)
        made = replace(comparison, targets=targets, methods=(changed,), findings=())
        return card_document(model, made).opening.numbers[1].label

    assert second(judged.group_auc).endswith("the lowest of any group")
    some = second({**judged.group_auc, "east": unknown})
    assert some.endswith("the lowest of the groups that can be judged")
    assert "of those within reach of the tests with the highest scores" in second({})
    text = to_markdown(card_document(model, comparison))
    assert f"judged on: {len(people.problem):,} rows" in text


def test_a_docstring_s_emphasis_is_not_part_of_the_page(model) -> None:
    page = to_html(card_document(model))
    assert "Idea." in page
    assert "*Idea" not in page


def test_what_counts_as_yes_is_not_a_word_of_a_field(model) -> None:
    assert "that `y` is yes" in to_markdown(card_document(model), "credit")


def test_without_a_comparison_nothing_is_claimed(model) -> None:
    document = card_document(model)
    assert document.opening.verdict.answer == UNJUDGED
    assert not any(isinstance(cell, Number) for cell in cells(document))


def test_another_method_s_judgement_is_not_taken(people, comparison) -> None:
    other = fit_table(people, "y-obs:linear")
    assert not other.judged_by(comparison)
    assert card_document(other, comparison).opening.verdict.answer == UNJUDGED


@pytest.mark.parametrize("group", [0, 1])
def test_the_judgement_of_another_group_s_model_is_not_taken(people, comparison, group) -> None:
    model = fit_table(people, f"group-{group}-only", learner="linear")
    assert model.name == f"group-{group}-only:linear"
    for named, judged in (("group-only", 0), ("group-0-only", 0), ("group-1-only", 1)):
        renamed = replace(comparison.methods[0], name=f"{named}:linear")
        of_group = replace(comparison, methods=(renamed,))
        assert model.judged_by(of_group) == (judged == group)
        told = card_document(model, of_group).opening.verdict.answer
        assert (told != UNJUDGED) == (judged == group)


def test_page_and_markdown_are_in_the_folder(model, comparison, tmp_path) -> None:
    model.save(tmp_path / "m", comparison)
    names = {path.name for path in (tmp_path / "m").iterdir()}
    assert names == {"model.json", "model.safetensors", "MODEL_CARD.md", "MODEL_CARD.html"}
    model.save(tmp_path / "m")  # replaces it: a folder with a page is still a model's
    assert UNJUDGED in (tmp_path / "m" / "MODEL_CARD.md").read_text()
    page = (tmp_path / "m" / "MODEL_CARD.html").read_text()
    assert 'class="numbers"' not in page  # nothing to rule off
    assert 'class="shown"' not in page


def test_what_drives_the_score_stands_beside_what_drives_testing(people, model, comparison) -> None:
    explained = model.explained(people)
    for score, testing in (
        (explained.effects, explained.testing_effects),
        (comparison.methods[0].effects, comparison.testing_effects),
    ):
        share = {one.column: one.share for one in score}
        of_testing = {one.column: one for one in testing}
        assert share["x"] > 0.9 > 0.1 > share["noise"]
        assert of_testing["noise"].share > 0.9
        assert of_testing["noise"].moved > 0.1
        effect = of_testing["noise"]
        assert (np.diff(effect.value) > 0).all()
        assert effect.value[-1] - effect.value[0] == pytest.approx(0.65, abs=0.15)
    (told,) = [one for one in comparison.findings if one.key == "drives-testing"]
    assert told.values["columns"].keys() == {"noise"}
    document = card_document(explained)
    shown = [cell.estimate.value for cell in cells(document) if isinstance(cell, Number)]
    assert {one.share for one in (*explained.effects, *explained.testing_effects)} <= {*shown}
    assert [one.column for one in comparison.testing_effects] in (["x", "noise"], ["noise", "x"])
