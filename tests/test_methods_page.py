"""docs/methods.md says what the registry says."""

import importlib.util
from pathlib import Path

from dcem.methods.describe import describe_all

DOCS = Path(__file__).resolve().parents[1] / "docs"


def load_generator():
    spec = importlib.util.spec_from_file_location("generate_methods", DOCS / "make" / "methods.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current():
    generator = load_generator()
    assert (DOCS / "methods.md").read_text() == generator.page(), (
        "docs/methods.md is out of date: run `python docs/make/methods.py`"
    )


def test_every_method_teaches_idea_assumption_failure_and_source():
    for said in describe_all():
        assert {"Idea", "Assumption", "When it fails", "Reference"} <= set(said.sections), said.name
