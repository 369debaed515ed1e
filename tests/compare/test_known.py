"""A comparison told a known prevalence judges by it, trains by it, and says so."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import dcem
import dcem.scoring
from dcem.estimation.outcomes import tilted
from dcem.report.compare import compare_document
from dcem.report.to_markdown import to_markdown


def people(n=1500):
    rng = np.random.default_rng(2)
    X, group = rng.normal(size=(n, 2)), np.where(rng.random(n) < 0.5, "F", "M")
    shown = expit(-1 + X[:, 0])
    tested = rng.random(n) < expit(0.5 * X[:, 0])
    y = (rng.random(n) < np.where(tested, shown, tilted(shown, 3.0))).astype(float)
    frame = pd.DataFrame(X, columns=["age", "bp"])
    return frame.assign(y=np.where(tested, y, np.nan), sex=group), y.mean()


def test_its_numbers_rest_on_the_known_rate_and_say_so():
    frame, rate = people()
    roles = dcem.Roles(label="y", group="sex", prevalence=round(float(rate), 3))
    table = dcem.read_table(frame, roles)
    found = dcem.compare_methods(
        table.problem, ["tested-only:linear", "y-obs:linear"], n_folds=2, planted=0, n_resamples=20
    )
    assert found.known_rates.startswith("prevalence .4")
    for method in found.methods:  # both are moved to it, so neither is off on average
        off = method.judgements["dr"].calibration_in_the_large["everybody"]
        assert off.value == pytest.approx(0, abs=0.02)
    (dr,) = (target for target in found.targets if target.key == "dr")
    assert "stated prevalence" in dr.assumption
    page = compare_document(found)
    assert f"known {found.known_rates}" in to_markdown(page)
    assert not any("features explain" in one for one in page.opening.limits)
    model = dcem.scoring.fit_table(table, "tested-only", learner="linear")
    assert model.judged_by(found)
