"""Methods compared by found positives: the order is that of the truth, numbers within bounds."""

import json
from dataclasses import replace

import pytest
from tests.support.found import found_table

from dcem.compare.positives_only import compare_found
from dcem.methods.choosing import choose_from
from dcem.report.from_json import read_comparison, read_result
from dcem.report.positives_only import found_comparison_document
from dcem.table.messages import InputError

METHODS = ["purple", "y-obs:linear"]


@pytest.fixture(scope="module")
def compared():
    problem, y = found_table(3_000, (0.8, 0.1))
    return compare_found(
        problem, METHODS, truth=y * 1, n_folds=3, n_members=1, data={"SHA-256": "s"}
    )


def test_found_positives_order_methods_as_the_truth_does(compared):
    purple, y_obs = compared.methods
    assert purple.within.value > y_obs.within.value
    assert purple.truth.value > y_obs.truth.value
    assert compared.standings["found"].best == "purple"
    assert {one.key for one in compared.findings} == {"no-record", "best", "best-across"}


def test_the_auc_for_the_outcome_lies_where_it_is_said_to(compared):
    for method in compared.methods:
        for name, (low, high) in method.outcome.items():
            assert low <= method.groups[name].value <= high
        assert min(low for low, _ in method.outcome.values()) < method.truth.value
        assert not method.calibration


def test_a_group_may_be_called_as_a_column_is(compared):
    methods = tuple(replace(one, groups={"method": one.within}) for one in compared.methods)
    renamed = replace(compared, methods=methods, prevalence={"method": (0.1, 0.2)})
    first, *_ = found_comparison_document(renamed).sections
    assert first.blocks[0].columns == ("method", "method", "against the truth")


def test_a_saved_comparison_is_read_again_and_chosen_by(compared, tmp_path):
    place = tmp_path / "comparison.json"
    compared.to_json(place)
    assert read_comparison(place).methods[0].within.value == pytest.approx(
        compared.methods[0].within.value, rel=1e-5
    )
    assert "methods" in {one.key for one in read_result(place).sections}
    saved = json.loads(place.read_text())
    assert choose_from(saved, "s", {}, record=False).method == "purple"
    assert choose_from(saved, "s", {}) is None  # of a table with a record
    assert len(compared.to_frame()) == 2 * 5


def test_stated_rates_measure_the_outcome():
    problem, y = found_table(3_000, (0.6, 0.3), test_sensitivity={"<65": 0.6, "b": 0.3})
    found = compare_found(problem, ["purple"], truth=y * 1, n_folds=2, n_members=1)
    (purple,) = found.methods
    assert purple.across.low < purple.truth.value < purple.across.high
    assert purple.calibration["b"].low < 0 < purple.calibration["b"].high
    assert list(found.standings) == ["tested"]


@pytest.mark.filterwarnings("ignore::dcem.table.messages.DataWarning")
def test_where_no_group_has_enough_found_nothing_is_told():
    problem, _ = found_table(300, (0.02,) * 5)
    found = compare_found(problem, ["y-obs:linear"], n_folds=2, n_members=1)
    assert not found.methods[0].within.estimable
    assert not found.standings
    assert "Nothing can be said" in found.to_markdown()


def test_methods_that_need_a_record_are_refused():
    problem, _ = found_table(500)
    with pytest.raises(InputError, match="who was tested"):
        compare_found(problem, ["dcem"])
