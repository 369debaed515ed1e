"""Reject inference as credit scoring defines it: labels for those whose outcome nobody saw.

A lender sees who repays among the applicants it approved. These methods score the declined by a
model of the approved, give them labels of some kind, and learn again from everybody. In the words
of this package the approved are the tested, and a default is a positive.

What they add to the table is the first model's own opinion, and what the user puts in: a factor by
which the declined are worse. Where the features explain who is approved the first model is right
already; where they do not, only that factor speaks, and nobody can check it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dcem.estimation import measures
from dcem.estimation.outcomes import Masses
from dcem.learners import Sample, make_learner
from dcem.methods.base import SelectiveClassifier
from dcem.methods.fitting import Prepared
from dcem.methods.supervised import require_learner
from dcem.methods.training_table import TrainingTable, at_random
from dcem.table.imperfect import unbiased
from dcem.table.messages import InputError

Inferred = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows of the untested, labels, shares


@dataclass(frozen=True)
class Applicants:
    """The rows of one fit, and how to learn from some of them."""

    table: TrainingTable
    standard: np.ndarray  # [n, d] features without gaps, all of one scale
    weight: np.ndarray  # [n] of the rows, in this member
    held: Sample | None  # tested rows to choose by
    watched: TrainingTable | None  # all rows to choose by
    learner: Any
    seed: int

    @property
    def approved(self) -> np.ndarray:
        """Positions of the tested rows."""
        return np.flatnonzero(self.table.tested > 0)

    @property
    def declined(self) -> np.ndarray:
        """Positions of the untested rows."""
        return np.flatnonzero(self.table.tested <= 0)

    def learn(self, inferred: Inferred | None = None) -> Any:
        """A model of the tested, and of untested rows with inferred labels."""
        table, rows = self.table, self.approved
        y, weight = table.y[rows], self.weight[rows]
        if inferred is not None:
            more, label, share = inferred
            rows = np.append(rows, more)
            y, weight = np.append(y, label), np.append(weight, self.weight[more] * share)
        sample = table.sample(rows)._replace(y=y, weight=weight)  # rates are 1 of the untested
        return make_learner(self.learner, self.seed).fit(sample, self.held)

    def risk(self, model: Any, rows: np.ndarray) -> np.ndarray:
        """What a model says of some rows."""
        return model.predict_proba(self.table.X[rows])[:, 1]


class RejectInferenceClassifier(SelectiveClassifier):
    """Base of the methods that label the untested by a model of the tested, and learn again.

    Parameters
    ----------
    learner
        One of `dcem.learners.LEARNERS`: "linear" (penalised logistic regression, a scorecard),
        "boost" (boosted trees), "forest", "smooth", "perceptron"; or a scikit-learn classifier,
        which is cloned, and not saved.
    n_members
        Models whose mean is the score; all but the first see rows with random weights.
    """

    learner: Any = "linear"
    n_members: int = 1

    corrects_tests: ClassVar[bool] = True

    def _inferred(self, people: Applicants, first: Any, rng: np.random.Generator) -> Inferred:
        """Rows of the untested, their labels, and how much of a row each counts."""
        raise NotImplementedError

    def _fit(self, data: Prepared) -> None:
        require_learner(self)
        self._check_parameters()
        train, watched = data.tables(raw=True)
        held = None
        if watched is not None and (seen := watched.tested > 0).any():
            held = watched.sample(seen)
        self.models_ = []
        for seed, weight in at_random(train.weight, train.person, data.seeds):
            people = Applicants(train, data.standard.X, weight, held, watched, self.learner, seed)
            first = people.learn()
            if len(people.declined):
                inferred = self._inferred(people, first, np.random.default_rng(seed))
                first = people.learn(inferred)
            self.models_.append(first)

    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be meant."""


class FuzzyAugmentationClassifier(RejectInferenceClassifier):
    """Count every untested row twice: as positive by its predicted risk, as negative by the rest.

    *Idea.* A model of the tested gives each untested row a risk p. The row enters twice, as a
    positive with weight p and as a negative with weight 1 - p, and a second model learns from all
    rows.

    *Assumption.* As tested-only: what holds for the tested at given features holds for the
    untested.

    *When it fails.* It does little harm, and little good. If the first model is a logistic
    regression without a penalty, the second is the same model, because the added rows already agree
    with it. Other learners change slightly, because they smooth their own predictions.

    References
    ----------
    N. Siddiqi, "Credit Risk Scorecards", 2006; A. Ehrhardt, C. Biernacki, V. Vandewalle,
    P. Heinrich and S. Beben, "Reject Inference Methods in Credit Scoring", Journal of Applied
    Statistics 2021 (why it changes nothing).
    """

    name: ClassVar[str] = "fuzzy-augmentation"
    in_short: ClassVar[str] = "counts the untested as both, by a model of the tested"

    def _check_parameters(self) -> None:
        require_learner(self, weights=True)

    def _inferred(self, people: Applicants, first: Any, rng: np.random.Generator) -> Inferred:
        rows = people.declined
        p = people.risk(first, rows)
        both = np.repeat([1.0, 0.0], len(rows))
        return np.tile(rows, 2), both, np.concatenate([p, 1 - p])


class ParcellingClassifier(RejectInferenceClassifier):
    """Give the untested of a score band the band's rate of positives, times a factor.

    *Idea.* A model of the tested scores everybody. The score is divided into bands with equal
    numbers of tested people. In each band, a random share of the untested is labelled positive: the
    share among the band's tested, times `factor`, because people were declined for a reason. A
    second model learns from all rows.

    *Assumption.* Within a band the untested are positive `factor` times as often as the tested. No
    table can show this; a factor of 1 means that the score explains who is tested.

    *When it fails.* If the factor is wrong, nothing shows it. People who score worse than all
    tested people share the last band, whatever their risk. Labels are drawn at random, so another
    seed gives another model (`n_members` averages over several).

    Parameters
    ----------
    bands
        Of the score.
    factor
        How many times the rate of the tested that of the untested is, in each band; a rate ends
        at 1.

    References
    ----------
    N. Siddiqi, "Credit Risk Scorecards", 2006; J. Banasik and J. Crook, "Reject inference,
    augmentation, and sample selection", European Journal of Operational Research 2007.
    """

    bands: int = 10
    factor: float = 1.5

    name: ClassVar[str] = "parcelling"
    in_short: ClassVar[str] = "labels the untested by score bands, some more positive"

    def _check_parameters(self) -> None:
        if self.bands < 1 or not self.factor > 0:
            raise InputError(
                f"parcelling needs at least one band and a factor above 0; got bands={self.bands}, "
                f"factor={self.factor}."
            )

    def _inferred(self, people: Applicants, first: Any, rng: np.random.Generator) -> Inferred:
        seen, rows, table = people.approved, people.declined, people.table
        y = table.y[seen] if table.rates is None else unbiased(table.y[seen], table.rates[seen])
        label = parcelled(
            people.risk(first, seen),
            y,
            people.weight[seen],
            people.risk(first, rows),
            bands=self.bands,
            factor=self.factor,
            rng=rng,
        )
        return rows, label, np.ones(len(rows))


def parcelled(
    score: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    unseen: np.ndarray,
    *,
    bands: int,
    factor: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Labels [m] for rows of the scores `unseen` [m], from scores, outcomes and weights [n]."""
    edges = np.unique(np.quantile(score, np.arange(1, bands) / bands))
    band, mine = (np.searchsorted(edges, values, side="right") for values in (score, unseen))
    count, positive = (
        np.bincount(band, weight * of, minlength=len(edges) + 1) for of in (np.ones(len(y)), y)
    )
    # a band that ties left without tested people is told by all of them
    overall = positive.sum() / count.sum()
    rate = np.where(count > 0, positive / np.maximum(count, 1e-300), overall)
    label = np.zeros(len(unseen))
    for number, share in enumerate(np.clip(factor * rate, 0, 1)):
        here = rng.permutation(np.flatnonzero(mine == number))
        # rounded by lot: right on average, in small bands too
        label[here[: int(share * len(here) + rng.random())]] = 1.0
    return label


class BiasAwareSelfLearningClassifier(RejectInferenceClassifier):
    """Label only the untested rows of which a weak model is sure, more of them positive.

    *Idea.* Self-learning for credit scoring. First rejects are *filtered*: an isolation forest
    fitted to the tested says how similar each untested row is to them, and rows outside two
    percentiles are set aside. Then, in each round, a random part of the rest is scored by a weak
    model (logistic regression with an L1 penalty); the share `labelled` with the highest scores is
    labelled positive, and `labelled / imbalance` with the lowest negative, since positives are more
    common among the declined. The thresholds of the first round are kept. After a round the strong
    model (`learner`) is fitted to all labels and judged on held-out rows by a *Bayesian
    evaluation*: its AUC, with labels for tested rows and, for untested rows, the risk that the
    first strong model gives them. Rounds end when this AUC no longer rises.

    *Assumption.* That of tested-only, for the rows that are labelled: where a model of the tested
    is sure, it is right.

    *When it fails.* Where the model is sure but wrong: far from the tested, or where an unrecorded
    cause affects both approval and outcome. With few labels per round, as published, little
    changes. It does not improve calibration: only extreme rows are labelled, and more of them
    positive.

    Parameters
    ----------
    filtered
        Percentiles of likeness to the tested between which untested rows are kept.
    sampled
        Share of the rest that a round looks at, at random.
    labelled
        Share of those that is labelled positive in a round.
    imbalance
        How many positive labels there are to one negative.
    rounds
        At most.

    Attributes
    ----------
    evaluation_
        The AUC of the Bayesian evaluation: of the tested alone, and after each round but the last;
        of the first member.
    labelled_
        How many untested rows were labelled (positive, negative), by the first member.

    References
    ----------
    N. Kozodoi, S. Lessmann, M. Alamgir, L. Moreira-Matias and K. Papakonstantinou, "Fighting
    Sampling Bias: A Framework for Training and Evaluating Credit Scoring Models", 2024; N. Kozodoi
    et al., "Shallow Self-Learning for Reject Inference in Credit Scoring", ECML PKDD 2019.
    """

    learner: Any = "boost"
    filtered: tuple[float, float] = (0.05, 1.0)
    sampled: float = 0.8
    labelled: float = 0.01
    imbalance: float = 2.0
    rounds: int = 3

    name: ClassVar[str] = "bias-aware-self-learning"
    in_short: ClassVar[str] = "labels the untested of which a model is sure, in rounds"

    def _check_parameters(self) -> None:
        low, high = self.filtered
        shares = {"sampled": self.sampled, "labelled": self.labelled}
        if not 0 <= low < high <= 1 or not all(0 < one <= 1 for one in shares.values()):
            raise InputError(
                "filtered must be two rising percentiles between 0 and 1, sampled and labelled "
                f"shares above 0; got filtered={tuple(self.filtered)!r}, {shares}."
            )
        if not self.imbalance > 0 or self.rounds < 1:
            raise InputError(
                f"imbalance must be above 0 and rounds at least 1; got {self.imbalance} and "
                f"{self.rounds}."
            )

    def _inferred(self, people: Applicants, first: Any, rng: np.random.Generator) -> Inferred:
        open_rows = _like_the_tested(people, self.filtered)
        chosen, labels = np.zeros(0, np.int64), np.zeros(0)
        thresholds: tuple[float, float] | None = None
        areas = [_bayesian_auc(people, first, first)]
        for number in range(self.rounds):
            look = rng.permutation(open_rows)[: round(self.sampled * len(open_rows))]
            if not len(look):
                break
            risk = _weak(people, chosen, labels).predict_proba(people.standard[look])[:, 1]
            if thresholds is None:
                ends = (self.labelled / self.imbalance, 1 - self.labelled)
                thresholds = float(np.quantile(risk, ends[0])), float(np.quantile(risk, ends[1]))
            sure = []
            for label, mask, share in (
                (0.0, risk <= thresholds[0], self.labelled / self.imbalance),
                (1.0, risk >= thresholds[1], self.labelled),
            ):
                found = rng.permutation(look[mask])
                found = found if number == 0 else found[: round(share * len(look))]
                sure.append((found, np.full(len(found), label)))
            both = np.intersect1d(sure[0][0], sure[1][0])  # one score for all: sure of nobody
            new, values = (np.concatenate(part) for part in zip(*sure, strict=True))
            keep = ~np.isin(new, both)
            if not keep.any():
                break
            chosen, labels = np.append(chosen, new[keep]), np.append(labels, values[keep])
            open_rows = np.setdiff1d(open_rows, chosen)
            if number + 1 == self.rounds:
                break
            model = people.learn((chosen, labels, np.ones(len(chosen))))
            areas.append(_bayesian_auc(people, model, first))
            if not areas[-1] > areas[-2]:
                break
        if not self.models_:
            self.evaluation_ = areas
            self.labelled_ = (int((labels == 1).sum()), int((labels == 0).sum()))
        return chosen, labels, np.ones(len(chosen))


def _like_the_tested(people: Applicants, between: tuple[float, float]) -> np.ndarray:
    """Untested rows whose likeness to the tested lies between two percentiles."""
    from sklearn.ensemble import IsolationForest

    rows = people.declined
    if between == (0, 1):
        return rows
    forest = IsolationForest(random_state=people.seed % 2**32)
    forest.fit(people.standard[people.approved])
    likeness = forest.score_samples(people.standard[rows])
    low, high = np.quantile(likeness, between)
    return rows[(likeness >= low) & (likeness <= high)]


def _weak(people: Applicants, chosen: np.ndarray, labels: np.ndarray) -> Any:
    """Logistic regression with an L1 penalty, of the tested and what is labelled so far."""
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression

    rows = np.append(people.approved, chosen)
    y = np.append(people.table.y[people.approved], labels)
    weight = people.weight[rows]
    if len(np.unique(y[weight > 0])) < 2:
        return DummyClassifier().fit(people.standard[[0, 0]], [0, 1])
    # the name of it changed with scikit-learn 1.8
    old = getattr(LogisticRegression(), "penalty", None) == "l2"
    l1: dict[str, Any] = {"penalty": "l1"} if old else {"l1_ratio": 1.0}
    model = LogisticRegression(solver="liblinear", random_state=0, **l1)
    return model.fit(people.standard[rows], y.astype(int), sample_weight=weight)


def _bayesian_auc(people: Applicants, model: Any, prior: Any) -> float:
    """AUC on held-out rows, the untested counted as both classes by the risk of `prior`.

    What the published evaluation averages over labels drawn from that risk tends to.
    """
    rows = people.table if people.watched is None else people.watched
    y = rows.y if rows.rates is None else unbiased(rows.y, rows.rates)
    score, risk = (one.predict_proba(rows.X)[:, 1] for one in (model, prior))
    positive = rows.weight * np.where(rows.tested > 0, y, risk)
    return measures.auc(score, Masses(positive, rows.weight - positive)).value
