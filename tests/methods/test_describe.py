"""What a method says of itself is complete."""

import pytest

from dcem.methods.describe import describe
from dcem.methods.registry import METHODS, make
from dcem.table.messages import InputError


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_is_explained_once(name):
    said = describe(name)
    explained = [parameter for entry in said.parameters for parameter in entry.defaults]
    assert sorted(explained) == sorted(make(name).get_params(deep=False))
    assert all(entry.text for entry in said.parameters)


def test_own_parameters_come_first_and_together():
    first, *_ = [entry for entry in describe("self").parameters if "max_iter" in entry.defaults]
    assert first.defaults == {"max_iter": 50, "patience": 1}
    assert not first.common
    commons = [entry.common for entry in describe("self").parameters]
    assert commons == sorted(commons)


def test_a_misspelt_parameter_is_named():
    with pytest.raises(InputError, match=r"dcem has no parameter 'maxiter'.*'max_iter'"):
        make("dcem", maxiter=3)
    with pytest.raises(InputError, match=r"ensemble has no parameter 'part'.*'parts'") as told:
        make("ensemble", part="boost")
    assert "in_short" not in str(told.value)  # a fact of the class, not a parameter
    with pytest.raises(InputError, match=r"ensemble has no parameter 'calibrated'"):
        make("ensemble", calibrated=True)
    with pytest.raises(InputError, match=r"ensemble has learners of its own.*tested-only"):
        make("ensemble:boost")


def test_parameters_of_a_nested_estimator_pass():
    from sklearn.linear_model import LogisticRegression

    method = make("dcem", propensity=LogisticRegression(), propensity__C=2.0)
    assert method.propensity.C == 2.0
