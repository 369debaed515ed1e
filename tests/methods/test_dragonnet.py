"""DragonNet against plain modules; the effect it estimates and whom it corrects."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from dcem.engine import Rows
from dcem.methods import fit_many
from dcem.methods.dragonnet import Dragon, DragonNetClassifier
from dcem.methods.supervised import ObservedLabelsClassifier
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning, InputError

PLAIN = {
    "hidden": (8, 6),
    "steps": 5,
    "learning_rate": 1e-2,
    "patience": None,
    "preprocess": None,
    "random_state": 3,
}


def problem(n: int = 120, seed: int = 0, n_groups: int = 2) -> SelectiveLabels:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    group = rng.integers(n_groups, size=n)
    tested = rng.random(n) < 1 / (1 + np.exp(-X[:, 0] - group))
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 1]))).astype(float)
    return SelectiveLabels.from_arrays(X, np.where(tested, y, np.nan), tested=tested, group=group)


def network(*sizes: int) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        layers: list[nn.Module] = []
        for n_in, n_out in itertools.pairwise(sizes):
            layers += [nn.Linear(n_in, n_out), nn.ReLU()]
        return nn.Sequential(*layers[:-1])


def train(parameters: list, loss) -> None:
    adam = torch.optim.Adam(parameters, lr=1e-2)
    for _ in range(5):
        adam.zero_grad()
        loss().backward()
        adam.step()


def tensors(rows: SelectiveLabels) -> tuple[torch.Tensor, ...]:
    return (
        torch.tensor(rows.X, dtype=torch.float32),
        torch.tensor(rows.group),
        torch.tensor(rows.tested, dtype=torch.float32),
        torch.tensor(rows.y_imputed, dtype=torch.float32),
    )


@pytest.mark.parametrize("variant", ["published", "corrected"])
def test_against_plain_modules(variant: str) -> None:
    rows = problem()
    X, a, t, y = tensors(rows)
    target = y if variant == "published" else t
    whole, heads = network(2, 8, 6, 2), [network(6, 8, 6, 2) for _ in range(2)]
    epsilon = nn.Parameter(torch.zeros(()))
    trunk, last = whole[:4], whole[4]

    def outputs() -> tuple[torch.Tensor, torch.Tensor]:
        z = trunk(X)
        g1 = (last(z).softmax(1)[:, 1] + 0.01) / 1.02
        q = torch.stack([head(z).softmax(1)[:, 1] for head in heads])
        return g1, q

    def loss() -> torch.Tensor:
        z = trunk(X)
        total = nn.functional.cross_entropy(last(z), a)
        fit = [nn.functional.cross_entropy(h(z), target.long(), reduction="none") for h in heads]
        if variant == "published":
            return total + fit[0][a == 0].mean() + fit[1][a == 1].mean()
        g1, q = outputs()
        perturbed = torch.where(a == 1, q[1] + epsilon / g1, q[0] - epsilon / (1 - g1))
        own = torch.where(a == 1, fit[1], fit[0])
        return total + own.mean() + ((target - perturbed) ** 2).mean()

    train([*whole.parameters(), *(p for h in heads for p in h.parameters()), epsilon], loss)
    plain = network(2, 8, 6, 2)
    train(list(plain.parameters()), lambda: nn.functional.cross_entropy(plain(X), y.long()))
    with torch.no_grad():
        g1, q = outputs()
        effect = (q[1] + epsilon / g1).clamp(0, 1) - (q[0] - epsilon / (1 - g1)).clamp(0, 1)
        p = plain(X).softmax(1)[:, 1]
        score = (p - effect).clamp(1e-8, 1 - 1e-8)
    fitted = DragonNetClassifier(variant=variant, **PLAIN).fit_problem(rows)
    np.testing.assert_allclose(fitted.effect(rows.X), effect, atol=2e-5)
    if variant == "published":
        score = torch.where(a == 1, score, p)
        got = fitted.predict_proba(rows.X, sensitive_features=rows.group)[:, 1]
        assert fitted.fleet_.flat[0, -1] == 0, "no targeted term"
    else:
        got = fitted.predict_proba(rows.X)[:, 1]
        assert fitted.fleet_.flat[0, -1] == pytest.approx(epsilon.item(), abs=1e-5)
        assert abs(epsilon.item()) > 1e-3
    np.testing.assert_allclose(got, score, atol=2e-5)


def test_the_released_targeted_term_against_plain_modules() -> None:
    """Its slips included: what is added to the shares, no label, shares at prediction."""
    rows, weight = problem(), 0.7
    X, a, _, y = tensors(rows)
    whole, heads = network(2, 8, 6, 2), [network(6, 8, 6, 2) for _ in range(2)]
    generator = torch.Generator().manual_seed(PLAIN["random_state"])
    epsilon = nn.Parameter(torch.randn((), generator=generator))
    start = epsilon.item()
    trunk, last = whole[:4], whole[4]

    def loss() -> torch.Tensor:
        z = trunk(X)
        total = nn.functional.cross_entropy(last(z), a)
        for g, head in enumerate(heads):
            total = total + nn.functional.cross_entropy(head(z[a == g]), y[a == g].long())
        share = last(z).softmax(1) + 0.01 / 1.02
        h = a / share[:, 1] - (1 - a) / share[:, 0]
        return total + weight * ((epsilon * h) ** 2).mean()

    train([*whole.parameters(), *(p for h in heads for p in h.parameters()), epsilon], loss)
    with torch.no_grad():
        z = trunk(X)
        q = [head(z).softmax(1)[:, 1] for head in heads]
        g1 = last(z).softmax(1)[:, 1] + 0.01 / 1.02
        effect = (q[1] + epsilon / g1) - (q[0] - epsilon / (1 - g1))
    fitted = DragonNetClassifier(variant="published", targeted_weight=weight, **PLAIN).fit_problem(
        rows
    )
    np.testing.assert_allclose(fitted.effect(rows.X), effect, atol=2e-5)
    assert 0 < abs(epsilon.item()) < abs(start), "the term shrinks the perturbation"
    plain = ObservedLabelsClassifier(**PLAIN).fit_problem(rows).predict_proba(rows.X)[:, 1]
    score = np.where(a == 1, np.clip(plain - effect.numpy(), 1e-8, 1 - 1e-8), plain)
    got = fitted.predict_proba(rows.X, sensitive_features=rows.group)[:, 1]
    np.testing.assert_allclose(got, score, atol=2e-5)


@pytest.mark.parametrize(("variant", "own"), [("published", 0.0), ("corrected", 1.0)])
def test_the_targeted_weight_is_the_variants_unless_given(variant: str, own: float) -> None:
    rows = problem()
    fits = [
        DragonNetClassifier(variant=variant, targeted_weight=weight, **PLAIN)
        .fit_problem(rows)
        .fleet_.flat
        for weight in (None, own, 2.0)
    ]
    assert torch.equal(fits[0], fits[1])
    assert not torch.equal(fits[0], fits[2])


def test_published_leaves_the_first_group_to_y_obs() -> None:
    rows = problem()
    fitted = DragonNetClassifier(variant="published", **PLAIN).fit_problem(rows)
    plain = ObservedLabelsClassifier(**PLAIN).fit_problem(rows).predict_proba(rows.X)[:, 1]
    got = fitted.predict_proba(rows.X, sensitive_features=rows.group)[:, 1]
    first = rows.group == 0
    np.testing.assert_allclose(got[first], plain[first], atol=1e-6)
    assert not np.allclose(got[~first], plain[~first], atol=1e-3)
    labels = fitted.predict(rows.X, sensitive_features=rows.group)
    assert np.array_equal(labels, (got > 0.5).astype(int))


def test_the_group_is_asked_for_where_it_is_needed_only() -> None:
    rows = problem()
    published = DragonNetClassifier(variant="published", **PLAIN).fit_problem(rows)
    assert published.needs_group
    assert not DragonNetClassifier().needs_group
    with pytest.raises(InputError, match="pass sensitive_features"):
        published.predict_proba(rows.X)
    corrected = DragonNetClassifier(**PLAIN).fit_problem(rows)
    assert corrected.predict(rows.X).shape == (120,)


def test_the_effect_is_that_of_the_group_on_testing() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    group = rng.integers(2, size=2000)
    tested = rng.random(2000) < np.where(group == 1, 0.8, 0.2)
    y = np.where(tested, (X[:, 0] > 0).astype(float), np.nan)
    rows = SelectiveLabels.from_arrays(X, y, tested=tested, group=group)
    fitted = DragonNetClassifier(hidden=(16,), steps=300, learning_rate=1e-2, random_state=0)
    effect = fitted.fit_problem(rows).effect(X)
    assert effect.mean() == pytest.approx(0.6, abs=0.05)
    assert effect.std() < 0.15


def test_the_reference_sets_the_sign() -> None:
    rows = problem()
    first = DragonNetClassifier(**PLAIN).fit_problem(rows).effect(rows.X)
    second = DragonNetClassifier(reference=1, **PLAIN).fit_problem(rows).effect(rows.X)
    np.testing.assert_allclose(second, -first, atol=1e-6)


def test_three_groups_have_three_heads_and_the_effect_is_against_the_reference() -> None:
    dragon = Dragon(2, (5,), n_groups=3, reference=1)
    flat = dragon.initial(0).repeat(2, 1) + 0.1 * torch.randn(2, dragon.n_parameters)
    X = torch.randn(7, 2)
    groups, heads = dragon.outputs(flat, X)
    assert groups.shape == heads.shape == (2, 7, 3)
    share = (groups.softmax(-1) + 0.01) / 1.03
    shift = flat[:, -1, None, None] * torch.tensor([0.5, -1, 0.5]) / share
    p = (heads.sigmoid() + shift).clamp(0, 1)
    expected = (p[..., 0] + p[..., 2]) / 2 - p[..., 1]
    torch.testing.assert_close(dragon.effect(flat, X), expected)
    rows = problem(n_groups=3)
    assert np.isfinite(
        DragonNetClassifier(reference=2, **PLAIN).fit_problem(rows).effect(rows.X)
    ).all()


def test_rows_without_weight_have_no_influence() -> None:
    dragon = Dragon(2, (5,), 2)
    flat = dragon.initial(0)[None]
    X = torch.randn(6, 2)
    columns = {
        "y": torch.tensor([0.0, 1, 0, 1, 1, 1]),
        "tested": torch.ones(6),
        "group": torch.tensor([0, 1, 0, 1, 0, 0]),
        "weight": torch.tensor([1.0, 1, 1, 1, 0, 0]),
    }
    shorter = Rows(X[:4], {name: column[:4] for name, column in columns.items()})
    for variant in ("published", "corrected"):
        method = DragonNetClassifier(variant=variant, targeted_weight=1.0)
        long, short = (
            method._dragon_loss(dragon, flat, rows) for rows in (Rows(X, columns), shorter)
        )
        torch.testing.assert_close(long, short)


@pytest.mark.filterwarnings("ignore:.*no groups to compare")
def test_a_single_group_is_y_obs_and_says_so() -> None:
    rows = problem(n_groups=1)
    with pytest.warns(DataWarning, match="the same as y-obs"):
        fitted = DragonNetClassifier(**PLAIN).fit_problem(rows)
    plain = ObservedLabelsClassifier(**PLAIN).fit_problem(rows)
    np.testing.assert_allclose(fitted.predict_proba(rows.X), plain.predict_proba(rows.X), atol=1e-6)


@pytest.mark.parametrize("variant", ["published", "corrected"])
@pytest.mark.parametrize(
    "options", [{}, {"patience": 1, "steps": 30, "n_members": 2}, {"targeted_weight": 0.5}]
)
def test_a_fleet_gives_what_single_fits_give(variant: str, options: dict) -> None:
    options = PLAIN | options | {"variant": variant}
    problems = [problem(100, seed=1), problem(140, seed=2)]
    held = [problem(50, seed=3), problem(60, seed=4)]
    many = fit_many(
        DragonNetClassifier(**options), problems, validations=held, random_states=[3, 4]
    )
    for one, rows, validation, seed in zip(many, problems, held, (3, 4), strict=True):
        single = DragonNetClassifier(**options | {"random_state": seed})
        single.fit_problem(rows, validation=validation)
        group = {"sensitive_features": rows.group}
        np.testing.assert_allclose(
            one.predict_proba(rows.X, **group), single.predict_proba(rows.X, **group), atol=1e-4
        )
        assert one.n_iter_ == single.n_iter_


def test_minibatches_run() -> None:
    rows = problem(200)
    for variant in ("published", "corrected"):
        fitted = DragonNetClassifier(variant=variant, batch_size=8, **PLAIN).fit_problem(rows)
        assert np.isfinite(fitted.effect(rows.X)).all()


@pytest.mark.parametrize("targeted", [None, 1.0])
@pytest.mark.parametrize("variant", ["published", "corrected"])
def test_saved_and_loaded_it_predicts_the_same(
    variant: str, targeted: float | None, tmp_path: Path
) -> None:
    rows = problem()
    fitted = DragonNetClassifier(variant=variant, targeted_weight=targeted, **PLAIN).fit_problem(
        rows
    )
    fitted.save(tmp_path / "model")
    again = DragonNetClassifier.load(tmp_path / "model")
    group = {"sensitive_features": rows.group}
    assert np.array_equal(
        again.predict_proba(rows.X, **group), fitted.predict_proba(rows.X, **group)
    )
    assert np.array_equal(again.effect(rows.X), fitted.effect(rows.X))


def test_what_cannot_be_is_refused() -> None:
    rows = problem(n_groups=3)
    with pytest.raises(InputError, match="second of two groups, but there are 3"):
        DragonNetClassifier(variant="published", **PLAIN).fit_problem(rows)
    with pytest.raises(InputError, match="numbered 0 to 2"):
        DragonNetClassifier(reference=3, **PLAIN).fit_problem(rows)
    with pytest.raises(ValueError, match="`variant` must be one of"):
        DragonNetClassifier(variant="right", **PLAIN).fit_problem(rows)
    with pytest.raises(ValueError, match="against the first group: leave reference at 0"):
        DragonNetClassifier(variant="published", reference=1, **PLAIN).fit_problem(problem())
    with pytest.raises(ValueError, match="trunk and heads"):
        DragonNetClassifier(**PLAIN | {"hidden": ()}).fit_problem(rows)
