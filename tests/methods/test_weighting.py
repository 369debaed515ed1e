"""Inverse weighting and the DR-learner against plain loops, and what their repairs change."""

import numpy as np
import pytest
import torch
from torch import nn

from dcem.methods import fit_many
from dcem.methods.fleets import FleetData, stack
from dcem.methods.propensity import PropensitySettings
from dcem.methods.training_table import TrainingTable
from dcem.methods.weighting import DoublyRobustClassifier, InversePropensityClassifier
from dcem.methods.weighting_networks import _halves
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError

SETTINGS = PropensitySettings(hidden=(8,), steps=6, learning_rate=1e-2)
PLAIN = {
    "hidden": (8,),
    "steps": 6,
    "learning_rate": 1e-2,
    "patience": None,
    "preprocess": None,
    "propensity_settings": SETTINGS,
    "random_state": 3,
}


def problem(n: int = 120, seed: int = 0, **columns: object) -> SelectiveLabels:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    group = rng.integers(2, size=n)
    tested = rng.random(n) < 1 / (1 + np.exp(-X[:, 0] - group))
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 1]))).astype(float)
    columns = {"tested": tested, "group": group} | columns
    return SelectiveLabels.from_arrays(X, np.where(columns["tested"], y, np.nan), **columns)


def network(n_inputs: int, seed: int = 3) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(n_inputs, 8), nn.ReLU(), nn.Linear(8, 2))


def train(model: nn.Module, loss, steps: int = 6) -> nn.Module:
    adam = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        adam.zero_grad()
        loss(model).backward()
        adam.step()
    return model


def positive(model: nn.Module, X: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model(X).softmax(1)[:, 1]


def tensors(rows: SelectiveLabels) -> tuple[torch.Tensor, ...]:
    X = torch.tensor(rows.X, dtype=torch.float32)
    a = torch.tensor(rows.group, dtype=torch.float32)[:, None]
    t = torch.tensor(rows.tested)
    y = torch.tensor(rows.y_imputed, dtype=torch.float32)
    return X, torch.cat([X, X * a, a], 1), t, y


def halves(rows: SelectiveLabels, seed: int) -> torch.Tensor:
    device = torch.device("cpu")
    table = TrainingTable.of(rows, None, None)
    return _halves(FleetData(stack([table], 1, device), None, [seed], 2, device, None))[0]


@pytest.mark.parametrize("variant", ["published", "corrected"])
def test_ipw_is_a_weighted_fit_to_tested_rows(variant: str) -> None:
    rows = problem()
    X, Xa, t, y = tensors(rows)
    half = halves(rows, seed=3)
    e = torch.empty(len(rows))
    for side in (0, 1):  # corrected: of one half by a network of the other
        learns = half != side if variant == "corrected" else torch.ones(len(rows), dtype=bool)
        propensity = train(
            network(5),
            lambda f, rows=learns: nn.functional.cross_entropy(f(Xa[rows]), t[rows].long()),
        )
        e[half == side] = positive(propensity, Xa)[half == side]
    e = e[t]
    weight = 1 / e
    if variant == "corrected":
        weight = 1 / e.clamp_min(0.45)
        weight = weight / weight.mean()

    def loss(f: nn.Module) -> torch.Tensor:
        each = nn.functional.cross_entropy(f(X[t]), y[t].long(), reduction="none")
        return (weight * each).mean()

    expected = positive(train(network(2), loss), X)
    clip = {"clip": 0.45} if variant == "corrected" else {}
    ipw = InversePropensityClassifier(variant=variant, **clip, **PLAIN).fit_problem(rows)
    np.testing.assert_allclose(ipw.predict_proba(rows.X)[:, 1], expected, atol=2e-5)
    np.testing.assert_allclose(ipw.propensity_[rows.tested], e, atol=2e-5)
    assert (e < 0.45).any(), "the clip has to bite for this test to mean anything"


def test_ipw_repair_bounds_the_weights() -> None:
    rows = problem(400)
    fitted = InversePropensityClassifier(**PLAIN).fit_problem(rows)
    table = TrainingTable.of(rows, fitted.preprocessor_, None)
    data = FleetData(
        stack([table], 1, torch.device("cpu")), None, [3], 2, torch.device("cpu"), None
    )
    data.train.columns["e"] = torch.linspace(1e-9, 1, 400)
    kept = {
        ipw.variant: ipw._rows(data.train, data)["factor"]
        for ipw in (
            InversePropensityClassifier(variant="published"),
            InversePropensityClassifier(clip=0.1),
        )
    }
    assert len(kept["corrected"]) == rows.tested.sum()
    assert kept["corrected"].mean() == pytest.approx(1, abs=1e-5)
    assert kept["corrected"].max() / kept["corrected"].min() <= 10.001
    assert kept["published"].max() > 100
    assert kept["published"].mean() > 2


def test_dr_learner_is_cross_fitted_regression_of_the_pseudo_outcome() -> None:
    rows = problem()
    X, Xa, t, y = tensors(rows)
    learner = DoublyRobustClassifier(clip=0.45, **PLAIN).fit_problem(rows)
    half = halves(rows, seed=3)
    scores, outcomes = [], torch.empty(len(rows))
    for side in (0, 1):
        own, other = half == side, half != side
        e = train(
            network(5), lambda f, own=own: nn.functional.cross_entropy(f(Xa[own]), t[own].long())
        )
        mine = own & t
        m = train(
            network(2), lambda f, mine=mine: nn.functional.cross_entropy(f(X[mine]), y[mine].long())
        )
        guess = positive(m, X)
        outcome = guess + t * (y - guess) / positive(e, Xa).clamp_min(0.45)
        outcomes[other] = outcome[other]

        def loss(f: nn.Module, other=other, outcome=outcome) -> torch.Tensor:
            return ((f(X[other]).softmax(1)[:, 1] - outcome[other]) ** 2).mean()

        scores.append(positive(train(network(2), loss), X))
    np.testing.assert_allclose(learner.pseudo_outcome_, outcomes, atol=1e-4)
    expected = (scores[0] + scores[1]) / 2
    np.testing.assert_allclose(learner.predict_proba(rows.X)[:, 1], expected, atol=2e-5)


def test_pseudo_outcomes_of_the_untested_are_guesses_and_of_the_tested_may_leave_the_interval() -> (
    None
):
    rows = problem(300)
    outcome = DoublyRobustClassifier(**PLAIN).fit_problem(rows).pseudo_outcome_
    untested = outcome[~rows.tested]
    assert ((untested > 0) & (untested < 1)).all()
    assert outcome.min() < 0
    assert outcome.max() > 1


def halves_of(tables: list[SelectiveLabels], seeds: list[int]) -> torch.Tensor:
    fitted = InversePropensityClassifier(**PLAIN).fit_problem(tables[0])
    rows = stack(
        [TrainingTable.of(p, fitted.preprocessor_, None) for p in tables], 1, torch.device("cpu")
    )
    return _halves(FleetData(rows, None, seeds, 2, torch.device("cpu"), None))


def test_halves_share_out_what_is_rare_and_do_not_depend_on_padding() -> None:
    short, long = problem(101, seed=1), problem(160, seed=2)
    both = halves_of([short, long], [5, 6])
    alone = halves_of([short], [5])[0]
    assert torch.equal(both[0, :101], alone)
    for stratum in (short.y_obs == 1, short.y_obs == 0, ~short.tested):
        first = int((alone[torch.tensor(stratum)] == 0).sum())
        assert abs(2 * first - stratum.sum()) <= 1
    assert not torch.equal(halves_of([short], [7])[0], alone)


def test_a_person_is_in_one_half() -> None:
    person = np.arange(120) // 3
    half = halves_of([problem(id=person)], [5])[0].numpy().reshape(40, 3)
    assert (half == half[:, :1]).all()
    assert {0, 1} == set(half[:, 0])


@pytest.mark.parametrize("method", [InversePropensityClassifier, DoublyRobustClassifier])
@pytest.mark.parametrize("options", [{}, {"patience": 2, "n_members": 2}])
def test_a_fleet_gives_what_single_fits_give(method: type, options: dict) -> None:
    options = PLAIN | options
    problems = [problem(100, seed=1), problem(140, seed=2)]
    validations = [problem(50, seed=3), problem(60, seed=4)]
    many = fit_many(method(**options), problems, validations=validations, random_states=[3, 4])
    for one, rows, held, seed in zip(many, problems, validations, (3, 4), strict=True):
        single = method(**options | {"random_state": seed}).fit_problem(rows, validation=held)
        np.testing.assert_allclose(
            one.predict_proba(rows.X), single.predict_proba(rows.X), atol=1e-4
        )
        np.testing.assert_allclose(one.propensity_, single.propensity_, atol=1e-4)
        assert len(one.propensity_) == len(rows)


@pytest.mark.parametrize("method", [InversePropensityClassifier, DoublyRobustClassifier])
@pytest.mark.filterwarnings("ignore:Everybody is tested:dcem.DataWarning")
def test_everybody_tested_is_no_trouble(method: type) -> None:
    rows = problem(tested=np.ones(120, dtype=bool))
    score = method(**PLAIN).fit_problem(rows).predict_proba(rows.X)
    assert np.isfinite(score).all()


@pytest.mark.parametrize("method", [InversePropensityClassifier, DoublyRobustClassifier])
def test_minibatches_run(method: type) -> None:
    rows = problem(200)
    fitted = method(**PLAIN, batch_size=32, n_members=2).fit_problem(rows)
    assert np.isfinite(fitted.predict_proba(rows.X)).all()


def test_support_knows_the_testing_probability() -> None:
    rows = problem()
    for method in (InversePropensityClassifier, DoublyRobustClassifier):
        support = method(**PLAIN).fit_problem(rows).support(rows.X)
        assert support["testing_probability"].between(0, 1).all()


def test_what_cannot_be_is_refused() -> None:
    rows = problem()
    with pytest.raises(ValueError, match="`variant` must be one of corrected, published"):
        InversePropensityClassifier(variant="right", **PLAIN).fit_problem(rows)
    for method in (InversePropensityClassifier, DoublyRobustClassifier):
        with pytest.raises(ValueError, match="clip is a probability"):
            method(clip=0.0, **PLAIN).fit_problem(rows)
    with pytest.raises(ValueError, match="unclipped probability: leave `clip` at its default"):
        InversePropensityClassifier(variant="published", clip=0.1, **PLAIN).fit_problem(rows)
    one_person = np.where(rows.tested, 0, 1 + np.arange(120))
    with pytest.raises(InputError, match="at least two tested people"):
        DoublyRobustClassifier(**PLAIN).fit_problem(problem(id=one_person))


@pytest.mark.parametrize("options", [{"learner": "linear"}, PLAIN], ids=["linear", "network"])
@pytest.mark.parametrize("method", [InversePropensityClassifier, DoublyRobustClassifier])
def test_probabilities_of_a_design_take_the_place_of_the_model(method: type, options: dict) -> None:
    chance = np.linspace(0.2, 0.9, 240)  # unrelated to the features: no model would find it
    tested = np.random.default_rng(1).random(240) < chance
    rows = problem(240, tested=tested, testing_probability=chance)
    fitted = method(**options).fit_problem(rows)
    modelled = method(**options).fit_problem(problem(240, tested=tested))
    off, usual = (
        np.abs(one.propensity_[:, None] - chance).min(axis=1) for one in (fitted, modelled)
    )
    assert off.max() < 1e-6  # of the rows it learnt from
    assert usual.max() > 1e-4
    assert not np.allclose(fitted.predict_proba(rows.X), modelled.predict_proba(rows.X))


@pytest.mark.parametrize("options", [{"learner": "linear"}, PLAIN], ids=["linear", "network"])
@pytest.mark.parametrize("method", [InversePropensityClassifier, DoublyRobustClassifier])
def test_small_probabilities_of_a_design_are_not_clipped(method: type, options: dict) -> None:
    """After `next-tests`: everybody tested before, and a few of the others by lot."""
    row = np.arange(240)
    tested, chance = (row < 120) | (row % 10 == 0), np.where(row < 120, 1, 0.01)
    rows = problem(240, tested=tested, testing_probability=chance, id=row)
    options = options | {"random_state": 0}
    usual, other = (method(clip=clip, **options).fit_problem(rows) for clip in (0.05, 0.2))
    np.testing.assert_array_equal(usual.predict_proba(rows.X), other.predict_proba(rows.X))
    assert np.isfinite(usual.predict_proba(rows.X)).all()
    if method is InversePropensityClassifier:
        lesson = usual._lesson(TrainingTable.of(rows, None, None).columns() | {"e": chance}, 2)
        assert set(lesson.factor) == {1, 100}
