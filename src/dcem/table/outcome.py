"""Label, testing decision and truth: raw values become 0, 1 and missing.

Every command reads them here, the whole table when a model is fitted and batches of it when it is
used, so that all agree on who is tested.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa

from dcem.table import checks, groups, values
from dcem.table.disclosure import THRESHOLD, people_of
from dcem.table.messages import InputError, did_you_mean, notice, quoted, rows_text
from dcem.table.roles import Roles, split_where_known

# What a decision is called, where it says who was tested.
DONE = (
    *("approved", "released", "tested", "searched", "done", "performed", "ordered", "screened"),
    *("investigated", "inspected", "audited", "reviewed", "examined", "interviewed"),
)


def _words(*texts: str) -> set[str]:
    return {values.word(text) for text in texts}


# Words of a label that mean "nobody looked", ...
NOT_DONE = _words(
    *(f"{no} {done}" for no in ("not", "never", "not yet", "un") for done in DONE),
    *("none", "unknown", "not applicable", "not measured", "not assessed", "not collected"),
    *("not recorded", "not available", "not checked", "not sent", "not taken", "not requested"),
    *("test not done", "no test", "no result", "no data", "missing", "lost to follow-up"),
    *("unbekannt", "fehlt", "keine Angabe", "kein Test", "nicht gemacht", "nicht bestimmt"),
    *("nicht gemessen", "nicht getestet", "nicht durchgef\u00fchrt", "nicht untersucht"),
    *(
        "nicht erhoben",
        "nicht gepr\u00fcft",
        "non test\u00e9",
        "non contr\u00f4l\u00e9",
        "non fait",
    ),
    *("non r\u00e9alis\u00e9", "inconnu", "no realizado", "no hecho", "desconocido"),
)
# ... "somebody looked, and will know" ...
PENDING = _words("pending", "awaited", "in progress", "ausstehend", "en attente", "pendiente")
# ... and "nobody knows".
UNDECIDED = PENDING | _words(
    *("inconclusive", "indeterminate", "equivocal", "undetermined", "unclear", "invalid"),
    *(
        "contaminated",
        "not evaluable",
        "unklar",
        "fraglich",
        "ung\u00fcltig",
        "ind\u00e9termin\u00e9",
    ),
    *("douteux", "indeterminado", "dudoso"),
)
DECIDED = {
    **dict.fromkeys((*DONE, "accepted", "granted", "approve", "accept", "grant", "release"), "yes"),
    **dict.fromkeys(_words(*(f"{no} {word}" for no in ("not", "un") for word in DONE)), "no"),
    **dict.fromkeys(("declined", "rejected", "denied", "refused", "detained"), "no"),
    **dict.fromkeys(("decline", "reject", "deny", "refuse", "detain"), "no"),
}
# Words of a label that sound like yes, and like no; the second counts where both fit.
BAD = re.compile(
    r"^>|high|abnormal|elevated|positiv|reactive|detected|found|default|charged off|\blate\b"
    r"|\bbad\b|dead|died|deceased|malignant|fail|\byes\b|\bhit\b|recid|erh\u00f6ht|auff\u00e4llig"
    r"|pathologisch|gefunden|verstorben|ausgefallen|ausfall|schlecht|\bkrank\b|\btreffer\b"
)
GOOD = re.compile(
    r"^((did |was |has |had )?not|no|none|nicht|nil|pas|sin|kein\w*)\b|^(non|norm|neg)"
    r"|^un(auff|detect|event|found|infect|react|remark|substant|affect)"
    r"|fully paid|good|benign|pass|alive|surviv|repaid"
    r"|clear|reject|healthy|\bgut\b|bezahlt|zur\u00fcckgezahlt|lebt|gesund|fehlerfrei"
)
# A yes of a label, and the no that goes with it.
PAIRS = tuple(
    (re.compile(yes), re.compile(no))
    for yes, no in (
        (r"\bpos(itiv\w*)?\b|\breactive\b|\bdetected\b", r"\bn[eé]g(ativ\w*)?\b"),
        (r"^p$", r"^n$"),
        (r"dead|died|deceased|death|verstorben|gestorben", r"alive|surviv|living|lebt|\blebend"),
        (
            r"default|charged off|delinquen|\bbad\b|\blate\b|ausgefallen|ausfall|schlecht",
            r"\bpaid|repaid|\bgood\b|bezahlt|zurückgezahlt|\bgut\b",
        ),
        (r"malignant|maligne|bösartig", r"benign|gutartig"),
        (r"\bill\b|sick|diseased|\bkrank\b|\bcase\b", r"healthy|\bgesund\b|\bcontrol\b"),
        (r"fail|\bfehler\b|defekt", r"pass|fehlerfrei"),
        (r"high|elevated|abnormal|erhöht|auffällig|pathologisch|^>", r"^norm"),
        (r"found|\bhit\b|\btreffer\b|gefunden", r"\bclear\b|\bclean\b|\bmiss\b|\bnothing\b"),
        (r"guilty|convicted", r"innocent|acquitted"),
    )
)
YES_NO = {  # words that may be the no of a yes, the first that occurs
    **dict.fromkeys(("yes", "si"), ("no", "n")),
    **dict.fromkeys(("verdadero", "vero", "verdadeiro"), ("falso",)),
    **{
        word.split()[0]: tuple(word.split()[1:])
        for word in (
            "y n no",
            "true false f",
            "t f false",
            "1 0",
            "ja nein nee n",
            "j n nein",
            "oui non n",
            "sim nao n",
            "wahr falsch",
            "vrai faux",
            "waar onwaar",
        )
    },
}
NOT = (
    r"((did|was|has|had)?not|no|none|non|un|in|im|nicht|nichts|nil|kein(e[nrs]?)?|pas(de)?|sin"
    r"|sans|ohne|without)"
)
REFUSED = re.compile(r"reject|declin|refus|\bdenied|detain|abgelehnt|verweigert|^non")
NEGATED = re.compile(rf"^{NOT}\b")  # by a word of its own
# Missing numbers, as other programs write them.
NULL = values.NULLS - {"none", "nil", "-"}
NO_RESULT = (NOT_DONE | UNDECIDED) - {"none"}  # which may be said of an illness


def read_label(
    column: pa.ChunkedArray, roles: Roles, tested: np.ndarray | None = None
) -> tuple[np.ndarray, Roles]:
    """The label [n], NaN where nobody looked; and the roles with their values settled.

    Labels are equal as numbers where every value is a number (`-9` is `-9.0`), as text otherwise.
    Of rows that were not `tested` [n] it does not matter what is written there, but for a yes.
    """
    text = values.coded(column, roles.missing_in(roles.label))
    all_stated = "" in roles.untested_value  # an empty cell: every word is a result
    listed_values: dict[str, Any] = {
        name: split_where_known(tuple(v.strip() for v in getattr(roles, name)), text.values)
        for name in ("positive", "untested_value")
    }
    others = [v for v in text.values if v not in listed_values["untested_value"]]
    numeric = values.all_numbers([v for v in others if v.casefold() not in NULL])
    roles = replace(roles, label_is_number=numeric, **listed_values)
    for name, given in listed_values.items():
        _require_values(name, given, text.values, roles)
    if numeric and (nulls := [v for v in others if v.casefold() in NULL]):
        rows = int(text.among(nulls).sum())
        notice(
            f"Label {roles.label!r} is {quoted(nulls)} in {rows:,} of {len(text.codes):,} rows. "
            "Among numbers this is a missing value: these rows count as untested."
        )
    label = _label(text, roles, tested)
    if not roles.positives_only:
        if not (all_stated or roles.tested or roles.negative or numeric):
            _refuse_unaccounted(text, label, roles)
        if roles.positive:
            everybody = tested is None and not np.isnan(label).any()
            is_no = (label == 0) & (tested is None or tested == 1)
            _tell_doubtful(text, is_no, roles, everybody, all_stated)
    return label, roles


def _refuse_unaccounted(text: values.Coded, label: np.ndarray, roles: Roles) -> None:
    """Of more words than two, only the counterpart of the positive one means no by itself."""
    yes, no = (
        [text.values[i] for i in np.unique(text.codes[label == result])] for result in (1, 0)
    )
    if open_words := unaccounted(yes, no):
        _refuse_open(text, open_words, (label == 0) & text.among(open_words), roles)


def _refuse_open(
    text: values.Coded, words: Sequence[str], rows: np.ndarray, roles: Roles
) -> NoReturn:
    raise InputError(
        f"Label {roles.label!r} is {quoted(words)} in {int(rows.sum()):,} of {len(rows):,} rows. "
        "Does this mean not tested, or a negative result? If it means that nobody tested, or that "
        "the result is unknown, list it under `untested_value`; if it means yes, under `positive`. "
        "If all of it means no, list an empty text, '', under `untested_value`: all other words "
        "are then results."
    )


def _tell_doubtful(
    text: values.Coded, is_no: np.ndarray, roles: Roles, everybody: bool, all_stated: bool
) -> None:
    """Say which values count as no (rows [n]) only because they are not listed as positive.

    Such are codes for a test that was not done; and, beside a plain no or where no row is untested
    by it, everything else: one value of several may mean that nobody looked, in whatever language.
    A word that says so is refused; so is one that is anything but no beside a plain no, unless
    `all_stated` says that every word is a result.
    """
    no = [text.values[i] for i in np.unique(text.codes[is_no])]
    doubtful = _doubtful(no, everybody)
    so, yes = "", ""
    if roles.negative:  # a later table than that of the model, which knows what meant no
        doubtful = _not_meant_no(no, roles)
        so = ", although hardly anybody had this value when the model was fitted"
        yes = "If it means yes, list it under `positive`. "
    elif open_words := _open_words(no, all_stated):
        _refuse_open(text, open_words, is_no & text.among(open_words), roles)
    elif all_stated:
        return
    if doubtful:
        rows = int((is_no & text.among(doubtful)).sum())
        notice(
            f"Label {roles.label!r} is {quoted(doubtful)} in {rows:,} of {len(text.codes):,} rows, "
            f"which counts as a negative result{so}. {yes}If it means that nobody tested, or that "
            "the result is unknown, list it under `untested_value`."
        )


def _doubtful(no: Sequence[str], everybody: bool) -> list[str]:
    """Values that perhaps only count as no, where `everybody` was tested or not."""
    plain = {*compress(no, values.yes_no(no) == 0)}
    undone = {*_sound_undone(no), *codes_of_missing(no)}
    several = bool(plain) or (everybody and len(no) > 1)
    return [value for value in no if value not in plain and (several or value in undone)]


def _open_words(no: Sequence[str], all_stated: bool) -> list[str]:
    """Words that count as no, and say something else or nothing plain beside a plain no."""
    has_no = not all_stated and bool((values.yes_no(no) == 0).any())
    meant = {value: meaning_of(value) for value in no if np.isnan(values.parsed([value])[0])}
    return [
        value
        for value, means in meant.items()
        if (means == "untested" and values.word(value) in NO_RESULT) or (has_no and means == "")
    ]


def unaccounted(positive: Sequence[str], others: Sequence[str]) -> list[str]:
    """Words beside the positive ones that may mean no or not tested: all but the counterpart.

    >>> unaccounted(["abnormal"], ["normal", "no"]), unaccounted(["yes"], ["no"])
    (['no'], [])
    >>> unaccounted(["Charged Off"], ["Fully Paid", "Rejected", "Current"])
    ['Rejected', 'Current']
    """
    if len({_plain(other) for other in others}) < 2:
        return []
    counterparts = {word for yes in positive for word in _counterparts(_plain(yes), others)}
    counterparts = counterparts or {other for other in others if _plain(other) == "negative"}
    return [other for other in others if other not in counterparts]


def counterpart_of(value: str, others: Sequence[str]) -> list[str]:
    """The words that plainly mean no where the value means yes."""
    return _counterparts(_plain(value), others)


def _plain(value: str) -> str:
    """A value as lower-case words; every spelling of negative is one."""
    spaced = re.sub(r"[\s_\u2010-\u2015-]+", " ", values.whole(value).casefold()).strip()
    return "negative" if re.fullmatch(r"neg|n[eé]gati[vf]\w*", spaced) else spaced


def _counterparts(yes: str, others: Sequence[str]) -> list[str]:
    """The others that negate the yes, or the one that forms a pair with it."""
    stem = values.word(yes)
    negations = [other for other in others if _negates(values.word(other), stem)]
    if negations:
        return negations
    for no in YES_NO.get(stem, ()):
        if fitting := [other for other in others if values.word(_plain(other)) == no]:
            return fitting
    for pattern, partner in PAIRS:
        if pattern.search(yes) and not NEGATED.search(yes):
            found = {v: _plain(v) for v in others if partner.search(_plain(v))}
            found = {v: plain for v, plain in found.items() if not NEGATED.search(plain)}
            if len(set(found.values())) == 1:
                return [*found]
    return []


def _negates(one: str, other: str) -> bool:
    """True if one of two words is the other with a negation: undetected, abnormal."""
    short, long = sorted((one, other), key=len)
    stem = re.escape(re.sub(r"(?<=\w{4})(ed|d|s)$", "", short))
    before = NOT if long == one else rf"({NOT}|ab|ir|dis)"
    return len(short) > 2 and bool(re.fullmatch(rf"{before}{stem}(ed|d|s|e|en)?", long))


def suggests_untested(value: str) -> bool:
    """True of a refusal, and of a negation: of something that was not done, or of nothing."""
    said = decided([value])
    plain = _plain(value)
    return (
        (said is not None and not said[0] and plain != "negative")
        or bool(NEGATED.search(plain) or REFUSED.search(plain))
        or bool(_sound_undone([value]))
    )


def meaning_of(value: str) -> str:
    """The plain meaning of a word in a label: "yes", "no", "untested", or "" if there is none.

    >>> [meaning_of(word) for word in ("Detected", "not_detected", "not_done", "contacted")]
    ['yes', 'no', 'untested', '']
    """
    if _sound_undone([value]):
        return "untested"
    plain = values.yes_no([value])[0]
    if not np.isnan(plain):
        return "yes" if plain else "no"
    spaced = re.sub(r"[\s_-]+", " ", value.casefold())
    if GOOD.search(spaced):
        return "no"
    return "yes" if BAD.search(spaced) else ""


def _not_meant_no(no: Sequence[str], roles: Roles) -> list[str]:
    """Values that count as no and did not when the model was fitted."""
    return [value for value in no if values.whole(value) not in roles.negative]


def values_of_no(
    column: pa.ChunkedArray, is_no: np.ndarray, roles: Roles, person: np.ndarray | None
) -> tuple[str, ...]:
    """Label values that at least ten people have among rows [n] that count as no.

    A model keeps them: in a later table another value is not a no that anybody has thought of.
    `person [n]` are numbers of the people behind the rows, if some have several.
    """
    text = values.wholes(values.coded(column, roles.missing_in(roles.label)))
    codes, many = text.codes[is_no], len(text.values)
    who = np.arange(len(text.codes)) if person is None else person
    people = people_of(codes, who[is_no], many)
    return tuple(text.values[i] for i in np.flatnonzero(people >= THRESHOLD))


def _label(text: values.Coded, roles: Roles, tested: np.ndarray | None = None) -> np.ndarray:
    """The label [n] of any rows, by settled roles.

    What only rows hold that were not `tested` [n] is no result, unless it plainly says yes: then
    the two contradict each other.
    """
    numeric = roles.label_is_number
    positive = _equal(text.values, roles.positive, numeric)
    untested = _equal(text.values, roles.untested_value, numeric)
    if numeric:
        untested |= {v for v in text.values if v.casefold() in NULL}
    if both := positive & untested:
        raise InputError(
            f"{quoted(sorted(both))} was given both as a positive and as an untested value of "
            f"{roles.label!r}. A value can mean only one of the two."
        )
    observed = [value for value in text.values if value not in untested]
    if tested is not None:
        seen = {text.values[i] for i in np.unique(text.codes[(tested == 1) & (text.codes >= 0)])}
        seen |= {*compress(observed, values.yes_no(observed) == 1)}
        observed = [value for value in observed if value in seen | positive]
    _refuse_near_misses(observed, positive, roles)
    meaning = dict(zip(observed, _meaning(observed, positive, roles.label, roles), strict=True))
    return text.take(np.array([meaning.get(v, np.nan) for v in text.values]), np.nan)


def read_tested(table: Any, roles: Roles, labels: pd.Index | None = None) -> np.ndarray:
    """Who was tested [n], 0 or 1, by any of the columns that say so; yes and no are understood."""
    return np.max(
        [_read_tested(_column(table, name), name, roles, labels) for name in roles.tested], axis=0
    )


def with_positives(
    label: np.ndarray, tested: np.ndarray, roles: Roles
) -> tuple[np.ndarray, np.ndarray]:
    """Label and tested [n], where rows that are positive without a test count as the roles say."""
    positive = (label == 1) & (tested == 0)
    if roles.positive_untested == "tested":
        return label, np.where(positive, 1.0, tested)
    if roles.positive_untested == "untested":
        return np.where(positive, np.nan, label), tested
    return label, tested


def decided(said: Sequence[str]) -> np.ndarray | None:
    """1 for tested and 0 for not, if every value plainly says one of them; else None."""
    return values.yes_or_no([DECIDED.get(values.word(value), value) for value in said])


def _read_tested(
    column: pa.ChunkedArray, name: str, roles: Roles, labels: pd.Index | None
) -> np.ndarray:
    text = values.coded(column, roles.missing_in(name))
    said = decided(text.values)
    if said is None and text.values:
        raise InputError(
            f"Column {name!r} must say yes or no (1 or 0, true or false, approved or declined) for "
            f"every row; it contains {quoted(text.values)}. If {roles.label!r} itself shows who "
            "was tested, leave out `tested`, and list the value that means untested under "
            "`untested_value`."
        )
    said = np.empty(0) if said is None else said
    return checks.check_binary(text.take(said, np.nan), name, labels=labels)


def read_truth(column: pa.ChunkedArray, roles: Roles, labels: pd.Index | None = None) -> np.ndarray:
    """Everybody's true outcome [n], 0 or 1, coded as the label is or as yes and no.

    A value that says that nobody knows is refused; one that is neither is told.
    """
    name = str(roles.truth)
    text = values.coded(column, roles.missing_in(name))
    numeric = values.all_numbers([v for v in text.values if v.casefold() not in NULL])
    positive = _equal(text.values, roles.positive, numeric)
    unknown = _equal(text.values, roles.untested_value, numeric)
    unknown |= {v for v in text.values if values.word(v) in NO_RESULT or v.casefold() in NULL}
    if unknown := unknown - positive:
        found = text.among(unknown)
        raise InputError(
            f"Column {name!r} is {quoted(sorted(unknown))} in {rows_text(found, labels)}. The "
            "truth must be known of every row: fill these in, leave the rows out, or give no truth."
        )
    per_value = np.array(_meaning(list(text.values), positive, name, roles), dtype=float)
    doubtful = _doubtful([*compress(text.values, per_value == 0)], everybody=True)
    if positive and doubtful:
        notice(
            f"Truth {name!r} is {quoted(doubtful)} in {text.among(doubtful).sum():,} of "
            f"{len(text.codes):,} rows, which counts as negative. If it means that the truth is "
            "unknown, leave these rows out."
        )
    return checks.check_binary(text.take(per_value, np.nan), name, labels=labels).astype(np.int64)


def labels_of(batch: Any, roles: Roles) -> np.ndarray:
    """The label [n] of a batch, by settled roles: NaN where nobody looked."""
    tested = read_tested(batch, roles) if roles.tested else None
    label = _label(coded(batch, roles.label, roles), roles, tested)
    if roles.positives_only:
        return (label == 1).astype(float)
    if tested is not None:
        label, tested = with_positives(label, tested, roles)
    return checks.resolve_tested(label, tested, label_name=roles.label)[0]


def tested_rows(batch: Any, roles: Roles) -> np.ndarray:
    """Who was tested [n], as far as the batch says: nobody, if it has neither tested nor label."""
    names = batch.schema.names
    if roles.tested and all(name in names for name in roles.tested):
        tested = read_tested(batch, roles)
        if roles.positive_untested and roles.label in names:
            label = _label(coded(batch, roles.label, roles), roles, tested)
            tested = with_positives(label, tested, roles)[1]
        return tested.astype(bool)
    if not roles.tested and roles.label in names:
        text = coded(batch, roles.label, roles)
        return ~np.isnan(_label(text, roles))
    return np.zeros(batch.num_rows, dtype=bool)


def pending_results(batch: Any, roles: Roles) -> np.ndarray:
    """Who was tested and has no result yet [n], where the label alone says who was tested.

    For learning such a row is untested; but nobody has to be tested again.
    """
    if roles.tested or roles.label not in batch.schema.names:
        return np.zeros(batch.num_rows, dtype=bool)
    text = coded(batch, roles.label, roles)
    says = np.array([values.word(value) in PENDING for value in text.values], dtype=bool)
    return text.take(says, False) & np.isnan(_label(text, roles))


def unknown_results(batch: Any, roles: Roles) -> Counter[str]:
    """Label values that make rows tested with a negative result, unknown to the model: their rows.

    None where another column says who was tested, or the model does not know what meant no.
    """
    if roles.tested or not roles.negative or roles.label not in batch.schema.names:
        return Counter()
    text = coded(batch, roles.label, roles)
    of_no = Counter(text.codes[_label(text, roles) == 0].tolist())
    found = {text.values[code]: rows for code, rows in of_no.items()}
    return Counter({value: found[value] for value in _not_meant_no(list(found), roles)})


def group_codes(batch: Any, roles: Roles) -> tuple[np.ndarray, tuple[str, ...]] | None:
    """Group codes [n] and their names, crossed as in fitting; None if a group column is absent."""
    if not roles.group or any(name not in batch.schema.names for name in roles.group):
        return None
    return groups.code_batch({name: coded_names(batch, name, roles) for name in roles.group})


def person_names(batch: Any, roles: Roles) -> np.ndarray:
    """The person behind each row [n], named as in fitting; None where it is missing."""
    name = str(roles.id)
    text = values.code_names(coded_names(batch, name, roles), name)
    return np.array([*text.values, None], dtype=object)[text.codes]


def coded(batch: Any, name: str, roles: Roles) -> values.Coded:
    """A column that has a role, as codes into its values."""
    return values.coded(_column(batch, name), roles.missing_in(name))


def coded_names(batch: Any, name: str, roles: Roles) -> values.Coded:
    """The same of one that names people, groups or deciders."""
    return values.coded_names(_column(batch, name), name, roles.missing_in(name))


def numbers(batch: Any, name: str, roles: Roles) -> np.ndarray:
    """A column that has a role, as numbers [n]; anything else in it is an error."""
    found, unread = values.numbers_and_unread(_column(batch, name), roles.missing_in(name))
    if unread:
        text = coded(batch, name, roles)
        sizes = np.abs(values.limits_parsed(text.values))
        odd = [*compress(text.values, ~(sizes <= values.LARGEST_VALUE))]
        raise InputError(
            f"Column {name!r}, the {roles.of(name)}, holds no number in {unread:,} of "
            f"{len(found):,} rows: {quoted(odd, 3)}. Allowed: numbers such as 1.5."
        )
    return found


def _column(batch: Any, name: str) -> pa.ChunkedArray:
    column = batch.column(name)
    values.require_known(column, name)
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _equal(found: Sequence[str], given: Sequence[str], numeric: bool) -> set[str]:
    """The values that are among the given ones."""
    equal = {value for value in found if value in given}
    if numeric and given:
        equal |= {*compress(found, np.isin(values.parsed(found), values.parsed(given)))}
    return equal


def _refuse_near_misses(observed: Sequence[str], positive: set[str], roles: Roles) -> None:
    """No value means no only because it was spelled another way."""
    for role, given in (("positive", roles.positive), ("untested_value", roles.untested_value)):
        alike = {values.folded(value): value for value in given}
        sizes = {size: v for v, size in zip(given, values.parsed(given), strict=True)}
        for value, size in zip(observed, values.parsed(observed), strict=True):
            near = alike.get(values.folded(value), sizes.get(size))
            if near is not None and value not in positive:
                raise InputError(
                    f"Column {roles.label!r} contains {value!r} as well as {near!r}, which was "
                    f"given as `{role}`. If both mean the same, list {value!r} as `{role}` too. "
                    "Otherwise rename it; as it is, it would count as a negative result."
                )


def without_result(found: Sequence[str]) -> list[str]:
    """Label values that sound as if nobody had looked, or nobody knew.

    A number that often stands for a missing one (9, 99) does so beside a plain yes and no, or 1
    and 2.
    """
    words = _sound_undone(found)
    codes = [value for value in codes_of_missing(found) if value != "-1"]
    rest = [values.whole(value) for value in found if value not in (*words, *codes)]
    said = values.yes_or_no(rest)
    plain = set(rest) == {"1", "2"} or (said is not None and len(set(said)) == 2)
    return [*words, *codes] if plain else words


def _sound_undone(found: Sequence[str]) -> list[str]:
    words = NOT_DONE | UNDECIDED
    return [v for v in found if values.word(v) in words or v.casefold() in NULL]


def codes_of_missing(found: Sequence[str]) -> list[str]:
    """Numbers that often stand for a missing one: -1, 9, 99."""
    return [value for value in found if values.MISSING_CODE.fullmatch(values.whole(value))]


def _meaning(observed: list[str], positive: set[str], name: str, roles: Roles) -> list[float]:
    """0 or 1 for each observed value."""
    if positive or (roles.positive and name == roles.label):
        return [float(value in positive) for value in observed]
    said = values.yes_or_no(observed)
    if said is not None or not observed:
        return [] if said is None else list(said)
    hint = ""
    if looks := without_result(observed):
        hint = (
            f" If {looks[0]!r} means that nobody tested, or that the result is unknown, list it "
            "under `untested_value`."
        )
    if len(observed) > 12 and values.all_numbers([v for v in observed if v not in looks]):
        raise InputError(
            f"Column {name!r} holds a measurement ({quoted(observed, 3)}), not yes and no. Add a "
            f"column that says who is above the relevant limit, and name that column.{hint}"
        )
    plain = values.yes_no(observed)
    unclear = [*compress(observed, np.isnan(plain))]
    if 0 < len(unclear) < len(observed):
        hint = f" Neither yes nor no: {quoted(unclear)}.{hint}"
    raise InputError(
        f"Column {name!r} contains {quoted(observed)}. Which of these mean yes? List them under "
        f"`positive`; the others then mean no.{hint} Recognised without it: 1 and 0, yes and no, "
        "true and false, positive and negative."
    )


def _require_values(role: str, given: Sequence[str], present: Sequence[str], roles: Roles) -> None:
    """Each of the given values must occur in the column."""
    for value in given:
        if not _equal(present, (value,), roles.label_is_number):
            raise InputError(
                f"The value {value!r}, given as `{role}`, does not occur in column "
                f"{roles.label!r}.{did_you_mean(value, present)} Its values are: "
                f"{quoted(present)}."
            )
