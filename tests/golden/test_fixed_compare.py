"""Class: exact. Comparison and metrics: one test for each repair that changed a number."""

import names
import numpy as np
import pandas as pd
import polars as pl
import pytest
from made_rows import expit

pytestmark = pytest.mark.filterwarnings("ignore")
Y, SCORE = np.array([0, 1, 0, 1.0]), np.array([0.1, 0.9, 0.2, 0.8])


def world(n=1200, seed=0):
    """Features, labels that are missing where nobody looked, and the truth."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    truth = rng.random(n) < expit(X[:, 0] + 0.4 * X[:, 1])
    tested = rng.random(n) < expit(X[:, 1])
    return X, np.where(tested, truth, np.nan), truth * 1.0


# -- metrics and scorers ---------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", ["nan", "mask"])
def test_a_missing_score_is_not_the_highest(hidden):
    """A missing score ranked highest; what the mask of a NumPy array hides counted in metrics."""
    score = np.ma.array(SCORE, mask=[0, 0, 0, 1])
    with pytest.raises(names.Refused, match="NaN in 1 of 4"):
        names.auc(Y, score if hidden == "mask" else score.filled(np.nan))


def test_what_a_mask_hides_is_missing_in_predictions():
    """What the mask of a NumPy array hides counted in metrics and predictions."""
    X, y, _ = world(300)
    hidden = np.ma.array(X, mask=X > 1)
    model = names.made("tested-only", learner="linear", seed=0).fit(hidden, y)
    shown = names.scores(model, {"X": hidden.filled(np.nan)})
    assert names.scores(model, {"X": hidden}) == pytest.approx(shown)
    assert np.abs(shown - names.scores(model, {"X": X})).max() > 0.01


def test_a_truth_of_another_length_or_order_is_refused():
    """A truth of another length was matched by position; `validation` without `test` ignored."""
    X, y, truth = world(300)
    problem = names.arrays(X, y)
    for wrong in (truth[:-1], pd.Series(truth, index=range(300, 0, -1)), truth[::-1]):
        with pytest.raises(names.Refused):
            names.comparison(problem, (), truth=wrong)
    with pytest.raises(names.Refused, match="validation"):
        names.comparison(problem, validation=problem)


def test_labels_that_a_model_does_not_know_are_no_negatives():
    """Scorers counted labels that the model does not know, such as -1, as negative."""
    X, y, _ = world(400)
    model = names.made("tested-only", learner="linear", seed=0).fit(X, y)
    with pytest.raises(names.Refused, match="NaN"):
        names.scorer("dr-auc")(model, X, np.where(np.isnan(y), -1, y))


def test_numbers_of_a_polars_frame_are_no_categories():
    """... and took every number of a polars or Arrow frame for a category."""
    X, y, _ = world(400)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = names.made("tested-only", learner="linear", seed=0).fit(frame, y)
    judge = names.scorer("dr-auc")
    assert judge(model, pl.from_pandas(frame), y) == judge(model, frame, y)


def test_perfectly_separated_groups_have_no_gap():
    """Groups that are perfectly separated had an ROC gap of 0 with p = .001."""
    y, group = np.tile([0, 1], 100), np.repeat(["a", "b"], 100)
    gap = names.gap_by_chance(y, y * 1.0, group)
    assert (gap.value, gap.low, gap.p_value) == (0, 0, 1)


# -- estimates -------------------------------------------------------------------------------------


def test_forty_tests_without_a_positive_are_not_everybody():
    """Doubly robust precision at 0 had the interval of everybody acted on: [0, .001], now .09."""
    n = 3000
    acted = np.random.default_rng(0).random(n) > 0.8
    tested, y = np.zeros(n, bool), np.zeros(n)
    tested[np.flatnonzero(acted)[:40]] = tested[np.flatnonzero(~acted)[:400]] = True
    y[np.flatnonzero(tested & ~acted)[:60]] = 1
    chance = np.where(acted, 40 / acted.sum(), 400 / (~acted).sum())
    risk = np.where(tested & acted, 0.061, 0.06)
    problem = names.arrays(acted[:, None], np.where(tested, y, np.nan))
    judge = names.judge(problem, chance, risk)
    for found in (
        judge.when_acting("dr", acted)["precision"]["everybody"],
        judge.precision_at_capacity("dr", 1.0 * acted, acted.mean()),
    ):
        assert found.value == found.low == 0
        assert found.high == pytest.approx(0.0876, abs=2e-3)  # Wilson's, of 0 in 40


def test_just_above_0_intervals_are_no_half():
    """Just above 0 intervals were far too wide (mean .46, now .17)."""
    held, widths = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=6000)
        acted = x > 1.2
        y = rng.random(6000) < np.where(acted, 0.03, 0.1)
        chance = np.where(acted, 0.06, 0.3)
        problem = names.arrays(x[:, None], np.where(rng.random(6000) < chance, y, np.nan))
        risk = np.where(acted, 0.05, 0.1) * np.exp(0.3 * np.sin(3 * x))
        judge = names.judge(problem, chance, risk, fold=np.arange(6000) % 5)
        found = judge.when_acting("dr", acted)["precision"]["everybody"]
        held.append(found.low <= 0.03 <= found.high)
        widths.append(found.high - found.low)
    assert sum(held) >= 11
    assert np.mean(widths) < 0.22
    assert min(widths) > 0.04


def test_columns_of_another_order_are_not_paired_by_position():
    """`Evaluator` paired columns of another order by position."""
    X, y, _ = world(300)
    judge = names.judge(names.arrays(X, y), np.full(300, 0.5), np.full(300, 0.5))
    score = pd.Series(X[:, 0])
    assert judge.auc("tested", score) == judge.auc("tested", X[:, 0])
    with pytest.raises(names.Refused):
        judge.auc("tested", score[::-1])


def test_capacity_is_withheld_by_rank():
    """Precision at a capacity was withheld by scores as if they were percentiles."""
    rng = np.random.default_rng(0)
    score, tested = rng.random(2000) * 0.2, rng.random(2000) < 0.5
    y = (rng.random(2000) < 0.3) * 1.0
    top = score >= np.quantile(score, 0.95)
    y[top] = 0
    y[np.flatnonzero(top & tested)[:3]] = 1
    problem = names.arrays(score[:, None], np.where(tested, y, np.nan))
    judge = names.judge(problem, np.full(2000, 0.5), np.full(2000, 0.3))
    for rank in (score, 100 + score):
        assert not judge.precision_at_capacity("tested", rank, 0.05).estimable


def test_bounds_of_an_auc_have_a_sample():
    """Bounds of AUC and net benefit ignored sampling."""
    widths = []
    for n in (400, 1600):
        X, y, _ = world(n)
        found = names.comparison(names.arrays(X, y), ("tested-only:linear",), bounds=1.5)
        low, high = names.auc_limits(found)
        widths.append(high - low)
    assert widths[0] > 1.5 * widths[1] > 0.02


def test_rows_of_weight_0_are_nobody():
    """A row of weight 0 now counts nowhere."""
    X, y, truth = world(500)
    weight = (np.random.default_rng(0).random(500) < 0.8) * 1.0
    whole = names.arrays(X, y, weight=weight)
    found = names.comparison(whole, ("tested-only:linear",), truth=truth)
    kept = whole.subset(weight > 0)
    plain = names.comparison(kept, ("tested-only:linear",), truth=truth[weight > 0])
    pd.testing.assert_frame_equal(found.to_frame(), plain.to_frame())


def test_the_best_among_the_tested_does_not_overrule_the_default(tmp_path):
    """It overruled the default where nothing about everybody could be estimated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    tested = X[:, 0] > 0.3  # nobody below a limit
    y = np.where(tested, rng.random(1000) < expit(X[:, 1]), np.nan)
    found = names.comparison(names.arrays(X, y), ("tested-only:linear", "y-obs:linear"))
    assert names.ordered_by(found) == {"tested"}
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    table = names.read(tmp_path / "t.csv", label="y")
    first = {"best": "dcem", "level_with": []}
    methods = [{"name": "ensemble"}, {"name": "dcem"}]
    for target, method in (("tested", "ensemble"), ("dr", "dcem")):
        saved = {"methods": methods, "standings": {target: first}}
        assert names.taken(table, saved, tmp_path) == method
