"""PURPLE: learning from found positives alone, each group's found at a rate of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from dcem.estimation.folds import person_folds
from dcem.estimation.positives_only import fit_found
from dcem.methods.fitting import move_to_known, said_of_known, that_count
from dcem.methods.supervised import LearnerClassifier
from dcem.table.disclosure import few_people
from dcem.table.labels import SelectiveLabels
from dcem.table.positives_only import recorded
from dcem.text import number

FOLDS = 5  # of people to choose the penalty of the rates by, where there are many features


class PurpleClassifier(LearnerClassifier):
    """Learn from found positives, allowing for groups in which fewer of them are found.

    *Idea.* Nobody recorded who was tested. A found positive of a group in which half as many are
    found represents twice as many: P(found | x, g) = c_g f(x). The rates c_g are estimated first,
    up to a common constant (`dcem.estimation.positives_only`); then f is learnt as the truth behind
    a test whose sensitivity is c_g, the highest of them taken as 1.

    *Assumption.* The outcome depends on the features in the same way in all groups, and whether a
    positive is found depends on the group alone. Scores then rank people, also across groups, and
    are proportional to the risk where it is small. They are not risks: the table does not say how
    many positives are never found in any group.

    *When it fails.* Where features affect being found, it mistakes them for risk, as `y-obs` does.
    Where the relation between features and outcome differs between groups, it mistakes the
    difference for a rate of being found; `dcem audit` tests for this. Where testing was recorded,
    it discards what tested negatives say.

    Parameters
    ----------
    learner
        As of `y-obs`; here a linear model unless another is asked for.

    Attributes
    ----------
    found_rates_
        The rate of each group, as a share of the highest, but for groups of which few were found;
        not where rates are stated.

    References
    ----------
    D. Shanmugam, K. Hou and E. Pierson, "Quantifying disparities in intimate partner violence: a
    machine learning method to correct for underreporting", npj Women's Health 2024.
    """

    learner: Any = "linear"

    name: ClassVar[str] = "purple"
    in_short: ClassVar[str] = "learns from the found, each group's at its own rate"
    as_published: ClassVar[Mapping[str, Any]] = {}

    def _fit_each(self, *given: Any, **options: Any) -> None:
        estimators, problems, validations, truths = given
        if all(one.imperfect_test is not None for one in problems):  # the rates are stated
            super()._fit_each(*given, **options)
            return
        pairs = [
            self._at_rates(one, *both)
            for one, *both in zip(estimators, problems, validations, strict=True)
        ]
        super()._fit_each(
            estimators, [one for one, _ in pairs], [one for _, one in pairs], truths, **options
        )
        for one, problem in zip(estimators, problems, strict=True):
            move_to_known(one, problem, 0)  # in what was fitted, everybody counts as tested
            moved = said_of_known(problem)
            constant = "" if moved else ", up to a constant that nobody knows"
            rates = [f"{name} {number(c, 2)}" for name, c in one.found_rates_.items()]
            one.learnt_from_ = (
                f"How likely the outcome is{constant}, from those who were found. Rates of being "
                f"found, the highest taken as 1: {', '.join(rates)}. {moved}"
            ).strip()

    def _at_rates(
        self, one: Any, problem: SelectiveLabels, validation: SelectiveLabels | None
    ) -> tuple[SelectiveLabels, SelectiveLabels | None]:
        """The same people, everybody as if tested by being found."""
        counted, *_ = that_count(problem, None)
        n_folds = min(FOLDS, len(np.unique(counted.person)))
        fold = person_folds(counted, n_folds, 0) if n_folds > 1 else None
        rates = fit_found(counted, fold).rates
        named = dict(zip(problem.group_names, rates.tolist(), strict=True))
        few = few_people(problem)  # a rate would tell how many were found
        one.found_rates_ = {
            name: rate
            for (name, rate), cells in zip(named.items(), few, strict=False)
            if not cells & {"rows", "positive"}
        }
        if validation is None:
            return recorded(problem, rates), None
        mean = float(rates.mean())  # a group that validation alone has is refused later
        theirs = np.array([named.get(name, mean) for name in validation.group_names])
        return recorded(problem, rates), recorded(validation, theirs)
