"""Class: exact. Features, labels, tests and groups of real tables and of every kind of column."""

from pathlib import Path

import facts
import kinds
import pandas as pd
import pytest

RECORDED = Path(__file__).parent / "recorded" / "features.csv"
AS_TEXT = ("category", "text", "left out")


def recorded() -> pd.DataFrame:
    return pd.read_csv(RECORDED, keep_default_na=False, dtype=str)


def is_given_up(name: str, fact: str) -> bool:
    """True if a rare spelling is read as text now, with a note."""
    now, notes = facts.today(name)
    column = fact.partition(": ")[2].partition("=")[0]
    rare = name == facts.KINDS and column in kinds.RARE
    return rare and now.get(f"column: {column}") in AS_TEXT and bool(notes.get(column))


@pytest.mark.parametrize(
    "row", list(recorded().itertuples(index=False)), ids=lambda r: f"{r[0]}-{r[1]}"
)
def test_it_means_what_it_meant(row):
    name, fact, value = row
    assert facts.today(name)[0].get(fact) == value or is_given_up(name, fact)


@pytest.mark.parametrize("name", [*facts.TABLES, facts.KINDS])
def test_nothing_else_is_a_feature(name):
    then = set(recorded().query("table == @name")["fact"])
    assert not {
        fact for fact in facts.today(name)[0] if fact not in then and not is_given_up(name, fact)
    }
