"""What a learner is, and what learners share; a user's classifier as one.

scikit-learn is imported by those who need it: a process that trains a network starts without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from scipy.special import expit, logit

from dcem.learners.preprocess import Preprocessor
from dcem.table.disclosure import THRESHOLD
from dcem.table.imperfect import evidence, unbiased
from dcem.table.messages import InputError, notice

FEWEST_IN_LEAF = THRESHOLD  # people that a leaf, or whatever else is kept, must stand for
SCORED_AT_ONCE = 512  # rows scored at a time
COUNT_CLIP = 1e-6  # probabilities that come from counting are kept this far from 0 and 1
ROUNDS = 10  # of expectation-maximisation with a classifier that knows labels only


class Sample(NamedTuple):
    """Rows to learn from, or to choose by."""

    X: np.ndarray  # features [n, d], NaN where missing
    y: np.ndarray  # labels [n]
    weight: np.ndarray  # [n]
    person: np.ndarray | None = None  # whose row it is [n]; None where each is somebody else's
    rates: np.ndarray | None = None  # of the imperfect test, where labels are its results [n, 2]

    def take(self, rows: np.ndarray) -> Sample:
        """Some of the rows."""
        columns: Any = (None if column is None else column[rows] for column in self)
        return Sample(*columns)

    def counted(self) -> Sample:
        """Without rows of weight 0, and with weights of mean 1."""
        kept = self.weight > 0
        some = self if kept.all() else self.take(kept)
        return some._replace(weight=some.weight / some.weight.mean())

    @property
    def evidence(self) -> np.ndarray | None:
        """By how much each label changes the log-odds of the truth [n]; None if it is the truth."""
        return None if self.rates is None else evidence(self.y, self.rates)

    @property
    def true_labels(self) -> np.ndarray:
        """Labels whose mean is that of the truth [n]; beyond 0 and 1 where a test errs."""
        return self.y if self.rates is None else unbiased(self.y, self.rates)

    @property
    def base_rate(self) -> float:
        """The log-odds of the truth, drawn in by half a row of each class."""
        return base_rate(self.true_labels, self.weight)


class Batch(NamedTuple):
    """Some of the rows of a table that is not in memory.

    `number` follows from whose row it is (`dcem.table.sampling`); `weight` has a row per member.
    """

    X: np.ndarray  # [n, d]
    y: np.ndarray  # [n]
    weight: np.ndarray  # [members, n]
    number: np.ndarray  # [n]


class BatchSource(Protocol):
    """All batches, as often as they are asked for."""

    def __call__(self, *, features: bool = True) -> Iterator[Batch]:
        """The batches in order; without `features` labels and weights alone, which is sooner."""
        ...


class LearnerBase:
    """Anything that can be fitted to weighted rows and gives probabilities.

    A learner writes `_learn` and `predict_logit`; what is said of everybody where there is only one
    class (`_say`); and, to be saved with a model, `arrays` and `from_arrays`. `name` and
    `words` say what it is.
    """

    classes_ = np.array([0, 1])

    def __init__(self, seed: int = 0, squared: bool = False):
        self.seed, self.squared = seed, squared

    def fit(self, sample: Sample, held: Sample | None = None) -> Self:
        """Fit to a sample, and choose by rows held out, if there are any.

        Where a test errs, the truth behind its results is learnt: what makes the results likely,
        P(result | x) = sum over truths of P(result | truth) P(truth | x).
        """
        self.n_features = sample.X.shape[1]
        sample = sample.counted()
        held = held if held is not None and held.weight.any() else None
        self._prepare(sample)
        if len(np.unique(sample.y)) < 2:
            self._say(float(expit(sample.base_rate)) if self.squared else sample.base_rate)
        else:
            self._learn(sample, held)
        return self

    def _prepare(self, sample: Sample) -> None:
        """What is learnt of features alone."""
        self.preprocessor = Preprocessor.fit(sample.X, "standard", person=sample.person)

    def _learn(self, sample: Sample, held: Sample | None) -> None:
        """Fit to rows of both classes, whose weights have mean 1; the preprocessor is there."""
        raise NotImplementedError

    def _say(self, value: float) -> None:
        """Predict the same for everybody: log-odds, or a number where these are fitted."""
        raise NotImplementedError

    def _loss(self, z: np.ndarray, held: Sample) -> float:
        """Of log-odds, or of the numbers of a `squared` learner, on rows held out."""
        each = (
            (np.clip(z, 0, 1) - held.y) ** 2 if self.squared else losses(z, held.y, held.evidence)
        )
        return float(np.average(each, weights=held.weight))

    def predict_logit(self, X: np.ndarray) -> np.ndarray:
        """Log-odds of class 1 `[n]`."""
        raise NotImplementedError

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probabilities `[n, 2]`."""
        positive = expit(self.predict_logit(X))
        return np.stack([1 - positive, positive], axis=1)


class Foreign(LearnerBase):
    """A clone of a user's classifier.

    It gets missing values as they are if it says that it takes them; otherwise standardised
    features with the median in their place, and indicators.
    """

    def __init__(self, model: Any, seed: int = 0, squared: bool = False):
        from dcem.learners.registry import LEARNERS

        super().__init__(seed, squared)
        if squared:
            raise InputError(
                "dr-learner and instrument fit numbers (pseudo-outcomes, risks), not classes. The "
                f"learner must be one of {', '.join(LEARNERS)}; for dr-learner also network."
            )
        made = not isinstance(model, type)
        if not (made and hasattr(model, "predict_proba") and hasattr(model, "fit")):
            given = repr(model) if made else f"the class {model.__name__}; write {model.__name__}()"
            raise InputError(
                f"learner must be network, {', '.join(LEARNERS)}, or a scikit-learn classifier "
                f"with predict_proba; got {given}."
            )
        from sklearn.base import clone
        from sklearn.pipeline import Pipeline
        from sklearn.utils import get_tags
        from sklearn.utils.validation import has_fit_parameter

        self.model = clone(model)
        step, last = model.steps[-1] if isinstance(model, Pipeline) else ("", model)
        takes_weights = has_fit_parameter(last, "sample_weight")
        self.weights_as = f"{step}__sample_weight".removeprefix("__") if takes_weights else ""
        self.takes_gaps = get_tags(model).input_tags.allow_nan

    def _learn(self, sample: Sample, held: Sample | None) -> None:
        """How it chooses is its own affair: it gets no rows held out."""
        X, y, weight, *_ = sample
        self.constant: float | None = None
        unset = [name for name, value in self.model.get_params().items() if value is None]
        seeded = [name for name in unset if name.split("__")[-1] == "random_state"]
        self.model.set_params(**dict.fromkeys(seeded, self.seed % 2**32))
        if sample.rates is not None:
            self._learn_truth(sample)
            return
        given: dict[str, Any] = {}
        if np.ptp(weight) > 0:
            if self.weights_as:
                given[self.weights_as] = weight
            else:
                notice(
                    f"The learner {type(self.model).__name__} takes no sample_weight, so the "
                    "weights of rows are ignored."
                )
        self.model.fit(self._rows(X), y.astype(int), **given)

    def _learn_truth(self, sample: Sample) -> None:
        """Behind results of an imperfect test: each row as both, by how likely either is."""
        if not self.weights_as:
            raise InputError(
                f"The learner {type(self.model).__name__} takes no sample_weight, which is needed "
                "to learn from an imperfect test. Choose linear, boost, forest or network."
            )
        rows, weight = self._rows(sample.X), sample.weight
        both, label = np.concatenate([rows, rows]), np.repeat([1, 0], len(rows))
        z = np.full(len(rows), sample.base_rate)
        for _ in range(ROUNDS):
            q = expit(z + sample.evidence)
            counts = np.append(weight * q, weight * (1 - q))
            self.model.fit(both, label, **{self.weights_as: counts})
            z = self.predict_logit(sample.X)

    def _say(self, value: float) -> None:
        self.constant = value

    def _rows(self, X: np.ndarray) -> np.ndarray:
        if self.takes_gaps:
            return X
        return self.preprocessor.transform(X, "float64")

    def predict_logit(self, X: np.ndarray) -> np.ndarray:
        """See `LearnerBase`."""
        if self.constant is not None:
            return np.full(len(X), self.constant)
        return as_logit(self.model.predict_proba(self._rows(X))[:, 1])


def smallest_leaf(person: np.ndarray | None, n_rows: int) -> int:
    """Rows that a leaf must have for it to hold ten people, whoever they are.

    Nine people with the most rows could fill a leaf by themselves; one row more is a tenth person.
    """
    if person is None or n_rows == 0:
        return FEWEST_IN_LEAF
    sizes = np.sort(np.unique(person, return_counts=True)[1])[::-1]
    return max(FEWEST_IN_LEAF, int(sizes[: FEWEST_IN_LEAF - 1].sum()) + 1)


def by_block(score: Callable[[np.ndarray], np.ndarray], X: np.ndarray) -> np.ndarray:
    """`score(X)` `[n]`, a few rows at a time: what is computed in between stays in the cache."""
    z = np.empty(len(X))
    for start in range(0, len(X), SCORED_AT_ONCE):
        z[start : start + SCORED_AT_ONCE] = score(X[start : start + SCORED_AT_ONCE])
    return z


def base_rate(y: np.ndarray, weight: np.ndarray) -> float:
    """The log-odds of class 1 among rows, drawn in by half a row of each class."""
    total = float(weight.sum())
    found = float(np.clip(y @ weight, 0, total))
    return float(logit((found + 0.5) / (total + 1.0)))


def losses(z: np.ndarray, y: np.ndarray, evidence: np.ndarray | None = None) -> np.ndarray:
    """Cross-entropy of log-odds [n]; of results, -log P(result) up to a constant of each row.

    `evidence` is that of a result; the slope in z then is the risk minus what it is given the
    result, expit(z) - expit(z + told).
    """
    if evidence is None:
        return np.logaddexp(0, z) - y * z
    return np.logaddexp(0, z) - np.logaddexp(0, z + evidence) + np.maximum(evidence, 0)


def as_logit(probability: np.ndarray) -> np.ndarray:
    """Log-odds of probabilities that may be 0 or 1, or lie beyond."""
    return logit(np.clip(probability, COUNT_CLIP, 1 - COUNT_CLIP))
