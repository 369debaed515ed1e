"""A method that learns from how deciders differ, where features do not explain who is tested."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dcem.estimation.folds import person_folds
from dcem.estimation.instrument import DECIDERS_ASSUMPTION, Instrument, fit_instrument
from dcem.estimation.nuisances import fit_nuisances
from dcem.estimation.outcomes import true_risk
from dcem.learners import Sample, make_learner
from dcem.methods.base import SelectiveClassifier
from dcem.methods.fitting import Prepared
from dcem.methods.supervised import require_learner
from dcem.methods.training_table import at_random
from dcem.table.messages import notice, require_one_of
from dcem.text import percent

FOLDS = 3
# Variance of deciders' testing rates at given features that counts as much as what the tested show.
LITTLE = 0.003


class InstrumentClassifier(SelectiveClassifier):
    """Learn risk from what additional tests find, by deciders who test more (instrument).

    *Idea.* Deciders see what the table does not show, so the tested are misleading about the
    untested. But if people reach deciders as if at random, deciders who test more show what
    additional tests find: at features x one more test finds r(x) = Cov(positive, z | x) /
    Cov(tested, z | x), where z is how often a person's decider tests. And every decider bounds the
    risk at x: it is at least the share that they find positive, and at most the share that they do
    not find negative. "point" takes r(x), kept inside the bounds [l(x), u(x)]; "partial" takes
    their middle, which assumes nothing about people whom no decider tests: acting where it exceeds
    c is the choice with the smallest worst-case regret, for every c at once (with c = 1/2 it is the
    rule that the paper learns by weighted classification). The risk of each row comes from models
    fitted to others, and a learner is fitted to it.

    *Assumption.* At equal features, who decides has nothing to do with the outcome. "point" also
    assumes that people about whom deciders differ have, at equal features, the mean risk of
    everybody.

    *When it fails.* If deciders see different people in ways that the table does not show, it is
    wrong without any sign of it; `dcem audit` checks what can be checked. If deciders hardly
    differ, little can be learnt from them: "point" is then drawn towards what the tested show, and
    the middle of "partial" mostly says who is tested. Without a `decider`, everybody has the same
    one.

    Parameters
    ----------
    identification
        "point" or "partial".
    learner
        One of `dcem.learners.LEARNERS`: "linear", "boost", "forest", "smooth", "perceptron".
    n_members
        Models, fitted to rows with random weights; their mean is the score.

    Attributes
    ----------
    risk_
        What the learner was fitted to, of each training row.
    bounds_
        Both bounds of it [n, 2].
    deciders_
        Who decided, in words.

    References
    ----------
    J. Chen, Z. Li and X. Mao, "Learning under selective labels with heterogeneous decision-makers:
    an instrumental variable approach", 2023. L. Wang and E. Tchetgen Tchetgen, "Bounded, efficient
    and multiply robust estimation of average treatment effects using instrumental variables",
    JRSS-B 2018 (the ratio). Figures: docs/deciders.md.
    """

    identification: str = "point"
    learner: Any = "forest"
    n_members: int = 1

    name: ClassVar[str] = "instrument"
    in_short: ClassVar[str] = "learns from how deciders differ"
    corrects_tests: ClassVar[bool] = True
    uses_validation: ClassVar[bool] = False  # every row is held out once

    def _fit(self, data: Prepared) -> None:
        require_one_of("identification", self.identification, ("point", "partial"))
        require_learner(self)
        problem, seed = data.problem, data.seeds[0]
        folds = min(FOLDS, int(problem.person.max()) + 1)
        fold = person_folds(problem, folds, seed)
        models = fit_nuisances(problem, fold, seed)
        shown, testing = true_risk(problem, models.outcome), models.testing
        instrument = None
        if problem.decider is not None:
            instrument = fit_instrument(problem, fold, testing, seed)
        low, high = testing * shown, 1 - testing * (1 - shown)  # one decider for all
        self.deciders_ = ""
        if instrument is not None:
            ends = instrument.predicted
            low, high = np.minimum(*ends), np.maximum(*ends)  # they may cross by chance
            rates = [float((instrument.found + instrument.cleared)[:, z].mean()) for z in (0, -1)]
            self.deciders_ = (
                f"The outcome of everybody, from {len(instrument.names)} levels of deciders, by "
                f"whom {percent(rates[0])} to {percent(rates[1])} of people with the same features "
                f"are tested. {DECIDERS_ASSUMPTION}."
            )
            shown = found_by_more_tests(instrument, shown)
        elif problem.decider is None:
            notice(
                "'instrument' learns from how deciders differ, but no column says who decided "
                "(`decider`). It learns what the tested show instead."
            )
        else:
            notice(
                "There are too few people per decider to distinguish deciders. 'instrument' learns "
                "what the tested show instead."
            )
        self.bounds_ = np.stack([low, high], axis=1)
        self.risk_ = (
            np.clip(shown, low, high) if self.identification == "point" else (low + high) / 2
        )
        self.models_ = [
            make_learner(self.learner, one, squared=True).fit(
                Sample(problem.X, self.risk_, counts, problem.person)
            )
            for one, counts in at_random(problem.weights, problem.person, data.seeds)
        ]


def found_by_more_tests(instrument: Instrument, shown: np.ndarray) -> np.ndarray:
    """What one more test finds at each row's features [n], drawn to `shown` where that is unclear.

    Cov(positive, z | x) / Cov(tested, z | x), with z = P(tested | x, level).
    """
    rate = instrument.found + instrument.cleared
    off = instrument.chance * (rate - (instrument.chance * rate).sum(axis=1, keepdims=True))
    found, tested = ((off * one).sum(axis=1) for one in (instrument.found, rate))
    return (found + LITTLE * shown) / (tested + LITTLE)
