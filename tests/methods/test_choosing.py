"""One rule for the method to take."""

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
    ],
)
def test_the_default_unless_another_is_clearly_better(best, level_with, compared, taken):
    assert choose(best, level_with, compared).method == taken


def test_a_saved_comparison_counts_for_its_own_table():
    saved = {
        "data": {"SHA-256": "abc"},
        "methods": [{"name": name} for name in COMPARED],
        "standings": {
            "tested": {"best": DEFAULT, "level_with": []},
            "dr": {"best": "dcem", "level_with": []},
        },
    }
    assert choose_from(saved, "abc").method == "dcem"
    assert choose_from(saved, "abd") is None
    assert choose_from(saved | {"standings": {}}, "abc") is None
    assert choose_from([], "abc") is None


def test_best_is_no_more_than_the_comparison_found():
    assert "may be as good" in choose(DEFAULT, ["dcem"], COMPARED).reason
    assert "clearly ranks best" in choose(DEFAULT, (), COMPARED).reason
