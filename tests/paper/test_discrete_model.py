"""Theorems 3.1 and 3.2 by enumeration: what holds, under which reading, and what does not."""

import numpy as np
import pytest
from scipy.special import xlogy

from dcem.paper import theory as world
from dcem.paper.theory import DiscreteModel, m_step_row_loss, saturated_fixed_point

SEEDS = range(8)
N_X, N_A = 4, 3


def random_world(seed):
    rng = np.random.default_rng(seed)
    p_xa = rng.dirichlet(np.ones(N_X * N_A)).reshape(N_X, N_A)
    return DiscreteModel.censored(
        p_xa, rng.uniform(0.05, 0.95, N_X), rng.uniform(0.05, 0.95, (N_X, N_A))
    )


def random_f(seed):
    return np.random.default_rng(seed + 1000).uniform(0.05, 0.95, N_X)


def random_belief(f, seed):
    """Any pseudo-labels that respect the record: free where untested, ỹ where tested."""
    q = world.pseudo_labels(f, N_A)
    q[0] = np.random.default_rng(seed + 2000).uniform(0.01, 0.99, q[0].shape)
    return q


def constants(data, q):
    """What the bound has and the M-step objective drops: E log P(t, x, a), and the entropy of q."""
    design = data.observed().sum(axis=1)
    return xlogy(design, design).sum() + (data.observed() * world.entropy(q)).sum()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_table_is_the_stated_distribution(seed):
    data = random_world(seed)
    joint = data.joint()
    assert joint.sum() == pytest.approx(1)
    np.testing.assert_allclose(joint.sum(axis=(0, 1, 2)), data.p_xa)
    np.testing.assert_allclose(joint[1].sum(axis=(0, 1)) / data.p_xa, data.p_y)
    np.testing.assert_allclose(joint[:, 1].sum(axis=(0, 1)) / data.p_xa, data.t_hat)
    y, t, y_seen = np.indices((2, 2, 2))
    assert np.all(joint[y_seen != y * t] == 0)


# ---------------------------------------------------------------- Theorem 3.1, the E-step


@pytest.mark.parametrize("seed", SEEDS)
def test_posterior_is_the_e_step_formula(seed):
    data = random_world(seed)
    possible = data.observed() > 0
    assert possible.sum() == 3 * N_X * N_A  # all but (t=0, ỹ=1)
    formula = world.pseudo_labels(data.p_y[:, 0], N_A)
    np.testing.assert_allclose(data.posterior()[possible], formula[possible], atol=1e-14)


def test_formula_fails_when_the_outcome_follows_the_group():
    data = random_world(0)
    data = DiscreteModel(data.p_xa, np.tile([0.1, 0.3, 0.6], (N_X, 1)), data.p_t)
    p_y_given_x = (data.p_xa * data.p_y).sum(axis=1) / data.p_xa.sum(axis=1)
    gap = data.posterior()[0, 0] - p_y_given_x[:, None]
    assert np.abs(gap).max() > 0.1


def test_formula_is_too_high_when_clinicians_test_the_sick():
    data = random_world(0)
    p_t = np.stack([np.full((N_X, N_A), 0.1), np.full((N_X, N_A), 0.7)], axis=-1)
    data = DiscreteModel(data.p_xa, data.p_y, p_t)
    assert np.all(data.posterior()[0, 0] < data.p_y - 0.05)
    quoted = DiscreteModel(np.ones((1, 1)), np.array([[0.3]]), np.array([[[0.1, 0.7]]]))
    assert quoted.posterior()[0, 0].item() == pytest.approx(0.125)  # in docs/theory.md


# ---------------------------------------------------------------- Theorem 3.2, the bound


@pytest.mark.parametrize("seed", SEEDS)
def test_bound_holds_for_any_belief_and_is_tight_at_the_posterior(seed):
    data, f = random_world(seed), random_f(seed)
    model = data.with_outcome(f)
    evidence = world.log_likelihood(data, model)
    posterior = world.pseudo_labels(f, N_A)
    assert world.evidence_lower_bound(data, model, posterior) == pytest.approx(evidence, abs=1e-13)
    belief = random_belief(f, seed)
    assert world.evidence_lower_bound(data, model, belief) < evidence - 1e-4


def test_bound_excludes_beliefs_that_contradict_the_record():
    data = random_world(0)
    believes_in_missed_disease = np.full((2, 2, N_X, N_A), 0.5)
    assert world.evidence_lower_bound(data, data, believes_in_missed_disease) == -np.inf


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_m_step_objective_is_the_bound_less_constants(seed):
    data, f = random_world(seed), random_f(seed)
    q = random_belief(f, seed)
    for g in (f, random_f(seed + 1)):  # the same constant for every f: raising one raises the other
        bound = world.evidence_lower_bound(data, data.with_outcome(g), q)
        objective = world.m_step_objective(data, g, q, reg=0)
        assert bound == pytest.approx(objective + constants(data, q), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_m_step_objectives_lie_below_the_conditional_likelihood(seed):
    data, f = random_world(seed), random_f(seed)
    q = random_belief(f, seed)
    likelihood = world.conditional_log_likelihood(data, data.with_outcome(f))
    exact = world.m_step_objective(data, f, q, reg=0)
    published = world.m_step_objective(data, f, q, reg=1)
    assert published < exact < likelihood


def test_printed_inequality_needs_the_conditional_likelihood():
    # Everybody tested, the outcome certain: the objective is 0 and the joint likelihood is below 0.
    p_xa = np.full((2, 2), 0.25)
    data = DiscreteModel.censored(p_xa, np.array([0.0, 1.0]), np.ones((2, 2)))
    f = np.array([0.0, 1.0])
    objective = world.m_step_objective(data, f, world.pseudo_labels(f, 2), reg=1)
    assert objective == 0
    assert world.log_likelihood(data, data) == pytest.approx(-np.log(4))
    assert world.conditional_log_likelihood(data, data) == 0


# ---------------------------------------------------------------- EM built from the two


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("reg", [0.0, 1.0])
def test_m_step_maximises_its_objective(seed, reg):
    data, f = random_world(seed), random_f(seed)
    q = world.pseudo_labels(f, N_A)
    best = world.m_step(data, q, reg)
    top = world.m_step_objective(data, best, q, reg)
    for x in range(N_X):
        for move in (-1e-3, 1e-3):
            other = best.copy()
            other[x] += move
            assert world.m_step_objective(data, other, q, reg) < top


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_exact_em_never_lowers_the_likelihood_and_ends_at_the_truth(seed):
    data = random_world(seed)
    path = world.em(data, random_f(seed), iterations=500, reg=0)
    likelihood = [world.log_likelihood(data, data.with_outcome(f)) for f in path[:100]]
    assert np.all(np.diff(likelihood) >= -1e-14)
    np.testing.assert_allclose(path[-1], data.p_y[:, 0], atol=1e-9)


def test_published_m_step_can_lower_bound_and_likelihood():
    data = random_world(0)
    truth = data.p_y[:, 0]
    q = world.pseudo_labels(truth, N_A)
    after = world.m_step(data, q, reg=1)
    assert world.m_step_objective(data, after, q, 1) > world.m_step_objective(data, truth, q, 1)
    old, new = data.with_outcome(truth), data.with_outcome(after)
    assert (
        world.evidence_lower_bound(data, new, q) < world.evidence_lower_bound(data, old, q) - 1e-3
    )
    assert world.log_likelihood(data, new) < world.log_likelihood(data, old) - 1e-3


@pytest.mark.parametrize("seed", SEEDS)
def test_published_objective_is_the_bound_of_another_model(seed):
    """P(y=1|x) = f and P(ỹ=1 | y=1, x, a) = f·t̂: for its untested cells, Jensen's bound is ours."""
    data, f = random_world(seed), random_f(seed)
    f, t = f[:, None], data.t_hat
    joint = np.stack([(1 - f) + 0 * t, f * (1 - f * t)])  # P(y, ỹ=0 | x, a)
    evidence = np.log(joint.sum(axis=0))
    np.testing.assert_allclose(evidence, np.log1p(-(f**2) * t))

    def bound(q):  # −J + entropy, in the untested cells
        return -m_step_row_loss(f, q, t) + world.entropy(q)

    own_posterior = joint[1] / joint.sum(axis=0)
    np.testing.assert_allclose(bound(own_posterior), evidence, atol=1e-13)
    assert np.all(own_posterior < f)  # so DCEM's Q = f is not this model's E-step,
    assert np.all(bound(f + 0 * t) < evidence)  # and the bound is not tight there


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_published_em_ends_at_the_stated_fixed_point(seed):
    data = random_world(seed)  # one group, so that t̂ depends on x alone
    p_x = data.p_xa.sum(axis=1, keepdims=True)
    data = DiscreteModel.censored(p_x, data.p_y[:, 0], data.t_hat[:, :1])
    end = world.em(data, random_f(seed), iterations=500, reg=1)[-1]
    expected = saturated_fixed_point(data.p_y[:, 0], data.t_hat[:, 0])
    np.testing.assert_allclose(end, expected, atol=1e-9)
    assert np.all(end > data.p_y[:, 0])
