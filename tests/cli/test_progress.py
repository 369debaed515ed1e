"""Progress: every step of an audit is announced, and what is left is estimated."""

import json
import re
from io import StringIO

import pytest
from rich.console import Console

import dcem
from dcem.audit.run import audit_labels, audit_steps
from dcem.cli._progress import remaining, telling


def test_the_steps_of_an_audit_are_those_announced() -> None:
    people = dcem.tasks.make_sinusoid().train.subset(slice(0, None, 20))
    alone = {"one": people}
    told: list[str] = []
    audit_labels(people, attributes=alone, progress=told.append)
    assert told == list(audit_steps(people, alone))


def test_off_a_terminal_each_step_is_a_line_with_what_is_left() -> None:
    console = Console(record=True, width=80, force_terminal=False, file=StringIO())
    with telling({"first": 1.0, "second": 3.0, "third": 4.0}, console) as progress:
        for step in ("first", "second", "third", "something else"):
            progress(step)
    lines = console.export_text().splitlines()
    assert [re.sub(r"^ +\d+ s +|, .*", "", line) for line in lines] == [
        "first",
        "second",
        "third",
        "something else",
    ]
    assert ["left" in line for line in lines] == [False, True, True, False]


def test_whoever_waits_reads_lines_of_json(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DCEM_PROGRESS", str(tmp_path / "progress"))
    console = Console(force_terminal=False, file=StringIO())
    with telling({"first": 1.0, "second": 3.0}, console) as progress:
        for step in ("first", "second", "something else"):
            progress(step)
    lines = (tmp_path / "progress").read_text().splitlines()
    assert [json.loads(line)["share"] for line in lines] == [0.0, 0.25, None]
    assert json.loads(lines[1])["doing"].startswith("second, ")


@pytest.mark.parametrize(
    ("share", "passed", "left"), [(0.0, 9, ""), (0.25, 10, "30 seconds"), (0.5, 600, "10 minutes")]
)
def test_what_is_left(share, passed, left) -> None:
    assert left in remaining(share, passed)
    assert bool(remaining(share, passed)) == bool(left)
