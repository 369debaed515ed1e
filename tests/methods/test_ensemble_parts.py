"""Parts of the ensemble: what they are does not depend on who fits them."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dcem
from dcem.methods import ensemble_parts, make, minibatches
from dcem.table.labels import SelectiveLabels


def test_networks_one_by_one_are_those_of_a_stack_where_one_person_is_all_the_untested(monkeypatch):
    """The network that never saw this person has no untested row to learn from; nor have others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(np.arange(400) < 40, np.nan, rng.random(400) < 0.4)
    person = np.maximum(np.arange(400), 39)
    problem = SelectiveLabels.from_arrays(X, y, id=person)
    guesses = []
    first_guess = ensemble_parts.first_guess
    monkeypatch.setattr(
        ensemble_parts, "first_guess", lambda *given: guesses.append(1) or first_guess(*given)
    )

    def risks() -> np.ndarray:
        guesses.clear()
        made = make("ensemble", parts=("network",), n_folds=3, steps=60, random_state=0)
        return made.fit_problem(problem).predict_proba(X)

    together = risks()
    with ThreadPoolExecutor(3) as threads:  # in place of processes
        monkeypatch.setattr(ensemble_parts, "ROWS_FOR_PROCESSES", 100)
        monkeypatch.setattr(ensemble_parts, "CORES_FOR_PROCESSES", 1)
        monkeypatch.setattr(ensemble_parts, "_processes", lambda number: threads)
        np.testing.assert_array_equal(risks(), together)
    assert len(guesses) == 1  # over all rows, however many networks there are


class Interrupted(Exception):
    """Stands for Ctrl-C."""


def small_table():
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.4).astype(float)
    y[::2] = np.nan
    return SelectiveLabels.from_arrays(rng.normal(size=(200, 2)), y)


def test_an_end_in_between_leaves_what_has_not_begun(monkeypatch):
    begun, fitted = [], ensemble_parts._fitted

    def slowly(*given):
        begun.append(1)
        time.sleep(0.2)
        return fitted(*given)

    def told(done, total):
        raise Interrupted

    monkeypatch.setattr(ensemble_parts, "_fitted", slowly)
    model = make("ensemble", parts=("linear",), n_jobs=1, random_state=0)
    with pytest.raises(Interrupted):
        dcem.methods.fit_many(model, [small_table()], progress=told)
    assert len(begun) <= 2  # of four models of who is tested: the first, and one under way


def test_networks_in_training_stop_where_nobody_waits_for_them(monkeypatch):
    steps, shuffled, fitted = [], minibatches.shuffled, ensemble_parts._fitted

    def counted(*given):
        for batch in shuffled(*given):
            steps.append(1)
            time.sleep(0.001)
            yield batch

    def failing(name, *given):
        if name != "linear":
            return fitted(name, *given)
        while not steps:  # until networks are under way
            time.sleep(0.01)
        raise Interrupted

    monkeypatch.setattr(minibatches, "shuffled", counted)
    monkeypatch.setattr(ensemble_parts, "_fitted", failing)
    parts = ("network", "linear")
    model = make("ensemble", parts=parts, n_folds=2, n_jobs=4, steps=5000, random_state=0)
    with pytest.raises(Interrupted):
        model.fit_problem(small_table())
    assert len(steps) < 2000
