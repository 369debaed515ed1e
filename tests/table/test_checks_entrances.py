"""What enters through `fit`, as a feature table, or as a file, is checked like any other table."""

from __future__ import annotations

import gzip
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcem import methods
from dcem.table import checks
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning, InputError

ROLES = {"label": "sepsis", "tested": "cultured", "group": "sex", "id": "patient"}
N = 40


def table() -> pd.DataFrame:
    """A clean table with both groups tested and both classes among the tested."""
    i = np.arange(N)
    return pd.DataFrame(
        {
            "age": 20.0 + i,
            "lactate": i % 5,
            "cultured": (i % 2 == 0).astype(int),
            "sepsis": (i % 4 == 0).astype(int),
            "sex": np.where(i % 3 == 0, "F", "M"),
            "patient": i // 2,
        }
    )


# --- the arguments of fit ----------------------------------------------------------------------


def fit_arguments() -> dict[str, Any]:
    frame = table()
    return {
        "X": frame[["age", "lactate"]],
        "y": frame.sepsis,
        "tested": frame.cultured,
        "sensitive_features": frame.sex,
    }


class Fitted(type(methods.make("tested-only"))):
    """Keeps what it was to be fitted to."""

    def _fit_each(self, estimators, problems, *rest) -> None:
        self.problem_ = problems[0]


def fitted_to(X: Any, y: Any, **arguments: Any) -> SelectiveLabels:
    return Fitted().fit(X, y, **arguments).problem_


def test_fit_input_speaks_the_words_of_fit() -> None:
    data = fitted_to(**fit_arguments())
    assert data.group_names == ("F", "M")
    with pytest.raises(InputError, match="'sensitive_features' has 39"):
        fitted_to(**{**fit_arguments(), "sensitive_features": ["a"] * 39})
    with pytest.raises(InputError, match="'sample_weight' is unusable"):
        fitted_to(**fit_arguments(), sample_weight=-np.ones(N))


@pytest.mark.parametrize("part", ["y", "tested", "sensitive_features"])
def test_disagreeing_indices_are_refused(part: str) -> None:
    arguments = fit_arguments()
    arguments[part] = arguments[part].iloc[::-1]
    with pytest.raises(
        InputError, match=rf"'X' and '{part}' disagree in 40 of 40 .*a different order"
    ):
        fitted_to(**arguments)
    arguments[part] = arguments[part].reset_index(drop=True).set_axis(np.arange(1, N + 1))
    with pytest.raises(InputError, match=r"'X' has 0 and .* has 1.*reset_index"):
        fitted_to(**arguments)
    arguments[part] = arguments[part].to_numpy()[::-1]  # no index: matched by position
    assert len(fitted_to(**arguments)) == N


@pytest.mark.parametrize("part", ["sensitive_features", "test_sensitivity", "test_specificity"])
def test_disagreeing_indices_are_refused_inside_dictionaries_and_of_rates(part: str) -> None:
    arguments, frame = fit_arguments(), table()
    arguments[part] = pd.Series(np.linspace(0.9, 1, N))
    if part == "sensitive_features":
        arguments[part] = {"sex": frame.sex, "old": list(frame.age > 40)}
        assert fitted_to(**arguments).group_names == (
            "F & False",
            "F & True",
            "M & False",
            "M & True",
        )
        arguments[part]["sex"] = frame.sex.iloc[::-1]
    else:
        assert fitted_to(**arguments).imperfect_test is not None
        arguments[part] = arguments[part].iloc[::-1]
    with pytest.raises(InputError, match=f"'X' and .*{part}.* disagree in 40 of 40"):
        fitted_to(**arguments)


def test_groups_of_rows_that_are_predicted_must_be_theirs() -> None:
    arguments = fit_arguments()
    model = methods.make("tested-only-plus-group", learner="linear").fit(**arguments)
    X, sex = arguments["X"], arguments["sensitive_features"]
    assert model.predict_proba(X, sensitive_features={"sex": sex}).shape == (N, 2)
    with pytest.raises(InputError, match="disagree in 40 of 40"):
        model.predict_proba(X, sensitive_features=sex.iloc[::-1])


def test_the_same_index_in_another_type_agrees() -> None:
    arguments = fit_arguments()
    arguments["y"] = arguments["y"].set_axis(pd.CategoricalIndex(np.arange(N)))
    assert len(fitted_to(**arguments)) == N


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.ones(4), "Reshape your data"),
        (pd.Series(np.ones(4)), "Reshape your data"),
        (np.ones((4, 0)), r"0 feature\(s\) \(shape=\(4, 0\)\) while a minimum of 1 is required"),
        (np.ones((4, 1)) * 1j, "Complex data not supported"),
        (np.ones((2, 2, 2)), "Reshape your data"),
    ],
)
def test_features_of_the_wrong_shape(X: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        checks.check_features(X)


def test_sparse_features_are_refused() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(InputError, match="sparse"):
        checks.check_features(sparse.csr_array(np.eye(3)))


def test_features_keep_missing_values_of_every_kind() -> None:
    frame = pd.DataFrame(
        {
            "text": ["1", "", None, "nan"],
            "nullable": pd.Series([1, None, None, 4], dtype="Int64"),
            "flag": pd.Series([True, None, False, True], dtype="boolean"),
            "small": np.array([1, 2, 3, 4], dtype=np.int8),
            "category": pd.Categorical([1, None, 2, 1]),
            "arrow": pd.Series([True, None, False, True], dtype="bool[pyarrow]"),
        }
    )
    X, names = checks.check_features(frame)
    nan = np.nan
    expected = [[1, nan, nan, nan], [1, nan, nan, 4], [1, nan, 0, 1], [1, 2, 3, 4]]
    np.testing.assert_array_equal(X.T, [*expected, [1, nan, 2, 1], [1, nan, 0, 1]])
    assert names == tuple(frame.columns)
    assert X.flags.c_contiguous


def test_features_of_a_plain_frame_are_laid_out_row_by_row() -> None:
    X, _ = checks.check_features(pd.DataFrame(np.arange(12.0).reshape(4, 3)))
    assert X.flags.c_contiguous


def test_what_a_mask_hides_stays_hidden() -> None:
    hidden = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 0]])
    X, _ = checks.check_features(hidden)
    np.testing.assert_array_equal(X, [[1, np.nan], [3, 4]])
    X = pd.DataFrame({"x": np.arange(4.0)})
    data = fitted_to(X, np.ma.masked_array([0, 1, 1, 0], mask=[0, 0, 1, 1]))
    assert data.tested.tolist() == [True, True, False, False]
    pairs = np.ma.masked_array([["a", "b"]] * 4, mask=[[0, 0]] * 3 + [[0, 1]])
    with pytest.warns(DataWarning, match="missing in 1 of 4 rows"):
        grouped = SelectiveLabels.from_arrays(X, [0, 1, np.nan, 0], group=pairs)
    assert grouped.group_names == ("a & b", "a & (missing)")


@pytest.mark.parametrize(
    ("y", "encoded", "classes"),
    [
        ([0, 1, np.nan], [0, 1, np.nan], [0, 1]),
        ([1, 2, 1], [0, 1, 0], [1, 2]),
        (["no", "yes", None], [0, 1, np.nan], ["no", "yes"]),
        ([True, False, True], [1, 0, 1], [False, True]),
        ([0, 0, np.nan], [0, 0, np.nan], [0, 1]),
    ],
)
@pytest.mark.filterwarnings("ignore:y holds 1 and 2")
def test_classes_are_encoded_as_scikit_learn_does(y: list, encoded: list, classes: list) -> None:
    found, found_classes = checks.encode_classes(y)
    np.testing.assert_array_equal(found, encoded)
    np.testing.assert_array_equal(found_classes, classes)


@pytest.mark.parametrize(
    ("classes", "told"),
    [
        (("no", "yes"), ""),
        (("Negative", "Positive"), ""),
        ((False, True), ""),
        ((-1, 1), ""),
        ((1, 2), "2 counts as positive"),
        (("ill", "well"), "'well', the later in alphabetical order, counts as positive"),
        (("ja", "nein"), "'nein', the later"),
    ],
)
def test_which_class_is_positive_is_said_where_its_name_does_not(classes, told) -> None:
    y = pd.Series([classes[0], classes[1], None] * 4, dtype=object)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        encoded, found = checks.encode_classes(y)
    assert found.tolist() == list(classes)
    assert encoded[:3].tolist()[:2] == [0, 1]
    assert told in " ".join(str(one.message) for one in said)
    assert len(said) == bool(told)


def test_encoded_classes_keep_the_index() -> None:
    encoded, _ = checks.encode_classes(pd.Series(["no", "yes"], index=[7, 7]))
    assert encoded.index.tolist() == [7, 7]
    assert encoded.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "requires y to be passed, but the target y is None"),
        ([0.5, 1.5, 0.1], "Unknown label type: continuous"),
        ([0, 1, 2], "Only binary classification is supported"),
        (["a", "a"], "only one class"),
        (pd.Series([1, "a"]), "mixes text and numbers"),
        ([np.inf, 0], "Unknown label type"),
    ],
)
def test_classes_that_cannot_be_encoded(y: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        checks.encode_classes(y)


@settings(deadline=None, max_examples=60)
@given(order=st.permutations(range(8)))
def test_reordered_labels_are_never_matched_by_position(order: list[int]) -> None:
    X = pd.DataFrame({"x": np.arange(8.0)})
    y = pd.Series([0, 1, 0, 1, np.nan, np.nan, 1, 0])
    shuffled = y.iloc[order]
    if order == sorted(order):
        assert len(fitted_to(X, shuffled)) == 8
    else:
        moved = sum(i != o for i, o in enumerate(order))
        with pytest.raises(InputError, match=f"disagree in {moved} of 8 rows"):
            fitted_to(X, shuffled)


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"age:sepsis\n1:0\n", "no column 'sepsis'"),
        ("t.csv", b"age,sepsis\n1,2,0\n3,4,1\n", "has 3 columns, the header 2"),
        ("t.csv", b"age,sepsis\n1,0\n3,4,1,1\n", "row 3 .* has 4 columns, the header 2"),
        ("t.csv", b"age,sepsis\n1,0\0\n", "NUL"),
        ("t.csv", b"age,sepsis\n", "no rows"),
        ("t.csv", b"age,sepsis\n1,0\n2,1\nx,1\n", r"\(first: 2\).*counted from 0 after the header"),
        ("t.csv.gz", gzip.compress(b"age,sepsis\n" + b"1,0\n2,1\n" * 99, mtime=0)[:-12], "gzip"),
        ("t.csv.gz", b"age,sepsis\n1,0\n", "gzip"),
        ("t.parquet", b"PAR1 no", "Parquet"),
        ("t.docx", b"", "Allowed: .csv, .csv.gz, "),
    ],
)
@pytest.mark.filterwarnings("ignore:.* has only one column")  # a hint that comes before the error
def test_unreadable_files(tmp_path: Any, name: str, content: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"(?s){name}: .*{words}"):
        SelectiveLabels.from_file(path, label="sepsis")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_roles_are_checked_in_files_too(tmp_path: Any, name: str) -> None:
    path = tmp_path / name
    table().to_csv(path, index=False) if name.endswith("csv") else table().to_parquet(path)
    with pytest.raises(InputError, match=r"'cultured' was given as 'tested' and also"):
        SelectiveLabels.from_file(path, **ROLES, features=["age", "cultured"])
    with pytest.raises(InputError, match=r"Did you mean 'patient'"):
        SelectiveLabels.from_file(path, **{**ROLES, "id": "patients"})
    with pytest.raises(InputError, match=r"Did you mean 'lactate'"):
        SelectiveLabels.from_file(path, **ROLES, features=["lactates"])


@pytest.mark.parametrize("name", ["absent.csv", "absent.parquet"])
def test_a_file_that_is_not_there(tmp_path: Any, name: str) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        SelectiveLabels.from_file(tmp_path / name, label="y")
    assert str(caught.value.filename).endswith(name)
