"""Learners: what they learn, what they keep, and what they refuse."""

import pickle
from dataclasses import replace

import lightgbm
import numpy as np
import pytest
from scipy.special import expit
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from dcem.learners import LEARNERS, Sample, dump_learner, load_learner, make_learner
from dcem.learners.boost import SmallTreesScorer
from dcem.learners.forest import LargeTreesScorer
from dcem.learners.learner import smallest_leaf
from dcem.learners.preprocess import Preprocessor
from dcem.learners.smooth import _some, bumps
from dcem.learners.trees import Scorer, Trees
from dcem.table.messages import InputError

N = 600


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * N, 3))
    y = (rng.random(2 * N) < expit(2 * X[:, 0] - X[:, 1])).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 2] = rng.normal(size=2 * N)  # never missing
    weight = rng.uniform(0.5, 2, 2 * N)
    return X, y, weight


def fit(name, rows, **options):
    sample, held = (Sample(*rows).take(np.arange(2 * N) // N == half) for half in (0, 1))
    return make_learner(name, 0, **options).fit(sample, held)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("squared", [False, True])
def test_it_learns_and_comes_back_from_plain_arrays_to_the_last_bit(name, squared, rows):
    X, y, _ = rows
    learner = fit(name, rows, squared=squared)
    score = learner.predict_proba(X[N:])[:, 1]
    assert np.mean((score - y[N:]) ** 2) < 0.9 * np.var(y[N:])
    assert np.allclose(expit(learner.predict_logit(X[N:])), score)
    kind, arrays = dump_learner(learner)
    again = load_learner(kind, arrays, 3)
    assert np.array_equal(again.predict_proba(X), learner.predict_proba(X))
    copied = pickle.loads(pickle.dumps(learner))
    assert np.array_equal(copied.predict_proba(X), learner.predict_proba(X))
    assert np.array_equal(
        fit(name, rows, squared=squared).predict_proba(X), learner.predict_proba(X)
    )


@pytest.mark.parametrize("name", LEARNERS)
def test_the_score_of_a_row_does_not_depend_on_its_company(name, rows):
    X = rows[0]
    learner = fit(name, rows)
    alone = np.concatenate([learner.predict_logit(row[None]) for row in X[:20]])
    rounding = 1e-5 if name == "perceptron" else 1e-12  # products in single precision
    assert np.allclose(alone, learner.predict_logit(X)[:20], rtol=0, atol=rounding)
    assert learner.predict_logit(X[:0]).shape == (0,)
    unseen = X[:5].copy()
    unseen[:, 2] = np.nan  # never missing in training: the median stands in
    filled = X[:5].copy()
    filled[:, 2] = np.median(X[:N, 2])
    assert np.allclose(learner.predict_logit(unseen), learner.predict_logit(filled), atol=1e-6)


@pytest.mark.parametrize("name", LEARNERS)
def test_rows_of_weight_zero_take_no_part_and_one_class_is_a_constant(name, rows):
    X, y, weight = (part[:N] for part in rows)
    dropped = np.arange(N) % 3 == 0
    by_weight = make_learner(name, 0).fit(Sample(X, y, np.where(dropped, 0, weight)))
    by_rows = make_learner(name, 0).fit(Sample(X, y, weight).take(~dropped))
    assert np.array_equal(by_weight.predict_logit(X), by_rows.predict_logit(X))
    constant = make_learner(name, 0).fit(Sample(X, np.ones(N), weight)).predict_proba(X)[:, 1]
    assert np.ptp(constant) == 0 or (name == "perceptron" and np.ptp(constant) < 1e-3)
    assert 0.99 < constant[0] < 1


def test_a_linear_model_of_weights_is_nearly_that_of_repeated_rows(rows):
    X, y = rows[0][:N], rows[1][:N]
    times, person = 1 + (X[:, 1] > 0.5) * (2 + 4 * y).astype(int), np.arange(N)
    at, ones = np.repeat(person, times), np.ones(times.sum())
    weighted, repeated, plain = (
        make_learner("linear", 0).fit(sample).predict_proba(X)[:, 1]
        for sample in (
            Sample(X, y, times.astype(float), person),
            Sample(X[at], y[at], ones, at),
            Sample(X, y, ones[:N], person),
        )
    )
    assert np.abs(weighted - repeated).max() < 0.2 * np.abs(weighted - plain).max()


@pytest.mark.parametrize("name", LEARNERS)
def test_held_out_rows_of_no_weight_are_none(name, rows):
    X, y, weight = rows
    sample, held = Sample(X[:N], y[:N], weight[:N]), Sample(X[N:], y[N:], np.zeros(N))
    alone = make_learner(name, 0).fit(sample)
    assert np.array_equal(
        make_learner(name, 0).fit(sample, held).predict_logit(X), alone.predict_logit(X)
    )


@pytest.mark.parametrize("name", ["linear", "forest", "smooth"])
def test_a_small_unit_is_a_unit_and_a_few_marks_hide_nothing(name, rows):
    X, y, weight = rows
    plain = fit(name, rows).predict_logit(X)
    small = fit(name, (1e-15 * X, y, weight)).predict_logit(1e-15 * X)
    assert np.allclose(small, plain, atol=1e-4)
    if name == "smooth":  # whose features are scaled by what most of the rows have
        marked = np.where(np.arange(2 * N)[:, None] % 100 == 0, 99_999_999_999, X)
        kept = slice(1, 100)
        found = fit(name, (marked, y, weight)).predict_logit(marked)
        assert np.corrcoef(found[kept], plain[kept])[0, 1] > 0.8


def test_the_linear_penalty_is_chosen_on_validation_rows(rows):
    X, y, weight = rows
    noise = np.random.default_rng(1).permutation(y)
    signal, nothing = fit("linear", rows), fit("linear", (X, noise, weight))
    assert nothing.penalty > signal.penalty
    total = signal.penalty * N
    reference = LogisticRegression(C=1 / total, tol=1e-10, max_iter=10_000)
    standard = signal.preprocessor.transform(X[:N], "float64")
    mean_one = weight[:N] / weight[:N].mean()
    reference.fit(standard, y[:N], sample_weight=mean_one)
    assert np.allclose(reference.coef_[0], signal.coefficients, atol=1e-4)


@pytest.mark.parametrize("name", ["linear", "smooth"])
@pytest.mark.parametrize("squared", [False, True])
def test_in_the_span_of_fewer_rows_than_features_the_model_is_the_same(name, squared, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 110))
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(float)
    every, rows = Sample(X, y, rng.uniform(0.5, 2, 120)), np.arange(120)
    found = []
    for _ in range(2):
        model = make_learner(name, 0, squared=squared)
        found.append(model.fit(every.take(rows[:80]), every.take(rows[80:])).predict_logit(X))
        for home in ("linear", "smooth"):
            monkeypatch.setattr(f"dcem.learners.{home}.span", lambda rows: None)
    assert np.abs(found[0]).max() > 0.1
    assert np.allclose(*found, atol=1e-5)


def test_a_smooth_model_bends_where_there_are_rows_and_returns_to_the_line_beyond():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-2, 2, 3000), rng.normal(size=3000)])
    y = (rng.random(3000) < expit(2 * X[:, 1] + 3 * np.sin(3 * X[:, 0]))).astype(float)
    every, rows = Sample(X, y, np.ones(3000)), np.arange(3000)
    seen = make_learner("smooth", 0).fit(every.take(rows[:2000]), every.take(rows[2000:]))
    at = np.column_stack([np.linspace(-1.8, 1.8, 30), np.zeros(30)])
    found, truth = seen.predict_logit(at), 3 * np.sin(3 * at[:, 0])
    assert np.corrcoef(found, truth)[0, 1] > 0.97
    bends = seen.coefficients[2:]
    far = np.array([[40.0, 1.0], [40.0, -1.0]])  # drawn in, and yet beyond the bumps
    assert np.abs(bumps(seen.scaling(far).astype(float), seen.centers, 0.5) @ bends).max() < 0.5
    up, down = seen.predict_logit(far)
    assert up > down + 1
    assert (np.abs(seen.centers[:, None] - seen.scaling(X)).max(axis=2) > 1e-6).all()  # nobody's
    crafted = seen.arrays() | {"centers": seen.centers[:, :1]}
    with pytest.raises(ValueError, match="basis functions"):
        load_learner("smooth", crafted, 2)


def test_rows_to_learn_from_hold_the_rare_outcomes_of_a_long_table():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(50_000, 1)), np.zeros(50_000), rng.uniform(1, 2, 50_000)
    y[rng.permutation(50_000)[:100]] = 1
    some = _some(Sample(X, y, weight), 4000, rng)
    assert some.person is None
    assert [len(one) for one in some[:3]] == [4000] * 3
    assert some.y.sum() == 100
    assert some.weight @ some.y == pytest.approx(weight @ y)
    assert some.weight.sum() == pytest.approx(weight.sum())
    often = _some(Sample(X, 1 - y, weight), 4000, rng)
    assert (1 - often.y).sum() == 100
    even = _some(Sample(X, (X[:, 0] > 0).astype(float), weight), 4000, rng)
    assert set(even.weight) <= set(weight)  # none counts more or less


# -- nobody in particular ----------------------------------------------------------------------


def test_where_bumps_lie_does_not_tell_who_was_among_a_few_people_with_many_features():
    X = np.random.default_rng(0).normal(size=(60, 50))
    model = make_learner("smooth", 0).fit(Sample(X[:30], np.arange(30) % 2.0, np.ones(30)))
    middle = model.centers.mean(axis=0)
    beyond = np.linalg.svd(model.centers - middle)[2][30:]  # where 30 people's features cannot be
    known, new = (
        np.linalg.norm((model.scaling(X[rows]) - middle) @ beyond.T, axis=1)
        for rows in (slice(30), slice(30, 60))
    )
    assert known.mean() > 0.7 * new.mean()


def people_per_leaf(trees: Trees, X: np.ndarray, person: np.ndarray) -> int:
    """The fewest people in any leaf of any tree, by walking all rows down each tree."""
    fewest, rows = len(person), np.arange(len(X))
    for first, n_leaves in zip(trees.starts, trees.leaves.tolist(), strict=True):
        node = np.full(len(X), 0 if n_leaves > 1 else -1)
        while (inner := node >= 0).any():
            at = first + node[inner]
            value = X[rows[inner], trees.feature[at]]
            by_default = np.isnan(value) & (trees.decision[at] & 8 > 0)
            small = np.nan_to_num(value) <= trees.threshold[at]
            left = np.where(by_default, trees.decision[at] & 2 > 0, small)
            node[inner] = np.where(left, trees.left[at], trees.right[at])
        members = np.unique(np.column_stack([node, person]), axis=0)[:, 0]  # once per person
        fewest = min(fewest, *np.unique(members, return_counts=True)[1].tolist())
    return fewest


@pytest.mark.parametrize("name", ["boost", "forest"])
@pytest.mark.parametrize("visits", ["one", "many"])
def test_no_leaf_stands_for_fewer_than_ten_people(name, visits, rows):
    X, y, weight = (part[:400] for part in rows)
    person = np.arange(400) if visits == "one" else np.arange(400) // 4
    learner = make_learner(name, 0).fit(Sample(X, y, weight, person))
    seen = X if name == "boost" else learner.preprocessor.transform(X).astype(float)
    assert people_per_leaf(learner.trees, seen, person) >= 10
    assert not {"count", "weight"} & set(learner.arrays())


def test_a_leaf_is_as_large_as_the_nine_busiest_people():
    assert smallest_leaf(None, 100) == smallest_leaf(np.arange(100), 100) == 10
    assert smallest_leaf(np.repeat(np.arange(20), 5), 100) == 9 * 5 + 1
    assert smallest_leaf(np.zeros(50, int), 50) == 51  # one person: no split at all


# -- trees -------------------------------------------------------------------------------------


def test_trees_score_as_the_libraries_they_come_from(rows):
    X, y, _ = rows
    booster = lightgbm.train(
        {"objective": "binary", "verbosity": -1, "num_threads": 1},
        lightgbm.Dataset(X, y),
        20,
    )
    trees = Trees.from_text(booster.model_to_string())
    assert np.array_equal(Scorer(trees, 3)(X), booster.predict(X, raw_score=True))
    filled = np.nan_to_num(X).astype(np.float32)
    forest = ExtraTreesRegressor(20, min_samples_leaf=5, random_state=0).fit(filled, y)
    parts = [tree.tree_ for tree in forest.estimators_]
    trees = Trees.from_sklearn(parts, [part.value.ravel() / 20 for part in parts])
    assert np.allclose(Scorer(trees, 3)(filled), forest.predict(filled), atol=1e-12)
    assert np.array_equal(Scorer(trees, 3)(filled), LargeTreesScorer(trees, 3)(filled))


@pytest.mark.parametrize("decisions", [(0, 2), (8, 10), (0, 2, 8, 10)])
def test_small_trees_score_as_lightgbm_does(decisions) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(-4, 5, (3000, 5)) / 2.0  # many values are thresholds themselves
    X[:, 3] = np.exp(8 * rng.normal(size=3000))  # thresholds crowd at one end
    X[:, 4] = 0.7
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) + X[:, 1] * np.isnan(X[:, 2]) > 0).astype(float)
    settings = {"objective": "binary", "num_leaves": 16, "verbosity": -1, "num_threads": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(X, y), 30)
    trees = Trees.from_text(booster.model_to_string())
    assert len(np.unique(trees.feature)) > 2
    chosen = rng.choice(decisions, len(trees.decision)).astype(np.int8)
    stump = Trees.from_text("num_leaves=1\nleaf_value=0.25")
    for one in (trees, replace(trees, decision=chosen), stump):
        expected = Scorer(one, 5)(X)
        assert np.abs(SmallTreesScorer(one, 5)(X) - expected).max() < 1e-12
        assert np.array_equal(SmallTreesScorer(one, 5)(X)[7:9], SmallTreesScorer(one, 5)(X[7:9]))


def test_the_text_holds_no_counts_and_no_ranges_of_the_rows(rows):
    learner = fit("boost", rows)
    text = learner.trees.text(3)
    for word in ("leaf_count", "internal_count", "leaf_weight", "parameters"):
        assert word not in text
    assert "[-inf:inf] [-inf:inf] [-inf:inf]" in text
    X = rows[0]
    assert np.array_equal(
        lightgbm.Booster(model_str=text).predict(X[:9], raw_score=True),
        learner._scorer(X[:9]),
    )


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("left", lambda a: np.zeros_like(a)),
        ("left", lambda a: a[:-1]),
        ("right", lambda a: a + 10**6),
        ("feature", lambda a: a + 3),
        ("feature", lambda a: a - 10),
        ("leaves", lambda a: a * 0),
        ("leaves", lambda a: a + 10**6),
        ("value", lambda a: a * np.nan),
        ("value", lambda a: a.astype(np.float32)),
        ("threshold", lambda a: a[:, None]),
        ("decision", lambda a: a + 1),
    ],
)
def test_what_is_not_a_tree_is_refused(name, change, rows):
    arrays = dict(dump_learner(fit("boost", rows))[1])
    arrays[name] = change(arrays[name])
    with pytest.raises(ValueError, match=r"tree|leaves|splits"):
        load_learner("boost", arrays, 3)


# -- third-party models --------------------------------------------------------------------------


def test_a_classifier_of_others_is_cloned_and_not_written(rows):
    own = LogisticRegression()
    learner = fit(own, rows)
    assert not hasattr(own, "coef_")
    assert np.isfinite(learner.predict_logit(rows[0])).all()
    with pytest.raises(TypeError, match="without pickle"):
        dump_learner(learner)
    with pytest.raises(InputError, match="dr-learner and instrument"):
        make_learner(own, 0, squared=True)
    with pytest.raises(InputError, match="predict_proba"):
        make_learner(object(), 0)
    with pytest.raises(InputError, match="Did you mean 'boost'"):
        make_learner("bost", 0)


def test_a_pipeline_gets_weights_and_seeds(rows):
    X, y = (part[:N] for part in rows[:2])
    sample = Sample(np.nan_to_num(X), y, np.where(X[:, 2] > 0, 20.0, 1.0))
    for model in (LogisticRegression(), RandomForestClassifier(5)):
        plain, piped, again = (
            make_learner(one, 3).fit(sample).predict_logit(sample.X)
            for one in (model, make_pipeline(model), make_pipeline(model))
        )
        assert np.array_equal(piped, plain)
        assert np.array_equal(piped, again)


def test_a_column_in_which_few_people_differ_tells_nothing():
    """Nine people with a rare trait, thirty visits each: the mean would tell how many they are."""
    person = np.repeat(np.arange(200), 30)
    X = np.stack([np.random.default_rng(0).normal(size=6000), person < 9, person < 12], axis=1)
    made = Preprocessor.fit(X, "standard", person=person)
    assert made.mean[1] == 0
    assert made.scale[1] == np.inf
    assert made.mean[2] == pytest.approx(12 / 200)
    assert (made.transform(X)[:, 1] == 0).all()


def test_trees_of_a_yes_or_no_with_gaps() -> None:
    """One threshold, and an infinite one that tells gaps from all else: no scale to divide by."""
    rng = np.random.default_rng(0)
    x, gone = rng.integers(0, 2, 3000).astype(float), rng.random(3000) < 0.3
    y = (rng.random(3000) < np.where(gone, 0.8, np.where(x == 1, 0.6, 0.2))).astype(float)
    X = np.where(gone, np.nan, x)[:, None]
    model = make_learner("boost", 0, quick=True).fit(Sample(X, y, np.ones(3000)))
    assert np.isinf(model.trees.threshold).any()
    found = model.predict_proba(np.array([[0.0], [1.0], [np.nan]]))[:, 1]
    np.testing.assert_allclose(found, [0.2, 0.6, 0.8], atol=0.06)
