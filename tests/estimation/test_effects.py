"""Permutation importance and accumulated local effects against what is known of the model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression

from dcem.estimation.effects import Questions, drives_testing_more, most_telling
from dcem.estimation.results import Effect
from dcem.table import Roles, read_table
from dcem.table.labels import SelectiveLabels


def problem_of(X: np.ndarray, person=None) -> SelectiveLabels:
    n = len(X)
    y = np.where(np.arange(n) % 2 == 0, np.arange(n) % 4 == 0, np.nan)
    return SelectiveLabels.from_arrays(X, y, id=person)


def effects_of(problem, f, encoder=None) -> dict[str, Effect]:
    questions = Questions.about(problem, encoder, 0)
    found = questions.answer(questions.ask(lambda X, at: f(X)))
    return {one.column: one for one in found}


def slopes(effect: Effect) -> np.ndarray:
    known = ~np.isnan(effect.place)
    return np.diff(effect.value[known]) / np.diff(effect.place[known])


def test_a_linear_model_gives_straight_lines_with_its_slopes() -> None:
    X = np.random.default_rng(0).normal(size=(1500, 3)) * [1, 20, 0.1]
    found = effects_of(problem_of(X), lambda X: X @ [0.3, -0.02, 0.0])
    assert slopes(found["x0"]) == pytest.approx(0.3)
    assert slopes(found["x1"]) == pytest.approx(-0.02)
    assert found["x2"].value == pytest.approx(0)
    # squared changes: 2 b^2 var(x), so that shares are those of the variance
    assert found["x0"].share == pytest.approx(0.09 / (0.09 + 0.16), abs=0.03)
    assert found["x0"].moved == pytest.approx(np.sqrt(2) * 0.3, rel=0.05)
    assert found["x2"].share == 0


def test_of_correlated_columns_each_has_its_own_effect_where_a_partial_dependence_does_not() -> (
    None
):
    """Beyond the data the model is wild; nobody lives there, and only one of the two looks."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, 1500)
    X = np.stack([x, x + rng.normal(0, 0.05, 1500)], axis=1)

    def f(X: np.ndarray) -> np.ndarray:
        apart = np.abs(X[:, 0] - X[:, 1]) > 0.4
        return X[:, 0] ** 2 + 0.5 * X[:, 1] + 3 * np.where(apart, X[:, 0], 0)

    one = effects_of(problem_of(X), f)["x0"]
    truth = one.place**2
    assert one.value - one.value.mean() == pytest.approx(truth - truth.mean(), abs=0.02)

    class Model(LinearRegression):
        def predict(self, X):
            return f(X)

    model = Model().fit(X, x)
    asked = partial_dependence(model, X, [0], custom_values={0: one.place}, kind="average")
    partial = asked["average"][0]
    assert np.abs(partial - partial.mean() - truth + truth.mean()).max() > 0.5


def test_permutation_importance_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 4)) @ (np.eye(4) + 0.4)
    model = LogisticRegression().fit(X, X[:, 0] + np.tanh(X[:, 1]) * X[:, 2] > 0)

    def change(model, X, risk):
        return -((model.predict_proba(X)[:, 1] - risk) ** 2).mean()

    risk = model.predict_proba(X)[:, 1]
    found = effects_of(problem_of(X), lambda X: model.predict_proba(X)[:, 1])
    theirs = permutation_importance(
        model, X, risk, scoring=change, n_repeats=20, random_state=0
    ).importances_mean
    ours = np.array([one.moved**2 for one in found.values()])
    assert ours == pytest.approx(theirs, rel=0.1, abs=1e-6)
    shares = [one.share for one in found.values()]
    assert shares == pytest.approx(theirs / theirs.sum(), abs=0.03)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(3)
    n = 1200
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "visits": rng.integers(0, 4, n),
            "ward": rng.choice(["north", "south", "east", "sea"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "sex": rng.choice(["F", "M"], n),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "smoker": rng.choice(["yes", "no"], n),
        }
    )
    frame.loc[:99, "age"] = np.nan
    frame.loc[100:160, "ward"] = None
    frame.loc[200:205, "ward"] = "attic"  # six people
    frame.loc[:4, "visits"] = 77
    frame["result"] = np.where(rng.random(n) < 0.5, rng.choice(["pos", "neg"], n), None)
    place = tmp_path_factory.mktemp("effects") / "table.csv"
    frame.to_csv(place, index=False)
    return read_table(place, Roles(label="result", positive=("pos",)))


def test_categories_dates_and_missing_values_have_the_effects_that_they_have(table) -> None:
    names = table.encoder.feature_names
    points = {"ward=north": 0.1, "ward=sea": 0.4, "ward=(missing)": -0.2, "sex=M": 0.25}
    points |= {"smoker": -0.1, "visits": 0.01, "seen": 0.001}
    weights = np.array([points.get(name, 0.0) for name in names])

    def f(X: np.ndarray) -> np.ndarray:
        age = X[:, names.index("age")]
        return np.nan_to_num(X) @ weights + np.where(np.isnan(age), 0.3, 0.002 * age)

    found = effects_of(table.problem, f, table.encoder)

    def between(column: str, one: str, other: str) -> float:
        effect = found[column]
        return effect.value[effect.at.index(other)] - effect.value[effect.at.index(one)]

    assert between("ward", "south", "north") == pytest.approx(0.1)
    assert between("ward", "north", "sea") == pytest.approx(0.3)
    assert between("ward", "south", "missing") == pytest.approx(-0.2)
    assert between("sex", "F", "M") == pytest.approx(0.25)
    assert between("smoker", "no", "yes") == pytest.approx(-0.1)
    assert between("visits", "0", "3") == pytest.approx(0.03)
    assert found["seen"].at[0].startswith("2020-0")
    assert slopes(found["seen"]) == pytest.approx(0.001)
    assert slopes(found["age"]) == pytest.approx(0.002)
    middle = found["age"].place[len(found["age"].place) // 2]
    assert between("age", f"{middle:g}", "missing") == pytest.approx(0.3 - 0.002 * middle)
    # 0 on average over people
    share = [(table.problem.X[:, names.index("smoker")] == v).mean() for v in (0, 1)]
    assert found["smoker"].value @ share == pytest.approx(0, abs=1e-9)


def test_nothing_is_told_of_under_ten_people(table) -> None:
    found = effects_of(table.problem, lambda X: np.nan_to_num(X).sum(axis=1), table.encoder)
    assert "77" not in found["visits"].at  # five people
    assert "attic" not in found["ward"].at
    for one in found.values():
        assert len(one.at) == len(one.value) == len(one.place)
    X = np.random.default_rng(5).normal(size=(1000, 1))
    ends = effects_of(problem_of(X), lambda X: X[:, 0])["x0"].place
    assert (ends[0] > X).sum() >= 10 <= (ends[-1] < X).sum()
    assert not np.isin(ends, X).any()
    assert min(np.histogram(X, ends)[0]) >= 10
    # 20 rows of each of 9 people: no bin holds ten of them
    few = problem_of(X[:180], person=np.repeat(np.arange(9), 20))
    assert effects_of(few, lambda X: X[:, 0])["x0"].at == ()


@pytest.mark.filterwarnings("ignore:Constant")
@pytest.mark.parametrize("n", [4, 15, 60])
def test_short_tables_and_constant_columns_have_no_curve_and_no_error(n) -> None:
    X = np.random.default_rng(6).normal(size=(n, 3))
    X[:, 1] = 1.0
    X[:, 2] = np.nan
    found = effects_of(problem_of(X), lambda X: X[:, 0])
    assert found["x1"].at == found["x2"].at == ()
    assert found["x0"].share == pytest.approx(1)
    constant = effects_of(problem_of(X), lambda X: np.full(len(X), 0.5))
    assert np.isnan(constant["x0"].share)


def test_folds_asked_one_by_one_answer_as_all_at_once() -> None:
    X = np.random.default_rng(7).normal(size=(3000, 3))
    questions = Questions.about(problem_of(X), None, 0)
    assert len(questions.rows) == 2000
    whole = questions.ask(lambda X, at: np.tanh(X).sum(axis=1))
    fold = np.arange(2000) % 3
    parts = np.empty_like(whole)
    for k in range(3):
        mine = np.flatnonzero(fold == k)
        parts[:, mine] = questions.ask(lambda X, at: np.tanh(X).sum(axis=1), mine)
    assert np.array_equal(whole, parts)
    again = Questions.about(problem_of(X), None, 0)
    assert np.array_equal(again.donors, questions.donors)


def test_whom_a_question_leaves_alone_nobody_is_asked_about() -> None:
    X = np.zeros((1000, 2))
    X[-20:, 0] = X[:20, 1] = 1
    asked = []
    questions = Questions.about(problem_of(X), None, 0)
    found = questions.ask(lambda X, at: asked.append(len(X)) or X[:, 1])
    # everybody once; of each column those who get another value, and all who move, one way each
    assert asked[0] == 1000
    assert sum(asked) <= 1000 + 2 * (40 + 1000)
    assert np.array_equal(found[4], X[questions.donors[1], 1])
    assert np.array_equal(found[1], X[:, 1])
    assert questions.ask(lambda X, at: X[:, 0], np.zeros(0, int)).shape == (7, 0)


@pytest.mark.parametrize(("other", "told"), [([0.1, 1.0], {"x0"}), ([1.0, 0.1], set())])
def test_a_column_drives_testing_more_if_the_models_of_all_folds_say_so(other, told) -> None:
    X = np.random.default_rng(0).normal(size=(400, 2))
    questions = Questions.about(problem_of(X), None, 0)
    by = (np.arange(400) % 4 == 0).astype(int)  # a quarter is asked of another model
    weights = np.array([[0.1, 1.0], other])
    asked = questions.ask(lambda X, at: (X * weights[by[at]]).sum(axis=1))
    score = questions.answer(asked, by)
    assert score[0].share < 0.5  # of all people together
    assert score[0].most == pytest.approx(0.01 / 1.01 if told else 1 / 1.01, abs=0.01)
    testing = (Effect("x0", 0.9, 0.2), Effect("x1", 0.1, 0.1))
    assert drives_testing_more(testing, score).keys() == told


def test_the_columns_told_are_the_strongest_of_any_model() -> None:
    testing = [Effect("a", 0.1, 0.1), Effect("b", 0.9, 0.1), Effect("c", 0.0, 0.0)]
    scores = {"m": [Effect("a", 0.2, 0.1), Effect("b", 0.1, 0.1), Effect("c", 0.7, 0.1)]}
    assert most_telling(testing, scores, 2) == ["b", "c"]
