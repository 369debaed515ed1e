"""An audit and a comparison take whatever table a person holds, with its roles by name."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dcem

ROLES = {"label": "flu", "tested": "swabbed", "group": "race"}
SMALL = {"methods": ["tested-only:linear", "y-obs"], "planted": 0, "n_folds": 2, "n_members": 1,
         "n_resamples": 10}  # fmt: skip


@pytest.fixture(scope="module")
def visits():
    rng, rows = np.random.default_rng(0), 600
    age, swabbed = rng.normal(size=rows), rng.random(rows) < 0.5
    truth = rng.random(rows) < 1 / (1 + np.exp(-age))
    return pd.DataFrame(
        {
            "age": age,
            "ward": rng.choice(["north", "south", "east"], rows),
            "race": rng.choice(["A", "B"], rows),
            "swabbed": swabbed.astype(int),
            "flu": np.where(swabbed, truth, np.nan),
            "true_flu": truth.astype(int),
        }
    )


@pytest.fixture(scope="module")
def read(visits):
    return dcem.read_table(visits, dcem.Roles(**ROLES, truth="true_flu"))


@pytest.fixture(scope="module")
def audit(read):
    return dcem.audit_labels(read)


def polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


def to_path(frame, tmp_path):
    frame.to_csv(tmp_path / "visits.csv", index=False)
    return tmp_path / "visits.csv"


FORMS = {
    "pandas": lambda frame, _: frame,
    "shuffled index": lambda frame, _: frame.set_axis(np.arange(len(frame))[::-1] + 7),
    "categories": lambda frame, _: frame.astype({"race": "category", "ward": "category"}),
    "polars": lambda frame, _: polars(frame),
    "lazy": lambda frame, _: polars(frame).lazy(),
    "arrow": lambda frame, _: pa.Table.from_pandas(frame),
    "batch": lambda frame, _: pa.RecordBatch.from_pandas(frame),
    "duckdb": lambda frame, _: pytest.importorskip("duckdb").sql("FROM frame"),
    "narwhals": lambda frame, _: pytest.importorskip("narwhals").from_native(frame),
    "path": to_path,
    "text": lambda frame, tmp_path: str(to_path(frame, tmp_path)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_gives_the_same_audit(visits, audit, tmp_path, form):
    found = dcem.audit_labels(FORMS[form](visits, tmp_path), truth="true_flu", **ROLES)
    assert found.testing == audit.testing
    assert found.prevalence == audit.prevalence
    assert [one.column for one in found.drivers] == [one.column for one in audit.drivers]
    assert {one.column for one in found.drivers} <= {"age", "ward", "(group)", "race"}


def test_labels_of_ones_own_go_in_as_before(read, audit):
    assert dcem.audit_labels(read.problem, sources=read.encoder.sources).testing == audit.testing


@pytest.mark.parametrize("form", ["pandas", "polars", "path"])
def test_a_comparison_takes_the_same(visits, read, tmp_path, form):
    frame = FORMS[form](visits, tmp_path)
    by_roles = dcem.compare_methods(frame, **ROLES, truth="true_flu", **SMALL).to_frame()
    by_table = dcem.compare_methods(read, **SMALL).to_frame()
    how = {"truth": read.truth, "encoder": read.encoder}
    by_labels = dcem.compare_methods(read.problem, **how, **SMALL).to_frame()
    pd.testing.assert_frame_equal(by_roles, by_table)
    pd.testing.assert_frame_equal(by_table, by_labels)
    assert "truth" in set(by_roles["target"])


def test_lists_of_roles_and_how_a_file_is_read(visits, tmp_path):
    path = to_path(visits.assign(sex="F"), tmp_path)
    roles = {**ROLES, "group": ["race"], "exclude": ["ward", "true_flu"], "id": None}
    found = dcem.audit_labels(path, **roles, sample_rows=5000, random_state=1)
    assert "ward" not in {one.column for one in found.drivers}


WRONG = {
    "an array": (lambda v, r: np.zeros((3, 2)), ROLES, "data frame"),
    "a list": (lambda v, r: [1, 2], ROLES, "data frame"),
    "a dictionary": (lambda v, r: {"flu": [1]}, ROLES, "data frame"),
    "nothing": (lambda v, r: None, ROLES, "data frame"),
    "a column": (lambda v, r: v["flu"], ROLES, "data frame"),
    "roles": (lambda v, r: dcem.Roles(label="flu"), ROLES, "data frame"),
    "no label": (lambda v, r: v, {}, "label=.*group="),
    "a group alone": (lambda v, r: v, {"group": "race"}, "label="),
    "a name that is not there": (lambda v, r: v, {"label": "flue"}, "Did you mean 'flu'"),
    "a role that there is not": (lambda v, r: v, {"lable": "flu"}, "Did you mean 'label'"),
    "values of a label": (lambda v, r: v, {"label": pd.Series([1, 0])}, "name of a column"),
    "values of a group": (
        lambda v, r: v,
        {**ROLES, "group": np.array(["A", "B"])},
        "name of a column",
    ),
    "values of a truth": (lambda v, r: v, {**ROLES, "truth": np.zeros(3)}, "name of a column"),
    "roles twice": (lambda v, r: r, ROLES, "already"),
    "roles of labels": (lambda v, r: r.problem, {"label": "flu"}, "already"),
    "a query of a frame": (lambda v, r: v, {**ROLES, "query": "SELECT 1"}, "only for files"),
    "no rows": (lambda v, r: v.head(0), ROLES, "no rows"),
    "an unknown file": (lambda v, r: "visits.docx", ROLES, "unknown type of file"),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("function", [dcem.audit_labels, dcem.compare_methods])
def test_what_is_wrong_is_told_in_a_sentence(visits, read, function, what):
    make, roles, why = WRONG[what]
    source = make(visits, read)
    with pytest.raises(dcem.InputError, match=why):
        function(source, **roles)


def test_the_help_says_so():
    for function in (dcem.audit_labels, dcem.compare_methods):
        assert 'label="' in function.__doc__
