"""`published("dcem")` against a plain PyTorch loop written from the description of the release.

Fewer steps and smaller networks; everything else as `published` sets it. The loop knows nothing of
the library: seed-42 modules, `torch.optim.Adam`, the loss by its formula.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from dcem.methods import make, published
from dcem.methods.em import EMSettings
from dcem.methods.propensity import PropensitySettings
from dcem.table.labels import SelectiveLabels

HIDDEN, STEPS, LR, TEMPERATURE = (6, 5), 12, 3e-2, 2.0


@pytest.fixture(scope="module")
def split():
    rng = np.random.default_rng(5)

    def rows(n):
        X = rng.normal(size=(n, 2))
        group = np.arange(n) % 2
        tested = rng.random(n) < 1 / (1 + np.exp(-X[:, 1] - group + 0.5))
        y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(float)
        return SelectiveLabels.from_arrays(X, np.where(tested, y, np.nan), group=group)

    return SimpleNamespace(train=rows(120), validation=rows(90))


def network(n_inputs, hidden):
    torch.manual_seed(42)
    layers, width = [], n_inputs
    for wide in hidden:
        layers += [nn.Linear(width, wide), nn.ReLU()]
        width = wide
    return nn.Sequential(*layers, nn.Linear(width, 2)).double()


def descend(model, loss, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)  # fresh each time
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()


def m_step_loss(model, part, q, hard_t):
    f = model(part.X).softmax(1)[:, 1]
    own = -(q * f.log() + (1 - q) * (1 - f).log())
    if hard_t:
        record = part.tested * -(part.y * f.log() + (1 - part.y) * (1 - f).log())
    else:
        record = -(part.y * (f * part.t).log() + (1 - part.y) * (1 - f * part.t).log())
    return (own + q * record).mean()


def as_released(split, *, start, hard_t, max_iter):
    """The released procedure: its network, watched losses and number of iterations."""

    def tensors(rows):
        a = torch.from_numpy(np.array(rows.group, dtype=float)).unsqueeze(1)
        X = torch.from_numpy(np.array(rows.X))
        return SimpleNamespace(
            X=X,
            inputs=torch.cat([X, X * a, a], 1),
            y=torch.from_numpy(rows.y_imputed),
            tested=torch.from_numpy(rows.tested.astype(float)),
        )

    with torch.random.fork_rng(devices=[]):
        train, held = tensors(split.train), tensors(split.validation)
        propensity = network(5, HIDDEN)
        descend(
            propensity,
            lambda m: nn.functional.cross_entropy(m(train.inputs), train.tested.long()),
            STEPS,
        )
        for part in (train, held):
            part.t = (propensity(part.inputs).detach() / TEMPERATURE).softmax(1)[:, 1]
        teacher, model = network(2, HIDDEN), network(2, HIDDEN)
        if start != "uninformative":
            rows = train.tested > 0
            descend(
                model,
                lambda m: nn.functional.cross_entropy(m(train.X[rows]), train.y[rows].long()),
                STEPS,
            )
        if start == "algorithm-1":
            teacher = model

        def pseudo_labels(part, m):
            guess = m(part.X).detach().softmax(1)[:, 1]
            return torch.where(part.tested > 0, part.y, guess)

        losses, best, failures = [], np.inf, 0
        while len(losses) < max_iter and failures < 3:
            q = pseudo_labels(train, teacher)
            descend(model, lambda m, q=q: m_step_loss(m, train, q, hard_t), STEPS)
            teacher = model
            own = pseudo_labels(held, model)  # the watched loss refers to the network itself
            losses.append(float(m_step_loss(model, held, own, hard_t=False).detach()))
            failures = 0 if losses[-1] < best else failures + 1
            best = min(best, losses[-1])
        score = model(train.X).detach().softmax(1)[:, 1]
    return score.numpy(), losses, failures == 3


@pytest.mark.parametrize("hard_t", [False, True])
@pytest.mark.parametrize("start", ["uninformative", "tested-only", "algorithm-1"])
@pytest.mark.parametrize("max_iter", [3, 60])
def test_it_does_what_the_release_does(split, start, hard_t, max_iter):
    model = published("dcem", "sinusoid").set_params(
        hidden=HIDDEN,
        steps=STEPS,
        learning_rate=LR,
        max_iter=max_iter,
        temperature=TEMPERATURE,
        start=start,
        hard_t=hard_t,
        dtype="float64",
        propensity_settings=PropensitySettings(hidden=HIDDEN, steps=STEPS, learning_rate=LR),
    )
    model.fit_problem(split.train, validation=split.validation)
    score, losses, stopped = as_released(split, start=start, hard_t=hard_t, max_iter=max_iter)
    assert model.n_iter_ == len(losses)
    assert model.termination_ == ("no_improvement" if stopped else "max_iter")
    np.testing.assert_allclose(model.history_["validation_loss"], losses, atol=1e-7)
    # the last network, also where an earlier one had the lower loss
    np.testing.assert_allclose(model.predict_proba(split.train)[:, 1], score, atol=1e-7)
    if stopped:
        assert model.best_iter_ == model.n_iter_ - 3


def test_stopping_is_reached_in_the_comparison_above(split):
    """Or the comparison would say nothing about patience."""
    assert as_released(split, start="algorithm-1", hard_t=False, max_iter=60)[2]


def test_every_published_number_is_set():
    model = published("dcem", "sinusoid")
    em, propensity = model._settings(SimpleNamespace(pace=None, batch_size=None))
    assert em == EMSettings(
        max_iter=50, steps=1000, learning_rate=1e-3, weight_decay=0.0, fresh_optimizer=True,
        strength=1.0, hard_t=False, carry_weights=True, patience=3, watch="self", keep="last",
    )  # fmt: skip
    assert propensity == PropensitySettings(
        hidden=(64, 64), steps=1000, learning_rate=1e-3, patience=None, keep="last"
    )
    assert (model.hidden, model.preprocess, model.random_state) == ((64, 64), None, 42)
    assert (model.temperature, model.start, model.n_members) == (1.0, "uninformative", 1)
    sepsis = published("dcem", "sepsis")
    em, propensity = sepsis._settings(SimpleNamespace(pace=None, batch_size=None))
    assert (em.steps, em.learning_rate, em.weight_decay, em.max_iter) == (10_000, 5e-7, 1e-6, 50)
    assert (propensity.steps, propensity.learning_rate) == (20_000, 1e-5)
    assert (propensity.hidden, propensity.patience, propensity.keep) == ((64, 64), 1000, "last")
    assert (sepsis.hidden, sepsis.start) == ((128, 128, 16), "tested-only")


def test_the_fast_schedule_looks_at_tested_validation_rows_alone(split):
    """Other features of untested validation rows change what is recorded, not what is chosen."""
    held = split.validation
    X = np.array(held.X)
    X[~held.tested] = 50.0
    moved = SelectiveLabels.from_arrays(
        X, held.y_obs, group=np.array(held.group), group_names=held.group_names
    )
    # a foreign propensity model, as a network of it may stop by all validation rows
    from sklearn.linear_model import LogisticRegression

    fits = [
        make("dcem", random_state=0, hidden=(8,), propensity=LogisticRegression()).fit_problem(
            split.train, validation=rows
        )
        for rows in (held, moved)
    ]
    assert fits[0].history_["validation_loss"] != fits[1].history_["validation_loss"]
    assert fits[0].n_iter_ == fits[1].n_iter_
    assert fits[0].best_iter_ == fits[1].best_iter_
    assert torch.equal(fits[0].fleet_.flat, fits[1].fleet_.flat)
