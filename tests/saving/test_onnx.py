"""Models of tables as ONNX files: raw columns in, the same probabilities out."""

import json

import numpy as np
import pandas as pd
import pytest

from dcem.methods import make
from dcem.scoring import TableModel
from dcem.table import Roles, read_table
from dcem.table.messages import InputError

runtime = pytest.importorskip("onnxruntime")
ROLES = Roles(label="y", missing=("-9", "unknown"))
WHEN = "%d.%m.%Y %H:%M"
PARTS = ("boost", "forest", "linear", "smooth", "network")
CASES = {
    "linear": ("tested-only", {"learner": "linear"}),
    "boost": ("dr-learner", {"learner": "boost"}),
    "forest": ("tested-only", {"learner": "forest"}),
    "smooth": ("tested-only", {"learner": "smooth"}),
    "perceptron": ("tested-only", {"learner": "perceptron"}),
    "ensemble": ("ensemble", {"steps": 100, "parts": PARTS}),
    "heckman": ("heckman", {}),
    "unmeasured-cause": ("unmeasured-cause", {}),
    "network": ("tested-only", {"learner": "network", "steps": 20, "n_members": 2}),
}


def people(n: int = 400) -> pd.DataFrame:
    """A column of every kind; one is called what the graph calls its numbers elsewhere."""
    rng = np.random.default_rng(0)
    some = rng.random((5, n)) < 0.1
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**6, n), unit="min")
    frame = pd.DataFrame(
        {
            "X": np.where(some[0], np.nan, rng.integers(18, 95, n)),
            "lactate": np.where(some[1], -9, rng.gamma(2, 1, n).round(2)),
            "ward": np.where(some[2], "unknown", rng.choice(["ICU", "ER", "a=b"], n)),
            "type_code": rng.choice([1, 2, 7], n),
            "sex": rng.choice(["f", "m"], n),
            "smoker": np.where(some[3], None, rng.choice(["Yes", "no"], n)),
            "seen": days.strftime(WHEN),
            "at": days.strftime("%H:%M"),
        }
    )
    ill = rng.random(n) < 1 / (1 + np.exp(-(frame.X.fillna(50) - 60) / 10))
    return frame.assign(y=np.where(rng.random(n) < 0.5, ill, np.nan))


def unheard_of(frame: pd.DataFrame) -> pd.DataFrame:
    """The same people with levels, codes and numbers that training did not have."""
    frame = frame.drop(columns="y")
    for column, strange in {"ward": "roof", "sex": "x", "smoker": "?", "type_code": 99}.items():
        frame.loc[frame.sample(frac=0.2, random_state=1).index, column] = strange
    frame.loc[::9, "lactate"] = 1e35
    frame.loc[::7, "lactate"] = np.nan
    return frame


def asked(session, frame: pd.DataFrame) -> np.ndarray:
    """What a program without dcem would do, told by the file alone."""
    kinds = json.loads(session.get_modelmeta().custom_metadata_map["kinds"])
    given = {}
    for one in session.get_inputs():
        column = frame[one.name]
        if kinds[one.name] == "date":
            since = pd.to_datetime(column, format=WHEN) - pd.Timestamp(0)
            column = since / pd.Timedelta(days=1)
        if kinds[one.name] == "time":
            column = pd.to_timedelta(column + ":00") / pd.Timedelta(hours=1)
        if one.type == "tensor(string)":
            given[one.name] = column.map(lambda v: "" if pd.isna(v) else str(v)).to_numpy(object)
        else:
            given[one.name] = column.to_numpy(np.float64)
    return session.run(["probabilities"], {name: cells[:, None] for name, cells in given.items()})[
        0
    ]


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")  # of values never seen in training
@pytest.mark.parametrize("case", CASES)
def test_raw_columns_in_the_same_probabilities_out(case, tmp_path):
    if case == "network":
        pytest.importorskip("torch")
    name, params = CASES[case]
    table = read_table(people(), ROLES)
    assert {one.kind for one in table.encoder.encodings} == {
        "number",
        "category",
        "boolean",
        "date",
        "time",
    }
    estimator = make(name, random_state=0, **params).fit_problem(table.problem)
    model = TableModel(estimator, table.encoder, table.roles, table.source)
    model.export_onnx(tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    for frame in (people(), unheard_of(people()), people(1)):
        np.testing.assert_allclose(asked(session, frame), model.predict_proba(frame), atol=1e-6)


def test_codes_and_words_for_missing_mean_the_same_and_an_hour_is_no_code(tmp_path):
    frame = people()
    frame["at"] = np.where(np.arange(len(frame)) % 3, "21:00", "09:00")
    frame["type_code"] = frame["type_code"].astype(str).where(frame.index % 5 > 0)
    table = read_table(frame, Roles(label="y", missing=("9", "unknown"), category=("type_code",)))
    estimator = make("tested-only", learner="linear").fit_problem(table.problem)
    model = TableModel(estimator, table.encoder, table.roles, table.source)
    model.export_onnx(tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    later = frame.head(6).drop(columns="y")
    later["type_code"] = ["1", "7.0", "9.0", "NaN", "n/a", "None"]
    np.testing.assert_allclose(asked(session, later), model.predict_proba(later), atol=1e-6)


def test_a_frame_with_categories(tmp_path):
    frame = people()
    y = frame.pop("y")
    model = make("tested-only", learner="linear").fit(frame, y)
    model.export_onnx(tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(asked(session, frame), model.predict_proba(frame), atol=1e-6)


def test_what_cannot_be_exported_says_so(tmp_path):
    from sklearn.linear_model import LogisticRegression

    frame = people()
    y = frame.pop("y")
    own = make("tested-only", learner=LogisticRegression()).fit(frame, y)
    with pytest.raises(InputError, match="learner LogisticRegression cannot be exported"):
        own.export_onnx(tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
    own = make("tested-only", learner="linear").fit(frame.rename(columns={"X": "probabilities"}), y)
    with pytest.raises(InputError, match="Rename the column 'probabilities'"):
        own.export_onnx(tmp_path / "model.onnx")
