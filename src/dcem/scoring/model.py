"""A fitted method with the encoder of its table: raw rows in, scores out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dcem import methods
from dcem.compare.positives_only import FoundComparison
from dcem.compare.results import TableComparison
from dcem.estimation.bounds import Bounds
from dcem.estimation.conformal import Coverage
from dcem.estimation.effects import EXPLAINED_ROWS, TESTING_ROWS, Questions, effects_on_testing
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.findings import Finding
from dcem.estimation.folds import person_folds, rows_that_count, within_budget
from dcem.estimation.nuisances import fit_nuisances
from dcem.estimation.results import Effect
from dcem.estimation.risk_limits import LearntEnds
from dcem.hooks import above
from dcem.methods import SelectiveClassifier
from dcem.methods.registry import result_name
from dcem.metrics.plain import from_plain, to_plain
from dcem.monitor import Baseline, NewRows
from dcem.saving.folder import CARD, PAGE, ModelFileError, SavedModel, save
from dcem.scoring.untested import UntestedRisk, untested_risks
from dcem.table import Encoder, Roles, Source, UserTable
from dcem.table.disclosure import THRESHOLD
from dcem.table.encoder import STRANGE, Unread
from dcem.table.messages import notice
from dcem.text import percent

FROM_FOLDER = "Load one with `dcem.load_model(folder)`, or fit one with `dcem.scoring.fit_table`."


@dataclass(frozen=True)
class Scores:
    """What a model predicts for rows; every array is [n].

    Attributes
    ----------
    score
        Probability of a positive outcome, by all members (for `ensemble`: its parts).
    spread
        Standard deviation over the members. Small where they agree, which proves little: members
        can agree where nobody was tested.
    distance
        Distance to the nearest cluster of tested people, scaled so that 99 % of the tested are
        below 1; above 1, a row is unlike anybody tested.
    testing_probability
        Probability that people like this are tested, averaged over the groups; NaN if the method
        has no model of testing.
    like_tested
        Whether people like this were tested: a distance of at most 1, a testing probability of at
        least 1 % or a tenth of the share tested, and no feature missing that nobody lacked.
    """

    score: np.ndarray
    spread: np.ndarray
    distance: np.ndarray
    testing_probability: np.ndarray
    like_tested: np.ndarray


@dataclass(frozen=True, eq=False)
class Read:
    """Raw rows as a model reads them.

    Attributes
    ----------
    X
        Encoded features `[n, d]`, NaN where missing.
    standard
        The same with gaps filled and scaled `[n, inputs]`.
    unread
        Cells of each raw column that could not be read.
    empty
        How many cells of each raw column hold nothing `[columns]`.
    """

    X: np.ndarray
    standard: np.ndarray
    unread: Unread
    empty: np.ndarray


@dataclass(frozen=True, eq=False)
class TableModel:
    """A fitted method that reads raw tables.

    Attributes
    ----------
    estimator
        The fitted method.
    encoder
        Turns raw columns into features.
    roles
        The roles of the table that the model was fitted to.
    source
        The table that the model was fitted to.
    started_from
        The table of the model that this one started from, or None.
    missing
        Share of rows in which each raw column was empty, to the nearest twentieth.
    why
        Why this method was chosen, as a clause; empty if the user named it.
    dominant
        The finding that one column, or a few that say the same, carry the score; or None.
    untested
        Risk of the untested by group, for the card (`explained`).
    effects, testing_effects
        Effects of the columns on the score and on who is tested, for the card (`explained`).
    baseline
        Summary of the table, to be compared with later tables (`explained`).
    ends, bounds, coverage
        The model of the limits of a person's risk, if it was learnt (`dcem.scoring.bounds`), and
        what the card says about it.
    """

    estimator: SelectiveClassifier
    encoder: Encoder
    roles: Roles
    source: Source
    missing: Mapping[str, float] = field(default_factory=dict)
    why: str = ""
    started_from: Source | None = None
    dominant: Finding | None = None
    untested: tuple[UntestedRisk, ...] = ()
    effects: tuple[Effect, ...] = ()
    testing_effects: tuple[Effect, ...] = ()
    baseline: Baseline | None = None
    ends: LearntEnds | None = None
    bounds: Bounds | None = None
    coverage: tuple[Coverage, ...] = ()

    @property
    def score_name(self) -> str:
        """What its numbers are called: `risk` once they are calibrated, until then `score`."""
        return "risk" if self.estimator.calibrated else "score"

    @property
    def name(self) -> str:
        """The method with its learner or group, as in tables of results: `tested-only:linear`."""
        learner = getattr(self.estimator, "learner", None)
        usual = getattr(methods.make(self.estimator.name), "learner", None)
        own = learner if isinstance(learner, str) and learner != usual else ""
        return result_name(self.estimator.name, own, getattr(self.estimator, "group", 0))

    @property
    def roles_of_new(self) -> Roles:
        """The roles for a later table, in which its features are those of its encoder."""
        chosen = dict.fromkeys(("features", "exclude", "category", "include"), ())
        then = ("truth", "until", "reference_group", "testing_probability", "decider")
        return replace(self.roles, **chosen, **dict.fromkeys(then))  # type: ignore[arg-type]

    def judged_by(self, comparison: TableComparison | FoundComparison) -> bool:
        """Whether a comparison judged its method, told the same rates."""
        learnt = getattr(self.estimator, "learnt_from_", "")
        told, untold = [comparison.stated_rates], self.roles.no_record
        if isinstance(comparison, TableComparison):
            told, untold = [*told, comparison.known_rates], not learnt
        same = all(rates in learnt for rates in told) if any(told) else untold
        return same and self.result_in(comparison) is not None

    def result_in(self, comparison: TableComparison | FoundComparison) -> Any:
        """What a comparison found of its method, or None."""
        return next((m for m in comparison.methods if result_name(m.name) == self.name), None)

    def read(self, raw: Any) -> Read:
        """Raw rows (Arrow, pandas or polars) as the model reads them."""
        X, unread = self.encoder.read(raw)
        return Read(X, self.estimator.standardized(X), unread, self._empty(X, unread))

    def _empty(self, X: np.ndarray, unread: Unread) -> np.ndarray:
        """Cells of each raw column that hold nothing, from its encoded features."""
        counts, start = [], 0
        gaps = np.isnan(X).sum(axis=0)
        for encoding, strange in zip(self.encoder.encodings, unread.cells.tolist(), strict=True):
            own, gap = X[:, start : start + len(encoding.features)], gaps[start]
            start += len(encoding.features)
            if encoding.kind == "category" and encoding.missing:
                counts.append(int(np.nansum(own[:, -1])))
                continue
            if own.shape[1] > 1:
                gap = (np.isnan(own).any(axis=1) | (own == 0).all(axis=1)).sum()
            counts.append(max(0, int(gap) - strange))
        return np.array(counts)

    def strange_columns(
        self, unread: Unread, empty: np.ndarray, rows: int, *, singly: bool = False
    ) -> tuple[str, ...]:
        """A sentence for each column with many cells that are empty or could not be read.

        `unread` and `empty [columns]` are such cells among `rows`. What counts is how many more
        there are now than in training, where rare levels were `(other)` too; a category that has
        no such place, for which training had fewer than ten people with a rare level, is also told
        of `singly`, where it has more of them now. Numbers and dates in another unit than in
        training are always told of.
        """
        usual = dict(
            zip(self.encoder.feature_names, self.estimator.preprocessor_.mean, strict=True)
        )
        notes = [
            f"{name}: empty in {percent(cells / rows)} of the rows, more than in training; these "
            "rows are scored without it."
            for name, cells in zip(self.encoder.columns, empty.tolist(), strict=True)
            if cells / rows - self.missing.get(name, 1 - 2 * STRANGE) > STRANGE
        ]
        rare = THRESHOLD / self.source.rows if singly else STRANGE
        return (*notes, *self.encoder.unread_notes(unread, rows, usual, rare))

    def strange_cells(self, table: UserTable) -> tuple[str, ...]:
        """`strange_columns` of a table that was read with the encoder of this model."""
        X, unread = table.problem.X, table.unread
        return self.strange_columns(unread, self._empty(X, unread), len(X))

    def score(self, raw: Any) -> Scores:
        """Scores of raw rows (Arrow, pandas or polars); no group is needed."""
        return self.score_read(self.read(raw))

    def score_read(self, rows: Read) -> Scores:
        """Scores of rows that `read` read."""
        members = self.estimator.risks(rows.X, rows.standard, exact=False)  # [members, n]
        support = self.estimator.reach(rows.X, rows.standard)
        return Scores(
            self.estimator.combined(members),
            members.std(axis=0, dtype=np.float64),
            support["distance"].to_numpy(),
            support["testing_probability"].to_numpy(),
            support["supported"].to_numpy(),
        )

    def explained(self, table: UserTable, random_state: int = 0) -> TableModel:
        """The same model, with the effects of the columns and a summary of its table.

        Effects on the score are those of the model itself. Who is tested, and what tests show, is
        modelled here, each half of the people from the other half. Without a record of testing,
        the model is returned unchanged. From a long table, people are drawn at random.
        """
        estimator = self.estimator
        if table.problem.positives_only:
            return self
        drawn = within_budget(table.problem, EXPLAINED_ROWS, random_state)
        problem = table.problem.subset(drawn)
        if (counted := rows_that_count(problem)) is not None:
            problem = problem.subset(counted)
        questions = Questions.about(problem, self.encoder, random_state)

        def score(X: np.ndarray, at: np.ndarray) -> np.ndarray:
            return estimator.combined(estimator.risks(X, estimator.standardized(X), exact=False))

        fold = person_folds(problem, 2, random_state)
        nuisances = fit_nuisances(problem, fold, random_state, max_rows=TESTING_ROWS)
        new = NewRows.of(estimator, problem)
        evaluator = Evaluator(problem, fold=fold, nuisances=nuisances)
        baseline = Baseline.of(
            problem, self.encoder, new.standard, new.unlike, new.score, evaluator
        )
        return replace(
            self,
            baseline=replace(baseline, rows=len(table.problem)),
            untested=untested_risks(evaluator, new.score),
            effects=questions.answer(questions.ask(score)),
            testing_effects=effects_on_testing(questions, nuisances.testing_model, problem),
        )

    @property
    def members(self) -> int:
        """Number of models that are averaged to a score."""
        gap = np.full((1, len(self.encoder.feature_names)), np.nan)
        return len(self.estimator.members(gap, self.estimator.standardized(gap)))

    def save(
        self,
        folder: str | Path,
        comparison: TableComparison | FoundComparison | None = None,
        *,
        words: str = "general",
    ) -> None:
        """Write the model folder, encoder, roles and card included.

        The card says how good the model is if a `comparison` of its table judged its method. Its
        words are those of a field: general, medicine, credit or policing.
        """
        described = {
            "encoder": self.encoder.to_plain(),
            "roles": self.roles.to_plain(),
            "source": asdict(self.source),
            "missing": dict(self.missing),
            "why": self.why,
            "started_from": self.started_from and asdict(self.started_from),
        }
        if self.baseline is not None:
            baseline = self.baseline
            if isinstance(comparison, TableComparison) and (own := self.result_in(comparison)):
                reach = {one.key: one.reach for one in comparison.targets}
                baseline = baseline.judged_by(own.judgements, reach.get("dr", 1.0))
            described["baseline"] = to_plain(baseline)
        arrays: dict[str, np.ndarray] = {}
        if self.ends is not None:
            described["bounds"], arrays = self.ends.to_plain()
        document = above("card_document")(self, comparison)
        cards = {
            CARD: above("to_markdown")(document, words),
            PAGE: above("to_html")(document, words),
        }
        save(self.estimator, folder, table=described, arrays=arrays, cards=cards)

    def export_onnx(self, path: str | Path) -> None:
        """Write the model, encoder included, as an ONNX file of raw columns: `dcem.saving.onnx`."""
        above("export_onnx")(self.estimator, path, self.encoder)

    @classmethod
    def load(cls, folder: str | Path) -> TableModel:
        """The model that `save` wrote."""
        return cls._of(SavedModel.read(folder))

    @classmethod
    def _of(cls, saved: SavedModel, network: Any = None) -> TableModel:
        described, folder = saved.table, saved.folder
        if described is None:
            raise ModelFileError(
                f"{folder} holds a model that was fitted to arrays, not to a table, so it cannot "
                "turn raw columns into features. Fit one with: dcem fit."
            )
        estimator = saved.estimator(network)
        try:
            start, baseline = described.get("started_from"), described.get("baseline")
            made = cls(
                estimator,
                Encoder.from_plain(described["encoder"]),
                Roles.from_plain(described["roles"]),
                _source(described["source"]),
                {str(name): float(share) for name, share in described.get("missing", {}).items()},
                str(described.get("why", "")),
                None if start is None else _source(start),
                baseline=None if baseline is None else from_plain(Baseline, baseline),
            )
            if "bounds" in described:
                arrays, width = saved.table_arrays, len(made.encoder.feature_names)
                made = replace(made, ends=LearntEnds.from_plain(described["bounds"], arrays, width))
            names = [*made.encoder.feature_names]
            wanted = [*getattr(estimator, "feature_names_in_", names)]
            if names != wanted or len(names) != len(estimator.preprocessor_.mean):
                raise ValueError("its columns do not give the features that it needs")
            gap = estimator.standardized(np.full((1, len(names)), np.nan))
            if made.baseline and max(made.baseline.inputs, default=0) >= gap.shape[1]:
                raise ValueError("it remembers inputs that it does not have")
            made.encoder.transform(pd.DataFrame({name: ["1"] for name in made.encoder.columns}))
        except Exception as error:  # a file is outside input
            raise ModelFileError(
                f"{folder} cannot be used as a model of a table: {error}"[:500]
            ) from None
        return made

    def predict_proba(self, raw: Any) -> np.ndarray:
        """Probabilities `[n, 2]` of raw rows, as exactly as the method gives them."""
        return self.estimator.predict_proba(self._rows(raw))

    def predict(self, raw: Any) -> np.ndarray:
        """The more probable class of each raw row."""
        return self.estimator.predict(self._rows(raw))

    def _rows(self, raw: Any) -> pd.DataFrame:
        X, unread = self.encoder.read(raw)
        for note in self.strange_columns(unread, self._empty(X, unread), len(X)) if len(X) else ():
            notice(note)
        return pd.DataFrame(X, columns=self.encoder.feature_names)


def _source(plain: Mapping[str, Any]) -> Source:
    made = Source(**plain)
    kinds = [type(value) for value in vars(made).values()]
    if kinds != [str, int, int, str, int, bool] or made.rows < 1:
        raise ValueError("it does not say which table it is of")
    return made


def load_model(folder: str | Path, *, network: Any = None) -> Any:
    """The model in a folder: a `TableModel` if it was fitted to a table, else the estimator.

    Both have `predict_proba` and `predict`; a `TableModel` takes raw rows. `network` is the module
    factory of a method that was fitted with one.
    """
    saved = SavedModel.read(folder)
    return saved.estimator(network) if saved.table is None else TableModel._of(saved, network)
