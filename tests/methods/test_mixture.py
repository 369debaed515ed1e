"""Two-component mixtures of a fleet against scikit-learn's, one at a time."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from dcem.methods.mixture import _k_means, _two_means, fit_two_normals


def samples(n: int = 400) -> torch.Tensor:
    rng = np.random.default_rng(0)
    separate = np.concatenate([rng.normal(0.2, 0.05, n - n // 4), rng.normal(0.8, 0.1, n // 4)])
    overlapping = np.concatenate([rng.normal(0.3, 0.1, n // 2), rng.normal(0.55, 0.15, n - n // 2)])
    skewed = rng.exponential(0.1, n)
    return torch.from_numpy(np.stack([separate, overlapping, skewed]))


SETTINGS = [
    {"max_iter": 100, "tol": 1e-3, "reg_covar": 1e-6},
    {"max_iter": 10, "tol": 1e-2, "reg_covar": 5e-4},
]


def from_split(sample: np.ndarray, reg_covar: float) -> dict[str, np.ndarray]:
    """scikit-learn's starting values for the best split in two clusters."""
    parts = [(sample[sample <= t], sample[sample > t]) for t in np.sort(sample)[:-1]]
    best = min(parts, key=lambda two: sum(part.var() * len(part) for part in two))
    return {
        "weights_init": np.array([len(part) / len(sample) for part in best]),
        "means_init": np.array([[part.mean()] for part in best]),
        "precisions_init": np.array([[[1 / (part.var() + reg_covar)]] for part in best]),
    }


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("settings", SETTINGS)
def test_every_mixture_of_a_fleet_is_the_one_scikit_learn_finds(settings):
    x = samples()
    fitted = fit_two_normals(x, torch.ones_like(x), **settings)
    lower = fitted.probability_of_lower(x)
    for m, sample in enumerate(x.numpy()):
        start = from_split(sample, settings["reg_covar"])
        theirs = GaussianMixture(2, **settings, **start).fit(sample[:, None])
        np.testing.assert_allclose(fitted.mean[m], theirs.means_[:, 0], rtol=1e-7)
        np.testing.assert_allclose(fitted.variance[m], theirs.covariances_[:, 0, 0], rtol=1e-7)
        np.testing.assert_allclose(fitted.share[m], theirs.weights_, rtol=1e-7)
        posterior = theirs.predict_proba(sample[:, None])[:, theirs.means_[:, 0].argmin()]
        np.testing.assert_allclose(lower[m], posterior, atol=1e-7)


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("settings", SETTINGS)
def test_scikit_learns_own_start_leads_to_nearly_the_same_split(settings):
    x = samples()
    lower = fit_two_normals(x, torch.ones_like(x), **settings).probability_of_lower(x) > 0.5
    for m, sample in enumerate(x.numpy()):
        theirs = GaussianMixture(2, random_state=0, **settings).fit(sample[:, None])
        clean = theirs.predict_proba(sample[:, None])[:, theirs.means_[:, 0].argmin()] > 0.5
        assert (clean == lower[m].numpy()).mean() > 0.97


def test_float32_on_twenty_thousand_rows_stays_close_to_float64():
    x = samples(20_000)
    exact = fit_two_normals(x, torch.ones_like(x))
    rough = fit_two_normals(x.float(), torch.ones_like(x).float())
    torch.testing.assert_close(rough.mean.double(), exact.mean, atol=1e-3, rtol=0)
    torch.testing.assert_close(rough.variance.double(), exact.variance, atol=1e-3, rtol=0)


def test_a_mixture_does_not_depend_on_its_fleet():
    x = samples()
    together = fit_two_normals(x, torch.ones_like(x)).mean
    alone = torch.cat([fit_two_normals(one[None], torch.ones_like(one)[None]).mean for one in x])
    torch.testing.assert_close(together, alone, atol=1e-12, rtol=0)


def test_weights_count_rows_and_zero_is_absent():
    x = samples(60)[:1]
    weight = torch.ones_like(x)
    weight[:, ::3] = 2
    twice = x.repeat_interleave(weight[0].long(), 1)
    padded = torch.cat([x, torch.full((1, 9), 77.0)], 1)
    plain = fit_two_normals(twice, torch.ones_like(twice))
    weighted = fit_two_normals(padded, torch.cat([weight, torch.zeros(1, 9)], 1))
    torch.testing.assert_close(weighted.mean, plain.mean)
    torch.testing.assert_close(weighted.variance, plain.variance)


def test_the_start_is_the_best_split_in_two_clusters():
    x = torch.from_numpy(np.random.default_rng(1).exponential(size=(3, 31)))
    found = _two_means(x, torch.ones_like(x))
    for sample, threshold in zip(x.numpy(), found[:, 0].numpy(), strict=True):

        def spread(value, sample=sample):
            low, high = sample[sample <= value], sample[sample > value]
            return ((low - low.mean()) ** 2).sum() + ((high - high.mean()) ** 2).sum()

        assert threshold == min(np.sort(sample)[:-1], key=spread)


def test_a_constant_sample_gives_finite_numbers():
    x = torch.full((1, 20), 0.5)
    fitted = fit_two_normals(x, torch.ones_like(x))
    assert torch.isfinite(fitted.mean).all()
    assert torch.isfinite(fitted.probability_of_lower(x)).all()


def test_random_starts_end_where_those_of_scikit_learn_end_and_as_often():
    rng = np.random.default_rng(0)
    bulk, shoulder = rng.normal(0.01, 0.01, 2000), rng.uniform(0.05, 0.2, 1880)
    sample = np.concatenate([bulk, shoulder, rng.uniform(0.4, 0.9, 120)])  # two stable splits
    runs = 150
    theirs = [
        KMeans(2, n_init=1, random_state=seed).fit(sample[:, None]).cluster_centers_.mean()
        for seed in range(runs)
    ]
    x = torch.from_numpy(sample).expand(runs, -1)
    padded = torch.cat([x, torch.full((runs, 7), 55.0)], 1)
    weight = torch.cat([torch.ones_like(x), torch.zeros(runs, 7)], 1)
    ours = _k_means(padded, weight, torch.from_numpy(rng.uniform(size=(runs, 3))))[:, 0].numpy()
    above = [np.mean(sample[:, None] > np.asarray(splits), axis=0) for splits in (theirs, ours)]
    small, large = (np.mean(shares < 0.1) for shares in above)  # how often the few stand alone
    assert 0.05 < small < 0.95
    assert abs(small - large) < 0.15
    for few in (True, False):  # and each of the two is the same split
        ends = [np.median(shares[(shares < 0.1) == few]) for shares in above]
        assert abs(ends[0] - ends[1]) < 0.02
