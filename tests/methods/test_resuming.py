"""Fits that are ended and go on: the same bits, nothing done twice, nobody else's checkpoint."""

import numpy as np
import pytest
import torch
from choices import each_once
from sklearn.linear_model import LogisticRegression
from torch import nn

import dcem.methods.em_networks as stages
from dcem.engine import checkpoint
from dcem.methods import fit_many, make
from dcem.methods.propensity import PropensitySettings
from dcem.methods.self_ensemble import SelfEnsembleClassifier
from dcem.table.labels import SelectiveLabels

ROUNDS = 5
COMMON = {"hidden": (8,), "device": "cpu"}
METHODS = {
    "dcem": {
        "max_iter": ROUNDS,
        "steps": 6,
        "patience": 2,
        "start": "tested-only",
        "propensity_settings": PropensitySettings(hidden=(8,), steps=10),
    },
    "sar-em": {"max_iter": ROUNDS, "steps": 6, "patience": 2, "learning_rate": 1e-2},
    "self": {"max_iter": ROUNDS - 1, "steps": 12, "patience": 2, "learning_rate": 0.1},
}
VARIANTS = [(name, variant) for name in METHODS for variant in ("corrected", "published")]


def problem(n: int, seed: int) -> tuple[SelectiveLabels, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    group = rng.integers(2, size=n)
    tested = rng.random(n) < 1 / (1 + np.exp(-X[:, 0] - group))
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 1]))).astype(float)
    return SelectiveLabels.from_arrays(X, np.where(tested, y, np.nan), group=group), y


class Killed(BaseException):
    """As the end of a run's time: no ordinary exception."""


class Fits:
    """Three problems of different lengths as one fleet; notes the rounds of each call."""

    def __init__(self, name, *, seeds=(1, 2, 3), data=0, **params):
        self.estimator = make(name, **COMMON | METHODS[name] | params)
        self.train = [problem(n, data + n) for n in (90, 120, 100)]
        self.held = [problem(60, data + seed) for seed in (7, 8, 9)]
        self.seeds = seeds

    def run(self, file=None, die_after=None):
        self.rounds = []

        def progress(done, total):
            self.rounds.append(done)
            if done == die_after:
                raise Killed

        pairs = zip(self.train, self.held, strict=True)
        truths = [(one[1], held[1]) for one, held in pairs] if self.estimator.uses_truth else None
        self.fitted = fit_many(
            self.estimator,
            [one for one, _ in self.train],
            validations=[one for one, _ in self.held],
            truths=truths,
            random_states=self.seeds,
            checkpoint=file,
            progress=progress,
        )
        return self.fitted


FITTED = ("n_iter_", "best_iter_", "termination_", "history_", "train_rows_")
OF_SOME = ("pseudo_labels_", "propensity_", "kept_")
NETWORKS = ("fleet_", "propensity_model_")


def same(one, other):
    """Two fits have the same fitted attributes, bit by bit."""
    for name in (*FITTED, *(name for name in OF_SOME if hasattr(one, name))):
        np.testing.assert_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in NETWORKS:
        fleets = [getattr(fit, name, []) for fit in (one, other)]  # a list in an ensemble
        for a, b in zip(*(x if isinstance(x, list) else [x] for x in fleets), strict=True):
            assert torch.equal(a.flat, b.flat), name


@pytest.mark.parametrize(("die_after", "batch_size"), each_once([1, 3], [None, 32]))
@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_a_fleet_that_was_ended_goes_on_to_the_same_bits(
    tmp_path, name, variant, batch_size, die_after
):
    options = {"variant": variant, "batch_size": batch_size}
    whole, file = Fits(name, **options), tmp_path / "run"
    whole.run()
    with pytest.raises(Killed):
        Fits(name, **options).run(file, die_after)
    again = Fits(name, **options)
    again.run(file)
    assert again.rounds == whole.rounds[die_after:]
    for one, other in zip(again.fitted, whole.fitted, strict=True):
        same(one, other)


@pytest.mark.parametrize("name", METHODS)
def test_an_ensemble_of_one_problem_goes_on_too(tmp_path, name):
    fits = [Fits(name, n_members=2, seeds=[4]) for _ in range(3)]
    for one in fits:
        one.train, one.held = one.train[:1], one.held[:1]
    with pytest.raises(Killed):
        fits[0].run(tmp_path / "run", 2)
    same(fits[1].run(tmp_path / "run")[0], fits[2].run()[0])
    assert fits[1].rounds[0] == 3


@pytest.mark.parametrize("name", METHODS)
def test_a_finished_fit_is_not_trained_again(tmp_path, name):
    first = Fits(name).run(tmp_path / "run")
    again = Fits(name)
    for one, other in zip(again.run(tmp_path / "run"), first, strict=True):
        same(one, other)
    assert again.rounds == []


@pytest.mark.parametrize(
    "other", [{"data": 1}, {"seeds": (1, 2, 4)}, {"steps": 7}, {"weight_decay": 0.1}]
)
@pytest.mark.parametrize("name", METHODS)
def test_the_checkpoint_of_another_fit_is_not_used(tmp_path, name, other):
    with pytest.raises(Killed):
        Fits(name).run(tmp_path / "run", 3)
    anew, whole = Fits(name, **other), Fits(name, **other)
    for one, expected in zip(anew.run(tmp_path / "run"), whole.run(), strict=True):
        same(one, expected)
    assert anew.rounds == whole.rounds


def test_a_network_of_ones_own_is_known_by_its_weights(tmp_path):
    def factory(width):
        return lambda n: nn.Sequential(nn.Linear(n, width), nn.ReLU(), nn.Linear(width, 2))

    with pytest.raises(Killed):
        Fits("self", network=factory(5)).run(tmp_path / "run", 2)
    goes_on, other = Fits("self", network=factory(5)), Fits("self", network=factory(6))
    other.run(tmp_path / "run")
    assert other.rounds[0] == 1
    with pytest.raises(Killed):
        Fits("self", network=factory(5)).run(tmp_path / "run", 2)
    goes_on.run(tmp_path / "run")  # a new function, the same network
    assert goes_on.rounds[0] == 3


# -- the stages before EM --------------------------------------------------------------------------


def forbidden(*_, **__):
    raise AssertionError("done a second time")


@pytest.mark.parametrize("start", ["tested-only", "algorithm-1"])
@pytest.mark.parametrize("carry", [True, False])
def test_dcem_goes_on_without_training_its_first_stages_again(tmp_path, monkeypatch, start, carry):
    """Trained again on another processor they would come out a little different."""
    options = {"start": start, "carry_weights": carry}
    whole = Fits("dcem", **options).run()
    with pytest.raises(Killed):
        Fits("dcem", **options).run(tmp_path / "run", 2)
    monkeypatch.setattr(stages, "fit_propensity", forbidden)
    monkeypatch.setattr(stages, "_fit_tested", forbidden)
    for one, other in zip(Fits("dcem", **options).run(tmp_path / "run"), whole, strict=True):
        same(one, other)


def test_dcem_keeps_its_stages_before_the_first_iteration(tmp_path, monkeypatch):
    def killed(*_, **__):
        raise Killed

    whole = Fits("dcem").run()
    with monkeypatch.context() as patch:
        patch.setattr(stages, "_fit_tested", killed)
        with pytest.raises(Killed):
            Fits("dcem").run(tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(stages, "fit_propensity", forbidden)
        patch.setattr(stages, "run_em", killed)
        with pytest.raises(Killed):
            Fits("dcem").run(tmp_path / "run")
    monkeypatch.setattr(stages, "fit_propensity", forbidden)
    monkeypatch.setattr(stages, "_fit_tested", forbidden)
    for one, other in zip(Fits("dcem").run(tmp_path / "run"), whole, strict=True):
        same(one, other)


def test_the_log_odds_of_a_foreign_model_stay_as_they_were(tmp_path, monkeypatch):
    options = {"propensity": LogisticRegression()}
    whole = Fits("dcem", **options).run()
    with pytest.raises(Killed):
        Fits("dcem", **options).run(tmp_path / "run", 2)
    original = stages.foreign_log_odds

    def otherwise(*arguments):
        parts, models = original(*arguments)
        return [u + 1 for u in parts], models

    monkeypatch.setattr(stages, "foreign_log_odds", otherwise)
    again = Fits("dcem", **options)
    for one, other in zip(again.run(tmp_path / "run"), whole, strict=True):
        np.testing.assert_array_equal(one.pseudo_labels_, other.pseudo_labels_)
        np.testing.assert_array_equal(one.propensity_, other.propensity_)
    assert again.rounds[0] == 3


def test_sar_em_keeps_its_start(tmp_path, monkeypatch):
    from dcem.methods.sar_em import SarEMClassifier, _Split

    whole = Fits("sar-em").run()

    def killed(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(_Split, "losses", killed)  # in the first iteration
        with pytest.raises(Killed):
            Fits("sar-em").run(tmp_path / "run")
    monkeypatch.setattr(SarEMClassifier, "_balanced_start", forbidden)
    for one, other in zip(Fits("sar-em").run(tmp_path / "run"), whole, strict=True):
        same(one, other)


def test_self_keeps_its_first_round(tmp_path, monkeypatch):
    whole = Fits("self").run()
    with pytest.raises(Killed):
        Fits("self").run(tmp_path / "run", 1)
    assert checkpoint.read(tmp_path / "run")[1]["iterations_done"] == 1
    rounds = []
    original = SelfEnsembleClassifier._teach
    monkeypatch.setattr(
        SelfEnsembleClassifier, "_teach", lambda *a: (rounds.append(1), original(*a))[1]
    )
    for one, other in zip(Fits("self").run(tmp_path / "run"), whole, strict=True):
        same(one, other)
    assert len(rounds) == max(one.n_iter_ for one in whole)  # of n_iter_ + 1


def test_parts_that_memory_forces_apart_have_files_of_their_own(tmp_path, monkeypatch):
    """Members that do not fit together train one after the other, and each goes on by itself."""
    original = SelfEnsembleClassifier._train

    def small(self, data):
        if len(data.seeds) > 1:
            raise MemoryError
        return original(self, data)

    monkeypatch.setattr(SelfEnsembleClassifier, "_train", small)

    def fits():
        one = Fits("self", n_members=2, seeds=[4])
        one.train, one.held = one.train[:1], one.held[:1]
        return one

    first, again = fits(), fits()
    for one in (first, again):
        with pytest.warns(RuntimeWarning, match="does not fit into memory"):
            one.run(tmp_path / "run")
    assert len(first.rounds) > 2
    assert again.rounds == []
