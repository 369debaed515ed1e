"""Models of all rows of a table that is not read whole are those of the table read whole."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dcem.learners import Sample
from dcem.learners.boost import Boost
from dcem.learners.learner import Batch
from dcem.learners.linear import Linear
from dcem.scoring import TableModel, fit_all_rows, fit_table
from dcem.table import Roles, read_table
from dcem.table.messages import DataWarning, InputError

N = 4_000
ROLES = Roles(label="result", group="race", id="person", weight="weight", exclude=("truth",))


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Several of them wait for each other on small tables."""
    monkeypatch.setattr("dcem.learners.boost.cpu_count", lambda: 1)


def people(N: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    X[rng.random(N) < 0.1, 3] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd")).assign(truth=expit(X[:, 0] + X[:, 1] - 1))
    ill = rng.random(N) < frame.truth
    frame["ward"] = rng.choice(["ICU", "ER", "day"], N)
    frame["race"] = rng.choice(["x", "y"], N)
    frame["person"] = [f"P{i}" for i in rng.integers(0, N // 2, N)]
    frame["weight"] = rng.choice([0.0, 1.0, 2.0], N)
    return frame.assign(result=np.where(rng.random(N) < 0.5, ill, np.nan))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The people in four files, those of a person in several."""
    place = tmp_path_factory.mktemp("rows")
    for number, part in enumerate(np.array_split(np.arange(N), 4)):
        people().iloc[part].to_parquet(place / f"{number}.parquet", index=False)
    return place


def read(folder, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return read_table(folder, ROLES, **more)


# The linear model in memory stops a little before its optimum.
@pytest.mark.parametrize(("kind", "tolerance"), [(Linear, 3e-3), (Boost, 1e-9)])
def test_batches_teach_what_the_whole_table_teaches(kind, tolerance) -> None:
    frame = people(8_000)
    frame = frame[frame.result.notna() & (frame.weight > 0)].iloc[:1500]
    X, y = frame[list("abcd")].to_numpy(), frame.result.to_numpy()
    weight, person = frame.weight.to_numpy(), np.arange(len(y))
    held = Sample(X[:500], y[:500], weight[:500])
    X, y, weight, person = X[500:], y[500:], weight[500:], person[500:]

    def batches(*, features=True):
        for rows in np.array_split(np.arange(len(y)), 7):
            yield Batch(X[rows], y[rows], weight[None, rows], (rows + 0.5) / len(y))

    sample = Sample(X, y, weight, person)
    whole = kind(3).fit(sample, held)
    (made,) = kind.of_batches([3], sample, held, batches)
    z = made.predict_logit(X)
    assert np.abs(z - whole.predict_logit(X)).max() < tolerance
    if kind is Linear:
        rows, total = made._inputs(X), made.penalty * len(y)
        exact = LogisticRegression(C=1 / total, solver="newton-cholesky", tol=1e-12)
        exact.fit(rows, y, sample_weight=weight / weight.mean())
        assert np.abs(z - exact.decision_function(rows)).max() < 1e-6


@pytest.mark.parametrize("learner", ["linear", "boost"])
def test_all_rows_tell_more_than_a_part(folder, learner, tmp_path) -> None:
    how = {"learner": learner, "n_members": 2}
    raw, errors = people(), []
    for seed in range(4):
        part = read(folder, sample_rows=600, random_state=seed)
        assert part.source.drawn_from == N
        small = fit_table(part, "tested-only", **how)
        large = fit_all_rows(folder, part, "tested-only", **how)
        errors.append(
            [np.abs(one.predict_proba(raw)[:, 1] - raw.truth).mean() for one in (small, large)]
        )
    far, near = np.mean(errors, axis=0)
    assert near < 0.8 * far
    assert (large.score(raw).spread > 0).all()
    large.save(tmp_path / "model")
    again = TableModel.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(raw), large.predict_proba(raw))
    assert again.source.all_rows
    assert f"all {N:,} rows" in (tmp_path / "model" / "MODEL_CARD.md").read_text()


def test_a_penalty_chosen_on_few_rows_weighs_no_more_on_many() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    y = (rng.random(20_000) < expit(X[:, 0])).astype(float)

    def batches(*, features=True):
        yield Batch(X, y, np.ones((1, len(y))), np.zeros(len(y)))

    first = Sample(X[:60], y[:60], np.ones(60))
    (made,) = Linear.of_batches([0], first, first, batches)
    (shrunk,) = Linear.of_batches([0], first, Sample(X[:9], 1 - y[:9], np.ones(9)), batches)
    assert shrunk.penalty == 1.0  # by held-out rows of which nothing can be learnt
    for model in (made, shrunk):
        assert np.abs(expit(model.predict_logit(X)) - expit(X[:, 0])).mean() < 0.01


def test_a_wrong_weight_is_named_by_its_row(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("dcem.scoring.all_rows.BATCH", 1000)
    frame = people().assign(weight=1.0)
    frame.to_parquet(tmp_path / "a.parquet")
    part = read(tmp_path / "a.parquet", sample_rows=600)
    row = next(row for row in range(N // 2, N) if row not in part.draw.rows)
    frame.assign(weight=np.where(frame.index == row, -1.0, 1.0)).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=rf"1 of 1,000 rows \(first: {row}\)"):
        fit_all_rows(tmp_path / "a.parquet", part, "y-obs", learner="linear", n_members=1)


def test_results_do_not_depend_on_batches_and_threads(folder, monkeypatch) -> None:
    part = read(folder, sample_rows=2000)
    made = fit_all_rows(folder, part, "tested-only", learner="boost", n_members=1)
    monkeypatch.setattr("dcem.scoring.all_rows.BATCH", 1000)
    monkeypatch.setattr("dcem.scoring.stream.cpu_count", lambda: 1)
    monkeypatch.setattr("dcem.learners.boost.cpu_count", lambda: 2)
    again = fit_all_rows(folder, part, "tested-only:boost", n_members=1)  # the same, by name
    assert np.array_equal(made.predict_proba(people()), again.predict_proba(people()))


def test_held_out_people_are_not_learnt_from(folder, monkeypatch) -> None:
    part = read(folder, sample_rows=2000)
    passed = []
    monkeypatch.setattr(
        Linear,
        "of_batches",
        classmethod(lambda cls, seeds, sample, held, batches: passed.extend(batches()) or []),
    )
    fit_all_rows(folder, part, "y-obs", learner="linear", n_members=1)
    numbers = np.concatenate([batch.number for batch in passed])
    held = part.draw.share * 0.2
    counted = people().query("weight > 0")
    assert numbers.min() >= held
    assert len(numbers) == pytest.approx(len(counted) * (1 - held), rel=0.02)


@pytest.mark.parametrize(
    ("method", "learner"),
    [("ensemble", None), ("tested-only", None), ("ipw", "linear"), ("tested-only:forest", None)],
)
def test_what_needs_the_table_in_memory_says_so(folder, method, learner) -> None:
    with pytest.raises(InputError, match="leave out `all_rows`"):
        fit_all_rows(folder, None, method, learner=learner)


def test_rows_after_a_time_cannot_be_left_out_of_all(folder, tmp_path) -> None:
    days = pd.date_range("2024-01-01", periods=N, freq="h")
    people().assign(seen=days).to_parquet(tmp_path / "visits.parquet", index=False)
    roles = replace(ROLES, time="seen", until="2024-06")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        part = read_table(tmp_path / "visits.parquet", roles, sample_rows=600)
    with pytest.raises(InputError, match="until"):
        fit_all_rows(tmp_path / "visits.parquet", part, "tested-only", learner="linear")
