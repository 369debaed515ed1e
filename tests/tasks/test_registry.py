"""Kinds of task by name: what a file may say of each, and which settings exist."""

import inspect

import numpy as np
import pytest

from dcem.table.messages import InputError
from dcem.tasks import make_sinusoid
from dcem.tasks.registry import KINDS, completed, file_hashes, kind_of, make_task, possible


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_offers_what_its_maker_takes(name):
    kind = KINDS[name]
    taken = set(inspect.signature(kind.make).parameters)
    assert {"random_state" if p == "seed" else p for p in kind.parameters} == taken
    assert set(kind.defaults) | set(kind.every) | set(kind.needs) <= set(kind.parameters)
    assert set(kind.needs) == set(kind.files)


@pytest.mark.parametrize(
    ("name", "given", "taken"),
    [("k", "1/3", 1 / 3), ("k", 2, 2.0), ("n_train", 50, 50), ("preset", "as-written", None)],
)
def test_values_become_what_the_maker_takes(name, given, taken):
    value = KINDS["sinusoid"].value(name, given)
    assert value == (given if taken is None else taken)
    assert type(value) is type(given if taken is None else taken)


@pytest.mark.parametrize(
    ("name", "given"), [("k", "half"), ("k", "1/0"), ("k", True), ("seed", 1.5), ("seed", True)]
)
def test_values_that_are_no_numbers_are_refused(name, given):
    with pytest.raises(ValueError, match="number"):
        KINDS["sinusoid"].value(name, given)


def test_a_task_says_how_its_rows_are_drawn():
    def drawn(**values):
        told = completed({"kind": "sinusoid"} | values)
        return told["preset"], told["stream"], told.get("seed")

    assert drawn() == ("as-released", "published", None)
    assert drawn(seed=3) == ("as-released", "independent", 3)
    assert drawn(preset="as-written") == ("as-written", "independent", 0)
    assert drawn(stream="independent") == ("as-released", "independent", 0)


def test_angles_are_degrees_and_seeds_random_states():
    small = {"n_train": 50, "n_validation": 50, "n_test": 50}
    ours = make_task(
        {"kind": "sinusoid", "k": 1.0, "phase": 90.0, "stream": "independent", "seed": 5} | small
    )
    same = make_sinusoid(phase=np.pi / 2, stream="independent", random_state=5, **small)
    np.testing.assert_array_equal(ours.train.X, same.train.X)


def test_what_cannot_exist_is_left_out_with_its_reason():
    tasks = [{"kind": "sinusoid", "k": k, "q_t": 2.0} for k in (1.0, 50.0, 50.0)]
    feasible, notes = possible(tasks)
    assert feasible == tasks[:1]
    assert len(notes) == 1
    assert notes[0].startswith("k 50, q_t 2")


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.needs])
def test_a_missing_file_is_named(name):
    with pytest.raises(InputError, match=f"{name.capitalize()} tasks need a"):
        kind_of({"kind": name, "k": 1.0})


def test_a_file_is_known_by_its_content(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_text("the same")
    told = [file_hashes({"kind": "diabetes", "path": str(tmp_path / n)}) for n in ("one", "two")]
    assert told[0] == told[1]
    assert set(told[0]) == {"path"}
    assert file_hashes({"kind": "sinusoid"}) == {}


@pytest.mark.parametrize(
    ("kind", "name", "given", "message"),
    [
        ("nhanes", "weights", "no", "true or false"),
        ("nhanes", "outcome", "diabtes", "Did you mean 'diabetes'"),
        ("sinusoid", "preset", "as-relesed", "one of as-released, as-written"),
        ("sinusoid", "stream", 3, "one of published, independent"),
        ("sepsis", "sign", "printed", "one of as-released, as-printed"),
    ],
)
def test_words_that_the_maker_does_not_know_are_refused_at_once(kind, name, given, message):
    with pytest.raises(ValueError, match=message):
        KINDS[kind].value(name, given)
