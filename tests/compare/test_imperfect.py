"""A comparison on a table whose test errs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from dcem.compare.planted import plant_task
from dcem.compare.run import compare_methods
from dcem.estimation.nuisances import Nuisances
from dcem.report.compare import compare_document
from dcem.report.from_json import read_comparison
from dcem.table.labels import SelectiveLabels


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(900, 2)), rng.integers(2, size=900)
    found = expit(-1 + X[:, 0]) * 0.6
    tested = rng.random(900) < 0.6
    result = np.where(tested, (rng.random(900) < found).astype(float), np.nan)
    return SelectiveLabels.from_arrays(X, result, group=group, test_sensitivity=".5-.7")


def test_its_numbers_are_corrected_and_say_so(problem, tmp_path):
    perfect = replace(problem, imperfect_test=None)
    found = compare_methods(problem, ["tested-only:linear"], n_folds=2, planted=0, n_resamples=20)
    plain = compare_methods(perfect, ["tested-only:linear"], n_folds=2, planted=0, n_resamples=20)
    assert found.stated_rates == "sensitivity .60 [.50, .70]; specificity 1.00"
    assert plain.stated_rates == ""
    told, taken = (one.methods[0].judgements["dr"] for one in (found, plain))
    assert told.auc.value > taken.auc.value  # errors make every score look worse
    assert found.stated_rates in " ".join(compare_document(found).opening.verdict.sentences)
    assert all("stated rates" in one.assumption for one in found.targets)
    (tmp_path / "comparison.json").write_text(found.to_json())
    assert read_comparison(tmp_path / "comparison.json").stated_rates == found.stated_rates


def test_planted_tests_err_as_the_real_ones_do(problem):
    sure = np.full(900, 0.6)
    models = Nuisances(testing=np.full(900, 0.9), outcome=sure * 0.4)
    rng, index = np.random.default_rng(0), np.arange(900.0)
    task = plant_task("as fitted", problem, models, (index, index), rng)
    seen = task.train.y_obs[task.train.tested].mean()
    assert seen == pytest.approx(0.6 * task.truth.mean(), abs=0.07)
    assert task.train.imperfect_test is not None
