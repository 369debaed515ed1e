"""Benchmark files: what they may say, and what is said about a slip."""

import re
from contextlib import suppress

import pytest
from damaged_benchmarks import configurations

from dcem.benchmark.cells import Cell, expand
from dcem.benchmark.toml_file import load_benchmark, preset_names
from dcem.table.messages import InputError


def write(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def test_lists_are_crossed_and_fractions_worked_out(tmp_path):
    path = write(
        tmp_path,
        """
        [[tasks]]
        k = ["1/3", 2]
        phase = "all"
        [[methods]]
        name = ["y-obs", "tested-only"]
        """,
    )
    benchmark = load_benchmark(path)
    assert benchmark.name == "mine"
    assert len(benchmark.tasks) == 2 * 12
    assert {task["k"] for task in benchmark.tasks} == {1 / 3, 2.0}
    plan, notes = expand(benchmark)
    assert len(plan) == 48
    assert notes == []
    assert len({one.cell.id for one in plan}) == 48
    assert len({one.cell.kind for one in plan}) == 2  # one fleet a method


def test_parameter_grids_have_labels(tmp_path):
    path = write(
        tmp_path,
        """
        [[tasks]]
        [[methods]]
        name = "dcem"
        grid = {temperature = [0.1, 10.0]}
        label = "at {temperature:g}"
        [[methods]]
        name = "y-obs"
        grid = {steps = [10, 20]}
        """,
    )
    labels = [one.label for one in load_benchmark(path).methods]
    assert labels == ["at 0.1", "at 10", "y-obs (steps 10)", "y-obs (steps 20)"]


def test_settings_that_cannot_exist_are_named_and_left_out():
    benchmark = load_benchmark("grid").only(["y-obs"])
    plan, notes = expand(benchmark)
    assert len(benchmark.tasks) == 224 * 12
    assert len(plan) == (224 - 4 * 4) * 12
    assert len(notes) == 4  # k 3 with q_t 1/4, 1/3, 3, 4
    assert all(note.startswith("k 3, q_t") for note in notes)


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_has_cells(name, cohort):
    sepsis = load_benchmark(name).tasks[0]["kind"] == "sepsis"
    benchmark = load_benchmark(name, cohort=str(cohort) if sepsis else None)
    assert benchmark.about
    plan, _ = expand(benchmark)
    assert len(plan) > 0
    assert all(Cell.from_json(one.cell.as_json()) == one.cell for one in plan[:: len(plan) // 3])


def test_sepsis_needs_a_cohort_and_is_known_by_its_content(cohort):
    with pytest.raises(InputError, match="Sepsis tasks need a `cohort`"):
        expand(load_benchmark("sepsis"))
    plan, notes = expand(load_benchmark("sepsis", cohort=str(cohort)).only(["y-obs"]))
    assert [note[:10] for note in notes] == ["k 5, q_t 2"]
    assert len(plan) == 44 * 11
    moved = cohort.rename(cohort.with_name("elsewhere.parquet"))
    again, _ = expand(load_benchmark("sepsis", cohort=str(moved)).only(["y-obs"]))
    assert [one.cell.id for one in again] == [one.cell.id for one in plan]


def test_a_file_that_is_no_cohort_is_named(tmp_path):
    (tmp_path / "wrong.parquet").write_text("nothing")
    with pytest.raises(InputError, match=r"wrong\.parquet cannot be read as a cohort"):
        expand(load_benchmark("sepsis-figure4", cohort=str(tmp_path / "wrong.parquet")))


def test_the_sepsis_presets_share_their_cells(cohort):
    plans = [
        expand(load_benchmark(name, cohort=str(cohort)))[0] for name in ("sepsis", "sepsis-figure4")
    ]
    whole, one = ({planned.cell.id for planned in plan} for plan in plans)
    assert one < whole
    assert len(one) == 110


def test_presets_are_those_of_the_paper():
    named = {"figure2", "shown", "grid", "ablation", "causal-estimators", "overlap", "temperature"}
    assert named | {"initialization", "sepsis"} <= set(preset_names())
    shown = load_benchmark("shown")
    assert {(task["q_y"], task["k"], task["q_t"]) for task in shown.tasks} == {
        (0.5, k, q_t) for k in (1 / 3, 0.5, 1.0, 2.0, 3.0) for q_t in (0.5, 1.0, 2.0)
    }
    assert all(method.published for method in shown.methods)


def test_benchmarks_share_cells():
    cells = {
        name: {one.cell.id for one in expand(load_benchmark(name).only(["dcem"]))[0]}
        for name in ("figure2", "shown", "overlap")
    }
    assert cells["figure2"] < cells["shown"]
    assert cells["figure2"] < cells["overlap"]


def test_a_cell_is_known_by_everything_that_decides_its_result(tmp_path):
    def ids(task="", params=""):
        text = f"[[tasks]]\nseed = 3\n{task}\n[[methods]]\nname = 'y-obs'\nparams = {{{params}}}"
        return {one.cell.id for one in expand(load_benchmark(write(tmp_path, text)))[0]}

    base = ids()
    assert ids(params="steps = 1000") == base  # the default, spelled out
    assert ids(params="device = 'cpu'") == base  # where it runs is not what it is
    assert ids(params="steps = 999") != base
    assert ids(task="phase = 30") != base


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[tasks]]\n[[methods]]\nnaem = 'dcem'", "Did you mean 'name'"),
        ("[[tasks]]\nqt = 2\n[[methods]]\nname = 'dcem'", "Did you mean 'q_t'"),
        ("[[tasks]]\nk = 'half'\n[[methods]]\nname = 'dcem'", "k = 'half' is not a number"),
        ("[[tasks]]\nkind = 'sinus'\n[[methods]]\nname = 'dcem'", "Did you mean 'sinusoid'"),
        ("metrics = ['AUC']\n[[tasks]]\n[[methods]]\nname = 'dcem'", "Did you mean 'auc'"),
        ("[[methods]]\nname = 'dcem'", "names no tasks"),
        ("[[tasks]]", "names no methods"),
        ("[[tasks]]\n[[methods]]\nname = ['dcem', 'dcem']", "two methods are called 'dcem'"),
        ("[[tasks]", "not valid TOML"),
        ("tasks = ['a']\n[[methods]]\nname = 'dcem'", "names no tasks"),
        ("[[tasks]]\nk = '1/0'\n[[methods]]\nname = 'dcem'", "k = '1/0' is not a number"),
        ("[[tasks]]\nseed = 'one'\n[[methods]]\nname = 'dcem'", "seed = 'one' should be a whole"),
        ("[[tasks]]\n[[methods]]\nname = 'dcem'\nseed = '1'", "seed = '1' of method 'dcem'"),
        ("[[tasks]]\n[[methods]]\nname = 'dcem'\nparams = 5", "params of method 'dcem'"),
        ("[[tasks]]\n[[methods]]\nname = 'dcem'\ngrid = {steps = 5}", "should be a list"),
        ("[[tasks]]\n[[methods]]\nname = 'dcem'\nlabel = '{stesp}'", "label '{stesp}' cannot"),
        ("[[tasks]]\n[[methods]]\nname = 'dcem'\nlabel = '{name.x}'", "label '{name.x}' cannot"),
        ("tasks = [{k = 1}, 3]\n[[methods]]\nname = 'dcem'", "names no tasks"),
        ("[[tasks]]\npreset = 'x'\n[[methods]]\nname = 'dcem'", "preset = 'x' should be one of"),
    ],
)
def test_slips_are_named(tmp_path, text, message):
    with pytest.raises(InputError, match=re.escape(message)):
        load_benchmark(write(tmp_path, text))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("steps = 'many'", "steps = 'many' of method 'y-obs' should be a whole number."),
        ("steps = 10.5", "steps = 10.5 of method 'y-obs' should be a whole number."),
        ("steps = true", "steps = True of method 'y-obs' should be a whole number."),
        ("learning_rate = 'low'", "learning_rate = 'low' of method 'y-obs' should be a number."),
        ("hidden = 64", "hidden = 64 of method 'y-obs' should be a list, each a whole number."),
        ("hidden = [64, 'x']", "hidden = [64, 'x'] of method 'y-obs' should be a list, each"),
        ("batch_size = [1]", "batch_size = [1] of method 'y-obs' should be a whole number or text"),
    ],
)
def test_bad_values_are_named_with_file_method_and_parameter(tmp_path, params, message):
    path = write(tmp_path, f"[[tasks]]\n[[methods]]\nname = 'y-obs'\nparams = {{{params}}}")
    with pytest.raises(InputError, match=re.escape(f"mine.toml: {message}")):
        load_benchmark(path)


def test_good_values_of_every_kind_are_taken(tmp_path):
    params = "hidden = [8], learning_rate = 1, batch_size = 'auto', patience = 3"
    text = f"[[tasks]]\n[[methods]]\nname = ['y-obs', 'group-0-only']\nparams = {{{params}}}"
    assert len(expand(load_benchmark(write(tmp_path, text)))[0]) == 2


def test_an_unknown_method_is_named_before_anything_runs(tmp_path):
    path = write(tmp_path, "[[tasks]]\n[[methods]]\nname = 'testd-only'")
    with pytest.raises(InputError, match="Did you mean 'tested-only'"):
        expand(load_benchmark(path))


@pytest.mark.parametrize("method", ["dcem", "sar-em"])
def test_both_em_methods_are_searched_with_and_without_carried_weights(method):
    plan, _ = expand(load_benchmark(f"search-{method}"))
    given = [one.cell.method["params"]["carry_weights"] for one in plan]
    assert (given.count(True), given.count(False)) == (12, 12)
    assert len({one.cell.id for one in plan}) == 24


def test_an_unknown_preset_is_named():
    with pytest.raises(InputError, match="Did you mean 'figure2'"):
        load_benchmark("figure-2")


def test_only_some_methods():
    assert [m.name for m in load_benchmark("shown").only(["dcem", "y-obs"]).methods] == [
        "y-obs",
        "dcem",
    ]
    with pytest.raises(InputError, match="Did you mean 'dcem'"):
        load_benchmark("shown").only(["dcm"])


def test_a_parameter_of_any_type_takes_any_value(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text(
        '[[tasks]]\nkind = "sinusoid"\nq_y = 0.5\nk = 1\nq_t = 2\nphase = 0\n'
        '[[methods]]\nname = "dividemix"\ngrid = {random_state = [52, 62]}\n'
    )
    assert [entry.params["random_state"] for entry in load_benchmark(path).methods] == [52, 62]


def test_what_is_known_is_listed_in_the_same_order_every_time(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text("odd = 1\n")
    with pytest.raises(InputError, match=r"Known: name, about, metrics, tasks, methods\."):
        load_benchmark(path)
    path.write_text('[[tasks]]\nk = 1\n[[methods]]\nname = "dcem"\nodd = 1\n')
    with pytest.raises(InputError, match=r"Known: name, published, params, grid, label, seed\."):
        load_benchmark(path)


def test_damaged_files_are_read_or_refused(tmp_path) -> None:
    for name, content in list(configurations())[::4]:
        file = tmp_path / "benchmark.toml"
        file.write_bytes(content)
        with suppress(InputError):
            assert load_benchmark(file).tasks, name
