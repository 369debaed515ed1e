"""The contract for every method that takes other learners than networks, and for each of them."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from choices import each_once, some
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import dcem
from dcem import methods
from dcem.estimation import SelectiveKFold, scorer
from dcem.learners import LEARNERS
from dcem.methods.fitting import prepare
from dcem.methods.registry import takes_learners
from dcem.methods.weighting import propensities
from dcem.saving import ModelFileError, load_model
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError

NAMES = [name for name in methods.names() if takes_learners(name)]
NAMES.insert(0, NAMES.pop(NAMES.index("dr-learner")))  # with the first learner: it fits the most
N = 500


class Data:
    """People of two groups with gaps in their features; the last fifth is not learnt from."""

    def __init__(self):
        rng = np.random.default_rng(3)
        self.X = rng.normal(size=(N, 3))
        self.truth = (rng.random(N) < 1 / (1 + np.exp(-3 * self.X[:, 0]))).astype(float)
        self.group = np.array(["a", "b"])[rng.integers(0, 2, N)]
        chance = 1 / (1 + np.exp(-self.X[:, 1] - (self.group == "b")))
        self.tested = rng.random(N) < chance
        self.X[::11, 2] = np.nan
        self.y = np.where(self.tested, self.truth, np.nan)
        self.train, self.rest = slice(0, 400), slice(400, N)

    def fit(self, method, **options):
        known = {"truth": self.truth[self.train]} if method.uses_truth else {}
        part = self.train
        return method.fit(
            self.X[part], self.y[part], sensitive_features=self.group[part], **known, **options
        )

    def scores(self, method, rows=None):
        rows = self.rest if rows is None else rows
        group = {"sensitive_features": self.group[rows]} if method.needs_group else {}
        return method.predict_proba(self.X[rows], **group)[:, 1]


@pytest.fixture(scope="module")
def data():
    return Data()


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dcem.DataWarning)
        yield


def make(name, learner, **params):
    return methods.make(name, learner=learner, random_state=0, **params)


@pytest.mark.parametrize(("name", "learner"), each_once(NAMES, list(LEARNERS)))
def test_it_learns_repeats_itself_and_comes_back(name, learner, data, tmp_path):
    fitted = data.fit(make(name, learner, n_members=2))
    score = data.scores(fitted)
    assert roc_auc_score(data.truth[data.rest], score) > 0.75
    assert np.array_equal(score, data.scores(data.fit(clone(fitted))))
    assert len(fitted.models_) == (4 if name == "dr-learner" else 2)
    fitted.save(tmp_path / "model")
    assert np.array_equal(data.scores(load_model(tmp_path / "model")), score)
    near = fitted.support(data.X[data.rest])
    again = load_model(tmp_path / "model").support(data.X[data.rest])
    pd.testing.assert_frame_equal(again, near)
    assert np.isfinite(near["distance"]).all()
    assert near["testing_probability"].isna().all() == (name not in ("ipw", "dr-learner"))
    if not fitted.needs_group:
        assert fitted.spread(data.X).max() > 0


@pytest.mark.parametrize("name", [name for name in NAMES if name != "y-model"])
@pytest.mark.parametrize("learner", some(list(LEARNERS), ["linear"]))  # gets what a method gives it
def test_no_label_of_an_untested_row_is_seen(name, learner, data):
    outcomes = []
    for unseen in (0.0, 1.0):
        problem = SelectiveLabels.from_arrays(data.X, data.y, group=data.group)
        labels = np.where(problem.tested, problem.y_obs, unseen)
        object.__setattr__(problem, "y_obs", np.where(problem.tested, problem.y_obs, np.nan))
        object.__setattr__(problem, "y_obs", labels)
        outcomes.append(data.scores(make(name, learner).fit_problem(problem)))
    assert np.array_equal(*outcomes)


@pytest.mark.parametrize("learner", some(list(LEARNERS), ["linear"]))
def test_check_estimator(learner):
    unlike = {
        "check_sample_weight_equivalence_on_dense_data": "rows are held out by lot",
    }
    if learner != "linear":  # no leaf holds fewer than ten people
        unlike |= {
            "check_classifiers_train": "a handful of rows is nobody in particular",
            "check_classifiers_classes": "likewise",
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(make("tested-only", learner), expected_failed_checks=unlike)


@pytest.mark.parametrize("learner", LEARNERS)
def test_fit_many_is_a_loop(learner, data):
    problem = SelectiveLabels.from_arrays(data.X, data.y, group=data.group)
    parts = [problem.subset(slice(0, 300)), problem.subset(slice(200, 500))]
    method = make("tested-only", learner)
    together = methods.fit_many(method, parts, random_states=[3, 4])
    for one, part, seed in zip(together, parts, (3, 4), strict=True):
        alone = clone(method).set_params(random_state=seed).fit_problem(part)
        assert np.array_equal(one.predict_proba(data.X), alone.predict_proba(data.X))


def test_a_classifier_of_ones_own_works_and_says_that_it_is_not_saved(data, tmp_path):
    fitted = data.fit(make("ipw", HistGradientBoostingClassifier(max_iter=30)))
    assert roc_auc_score(data.truth[data.rest], data.scores(fitted)) > 0.7
    with pytest.raises(ModelFileError, match=r"HistGradientBoostingClassifier .* without pickle"):
        fitted.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    with pytest.raises(InputError, match="pseudo-outcomes"):
        data.fit(make("dr-learner", HistGradientBoostingClassifier()))
    for name in ("tested-only", "ipw"):
        with pytest.raises(InputError, match=r"got the class .*; write HistGradient.*\(\)"):
            data.fit(make(name, HistGradientBoostingClassifier))
        with pytest.raises(InputError, match="Did you mean 'boost'"):
            data.fit(make(name, "boosts"))


def test_methods_made_of_networks_say_so():
    with pytest.raises(InputError, match=r"dcem is a neural network.*tested-only"):
        methods.make("dcem", learner="boost")
    with pytest.raises(InputError, match="Did you mean 'forest'"):
        make("tested-only", "forrest").fit(np.zeros((20, 1)), np.arange(20) % 2)
    with pytest.raises(ValueError, match="published ipw is a network"):
        make("ipw", "linear", variant="published").fit(
            np.random.default_rng(0).normal(size=(40, 1)), np.arange(40) % 2
        )


def test_the_published_network_stays_after_another_learner(data):
    method = methods.make("tested-only", hidden=(4,), steps=20, random_state=0)
    network = data.scores(data.fit(clone(method)))
    changed = data.fit(method.set_params(learner="linear"))
    again = data.fit(changed.set_params(learner="network"))
    assert np.array_equal(data.scores(again), network)


# -- the model of testing ----------------------------------------------------------------------


def test_a_weight_comes_from_a_model_that_did_not_see_the_test(data):
    """Flipping one person's test does not move that person's own out-of-fold probability."""
    method = make("ipw", "linear")
    problem = SelectiveLabels.from_arrays(data.X, data.y, group=data.group)
    found = []
    for flipped in (False, True):
        tested = problem.tested.copy()
        one = int(np.flatnonzero(tested)[0])
        labels = problem.y_obs.copy()
        if flipped:
            tested[one], labels[one] = False, np.nan
        changed = SelectiveLabels.from_arrays(data.X, labels, group=data.group)
        e, _, _ = propensities(method, prepare(clone(method), changed, problem, None))
        found.append(e)
    assert found[0][one] == found[1][one]
    assert not np.array_equal(*found)


# -- frames ------------------------------------------------------------------------------------


def frame(data):
    ward = np.where(data.X[:, 0] > 0, "north", "south").astype(object)
    ward[::13] = None
    return pd.DataFrame(
        {
            "ward": pd.Categorical(ward),
            "age": data.X[:, 1],
            "smokes": np.where(data.X[:, 2] > 0, "yes", "no"),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N), "D"),
            "note": [f"n{i}" for i in range(N)],  # names every row: left out
        }
    )


@pytest.mark.parametrize("learner", ["network", *LEARNERS])
def test_a_frame_with_categories_goes_in_as_it_is(learner, data, tmp_path):
    table = frame(data)
    few = {"hidden": (8,), "steps": 300} if learner == "network" else {}
    method = make("tested-only", learner, **few)
    fitted = method.fit(table, data.y, sensitive_features=data.group)
    score = fitted.predict_proba(table)[:, 1]
    assert roc_auc_score(data.truth, score) > 0.75
    assert fitted.feature_names_in_.tolist() == table.columns.tolist()
    shuffled = table.sample(frac=1, random_state=0)[table.columns[::-1]]
    assert np.allclose(fitted.predict_proba(shuffled)[:, 1], score[shuffled.index])
    fitted.save(tmp_path / "model")
    assert np.array_equal(load_model(tmp_path / "model").predict_proba(table)[:, 1], score)
    with pytest.raises(InputError, match="ward"):
        fitted.predict_proba(table.drop(columns="ward"))
    numbers = clone(method).fit(table[["age"]], data.y)
    assert not hasattr(numbers, "encoder_")


def test_a_second_fit_forgets_the_frame(data):
    method = make("tested-only", "linear").fit(frame(data), data.y)
    assert hasattr(method, "encoder_")
    method.fit(data.X, data.y)
    assert method.predict_proba(data.X).shape == (N, 2)
    method.fit(frame(data), data.y)
    method.fit_problem(SelectiveLabels.from_arrays(data.X, data.y))
    assert method.predict_proba(data.X).shape == (N, 2)


# -- without torch -----------------------------------------------------------------------------

WITHOUT_TORCH = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Blocked())
import warnings
warnings.simplefilter("ignore")
import numpy as np
import dcem
from dcem import methods
from dcem.scoring import TableModel, fit_table, predict_file
from dcem.table import Roles, read_table
assert "dcem" in methods.names()
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 2)); y = np.where(rng.random(300) < .6, X[:, 0] > 0, np.nan)
for name, learner in (("tested-only", "forest"), ("ipw", "boost"), ("dr-learner", "linear")):
    model = methods.make(name, learner=learner, random_state=0).fit(X, y)
    model.save("model")
    assert np.array_equal(dcem.load_model("model").predict_proba(X), model.predict_proba(X))
try:
    methods.make("tested-only").fit(X, y)
except ImportError as error:
    print(error)
assert "torch" not in sys.modules
"""


def test_learners_need_no_torch(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "networks" in done.stdout


# -- model selection ---------------------------------------------------------------------------


def test_labels_may_be_missing_in_cross_validation_and_searches(data):
    folds, judge, table = SelectiveKFold(2), scorer("tested-auc"), frame(data)
    score = cross_val_score(make("tested-only", "linear"), table, data.y, cv=folds, scoring=judge)
    assert score.shape == (2,)
    assert (score > 0.7).all()
    grid = [{"learner": ["linear"], "clip": [0.02, 0.1]}, {"learner": ["boost"]}]
    search = GridSearchCV(make("ipw", "linear"), grid, cv=folds, scoring=judge)
    search.fit(table, data.y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict_proba(table).shape == (N, 2)


# -- other programs ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "learner"), each_once(["dr-learner", "tested-only"], list(LEARNERS))
)
def test_onnx_gives_the_same_probabilities(name, learner, data, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    fitted = data.fit(make(name, learner, n_members=2 if learner == "linear" else 1))
    path = tmp_path / "model.onnx"
    fitted.export_onnx(path)
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    found = session.run(["probabilities"], {"X": data.X})[0]
    assert np.abs(found - fitted.predict_proba(data.X)).max() < 1e-5


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_arrays_of_a_problem_are_not_warned_of():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), rng.integers(0, 2, 80).astype(float)
    frame = pd.DataFrame(X, columns=["age", "pulse"])
    problem = SelectiveLabels.from_arrays(frame, y)
    method = make("tested-only", "linear")
    with pytest.warns(UserWarning, match="valid feature names"):  # scikit-learn's rule for frames
        of_frame = method.fit(frame, y).predict_proba(X)
    method.fit_problem(problem)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(method.predict_proba(problem.X), of_frame)
    assert list(method.feature_names_in_) == ["age", "pulse"]
    with pytest.raises(ValueError, match="feature names"):
        method.predict_proba(frame[["pulse", "age"]])
    with pytest.raises(ValueError, match="3 features"):
        method.predict_proba(np.zeros((2, 3)))
