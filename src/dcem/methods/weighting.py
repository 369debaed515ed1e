"""Methods that correct for who was tested by the probability of being tested.

Both learn from tested rows, whose labels are the truth, and let a row that was unlikely to be
tested speak for the many like it that were not. They need *overlap*: a positive chance of a test
everywhere. Sharp testing rules break that, and the weights explode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from dcem.engine import Fleet, Rows, cross_entropy, supervised
from dcem.engine.fleet import margin
from dcem.engine.losses import cross_entropy_rows, weighted_mean
from dcem.methods.base import FleetData, Trained
from dcem.methods.dcem import SCHEDULES, VARIANTS
from dcem.methods.propensity import PropensitySettings, fit_propensity, log_odds
from dcem.methods.stage import train_stage
from dcem.methods.supervised import SupervisedNetwork
from dcem.methods.tables import select
from dcem.table import checks

PUBLISHED, EARLY_STOPPED = SCHEDULES["published"][1], SCHEDULES["fast"][1]
SMALLEST = 1e-30  # an unclipped weight stays finite: infinity times a weight of 0 is no number


@dataclass(kw_only=True, eq=False, repr=False)
class InversePropensity(SupervisedNetwork):
    """Tested-only, each row weighted by one over its probability of being tested.

    *Idea.* A tested person who had a chance of one in ten to be tested stands for ten people.
    Weighted so, the tested rows look like everybody, and the network spends its capacity where
    people are rather than where testing is.

    *Assumption.* Features and group explain who is tested; everybody has a real chance of it.

    *When it fails.* Under sharp testing rules a few rows of tiny probability carry nearly all the
    weight: the variance is that of a handful of people. Clipping trades that for bias. Weights
    cannot speak for regions that were never tested. Since the labels of tested rows are right at
    given features, weighting changes what a flexible network learns only where it has to
    compromise; on the simulation it is close to tested-only.

    *Variants.* "corrected" clips the probability from below and normalises the weights to mean 1.
    "published" does neither. (The released class trains on all rows, untested ones as negatives,
    with a propensity fitted to the wrong split; the published row cannot come from it. This is
    what the paper describes, and does not give that row either: AUC .796 [.662, .864] against the
    published .829 [.598, .874], ROC gap .045 against .048; near, not equal.)

    Parameters
    ----------
    variant
        "corrected" or "published".
    clip
        The smallest probability that "corrected" divides by: no weight exceeds 1/clip before
        normalisation. "published" does not clip, and refuses any other value than the default.
    propensity_settings
        How the network of P(tested | x, a) is trained; None is the variant's way: 1000 steps and
        last weights if published, else up to 300 faster ones and the best by validation rows.

    Attributes
    ----------
    propensity_, propensity_model_
        P(tested) of each training row, unclipped, and the network behind it.

    References
    ----------
    P. Rosenbaum and D. Rubin, "The central role of the propensity score in observational studies
    for causal effects", Biometrika 1983.
    """

    variant: str = "corrected"
    clip: float = 0.05
    propensity_settings: PropensitySettings | None = None

    name: ClassVar[str] = "ipw"

    def _train(self, data: FleetData) -> Trained:
        if self.variant not in VARIANTS:
            raise ValueError(f"variant must be one of {', '.join(VARIANTS)}; got {self.variant!r}")
        _check_clip(self.clip)
        if self.variant == "published" and self.clip != InversePropensity.clip:
            raise ValueError(
                "The published ipw divides by the probability as it is: leave clip alone, or "
                "choose variant='corrected'."
            )
        settings = PUBLISHED if self.variant == "published" else EARLY_STOPPED
        model = fit_propensity(
            data.train,
            data.validation,
            self.propensity_settings or settings,
            n_groups=data.n_groups,
            seeds=data.seeds,
            batch_size=data.batch_size,
        )

        def with_propensity(part: Rows) -> Rows:
            e = torch.sigmoid(log_odds(model, part, data.n_groups))  # [M, N]
            return Rows(part.X, dict(part.columns) | {"e": e[0] if len(e) == 1 else e})

        train = with_propensity(data.train)
        validation = None if data.validation is None else with_propensity(data.validation)
        trained = super()._train(replace(data, train=train, validation=validation))
        e = np.atleast_2d(train["e"].cpu().numpy())
        for m, attributes in enumerate(trained.attributes):
            attributes |= {"propensity_": e[m], "propensity_model_": _one(model, slice(m, m + 1))}
        return trained

    def _rows(self, part: Rows, data: FleetData) -> Rows:
        kept = select(part, part["tested"])
        if self.variant == "published":
            inverse = 1 / kept["e"].clamp_min(SMALLEST)
        else:
            inverse = 1 / kept["e"].clamp_min(self.clip)
            inverse = inverse / weighted_mean(inverse, kept["weight"]).unsqueeze(-1)
        return Rows(kept.X, {"target": kept["y"], "weight": kept["weight"], "inverse": inverse})

    def _loss(self, logits: Tensor, rows: Rows) -> Tensor:
        values = cross_entropy_rows(logits, rows["target"]) * rows["inverse"]
        return weighted_mean(values, rows["weight"])


@dataclass(kw_only=True, eq=False, repr=False)
class DoublyRobustLearner(SupervisedNetwork):
    """Regress a pseudo-outcome that is right if either of two models is (DR-learner).

    *Idea.* Fit m(x), the outcome among the tested, and e(x, a), the probability of being tested.
    Everybody gets the pseudo-outcome m(x) + t (y - m(x)) / e(x, a): the model's guess, corrected
    for tested people by its error, in proportion to how many untested people they stand for. Its
    mean at given features is P(y | x) if m or e is right. A network is then fitted to it by
    squared error. (The untested label counts as zero, so the other arm of the usual two-arm
    pseudo-outcome vanishes.) Nobody's pseudo-outcome comes from models that saw her label: the
    rows are halved, m and e come from one half and pseudo-outcomes of the other are regressed; the
    two resulting networks are averaged.

    *Assumption.* As inverse weighting: features and group explain testing, and everybody has a real
    chance of it.

    *When it fails.* Under sharp testing rules e is tiny: clipping biases the correction, and m
    extrapolates to regions without labels, so that neither model is right. Half the rows fit the
    models, half the final network. The paper's class was never released; this follows Kennedy's
    definition, and the published row need not come out.

    Parameters
    ----------
    clip
        The smallest probability of being tested to divide by.
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

    def _train(self, data: FleetData) -> Trained:
        _check_clip(self.clip)
        half = _halves(data)  # [M, N]
        # two networks a member, one for each half that its models learn from
        both = replace(
            data,
            train=_twice(data.train),
            validation=None if data.validation is None else _twice(data.validation),
            seeds=[seed for seed in data.seeds for _ in range(2)],
        )
        side = torch.tensor([[0], [1]], device=data.device).repeat(len(half), 1)
        learns = half.repeat_interleave(2, dim=0) == side  # [2M, N]
        e, m, propensity = self._nuisances(both, learns)
        architecture = self._architecture(data.n_inputs)
        fleet = both.fleet(architecture)
        outcome = self._pseudo_outcome(both.train, e[0], m[0])  # [2M, N]
        rows = Rows(both.train.X, {"outcome": outcome, "weight": both.train["weight"]})
        validation = None
        if both.validation is not None:
            columns = {
                "outcome": self._pseudo_outcome(both.validation, e[1], m[1]),
                "weight": both.validation["weight"],
            }
            validation = Rows(both.validation.X, columns)
        kept = train_stage(
            self,
            both,
            fleet,
            supervised(architecture, squared_error),
            select(rows, (~learns).to(rows.X.dtype)),
            validation,
        )
        unseen = [
            torch.where(half == 0, values[1::2], values[0::2]).cpu().numpy()
            for values in (outcome, e[0])
        ]
        attributes = [
            {
                "n_iter_": max(kept[2 * number : 2 * number + 2]),
                "pseudo_outcome_": unseen[0][number],
                "propensity_": unseen[1][number],
                "propensity_model_": _one(propensity, slice(2 * number, 2 * number + 2)),
            }
            for number in range(len(data.seeds))
        ]
        return Trained(fleet, attributes)

    def _nuisances(
        self, both: FleetData, learns: Tensor
    ) -> tuple[list[Tensor], list[Tensor], Fleet]:
        """P(tested) and the tested-only prediction, `[2M, N]`, of training and validation rows."""
        own = select(both.train, learns.to(both.train.X.dtype))
        settings = PUBLISHED if self.patience is None else EARLY_STOPPED
        propensity = fit_propensity(
            own,
            both.validation,
            self.propensity_settings or settings,
            n_groups=both.n_groups,
            seeds=both.seeds,
            batch_size=both.batch_size,
        )
        architecture = self._architecture(both.n_inputs)
        outcome = both.fleet(architecture)
        train_stage(
            self,
            both,
            outcome,
            supervised(architecture, cross_entropy),
            _tested(own),
            None if both.validation is None else _tested(both.validation),
        )
        parts = [part for part in (both.train, both.validation) if part is not None]
        e = [torch.sigmoid(log_odds(propensity, part, both.n_groups)) for part in parts]
        return e, [outcome.predict(part.X) for part in parts], propensity

    def _pseudo_outcome(self, part: Rows, e: Tensor, m: Tensor) -> Tensor:
        return m + part["tested"] * (part["y"] - m) / e.clamp_min(self.clip)


def squared_error(logits: Tensor, rows: Rows) -> Tensor:
    """Mean squared distance `[M]` of the probability of class 1 from column `outcome`."""
    return weighted_mean((torch.sigmoid(margin(logits)) - rows["outcome"]) ** 2, rows["weight"])


def _tested(part: Rows) -> Rows:
    kept = select(part, part["tested"])
    return Rows(kept.X, {"target": kept["y"], "weight": kept["weight"]})


def _twice(rows: Rows) -> Rows:
    """Each network's rows for two networks in succession; what is shared stays shared."""
    X = rows.X if rows.X.dim() == 2 else rows.X.repeat_interleave(2, dim=0)
    columns = {
        name: column if column.dim() == 1 else column.repeat_interleave(2, dim=0)
        for name, column in rows.columns.items()
    }
    return Rows(X, columns)


def _halves(data: FleetData) -> Tensor:
    """0 or 1 for each row of each network, `[M, N]`, by its seed: equal halves that share out
    tested positives, tested negatives and untested rows alike, a person's rows in one of them.

    Padding comes last in the order, so that a row's half does not depend on it.
    """
    shape = len(data.seeds), len(data.train)
    rows = {"person": np.broadcast_to(np.arange(shape[1]), shape)} | {
        name: np.broadcast_to(np.atleast_2d(column.cpu().numpy()), shape)
        for name, column in data.train.columns.items()
    }
    half = np.empty(shape, dtype=np.int64)
    for m, seed in enumerate(data.seeds):
        tested, y, weight, person = (rows[k][m] for k in ("tested", "y", "weight", "person"))
        of_row = np.where(weight > 0, 1 + np.where(tested > 0, 1 + y, 0), 0).astype(np.int64)
        of_person = np.zeros(person.max() + 1, dtype=np.int64)
        np.maximum.at(of_person, person, of_row)  # a person is as informative as her best row
        if (of_person > 1).sum() < 2:
            raise checks.InputError(
                "dr-learner fits models to either half of the rows and needs at least two tested "
                "people; gather more labels, or choose another method."
            )
        draw = np.random.default_rng(seed).random(len(of_person))
        half_of_person = np.empty_like(of_person)
        half_of_person[np.lexsort((draw, -of_person))] = np.arange(len(of_person)) % 2
        half[m] = half_of_person[person]
    return torch.from_numpy(half).to(data.device)


def _check_clip(clip: float) -> None:
    if not 0 < clip < 1:
        raise ValueError(f"clip is a probability to divide by, between 0 and 1; got {clip}")


def _one(fleet: Fleet, members: slice) -> Any:
    return Fleet(fleet.architecture, fleet.flat[members].cpu().clone())
