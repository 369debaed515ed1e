"""docs/methods.md says what the registry says."""

from pages import DOCS, generator

from dcem.methods.describe import describe_all


def test_the_page_is_current():
    assert (DOCS / "methods.md").read_text() == generator("methods").page(), (
        "docs/methods.md is out of date: run `python docs/make/methods.py`"
    )


def test_every_method_teaches_idea_assumption_failure_and_source():
    for said in describe_all():
        assert {"Idea", "Assumption", "When it fails", "Reference"} <= set(said.sections), said.name
