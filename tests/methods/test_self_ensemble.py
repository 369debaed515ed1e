"""SELF: one round recomputed with plain modules, the filter, and when it stops."""

import numpy as np
import pytest
import torch
from torch import nn

from dcem.methods import fit_many
from dcem.methods.noise import Noise
from dcem.methods.self_ensemble import SelfEnsembleClassifier
from dcem.table.labels import SelectiveLabels

SMALL = {"hidden": (8,), "steps": 40, "learning_rate": 0.1, "random_state": 3, "preprocess": None}


def problem(n: int, seed: int = 0, flip: float = 0.1) -> SelectiveLabels:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    truth = (X[:, 0] > 0) ^ (rng.random(n) < flip)
    tested = rng.random(n) < 0.7
    y = np.where(tested, truth.astype(float), np.nan)
    return SelectiveLabels.from_arrays(X, y, group=rng.integers(0, 2, n))


def plain_teacher(rows: SelectiveLabels, keep: np.ndarray, *, drops_rows: bool) -> nn.Module:
    """Student and teacher as two modules and torch's own SGD; the noise is the method's."""

    def network() -> nn.Module:
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))

    student, teacher = network(), network()
    optimizer = torch.optim.SGD(
        student.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=1e-6
    )
    X, y = torch.tensor(rows.X).float(), torch.tensor(rows.y_imputed).long()
    chosen = torch.tensor(keep > 0)
    agree = chosen if drops_rows else torch.ones_like(chosen)
    noise = Noise([3], torch.device("cpu"), torch.float32)
    for _ in range(40):
        noise.advance()
        first, second = (
            X + 0.05 * noise.normal(torch.arange(len(X)), 2, stream=s)[0] for s in (0, 1)
        )
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(student(X[chosen]), y[chosen])
        taught = teacher(second).detach()
        loss = loss + nn.functional.mse_loss(student(first)[agree], taught[agree])
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
                slow.mul_(0.9).add_(0.1 * fast)
    return teacher


def flat(network: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1) for p in network.parameters()])


def test_without_filtering_the_product_is_a_plain_mean_teacher():
    rows = problem(150)
    fitted = SelfEnsembleClassifier(**SMALL, max_iter=0).fit_problem(
        rows, validation=problem(100, 1)
    )
    teacher = plain_teacher(rows, np.ones(150), drops_rows=False)
    torch.testing.assert_close(
        fitted.fleet_.flat[0], flat(teacher), atol=1e-5, rtol=0, check_dtype=False
    )
    assert fitted.kept_.all()
    assert (fitted.n_iter_, fitted.best_iter_) == (0, 0)


@pytest.mark.parametrize("variant", ["published", "corrected"])
@pytest.mark.parametrize("filter_positives", [False, True])
def test_one_round_of_filtering(variant, filter_positives, monkeypatch):
    """The second teacher learns from the labels that the first confirms."""
    rows, validation = problem(150), problem(100, 1)
    monkeypatch.setattr(SelfEnsembleClassifier, "_scores", lambda self, fleet, *_: _rising(fleet))
    settings = SMALL | {"variant": variant, "filter_positives": filter_positives}
    fitted = SelfEnsembleClassifier(**settings, max_iter=1).fit_problem(rows, validation=validation)
    first = plain_teacher(rows, np.ones(150), drops_rows=variant == "published")
    with torch.no_grad():
        says = first(torch.tensor(rows.X).float()).argmax(1).numpy()
    keep = says == rows.y_imputed
    if not filter_positives:
        keep |= rows.y_imputed == 1
    assert 0 < (~keep).sum() < 100
    np.testing.assert_array_equal(fitted.kept_, keep)
    second = plain_teacher(rows, keep, drops_rows=variant == "published")
    torch.testing.assert_close(
        fitted.fleet_.flat[0], flat(second), atol=1e-5, rtol=0, check_dtype=False
    )
    assert (fitted.n_iter_, fitted.best_iter_, fitted.termination_) == (1, 1, "max_iter")


_calls = iter(range(1000))


def _rising(fleet) -> np.ndarray:
    """Scores that improve from call to call."""
    return np.full(len(fleet), next(_calls) / 1000)


def scripted(monkeypatch, scores: list[float], **params) -> SelfEnsembleClassifier:
    """A fit whose validation scores are given."""
    script = iter(scores)
    monkeypatch.setattr(SelfEnsembleClassifier, "_scores", lambda *_: np.array([next(script)]))
    settings = SMALL | {"steps": 2} | params
    return SelfEnsembleClassifier(**settings).fit_problem(problem(60), validation=problem(60, 1))


def test_first_failure_ends_it(monkeypatch):
    fitted = scripted(monkeypatch, [0.6, 0.7, 0.7])
    assert (fitted.n_iter_, fitted.best_iter_, fitted.termination_) == (2, 1, "no_improvement")
    assert fitted.history_ == {"validation_auc": [0.6, 0.7, 0.7]}


def test_corrected_compares_with_the_best_and_published_with_the_round_before(monkeypatch):
    scores = [0.6, 0.8, 0.5, 0.7, 0.6, 0.5, 0.4]
    corrected = scripted(monkeypatch, scores, patience=2)
    assert (corrected.n_iter_, corrected.best_iter_) == (3, 1)
    published = scripted(monkeypatch, scores, patience=2, variant="published")
    assert (published.n_iter_, published.best_iter_) == (5, 3)


def test_hard_predictions_tie_where_probabilities_still_rank():
    """All predicted negative: balanced accuracy is one half, while the AUC is not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (rng.random(300) < 0.1 + 0.1 * (X[:, 0] > 0)).astype(float)
    rows = SelectiveLabels.from_arrays(X, np.where(rng.random(300) < 0.9, y, np.nan))
    settings = SMALL | {"steps": 20, "learning_rate": 0.02}
    hard, soft = (
        SelfEnsembleClassifier(**settings, variant=v).fit_problem(rows, validation=rows)
        for v in ("published", "corrected")
    )
    assert hard.history_["validation_auc"] == [0.5, 0.5]
    assert hard.best_iter_ == 0
    assert soft.history_["validation_auc"][0] > 0.5


@pytest.mark.parametrize("variant", ["published", "corrected"])
def test_validation_of_one_class_returns_the_first_teacher(variant):
    rows = problem(80)
    negatives = rows.subset(np.flatnonzero(rows.y_imputed == 0))
    fitted = SelfEnsembleClassifier(**SMALL, variant=variant).fit_problem(
        rows, validation=negatives
    )
    assert (fitted.n_iter_, fitted.best_iter_) == (1, 0)
    assert np.isnan(fitted.history_["validation_auc"]).all()


def test_a_filter_that_leaves_nothing_is_survived(monkeypatch):
    """A teacher that contradicts every label: nothing is left to learn from."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    positive = X[:, 0] > 0
    tested = positive | (np.arange(40) % 2 == 0)
    rows = SelectiveLabels.from_arrays(X, positive.astype(float), tested=tested)

    def contrary(n_inputs: int) -> nn.Module:
        network = nn.Sequential(nn.Linear(n_inputs, 2, bias=False))
        with torch.no_grad():
            network[0].weight.copy_(torch.tensor([[50.0, 0.0], [-50.0, 0.0]]))
        return network

    monkeypatch.setattr(SelfEnsembleClassifier, "_scores", lambda self, fleet, *_: _rising(fleet))
    settings = SMALL | {"steps": 1, "learning_rate": 1e-6, "network": contrary}
    settings |= {"filter_positives": True, "max_iter": 2}
    fitted = SelfEnsembleClassifier(**settings).fit_problem(rows, validation=rows)
    assert not fitted.kept_.any()
    assert torch.isfinite(fitted.fleet_.flat).all()


def test_a_fleet_gives_single_fits_that_stop_at_their_own_time():
    problems = [
        problem(n, seed, flip) for n, seed, flip in ((120, 1, 0.1), (90, 2, 0.3), (150, 5, 0))
    ]
    validations = [problem(80, 10 + m) for m in range(3)]
    settings = SMALL | {"max_iter": 4}
    method = SelfEnsembleClassifier(**settings)
    together = fit_many(method, problems, validations=validations, random_states=[3, 4, 3])
    for m, one in enumerate(together):
        alone = SelfEnsembleClassifier(**settings | {"random_state": [3, 4, 3][m]})
        alone.fit_problem(problems[m], validation=validations[m])
        assert one.n_iter_ == alone.n_iter_
        assert one.kept_.shape == (len(problems[m]),)
        np.testing.assert_array_equal(one.kept_, alone.kept_)
        np.testing.assert_allclose(
            one.predict_proba(problems[m].X), alone.predict_proba(problems[m].X), atol=1e-4
        )


def test_minibatches_and_members():
    settings = SMALL | {"batch_size": 32, "n_members": 2, "max_iter": 1}
    fitted = SelfEnsembleClassifier(**settings).fit_problem(problem(150))
    assert len(fitted.fleet_) == 2
    assert not torch.equal(fitted.fleet_.flat[0], fitted.fleet_.flat[1])
    assert np.isfinite(fitted.predict_proba(problem(150).X)).all()
