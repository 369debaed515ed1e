"""SAR-EM against a plain loop; its two ways to stop."""

import numpy as np
import pytest
import torch
from torch import nn

from dcem.engine import Patience, Rows
from dcem.methods import fit_many
from dcem.methods.sar_em import SarEMClassifier, classifier_loss
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError

PLAIN = {
    "hidden": (8,),
    "max_iter": 3,
    "steps": 4,
    "learning_rate": 1e-2,
    "propensity_learning_rate": 3e-2,
    "weight_decay": 1e-3,
    "preprocess": None,
    "random_state": 3,
}


def problem(n: int = 120, seed: int = 0) -> tuple[SelectiveLabels, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    group = rng.integers(2, size=n)
    tested = rng.random(n) < 1 / (1 + np.exp(-X[:, 0] - group))
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 1]))).astype(float)
    observed = np.where(tested, y, np.nan)
    return SelectiveLabels.from_arrays(X, observed, tested=tested, group=group), y


def network(n_inputs: int) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(n_inputs, 8), nn.ReLU(), nn.Linear(8, 2))


def plain_sar_em(
    rows: SelectiveLabels, iterations: int, *, balanced: bool = False, carry: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The loop with data stacked twice, as a reader of the paper would write it."""
    X = torch.tensor(rows.X, dtype=torch.float32)
    a = torch.tensor(rows.group, dtype=torch.float32)[:, None]
    Xa = torch.cat([X, X * a, a], 1)
    s = torch.tensor(rows.y_imputed, dtype=torch.float32)
    f, e = network(2), network(5)
    ones = torch.ones(len(X))

    def fit(model: nn.Module, X: torch.Tensor, label, weight, scale, rate: float) -> None:
        adam = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=1e-3)
        for _ in range(4):
            adam.zero_grad()
            each = nn.functional.cross_entropy(model(X), label.long(), reduction="none")
            ((weight * each).sum() / scale).backward()
            adam.step()

    if balanced:
        n_found, n_rest = s.sum(), (1 - s).sum()
        weight = torch.where(s == 1, 1 / n_found, 1 / n_rest)  # either side has weight 1
        fit(f, X, s, weight, 4, 1e-2)
        guess = f(X).softmax(1)[:, 1].detach()
        fit(e, Xa, s, torch.where(s == 1, 1.0, guess), len(X), 3e-2)
    for _ in range(iterations):
        q = posterior(f, e, X, Xa, s)
        if not carry:
            f, e = network(2), network(5)
        fit(e, Xa, s, q, len(X), 3e-2)
        stacked = torch.cat([X, X]), torch.cat([ones, 1 - ones]), torch.cat([q, 1 - q])
        fit(f, *stacked, 2 * len(X), 1e-2)
    return f(X).softmax(1)[:, 1].detach().numpy(), posterior(f, e, X, Xa, s).numpy()


@torch.no_grad()
def posterior(f: nn.Module, e: nn.Module, X: torch.Tensor, Xa: torch.Tensor, s: torch.Tensor):
    p, c = f(X).softmax(1)[:, 1], e(Xa).softmax(1)[:, 1]
    return torch.where(s == 1, 1.0, p * (1 - c) / (1 - p * c))


@pytest.mark.parametrize("carry", [True, False])
def test_published_is_the_plain_loop(carry: bool) -> None:
    rows, y = problem()
    held, y_held = problem(60, seed=1)
    expected, labels = plain_sar_em(rows, 3, carry=carry)
    fitted = SarEMClassifier(variant="published", carry_weights=carry, **PLAIN).fit_problem(
        rows, validation=held, truth=(y, y_held)
    )
    np.testing.assert_allclose(fitted.predict_proba(rows.X)[:, 1], expected, atol=1e-4)
    np.testing.assert_allclose(fitted.pseudo_labels_, labels, atol=1e-4)
    assert fitted.n_iter_ == 3
    assert fitted.termination_ == "max_iter"
    p = np.clip(fitted.predict_proba(held.X)[:, 1], 1e-9, 1 - 1e-9)
    truth_loss = -np.mean(y_held * np.log(p) + (1 - y_held) * np.log(1 - p))
    assert fitted.history_["classifier_loss"][-1] == pytest.approx(truth_loss, abs=1e-5)


def test_only_the_published_variant_uses_truth() -> None:
    rows, y = problem()
    held, _y_held = problem(60, seed=1)
    assert SarEMClassifier(variant="published").uses_truth
    assert not SarEMClassifier().uses_truth
    with pytest.raises(InputError, match="does not use the truth"):
        SarEMClassifier(**PLAIN).fit_problem(rows, truth=y)
    with pytest.raises(InputError, match="needs the truth"):
        SarEMClassifier(variant="published", **PLAIN).fit_problem(rows, validation=held)
    with pytest.raises(InputError, match="truth=\\(train, validation\\)"):
        SarEMClassifier(variant="published", **PLAIN).fit_problem(rows, validation=held, truth=y)


def test_the_truth_that_stops_the_published_variant_is_the_validation_rows() -> None:
    rows, y = problem()
    held, y_held = problem(60, seed=1)

    def history(train: np.ndarray, validation: np.ndarray) -> dict:
        fitted = SarEMClassifier(variant="published", **PLAIN)
        return fitted.fit_problem(rows, validation=held, truth=(train, validation)).history_

    first = history(y, y_held)
    assert history(1 - y, y_held) == first
    assert history(y, 1 - y_held)["classifier_loss"] != first["classifier_loss"]
    assert history(y, 1 - y_held)["propensity_loss"] == first["propensity_loss"]


def test_corrected_keeps_its_best_iterate_and_stops_after_patience() -> None:
    rows, _ = problem(300)
    held, _ = problem(60, seed=1)
    options = PLAIN | {"max_iter": 60, "patience": 2, "steps": 20}
    fitted = SarEMClassifier(**options).fit_problem(rows, validation=held)
    total = np.add(fitted.history_["classifier_loss"], fitted.history_["propensity_loss"])
    assert fitted.termination_ == "no_improvement"
    assert fitted.best_iter_ == 1 + int(np.argmin(total))
    assert fitted.n_iter_ == fitted.best_iter_ + 2 < 60
    again = SarEMClassifier(**options | {"max_iter": fitted.best_iter_}).fit_problem(
        rows, validation=held
    )
    np.testing.assert_allclose(again.predict_proba(held.X), fitted.predict_proba(held.X), atol=1e-6)


@pytest.mark.parametrize("carry", [True, False])
def test_corrected_starts_from_found_positives_against_the_rest(carry: bool) -> None:
    rows, _ = problem()
    held, _ = problem(60, seed=1)
    expected, labels = plain_sar_em(rows, 1, balanced=True, carry=carry)
    options = PLAIN | {"max_iter": 1, "carry_weights": carry}
    fitted = SarEMClassifier(**options).fit_problem(rows, validation=held)
    np.testing.assert_allclose(fitted.predict_proba(rows.X)[:, 1], expected, atol=1e-4)
    np.testing.assert_allclose(fitted.pseudo_labels_, labels, atol=1e-4)
    assert (fitted.pseudo_labels_[rows.y_imputed == 1] == 1).all()


def test_neither_improves() -> None:
    rule = Patience(torch.zeros(2, 1), patience=2, min_delta=0.0, n_losses=2)
    losses = [  # classifier and propensity loss of two networks
        [[1.0, 1.0], [1.0, 1.0]],
        [[0.9, 1.0], [1.1, 1.0]],  # the second network: equal is no improvement
        [[0.9, 1.0], [1.0, 1.2]],
        [[0.9, 0.1], [0.9, 0.1]],  # the second has stopped by now: too late
    ]
    active = []
    for loss in losses:
        rule.update(torch.tensor(loss), torch.zeros(2, 1))
        active.append(rule.active.tolist())
    assert active == [[True, True], [True, True], [True, False], [True, False]]
    assert rule.best_step.tolist() == [4, 1]


def test_classifier_loss_is_that_of_stacked_rows() -> None:
    logits, q = torch.randn(1, 9, 2), torch.rand(9)
    rows = Rows(torch.zeros(9, 1), {"q": q, "weight": torch.ones(9)})
    twice = torch.cat([logits[0], logits[0]])
    label = torch.cat([torch.ones(9), torch.zeros(9)]).long()
    each = nn.functional.cross_entropy(twice, label, reduction="none")
    expected = (torch.cat([q, 1 - q]) * each).mean()
    assert classifier_loss(logits, rows)[0] == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("options", [{}, {"n_members": 2}, {"patience": 1, "max_iter": 12}])
def test_a_fleet_gives_what_single_fits_give(options: dict) -> None:
    options = PLAIN | options
    problems = [problem(100, seed=1)[0], problem(140, seed=2)[0]]
    held = [problem(50, seed=3)[0], problem(60, seed=4)[0]]
    many = fit_many(SarEMClassifier(**options), problems, validations=held, random_states=[3, 4])
    for one, rows, validation, seed in zip(many, problems, held, (3, 4), strict=True):
        single = SarEMClassifier(**options | {"random_state": seed}).fit_problem(
            rows, validation=validation
        )
        np.testing.assert_allclose(
            one.predict_proba(rows.X), single.predict_proba(rows.X), atol=1e-4
        )
        assert one.n_iter_ == single.n_iter_
        assert len(one.pseudo_labels_) == len(rows)


def test_a_network_that_stopped_keeps_its_weights_while_others_start_anew() -> None:
    options = PLAIN | {"variant": "published", "carry_weights": False, "patience": 1}
    options |= {"max_iter": 30}
    (rows, y), (other, y_other) = problem(100, seed=1), problem(140, seed=2)
    (held, y_held), (other_held, y_other_held) = problem(50, seed=3), problem(60, seed=4)
    many = fit_many(
        SarEMClassifier(**options),
        [rows, other],
        validations=[held, other_held],
        truths=[(y, y_held), (y_other, y_other_held)],
        random_states=[3, 4],
    )
    assert many[0].n_iter_ != many[1].n_iter_
    for one, data, seed in (
        (many[0], (rows, held, (y, y_held)), 3),
        (many[1], (other, other_held, (y_other, y_other_held)), 4),
    ):
        single = SarEMClassifier(**options | {"random_state": seed})
        single.fit_problem(data[0], validation=data[1], truth=data[2])
        assert one.n_iter_ == single.n_iter_
        np.testing.assert_allclose(
            one.predict_proba(rows.X), single.predict_proba(rows.X), atol=1e-4
        )


def test_minibatches_run() -> None:
    rows, _ = problem(200)
    fitted = SarEMClassifier(batch_size=32, **PLAIN).fit_problem(rows)
    assert np.isfinite(fitted.predict_proba(rows.X)).all()


def test_nobody_found_positive_stays_finite() -> None:
    rows, _ = problem()
    none = rows.subset(np.flatnonzero(rows.y_imputed == 0))
    fitted = SarEMClassifier(**PLAIN).fit_problem(none, validation=none)
    assert np.isfinite(fitted.predict_proba(rows.X)).all()


def test_unknown_variant() -> None:
    with pytest.raises(ValueError, match="`variant` must be one of"):
        SarEMClassifier(variant="right", **PLAIN).fit_problem(problem()[0])
