"""Reject inference against plain second implementations, and by hand."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from dcem import methods
from dcem.methods.reject_inference import parcelled
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError

FREE = LogisticRegression(C=1e9, solver="newton-cholesky", tol=1e-10)


@pytest.fixture(scope="module")
def loans() -> SelectiveLabels:
    """400 applicants; approval prefers low risk."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 2))
    y = rng.random(400) < 1 / (1 + np.exp(1 - 1.5 * X[:, 0]))
    approved = rng.random(400) < 1 / (1 + np.exp(1.2 * X[:, 0] + 0.5 * X[:, 1]))
    return SelectiveLabels.from_arrays(X, np.where(approved, y, np.nan))


def newton(X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Coefficients of a logistic regression, the intercept first."""
    rows, at = np.column_stack([np.ones(len(X)), X]), np.zeros(X.shape[1] + 1)
    for _ in range(50):
        p = 1 / (1 + np.exp(-rows @ at))
        curvature = (rows * (weight * p * (1 - p))[:, None]).T @ rows
        at = at - np.linalg.solve(curvature, rows.T @ (weight * (p - y)))
    return at


def risks(at: np.ndarray, X: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-(at[0] + X @ at[1:])))


def test_fuzzy_augmentation_is_every_reject_twice_and_a_scorecard_stays_as_it_is(loans):
    seen, X = loans.tested, loans.X
    first = newton(X[seen], loans.y_obs[seen], np.ones(seen.sum()))
    p = risks(first, X[~seen])
    both = newton(
        np.concatenate([X[seen], X[~seen], X[~seen]]),
        np.concatenate([loans.y_obs[seen], np.ones(len(p)), np.zeros(len(p))]),
        np.concatenate([np.ones(seen.sum()), p, 1 - p]),
    )
    assert np.allclose(first, both, atol=1e-8)  # Ehrhardt et al. 2021
    every = {"validation": loans, "learner": FREE}
    for name, expected in (("fuzzy-augmentation", both), ("tested-only", first)):
        found = methods.make(name, learner=every["learner"], random_state=0)
        found.fit_problem(loans, validation=every["validation"])
        assert np.allclose(found.predict_proba(X)[:, 1], risks(expected, X), atol=1e-4)


def test_parcelling_by_hand():
    score = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9])  # bands: below and above .5
    y = np.array([0, 0, 0, 1, 1, 1, 0, 1.0])  # rates .25 and .75
    unseen = np.array([0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95])
    for factor, expected in ((1.0, (1.25, 3.75)), (1.2, (1.5, 4.5)), (2.0, (2.5, 5.0))):
        drawn = [
            parcelled(
                score, y, np.ones(8), unseen, bands=2, factor=factor,
                rng=np.random.default_rng(seed),
            )
            for seed in range(400)
        ]  # fmt: skip
        low, high = np.array(drawn)[:, :5].sum(axis=1), np.array(drawn)[:, 5:].sum(axis=1)
        for found, wanted in ((low, expected[0]), (high, expected[1])):
            assert set(found) <= {np.floor(wanted), np.ceil(wanted)}  # shares, not coins
            assert found.mean() == pytest.approx(wanted, abs=0.1)
        assert np.array(drawn)[:, :5].mean(axis=0) == pytest.approx(expected[0] / 5, abs=0.1)
    weighted = parcelled(
        score, y, np.array([1, 1, 1, 3, 1, 1, 0, 1.0]), unseen, bands=2, factor=1.0,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert weighted[:5].sum() in (2, 3)  # a rate of one half
    assert weighted[5:].all()


def test_parcelling_takes_the_declined_for_worse(loans):
    means = [
        methods.make("parcelling", factor=factor, learner=FREE, random_state=0)
        .fit_problem(loans)
        .predict_proba(loans.X)[:, 1]
        .mean()
        for factor in (1.0, 2.0)
    ]
    assert means[1] > means[0] + 0.05


def test_self_learning_labels_whom_a_weak_model_is_sure_of(loans):
    """One round, everybody looked at: as the paper's algorithm written down plainly."""
    params = {"filtered": (0.0, 1.0), "sampled": 1.0, "labelled": 0.1, "imbalance": 2.0}
    fitted = methods.make(
        "bias-aware-self-learning", learner=FREE, rounds=1, random_state=0, **params
    ).fit_problem(loans, validation=loans)
    seen = loans.tested
    X = (loans.X - loans.X.mean(axis=0)) / loans.X.std(axis=0)
    weak = LogisticRegression(l1_ratio=1.0, solver="liblinear", random_state=0)
    risk = weak.fit(X[seen], loans.y_obs[seen]).predict_proba(X[~seen])[:, 1]
    bad, good = risk >= np.quantile(risk, 0.9), risk <= np.quantile(risk, 0.05)
    assert fitted.labelled_ == (bad.sum(), good.sum())
    plain = newton(
        np.concatenate([loans.X[seen], loans.X[~seen][bad], loans.X[~seen][good]]),
        np.concatenate([loans.y_obs[seen], np.ones(bad.sum()), np.zeros(good.sum())]),
        np.ones(seen.sum() + bad.sum() + good.sum()),
    )
    assert np.allclose(fitted.predict_proba(loans.X)[:, 1], risks(plain, loans.X), atol=1e-4)


def test_the_bayesian_evaluation_is_what_drawn_labels_tend_to(loans):
    fitted = methods.make(
        "bias-aware-self-learning", learner=FREE, rounds=2, labelled=0.1, random_state=0
    ).fit_problem(loans, validation=loans)
    first = methods.make("tested-only", learner=FREE, random_state=0)
    score = first.fit_problem(loans, validation=loans).predict_proba(loans.X)[:, 1]
    rng = np.random.default_rng(0)
    drawn = [
        roc_auc_score(np.where(loans.tested, loans.y_obs, rng.random(400) < score), score)
        for _ in range(100)
    ]
    assert fitted.evaluation_[0] == pytest.approx(np.mean(drawn), abs=0.01)


def test_rounds_end_where_the_evaluation_no_longer_rises(loans):
    fitted = methods.make(
        "bias-aware-self-learning", learner="linear", rounds=8, labelled=0.05, random_state=1
    ).fit_problem(loans)
    rises = np.diff(fitted.evaluation_) > 0
    assert rises[:-1].all()
    assert len(fitted.evaluation_) <= 8


def test_filtering_sets_aside_those_unlike_the_tested(loans):
    """Far outliers among the declined get no label, unless nobody is filtered."""
    far = np.full((12, 2), 40.0)
    X = np.concatenate([loans.X, far])
    problem = SelectiveLabels.from_arrays(X, np.append(loans.y_obs, np.full(12, np.nan)))
    found = []
    for filtered in ((0.0, 1.0), (0.1, 1.0)):
        fitted = methods.make(
            "bias-aware-self-learning", learner="linear", filtered=filtered, sampled=1.0,
            labelled=0.05, rounds=1, random_state=0,
        )  # fmt: skip
        found.append(fitted.fit_problem(problem, validation=loans).models_[0].preprocessor.mean[0])
    assert found[0] > found[1] + 0.5  # forties were learnt from, or not


@pytest.mark.parametrize(
    ("name", "params", "match"),
    [
        ("parcelling", {"factor": 0}, "factor above 0"),
        ("parcelling", {"bands": 0}, "at least one band"),
        ("bias-aware-self-learning", {"filtered": (0.9, 0.1)}, "two rising percentiles"),
        ("bias-aware-self-learning", {"labelled": 0}, "shares above 0"),
        ("bias-aware-self-learning", {"rounds": 0}, "rounds at least 1"),
        ("fuzzy-augmentation", {"learner": "network"}, "takes the learners linear"),
        ("fuzzy-augmentation", {"learner": KNeighborsClassifier()}, "takes no sample_weight"),
        ("ipw", {"learner": make_pipeline(KNeighborsClassifier())}, "takes no sample_weight"),
        ("instrument", {"learner": "network"}, "takes the learners linear"),
    ],
)
def test_what_cannot_be_meant_is_refused(name, params, match, loans):
    with pytest.raises(InputError, match=match):
        methods.make(name, **params).fit_problem(loans)


@pytest.mark.parametrize("name", ["fuzzy-augmentation", "parcelling", "bias-aware-self-learning"])
def test_everybody_approved_is_tested_only(name, loans):
    seen = loans.subset(np.flatnonzero(loans.tested))
    score, plain = (
        methods.make(one, learner="linear", random_state=0)
        .fit_problem(seen)
        .predict_proba(loans.X)[:, 1]
        for one in (name, "tested-only")
    )
    assert np.array_equal(score, plain)
