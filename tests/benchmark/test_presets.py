"""The benchmarks that come with the package name nothing that a method refuses."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import dcem
from dcem.benchmark.cells import estimator_of
from dcem.benchmark.toml_file import MethodInFile, load_benchmark, preset_names
from dcem.methods.propensity import PropensitySettings
from dcem.table.labels import SelectiveLabels


def corners(entries: tuple[MethodInFile, ...]) -> list[MethodInFile]:
    """The entries whose every parameter is at an end of its range."""
    ranges: dict[tuple[str, str], list] = {}
    for entry in entries:
        for key, value in entry.params.items():
            ranges.setdefault((entry.name, key), []).append(value)

    def at_an_end(name, key, value):
        found = ranges[name, key]
        return isinstance(value, str) or value in (min(found), max(found))

    return [
        entry
        for entry in entries
        if all(at_an_end(entry.name, key, value) for key, value in entry.params.items())
    ]


def smallest(estimator, given):
    """The same estimator for one step; what the benchmark names stays as it names it."""
    params = estimator.get_params(deep=False)
    propensity = params.get("propensity_settings") or PropensitySettings()
    budget = {"hidden": (4,), "steps": 1, "max_iter": 1, "warm_up": 0}
    budget["propensity_settings"] = replace(propensity, steps=1)
    chosen = {key: value for key, value in budget.items() if key in params and key not in given}
    return estimator.set_params(**chosen)


def tiny(n: int = 60):
    rng = np.random.default_rng(0)
    X, truth, tested = rng.normal(size=(n, 2)), np.arange(n) % 3 == 0, np.arange(n) % 2 == 0
    y = np.where(tested, truth, np.nan)
    return SelectiveLabels.from_arrays(X, y, group=np.arange(n) // 4 % 2), truth.astype(int)


@pytest.mark.parametrize("name", preset_names())
def test_every_method_of_a_preset_takes_its_parameters(name):
    problem, truth = tiny()
    preset = load_benchmark(name)
    kinds = {task["kind"] for task in preset.tasks}
    for entry in corners(preset.methods):
        method = {"name": entry.name, "published": entry.published, "params": entry.params}
        for kind in kinds:
            estimator = smallest(estimator_of(method, kind), entry.params)
            known = {"truth": (truth, truth)} if estimator.uses_truth else {}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", dcem.DataWarning)
                estimator.fit_problem(problem, validation=problem, **known)
            group = {"sensitive_features": problem.group} if estimator.needs_group else {}
            score = estimator.predict_proba(problem.X, **group)
            assert np.isfinite(score).all(), entry.label


def test_the_ends_of_a_search_are_among_the_corners():
    lq = corners(load_benchmark("search-truncated-lq").methods)
    assert {(one.params["k"], one.params["q"]) for one in lq} == {
        (k, q) for k in (0.1, 1.0) for q in (0.1, 1.0)
    }
