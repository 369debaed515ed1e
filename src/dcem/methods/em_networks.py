"""DCEM's steps for a whole fleet of networks.

Rows carry the columns `y` (observed label, 0 where nobody looked), `tested` (0/1), `u` (log-odds of
being tested) and `weight`. One iteration:

1. *E-step*: the pseudo-label Q is the observed label of tested rows and the network's current
   prediction for the others. No gradient.
2. *M-step*: some steps of Adam on the loss below.
3. *Look*: the watched loss on validation rows decides, network by network, whether to go on.

Two losses can be watched, both free of truth. `watch="self"`, the published one, is the M-step loss
on all validation rows with Q from the network itself; on untested rows it is an entropy plus the
penalty, so it rewards confidence and refers to itself. `watch="tested"` is the same loss on tested
validation rows, where the label is known: it sees overfitting, which the other cannot.

Where tests err at stated rates, a column `evidence` says by how much each result changes the
log-odds of the truth: the pseudo-label of a tested row is the network's prediction given its
result (Bayes' rule), and the watched loss of tested rows is -log P(result).

*The loss of the M-step*, in log space, with its gradient in closed form. For a row with log-odds z
of the outcome network, f = sigmoid(z), testing probability t, observed label y and pseudo-label Q,
it is

    -[Q log f + (1 - Q) log(1 - f)]  +  lambda Q * -[y log(f t) + (1 - y) log(1 - f t)]

The second term is the *causal regularisation*: an untested person (y counts as 0) who was likely to
be tested and is predicted positive contradicts the record, and is pushed down. Nothing here
exponentiates a large number or takes the logarithm of a small one:

    log f = -softplus(-z)    log(1 - f) = -softplus(z)
    log(1 - f t) = softplus(z + log(1 - t)) - softplus(z)

and the derivative in z is  (f - Q) + lambda Q [y (f - 1) + (1 - y) (f - sigmoid(z + log(1 - t)))],
finite for every z and t.
"""

from __future__ import annotations

from math import log1p
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from dcem.engine import Adam, Fleet, Patience, Rows, Trainer, supervised, train
from dcem.engine.checkpoint import Saves, State, nested, part
from dcem.engine.fit import Progress
from dcem.engine.fleet import margin, weighted_mean
from dcem.methods.em import EMSettings, History, alternate
from dcem.methods.fleets import FleetData, Trained, saves_of
from dcem.methods.propensity import architecture_of, fit_propensity, foreign_log_odds, log_odds
from dcem.methods.registry import PropensitySettings
from dcem.methods.supervised import Lesson
from dcem.methods.training_stage import factored_cross_entropy, result_rows, rows_of

if TYPE_CHECKING:
    from dcem.methods.dcem import DCEMClassifier

LOSSES = ("train_loss", "validation_loss", "tested_validation_loss")


class _MStep(torch.autograd.Function):
    """The loss of each row, `[M, N]`, and its derivative in z."""

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, q: Tensor, y: Tensor, u: Tensor, strength: float | Tensor
    ) -> Tensor:
        log_untested = logsigmoid(-u)  # log(1 - t)
        plus = softplus(z)
        observed = y * (plus - z - logsigmoid(u)) + (1 - y) * (plus - softplus(z + log_untested))
        ctx.save_for_backward(z, q, y, log_untested)
        ctx.strength = strength
        return plus - q * z + strength * q * observed

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        z, q, y, log_untested = ctx.saved_tensors
        f = torch.sigmoid(z)
        observed = f - torch.where(y > 0, 1.0, torch.sigmoid(z + log_untested))
        return grads[0] * (f - q + ctx.strength * q * observed), None, None, None, None


def mstep_rows(
    z: Tensor,
    q: Tensor,
    y: Tensor,
    u: Tensor,
    *,
    tested: Tensor | None = None,
    strength: float | Tensor = 1.0,
) -> Tensor:
    """The loss of each row, `[M, N]`.

    Parameters
    ----------
    z, u
        Log-odds of the outcome and of being tested (temperature applied already).
    q, y
        Pseudo-label, and the observed label with 0 where nobody looked.
    tested
        Where given, the *hard-t* variant: the regularisation of tested rows only, with the
        recorded decision in place of its probability (it cannot counterbalance anything).
    strength
        The weight lambda of the causal regularisation.
    """
    q, y, u = q.expand_as(z), y.expand_as(z), u.expand_as(z)
    if tested is not None:
        return softplus(z) - q * z + strength * q * tested * (softplus(z) - y * z)
    return _MStep.apply(z, q, y, u, strength)


def mstep_loss(
    logits: Tensor, q: Tensor, rows: Rows, *, hard_t: bool = False, strength: float | Tensor = 1.0
) -> Tensor:
    """The mean loss of each network, `[M]`; columns `y`, `u`, `tested`, `weight` of the rows."""
    tested = rows["tested"] if hard_t else None
    values = mstep_rows(margin(logits), q, rows["y"], rows["u"], tested=tested, strength=strength)
    return weighted_mean(values, rows.get("weight"))


def e_step(fleet: Fleet, rows: Rows, strength: float = 1.0) -> Tensor:
    """Pseudo-labels `[M, N]`: what was observed where somebody looked, else the prediction."""
    return _labels(fleet.predict(rows.X), rows, strength)


def _labels(guess: Tensor, rows: Rows, strength: float) -> Tensor:
    """The same from the predictions; where a test errs, the prediction given its result.

    The M-step counts a tested positive 1 + lambda times (`strength`), which multiplies the odds
    that tested rows teach; before a result is weighed against them, they are divided by it again.
    """
    evidence = rows.get("evidence")
    seen = rows["y"]
    if evidence is not None:
        seen = torch.sigmoid(torch.logit(guess) - log1p(strength) + evidence)
    return torch.where(rows["tested"] > 0, seen, guess)


def run_em(
    fleet: Fleet,
    train: Rows,
    validation: Rows,
    settings: EMSettings,
    *,
    seeds: list[int],
    first_q: Fleet | None = None,
    progress: Progress | None = None,
    saves: Saves | None = None,
) -> list[dict[str, Any]]:
    """Train `fleet` in place; fitted attributes of each network, its pseudo-labels among them.

    Parameters
    ----------
    fleet
        The weights the first M-step starts from.
    first_q
        The networks that give the first pseudo-labels (default: the same). Untrained ones are the
        *uninformative start*: every untested row begins near one half.
    saves
        Where the state is kept after an iteration, and where a run that was ended goes on from.
    """
    if "evidence" in train.columns:
        # A result that errs is a pseudo-label between 0 and 1; as far as it is positive, somebody
        # looked and found it, which is what the causal regularisation compares it with.
        train, validation = (rows.plus(y=rows["tested"]) for rows in (train, validation))
    steps = _DCEMSteps(fleet, train, validation, settings, seeds, first_q or fleet)
    saves = saves or Saves(None)
    done = saves.resume(steps.load) or 0
    alternate(steps, settings.max_iter, saves, done=done, progress=progress)
    if settings.keep == "best":
        steps.rule.restore(fleet.flat)
    labels = e_step(fleet, train, settings.strength).cpu().numpy()
    return [
        one | {"pseudo_labels_": label} for one, label in zip(steps.endings(), labels, strict=True)
    ]


class FleetSteps:
    """What the steps of EM share where fleets are fitted: all but the guess and the look."""

    def __init__(
        self,
        trainers: dict[str, Trainer],
        rule: Patience,
        losses: tuple[str, ...],
        *,
        steps: int,
        carry_weights: bool,
        fresh_optimizer: bool = True,
    ):
        self.trainers, self.rule = trainers, rule
        self.history = History(len(rule.active), losses)
        self.initial = [trainer.fleet.flat.clone() for trainer in trainers.values()]
        self.steps, self.carry_weights, self.fresh = steps, carry_weights, fresh_optimizer

    def e_step(self, iteration: int) -> None:
        """Guess what is missing; `iteration` counts from 0."""
        raise NotImplementedError

    def look(self) -> None:
        """Judge what came out, and take note of the best."""
        raise NotImplementedError

    def is_active(self) -> bool:
        """Whether any network still improves."""
        return bool(self.rule.active.any())

    def m_step(self) -> None:
        """Train one fleet after the other; networks that have stopped stay as they are."""
        for trainer, first in zip(self.trainers.values(), self.initial, strict=True):
            if not self.carry_weights:
                active = self.rule.active.unsqueeze(1)
                trainer.fleet.load(torch.where(active, first, trainer.fleet.flat))
            if self.fresh:
                trainer.optimizer.reset()
            trainer.run(self.steps, stopping=self.rule)

    def note(self, losses: dict[str, Tensor], watched: Tensor, flat: Tensor) -> None:
        """Take losses `[M]` down, and let the watched ones decide on the parameters `flat`."""
        active = self.rule.active.tolist()
        self.rule.update(watched, flat)
        self.history.note({name: values.tolist() for name, values in losses.items()}, active)

    def endings(self) -> list[dict[str, Any]]:
        """Fitted attributes of each network."""
        return self.history.endings(self.rule.best_step.tolist(), self.rule.active.tolist())

    def state(self) -> State:
        """All that the next iteration builds on, for a checkpoint."""
        trainers = {name: trainer.state() for name, trainer in self.trainers.items()}
        return nested(**trainers, rule=self.rule.state()) | {"history": self.history.records}

    def load(self, saved: State) -> None:
        """Go on from a checkpoint."""
        for name, trainer in self.trainers.items():
            trainer.load_state(part(saved, name))
        self.rule.load_state(part(saved, "rule"))
        self.history.records[:] = saved["history"]


class _DCEMSteps(FleetSteps):
    """DCEM's; `fleet` is trained in place."""

    def __init__(
        self,
        fleet: Fleet,
        train: Rows,
        validation: Rows,
        settings: EMSettings,
        seeds: list[int],
        first_q: Fleet,
    ):
        self.fleet, self.validation, self.settings = fleet, validation, settings
        self.teacher = first_q.clone()  # the networks of the E-step
        self.full_batch = settings.batch_size is None or settings.batch_size >= len(train)
        if self.full_batch:
            train = train.plus(q=e_step(self.teacher, train, settings.strength))
        self.train = train
        self.trainer = Trainer(
            fleet,
            train,
            self._objective,
            Adam(settings.learning_rate, weight_decay=settings.weight_decay),
            batch_size=settings.batch_size,
            seeds=seeds,
        )
        super().__init__(
            {"trainer": self.trainer},
            Patience(fleet.flat, settings.patience, min_delta=0.0, sooner=self.trainer.in_batches),
            LOSSES,
            steps=settings.steps,
            carry_weights=settings.carry_weights,
            fresh_optimizer=settings.fresh_optimizer,
        )

    def _objective(self, flat: Tensor, rows: Rows) -> Tensor:
        architecture, settings = self.fleet.architecture, self.settings
        q = rows.get("q")
        if q is None:  # minibatches: the E-step of just these rows
            with torch.no_grad():
                guess = torch.sigmoid(margin(architecture.logits(self.teacher.flat, rows.X)))
                q = _labels(guess, rows, settings.strength)
        logits = architecture.logits(flat, rows.X)
        return mstep_loss(logits, q, rows, hard_t=settings.hard_t, strength=settings.strength)

    def e_step(self, iteration: int) -> None:
        if iteration == 0:  # the first guess is `first_q`'s
            return
        self.teacher.load(self.fleet.flat)
        if self.full_batch:
            self.train["q"].copy_(e_step(self.teacher, self.train, self.settings.strength))

    def look(self) -> None:
        losses = {
            "train_loss": self.trainer.losses,
            **_watched_losses(self.fleet, self.validation, self.settings),
        }
        tested = self.settings.watch == "tested"
        watched = losses["tested_validation_loss" if tested else "validation_loss"]
        self.note(losses, watched, self.fleet.flat)


def _watched_losses(fleet: Fleet, rows: Rows, settings: EMSettings) -> dict[str, Tensor]:
    """Both watched losses. They use the soft testing probability, whichever loss is trained."""
    logits = fleet.logits(rows.X)
    q = _labels(torch.sigmoid(margin(logits)), rows, settings.strength)
    tested, evidence = rows.plus(weight=rows["weight"] * rows["tested"]), rows.get("evidence")
    return {
        "validation_loss": mstep_loss(logits, q, rows, strength=settings.strength),
        "tested_validation_loss": mstep_loss(logits, q, tested, strength=settings.strength)
        if evidence is None
        else weighted_mean(
            result_rows(margin(logits) - log1p(settings.strength), evidence), tested["weight"]
        ),
    }


# -- all stages ------------------------------------------------------------------------------------


def train_dcem(method: DCEMClassifier, data: FleetData) -> Trained:
    """Who is tested, the start, and EM: the networks, and the fitted attributes of each."""
    assert data.validation is not None
    em, propensity = method._settings(data)
    if method.temperature <= 0:
        raise ValueError(f"temperature must be positive, got {method.temperature}")
    saves = saves_of(method, data)
    u_train, u_validation, extra = _of_testing(method, data, propensity, saves)
    architecture = method._architecture(data.n_inputs)
    untrained = data.fleet(architecture)
    fleet = untrained.clone()

    def fit_start() -> Tensor:
        start = untrained.clone()
        _fit_tested(start, data, em, published=method.schedule == "published")
        return start.flat

    if method._start != "uninformative":
        fleet.load(saves.once("start", fit_start))
    result = run_em(
        fleet,
        data.train.plus(u=u_train / method.temperature),
        data.validation.plus(u=u_validation / method.temperature),
        em,
        seeds=data.seeds,
        first_q=fleet if method._start == "algorithm-1" else untrained,
        progress=data.progress,
        saves=saves,
    )
    probability = torch.sigmoid(u_train).expand(len(fleet), -1).cpu().numpy()
    attributes = [
        {"steps_": em.steps, **one, "propensity_": probability[m], **extra[m % len(extra)]}
        for m, one in enumerate(result)
    ]
    return Trained(fleet, attributes)


def _of_testing(
    method: DCEMClassifier, data: FleetData, settings: PropensitySettings, saves: Saves
) -> tuple[Tensor, Tensor, list[dict[str, Any]]]:
    """Log-odds of being tested for training and validation rows, and the model behind them."""
    assert data.validation is not None
    if method.propensity is not None:
        (u_train, u_validation), models = foreign_log_odds(
            method.propensity, data.train, [data.train, data.validation], data.n_groups
        )
        # Models of other libraries go into no checkpoint. A fit that goes on makes them anew,
        # as its attribute; what they said the first time stays.
        u_train, u_validation = (
            saves.once(name, u.clone).to(u)
            for name, u in (("u_train", u_train), ("u_validation", u_validation))
        )
        return u_train, u_validation, [{"propensity_model_": model} for model in models]
    model = data.fleet(architecture_of(settings, data.n_inputs, data.n_groups))

    def fit() -> Tensor:
        return fit_propensity(
            data.train,
            data.validation,
            settings,
            n_groups=data.n_groups,
            seeds=data.seeds,
            batch_size=data.batch_size,
        ).flat

    model.load(saves.once("propensity", fit))
    u_train, u_validation = (
        log_odds(model, part, data.n_groups) for part in (data.train, data.validation)
    )
    extra = [{"propensity_model_": model[m : m + 1]} for m in range(len(model))]
    return u_train, u_validation, extra


def _fit_tested(fleet: Fleet, data: FleetData, em: EMSettings, *, published: bool) -> None:
    """Fit a fleet to tested rows in place, at EM's learning rate and weight decay.

    The published way takes all steps of one M-step and keeps the last weights; the other takes up
    to 1000, but no more than EM may, and keeps the best by the loss of tested validation rows.
    """
    assert data.validation is not None
    rows, watched = (
        rows_of(part.plus(weight=part["weight"] * part["tested"]), Lesson(part["y"]))
        for part in (data.train, data.validation)
    )
    train(
        fleet,
        rows,
        supervised(fleet.architecture, factored_cross_entropy),
        Adam(em.learning_rate, weight_decay=em.weight_decay),
        em.steps if published else min(1000, em.max_iter * em.steps),
        validation=watched,
        patience=None if published else 10,
        batch_size=data.batch_size,
        seeds=data.seeds,
    )
