"""Names that changed still work for a release, and say what they are called now."""

import inspect

import numpy as np
import pytest

import dcem
from dcem.scoring import fit_all_rows, fit_table
from dcem.table.messages import InputError, formerly

FORMER = {
    dcem.audit_found: {"row_budget": "max_rows"},
    dcem.audit_labels: {"row_budget": "max_rows"},
    dcem.compare_found: {"folds": "n_folds", "members": "n_members"},
    dcem.compare_methods: {"folds": "n_folds", "members": "n_members", "resamples": "n_resamples"},
    dcem.metrics.bootstrap: {"n_replicates": "n_resamples"},
    dcem.read_table: {"most_rows": "sample_rows"},
    fit_all_rows: {"members": "n_members"},
    fit_table: {"members": "n_members"},
}


@formerly(folds="n_folds")
def twice(n_folds: int = 5) -> int:
    """Twice as many."""
    return 2 * n_folds


def test_a_parameter_under_its_former_name_warns_where_it_is_given():
    assert twice(3) == twice(n_folds=3) == 6
    with pytest.warns(FutureWarning, match="folds is now called n_folds") as told:
        assert twice(folds=3) == 6  # type: ignore[call-arg]
    assert told[0].filename == __file__
    with pytest.raises(InputError, match="`folds` is the old name of `n_folds`"):
        twice(n_folds=3, folds=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="fold"):
        twice(fold=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("function", FORMER, ids=lambda function: function.__name__)
def test_public_functions_know_their_former_parameters(function):
    names = inspect.signature(function).parameters
    for old, now in FORMER[function].items():
        assert now in names
        assert old not in names
        with pytest.raises(InputError, match=f"`{old}` is the old name of `{now}`"):
            function(**{old: 1, now: 1})


def test_results_are_the_same_under_both_names():
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 2, 80), rng.random(80)
    now = dcem.metrics.bootstrap(y, score, n_resamples=20, random_state=0)
    with pytest.warns(FutureWarning, match="n_replicates is now called n_resamples"):
        assert str(dcem.metrics.bootstrap(y, score, n_replicates=20, random_state=0)) == str(now)
