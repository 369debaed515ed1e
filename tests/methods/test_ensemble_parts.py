"""Parts of the ensemble: what they are does not depend on who fits them."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dcem.methods import ensemble_parts, make
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
