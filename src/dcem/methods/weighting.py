"""Methods that correct for who was tested by the probability of being tested.

Both learn from tested rows, whose labels are the truth, and let a row that was unlikely to be
tested represent the many like it that were not. Where tests were drawn by a known design (the role
`testing_probability`), its probabilities take the place of modelled ones, as small as they are.
They need *overlap*: a positive chance of a test everywhere. Sharp testing rules break that, and the
weights explode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dcem.estimation.folds import best_rows, in_turn
from dcem.learners import Sample, make_learner
from dcem.methods.fitting import Prepared
from dcem.methods.network import VARIANTS
from dcem.methods.registry import RELEASED, SINGLE, SLOW, WIDE, PropensitySettings, renamed
from dcem.methods.supervised import LearnerClassifier, Lesson, fit_members, require_learner
from dcem.methods.support import with_group
from dcem.methods.training_table import TrainingTable
from dcem.table.messages import InputError, require_one_of

if TYPE_CHECKING:
    from dcem.methods.fleets import FleetData, Trained

FOLDS = 5  # of a cross-fitted model of testing
SMALLEST = 1e-30  # an unclipped weight stays finite: infinity times a weight of 0 is not a number


class InversePropensityClassifier(LearnerClassifier):
    """Tested-only, each row weighted by one over its probability of being tested.

    *Idea.* A tested person who had a chance of one in ten of being tested represents ten people.
    With these weights the tested rows look like everybody, and the network spends its capacity
    where people are rather than where tests are.

    *Assumption.* Features and group explain who is tested; everybody has a real chance of being
    tested.

    *When it fails.* Under sharp testing rules a few rows with tiny probabilities carry nearly all
    the weight, so the variance is that of a handful of people. Clipping trades this variance for
    bias. Weights say nothing about regions that were never tested. The labels of tested rows are
    right at given features, so weighting changes what a flexible network learns only where it has
    to compromise; on the simulation the result is close to tested-only.

    *Variants.* "corrected" clips the probability from below and normalises the weights to mean 1.
    Each person's weight comes from a model of testing that was not fitted to this person: networks
    are fitted to either half of the rows, other learners in five folds. "published" does none of
    this. (The released class trains on all rows, untested ones as negatives, with a propensity
    fitted to the wrong split; the published row cannot come from it. What is implemented here is
    what the paper describes. It does not give that row either: AUC .796 [.662, .864] against the
    published .829 [.598, .874], ROC gap .045 against .048; close, but not equal.)

    Parameters
    ----------
    variant
        "corrected" or "published".
    clip
        The smallest modelled probability that "corrected" divides by: no weight exceeds 1/clip
        before normalisation. Those of a known design are right, and not clipped. "published" clips
        none, and refuses any other value than the default.
    propensity_settings
        How the network of P(tested | x, a) is trained; None is the variant's way: 1000 steps and
        last weights if published, else up to 300 faster ones and the best by validation rows.

    Attributes
    ----------
    propensity_, propensity_model_
        P(tested) of each training row, unclipped, from a model that did not see it, and the
        networks of both halves ("published": one network of all rows).

    References
    ----------
    P. Rosenbaum and D. Rubin, "The central role of the propensity score in observational studies
    for causal effects", Biometrika 1983.
    """

    variant: str = "corrected"
    clip: float = 0.05
    propensity_settings: PropensitySettings | None = None

    name: ClassVar[str] = "ipw"
    in_short: ClassVar[str] = "learns from the tested, weighted to represent all"
    as_published: ClassVar[Mapping[str, Any]] = {
        "sinusoid": SINGLE | RELEASED,
        "sepsis": WIDE | SLOW,
    }

    def _train(self, data: FleetData) -> Trained:
        from dcem.methods.weighting_networks import train_ipw

        self._check_parameters()
        return train_ipw(self, data, super()._train)

    def _fit(self, data: Prepared) -> None:
        self._check_parameters()
        if self.variant == "published":
            raise ValueError("The published ipw is a network: leave `learner` at its default.")
        require_learner(self, weights=True)
        self.propensity_, watched, self.propensity_model_ = propensities(self, data)
        more = [None if e is None else {"e": e} for e in (self.propensity_, watched)]
        self.models_ = fit_members(self, data, *more)

    def _check_parameters(self) -> None:
        require_one_of("variant", self.variant, VARIANTS)
        _check_clip(self.clip)
        if self.variant == "published" and self.clip != InversePropensityClassifier.clip:
            raise ValueError(
                "The published ipw divides by the unclipped probability: leave `clip` at its "
                "default, or choose variant='corrected'."
            )

    def _lesson(self, rows: Any, n_groups: int) -> Lesson:
        published = self.variant == "published"
        factor = 1 / _bounded(rows["e"], rows, SMALLEST if published else self.clip)
        return Lesson(rows["y"], keep=rows["tested"], factor=factor, mean_one=not published)


class DoublyRobustClassifier(LearnerClassifier):
    """Regress a pseudo-outcome that is right if either of two models is (DR-learner).

    *Idea.* Fit m(x), the outcome among the tested, and e(x, a), the probability of being tested.
    Everybody gets the pseudo-outcome m(x) + t (y - m(x)) / e(x, a): the model's prediction,
    corrected for tested people by its error, in proportion to how many untested people they
    represent. Its mean at given features is P(y | x) if m or e is right. A network is then fitted
    to it by squared error. (The untested label counts as zero, so the other arm of the usual
    two-arm pseudo-outcome vanishes.) Each person's pseudo-outcome comes from models that did not
    see their label: the rows are halved, m and e come from one half and pseudo-outcomes of the
    other are regressed; the two resulting networks are averaged.

    *Assumption.* That of inverse weighting: features and group explain who is tested, and everybody
    has a real chance of being tested.

    *When it fails.* Under sharp testing rules e is tiny: clipping biases the correction, and m
    extrapolates to regions without labels, so that neither model is right. Half the rows fit the
    models, half the final network. The paper's class was never released. This one follows Kennedy's
    definition, so its results may differ from the published row.

    Parameters
    ----------
    clip
        The smallest modelled probability of being tested to divide by. Those of a known design are
        right, and not clipped.
    propensity_settings
        How the network of P(tested | x, a) is trained; None takes 1000 steps without `patience`,
        else up to 300 faster ones and the best weights by validation rows.

    Attributes
    ----------
    pseudo_outcome_, propensity_
        Of each training row, from the models that did not see it; the probability unclipped.
    propensity_model_
        The networks of both halves.

    References
    ----------
    E. Kennedy, "Towards optimal doubly robust estimation of heterogeneous causal effects",
    Electronic Journal of Statistics 2023.
    """

    clip: float = 0.05
    propensity_settings: PropensitySettings | None = None

    name: ClassVar[str] = "dr-learner"
    in_short: ClassVar[str] = "corrects a model of the outcome by weighted tests"
    step_cost: ClassVar[float] = 4.0

    def _train(self, data: FleetData) -> Trained:
        from dcem.methods.weighting_networks import train_doubly_robust

        _check_clip(self.clip)
        return train_doubly_robust(self, data)

    def _fit(self, data: Prepared) -> None:
        """Nuisances of either half, pseudo-outcomes of the other, and a model of each.

        `models_` holds two models per member; `propensity_model_` is of the first half.
        """
        _check_clip(self.clip)
        parts = [part for part in data.tables(raw=True) if part is not None]
        of_testing = [
            with_group(part.X, part.group, data.n_groups)
            for part in data.tables()
            if part is not None
        ]
        train, person = parts[0], parts[0].people
        self.models_ = []
        for number, seed in enumerate(data.seeds):
            half = halves(train.tested, train.y, train.weight, person, seed)
            outcome, chance = np.empty(len(train)), np.empty(len(train))
            for side in (0, 1):
                learns, rest = half == side, half != side
                testing = self._nuisance("tested", parts, of_testing, learns, seed)
                known = learns & (train.tested > 0)
                risk = self._nuisance("y", parts, [part.X for part in parts], known, seed)
                e = [
                    testing.predict_proba(X)[:, 1] if part.chance is None else part.chance
                    for part, X in zip(parts, of_testing, strict=True)
                ]
                phi = [
                    self._pseudo_outcome(part, chance_of, risk.predict_proba(part.X)[:, 1])
                    for part, chance_of in zip(parts, e, strict=True)
                ]
                sample, *held = (
                    Sample(part.X, target, part.weight, part.person)
                    for part, target in zip(parts, phi, strict=True)
                )
                final = make_learner(self.learner, seed, squared=True)
                self.models_.append(final.fit(sample.take(rest), *held))
                outcome[rest], chance[rest] = phi[0][rest], e[0][rest]
                if number == side == 0:
                    self.propensity_model_ = testing
            if number == 0:
                self.pseudo_outcome_, self.propensity_ = outcome, chance

    def _nuisance(
        self,
        target: str,
        parts: list[TrainingTable],
        inputs: list[np.ndarray],
        learns: np.ndarray,
        seed: int,
    ) -> Any:
        """A model of a column, of some rows of the first part; it chooses by the second, if any."""
        held = None
        if len(parts) > 1:
            seen = (parts[1].tested > 0) | (target != "y")
            held = parts[1].sample(seen, target, inputs[1]) if seen.any() else None
        sample = parts[0].sample(learns, target, inputs[0])
        return make_learner(self.learner, seed).fit(sample, held)

    def members(self, X: np.ndarray, rows: np.ndarray, *, exact: bool = True) -> np.ndarray:
        """Scores `[members, n]`, each the mean of the models of two halves."""
        each = super().members(X, rows, exact=exact)
        if not hasattr(self, "models_"):
            return each
        return each.reshape(-1, 2, each.shape[1]).mean(axis=1)  # of either half

    def _pseudo_outcome(self, rows: Any, e: Any, m: Any) -> Any:
        """What everybody's outcome would be, rightly on average if `e` or `m` is right."""
        y = rows.get("unbiased")
        error = (rows["y"] if y is None else y) - m
        return m + rows["tested"] * error / _bounded(e, rows, self.clip)


def propensities(
    method: LearnerClassifier, data: Prepared
) -> tuple[np.ndarray, np.ndarray | None, Any]:
    """P(tested | x, a) of the rows to learn from and to watch, and the model behind it.

    The first comes out of fold: nobody's number is of a model that saw whether she was tested. The
    model, which scores all others, is of all rows.
    """
    train, watched = data.tables()
    seed = data.seeds[0]
    person = train.people
    fold = np.random.default_rng(seed).permutation(int(person.max()) + 1)[person] % FOLDS

    def of_testing(part: TrainingTable) -> Sample:
        X = with_group(part.X, part.group, data.n_groups)
        return Sample(X, part.tested, part.weight, part.person)

    sample, held = of_testing(train), None if watched is None else of_testing(watched)

    def fitted(rows: np.ndarray) -> Any:
        return make_learner(method.learner, seed).fit(sample.take(rows), held)

    e = np.empty(len(train))
    for number in np.unique(fold):
        out = fold == number
        if not out.all():
            e[out] = fitted(~out).predict_proba(sample.X[out])[:, 1]
    whole = fitted(np.ones(len(train), bool))
    if len(np.unique(fold)) == 1:
        e = whole.predict_proba(sample.X)[:, 1]
    e_held = None if held is None else whole.predict_proba(held.X)[:, 1]
    if train.chance is not None:  # tests were drawn by a known design
        e, e_held = train.chance, None if watched is None else watched.chance
    return e, e_held, whole


def _bounded(e: Any, rows: Any, least: float) -> Any:
    """The probabilities to divide by: modelled ones are clipped, those of a design are right."""
    return e.clip(min=SMALLEST if rows.get("chance") is not None else least)


def halves(
    tested: np.ndarray, y: np.ndarray, weight: np.ndarray, person: np.ndarray, seed: int
) -> np.ndarray:
    """0 or 1 for each row `[n]`: equal halves that share out tested positives, tested negatives and
    untested rows alike, a person's rows in one of them.

    Rows of weight 0 (padding) come last in the order, so that no other row's half depends on them.
    """
    of_row = np.where(weight > 0, 1 + np.where(tested > 0, 1 + y, 0), 0).astype(np.int64)
    of_person = best_rows(of_row, person)
    if (of_person > 1).sum() < 2:
        raise InputError(
            "ipw and dr-learner fit models to either half of the rows and need at least two "
            "tested people; gather more labels, or choose another method."
        )
    return in_turn(2, seed, -of_person)[person]


def _check_clip(clip: float) -> None:
    if not 0 < clip < 1:
        raise ValueError(f"clip is a probability to divide by, between 0 and 1; got {clip}")


__getattr__ = renamed(__name__)
