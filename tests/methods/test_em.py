"""The EM loop of the library against the plain NumPy one, from the same weights."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch

from dcem.engine import MLP, Fleet, Rows
from dcem.engine.checkpoint import Saves
from dcem.methods.em import EMSettings, alternate
from dcem.methods.em_networks import run_em
from dcem.methods.propensity import PropensitySettings, fit_propensity, log_odds

from ..reference import plain_dcem as plain

D, HIDDEN = 3, (7, 5)
ITERATIONS, STEPS = 3, 15
SEEDS = [1, 2]


def make_table(n=90, n_groups=2, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    group = rng.integers(0, n_groups, n)
    tested = rng.random(n) < 1 / (1 + np.exp(-X[:, 1] - 0.5 * group))
    y = rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 0]))
    return X, np.where(tested, y, np.nan), tested, group


def rows_of(X, y_obs, tested, group):
    columns = {
        "y": np.where(tested, y_obs, 0.0),
        "tested": tested.astype(float),
        "group": group,
        "weight": np.ones(len(X)),
    }
    return Rows(torch.from_numpy(X), {k: torch.from_numpy(v) for k, v in columns.items()})


def as_network(flat: torch.Tensor, sizes):
    """Flat parameters as the (W [in, out], b) pairs of the reference."""
    network, position = [], 0
    values = flat.double().numpy()
    for n_in, n_out in pairwise(sizes):
        W = values[position : position + n_in * n_out].reshape(n_out, n_in).T
        position += n_in * n_out
        network.append((W.copy(), values[position : position + n_out].copy()))
        position += n_out
    return network


def as_flat(network) -> np.ndarray:
    return np.concatenate([v for W, b in network for v in (W.T.ravel(), b)])


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("carry", [True, False])
@pytest.mark.parametrize(("strength", "decay"), [(1.0, 0.0), (2.0, 1e-2), (0.0, 0.0)])
def test_weights_pseudo_labels_and_losses_are_those_of_the_reference(
    n_groups, carry, strength, decay
):
    table = make_table(n_groups=n_groups)
    rows = rows_of(*table)
    propensity = fit_propensity(
        rows,
        None,
        PropensitySettings(hidden=HIDDEN, steps=20, learning_rate=1e-2),
        n_groups=n_groups,
        seeds=SEEDS,
    )
    u = log_odds(propensity, rows, n_groups) / 1.5
    train = Rows(rows.X, dict(rows.columns) | {"u": u})
    outcome = MLP(D, HIDDEN)
    fleet = Fleet.initial(outcome, SEEDS, dtype=torch.float64)
    seen = []
    result = run_em(
        fleet,
        train,
        train,
        EMSettings(
            max_iter=ITERATIONS,
            steps=STEPS,
            learning_rate=1e-2,
            weight_decay=decay,
            strength=strength,
            carry_weights=carry,
            patience=99,
        ),
        seeds=SEEDS,
        progress=lambda *_: seen.append(fleet.flat.clone()),
    )
    for m, seed in enumerate(SEEDS):
        expected = plain.plain_dcem(
            as_network(outcome.initial(seed), outcome.sizes),
            as_network(
                MLP(propensity.architecture.sizes[0], HIDDEN).initial(seed),
                propensity.architecture.sizes,
            ),
            *table,
            propensity_steps=20,
            steps=STEPS,
            iterations=ITERATIONS,
            lr=1e-2,
            weight_decay=decay,
            reg=strength,
            temperature=1.5,
            warm_start=carry,
        )
        np.testing.assert_allclose(
            propensity.flat[m], as_flat(expected.propensity_network), atol=1e-8
        )
        np.testing.assert_allclose(u[m], expected.propensity_logits @ np.array([-1, 1]), atol=1e-8)
        np.testing.assert_allclose(seen[-1][m], as_flat(expected.network), atol=1e-8)
        # the recorded loss is the one before the last step of each M-step
        np.testing.assert_allclose(
            result[m]["history_"]["train_loss"], expected.losses[:, -2], atol=1e-8
        )
        X, y_obs, tested, _ = table
        final = np.where(tested, y_obs, plain.probability(expected.network, X))
        np.testing.assert_allclose(result[m]["pseudo_labels_"], final, atol=1e-8)
        between = plain.probability(as_network(seen[0][m], outcome.sizes), X)
        np.testing.assert_allclose(
            np.where(tested, y_obs, between), expected.pseudo_labels[1], atol=1e-8
        )


def em_case(patience=99, max_iter=6, **settings):
    rows = rows_of(*make_table())
    train = Rows(rows.X, dict(rows.columns) | {"u": torch.zeros(len(rows), dtype=torch.float64)})
    fleet = Fleet.initial(MLP(D, HIDDEN), SEEDS, dtype=torch.float64)
    chosen = EMSettings(
        max_iter=max_iter, steps=4, learning_rate=2e-2, patience=patience, **settings
    )
    return fleet, train, chosen


def test_the_watched_loss_chooses_the_returned_iterate():
    fleet, train, settings = em_case(max_iter=40, watch="tested", keep="best", patience=3)
    other = Rows(train.X, dict(train.columns) | {"y": train["tested"] - train["y"]})
    states = []
    result = run_em(
        fleet, train, other, settings, seeds=SEEDS,
        progress=lambda *_: states.append(fleet.flat.clone()),
    )  # fmt: skip
    for m in range(2):  # labels turned round: every step in training is a step back there
        watched = result[m]["history_"]["tested_validation_loss"]
        best = int(np.argmin(watched))
        assert result[m]["best_iter_"] == best + 1
        assert result[m]["n_iter_"] == best + 1 + settings.patience
        assert result[m]["termination_"] == "no_improvement"
        assert torch.equal(fleet.flat[m], states[best][m])
    # pseudo-labels are those of the returned network
    expected = torch.where(train["tested"] > 0, train["y"], fleet.predict(train.X))
    assert np.array_equal(np.stack([one["pseudo_labels_"] for one in result]), expected)


@pytest.mark.parametrize("batch_size", [None, 30])
@pytest.mark.parametrize("fresh", [True, False])
def test_em_resumes_after_its_last_whole_iteration(tmp_path, batch_size, fresh):
    options = {"batch_size": batch_size, "fresh_optimizer": fresh, "keep": "best"}
    fleet, train, settings = em_case(**options)
    whole = run_em(fleet, train, train, settings, seeds=SEEDS)

    class Killed(Exception):
        pass

    def die(done, _):
        if done == 3:
            raise Killed

    file = tmp_path / "em.safetensors"
    killed, train, _ = em_case(**options)
    with pytest.raises(Killed):
        run_em(killed, train, train, settings, seeds=SEEDS, saves=Saves(file), progress=die)
    resumed, train, _ = em_case(**options)
    ran = []
    again = run_em(
        resumed, train, train, settings, seeds=SEEDS, saves=Saves(file),
        progress=lambda done, _: ran.append(done),
    )  # fmt: skip
    assert ran == [4, 5, 6]
    assert torch.equal(resumed.flat, fleet.flat)
    for one, other in zip(again, whole, strict=True):
        assert np.array_equal(one["pseudo_labels_"], other["pseudo_labels_"])
        assert one["history_"] == other["history_"]


class Linkage:
    """The example of Dempster, Laird and Rubin (1977): 197 animals in four classes with
    probabilities 1/2 + p/4, (1 - p)/4, (1 - p)/4, p/4; how the first class splits is missing."""

    def __init__(self):
        self.p, self.guess, self.change, self.seen = 0.5, 0.0, np.inf, []

    def is_active(self):
        return self.change > 1e-12

    def e_step(self, iteration):
        assert iteration == len(self.seen)
        self.guess = 125 * (self.p / 4) / (1 / 2 + self.p / 4)

    def m_step(self):
        new = (self.guess + 34) / (self.guess + 34 + 18 + 20)
        self.change, self.p = abs(new - self.p), new

    def look(self):
        self.seen.append(self.p)

    def state(self):
        return {"p": self.p}


def test_the_loop_finds_a_known_maximum_without_networks():
    steps, saves, told = Linkage(), Saves(None), []
    done = alternate(steps, 100, saves, progress=lambda now, most: told.append((now, most)))
    assert steps.p == pytest.approx((15 + np.sqrt(53809)) / 394, abs=1e-10)
    assert done == len(steps.seen) == len(told) < 40
    assert steps.seen[0] == pytest.approx(0.608247423, abs=1e-9)
    assert alternate(Linkage(), 2, saves) == 2


def test_the_loop_knows_no_torch():
    code = "import sys, dcem.methods.em; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
