"""One rule for the method to take."""

import sys

import pytest

from dcem.methods.choosing import DEFAULT, choose, choose_from

COMPARED = [DEFAULT, "tested-only", "dcem"]


@pytest.mark.parametrize(
    ("best", "level_with", "compared", "taken"),
    [
        (None, (), (), DEFAULT),
        (DEFAULT, (), COMPARED, DEFAULT),
        ("dcem", (DEFAULT,), COMPARED, DEFAULT),
        ("dcem", ("tested-only",), COMPARED, "dcem"),
        ("dcem", (), ["dcem", "tested-only"], DEFAULT),  # the default was not looked at
        ("tested-only-plus-group:linear", (), COMPARED, DEFAULT),  # not without the group
    ],
)
def test_the_default_unless_another_is_clearly_better(best, level_with, compared, taken):
    assert choose(best, level_with, compared).method == taken


def test_a_saved_comparison_counts_for_its_own_table():
    saved = {
        "data": {"SHA-256": "abc", "rows": "9", "label": "ill"},
        "methods": [{"name": name} for name in COMPARED],
        "standings": {
            "tested": {"best": DEFAULT, "level_with": []},
            "dr": {"best": "dcem", "level_with": []},
        },
    }
    roles = {"label": "ill"}
    assert choose_from(saved, "abc", roles).method == "dcem"
    assert choose_from(saved, "abd", roles) is None
    assert choose_from(saved, "abc", {"label": "dead"}) is None
    assert choose_from(saved, "abc", roles | {"id": "patient"}) is None
    assert choose_from(saved | {"standings": {}}, "abc", roles) is None
    assert choose_from([], "abc", roles) is None
    gone = {"best": "a method of another version", "level_with": []}
    assert choose_from(saved | {"standings": {"dr": gone}}, "abc", roles) is None
    assert choose_from({"data": []}, "abc", roles) is None


def test_who_ranks_the_tested_best_does_not_overrule_the_default():
    first = {"best": "dcem", "level_with": []}
    saved = {
        "data": {"SHA-256": "abc"},
        "methods": [{"name": name} for name in COMPARED],
        "standings": {"tested": first},
    }
    choice = choose_from(saved, "abc", {})
    assert choice.method == DEFAULT
    assert "among the tested alone" in choice.reason
    # where only positives are known and rates are stated, everybody counts as tested
    roles = {"positives only": "yes"}
    saved["data"] |= roles
    assert choose_from(saved, "abc", roles).method == "dcem"


def test_a_method_whose_library_is_missing_is_named_and_not_taken(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    choice = choose("dcem", (), COMPARED)
    assert choice.method == DEFAULT
    assert "dcem, clearly better" in choice.reason
    assert "torch" in choice.reason
    assert choose("tested-only:linear", (), COMPARED).method == "tested-only:linear"


def test_best_is_no_more_than_the_comparison_found():
    assert "may be as good" in choose(DEFAULT, ["dcem"], COMPARED).reason
    assert "clearly ranks best" in choose(DEFAULT, (), COMPARED).reason
    everybody = choose(DEFAULT, (), COMPARED).reason
    assert "among the tested" not in everybody
    alone = choose(DEFAULT, (), COMPARED, everybody=False).reason
    assert "clearly ranks best among the tested alone" in alone
