"""Disparate Censorship Expectation-Maximization (Chang and Wiens, ICML 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from dcem.methods.em import PACES, EMSettings, pace_of
from dcem.methods.network import VARIANTS, NetworkClassifier
from dcem.methods.registry import WIDE, PropensitySettings, renamed
from dcem.methods.training_table import TrainingTable
from dcem.table.messages import require_one_of

if TYPE_CHECKING:
    from dcem.methods.fleets import FleetData, Trained

# The fast schedule: short M-steps whose length grows with the share of people tested, Adam's
# moments kept from one to the next, a little weight decay. How it was chosen, and how freely:
# docs/fast-schedule.md and experiments/choose_schedule.py.
OUTCOME_STEPS = 2000  # in all
PATIENCE_STEPS = 500  # without a better loss on tested validation rows
SCHEDULES: dict[str, tuple[EMSettings, PropensitySettings]] = {
    "published": (EMSettings(), PropensitySettings()),
    "fast": (
        EMSettings(weight_decay=3e-4, fresh_optimizer=False),
        PropensitySettings(steps=300, learning_rate=3e-3, check_every=10, patience=10, keep="best"),
    ),
}
STARTS = ("uninformative", "tested-only", "algorithm-1")
PUBLISHED: dict[str, Any] = {"variant": "published", "schedule": "published"}
SEPSIS: dict[str, Any] = WIDE | {
    "start": "tested-only",
    "steps": 10_000,
    "learning_rate": 5e-7,
    "weight_decay": 1e-6,
    "propensity_settings": PropensitySettings(steps=20_000, learning_rate=1e-5, patience=1000),
}


class DCEMClassifier(NetworkClassifier):
    """Pseudo-labels for the untested, constrained by how likely each person was to be tested.

    *Idea.* The outcome of an untested person is a missing value. EM alternates between predicting
    it with the current model (E-step) and fitting the model to labels and predictions (M-step). The
    fit must also be consistent with the record: if a person was likely to be tested, was not
    tested, and is predicted positive, the prediction is lowered (*causal regularisation*). The
    group enters only the testing model; the outcome network never sees it, and prediction needs `X`
    alone.

    *Assumption.* Features and group explain who is tested; features explain the outcome, whatever
    the group; test results are the truth, or err at stated rates.

    *When it fails.* It is wrong where an unrecorded cause affects both testing and outcome, and
    where the outcome differs by group at equal features. In regions where nobody was ever tested it
    extrapolates (see `support`). The bias mitigation of the published results comes from the
    uninformative start, not from EM as such: started from a model of the tested rows
    (`start="algorithm-1"`) it stays close to that model.

    Parameters
    ----------
    variant
        "corrected" watches the loss of *tested* validation rows and returns the best iterate;
        "published" watches the self-referential loss of the paper and returns the last.
    schedule
        "fast" (2,000 outcome steps in M-steps of 5 to 40, longer where more people are tested) or
        "published" (up to 50 iterations of 1000 full-batch steps).
    start
        "uninformative": random weights, so first pseudo-labels near one half. "tested-only": the
        first M-step starts from a network fitted to tested rows, first pseudo-labels as before
        (what the released code does). "algorithm-1": pseudo-labels from that network too.
    max_iter, steps, learning_rate, weight_decay, patience
        Of EM and of each M-step; None leaves the choice to the schedule.
    regularization
        Weight lambda of the causal regularisation; 0 switches it off.
    temperature
        Divides the log-odds of being tested.
    hard_t
        The recorded testing decision in place of its probability.
    carry_weights
        Whether an M-step starts from the weights of the one before.
    propensity
        A scikit-learn classifier for P(tested | x, a), in place of a network.
    propensity_settings
        How the propensity network is trained (`PropensitySettings`); None is the schedule's way.

    Attributes
    ----------
    n_iter_, steps_, best_iter_, termination_
        Iterations run, steps in each, the iteration returned, and why EM stopped ("max_iter" or
        "no_improvement").
    history_
        `train_loss`, `validation_loss`, `tested_validation_loss` after each iteration.
    propensity_, pseudo_labels_
        P(tested) and the pseudo-label of each training row; `train_rows_` gives the positions of
        these rows in what was passed to `fit` (held-out rows are not among them).

    References
    ----------
    T. Chang and J. Wiens, "From Biased Selective Labels to Pseudo-Labels: An
    Expectation-Maximization Framework for Learning from Biased Decisions", ICML 2024.
    """

    input_scale: float = 0.5
    variant: str = "corrected"
    schedule: str = "fast"
    start: str = "uninformative"
    max_iter: int | None = None
    steps: int | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    patience: int | None = None
    regularization: float = 1.0
    temperature: float = 1.0
    hard_t: bool = False
    carry_weights: bool = True
    propensity: Any = None
    propensity_settings: PropensitySettings | None = None

    name: ClassVar[str] = "dcem"
    in_short: ClassVar[str] = "fills in the untested, round by round"
    resumable: ClassVar[bool] = True
    corrects_tests: ClassVar[bool] = True
    batches_together: ClassVar[bool] = True
    as_published: ClassVar[Mapping[str, Any]] = {"sinusoid": PUBLISHED, "sepsis": SEPSIS}

    def _pace(self, table: TrainingTable) -> int | None:
        """Steps per M-step."""
        if self.schedule != "fast" or self.steps is not None:
            return self.steps
        return pace_of(table.tested, table.weight)

    @property
    def _start(self) -> str:
        return self.start

    def _settings(self, data: FleetData) -> tuple[EMSettings, PropensitySettings]:
        require_one_of("variant", self.variant, VARIANTS)
        require_one_of("schedule", self.schedule, SCHEDULES)
        require_one_of("start", self._start, STARTS)
        em, propensity = SCHEDULES[self.schedule]
        if self.schedule == "fast":
            steps = data.pace or PACES[0]
            em = replace(
                em,
                steps=steps,
                max_iter=-(-OUTCOME_STEPS // steps),
                patience=-(-PATIENCE_STEPS // steps),
            )
        chosen = {
            name: getattr(self, name)
            for name in ("max_iter", "steps", "learning_rate", "weight_decay", "patience")
            if getattr(self, name) is not None
        }
        corrected = self.variant == "corrected"
        em = replace(
            em,
            **chosen,
            strength=self.regularization,
            hard_t=self.hard_t,
            carry_weights=self.carry_weights,
            watch="tested" if corrected else "self",
            keep="best" if corrected else "last",
            batch_size=data.batch_size,
        )
        return em, self.propensity_settings or propensity

    def _train(self, data: FleetData) -> Trained:
        from dcem.methods.em_networks import train_dcem

        return train_dcem(self, data)


class ImputationOnlyClassifier(DCEMClassifier):
    """DCEM reduced to a single imputation: fit to tested labels and pseudo-labels once.

    *Idea.* The ablation of the paper: no causal regularisation, one iteration. "corrected" imputes
    with a network fitted to tested rows, as written. "published" imputes with the *untrained*
    network, as released: tested labels plus about one half for everyone else. This is a different
    method, and the one that the published row shows.

    *Assumption.* That of `tested-only`: what holds for the tested at given features also holds for
    the untested, even where hardly anybody was tested. The group is not used.

    *When it fails.* It reproduces the model that imputes: where tested-only extrapolates wrongly,
    so does this.

    Parameters
    ----------
    start
        "variant": whose pseudo-labels is the variant's choice, as above; or any start of `dcem`.

    References
    ----------
    T. Chang and J. Wiens, ICML 2024, as for `dcem` (appendix, the ablation); of pseudo-labels:
    D.-H. Lee, "Pseudo-Label: The Simple and Efficient Semi-Supervised Learning Method for Deep
    Neural Networks", ICML workshop 2013.
    """

    regularization: float = 0.0
    max_iter: int | None = 1
    steps: int | None = 1000
    start: str = "variant"

    name: ClassVar[str] = "imputation-only"
    in_short: ClassVar[str] = "dcem, filled in once"
    resumable: ClassVar[bool] = False

    @property
    def _start(self) -> str:
        if self.start != "variant":
            return self.start
        return "algorithm-1" if self.variant == "corrected" else "tested-only"


class NoCausalRegularizationClassifier(DCEMClassifier):
    """DCEM without causal regularisation: EM on pseudo-labels alone.

    *Idea.* The ablation of the paper: it does not use how likely people were to be tested.

    *Assumption.* Features explain who is tested, so that the tested are informative about the
    untested; and the pseudo-labels are right on average, since only tested rows can correct them.

    *When it fails.* Nothing counterbalances the testing policy: pseudo-labels confirm themselves.

    References
    ----------
    T. Chang and J. Wiens, ICML 2024, as for `dcem` (appendix, the ablation); of pseudo-labels:
    D.-H. Lee, "Pseudo-Label: The Simple and Efficient Semi-Supervised Learning Method for Deep
    Neural Networks", ICML workshop 2013.
    """

    regularization: float = 0.0

    name: ClassVar[str] = "no-causal-regularization"
    in_short: ClassVar[str] = "dcem without its check on testing"
    as_published: ClassVar[Mapping[str, Any]] = {
        "sinusoid": PUBLISHED,
        "sepsis": SEPSIS | {"start": "uninformative"},
    }


__getattr__ = renamed(__name__)
