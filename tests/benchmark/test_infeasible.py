"""Settings that cannot exist: left out with a reason, refused where nothing else is left."""

import pytest

from dcem.benchmark.cells import expand
from dcem.benchmark.toml_file import load_benchmark
from dcem.table.messages import InputError
from dcem.tasks.registry import possible

FILE = """
name = "impossible"
[[tasks]]
kind = "sinusoid"
q_y = 0.5
k = {k}
q_t = 2
phase = 0
[[methods]]
name = "y-obs"
"""


def test_one_of_two_is_left_out_with_its_reason(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text(FILE.format(k="[1, 50]"))
    planned, notes = expand(load_benchmark(path))
    assert len(planned) == 1
    assert len(notes) == 1
    assert "k 50" in notes[0]


def test_the_grid_says_how_many_of_its_settings_can_exist():
    grid = load_benchmark("grid")
    settings = {(task["q_y"], task["k"], task["q_t"]) for task in grid.tasks}
    feasible, _ = possible(grid.tasks)
    exist = {(task["q_y"], task["k"], task["q_t"]) for task in feasible}
    assert f"{len(exist)} of {len(settings)} settings" in grid.about
    others = {(k, q_t) for _, k, q_t in settings - exist}
    assert others == {(3, 1 / 4), (3, 1 / 3), (3, 3), (3, 4)}


def test_nothing_but_impossible_settings_is_an_error(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text(FILE.format(k="50"))
    with pytest.raises(InputError, match=r"none of its settings can exist.*k 50"):
        expand(load_benchmark(path))
