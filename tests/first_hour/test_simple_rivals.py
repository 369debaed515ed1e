"""What a comparison claims is measured against the best simple rival on the tested."""

import functools
import re
import warnings

import numpy as np
import pandas as pd
import pytest

import dcem

BOOST, LINEAR = "tested-only:boost", "tested-only:linear"


def table(path, kind, n=1200, seed=0):
    """A table whose outcome is linear, a set of steps, or unrelated to the features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    steps = 2.2 * ((X[:, 0] > 0) != (X[:, 1] > 0)) + 1.2 * (np.abs(X[:, 2]) > 1) - 1.8
    risk = {"linear": 1.2 * X[:, 0] + X[:, 1], "steps": steps, "noise": np.zeros(n)}[kind]
    frame = pd.DataFrame(X.round(3), columns=[f"v{i}" for i in range(6)])
    y = (rng.random(n) < 1 / (1 + np.exp(-risk))).astype(int)
    tested = rng.random(n) < 1 / (1 + np.exp(-0.5 * X[:, 0]))
    frame.assign(out=pd.Series(y).where(tested).astype("Int64")).to_csv(path, index=False)
    return dcem.read_table(path, dcem.Roles(label="out"))


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rivals")

    @functools.cache
    def compare(kind, *methods):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = table(folder / f"{kind}.csv", kind, seed=4 if kind == "noise" else 0)
            return dcem.compare_methods(
                made.problem,
                methods,
                encoder=made.encoder,
                n_folds=2,
                planted=0,
                n_resamples=40,
                n_members=1,
            )

    return compare


ALL = ("ensemble", "tested-only", BOOST, LINEAR)


@pytest.mark.parametrize(("kind", "best"), [("linear", LINEAR), ("steps", BOOST)])
def test_gains_refer_to_the_better_of_the_simple_rivals(compared, kind, best):
    comparison = compared(kind, *ALL)
    assert comparison.reference == best
    named = {one.name: one for one in comparison.methods}
    for target in ("tested", "dr"):
        judged = named["ensemble"].judgements[target]
        other = named[best].judgements[target]
        assert judged.auc_gain.value == pytest.approx(judged.auc.value - other.auc.value)
        assert other.auc_gain is None


def test_the_first_line_says_that_plain_models_rank_as_well(compared):
    comparison = compared("linear", *ALL)
    opening = comparison.document().opening
    ensemble = comparison.methods[0].judgements["dr"]
    assert ensemble.auc_gain.low <= 0 or ensemble.auc_gain.value < comparison.floor
    assert re.match(
        r"Plain .*logistic regression.* on the tested ranks? as well", opening.verdict.answer
    )
    assert opening.verdict.severity in ("note", "caution")
    if "is better calibrated" in opening.verdict.answer:
        rival = next(one for one in comparison.methods if one.name == LINEAR)
        error = rival.judgements["dr"].calibration_error
        assert ensemble.calibration_error.high < error.low


def test_a_model_that_is_clearly_better_is_told_without_that_line(compared):
    """Against logistic regression alone, on steps, the default wins."""
    comparison = compared("steps", "ensemble", LINEAR)
    opening = comparison.document().opening
    assert opening.verdict.answer.startswith("Use `ensemble`")
    assert opening.verdict.severity == "fine"
    assert any("logistic regression on the tested" in one.label for one in opening.numbers)


@pytest.mark.parametrize("methods", [ALL, ("tested-only", "ensemble")])
def test_no_gain_is_told_over_the_network_of_the_tested(compared, tmp_path, methods):
    comparison = compared("linear", *methods)
    assert comparison.reference != "tested-only"
    page = repr(comparison) + " ".join(one.headline for one in comparison.findings)
    gains = re.findall(r"(?:gain|better than|as well as)[^.\n]*`tested-only`(?!:)", page, re.I)
    assert gains == []


def test_chance_is_no_rank(compared):
    answer = compared("noise", *ALL).document().opening.verdict.answer
    assert answer == "No method is shown to rank people better than chance"


def test_both_simple_rivals_are_in_the_standard_set(tmp_path):
    made = table(tmp_path / "t.csv", "linear", n=240)
    comparison = dcem.compare_methods(
        made.problem, n_folds=2, planted=0, n_resamples=10, n_members=1
    )
    assert {BOOST, LINEAR, "ensemble"} <= {one.name for one in comparison.methods}
    assert comparison.reference in (BOOST, LINEAR)


def test_models_have_descriptions_of_their_own(compared):
    described = [one.in_short for one in compared("linear", *ALL).methods]
    assert len(set(described)) == len(ALL)
    assert any("boosted trees" in one for one in described)
    assert any("logistic regression" in one for one in described)


def test_a_finding_about_a_method_is_about_the_recommended_one(compared):
    from collections import Counter

    comparison = compared("linear", *ALL)
    keys = Counter(one.key for one in comparison.findings if one.about in ("groups", "methods"))
    assert max(keys.values()) == 1, keys
    methods = {one.values["method"] for one in comparison.findings if "method" in one.values}
    assert methods == {"ensemble"}
