"""Whom to test next: for everybody who was not, a probability and the reason in words.

Three things make a test worth more, each measured between 0 and 1 and counted alike:

* *uncertainty*: the score is near one half, and the models disagree;
* *distance*: the person is unlike anybody tested, so that the score is extrapolation;
* *disparity*: this person's group is tested less than the same people would be on average over the
  groups. Features are held equal, but the comparison is of the group as a whole: what a model
  says of single people in a small group is mostly noise.

They are added up, and `allocate` turns them into probabilities with a floor for every person and
every group; a group that is tested less gets at least its share of the untested. The estimand they
are made for: with the probability of each person recorded, later results weighted by its inverse
represent everybody who was untested. How many positives they will find, the sum of probability
times risk, is known as well as the risks are: in 72 simulated tables with 2 to 35 positive tests
before, it was from a seventh to 2.8 times the truth, and 1.3 times on average.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dcem.saving.plain_data import shown_training_counts
from dcem.scoring.allocation import allocate, draw
from dcem.scoring.model import FROM_FOLDER, TableModel
from dcem.scoring.stream import parallel
from dcem.table import (
    group_codes,
    person_names,
    read_batches,
    read_header,
    tested_rows,
)
from dcem.table.design import identifier_in_list
from dcem.table.disclosure import SMALL, THRESHOLD, WITHHELD, Shown, few_among, hide_groups
from dcem.table.encoder import Unread, joined
from dcem.table.groups import in_order
from dcem.table.messages import InputError, quoted, require_columns, require_kind
from dcem.table.outcome import pending_results, unknown_results
from dcem.table.remote import located
from dcem.table.roles import Roles

NOTABLE = 0.5  # a measure from here on is a reason
LESS = 0.05  # share of its tests that a group lacks, from which it counts as tested less
PRIOR = 10  # expected tests that a group must stand out against before it counts
REASONS = {
    "score": "the {score} is close to one half",
    "spread": "the models disagree",
    "distance": "unlike anybody tested so far",
    "disparity": "this group is tested less at equal features",
    "unknown": "the model has seen nobody of this group",
    "minimum": "this small group keeps a minimum of tests",
}
CRUDE_DISPARITY = "this group is tested less"  # by methods without a model of testing
NO_REASON = "everybody keeps a chance"
ALL_TESTED = "there are tests for everybody"
PERSON = "\0person"  # of a row while it is looked at
RAISED = 1.5  # times what it would be if groups had no minimum: from here on that is a reason


@dataclass(frozen=True, eq=False)
class NextTests:
    """Probabilities of being tested next, and what could not be considered.

    Attributes
    ----------
    table
        One row for each untested person in the order of the file: `row` (position in the file),
        the identifier, `group` if there is one, `score` and `score_spread` (`risk` and
        `risk_spread` of a calibrated model), `distance`, `shortfall`
        (how much less the group is tested, 0 to 1: at equal features, or as a whole where the
        method has no model of testing), `probability` and `reason`.
    by_group
        For each group, `untested` people and `expected_tests`; the share of its rows that is
        `tested` so far and will be with these tests (`tested_after`; NaN where the file does not
        say who was tested); and its `shortfall`, as in `table`. NaN where a count of the group
        is withheld (`dcem.table.disclosure`), in this file or in the card of the model; but the
        shortfall of a large group stays, which a model tells and no count.
    untested
        Number of untested rows in all groups; hidden if it would reveal a small count.
    rows
        Rows of the file, tested ones included.
    notes
        What could not be considered, and why.
    person
        Codes of the people behind the rows of `table`; every row its own where no identifier is
        known.
    """

    table: pd.DataFrame
    by_group: pd.DataFrame
    untested: Shown
    rows: int
    notes: tuple[str, ...]
    person: np.ndarray

    def draw(self, random_state: int | np.random.Generator) -> np.ndarray:
        """Which rows are drawn [n], with their probabilities: see `dcem.scoring.draw`."""
        return draw(self.table["probability"].to_numpy(), random_state, self.person)


def next_tests(
    model: TableModel,
    path: str | Path,
    budget: float,
    *,
    query: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> NextTests:
    """Probabilities of being tested next for the untested rows of a file.

    Label, tested and group are found by the names they had when the model was fitted. Whoever waits
    for a result (label "pending") is not listed. Without label and tested, everybody counts as
    untested; without the group, disparity is not considered.
    If the budget is at least the number of untested rows, all have a probability of 1.
    """
    require_kind(model, TableModel, FROM_FOLDER)
    if model.roles.positives_only:
        raise InputError(
            "The model was fitted to found positives, without a record of who was tested, so it "
            "is not known who is untested. Draw people at random among those not found, record "
            "all results, and fit again with `tested`."
        )
    path = located(path)
    header = read_header(path, query)
    recorded = {*(model.roles.tested or (model.roles.label,))} <= set(header)
    require_columns(header, model.encoder.columns, f"{path}: the table")
    notes = _notes(model, header)
    roles = model.roles
    extra = [c for c in (roles.id, roles.label, *roles.tested, *roles.group) if c in header]
    parts, rows, pending, unknown = [], 0, 0, Counter[str]()
    needed = list(dict.fromkeys([*extra, *model.encoder.columns]))
    verbatim = () if roles.id is None else (roles.id,)
    batches = read_batches(path, needed, verbatim=verbatim, names=verbatim, query=query)
    unread: Unread | None = None
    for part, strange, waiting, odd in parallel(lambda batch: _look(model, batch), batches):
        unread = joined(unread, odd.later(rows))
        rows += len(part)
        unknown += strange
        pending += waiting
        parts.append(part)
        if progress is not None:
            progress(rows)
    if not rows:
        raise InputError(f"{path}: the table has no rows.")
    if unread is not None:
        notes += model.encoder.foreign_notes(unread, rows)
    frame = pd.concat(parts, ignore_index=True)
    person = _person_codes(frame)
    in_all, withheld, small = _shown_untested(model, frame, person)
    frame["shortfall"] = shortfall(frame)
    frame = frame.drop(columns=["own_rate", "average_rate", PERSON], errors="ignore")
    keep = frame.pop("untested").to_numpy()
    named = frame["group"] if "group" in frame else pd.Series("all", index=frame.index)
    tested = pd.Series(~keep).groupby(named).agg(["sum", "count"])
    untested, person = frame[keep], np.unique(person[keep], return_inverse=True)[1]
    doubt = _doubtful_results(roles, unknown, rows) + _pending(roles, pending, rows)
    if len(untested) == 0:
        raise InputError(
            f"{path}: nobody is left to test, because every row of the table was tested."
            + "".join(f" {note}" for note in doubt)
        )
    notes += doubt
    untested = untested.rename_axis("row").reset_index()
    _require_scores(untested, path)
    measures = gains(untested)
    keyed = named[keep].set_axis(untested.index)
    group, n = pd.factorize(keyed)[0], len(untested)
    gain, shortfalls = measures.sum(axis=1).to_numpy(), untested["shortfall"].to_numpy()
    less, so_far = shortfalls >= LESS, keyed.map(tested["sum"]).to_numpy()
    probability = allocate(gain, group, budget, tested=so_far, tested_less=less)
    by_gain = allocate(gain, np.zeros_like(group), budget)
    why: Any = ALL_TESTED
    if budget < n:
        above_share = np.bincount(group, probability) > budget / n * np.bincount(group)
        raised = above_share[group] & (probability >= RAISED * by_gain)
        equal = model.estimator.testing_model is not None
        why = reasons(untested, raised, equal_features=equal, score=model.score_name)
    else:
        notes += ("The budget covers all untested rows: everybody is tested.",)
    table = untested.assign(probability=probability, reason=why).rename(
        columns={"score": model.score_name, "score_spread": f"{model.score_name}_spread"}
    )
    if budget < n and (np.bincount(person, probability) > 1 + 1e-9).any():
        notes += (
            "Some people have several untested rows whose probabilities sum to more than 1. Of "
            "such a person more than one row can be drawn, of others at most one.",
        )
    by_group = pd.DataFrame({"untested": 1.0, "expected_tests": probability}).groupby(keyed).sum()
    by_group = by_group.loc[in_order(by_group.index, model.estimator.group_names_)]
    done = tested.loc[by_group.index]
    by_group["tested"] = done["sum"] / done["count"] if recorded else np.nan
    by_group["tested_after"] = by_group["tested"] + by_group["expected_tests"] / done["count"]
    by_group["shortfall"] = untested["shortfall"].groupby(keyed).first()
    by_group = by_group.rename_axis("group")
    counted = by_group.columns.drop("shortfall")
    by_group.loc[by_group.index.isin(withheld), counted] = np.nan
    # without a model of testing, a shortfall is made of the counts
    unsaid = withheld if model.estimator.testing_model is None else small
    by_group.loc[by_group.index.isin(unsaid), "shortfall"] = np.nan
    return NextTests(table, by_group, in_all, rows, notes, person)


def _shown_untested(
    model: TableModel, rows: pd.DataFrame, person: np.ndarray
) -> tuple[Shown, list[str], list[str]]:
    """How many of all rows are untested, the groups of which that is withheld, and the small ones.

    The small ones are those for whose sake counts are withheld, also of large groups beside them.

    Whoever knows rows and untested knows the tested. So the model's card counts as well: what it
    withholds of a group is not told here.
    """
    keyed = rows["group"] if "group" in rows else pd.Series("all", index=rows.index)
    code, names = pd.factorize(keyed)
    untested = rows["untested"].to_numpy(bool)
    cells = {"rows": np.ones(len(rows), bool), "tested": ~untested, "untested": untested}
    counts = [
        {key: int((cells[key] & (code == one)).sum()) for key in ("rows", "tested")}
        for one in range(len(names))
    ]
    few = few_among(cells, code, len(names), person)
    card = shown_training_counts(model.estimator)[["rows", "tested"]].isna().any(axis=1)

    def untold(seen: Mapping[str, Shown], tested: int, secret: Collection[str]) -> bool:
        nobody = tested == 0 and "tested" not in secret  # of whom nothing is learnt
        return isinstance(seen["rows"], str) or (isinstance(seen["tested"], str) and not nobody)

    *of_groups, of_all = hide_groups(counts, few)
    withheld = [
        str(name)
        for name, seen, count, secret in zip(names, of_groups, counts, few, strict=False)
        if untold(seen, count["tested"], secret) or (count["tested"] and card.get(name, False))
    ]
    small = [
        str(name)
        for name, count, secret in zip(names, counts, few, strict=False)
        if secret or min(count["tested"], count["rows"] - count["tested"]) < THRESHOLD
    ]
    small = [name for name in small if name in withheld]
    total = int(untested.sum())
    if untold(of_all, len(rows) - total, few[-1]):
        return SMALL if total < THRESHOLD else WITHHELD, withheld, small
    return total, withheld, small


def _require_scores(untested: pd.DataFrame, path: Path) -> None:
    """Refuse rows whose score is not a number: nothing could be said of what a test would bring."""
    absent = ~np.isfinite(untested["score"].to_numpy())
    if absent.any():
        first = untested["row"].to_numpy()[absent.argmax()]
        raise InputError(
            f"{path}: {absent.sum():,} untested rows cannot be scored (the first is row {first:,}, "
            "counted from 0): their values are too large to compute with. Correct them, or remove "
            "these rows."
        )


def _person_codes(rows: pd.DataFrame) -> np.ndarray:
    """Codes of the people behind rows; a row without an identifier is a person of its own."""
    if PERSON not in rows:
        return np.arange(len(rows))
    codes = pd.factorize(rows[PERSON])[0]
    absent = codes < 0
    codes[absent] = codes.max() + 1 + np.arange(absent.sum())
    return codes


def gains(rows: pd.DataFrame) -> pd.DataFrame:
    """The three measures [n, 3], each between 0 and 1, from the columns of `NextTests.table`."""
    doubt, disagreement = _doubt(rows), _disagreement(rows)
    return pd.DataFrame(
        {
            "uncertainty": (doubt + disagreement) / 2,
            # 0 in the midst of the tested, a half at their edge, 1 from twice as far on
            "distance": np.clip(rows["distance"].fillna(np.inf).to_numpy() / 2, 0, 1),
            "disparity": rows["shortfall"].to_numpy(),
        }
    )


def reasons(
    rows: pd.DataFrame, raised: np.ndarray, *, equal_features: bool = True, score: str = "score"
) -> np.ndarray:
    """In words, what is in favour of testing each row; several reasons are joined.

    `raised [n]` marks rows that owe much of their probability to the minimum of their group;
    `equal_features` says whether groups were compared at equal features, or as a whole; `score` is
    what the model calls its prediction.
    """
    short = rows["shortfall"].to_numpy()
    strong = np.stack(
        [
            _doubt(rows) >= 0.9,  # a score between about a third and two thirds
            _disagreement(rows) >= NOTABLE,
            ~(rows["distance"].to_numpy() <= 1),
            (short >= LESS) & (short < 1),
            short == 1,  # a group that the model does not know, and no other
            raised,
        ],
        axis=1,
    )
    words = REASONS if equal_features else {**REASONS, "disparity": CRUDE_DISPARITY}
    texts = [text.format(score=score) for text in words.values()]
    spelled = [
        "; ".join(text for bit, text in enumerate(texts) if code >> bit & 1) or NO_REASON
        for code in range(2 ** len(texts))
    ]
    return np.array(spelled, dtype=object)[strong @ (1 << np.arange(len(texts)))]


def _doubt(rows: pd.DataFrame) -> np.ndarray:
    """1 for a score of one half, 0 for certainty."""
    score = rows["score"].to_numpy()
    return 4 * score * (1 - score)


def _disagreement(rows: pd.DataFrame) -> np.ndarray:
    """The spread of the members, or parts, against the largest there can be at this score."""
    score, spread = rows["score"].to_numpy(), rows["score_spread"].to_numpy()
    most = np.sqrt(np.maximum(score * (1 - score), 1e-12))
    return np.clip(2 * spread / most, 0, 1)


def _doubtful_results(roles: Roles, unknown: Counter[str], rows: int) -> tuple[str, ...]:
    """What to say of label values [rows of each] that count as results and were none before."""
    if not unknown:
        return ()
    written = f", or {quoted(roles.untested_value)}" if roles.untested_value else ""
    return (
        f"Label {roles.label!r} is {quoted(list(unknown))} in {unknown.total():,} of {rows:,} "
        "rows. This counts as a negative result, but hardly anybody had it when the model was "
        f"fitted. For the untested, the label should be empty{written}.",
    )


def _pending(roles: Roles, pending: int, rows: int) -> tuple[str, ...]:
    """That whoever waits for a result need not be tested again."""
    if not pending:
        return ()
    some = f"{pending:,}" if pending >= THRESHOLD else SMALL
    return (
        f"{some} of {rows:,} rows are not listed: by their label {roles.label!r}, a test was done "
        "and its result is still to come.",
    )


def _look(
    model: TableModel, batch: pa.RecordBatch
) -> tuple[pd.DataFrame, Counter[str], int, Unread]:
    """Rows of a batch, untested and others; unknown results; pending ones; cells not read."""
    rows = model.read(batch)
    pending = pending_results(batch, model.roles)
    scores = model.score_read(rows)
    out: dict[str, Any] = {}
    known = model.roles.id
    if known is not None and known in batch.schema.names:
        who = batch.column(known).to_pandas(integer_object_nulls=True)  # floats lose digits
        out[str(identifier_in_list(known))] = who.to_numpy()
        out[PERSON] = person_names(batch, model.roles)
    groups = group_codes(batch, model.roles)
    if groups is not None:
        codes, names = groups
        out["group"] = np.array(names, dtype=object)[codes]
        out["own_rate"], out["average_rate"] = _rates(model, rows.standard, codes, names)
    out |= {
        "score": scores.score,
        "score_spread": scores.spread,
        "distance": scores.distance,
        "untested": ~(tested_rows(batch, model.roles) | pending),
    }
    unknown = unknown_results(batch, model.roles)
    return pd.DataFrame(out), unknown, int(pending.sum()), rows.unread


def shortfall(rows: pd.DataFrame) -> np.ndarray:
    """How much less each row's group is tested than its people would be on average, 0 to 1.

    Expected tests of the group's people by its own policy, against those by the average policy;
    both with a few tests added, so that three people do not stand out. A group that the model has
    never seen has never been tested: 1.
    """
    if "group" not in rows:
        return np.zeros(len(rows))
    sums = rows.groupby("group")[["own_rate", "average_rate"]].sum(min_count=1)
    ratio = (sums["own_rate"] + PRIOR) / (sums["average_rate"] + PRIOR)
    return rows["group"].map((1 - ratio.fillna(0.0)).clip(0, 1)).to_numpy(np.float64)


def _rates(
    model: TableModel, rows: np.ndarray, codes: np.ndarray, names: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """P(tested) in the own group (NaN if the model does not know it) and averaged over groups."""
    known = {name: code for code, name in enumerate(model.estimator.group_names_)}
    own = np.array([known.get(name, -1) for name in names])[codes]
    support = model.estimator.support_
    if model.estimator.testing_model is None:
        each = np.broadcast_to(_crude_rates(model), (len(own), len(known)))
    else:
        each = support.testing_probability(rows, model.estimator.testing_model)  # [n, G]
    mine = np.where(own >= 0, each[np.arange(len(own)), np.maximum(own, 0)], np.nan)
    return mine, each @ support.group_shares


def _crude_rates(model: TableModel) -> np.ndarray:
    """Share of each group that was tested, for methods without a model of testing."""
    counts = model.estimator.training_counts_
    overall = counts["tested"].sum() / counts["rows"].sum()
    return (counts["tested"] / counts["rows"]).fillna(overall).to_numpy(np.float64)


def _notes(model: TableModel, header: list[str]) -> tuple[str, ...]:
    roles, notes = model.roles, []
    unknown = [name for name in roles.tested or (roles.label,) if name not in header]
    if unknown:
        notes.append(
            f"The table has no column {unknown[0]!r}, which says who was tested: everybody counts "
            "as untested."
        )
    absent = [name for name in roles.group if name not in header]
    if not roles.group:
        notes.append("The model was fitted without groups: disparity is not considered.")
    elif absent:
        notes.append(f"The table has no column {absent[0]!r}: disparity is not considered.")
    elif model.estimator.testing_model is None:
        notes.append(
            f"{model.estimator.name} has no model of who is tested: disparity compares the groups "
            "as a whole, not at equal features."
        )
    if model.members == 1:
        notes.append("The model has a single member: disagreement is not considered.")
    return tuple(notes)
