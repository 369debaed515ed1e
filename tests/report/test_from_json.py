"""A page made from a saved result is the page that was made from the result itself."""

import json
from dataclasses import replace

import pytest
from choices import linear
from made_up import made_up_comparison

import dcem
from dcem.report.audit import audit_document
from dcem.report.compare import compare_document
from dcem.report.from_json import read_result
from dcem.report.to_html import to_html
from dcem.report.to_json import to_json
from dcem.report.to_markdown import to_markdown
from dcem.table.messages import InputError

pytestmark = pytest.mark.usefixtures("linear_models")


def again(document, tmp_path):
    path = tmp_path / "saved.json"
    path.write_text(to_json(document, "policing"), encoding="utf-8")
    return read_result(path)


@pytest.fixture(scope="module")
def audit():
    people = dcem.tasks.make_sinusoid().train
    return dcem.audit_labels(people.subset(slice(0, None, 10)), learners=linear)


@pytest.mark.parametrize("words", ["general", "credit"])
def test_an_audit(audit, tmp_path, words) -> None:
    document = audit_document(audit, "An audit", {"file": "a.csv", "versions": "Python 1"})
    read = again(document, tmp_path)
    assert to_markdown(read, words) == to_markdown(document, words)
    assert json.loads(to_json(read)) == json.loads(to_json(document))
    assert "<svg" in to_html(read, words)


def test_a_comparison(tmp_path) -> None:
    document = compare_document(made_up_comparison())
    read = again(document, tmp_path)
    assert to_markdown(read) == to_markdown(document)
    assert json.loads(to_json(read)) == json.loads(to_json(document))


def test_hidden_counts_stay_hidden(tmp_path) -> None:
    made = made_up_comparison()
    few = tuple(replace(group, positives_seen=3) for group in made.groups)
    document = compare_document(replace(made, groups=few))
    read = again(document, tmp_path)
    shown = json.loads(to_json(read))["groups"]
    assert [group["positives_seen"] for group in shown] != [3] * len(shown)
    assert shown == json.loads(to_json(document))["groups"]


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"findings": []}', "\udcff", "[" * 100_000])
def test_what_is_no_result_is_refused(tmp_path, text) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"x\.json"):
        read_result(path)


def test_a_damaged_result_is_refused(audit, tmp_path) -> None:
    saved = json.loads(to_json(audit_document(audit)))
    for name in ("testing", "overlap", "made", "prevalence"):
        path = tmp_path / "x.json"
        path.write_text(json.dumps(saved | {name: 3}))
        with pytest.raises(InputError, match="not a result of this version"):
            read_result(path)
