import numpy as np
import pytest

from dcem.compare import paired_differences
from dcem.metrics import auc, bootstrap, roc_gap
from dcem.table.checks import DataWarning, InputError


def draw(n=2_000, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    y = rng.integers(0, 2, n)
    return y, group, rng.normal(size=n) + y, rng


def test_estimates_are_plain_differences_on_the_observed_rows() -> None:
    y, group, score, rng = draw()
    other = score + rng.normal(size=len(y))
    result = paired_differences(y, {"a": score, "b": other}, group, reference="a", n_replicates=20)
    assert set(result) == {"b"}
    assert result["b"]["auc"].value == pytest.approx(auc(y, other) - auc(y, score))
    expected = roc_gap(y, other, group) - roc_gap(y, score, group)
    assert result["b"]["roc_gap"].value == pytest.approx(expected)


def test_pairing_narrows_the_interval_of_two_similar_scores() -> None:
    y, group, score, rng = draw()
    other = score + 0.1 * rng.normal(size=len(y))
    paired = paired_differences(y, {"a": score, "b": other}, group, reference="a")["b"]["auc"]
    single = bootstrap(y, other, group, n_replicates=300).auc
    assert paired.high - paired.low < 0.3 * (single.high - single.low)


def test_covers_a_known_difference() -> None:
    # binormal scores: AUC = Phi(shift / sqrt 2), so the true differences are known
    from scipy.stats import norm

    truth = norm.cdf(1.2 / 2**0.5) - norm.cdf(1.0 / 2**0.5)
    rng, covered = np.random.default_rng(1), 0
    for _ in range(40):
        y, group = rng.integers(0, 2, 800), rng.integers(0, 2, 800)
        noise = rng.normal(size=(2, 800))
        scores = {"a": noise[0] + y, "b": 0.6 * noise[0] + 0.8 * noise[1] + 1.2 * y}
        interval = paired_differences(
            y, scores, group, reference="a", n_replicates=80, random_state=rng
        )["b"]["auc"]
        covered += interval.low <= truth <= interval.high
    assert covered >= 0.85 * 40


def test_rows_of_a_person_are_drawn_together() -> None:
    y, group, score, rng = draw(400)
    other = score + rng.normal(size=len(y))
    repeated = {"a": np.tile(score, 5), "b": np.tile(other, 5)}
    common = {"reference": "a", "n_replicates": 200}
    alone = paired_differences(y, {"a": score, "b": other}, group, **common)["b"]["auc"]
    tiled = np.tile(y, 5), repeated, np.tile(group, 5)
    people = np.tile(np.arange(400), 5)
    by_person = paired_differences(*tiled, id=people, **common)["b"]["auc"]
    by_row = paired_differences(*tiled, **common)["b"]["auc"]
    width = alone.high - alone.low
    assert by_person.high - by_person.low == pytest.approx(width, rel=1e-9)
    assert by_row.high - by_row.low < 0.7 * width


def test_not_estimable_says_so_and_warns_once() -> None:
    y, group, score, _ = draw(300)
    y = np.where(group == 1, 1, y)
    with pytest.warns(DataWarning) as caught:
        result = paired_differences(
            y, {"a": score, "b": -score}, group, reference="a", n_replicates=10
        )
    assert len(caught) <= 2
    assert np.isnan(result["b"]["roc_gap"].value)
    assert "one class" in (result["b"]["roc_gap"].reason or "")
    assert np.isfinite(result["b"]["auc"].low)


def test_unknown_reference() -> None:
    y, group, score, _ = draw(50)
    with pytest.raises(InputError, match="no score named 'z'; there are a"):
        paired_differences(y, {"a": score}, group, reference="z")
