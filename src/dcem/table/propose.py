"""Which column is what? Roles proposed by looking at a table, each with its reason.

Names and values give hints: a column that is empty wherever `searched` is no holds the result of
the search, whatever it is called. A hint is not knowledge, so nothing is decided in silence: every
role comes with a sentence that says why, and what could as well be otherwise is listed as a doubt.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dcem.table import read as reading
from dcem.table import values
from dcem.table.candidates import (
    AFTER,
    DECIDER,
    ENOUGH,
    EXPECTED,
    FEW_VALUES,
    GAPS,
    LABEL,
    MARKS,
    MEASURE,
    PERHAPS_AFTER,
    PERSON,
    PLACE,
    RESULT,
    ROLE_NAMES,
    ROW,
    SENSITIVE,
    TESTED,
    Candidate,
    NamedColumn,
    any_yes,
    group_candidates,
    is_clear,
    is_measured,
    label_candidates,
    why_tested,
)
from dcem.table.columns import LIKE_CODES, MENDABLE, word_among_numbers
from dcem.table.dates import AS_UTC
from dcem.table.load import UserTable, read_table
from dcem.table.messages import DataWarning, InputError, LeakWarning, naming, quoted
from dcem.table.outcome import (
    UNDECIDED,
    codes_of_missing,
    meaning_of,
    suggests_untested,
    unaccounted,
)
from dcem.table.remote import located
from dcem.table.roles import Roles, as_list, missing_in
from dcem.table.sampling import blocks_of
from dcem.text import capitalised, counted

MOST_GROUPS = 20
MOST_ANSWERS = 3  # next candidates that are listed
EARLY = 1 / 3  # of the columns
BESIDE = 2  # columns apart, at most: neither is plainly the first
SHOWN = 6  # names in a doubt
ENOUGH_ROWS = 30  # of a decider, to be compared with others


@dataclass(frozen=True)
class Suggestion:
    """One role, the column or value that seems to play it, and why."""

    role: str
    value: str
    reason: str


@dataclass(frozen=True)
class Question:
    """A role that the table leaves open, and its possible answers, best first.

    Each answer is arguments of `Roles` and a sentence that speaks for it.
    """

    role: str
    text: str
    answers: tuple[tuple[Mapping[str, Any], str], ...] = ()

    def __str__(self) -> str:
        return " ".join([self.text, *(why for _, why in self.answers)])

    @property
    def columns(self) -> set[str]:
        """The columns that its answers name."""
        roles = Roles.named("column", "columns")
        return {c for answer, _ in self.answers for r in roles for c in as_list(answer.get(r))}


Suggestions = Iterator[Suggestion | Question | str]  # roles, open ones, and doubts


@dataclass(frozen=True)
class Proposal:
    """What `propose_roles` found.

    Attributes
    ----------
    suggestions
        Role, column or value, and a sentence that says why; in the order of `Roles`.
    doubts
        What is uncertain and should be checked by a person.
    questions
        Roles that the table leaves open: they are not among the suggestions.
    columns
        All columns of the table.
    rows
        Rows that were looked at.
    """

    suggestions: tuple[Suggestion, ...]
    doubts: tuple[str, ...]
    columns: tuple[str, ...]
    rows: int
    questions: tuple[Question, ...] = ()

    @property
    def roles(self) -> dict[str, Any]:
        """The roles as arguments of `Roles`; without "label" where nothing looks like one."""
        return _as_arguments(self.suggestions)


def _as_arguments(suggestions: Sequence[Suggestion]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in suggestions:
        if one.role in Roles.named("flag"):
            found[one.role] = True
        elif one.role in Roles.named("columns", "values"):
            found.setdefault(one.role, []).append(one.value)
        else:
            found[one.role] = one.value
    return found


def propose_roles(source: Any, query: str | None = None, **known: Any) -> Proposal:
    """Propose the roles of a table's columns by looking at it.

    Parameters
    ----------
    source
        A path, an address or a frame, as for `dcem.read_table`. From a long table up to 50,000
        rows are examined, in blocks from all over its first million.
    query
        SQL, if the file is a database; or the name of a sheet of a workbook.
    known
        Roles that are already known, as arguments of `Roles`.
    """
    if isinstance(source, str | Path):
        path = located(source)
        with naming(path):
            header = reading.read_header(path, query)
            batches = reading.read_batches(path, verbatim=header, query=query)
            found = _propose(*blocks_of(batches), known)
        return replace(found, doubts=(*reading.notes(path, query), *found.doubts))
    return _propose(*blocks_of(reading.as_arrow(source).to_batches()), known)


def _propose(table: pa.Table, sampled: bool, known: Mapping[str, Any]) -> Proposal:
    doubts = list(reading.strange_rows(table))
    found = _given(known, table.column_names)
    marks = {} if "missing" in known else _marks_of_missing(table)
    found += [Suggestion("missing", mark, why) for mark, why in marks.items()]
    missing = [one.value for one in found if one.role == "missing"]
    last = max(len(table.column_names) - 1, 1)
    seen = [
        NamedColumn.of(name, table.column(name), missing_in(name, missing), place / last)
        for place, name in enumerate(table.column_names)
    ]
    if sampled:
        doubts.append(
            f"Only {table.num_rows:,} rows were examined, in blocks from all over the table "
            "(its first million rows, if it has more)."
        )
    steps = _propose_person, _propose_outcome, _propose_group, _propose_named, _propose_decider
    questions: list[Question] = []
    for step in steps:
        taken = _taken(found)
        free = [c for c in seen if taken.get(c.name, "label") in ("label", "tested")]
        if step is not _propose_outcome:
            free = [c for c in free if c.name not in set().union(*(q.columns for q in questions))]
        for one in list(step(free, {**known, **_as_arguments(found)})):
            if isinstance(one, str):
                doubts.append(one)
            elif isinstance(one, Question):
                questions.append(one)
            elif one.role not in known:
                found.append(one)
    for one in list(_left_out(table, seen, found, sampled, questions)):
        doubts.append(one) if isinstance(one, str) else found.append(one)
    found.sort(key=_place)
    return Proposal(
        tuple(found),
        tuple(dict.fromkeys(doubts)),
        tuple(table.column_names),
        table.num_rows,
        tuple(questions),
    )


def _given(known: Mapping[str, Any], columns: Sequence[str]) -> list[Suggestion]:
    """What needs no proposing, checked and spelled out."""
    roles = Roles(**{"label": None, **known}).resolved(columns)
    found = []
    for role in known:
        value = getattr(roles, role)
        if isinstance(value, Mapping):  # of a rate by group
            value = ",".join(f"{group}={rate}" for group, rate in value.items())
        given = [entry for entry in as_list(value) if entry is not False]
        found += [Suggestion(role, str(entry), "As given.") for entry in given]
    return found


def _place(one: Suggestion) -> int:
    return list(Roles.__dataclass_fields__).index(one.role)


def _taken(found: Sequence[Suggestion]) -> dict[str, str]:
    """The columns that have a role, and the first of `Roles`; a value may be called like one."""
    columns = Roles.named("column", "columns", "rate")
    later_first = sorted(found, key=_place, reverse=True)
    return {one.value: one.role for one in later_first if one.role in columns}


def _marks_of_missing(table: pa.Table) -> dict[str, str]:
    """Values that plainly stand for a missing one, and where."""
    where: dict[str, list[str]] = {}
    for name in table.column_names:
        column = table.column(name)
        if values.is_text(column):
            text = values.coded(column)
            marks = MARKS & set(text.values)
            word = word_among_numbers(text)
            if word is not None and word.casefold() not in values.YES | values.NO:
                marks |= {word}
            for mark in marks:
                where.setdefault(mark, []).append(name)
    return {
        mark: f"{mark!r} stands for a missing value in {_names_text(names)}."
        for mark, names in sorted(where.items())
    }


def _propose_person(seen: Sequence[NamedColumn], known: Mapping[str, Any]) -> Suggestions:
    """The column that says whose row it is: of several, the one in which people come again."""
    likely = [
        c
        for c in seen
        if PERSON.search(c.words) and c.known.all() and _names_many(c) and not _is_other(c)
    ]
    if "id" in known or not likely:
        return
    best = min(likely, key=lambda c: (len(c.text.values), len(c.name)))
    rows, people = len(best.text.codes), len(best.text.values)
    how = "it differs in every row"
    if people < rows:
        how = f"{rows:,} rows of {people:,} people, whose rows stay together"
    yield Suggestion("id", best.name, f"The name suggests a person's identifier; {how}.")
    if len(likely) > 1:
        yield (
            f"The person's identifier could also be {_names(likely, best)}; {best.name!r} was "
            "chosen because its values repeat most often."
        )


def _names_many(column: NamedColumn) -> bool:
    """Whether it has so many values that each names a few rows."""
    return len(column.text.values) > max(MOST_GROUPS, 0.05 * len(column.text.codes))


def _propose_group(seen: Sequence[NamedColumn], known: Mapping[str, Any]) -> Suggestions:
    """The first sensitive attribute in the order of `SENSITIVE`, else a column by its structure."""
    if "group" in known:
        return
    taken = {known.get("label"), *known.get("tested", ())}
    free = [c for c in seen if c.name not in taken]
    named = [
        (c, f"The name suggests {what}")
        for what, pattern in SENSITIVE.items()
        for c in free
        if pattern.search(c.words) and 2 <= len(c.text.values) <= MOST_GROUPS
    ]
    if wide := [c for c, _ in named if is_measured(c)]:
        yield (
            f"{_names(wide)}: numbers, not groups. To compare groups by them, add a column with "
            "bands such as 18-39, 40-64, 65+, and name it as `group`."
        )
    likely = [(c, why) for c, why in named if c not in wide]
    if not likely:
        structural = group_candidates([c for c in free if c not in wide])
        likely = [(c, "A complete column with few levels, early in the table") for c in structural]
        if structural and _is_open(structural, seen):
            answers = [({"group": [c.name]}, f"{_levels(c)}.") for c in structural[:MOST_ANSWERS]]
            answers.append(({"group": []}, "None of them: groups are not compared."))
            text = "Which column holds the group? No name suggests one."
            yield Question("group", text, tuple(answers))
            return
    if not likely:
        yield (
            "No column looks like a group (race, sex, insurance, ...). Disparities cannot be "
            "examined without one: name it as `group`."
        )
        return
    best, why = likely[0]
    yield Suggestion("group", best.name, f"{why}; {_levels(best)}.")
    if others := [c for c, _ in likely if c.name != best.name]:
        yield (
            f"Other possible groups, now features: {_names(others)}. Several groups are examined "
            "one by one and crossed."
        )


def _is_open(likely: Sequence[NamedColumn], seen: Sequence[NamedColumn]) -> bool:
    """True if the first of several columns is not plainly the group: late, or beside another.

    Codes beside text do not count: they may as well be counts.
    """
    codes = [values.all_numbers(c.text.values) for c in likely]
    late = likely[0].place > EARLY and (codes[0] or len(likely) > 1)
    close = [seen.index(c) - seen.index(likely[0]) <= BESIDE for c in likely[1:]]
    return late or any(
        near and codes[0] >= code for near, code in zip(close, codes[1:], strict=True)
    )


def _levels(column: NamedColumn) -> str:
    return f"{len(column.text.values)} values: {quoted(column.text.values, SHOWN)}"


def _propose_outcome(seen: Sequence[NamedColumn], known: Mapping[str, Any]) -> Suggestions:
    """Label and tested together: each is the better recognised by the other."""
    given = known.get("label"), known.get("untested_value", ())
    ranked = label_candidates(seen, *given)
    if "label" not in known and not is_clear(ranked):
        yield _ask_label(seen, ranked)
        return
    best = ranked[0]
    found_only = bool(known.get("positives_only")) or (
        best.is_one_value() and not best.tested and "tested" not in known
    )
    if found_only:  # nobody recorded who was tested
        best.tested = best.untested = ()
        why = "No value means no, and no column says who was tested."
        yield Suggestion("positives_only", "True", why)
    yield Suggestion("label", best.column.name, f"{capitalised(best.why())}.")
    if "tested" not in known and not found_only:
        yield from _propose_tested(best)
    yield from _propose_meanings(best, known)
    if best.waiting and "tested" not in known:
        why = "It seems to be the decision itself, with results still to come."
        yield Suggestion("exclude", best.waiting[0], why)
        yield best.waiting[1]
    decisions = {name for d in best.decisions for name in d.names}
    others = [c for c in ranked[1:] if c.evidence >= 1 and c.column.name not in decisions]
    for other in others[:MOST_ANSWERS]:
        yield f"The label could also be {other.column.name!r}: {other.why()}."


def _ask_label(seen: Sequence[NamedColumn], ranked: Sequence[Candidate]) -> Question:
    """Which column is the label? With the candidates, and what else the table may offer."""
    answers = []
    called = [c for c in ranked if LABEL.search(c.column.words)][:1]  # one of the first three
    first = ranked[: MOST_ANSWERS - 1]
    for candidate in dict.fromkeys([*first, *called, *ranked[: MOST_ANSWERS + 2]]):
        roles: dict[str, Any] = {"label": candidate.column.name}
        if candidate.tested:
            roles["tested"] = [c.name for c in candidate.tested]
        answers.append((roles, f"{capitalised(candidate.why())}."))
    return Question("label", _no_label(seen, [c.column for c in ranked]), tuple(answers))


def _propose_tested(best: Candidate) -> Suggestions:
    """Who was tested: the column that goes with the label's gaps, or under which it is never yes.

    A column under one of whose values the label is never positive is never passed over in silence.
    """
    label = best.column.name
    for column in best.tested:
        yield Suggestion("tested", column.name, why_tested(best))
        yield from _structural_zeros(best, column)
    if best.looked.mean() < 1 - GAPS:
        for decision in [d for d in best.decisions if d.usable and not d.may_follow][:MOST_ANSWERS]:
            if not best.tested:
                yield f"Zeros may stand for nobody looked: {decision.counts(label)}."
        return
    good = [d for d in best.decisions if d.usable]
    first = next(iter(good), None)
    if first is not None and first.expected >= EXPECTED and best.looked[~first.off].all():
        rivals = [d for d in good[1:] if d.expected >= 0.2 * first.expected and not d.follows]
        if first.is_called_a_test:
            rivals = [d for d in rivals if d.is_called_a_test]
        if not (first.positives or first.may_follow or rivals):
            for name in first.names:
                yield Suggestion("tested", name, f"{capitalised(first.counts(label))}.")
            for column in first.columns:
                yield from _structural_zeros(best, column)
            for other in best.decisions[1 : 1 + MOST_ANSWERS]:
                yield f"Another column could say who was tested: {other.counts(label)}."
            return
    likely = [d for d in best.decisions if not (d.follows or (d.may_follow and not d.usable))]
    possible = likely or good
    for other in [d for d in best.decisions if d not in possible][:MOST_ANSWERS]:
        yield f"Who was tested may show in another column: {other.counts(label)}."
    if not possible:
        if best.looked.all() and not best.unclear:
            yield (
                f"Every row has a label in {label!r} and no column says who was tested, so all "
                "rows count as tested. If a 0 may mean that nobody tested, name the column that "
                "says who was tested as `tested`; if nobody recorded it, use `positives_only`."
            )
        return
    answers: list[tuple[Mapping[str, Any], str]] = [
        ({"tested": d.names} if d.usable else {}, f"{capitalised(d.counts(label))}.")
        for d in possible[: MOST_ANSWERS + 2]
    ]
    if not any(answer for answer, _ in answers):
        answers.insert(
            0, ({}, "Add a column that says yes or no for everybody, from the one below.")
        )
    answers.append(({"tested": []}, "Everybody was tested: a 0 is always a result."))
    text = (
        f"Who was tested? Every row has a value in {label!r}, but where another column says no it "
        "is never, or hardly ever, positive. A 0 there may mean that nobody looked."
    )
    yield Question("tested", text, tuple(answers))


def _structural_zeros(best: Candidate, column: NamedColumn) -> Suggestions:
    """Where a column that is not called a test says no, the outcome may be impossible."""
    if best.looked.all() and not column.is_called_a_test():
        yield (
            f"{best.column.name!r} is never positive where {column.name!r} says no. Zeros there "
            "may mean that the outcome cannot occur, and not that nobody tested. If so, leave "
            f"these rows out of the table, and {column.name!r} is not `tested`."
        )


def _propose_meanings(best: Candidate, known: Mapping[str, Any]) -> Suggestions:
    """What the values of the label mean; words that do not say so are asked about."""
    label, unclear = best.column.name, best.unclear
    for value in best.untested:
        unknown = values.word(value) in UNDECIDED or values.MISSING_CODE.fullmatch(value)
        what = "the result is unknown" if unknown else "nobody tested"
        yield Suggestion("untested_value", value, f"{value!r} suggests that {what}.")
    yield from best.doubts
    tested = known.get("tested") or best.tested
    sure = [v for v in best.positive if v not in unclear]
    if "positive" in known:
        sure = as_list(known["positive"])
        results = [v for v in best.column.text.values if v not in (*best.untested, *sure)]
        stated = tested or known.get("positives_only")
        unclear = () if stated else tuple(unaccounted(sure, results))
        if values.all_numbers(results):  # others may be sizes, or negative results
            codes = codes_of_missing(results)
            unclear = tuple(v for v in unclear if v in codes and len(results) - len(codes) == 1)
    if sure and "" in as_list(known.get("untested_value")):  # all words are results
        unclear = ()
    if "positive" in known and not unclear:
        return
    if unclear:
        rows = {v: int(best.column.text.among([v]).sum()) for v in unclear}
        counts = ", ".join(f"{v!r} ({counted(rows[v], 'row')})" for v in unclear)
        text = f"{counts} in {label!r}: neither clearly positive nor clearly negative."
        if sure:
            given = {} if "positive" in known else {"positive": sure}
            undone = [*dict.fromkeys([*as_list(known.get("untested_value")), *best.untested])]
            text += " Does this mean not tested, or a negative result?"
            yield Question(
                "untested_value" if "positive" in known else "positive",
                text,
                tuple(_readings(given, sure, undone, unclear)),
            )
            return
        first = sorted(unclear, key=lambda v: (v not in best.positive, rows[v]))
        answers = [
            ({"positive": [v]}, f"{v!r} is positive: {counted(rows[v], 'row')}.") for v in first
        ]
        yield Question("positive", text, tuple(answers))
        return
    for value in best.positive:
        yield Suggestion("positive", value, "It sounds like a positive result.")
    if best.meaning:
        yield best.meaning


def _readings(
    given: Mapping[str, Any], sure: Sequence[str], undone: Sequence[str], unclear: Sequence[str]
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Answers to words that may mean no or not tested, the likeliest first; an empty text says that
    all other words are results.
    """
    negative = [v for v in unclear if meaning_of(v) == "no" and not suggests_untested(v)]
    odd = [v for v in unclear if v not in negative]
    untested = {**given, "untested_value": [*undone, *unclear]}, "Nobody tested, or nobody knows."
    if odd and negative:
        some = {**given, "untested_value": [*undone, *odd, ""]}
        yield some, f"Nobody tested, or nobody knows; {quoted(negative)}: a negative result."
    if odd:
        yield untested
    yield {**given, "untested_value": [*undone, ""]}, "A negative result: all words are results."
    if not odd:
        yield untested
    yield {"positive": [*sure, *unclear]}, "A positive result."


def _no_label(seen: Sequence[NamedColumn], likely: Sequence[NamedColumn]) -> str:
    """The question for the label, with columns that could become one."""
    measured = [
        c
        for c in seen
        if len(c.text.values) > FEW_VALUES
        and 0.01 < c.missing < 1
        and values.all_numbers(c.text.values[:200])
    ]
    few = [c for c in seen if 1 < len(c.text.values) <= MOST_GROUPS and c not in likely]
    named = [c for c in few if LABEL.search(c.words) or RESULT.search(c.words) or c.has_results()]
    hint = ""
    if named:
        hint = f" It may be {_names(named)}: list the values that mean yes under `positive`."
    if measured:
        hint += (
            f" A measurement that only some people have, such as {_names(measured[:3])}, can "
            "become the label: add a column that says who is above the relevant limit."
        )
    if likely:
        return f"Which column holds the outcome? None is certain.{hint}"
    return f"No column looks like the outcome. Name the column as `label`.{hint}"


def _propose_named(seen: Sequence[NamedColumn], known: Mapping[str, Any]) -> Suggestions:
    """Columns that carry the name of a role, or plainly a survey's weight."""
    for role, (pattern, why) in ROLE_NAMES.items():
        for column in [c for c in seen if pattern.search(c.words) and c.known.all()][:1]:
            yield Suggestion(role, column.name, why)


def _propose_decider(seen: Sequence[NamedColumn], known: Mapping[str, Any]) -> Suggestions:
    """Who decided: somebody by name is proposed, a place may as well be a feature."""
    if "decider" in known:
        return
    who, where = (
        [c for c in seen if pattern.search(c.words) and _comes_again(c) and not _is_other(c)]
        for pattern in (DECIDER, PLACE)
    )
    if "label" in known and not (looked := _looked(seen, known)).all():
        # who did the test, and is recorded where there was one, need not have decided
        who, where = (
            [c for c in some if np.mean(c.known == looked) < ENOUGH] for some in (who, where)
        )
    who.sort(key=lambda c: -len(c.text.values))  # a person before the person's rank
    for column in who[:1]:
        many = f"{len(column.text.values):,} different values"
        yield Suggestion("decider", column.name, f"The name suggests who decided; {many}.")
    if asked := [*who[1:], *where]:
        yield (
            f"The decider could also be {_names(asked)}. If people reach deciders as if at random, "
            "name the column as `decider`; otherwise it is a feature."
        )


def _looked(seen: Sequence[NamedColumn], roles: Mapping[str, Any]) -> np.ndarray:
    """Rows [n] that were tested, by the columns that say so, else by the label."""
    tested = [c for c in seen if c.name in roles.get("tested", ()) and c.is_yes_no()]
    if tested:
        return any_yes(tested)
    text = next(c.text for c in seen if c.name == roles["label"])
    return (text.codes >= 0) & ~text.among(roles.get("untested_value", ()))


def _is_other(column: NamedColumn) -> bool:
    """Whether it says of what kind somebody is, or how much: by name, or by many broken numbers."""
    if MEASURE.search(column.words) or column.is_sensitive():
        return True
    numbers = pd.to_numeric(pd.Series(column.text.values, dtype=object), errors="coerce")
    return len(numbers) > FEW_VALUES and bool(numbers.notna().all() and (numbers % 1 != 0).any())


def _comes_again(column: NamedColumn) -> bool:
    """Whether at least two of its values have enough rows to be compared."""
    return bool((column.text.counts() >= ENOUGH_ROWS).sum() > 1)


def _left_out(
    table: pa.Table,
    seen: Sequence[NamedColumn],
    found: Sequence[Suggestion],
    sampled: bool,
    questions: Sequence[Question],
) -> Iterator[Suggestion | str]:
    """Columns that should not be features: identifiers, constants, and what came afterwards.

    What is constant in a sample need not be so in the table, whose reader will find out. Columns
    that are the answer to a question stay.
    """
    asked_about = set().union(*(question.columns for question in questions))
    free = [c for c in seen if c.name not in _taken(found) and c.name not in asked_about]
    why: dict[str, str] = {}
    has_label = any(one.role == "label" for one in found)
    for column in free:
        if ROW.search(column.words) and _names_many(column) and not _is_other(column):
            each = len(column.text.values) == table.num_rows
            why[column.name] = "It differs in every row." if each else "An identifier that repeats."
            if not each and "id" not in {one.role for one in found}:
                yield f"Values of {column.name!r} repeat. If it identifies people, it is the `id`."
        elif AFTER.search(column.words) and (has_label or not LABEL.search(column.words)):
            levels = len(column.text.values)
            is_outcome = levels == 2 or (RESULT.search(column.words) and levels <= FEW_VALUES)
            what = "Another outcome" if is_outcome else "Judging by its name"
            why[column.name] = f"{what}, known only after the decision to test."
    read: UserTable | None = None
    problems: list[str] = []
    needed = {"label", "tested", "positive", "untested_value"}
    if not needed & {question.role for question in questions}:
        read, problems = _try(table, _as_arguments(found), why)
    if read is not None:
        for leak in read.leaks:
            if not leak.is_rule:
                why[leak.column] = f"It may have been recorded after the decision: {leak.sentence}."
        rules = {leak.column: leak for leak in read.leaks if leak.column not in why}
        for name, leak in rules.items():
            yield f"{name!r}: {leak.sentence}. Exclude it if it was recorded after the decision."
        for one in read.columns:
            useless = one.role == "left out" and not (sampled and one.kind == "constant")
            mendable = any(words in one.note for words in MENDABLE)
            if one.role == "left out" and mendable:  # once mended, it is a feature
                yield f"{one.name!r} is left out: {one.note}."
            elif useless and one.name not in why:
                why[one.name] = f"Not usable as a feature: {one.note.split(';')[0]}."
        features = [one for one in read.columns if one.role == "feature" and one.name not in why]
        for one in features:
            pointed = (values.FAR_OFF, values.TWO_UNITS, AS_UTC)  # `problems` tell of others
            told = [n for n in one.note.split("; ") if any(words in n for words in pointed)]
            yield from (f"{one.name!r}: {note}." for note in told)
        if codes := [one.name for one in features if LIKE_CODES in one.note]:
            yield (
                f"{quoted(codes, 2 * SHOWN)}: whole numbers that may be codes but are read as "
                "quantities. If larger does not mean more, list the column under `category` or "
                "`exclude`."
            )
        if dates := [one.name for one in features if one.kind == "date"]:
            yield (
                f"{quoted(dates, SHOWN)}: dates, which will not recur in new data. Name the date "
                "of the decision to test as `time`, and exclude all others."
            )
    yield from problems
    if guessed := [name for name, reason in why.items() if "decision" in reason]:
        yield (
            f"Excluded as known only after the decision: {quoted(guessed, SHOWN)}. If this is "
            "wrong for a column, remove it from the list."
        )
    late = (PERHAPS_AFTER, TESTED)  # another test may follow from the first
    if asked := [c for c in free if c.name not in why and any(p.search(c.words) for p in late)]:
        were = "Was" if len(asked) == 1 else "Were"
        yield f"{were} {_names(asked)} known before the decision to test? Exclude what was not."
    for column in free:
        if column.name in why:
            yield Suggestion("exclude", column.name, why[column.name])


def _try(
    table: pa.Table, roles: dict[str, Any], without: Mapping[str, str]
) -> tuple[UserTable | None, list[str]]:
    """The rows read with the proposed roles, and what the reader has to say about them."""
    if "label" not in roles:
        return None, []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", DataWarning)
        warnings.simplefilter("ignore", LeakWarning)  # such columns are left out, with the reason
        try:
            read = read_table(
                table, Roles(**{**roles, "exclude": [*roles.get("exclude", ()), *without]})
            )
        except InputError as error:
            return None, [f"With these roles the table cannot be read yet: {error}"]
    about = [str(w.message) for w in said if issubclass(w.category, DataWarning)]
    return read, [text for text in about if "every row counts as tested" not in text]


def _names(columns: Sequence[NamedColumn], but: NamedColumn | None = None) -> str:
    return quoted([c.name for c in columns if c is not but], SHOWN)


def _names_text(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"column {names[0]!r}"
    return f"{len(names)} columns, such as {quoted(names, 2).partition(' and ')[0]}"
