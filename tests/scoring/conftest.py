"""A small table of visits, and a model of it that is fitted once."""

import warnings

import numpy as np
import pandas as pd
import pytest

from dcem.methods import make
from dcem.scoring import TableModel
from dcem.table import Roles, read_table

ROLES = Roles(
    label="result",
    positive=("high",),
    untested_value=("not ordered",),
    group=("race",),
    id="patient",
)


def visits(n: int = 1500, seed: int = 0) -> pd.DataFrame:
    """Group B is tested half as often as group A at the same age."""
    rng = np.random.default_rng(seed)
    race = rng.choice(["A", "B"], n, p=[0.6, 0.4])
    age = rng.integers(18, 95, n)
    tested = rng.random(n) < np.where(race == "A", 0.6, 0.3)
    ill = rng.random(n) < 1 / (1 + np.exp(-(age - 60) / 10))
    lactate = np.where(rng.random(n) < 0.1, np.nan, rng.gamma(2, 1, n).round(2))
    return pd.DataFrame(
        {
            "patient": [f"P{i:05d}" for i in range(n)],
            "age": age,
            "lactate": lactate,
            "ward": rng.choice(["ICU", "ER", "surgery"], n),
            "race": race,
            "result": np.where(tested, np.where(ill, "high", "normal"), "not ordered"),
        }
    )


@pytest.fixture(scope="session")
def table_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "visits.csv"
    visits().to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def model(table_file) -> TableModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = read_table(table_file, ROLES)
    estimator = make("dcem", n_members=3, random_state=0, max_iter=20, steps=10)
    estimator.fit_problem(table.problem)
    return TableModel(estimator, table.encoder, table.roles, table.source)
