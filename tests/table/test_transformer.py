"""The encoder in scikit-learn: frames in, numbers out, in whichever container is asked for."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline

from dcem.methods import make
from dcem.table import TableEncoder
from dcem.table.messages import DataWarning, InputError

N = 60
FRAME = pd.DataFrame(
    {
        "age": np.where(np.arange(N) % 9 == 0, np.nan, np.arange(N)),
        "ward": ["ICU", "ER", None] * (N // 3),
        "seen": pd.date_range("2020-01-01", periods=N).strftime("%d.%m.%Y"),
        "smoker": ["yes", "no"] * (N // 2),
    },
    index=np.arange(N) + 1000,
)
NAMES = ["age", "ward=ER", "ward=ICU", "ward=(missing)", "seen", "smoker"]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_the_container_that_is_asked_for(kind) -> None:
    library = pytest.importorskip(kind)
    plain = TableEncoder().fit_transform(FRAME)
    assert isinstance(plain, np.ndarray)
    with config_context(transform_output=kind):
        by_config = TableEncoder().fit_transform(FRAME)
    for found in (by_config, TableEncoder().set_output(transform=kind).fit(FRAME).transform(FRAME)):
        assert isinstance(found, library.DataFrame)
        assert list(found.columns) == NAMES
        np.testing.assert_array_equal(found.to_numpy(), plain)
    if kind == "pandas":
        assert by_config.index.equals(FRAME.index)


def test_polars_in_and_numbers_alone() -> None:
    polars = pytest.importorskip("polars")
    encoder = TableEncoder().fit(FRAME)
    assert encoder.get_feature_names_out().tolist() == NAMES
    np.testing.assert_array_equal(
        encoder.transform(polars.from_pandas(FRAME)), encoder.transform(FRAME)
    )
    numbers = TableEncoder().fit(FRAME[["age"]])
    assert numbers.get_feature_names_out().tolist() == ["age"]
    with pytest.raises(InputError, match="frame"):
        TableEncoder().fit(np.ones((3, 2)))
    with pytest.raises(InputError, match="'ward'"):
        encoder.transform(FRAME.drop(columns="ward"))


def test_columns_may_be_called_by_numbers_but_not_alike() -> None:
    unnamed = FRAME.set_axis(range(4), axis=1)
    encoder = TableEncoder().fit(unnamed)
    names = [name.replace("ward", "1") for name in ["0", *NAMES[1:4], "2", "3"]]
    assert encoder.get_feature_names_out().tolist() == names
    plain = TableEncoder().fit_transform(FRAME)
    np.testing.assert_array_equal(encoder.transform(unnamed), plain)
    tested = np.arange(N) % 5 > 0
    model = make("tested-only:linear").fit(unnamed, np.where(tested, np.arange(N) % 2, np.nan))
    assert model.predict_proba(unnamed).shape == (N, 2)
    twice = FRAME.set_axis(["age", "ward", "ward", "smoker"], axis=1)
    for fit in (TableEncoder().fit, make("tested-only:linear").fit):
        with pytest.raises(InputError, match=r"'ward' \(2 times\)"):
            fit(twice, np.arange(N) % 2)


def test_in_a_pipeline_with_a_model_of_others() -> None:
    model = make_pipeline(clone(TableEncoder()), HistGradientBoostingClassifier(max_iter=2))
    model.fit(FRAME, np.arange(N) % 2)
    strange = FRAME.assign(ward="roof")
    assert model.predict_proba(strange).shape == (N, 2)


def test_columns_of_a_frame_that_cannot_be_read_are_told(recwarn):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 90, 300),
            "flag": rng.random(300) < 0.5,
            "ward": rng.choice(["A", "B", "C"], 300),
            "seen": pd.date_range("2024", periods=100).repeat(3),
        }
    )
    y = np.where(rng.random(300) < 0.5, frame["flag"] ^ (rng.random(300) < 0.1), np.nan)
    fitted = make("tested-only", learner="linear", random_state=0).fit(frame, y)
    risk = fitted.predict_proba(frame)[:, 1]
    assert not recwarn.list  # a column of True and False is one of numbers
    assert risk[frame["flag"]].min() > risk[~frame["flag"]].max()
    np.testing.assert_allclose(fitted.predict_proba(frame.astype({"flag": int}))[:, 1], risk)
    for name, values in {"age": "old", "ward": "Z", "seen": "yesterday"}.items():
        with pytest.warns(DataWarning, match=f"^{name}: "):
            fitted.predict_proba(frame.assign(**{name: values}))


def test_infinities_are_refused_beside_text_as_they_are_alone() -> None:
    frame = FRAME.assign(age=np.where(FRAME["age"] > 50, np.inf, FRAME["age"]))
    label = np.arange(N) % 2
    for given in (frame, frame[["age"]], frame.assign(age=1e31)):
        with pytest.raises(InputError, match=r"'age' is .* rows \(first labels: .*up to 1e\+30"):
            make("tested-only", learner="linear").fit(given, label)
    with pytest.raises(InputError, match="'age' cannot be read as a number"):
        make("tested-only", learner="linear").fit(FRAME.assign(age=1j), label)
