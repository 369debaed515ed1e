"""The default: cautious and extrapolating models together, recalibrated for the population."""

from __future__ import annotations

from numbers import Integral
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit, logit, softmax

from dcem.estimation.influence import FEWEST_PEOPLE, kish, logistic
from dcem.estimation.outcomes import seen_outcomes
from dcem.estimation.periods import latest_rows
from dcem.learners.learner import losses as result_losses
from dcem.learners.perceptron import Perceptron
from dcem.methods.base import SMALLEST, Prepared, SelectiveClassifier
from dcem.methods.ensemble_parts import PARTS, Parts, fit_parts, folds_of
from dcem.methods.minibatches import Start
from dcem.table.imperfect import evidence
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError

FLOOR = 0.05  # the smallest estimated probability of a test that a weight is made of
RECENT, FEWEST_RECENT = 1 / 3, 50  # share of the tests, and positives and negatives among them
FEWEST_OF_EACH = 10  # people with each result, who alone say how common the outcome is
LEAST_SLOPE = 0.05  # of the recalibration: ranks are kept
FEWEST_FOR_SLOPE = 20  # people of either result: ten for each number of the line; with fewer,
STEEPEST = 1.5  # the slope is at most this
LEAST_OF_NETWORK = 0.3  # its share at least: tests cannot tell what it learnt from the untested


class SelectiveEnsembleClassifier(SelectiveClassifier):
    """Models of the tested and DCEM, averaged by how well each predicts held-out tests.

    *Idea.* Models of the tested alone (boosted trees, a forest, a penalised linear model, and a
    smooth one: a line with bumps) are right for people like those tested, and guess elsewhere, each
    in its own way. DCEM's networks also learn from the untested, at the price of a bias. Each of
    the five is fitted once per fold; their mean log-odds is the score. A part has the weight
    exp(-z), where z is the number of standard errors by which its loss on held-out tests exceeds
    that of the best part: parts that are about equally good share the weight, and one that is
    clearly worse hardly counts. The networks keep a share of 0.3 exp(-z/4) at least, because no
    test shows what they learnt from the untested. Finally, log-odds are shifted and scaled so that
    held-out tests are positive as often as predicted: scores become risks, and ranks do not change.
    The weights, and this recalibration line, are each the mean of two estimates: one with tests
    weighted by 1/P(tested), so that they represent people who were unlikely to be tested, which is
    right but variable, and one with tests as they are (unless these were drawn by a known design).
    The slope is reduced where held-out tests hardly tell people apart, because it was fitted to the
    same tests, and increased by how much more a single model varies than the mean of all, because
    held-out tests can only judge single models. It is at most 1.5 where fewer than 20 people were
    tested positive, or negative. Where rows have a time, the latest third of the tests
    decides the shift.

    *Assumption.* Features and group explain who is tested; features explain the outcome; test
    results are the truth, or err at stated rates. The weights and the recalibration need overlap:
    some people like everybody, even if few, must be among the tested.

    *When it fails.* For people unlike anybody tested, the parts extrapolate, and so does the
    calibration: `spread` says how far the parts disagree there, `support` how far away the nearest
    tests are. Where an unrecorded cause affects both testing and outcome, it is as biased as its
    parts.

    Parameters
    ----------
    parts
        Some of "network", "boost", "forest", "linear", "smooth"; a single one gives that part
        alone.
    n_folds
        Folds of people. Fewer are taken where too few were tested positive, or negative.
    steps
        Of the networks, at most; training stops after a third of them without a lower loss on
        held-out tests.
    recalibrate
        Whether scores are made risks of the population.
    n_jobs
        Threads; None or -1 takes as many as there are cores. Results do not depend on it.

    Attributes
    ----------
    weights_
        Part -> its share in the mean log-odds.
    losses_
        Part -> its loss on held-out tests, after a recalibration of its own.
    calibration_
        `intercept`, `slope`, and `weighted`: whether tests counted 1/P(tested) too. That is given
        up where the tested represent the others like fewer than 30 people.
    calibrated
        Whether scores are risks: not where too few were tested to hold any out.
    propensity_
        P(tested) of each row, out of fold.

    References
    ----------
    D. H. Wolpert, "Stacked generalization", Neural Networks 1992 (weights from held-out rows);
    J. Platt, "Probabilistic outputs for support vector machines", 1999 (the recalibration);
    J. C. van Houwelingen and S. le Cessie, "Predictive value of statistical models", Statistics in
    Medicine 1990 (its reduced slope); of the
    networks: T. Chang and J. Wiens, ICML 2024, as for `dcem`; of the smooth part: C. E. Rasmussen
    and C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006. Figures:
    docs/default.md.
    """

    parts: tuple[str, ...] = PARTS
    n_folds: int = 4
    steps: int = 1200
    recalibrate: bool = True
    n_jobs: int | None = None

    name: ClassVar[str] = "ensemble"
    in_short: ClassVar[str] = "several models, weighted by held-out tests"
    corrects_tests: ClassVar[bool] = True
    members_alike: ClassVar[bool] = False
    uses_validation: ClassVar[bool] = False  # every row is held out once

    @property
    def calibrated(self) -> bool:  # type: ignore[override]
        """Whether scores are risks of the population, once fitted."""
        return bool(self.calibrated_)

    def _fit(self, data: Prepared, start: Start | None = None) -> None:
        named = isinstance(self.parts, (tuple, list)) and all(one in PARTS for one in self.parts)
        if not named or not self.parts or len(set(self.parts)) < len(self.parts):
            raise InputError(
                f"parts must be some of {', '.join(PARTS)}, each once; got {self.parts!r}."
            )
        for name, value, least in (("n_folds", self.n_folds, 2), ("steps", self.steps, 1)):
            if not isinstance(value, Integral) or value < least:
                raise InputError(f"{name} must be a whole number from {least} on; got {value!r}.")
        jobs = self.n_jobs
        if jobs is not None and not (isinstance(jobs, Integral) and (jobs == -1 or jobs >= 1)):
            raise InputError(
                "n_jobs must be a whole number from 1 on, or None or -1 for as many as there are "
                f"cores; got {jobs!r}."
            )
        problem, seed = data.problem, data.seeds[0]
        fold = folds_of(problem, self.n_folds, seed)
        table, _ = data.tables(raw=True)
        fitted = fit_parts(
            tuple(self.parts),
            table,
            data.standard,
            fold,
            data.n_groups,
            seed=seed,
            steps=self.steps,
            n_jobs=None if jobs == -1 else jobs,
            start=start if start and start.networks else None,
            progress=data.progress,
            beside=lambda: data.support,
        )
        self.models_ = [model for part in self.parts for model in fitted.models[part]]
        self.propensity_model_, self.propensity_ = fitted.testing_model, fitted.testing
        self.calibrated_ = self.recalibrate and fold is not None
        judges = problem.tested & start.unseen if start else problem.tested
        self._weigh(problem, fitted, judges, honest=fold is not None)

    def _refit(self, data: Prepared, earlier: Self) -> None:
        """Fit with networks that begin at the earlier ones.

        The earlier networks have seen the earlier tests, each most of them, and nobody knows any
        more which: scores of these people are not out of fold. So the parts are weighed, stopped
        and recalibrated by new tests alone, drawn by design. Other parts are quickly fitted anew.
        """
        problem = data.problem
        if problem.testing_probability is None:
            raise InputError(
                "To start from a model, state how likely each row was to be tested (the role "
                "`testing_probability`): 1 if it was tested when the model was fitted, else the "
                "probability with which its test was drawn. This distinguishes new tests from old "
                "ones."
            )
        unseen = problem.testing_probability < 1
        new = problem.tested & unseen
        people = len(np.unique(problem.person[new]))
        of_each = [
            len(np.unique(problem.person[new & (problem.y_obs == value)])) for value in (1, 0)
        ]
        if people < FEWEST_PEOPLE or min(of_each) < FEWEST_OF_EACH:
            positive, negative = of_each
            raise InputError(
                "To start from a model, there must be new tests (with a probability under 1) of at "
                f"least {FEWEST_PEOPLE} people, {FEWEST_OF_EACH} of them positive and "
                f"{FEWEST_OF_EACH} negative, to judge the result by. Here there are {people:,} "
                f"people, {positive:,} positive and {negative:,} negative. Fit from scratch."
            )
        networks = [model for model in earlier.models_ if isinstance(model, Perceptron)]
        self._fit(data, Start(networks, unseen))

    def _weigh(
        self, problem: SelectiveLabels, fitted: Parts, seen: np.ndarray, *, honest: bool
    ) -> None:
        """Set the weights of the parts and the recalibration, from out-of-fold scores of `seen`."""
        people = problem.person[seen]
        y, of_results = seen_outcomes(problem)[seen], None
        if problem.imperfect_test is not None:
            of_results = evidence(problem.y_obs[seen], problem.imperfect_test.rates[seen])
        own = problem.weights[seen]
        designed = problem.testing_probability  # where tests were drawn by a known design
        testing = np.maximum(fitted.testing, FLOOR) if designed is None else designed
        weight = own / testing[seen]
        weighted = kish(np.bincount(people, weight)) >= FEWEST_PEOPLE
        weight = weight if weighted else own
        z = np.stack([fitted.log_odds[part][seen] for part in self.parts])  # [parts, tests]
        counted = (own, weight) if designed is None else (weight,)  # estimates are unsteady
        losses = [np.stack([_losses(z_of, y, each, of_results) for z_of in z]) for each in counted]
        shares = np.full(len(z), 1 / len(z))
        if honest:
            network = np.array(self.parts) == "network"
            least = LEAST_OF_NETWORK * network
            above = map(_errors_above_best, losses, counted, [people] * len(counted))
            shares = np.mean([_shares(each, least) for each in above], axis=0)
        line = (0.0, 1.0)
        if self.calibrated_:
            lines = [_recalibration(shares @ z, y, each, of_results) for each in counted]
            numbers = 1 / float(shares @ shares)  # that were fitted: the slope, weights that count
            each_model = sum(
                share * fitted.by_model[part]
                for share, part in zip(shares, self.parts, strict=True)
            )
            line = _stretched(
                np.mean(lines, axis=0),
                float(np.average(shares @ z, weights=weight)),
                _noise(each_model)
                * _shrinkage(shares @ z, lines[0], y, counted[0], people, numbers, of_results),
            )
            # So few tests are separated by chance, and a line as steep would make risks of 0 and 1.
            fewest = min(len(np.unique(people[problem.y_obs[seen] == result])) for result in (0, 1))
            if fewest < FEWEST_FOR_SLOPE and line[1] > STEEPEST:
                share = weight / weight.sum()
                line = _intercept(STEEPEST * (shares @ z), y, share), STEEPEST
        if self.calibrated_ and problem.time is not None:
            now = _recent(problem, seen)
            share = weight[now] / weight[now].sum()
            line = _intercept(line[1] * (shares @ z)[now], y[now], share), line[1]
        self.weights_ = dict(zip(self.parts, shares.tolist(), strict=True))
        means = losses[-1] @ weight / weight.sum()
        self.losses_ = dict(zip(self.parts, means.tolist(), strict=True))
        self.calibration_ = {"intercept": line[0], "slope": line[1], "weighted": weighted}

    # -- predicting -------------------------------------------------------------------------

    def members(self, X: np.ndarray, rows: np.ndarray, *, exact: bool = True) -> np.ndarray:
        """The risk that each part sees `[parts, n]`, recalibrated as their mean is."""
        per_part, z = len(self.models_) // len(self.parts), []
        for start in range(0, len(self.models_), per_part):
            models = self.models_[start : start + per_part]
            if isinstance(models[0], Perceptron):
                z.append(Perceptron.predict_logits(models, X, exact=exact).mean(axis=0))
            else:
                z.append(np.mean([model.predict_logit(X) for model in models], axis=0))
        line = self.calibration_
        return expit(line["intercept"] + line["slope"] * np.stack(z))

    def combined(self, members: np.ndarray) -> np.ndarray:
        """The mean of the parts' log-odds, by their weights, as a risk `[n]`."""
        z = logit(np.clip(members, SMALLEST, 1 - SMALLEST))
        return expit(np.array([self.weights_[part] for part in self.parts]) @ z)


def _recent(problem: SelectiveLabels, seen: np.ndarray) -> np.ndarray:
    """The tests that say how common the outcome is now `[tests]`: the latest, if they are enough.

    What holds now counts, not what held on average since the table begins.
    """
    recent = latest_rows(problem, RECENT)[seen]
    y = problem.y_obs[seen][recent]
    enough = min((y == 1).sum(), (y == 0).sum()) >= FEWEST_RECENT
    return recent if enough else np.ones(len(recent), bool)


def _losses(
    z: np.ndarray, y: np.ndarray, weight: np.ndarray, evidence: np.ndarray | None = None
) -> np.ndarray:
    """Cross-entropy of each test `[n]`, after a recalibration: parts differ in scale by nature."""
    intercept, slope = _recalibration(z, y, weight, evidence)
    return result_losses(intercept + slope * z, y, evidence)


def _errors_above_best(losses: np.ndarray, weight: np.ndarray, person: np.ndarray) -> np.ndarray:
    """By how many standard errors the loss of each part lies above the lowest `[parts]`."""
    share = weight / weight.sum()
    means = losses @ share
    best = int(means.argmin())
    person = np.unique(person, return_inverse=True)[1]
    above = np.zeros(len(losses))
    for part, difference in enumerate(losses - losses[best]):
        if part != best:
            of_person = np.bincount(person, share * (difference - (means[part] - means[best])))
            above[part] = (means[part] - means[best]) / max(np.sqrt(of_person @ of_person), 1e-12)
    return above


def _shares(above: np.ndarray, least: np.ndarray) -> np.ndarray:
    """What each part counts `[parts]`, by its standard errors above the best; `least` one part."""
    shares = softmax(-above)
    least = least * np.exp(-above / 4)  # less, if tests speak against it
    short = shares < least
    if short.any():
        rest = shares[~short] * (1 - least[short].sum()) / shares[~short].sum()
        shares[short], shares[~short] = least[short], rest
    return shares


def _recalibration(
    z: np.ndarray, y: np.ndarray, weight: np.ndarray, evidence: np.ndarray | None = None
) -> tuple[float, float]:
    """Intercept and slope of a weighted logistic regression on the log-odds (Platt).

    Where a test errs, of the truth behind its results, by their `evidence`; `y` then are
    numbers whose mean is the truth's.

    One more test of each kind would say slope 1, intercept 0: enough for an answer where classes
    are separated or scores do not vary. The slope is kept above 0, so that ranks stay.
    """
    share = weight / weight.sum()
    design = np.stack([np.ones_like(z), z])
    start, prior = np.array([0.0, 1.0]), np.array([1e-6, 1 / len(y)])
    line = start
    for _ in range(50 if evidence is None else 500):
        p = expit(line @ design)
        known = y if evidence is None else expit(line @ design + evidence)
        slope = design @ (share * (p - known)) + prior * (line - start)
        curvature = (design * (share * p * (1 - p))) @ design.T + np.diag(prior)
        step = np.linalg.solve(curvature, slope)
        step /= max(np.abs(step).max() / 2, 1)  # a long one is shortened, and keeps its direction
        line = line - step
        if np.abs(step).max() < 1e-10:
            break
    if line[1] < LEAST_SLOPE:
        return _intercept(LEAST_SLOPE * z, y, share), LEAST_SLOPE
    return float(line[0]), float(line[1])


def _shrinkage(
    z: np.ndarray,
    line: tuple[float, float],
    y: np.ndarray,
    weight: np.ndarray,
    person: np.ndarray,
    numbers: float,
    evidence: np.ndarray | None = None,
) -> float:
    """What is left of a slope for other people: (chi² - numbers) / chi², or nothing.

    The slope, and the weights behind z, were fitted to the very tests that judge them. chi² says
    how much better the line predicts these than the same risk for everybody (van Houwelingen and
    le Cessie 1990): where tests hardly tell people apart, chance made most of the slope.
    """
    flat = _recalibration(np.zeros_like(z), y, weight, evidence)[0]
    gain = result_losses(np.full_like(z, flat), y, evidence)
    gain = gain - result_losses(line[0] + line[1] * z, y, evidence)
    chi2 = 2 * kish(np.bincount(person, weight)) * float(np.average(gain, weights=weight))
    return max(chi2 - numbers, 0.0) / chi2 if chi2 > 0 else 0.0


def _noise(z: np.ndarray) -> float:
    """How many times as much the log-odds of one model vary as their mean `[models, rows]`.

    As many times as there are models, if these have nothing in common; more would be chance, and
    less than once the rounding of models that say the same of everybody.
    """
    of_mean, of_one = float(z.mean(axis=0).var()), float(z.var(axis=1).mean())
    return min(max(of_one / of_mean, 1.0), len(z)) if of_mean > 0 else 1.0


def _stretched(line: np.ndarray, center: float, times: float) -> tuple[float, float]:
    """A line through the same point above `center`, so many times as steep; ranks are kept."""
    slope = max(times * float(line[1]), LEAST_SLOPE)
    return float(line[0]) + (float(line[1]) - slope) * center, slope


def _intercept(z: np.ndarray, y: np.ndarray, share: np.ndarray) -> float:
    """The shift of log-odds at which the mean risk is the share of positives.

    Where a test errs, that share may come out at 0 or below: it is kept half a test above.
    """
    half = 0.5 / len(y)
    rate = np.clip(share @ y, half, 1 - half)
    return float(logistic(np.ones((len(z), 1)), share * rate, share, offset=z)[0][0])
