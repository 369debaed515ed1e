from dataclasses import replace
from math import nan

import pytest

from dcem.metrics.estimate import Estimate
from dcem.report.words import conclusions, number, percent, with_interval


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.7874, ".787"),
        (-0.0121, "-.012"),
        (1.0, "1.000"),
        (0.0, ".000"),
        (-0.0001, ".000"),
        (12.5, "12.500"),
        (nan, "–"),
    ],
)
def test_number(value: float, text: str) -> None:
    assert number(value) == text


def test_intervals() -> None:
    assert with_interval(Estimate(0.787, 0.768, 0.823)) == ".787 [.768, .823]"
    assert with_interval(Estimate(0.787)) == ".787"
    assert with_interval(Estimate(nan, reason="no positives")) == "not estimable: no positives"


def test_percent() -> None:
    assert percent(1, 3) == "33 %"
    assert percent(1, 40) == "2.5 %"
    assert percent(0, 40) == "0 %"
    assert percent(0, 0) == "–"


def test_sentences_are_no_stronger_than_their_intervals(comparison) -> None:
    testing, dcem, tested_only, oracle = conclusions(comparison)
    assert testing == (
        "In group Black, 10 % of people were tested; in group white, 20 %. So 87 % of the "
        "positives in group Black are recorded as negative, against 55 % in group white."
    )
    assert dcem == (
        "`dcem` ranks people better than `y-obs` (AUC .846 against .632; difference "
        ".214 [.200, .230]); the gap between the groups is smaller (.025 against .104)."
    )
    assert "about as well as `y-obs`" in tested_only
    assert "not clear of zero" in tested_only
    assert "no more than groups drawn at random would show" in tested_only
    assert oracle == (
        "Had every label been known, `y-model` would reach an AUC of .911; `dcem` comes within "
        ".065 of it."
    )


def test_a_worse_method_is_called_worse(comparison) -> None:
    reference, first, *rest = comparison.methods
    worse = replace(
        first, auc_gain=Estimate(-0.2, -0.25, -0.1), gap_change=Estimate(0.1, 0.05, 0.2)
    )
    sentence = conclusions(replace(comparison, methods=(reference, worse, *rest)))[1]
    assert "ranks people worse than" in sentence
    assert "gap between the groups is larger" in sentence


def test_unclear_gap_and_not_estimable_are_said(comparison) -> None:
    reference, first, *rest = comparison.methods
    unclear = replace(first, gap_change=Estimate(-0.08, -0.2, 0.1))
    sentence = conclusions(replace(comparison, methods=(reference, unclear, *rest)))[1]
    assert "not clearly different" in sentence
    missing = Estimate(nan, reason="group white has no positives")
    lost = replace(first, roc_gap=missing, gap_change=missing)
    sentence = conclusions(replace(comparison, methods=(reference, lost, *rest)))[1]
    assert "its ROC gap is not estimable: group white has no positives" in sentence


def test_without_truth_nothing_is_said_about_missed_positives(comparison) -> None:
    groups = tuple(replace(group, positives=None) for group in comparison.groups)
    assert "recorded as negative" not in conclusions(replace(comparison, groups=groups))[0]
