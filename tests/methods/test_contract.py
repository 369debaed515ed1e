"""One contract for every method of the registry; a method that is registered is covered here.

Training budgets are small throughout: the contract is about what goes in and what comes out.
"""

import inspect
import pickle
import random
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from choices import each_once, some
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import dcem
from dcem import methods
from dcem.methods.ensemble_parts import PARTS
from dcem.methods.fitting import member_seeds
from dcem.methods.propensity import PropensitySettings
from dcem.methods.registry import METHODS
from dcem.methods.supervised import OracleClassifier
from dcem.saving import load_model
from dcem.table.labels import SelectiveLabels

SMALL = {
    "hidden": (8, 8),
    "steps": 6,
    "max_iter": 3,
    "warm_up": 2,
    "rounds": 1,
    "n_folds": 2,
    "parts": ("network", "linear"),
    "labelled": 0.1,  # of few people enough for a lot to matter
    "propensity_settings": PropensitySettings(hidden=(8,), steps=6, learning_rate=1e-2),
}
# These draw noise, partners or halves by the position of a row: another order is another draw, and
# scores are only alike. So they learn for long enough to differ where people are mixed up.
DRAW_BY_POSITION = {"self", "dividemix", "dr-learner", "ipw"}
LEARNT = {"steps": 60, "learning_rate": 2e-2}
WITHOUT_LOT = {
    "fuzzy-augmentation",
    "heckman",
    "unmeasured-cause",
}  # nothing is drawn, where validation rows are given

NAMES = methods.names()
CASES = NAMES + [f"{name}:published" for name in NAMES if hasattr(METHODS[name], "variant")]
NETWORKS = [
    case for case in CASES if issubclass(METHODS[case.partition(":")[0]], methods.NetworkClassifier)
]
# What the base does for every variant alike is asked of the published ones by --slow.
ALIKE = some(NETWORKS, [case for case in NETWORKS if ":" not in case])


def make(case: str, **params) -> methods.NetworkClassifier:
    """A method with a small budget; "name:published" is its published variant."""
    name, _, variant = case.partition(":")
    known = inspect.signature(METHODS[name]).parameters
    # networks where a method can be made of them; other learners: tests/methods/test_learning.py
    networks = issubclass(METHODS[name], methods.NetworkClassifier)
    small = SMALL | {"learner": "network" if networks else "linear"}
    chosen = {key: value for key, value in small.items() if key in known}
    chosen |= {"variant": variant} if variant else {}
    return methods.make(name, **(chosen | {"random_state": 0} | params))


class Data:
    """300 people of 2 or 3 groups, their truth, and 100 more for validation."""

    def __init__(self, n_groups: int = 2, n: int = 300):
        rng = np.random.default_rng(8)
        total = n + 100
        self.X = rng.normal(size=(total, 3))
        self.group = np.array(["a", "b", "c"])[rng.integers(0, n_groups, total)]
        self.truth = (rng.random(total) < 1 / (1 + np.exp(-2 * self.X[:, 0]))).astype(int)
        chance = 1 / (1 + np.exp(-self.X[:, 1] - (self.group == "b")))
        self.tested = rng.random(total) < chance
        self.y = np.where(self.tested, self.truth, np.nan)
        self.train, self.held = slice(0, n), slice(n, total)

    def problem(self, rows) -> SelectiveLabels:
        return SelectiveLabels.from_arrays(self.X[rows], self.y[rows], group=self.group[rows])

    def fit(self, estimator, *, X=None, held_out=False, order=slice(None)):
        """Fit to the training rows in some order, with validation rows given or held out."""
        X = self.X if X is None else X
        rows = np.arange(len(self.X))[self.train][order]
        validation = None if held_out else self.problem(self.held)
        truth = None
        if estimator.uses_truth:
            truth = self.truth[rows]
            truth = truth if held_out else (truth, self.truth[self.held])
        return estimator.fit_problem(
            SelectiveLabels.from_arrays(X[rows], self.y[rows], group=self.group[rows]),
            validation=validation,
            truth=truth,
        )


@pytest.fixture(scope="module")
def data() -> Data:
    return Data()


def scores(estimator, data: Data, rows=None) -> np.ndarray:
    rows = data.held if rows is None else rows
    group = {"sensitive_features": data.group[rows]} if estimator.needs_group else {}
    return estimator.predict_proba(data.X[rows], **group)[:, 1]


@pytest.fixture(autouse=True)
def quiet():
    """Tables this small draw remarks on what they cannot show."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dcem.DataWarning)
        yield


# -- scikit-learn -----------------------------------------------------------------------------


class GivenLabelsAsTruth:
    """scikit-learn's checks know no `truth=`: an oracle gets the labels in its place."""

    def fit(self, X, y, **kw):
        return super().fit(X, y, truth=np.asarray(dcem.table.checks.encode_classes(y)[0]), **kw)


def checkable(name: str):
    known = make(name).get_params()
    enough = {"steps": 40, "learning_rate": 2e-2, "warm_up": 30}  # to tell two blobs apart
    estimator = make(name, **{key: value for key, value in enough.items() if key in known})
    if not estimator.uses_truth:
        return estimator
    cls = type(f"Checked{METHODS[name].__name__}", (GivenLabelsAsTruth, METHODS[name]), {})
    cls.__module__ = __name__
    globals()[cls.__name__] = cls  # scikit-learn pickles what it checks
    return cls(**{**estimator.get_params(), "patience": None})


# A row of weight 2 is not a row twice: rows are held out, and features scaled, row by row.
UNLIKE_REPETITION = {"check_sample_weight_equivalence_on_dense_data": "rows are held out by lot"}


# The contract is the base's: one method of networks and the default stand for the rest, and for
# learners tests/methods/test_learning.py; all methods are checked by --slow.
EVERY_TIME = {"tested-only", "ensemble"}


@pytest.mark.parametrize("name", some(NAMES, EVERY_TIME))
def test_check_estimator(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(checkable(name), expected_failed_checks=UNLIKE_REPETITION)


# -- no label of an untested row is seen --------------------------------------------------------


def corrupted(problem: SelectiveLabels) -> SelectiveLabels:
    """The same table with a label written behind the checks wherever nobody looked."""
    copy = problem.subset(slice(None))
    labels = copy.y_obs.copy()
    labels[~copy.tested] = 1.0
    object.__setattr__(copy, "y_obs", labels)
    return copy


def assert_blind(estimator, data: Data, *, held_out: bool) -> None:
    """Fitting does not move by a bit when labels of untested rows change."""
    outcomes = []
    for change in (lambda problem: problem, corrupted):
        one = clone(estimator)
        truth = (data.truth[data.train], data.truth[data.held])
        problem, validation = change(data.problem(data.train)), change(data.problem(data.held))
        with pytest.MonkeyPatch.context() as patch:
            # a subset is checked again, and would refuse what was written behind the checks
            patch.setattr(SelectiveLabels, "__post_init__", lambda self: None)
            one.fit_problem(
                problem,
                validation=None if held_out else validation,
                truth=None if not one.uses_truth else truth[0] if held_out else truth,
            )
        outcomes.append(one)
    clean, dirty = outcomes
    np.testing.assert_array_equal(scores(clean, data), scores(dirty, data))
    for name, value in vars(clean).items():
        if name.endswith("_") and isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(dirty, name), err_msg=name)


@pytest.mark.parametrize(("case", "held_out"), each_once(CASES, [False, True]))
def test_untested_labels_are_not_seen(case, held_out, data):
    if held_out and ":published" in case and make(case).uses_truth:
        pytest.skip("the published variant wants validation rows with their truth")
    assert_blind(make(case), data, held_out=held_out)


class Leaky(OracleClassifier):
    """Trains on whatever stands in the label column."""

    name = "leaky"
    uses_truth = False

    def fit_problem(self, problem, *, validation=None, truth=None):
        plain = OracleClassifier(**self.get_params())
        plain.fit_problem(problem, truth=np.nan_to_num(problem.y_obs))
        vars(self).update(vars(plain))
        return self


def test_the_guard_catches_a_leaky_method(data):
    with pytest.raises(AssertionError):
        assert_blind(Leaky(steps=12, patience=None, random_state=0), data, held_out=True)


# -- rows, seeds, precision ---------------------------------------------------------------------


@pytest.mark.parametrize("case", ALIKE)
def test_the_order_of_rows_does_not_matter(case, data):
    by_position = case.partition(":")[0] in DRAW_BY_POSITION and case != "ipw:published"
    budget = LEARNT if by_position else {}

    def fit(**kw):
        return data.fit(make(case, dtype="float64", batch_size=None, **budget), **kw)

    def alike(one, other):
        if by_position:
            return np.corrcoef(scores(one, data), scores(other, data))[0, 1] > 0.99
        return np.allclose(scores(one, data), scores(other, data), rtol=0, atol=1e-6)

    order = np.random.default_rng(1).permutation(len(data.X[data.train]))
    straight, shuffled = fit(), fit(order=order)
    assert alike(straight, shuffled)
    mixed_up = data.X.copy()  # features of one person with labels and group of another
    mixed_up[data.train] = mixed_up[data.train][order]
    assert not alike(straight, fit(X=mixed_up)), "the comparison sees nothing"
    for name in () if by_position else ("pseudo_labels_", "propensity_"):
        if hasattr(straight, name):
            np.testing.assert_allclose(
                getattr(shuffled, name), getattr(straight, name)[order], atol=1e-6
            )
    if hasattr(shuffled, "pseudo_labels_"):  # found positives stand where they belong
        found = data.y[data.train][order] == 1
        np.testing.assert_allclose(shuffled.pseudo_labels_[found], 1)


@pytest.mark.parametrize("case", some(CASES, NAMES))
def test_same_seed_same_bits_other_seed_other_model(case, data):
    first, again, other = (data.fit(make(case, random_state=seed)) for seed in (0, 0, 1))
    assert np.array_equal(scores(first, data), scores(again, data))
    alike = np.allclose(scores(first, data), scores(other, data), atol=1e-6)
    assert alike == (case in WITHOUT_LOT)


# tests/methods/test_learning.py has other learners; what counts is the base's, but for two methods
WEIGHED = some(NAMES, {"tested-only", "tested-only-plus-group", "purple", "heckman", "ensemble"})


@pytest.mark.parametrize("name", WEIGHED)
def test_a_row_of_weight_0_is_no_row(name, data):
    rng = np.random.default_rng(3)
    n, more = 300, 60
    place = np.sort(rng.permutation(n + more)[:n])  # of the rows that count
    X, y = 50 + 30 * rng.normal(size=(n + more, 3)), rng.choice([0, 1, np.nan], n + more)
    group, truth = rng.choice(["a", "b"], n + more), rng.integers(0, 2, n + more)
    weight = np.zeros(n + more)
    for given, of in ((X, data.X), (y, data.y), (group, data.group), (truth, data.truth)):
        given[place] = of[:n]
    weight[place] = 1 + rng.random(n)
    fitted = []
    for rows in (place, np.arange(n + more)):
        one = make(name)
        known = {"truth": truth[rows]} if one.uses_truth else {}
        groups = {"sensitive_features": group[rows], "sample_weight": weight[rows]}
        fitted.append(one.fit(X[rows], y[rows], **groups, **known))
    np.testing.assert_array_equal(*(scores(one, data) for one in fitted))
    np.testing.assert_array_equal(place[fitted[0].train_rows_], fitted[1].train_rows_)


def global_randomness() -> list[bytes]:
    """The whole global state: numpy's words and its place among them, torch's, Python's."""
    words = np.random.get_state(legacy=True)  # noqa: NPY002, it is watched, not used
    return [pickle.dumps(state) for state in (words, random.getstate())] + [
        torch.random.get_rng_state().numpy().tobytes()
    ]


@pytest.mark.parametrize(("case", "batch_size"), each_once(NETWORKS, [None, 64]))
def test_fitting_does_not_touch_global_randomness(case, batch_size, data):
    before = global_randomness()
    data.fit(make(case, batch_size=batch_size))
    assert global_randomness() == before


@pytest.mark.parametrize(
    "draw",
    [lambda: np.random.random(), lambda: torch.rand(1), lambda: random.random()],  # noqa: NPY002
    ids=["numpy", "torch", "python"],
)
def test_a_single_global_draw_is_noticed(draw):
    before = global_randomness()
    draw()
    assert global_randomness() != before


@pytest.mark.parametrize(("case", "batch_size"), each_once(NETWORKS, [None, 64]))
def test_many_at_once_are_the_same_as_one_by_one(case, batch_size, data):
    # one shorter table, and one of the same length with other numbers tested and in the groups
    parts = [slice(0, 260), slice(40, 280), slice(40, 300)]
    problems, held = [data.problem(part) for part in parts], data.problem(data.held)
    truths = None
    estimator = make(case, dtype="float64", batch_size=batch_size)
    if estimator.uses_truth:
        truths = [(data.truth[part], data.truth[data.held]) for part in parts]
    together = methods.fit_many(
        estimator, problems, validations=[held] * 3, truths=truths, random_states=[3, 4, 3]
    )
    for i, (problem, seed) in enumerate(zip(problems, [3, 4, 3], strict=True)):
        alone = clone(estimator).set_params(random_state=seed)
        alone.fit_problem(problem, validation=held, truth=None if truths is None else truths[i])
        np.testing.assert_allclose(scores(together[i], data), scores(alone, data), atol=1e-8)


@pytest.mark.parametrize("case", ALIKE)
def test_an_ensemble_on_minibatches_is_the_mean_of_single_fits(case, data):
    settings = {"dtype": "float64", "batch_size": 64}
    together = data.fit(make(case, n_members=2, **settings))
    alone = [
        scores(data.fit(make(case, **(settings | {"random_state": seed}))), data)
        for seed in member_seeds(0, 2)
    ]
    np.testing.assert_allclose(scores(together, data), np.mean(alone, axis=0), atol=1e-8)


# -- keeping --------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_save_and_load_without_pickle(case, data, tmp_path, monkeypatch):
    whole = {"parts": PARTS} if case == "ensemble" else {}
    fitted = data.fit(make(case, **({"n_members": 2} if case in NETWORKS else whole)))

    def refuse(*args, **kw):
        raise AssertionError("pickle was used")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    fitted.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(fitted)
    assert np.array_equal(scores(loaded, data), scores(fitted, data))
    assert loaded.get_params() == fitted.get_params()
    pd.testing.assert_frame_equal(loaded.support(data.X[:20]), fitted.support(data.X[:20]))
    for name in vars(loaded):
        value = getattr(loaded, name)
        assert len(data.X[data.train]) not in np.shape(value), f"{name} holds a value per row"


@pytest.mark.parametrize("case", ALIKE)
def test_onnx_gives_the_same_probabilities(case, data, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    X = data.X.copy()
    X[::9, 1] = np.nan
    fitted = data.fit(make(case), X=X)
    path = tmp_path / "model.onnx"
    if fitted.needs_group:
        with pytest.raises(dcem.InputError, match="group"):
            fitted.export_onnx(path)
        assert not path.exists()
        return
    fitted.export_onnx(path)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    exported = session.run(["probabilities"], {"X": X})[0]
    np.testing.assert_allclose(exported, fitted.predict_proba(X), atol=1e-5)


# -- tables in --------------------------------------------------------------------------------


def fit_table(estimator, data: Data, X, rows=slice(0, 300), **kw):
    truth = {"truth": data.truth[rows]} if estimator.uses_truth else {}
    group = {"sensitive_features": data.group[rows]}
    return estimator.fit(X, data.y[rows], **(group | truth | kw))


@pytest.mark.parametrize(("name", "kind"), each_once(NAMES, [pd.DataFrame, pl.DataFrame]))
def test_frames_in(name, kind, data):
    columns = ["age", "pulse", "lactate"]
    rows, later = slice(0, 300), slice(300, 400)
    frame = kind({c: data.X[rows, i] for i, c in enumerate(columns)})
    fitted = fit_table(make(name), data, frame)
    plain = fit_table(make(name), data, data.X[rows])
    assert list(fitted.feature_names_in_) == columns
    new = kind({c: data.X[later, i] for i, c in enumerate(columns)})
    group = {"sensitive_features": data.group[later]} if fitted.needs_group else {}
    assert np.array_equal(
        fitted.predict_proba(new, **group), plain.predict_proba(data.X[later], **group)
    )
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict_proba(new[columns[::-1]], **group)
    with pytest.raises(ValueError, match="feature"):
        fitted.predict_proba(new[columns[:2]], **group)


@pytest.mark.parametrize("name", NAMES)
def test_three_groups(name):
    three = Data(n_groups=3)
    fitted = fit_table(make(name), three, three.X[:300])
    assert fitted.group_names_ == ("a", "b", "c")
    found = scores(fitted, three)
    assert np.isfinite(found).all()
    assert found.min() >= 0
    assert found.max() <= 1
    assert found.std() > 0


@pytest.mark.parametrize("name", NAMES)
def test_missing_values(name, data):
    X = data.X.copy()
    X[::4, 2] = np.nan
    fitted = fit_table(make(name), data, X[:300])
    group = {"sensitive_features": data.group[300:]} if fitted.needs_group else {}
    assert np.isfinite(fitted.predict_proba(X[300:], **group)).all()
    if name in NETWORKS:
        with pytest.raises(ValueError, match="missing values"):
            fit_table(make(name, preprocess=None), data, X[:300])


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_refused_with_words(name, data):
    rows = slice(0, 300)
    X, y, tested = data.X[rows], data.y[rows], data.tested[rows]
    estimator = make(name)
    truth = {"truth": data.truth[rows]} if estimator.uses_truth else {}

    def refused(match, X=X, y=y, **kw):
        with pytest.raises(dcem.InputError, match=match):
            clone(estimator).fit(X, y, **(truth | kw))

    refused("An untested row cannot have a positive result", tested=np.zeros(300, bool))
    refused("one class", y=np.where(tested, 1.0, np.nan))
    refused("299", y=y[:299])
    refused("299", tested=tested[:299])
    refused("299", sensitive_features=data.group[:299])
    refused("index|indices", X=pd.DataFrame(X), y=pd.Series(y, index=np.arange(300) + 5))
    refused("features", validation=SelectiveLabels.from_arrays(data.X[:, :2], data.y))
    refused(
        "groups",
        sensitive_features=data.group[rows],
        validation=SelectiveLabels.from_arrays(data.X, data.y, group=["z"] * len(data.y)),
    )
    if name not in NETWORKS:
        return
    with pytest.raises(ValueError, match="dtype"):
        make(name, dtype="float16").fit(X, y, **truth)
    with pytest.raises(ValueError, match="n_members"):
        make(name, n_members=0).fit(X, y, **truth)


@pytest.mark.parametrize("case", CASES)
def test_truth_only_for_those_who_say_so(case, data):
    estimator = make(case)
    given = {} if estimator.uses_truth else {"truth": data.truth[data.train]}
    with pytest.raises(dcem.InputError, match="truth"):
        estimator.fit_problem(data.problem(data.train), **given)
    if estimator.uses_truth:
        with pytest.raises(dcem.InputError, match="7 values for 300"):
            estimator.fit_problem(data.problem(data.train), truth=data.truth[:7])


@pytest.mark.parametrize(
    ("truth", "match"),
    [
        (np.full(300, np.nan), "'truth' is missing in 300 of 300 rows"),
        (["ill", "well"] * 150, "'truth' holds values other than 0 and 1 in 300 of 300 rows"),
        (1, "'truth' should be a 1d array"),
        ([1, 0], "truth has 2 values for 300 rows"),
    ],
)
def test_the_truth_is_of_every_row_and_0_or_1(truth, match, data):
    problem = data.problem(data.train)
    with pytest.raises(dcem.InputError, match=match):
        make("y-model").fit_problem(problem, truth=truth)


def test_what_is_no_problem_is_refused_with_words(data):
    rows = pd.DataFrame(data.X, columns=["a", "b", "c"])
    table = dcem.read_table(rows.assign(y=data.y), dcem.Roles(label="y"))
    for given in (rows, (rows, data.y), table):
        with pytest.raises(dcem.InputError, match=r"Expected a problem .*read_table.*\.problem"):
            make("tested-only").fit_problem(given)


def test_accuracy_needs_every_label_and_says_what_does_not(data):
    fitted = make("tested-only").fit(data.X, data.y)
    assert fitted.score(data.X, data.truth) == np.mean(fitted.predict(data.X) == data.truth)
    with pytest.raises(dcem.InputError, match=r"y is missing in .* rows.*scorer\(\"dr-auc\"\)"):
        fitted.score(data.X, data.y)


def test_what_a_mask_hides_is_missing(data):
    hidden = np.ma.array(data.X, mask=data.X > 1)
    shown = hidden.filled(np.nan)
    fitted = make("tested-only").fit(hidden, data.y)
    np.testing.assert_array_equal(fitted.predict_proba(hidden), fitted.predict_proba(shown))


@pytest.mark.parametrize("seed", [-1, 1.5, "7"])
def test_a_seed_that_is_none_is_refused(seed, data):
    with pytest.raises(dcem.InputError, match="random_state must be a whole number"):
        make("heckman", random_state=seed).fit(data.X, data.y)


def test_members_that_are_told_the_group_disagree_too(data):
    method = make("tested-only-plus-group", n_members=2, learner="linear")
    fitted = fit_table(method, data, data.X[:300])
    each = fitted.member_scores(data.X, data.group)
    assert each.shape == (2, 400)
    spread = fitted.spread(data.X, sensitive_features=data.group)
    np.testing.assert_array_equal(spread, each.std(axis=0))
    with pytest.raises(dcem.InputError, match="pass sensitive_features"):
        fitted.spread(data.X)


@pytest.mark.parametrize("known", [None, 0.3])
def test_rows_are_read_once_where_the_group_is_told(data, known):
    ward = np.where(data.X[:, 0] > 0, "A", "B")
    frame = pd.DataFrame({"x": data.X[:, 1], "ward": ward})
    method = make("tested-only-plus-group", learner="linear", random_state=0)
    method.fit(frame, data.y, sensitive_features=data.group, prevalence=known)
    with pytest.warns(dcem.DataWarning) as heard:
        method.predict_proba(frame.assign(ward="C"), sensitive_features=data.group)
    assert len(heard) == 1


@pytest.mark.parametrize(
    ("name", "wrong", "match"),
    [
        ("group-only", {"group": "a"}, "asked for group 'a', but there are 2 groups"),
        ("dragonnet", {"reference": 1.0}, "asked for reference 1.0"),
        ("unmeasured-cause", {"prior": 0}, "standard deviations, above 0"),
        ("heckman", {"n_members": 2.5}, "n_members must be a whole number"),
    ],
)
def test_parameters_that_cannot_be_meant_are_refused(name, wrong, match, data):
    with pytest.raises(dcem.InputError, match=match):
        fit_table(make(name, **wrong), data, data.X[:300])


def test_names_and_a_wrong_one():
    assert set(methods.names(usable=True)) | set(methods.names(usable=False)) == set(NAMES)
    assert "y-model" in methods.names(usable=False)
    assert "dcem" in methods.names(usable=True)
    with pytest.raises(dcem.InputError, match="Did you mean 'dcem'"):
        methods.make("dcme")


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_teaches(name):
    text = inspect.cleandoc(METHODS[name].__doc__)
    for part in ("*Idea.*", "*Assumption.*", "*When it fails.*", "References\n----------\n"):
        assert part in text, part
