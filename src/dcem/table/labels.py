"""The problem: a table of people, whose label somebody decided to collect or not.

`SelectiveLabels` gives every column its role once, so that nothing downstream unpacks positions
or guesses what a zero means. The truth, where it is known at all, lives in another object (`Truth`
of `dcem.tasks`) that only evaluation and the oracle receive: what is not here cannot leak.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dcem.table import checks, summary
from dcem.table.frames import as_frame, check_aligned
from dcem.table.groups import EVERYBODY, check_deciders, check_groups, check_recorded, require_group
from dcem.table.imperfect import ImperfectTest, imperfect_test, is_per_row
from dcem.table.known_rates import Stated, known_prevalence
from dcem.table.messages import (
    POSITION,
    InputError,
    naming,
    notice,
    require_columns,
    require_one_of,
    require_unique,
)
from dcem.table.positives_only import refuse_prevalence, resolve_found
from dcem.table.roles import (
    POSITIVE_UNTESTED,
    Roles,
    as_list,
    assign_roles,
    check_features_have_no_role,
)
from dcem.table.times import check_time, numeric

# What a row may have besides features, label, tested and group, and how each is checked.
_PARTS = {
    "id": checks.check_id,
    "time": check_time,
    "weight": checks.check_weight,
    "testing_probability": checks.check_probability,
}
_COLUMNS: dict[str, Any] = {
    "X": float,
    "y_obs": float,
    "tested": bool,
    "group": np.int64,
    "row": np.int64,
    **dict.fromkeys(_PARTS),
    "decider": np.int64,
    "awaited": bool,
}


@dataclass(frozen=True, eq=False, repr=False)
class SelectiveLabels:
    """A selectively labelled table, one role per column; all arrays are read-only.

    Features given as a finished float64 array are shared with the caller, not copied.

    Make one with `from_arrays`, `from_frame` or `from_file`, which check their input thoroughly.
    The constructor takes finished columns and checks only that they agree.

    The label of an untested row is *missing* here (NaN), not zero, because untested does not mean
    negative. Code that needs the label with zeros filled in uses `y_imputed`.

    Attributes
    ----------
    X
        Features [n, d], float64, NaN where missing.
    y_obs
        Observed label [n], float64: 0 or 1 where tested, NaN where nobody tested.
    tested
        Who was tested [n], bool.
    group
        Code of the group [n], int64 from 0; a single level "all" if no group was given.
    id
        The person a row belongs to [n], or None if every row is a different person.
    weight
        How much a row counts [n], or None.
    feature_names
        Names of the columns of `X`.
    group_names
        Level names, indexed by code. Subsets keep all of them, even those left empty.
    row
        Position of each row in the table it came from [n]; subsets keep it, so that a result can
        always be written back to its row.
    testing_probability
        Known probability of being tested [n], where tests were drawn by design, or None.
    reference_group
        Name of the group that others are compared with, or None.
    imperfect_test
        How often the test of each row errs; None if `y_obs` is the truth of the tested.
    known_prevalence
        How common the outcome is, for everybody or by group, if known from elsewhere; else empty.
    decider
        Code of who decided on the test of each row [n], -1 where that is not recorded, or None.
    decider_names
        Their names, indexed by code.
    positives_only
        Whether there is no record of testing: the table says only who was found positive. `tested`
        and `y_obs` then refer to the found alone.
    testing_only
        Features that affect who is tested but not the outcome.
    time
        Time of the decision to test [n], `datetime64` or numbers; or None.
    awaited
        Rows that were tested but have no result yet [n], or None; not among `tested`. Only for
        monitoring a model.
    tested_stated
        True if everybody was tested and somebody said so.
    raw_levels
        For each raw column with levels too rare for a feature of their own, the code of its value
        in every row [n], -1 where missing. They may tell the group although the features do not: a
        ward tells the hospital.
    """

    X: np.ndarray
    y_obs: np.ndarray
    tested: np.ndarray
    group: np.ndarray
    id: np.ndarray | None
    weight: np.ndarray | None
    feature_names: tuple[str, ...]
    group_names: tuple[str, ...]
    row: np.ndarray
    testing_probability: np.ndarray | None = None
    reference_group: str | None = None
    imperfect_test: ImperfectTest | None = None
    known_prevalence: tuple[Stated, ...] = ()
    decider: np.ndarray | None = None
    decider_names: tuple[str, ...] = ()
    positives_only: bool = False
    testing_only: tuple[str, ...] = ()
    time: np.ndarray | None = None
    awaited: np.ndarray | None = None
    tested_stated: bool = False
    raw_levels: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("feature_names", "group_names", "decider_names"):
            object.__setattr__(self, name, tuple(map(str, getattr(self, name))))
        for name, kind in _COLUMNS.items():
            if getattr(self, name) is None:
                continue
            view = np.asarray(getattr(self, name), dtype=kind).view()
            view.setflags(write=False)
            object.__setattr__(self, name, view)
            if view.ndim != (2 if name == "X" else 1) or len(view) != len(self.X):
                raise InputError(
                    f"{name!r} has shape {view.shape}; 'X' must be [rows, features] and all else "
                    "[rows]."
                )
        if len(self.feature_names) != self.X.shape[1]:
            raise InputError(
                f"{len(self.feature_names)} feature names for {self.X.shape[1]} columns of 'X'."
            )
        if len(self) and not 0 <= self.group.min() <= self.group.max() < self.n_groups:
            raise InputError(f"'group' must hold codes from 0 to {self.n_groups - 1}.")
        if not np.array_equal(np.isin(self.y_obs, (0, 1)), self.tested) or not np.array_equal(
            np.isnan(self.y_obs), ~self.tested
        ):
            raise InputError("'y_obs' must be 0 or 1 where tested, and NaN elsewhere.")
        if self.positives_only and (self.y_obs == 0).any():
            raise InputError("With `positives_only`, 'y_obs' must be 1 or NaN.")

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        tested: Any = None,
        group: Any = None,
        id: Any = None,
        time: Any = None,
        weight: Any = None,
        testing_probability: Any = None,
        reference_group: str | None = None,
        test_sensitivity: Any = None,
        test_specificity: Any = None,
        prevalence: Any = None,
        decider: Any = None,
        positives_only: bool = False,
        positive_untested: str | None = None,
        testing_only: Sequence[str] = (),
        to_learn: bool = True,
        row: Any = None,
        feature_names: Sequence[str] | None = None,
        group_names: Sequence[str] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> SelectiveLabels:
        """From arrays, lists, series or frames that describe the same rows.

        Parameters
        ----------
        X
            Features [n, d]; missing values are kept as NaN.
        y
            Labels [n]: 0, 1, or missing where nobody tested.
        tested
            Who was tested [n], 0/1 or boolean. If absent, a missing label means untested. An empty
            list states that everybody with a label was tested.
        group
            One value per row, or several columns, which are crossed ("F & Black").
        id
            The person behind each row; splits and resamples keep a person's rows together.
        time
            Time of the decision to test [n]: dates or numbers.
        weight
            How much each row counts.
        testing_probability
            Known probability of each row's test, if tests were drawn by design.
        reference_group
            Name of the group that others are compared with.
        test_sensitivity, test_specificity
            For an imperfect test, the probability that it finds the outcome, and that it is
            negative without the outcome: a number, `".5-.7"` (a 95 % interval), a mapping from
            groups to either, or one number per row. Given truth and group, its errors are assumed
            not to depend on the features.
        prevalence
            How common the outcome is, if known from elsewhere: a number, `".10-.14"`, or by group.
        decider
            Who decided on each test (a clinic, an officer); missing where that is not recorded.
        positives_only
            Whether `y` says only who was found positive, so that 0 or missing may mean negative or
            never tested (docs/no_record.md). `test_sensitivity` then is the share of positives
            that is found, if known.
        positive_untested
            How rows count that are positive although not tested: "tested" or "untested". None:
            they are an error.
        testing_only
            Features that affect who is tested but not the outcome.
        to_learn
            Whether both classes must occur and all results must be in; False for monitoring a
            model.
        row
            Positions of the rows in the table they come from [n], if that table has more rows;
            error messages then refer to these positions.
        feature_names
            Names of the columns of `X`, if it has none.
        group_names
            The group levels, in order, if they should agree with those of another table.
        names
            The names that error messages use for the roles "label", "tested", "group" and so on.
        """
        stated = tested is not None
        if stated and np.size(tested) == 0:
            tested = None
        parts = dict(zip(_PARTS, (id, time, weight, testing_probability), strict=True))
        rates = {"sensitivity": test_sensitivity, "specificity": test_specificity}
        values = {"label": y, "tested": tested, "group": group, "decider": decider, **parts}
        called = {**{role: role for role in values}, "label": "y", **(names or {})}
        if positive_untested is not None:
            require_one_of("positive_untested", positive_untested, POSITIVE_UNTESTED)
        values |= {f"test_{rate}": given for rate, given in rates.items() if is_per_row(given)}
        labels = check_aligned({"X": X, **{called.get(r, r): v for r, v in values.items()}})
        if row is not None:
            labels = pd.Index(row, name=POSITION)
        table, feature_names = checks.check_features(X, feature_names, labels=labels)
        if positives_only:
            others = {"tested": tested, "testing_probability": testing_probability}
            others |= {"decider": decider, "test_specificity": test_specificity}
            y_obs, looked = resolve_found(y, others, label_name=called["label"], labels=labels)
        else:
            who = {"label_name": called["label"], "tested_name": called["tested"]}
            y_obs, looked = checks.resolve_tested(
                y,
                tested,
                **who,
                labels=labels,
                waiting=not to_learn,
                positive_untested=positive_untested,
                stated=stated,
            )
        awaited = None
        if not (to_learn or tested is None or positives_only):
            awaited = checks.check_binary(tested, called["tested"]).astype(bool) & ~looked
        levels: tuple[str, ...] = ("all",)
        codes = np.zeros(len(table), np.int64)
        if group is not None:
            codes, levels = check_groups(group, called["group"], labels=labels, levels=group_names)
        checked: dict[str, Any] = {
            part: None if value is None else _PARTS[part](value, called[part], labels=labels)
            for part, value in parts.items()
        }
        if to_learn and not positives_only:
            named = called["label"], called["tested"]
            weighted = checked["weight"], called["weight"]
            checks.check_learnable(y_obs, looked, *named, *weighted, labels=labels)
        checks.warn_limits(table, looked, codes, feature_names, levels, positives_only)
        if reference_group is not None:
            require_group(reference_group, levels, named=group is not None)
        seen: Any = {"y_obs": y_obs, "tested": looked, "group": codes, "group_names": levels}
        if positives_only and prevalence is not None:
            refuse_prevalence(prevalence, looked, codes, levels, checked["weight"])
        if positives_only:  # being found is a test that everybody had
            seen |= {"y_obs": looked.astype(float), "tested": looked | True}
        columns = {rate: called[f"test_{rate}"] for rate in rates if f"test_{rate}" in called}
        errs = imperfect_test(**rates, **seen, columns=columns, labels=labels)
        known = known_prevalence(prevalence, **seen, weight=checked["weight"], test=errs)
        require_columns(feature_names, testing_only, "The list of features")
        deciders = None if decider is None else check_deciders(decider, called["decider"])
        if deciders and to_learn:
            check_recorded(deciders[0], looked, called["decider"])
        return cls(
            X=table,
            y_obs=y_obs,
            tested=looked,
            awaited=awaited,
            group=codes,
            feature_names=feature_names,
            group_names=levels,
            row=np.arange(len(table)) if row is None else row,
            reference_group=reference_group,
            imperfect_test=errs,
            known_prevalence=known,
            decider=deciders and deciders[0],
            decider_names=deciders[1] if deciders else (),
            positives_only=positives_only,
            testing_only=tuple(testing_only),
            tested_stated=bool(stated and looked.all()),
            **checked,
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        label: str,
        tested: str | None = None,
        group: str | Sequence[str] | None = None,
        id: str | None = None,
        time: str | None = None,
        weight: str | None = None,
        testing_probability: str | None = None,
        test_sensitivity: Any = None,
        test_specificity: Any = None,
        prevalence: Any = None,
        decider: str | None = None,
        positives_only: bool = False,
        positive_untested: str | None = None,
        testing_only: Sequence[str] = (),
        features: Sequence[str] | None = None,
        group_names: Sequence[str] | None = None,
    ) -> SelectiveLabels:
        """From a pandas or polars frame, by column names.

        Without `features`, every column that has no other role is a feature, and must hold numbers:
        `dcem.read_table` encodes categories and dates. Several `group` columns are crossed.
        `test_sensitivity` and `test_specificity` may name a column, too.
        """
        table = as_frame(frame)
        groups = as_list(group)
        rates = {"test_sensitivity": test_sensitivity, "test_specificity": test_specificity}
        given = {"tested": tested, "decider": decider}
        given |= zip(_PARTS, (id, time, weight, testing_probability), strict=True)
        single = {part: column for part, column in given.items() if column is not None}
        named = [role for role, rate in rates.items() if isinstance(rate, str)]
        single |= {role: rates[role] for role in named if rates[role] in table.columns}
        roles = assign_roles(label=label, **single, group=groups)
        require_unique(table.columns)
        require_columns(table.columns, [*roles, *(features or ())])
        if features is None:
            features = [c for c in table.columns if c not in roles]
        check_features_have_no_role(features, roles)
        parts = rates | {part: table[column] for part, column in single.items()}
        return cls.from_arrays(
            table[list(features)],
            table[label],
            group=table[groups] if groups else None,
            group_names=group_names,
            prevalence=prevalence,
            positives_only=positives_only,
            positive_untested=positive_untested,
            testing_only=as_list(testing_only),
            names={"label": label, "group": " & ".join(map(str, groups)), **single},
            **parts,
        )

    @classmethod
    def from_file(
        cls, path: str | Path, *, features: Sequence[str] | None = None, **roles: Any
    ) -> SelectiveLabels:
        """From a file of any format that is read, with the roles of `from_frame`.

        The `id` and the `group` are names: leading zeros survive.
        """
        from dcem.table.read import notes, read_header, read_whole

        path = Path(path)
        header = read_header(path)
        for note in notes(path):
            notice(note)
        with naming(path):
            named = Roles.named("column", "columns")
            needed = [column for role in named for column in as_list(roles.get(role))]
            needed += [rate for role in Roles.named("rate") if (rate := roles.get(role)) in header]
            wanted = header if features is None else list(dict.fromkeys([*needed, *features]))
            require_columns(header, [*needed, *wanted])
            return cls.from_frame(
                read_whole(path, wanted, names=(roles.get("id"),)).to_pandas(),
                features=features,
                **roles,
            )

    def __len__(self) -> int:
        return len(self.X)

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that a copy in another process is read-only too.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @property
    def sent(self) -> np.ndarray:
        """Who was tested [n], with those whose result is not in yet."""
        return self.tested if self.awaited is None else self.tested | self.awaited

    @property
    def extent(self) -> str:
        """Who was tested: "nobody", "everybody" or "some"."""
        return "everybody" if self.tested.all() else "some" if self.tested.any() else "nobody"

    @property
    def n_groups(self) -> int:
        """Number of group levels, empty ones included."""
        return len(self.group_names)

    @property
    def y_imputed(self) -> np.ndarray:
        """The label as tables usually store it [n]: 0 where nobody tested."""
        return np.where(self.tested, self.y_obs, 0.0)

    @property
    def person(self) -> np.ndarray:
        """Code of the person behind each row [n], from 0, in order of appearance."""
        if self.id is None:
            return np.arange(len(self))
        return pd.factorize(self.id)[0]

    @property
    def weights(self) -> np.ndarray:
        """How much each row counts [n]: 1 where no weights were given."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def moment(self) -> np.ndarray | None:
        """The time of each row as a number [n], dates in days; None if there are no times."""
        return None if self.time is None else numeric(self.time)

    def by_group(self) -> dict[str, np.ndarray]:
        """Each group that has people, as a mask [n]."""
        masks = {name: self.group == code for code, name in enumerate(self.group_names)}
        return {name: mine for name, mine in masks.items() if mine.any()}

    def parts(self) -> dict[str, np.ndarray]:
        """Everybody, then each group that has people, as masks [n]; one group is everybody."""
        everybody = {EVERYBODY: np.ones(len(self), bool)}
        return everybody | self.by_group() if self.n_groups > 1 else everybody

    def subset(self, rows: Any) -> SelectiveLabels:
        """These rows, in this order: a boolean mask, positions (repeats allowed), or a slice."""
        if not isinstance(rows, slice):
            rows = np.atleast_1d(np.asarray(rows))
            rows = rows.astype(np.int64) if rows.size == 0 else rows
        taken = {
            part.name: value[rows] if isinstance(value, np.ndarray) else value
            for part in fields(self)
            for value in [getattr(self, part.name)]
        }
        taken["raw_levels"] = {name: codes[rows] for name, codes in self.raw_levels.items()}
        if self.imperfect_test is not None:
            taken["imperfect_test"] = self.imperfect_test.take(rows)
        return SelectiveLabels(**taken)

    def split(self, shares: Sequence[float], random_state: Any) -> tuple[SelectiveLabels, ...]:
        """Random parts holding these shares of the rows; a person's rows stay in one part.

        Shares are met exactly up to rounding, or, with `id`, as nearly as whole people allow.
        Within a part the rows keep their order.
        """
        from dcem.table.sampling import divide

        return tuple(self.subset(one) for one in divide(self.person, shares, random_state))

    def counts(self, *, small_cells: bool = True) -> pd.DataFrame:
        """Rows, tested rows and positives among them, per group level, or without small cells."""
        found = summary.counts(self)
        return found if small_cells else summary.shown_counts(self, found).iloc[:-1]

    def summary(
        self,
        most: int = summary.MOST_GROUPS,
        *,
        small_cells: bool = True,
        say: Callable[[str], str] = str,
    ) -> str:
        """Sizes, who is tested, what was found; at most `most` groups, or without small cells.

        `say` puts a phrase into the words of a field (`dcem.report.words.speak`).
        """
        return summary.of(self, most, small_cells=small_cells, say=say)

    def __repr__(self) -> str:
        return summary.in_short(self)
