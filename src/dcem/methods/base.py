"""What every method has in common: the contract with scikit-learn, whatever does the learning.

A method is an ordinary classifier whose `fit` takes, besides features and labels, who was tested
and to which group a row belongs. `SelectiveClassifier` checks, holds rows out, keeps and saves; a
method under it writes two functions: `_fit`, from prepared rows to fitted attributes, and
`members`, from rows to the scores of its members, where these are not those of its `models_`.
`NetworkClassifier` (`dcem.methods.network`) does both for neural networks, many of them at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

import numpy as np
import pandas as pd
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from dcem.hooks import above
from dcem.learners.preprocess import Preprocessor
from dcem.methods.fitting import Prepared, fit_many, forget, prepare
from dcem.parallel import one_thread
from dcem.table import checks
from dcem.table.frames import as_frame, as_series, check_aligned, shape_of
from dcem.table.groups import check_groups
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError, notice, rows_text
from dcem.table.transformer import frame_encoder

if TYPE_CHECKING:
    from torch import nn

SMALLEST = 1e-15  # probabilities are kept this far from 0 and 1 where their log-odds are asked for


@dataclass_transform(kw_only_default=True, eq_default=False)
@dataclass(kw_only=True, eq=False, repr=False)
class SelectiveClassifier(ClassifierMixin, BaseEstimator):
    """Base of all methods: a classifier of rows of which some were tested.

    Every class under it is made a dataclass: its annotated attributes are its parameters.

    Parameters
    ----------
    validation_fraction
        Share of the rows held out where a validation set is needed and none is given.
    random_state
        Seed of everything that is drawn: initial weights, batches, held-out rows.
    verbose
        1 shows progress.
    """

    validation_fraction: float = 0.2
    random_state: Any = None
    verbose: int = 0

    name: ClassVar[str]
    in_short: ClassVar[str]  # what it does, in a few words that go after its name
    needs_group: ClassVar[bool] = False  # does prediction need `sensitive_features`?
    uses_truth: ClassVar[bool] = False  # is it told the truth of every row, which no user has?
    uses_validation: ClassVar[bool] = True  # does it look at held-out rows? If not, there are none
    needs_networks: ClassVar[bool] = False  # is it a neural network, and nothing else?
    members_alike: ClassVar[bool] = True  # are its members one model, trained again and again?
    calibrated: ClassVar[bool] = False  # are its scores risks, for the population?
    row_by_row: ClassVar[bool] = False  # can rows teach it as they pass, whatever the others are?
    corrects_tests: ClassVar[bool] = False  # does it learn the truth behind an imperfect test?
    # For the plan of a benchmark: the time of a step against that of one network, the rounds after
    # which it usually has stopped by itself, and whether a fit goes on from a checkpoint.
    step_cost: ClassVar[float] = 1.0
    usual_rounds: ClassVar[int | None] = None
    resumable: ClassVar[bool] = False
    # Task ("sinusoid", "sepsis") -> the parameters of the published runs, where they differ.
    as_published: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "tested": True,
        "sensitive_features": True,
        "sample_weight": True,
        "test_sensitivity": True,
        "test_specificity": True,
        "prevalence": True,
        "decider": True,
    }

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(kw_only=True, eq=False, repr=False)(cls)

    # -- fitting ----------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        tested: Any = None,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        test_sensitivity: Any = None,
        test_specificity: Any = None,
        prevalence: Any = None,
        decider: Any = None,
        validation: SelectiveLabels | None = None,
        truth: Any = None,
    ) -> Self:
        """Fit to rows some of which were tested.

        Parameters
        ----------
        X
            Features `[n, d]`; missing values allowed. A frame may hold categories, text, dates and
            yes/no columns: they are encoded, and `predict` takes the same columns.
        y
            Labels: two classes, or missing (NaN) where nobody tested.
        tested
            Whether each row was tested; may be left out where `y` is missing for the untested.
        sensitive_features
            The group of each row (any number of levels; several columns are crossed).
        sample_weight
            How much each row counts.
        test_sensitivity, test_specificity
            Where the test behind `y` errs: a number, a mapping from groups, or one number per row;
            see `SelectiveLabels.from_arrays`. The truth is then learnt, not the result.
        prevalence
            How common the outcome is known to be, if it is: a number, an interval such as
            ".10-.14", or a mapping from groups to either. The model is then moved to it.
        decider
            Who decided on each test; only `instrument` learns from it.
        validation
            Rows to decide on stopping; without it a share of the rows is held out.
        truth
            The truth of every row `[n]`, or `(train, validation)`; only for methods that use it.
        """
        y, classes = checks.encode_classes(y)
        encoder = frame_encoder(X)
        rows = X
        if encoder is not None:
            index = as_frame(X).index
            rows = pd.DataFrame(encoder.transform(X), index, encoder.feature_names)
        problem = SelectiveLabels.from_arrays(
            rows,
            y,
            tested=tested,
            group=sensitive_features,
            weight=sample_weight,
            names={"group": "sensitive_features", "weight": "sample_weight"},
            test_sensitivity=test_sensitivity,
            test_specificity=test_specificity,
            prevalence=prevalence,
            decider=decider,
        )
        forget(self)
        self.classes_ = classes
        validate_data(self, X, skip_check_array=True)  # feature names and their number
        self._fitted_to_frame = hasattr(self, "feature_names_in_")
        if encoder is not None:
            self.encoder_ = encoder
        self._fit_each([self], [problem], [validation], [truth])
        return self

    def fit_problem(
        self,
        problem: SelectiveLabels,
        *,
        validation: SelectiveLabels | None = None,
        truth: Any = None,
    ) -> Self:
        """Fit to a `SelectiveLabels`, weights and persons included."""
        fit_many(self, [problem], validations=[validation], truths=[truth], copy=False)
        return self

    @one_thread()
    def refit(
        self,
        problem: SelectiveLabels,
        *,
        random_state: Any = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """A new model of `problem`, which begins at this one; this one stays as it is.

        For tests that were drawn with known probabilities after this model was fitted
        (`dcem.scoring.next_tests`). Of the methods, the ensemble can: its networks go on from where
        they are.

        Parameters
        ----------
        problem
            All rows, earlier tests included, with the features of the first fit.
            `testing_probability` is 1 where a row had been tested when this model was fitted, else
            the probability with which its test was drawn.
        random_state
            Default: as for this model.
        progress
            As for `fit_many`.
        """
        check_is_fitted(self)
        made = clone(self)
        if random_state is not None:
            made.set_params(random_state=random_state)
        kept = ("classes_", "n_features_in_", "feature_names_in_", "encoder_", "_fitted_to_frame")
        vars(made).update({name: vars(self)[name] for name in kept if name in vars(self)})
        self._features(problem)  # as many as at first, of the same names
        data = prepare(made, problem, None, None)
        data.progress = progress
        made._refit(data, self)
        data.finish()
        return made

    def _refit(self, data: Prepared, earlier: Self) -> None:
        """As `_fit`, beginning at a fitted model of the same parameters."""
        raise InputError(
            f"{self.name!r} cannot start from a fitted model, `ensemble` can. Fit it from scratch."
        )

    @one_thread()
    def _fit_each(
        self,
        estimators: Sequence[Any],
        problems: Sequence[SelectiveLabels],
        validations: Sequence[SelectiveLabels | None],
        truths: Sequence[Any],
        **options: Any,
    ) -> None:
        """Fit each of `estimators` (copies of this one) to its problem: one after the other.

        Networks train together instead; for them are all options of `fit_many` but `progress`.
        """
        for one, *given in zip(estimators, problems, validations, truths, strict=True):
            data = prepare(one, *given)
            data.progress = options.get("progress")
            one._fit(data)
            data.finish()

    def _fit(self, data: Prepared) -> None:
        """Set the fitted attributes that `members` needs; every method writes its own."""
        raise NotImplementedError

    def _preprocessor(self, problem: SelectiveLabels, rows: np.ndarray) -> Preprocessor:
        """How rows become comparable numbers: for distances, and for learners that need it."""
        return Preprocessor.fit(problem.X, "standard", 1.0, rows, problem.person)

    # -- predicting -------------------------------------------------------------------------

    def members(self, X: np.ndarray, rows: np.ndarray, *, exact: bool = True) -> np.ndarray:
        """Scores `[members, n]` of features `X [n, d]`, NaN where missing.

        `rows` is `standardized(X)`; neither is checked. Where `exact` is not asked for, a method
        may save time by less precise arithmetic.
        """
        return np.stack([model.predict_proba(X)[:, 1] for model in self.models_])

    def risks(self, X: np.ndarray, rows: np.ndarray, *, exact: bool = True) -> np.ndarray:
        """`members`, moved to a known prevalence where one was stated in fitting."""
        return self._to_known(self.members(X, rows, exact=exact), rows)

    def _to_known(self, scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
        line = getattr(self, "known_", None)
        if line is None:
            return scores
        from dcem.methods.known_rates import moved

        return moved(scores, rows, line)

    def standardized(self, X: np.ndarray) -> np.ndarray:
        """Features `[n, d]` as `preprocessor_` has them, in the precision of the method."""
        return self.preprocessor_.transform(X, self._precision)

    def combined(self, members: np.ndarray) -> np.ndarray:
        """The score `[n]` of members' scores `[members, n]`."""
        return members.mean(axis=0, dtype=np.float64)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities `[n, 2]` of the two classes, averaged over the members."""
        return _both_classes(self.combined(self.member_scores(X)))

    def predict(self, X: Any) -> np.ndarray:
        """The more probable class of each row."""
        return self._decide(self.predict_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of `predict`, which needs the label of every row."""
        missing = as_series(y, "y").isna().to_numpy()
        if missing.any():
            raise InputError(
                f"y is missing in {rows_text(missing)}, and accuracy needs the label of every row. "
                'Judge with `dcem.estimation.scorer("dr-auc")`; in a search, pass it as `scoring`.'
            )
        return super().score(X, y, sample_weight)

    def decision_function(self, X: Any) -> np.ndarray:
        """The log-odds `[n]` of the second class; positive where `predict` says it."""
        return _to_log_odds(self.predict_proba(X))

    def spread(self, X: Any) -> np.ndarray:
        """Standard deviation of the members' scores `[n]`; zero for a single one.

        Disagreement is not a measure of support: members can agree where nothing was seen.
        """
        return self.member_scores(X).std(axis=0)

    def support(self, X: Any) -> pd.DataFrame:
        """How far each row lies from what was ever tested: a frame with `distance`,
        `testing_probability` and `supported`; see `dcem.methods.support`."""
        features = self._features(X)
        return self.reach(features, self.standardized(features))

    def reach(self, X: np.ndarray, rows: np.ndarray) -> pd.DataFrame:
        """`support` of features and of what `standardized` makes of them.

        Who lacks a feature that nobody lacked in training is unlike them, whatever stands in.
        """
        frame = self.support_.of(rows, self.testing_model)
        gaps = np.isnan(X)
        if gaps.any():
            gaps[:, self.preprocessor_.indicators] = False
            frame["supported"] &= ~gaps.any(axis=1)
        return frame

    @property
    def testing_model(self) -> Any:
        """The model of who is tested, or None."""
        model = getattr(self, "propensity_model_", None)
        return model[0] if isinstance(model, list) else model

    def member_scores(self, X: Any) -> np.ndarray:
        """The members' scores `[members, n]` of whatever describes rows."""
        features = self._features(X)
        return self._finite(self.risks(features, self.standardized(features)))

    @staticmethod
    def _finite(scores: np.ndarray) -> np.ndarray:
        bad = ~np.isfinite(scores).all(axis=0)
        if bad.any():
            raise InputError(
                f"The scores of {rows_text(bad)} are not numbers: values of X there are too "
                "large to compute with, or the model diverged when it was fitted."
            )
        return scores

    @property
    def _precision(self) -> str:
        return "float64"

    def _prepare(self, X: Any) -> np.ndarray:
        """`standardized` of whatever describes rows."""
        return self.standardized(self._features(X))

    def _features(self, X: Any) -> np.ndarray:
        """Features `[n, d]` of whatever describes rows, checked against those of `fit`."""
        check_is_fitted(self)
        encoder, named = getattr(self, "encoder_", None), hasattr(self, "feature_names_in_")
        if isinstance(X, SelectiveLabels):  # rows of a problem, their names with them
            if encoder is not None and X.feature_names == encoder.feature_names:
                return X.X
            X = pd.DataFrame(X.X, columns=X.feature_names, copy=False) if named else X.X
        elif (
            named
            and not getattr(self, "_fitted_to_frame", False)
            and isinstance(X, np.ndarray)
            and X.shape[1:] == (self.n_features_in_,)
        ):  # of a problem, whose features are an array: nothing to warn of
            X = pd.DataFrame(X, columns=self.feature_names_in_, copy=False)
        elif isinstance(X, np.ma.MaskedArray):  # as an array it would show what the mask hides
            X = np.ma.filled(X.astype(np.float64), np.nan)
        if encoder is not None:
            rows, unread = encoder.read(X)
            usual = dict(zip(encoder.feature_names, self.preprocessor_.mean, strict=True))
            for note in encoder.unread_notes(unread, len(rows), usual):
                notice(note)
            return rows
        return validate_data(
            self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan", order="C"
        )

    def _decide(self, probabilities: np.ndarray) -> np.ndarray:
        return self.classes_[(probabilities[:, 1] > 0.5).astype(int)]

    def _group_codes(self, sensitive_features: Any, X: Any) -> np.ndarray:
        """Codes of the groups seen in fitting, for the methods that predict with them."""
        X = X.X if isinstance(X, SelectiveLabels) else X
        if len(self.group_names_) == 1:
            return np.zeros(shape_of(X)[0], dtype=np.int64)
        if sensitive_features is None:
            raise InputError(
                f"{type(self).__name__} needs the group of each row to predict: pass "
                "sensitive_features. dcem, for example, needs only the features."
            )
        name = "sensitive_features"
        labels = check_aligned({"X": X, name: sensitive_features})
        return check_groups(sensitive_features, name, labels=labels, levels=self.group_names_)[0]

    # -- keeping ----------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write what prediction needs to `folder`, and a model card; see `dcem.load_model`."""
        above("save")(self, folder)

    @classmethod
    def load(cls, folder: str | Path, *, network: Callable[[int], nn.Module] | None = None) -> Self:
        """A model written by `save`; `network` is its own module factory, if it had one."""
        return above("load_model")(folder, network=network, expected=cls)

    def export_onnx(self, path: str | Path) -> None:
        """Write the model, preprocessing included, as an ONNX file; see `dcem.saving.onnx`."""
        above("export_onnx")(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        return tags


class GroupPredictor:
    """Mixed into methods that predict with the group of each row."""

    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__predict = __metadata_request__predict_proba
    __metadata_request__decision_function = __metadata_request__predict_proba

    def predict_proba(self: Any, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Probabilities `[n, 2]`, given the group of each row."""
        return _both_classes(self.combined(self.member_scores(X, sensitive_features)))

    def predict(self: Any, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """The more probable class of each row, given its group."""
        return self._decide(self.predict_proba(X, sensitive_features=sensitive_features))

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """The log-odds `[n]` of the second class, given the group of each row."""
        return _to_log_odds(self.predict_proba(X, sensitive_features=sensitive_features))

    def spread(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Standard deviation of the members' scores `[n]`, given the group of each row."""
        return self.member_scores(X, sensitive_features).std(axis=0)

    def member_scores(self: Any, X: Any, sensitive_features: Any = None) -> np.ndarray:
        """`group_scores`, moved to a known prevalence where one was stated in fitting."""
        features = self._features(X)
        rows = self.standardized(features)
        codes = self._group_codes(sensitive_features, X) if self.needs_group else None
        return self._finite(self._to_known(self.group_scores(features, rows, codes), rows))


def _both_classes(positive: np.ndarray) -> np.ndarray:
    return np.stack([1 - positive, positive], axis=1)


def _to_log_odds(probabilities: np.ndarray) -> np.ndarray:
    return logit(np.clip(probabilities[:, 1], SMALLEST, 1 - SMALLEST))
