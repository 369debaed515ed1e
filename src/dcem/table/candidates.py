"""Which column may be the label, which says who was tested, and which holds a group.

All three are known by structure. A label has gaps that are no accident, or is never positive where
another column says no; that column says who was tested. A group is a complete column with few
levels. Names break ties. They are compared as `normalised` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, compress
from typing import Any

import numpy as np
import pyarrow as pa

from dcem.table import outcome, values
from dcem.table.messages import quoted
from dcem.text import counted, percent

FEW_VALUES = 12  # distinct values of a label
FEW_LEVELS = 8  # of a group that no name suggests
MOST_LEVELS = 20  # that are looked at one by one
MOST_RATED = 300  # candidates for the label
MOST_COMPARED = 60  # columns that may explain gaps
ENOUGH = 0.99  # of the rows agree: the rest are slips
GAPS = 0.05  # of the rows without a result, at least, make a column look tested in part
EXPECTED = 10  # positives where a column says no, if it had nothing to do with the label
SLIPS = 0.05  # of these are there, at most, where somebody slipped
WEAK = 3  # the same, of a column that is called like a test
FEW_RESULTS = 30  # positives or negatives: with fewer hardly anything can be learnt
COPY = 0.5, 0.8  # of the rows with yes are positive: a column may follow from the result, or does
SURE = 3.0  # what a column scores if it is taken as the label without asking,
CLOSE = 0.75  # ... and by how much it beats the next
WAITING = 0.2  # of those decided on, at most, whose results may still be to come
LABEL = re.compile(
    r"(^|_)(y|y_obs|label|labels|outcome|target|class|response|event|result)(_|$)|result$"
    r"|(befund|ergebnis|résultat|resultado|risultato)(_|$)"
)
RESULT = re.compile(
    r"diagnos|positiv|(^|_)(found|hit|weapon|contraband|default(ed)?|fraud|bad|repaid|died|dead|death|mortality"
    r"|sepsis|cancer|diabetes|disease|infect(ed|ion)|malignan\w*|recid\w*|relaps\w*|readmi\w*"
    r"|diagnose|nachweis|treffer|sichergestellt|ausfall|gefunden"
    r"|charge_?off|charged_off|loan_status|delinquen\w*|violation|violates|diseased|ill|sick|truth"
    r"|substantiated|convicted|guilty|offer|offered|hired)(_|$)"
)
TESTED = re.compile(
    r"(^|_)(tested|screened|searched|search|search_conducted|frisked|approved|accepted|granted"
    r"|funded|lent|measured|ordered|biopsied|biopsy|cultured|culture|labell?ed|examined|inspected"
    r"|audited|investigated|reviewed|interviewed|assessed|checked|released|referred|imaged|scanned|swabbed|test_done|testing|test"
    r"|followed_up|followup_done|getestet|angefordert|untersucht|gemessen|durchsucht|durchgeführt"
    r"|genehmigt|bewilligt|nachverfolgt)(_|$)"
)
SENSITIVE = {  # in this order
    "race or ethnicity": re.compile(r"(^|_)(race|races|ethni\w*|raceeth\w*|ridreth\d|hispanic)"),
    "sex or gender": re.compile(
        r"(^|_)(sex|gender|female|male|riagendr|geschlecht|sexe|sexo|sesso|género|geslacht)(_|$)"
    ),
    "insurance": re.compile(r"(^|_)(insur\w*|payer|payor|medicaid|versicherung\w*)"),
    "religion, origin or language": re.compile(
        r"(^|_)(religion|caste|nationality|citizen\w*|language|migrant|immigrant|indigenous"
        r"|herkunft\w*|nationalität|staatsangehörigkeit|sprache)"
    ),
    "disability": re.compile(r"(^|_)(disab\w+|behinderung)"),
    "age": re.compile(r"(^|_)(age(_?(group|band|cat\w*|bracket|class))?|alter(sgruppe)?)(_|$)"),
    "a group": re.compile(r"^(group|gruppe)$"),
    "where people live": re.compile(
        r"(^|_)(district|borough|neighbou?rhood|region|county|province|bezirk|stadtbezirk|stadtteil"
        r"|wohngebiet|(land)?kreis|gemeinde|bundesland|kanton|canton|quartier|arrondissement)(_|$)"
    ),
}
DECIDER = re.compile(  # somebody who decides
    r"(^|_)(decider|officer|judge|physician|clinician|doctor|examiner|inspector|underwriter|provider"
    r"|prescriber|caseworker|reviewer|arzt|ärztin|richter|richterin|sachbearbeiter)(_|$)"
)
PLACE = re.compile(  # where it may be decided
    r"(^|_)(clinic|hospital|site|cent(er|re)|branch|precinct|station|court|department|facility"
    r"|klinik|krankenhaus|filiale|standort)(_|$)"
)
MEASURE = re.compile(  # how long, how much or how many: nobody, and no place
    r"(^|_)(times?|days?|hours?|minutes?|weeks?|months?|years?|length|los|duration|number_of"
    r"|num_of|counts?|visits|stays|distance|rate|score|costs?|volume|size|beds|dauer|zeit|tage|anzahl|länge)(_|$)"
    r"|^(n|num|number)_"
)
PERSON = re.compile(  # also as one word: customerid, Kundennr
    r"(^|_)(patient(en|in|e)?|person(en|a|ne)?|subject|usubjid|participant|member|client(e|es)?"
    r"|customer|record|study|enrollee|beneficiary|bene|policy_?holder|insured|claimant|taxpayer"
    r"|applicant|individual|resident|defendant|driver|student|borrower|mrn|seqn|pat|pt|pid|nhs"
    r"|kunden?|kundin|versicherten?|klient(en)?|mandant(en)?|mitglieds?|schuldner|paciente|paziente"
    r"|assuré)(_?(id|no|nr|nbr|num|number|nummer|kennung|key|code|hash\w*|[ug]uid|ssn|pseudo\w*))*$|^id$"
)
ROW = re.compile(
    r"(^|_)(id|nbr|no|num|number|key|uuid|guid|mrn|seqn|pid|index|hadm|stay|num[ée]ro|dossier)(_|$)"
    r"|(nr|nummer|kennung)(_|$)"  # the end of a German word
)
ROLE_NAMES = {  # roles whose name a column carries, and why it is taken
    "truth": (re.compile(r"^(truth|true_label|y_true)$"), "The name suggests the true outcome."),
    "testing_probability": (
        re.compile(r"^testing_probability$"),
        "The name suggests the probability with which tests were drawn.",
    ),
    "weight": (
        re.compile(
            r"^(sample|survey|sampling|case)_?(weight|wt)s?$|^(p|s)?weights?_?(survey)$"
            r"|^(fnl_?wgt|final_?(wt|wgt|weight)|pweight|perwt|wt(mec|int)\w*|llcpwt)$"
        ),
        "The name suggests the weight of a row.",
    ),
}
AFTER = re.compile(  # named like what happens when the result is known, and not before
    r"^(?!.*(prior|previous|past|earlier|history)(_|$)).*("
    r"(^|_)(disch\w*|entlass\w*|readmi\w*|disposition|follow_?up|length_of_stay|verweildauer|outcome|arrest\w*|citation\w*"
    r"|summons|died|death"
    r"|mortality|expired|deceased|sentence\w*|recover(y|ies)|collections?|payback|repaid\w*"
    r"|result|results|confirmed|final)(_|$)|result$|(^|_)los(_days|_hours)?$)"
)
PERHAPS_AFTER = re.compile(
    r"(^|_)(diag\w*|treat\w*|medication\w*|drug\w*|therap\w*|change\w*)(_|$)"
)
OF_A_TEST = re.compile(r"^(pos|neg)$|positiv|negativ|reactive|detected|malign|benign|nachgewiesen")
FIELDS = {  # by the words of reports: names of columns, and those that other fields use, too
    "credit": (
        re.compile(
            r"(?:^|_)(loan|mortgage|borrower|lender|default|repaid|fico|credit(?!s)|applicant"
            r"|application|approved|declined|granted)(?:s|ed)?(?=_|$)"
        ),
        {"applicant", "application", "approved", "declined", "granted"},  # visas, claims
    ),
    "policing": (
        re.compile(r"(?:^|_)(contraband|frisk|search|stop|officer|driver|arrest)(?:s|ed)?(?=_|$)"),
        {"search", "stop", "officer", "driver", "arrest"},  # loan officers, bus stops
    ),
}
MARKS = {"?", "??", "NA", "N/A", "NULL", "(null)", "\\N", "<NA>", "nan", "NaN", "k.A.", "n.b."}
MARKS |= {error.upper() for error in values.ERRORS}


def normalised(name: str) -> str:
    """A name as lower-case words joined by underscores.

    >>> normalised("RiskScore"), normalised("risk-score"), normalised("Risk score?")
    ('risk_score', 'risk_score', 'risk_score')
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return re.sub(r"[\W_]+", "_", apart).strip("_").casefold()


def field_of(columns: Sequence[str]) -> tuple[str, list[str]]:
    """The field that names of columns speak of, and by which words.

    One word is not enough, nor are words of other fields, too.

    >>> field_of(["approved", "default_status"]), field_of(["applicant", "visa_granted"])
    (('credit', ['approved', 'default']), ('general', []))
    """
    names = [normalised(name) for name in columns]
    for field_name, (pattern, of_others) in FIELDS.items():
        found = {word for name in names for word in pattern.findall(name)}
        if len(found) > 1 and found - of_others:
            return field_name, sorted(found)
    return "general", []


@dataclass(frozen=True, eq=False)
class NamedColumn:
    """A column, its name in words, its values, the share of rows without one, and its place."""

    name: str
    words: str
    text: values.Coded
    missing: float
    place: float = 1.0  # 0 for the first column of a table, 1 for the last

    @classmethod
    def of(
        cls, name: str, column: pa.ChunkedArray, missing: Sequence[str], place: float = 1.0
    ) -> NamedColumn:
        """A column of a table; what cannot be read counts as missing."""
        text = values.Coded(np.full(len(column), -1), ())
        if values.is_known(column):
            text = values.coded(column, missing)
        return cls(name, normalised(name), text, float((text.codes < 0).mean()), place)

    @property
    def known(self) -> np.ndarray:
        """Rows [n] that have a value."""
        return self.text.codes >= 0

    @cached_property
    def _decided(self) -> np.ndarray | None:
        return outcome.decided(self.text.values) if len(self.text.values) <= FEW_VALUES else None

    def is_yes_no(self) -> bool:
        """Whether its values say yes and no, in whatever spelling, and nothing else."""
        return self._decided is not None and len(set(self._decided)) == 2

    @cached_property
    def _yes(self) -> np.ndarray:
        return self.text.take(np.asarray(self._decided) == 1, False)

    def says_yes(self) -> np.ndarray:
        """Rows [n] of a yes-or-no column that say yes."""
        return self._yes

    def has_results(self) -> bool:
        """Whether its values are those of a test, whatever it is called."""
        return sum(bool(OF_A_TEST.search(value.casefold())) for value in self.text.values) > 1

    def is_sensitive(self) -> bool:
        """Whether it is named like a group of people."""
        return any(pattern.search(self.words) for pattern in SENSITIVE.values())

    def is_called_a_test(self) -> bool:
        """True if it is named like the decision to test, and not like a result."""
        return bool(TESTED.search(self.words)) and not RESULT.search(self.words)

    @cached_property
    def cells(self) -> np.ndarray:
        """Rows [n] by level, or by tenth of a number with many values; the last is missing."""
        sizes = values.parsed(self.text.values)
        if len(sizes) > MOST_LEVELS and not np.isnan(sizes).any():
            order = self.text.take(sizes.argsort().argsort(), 0)[self.known]
            edges = np.quantile(order, np.linspace(0.1, 0.9, 9))
            return np.searchsorted(edges, self.text.take(sizes.argsort().argsort(), np.inf))
        return np.where(self.known, np.minimum(self.text.codes, MOST_LEVELS), MOST_LEVELS + 1)


@dataclass(frozen=True, eq=False)
class Decision:
    """What may say who was tested: where it says no, a label is hardly ever positive."""

    columns: tuple[NamedColumn, ...]  # one, or two of which either may say yes
    off: np.ndarray  # [n] where it says no
    rows: int  # there, with a value of the label
    positives: int  # there
    expected: float  # there, if it had nothing to do with the label
    share: float  # positive elsewhere
    when: str  # where that is
    usable: bool  # as it is: complete, with a yes and a no

    @property
    def may_follow(self) -> bool:
        """True if it may follow from the result: hardly anybody has it who is not positive."""
        return self.share > COPY[self.is_called_a_test]

    @property
    def is_called_a_test(self) -> bool:
        """True if its name says so."""
        return self.columns[0].is_called_a_test()

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [c.name for c in self.columns]

    @property
    def follows(self) -> bool:
        """True if it plainly does so."""
        return self.share > COPY[1]

    @property
    def rank(self) -> tuple[Any, ...]:
        """The best is smallest."""
        return (
            not self.usable,
            len(self.columns),
            not self.is_called_a_test,
            self.may_follow,
            -self.expected,
        )

    def counts(self, label: str) -> str:
        """The evidence in numbers."""
        rows, name = counted(self.rows, "row"), " or ".join(map(repr, self.names))
        positive = f"only {self.positives:,} times" if self.positives else "never"
        text = (
            f"{label!r} is {positive} positive where {name} {self.when} ({rows}; "
            f"{self.expected:,.0f} positives would be expected if that did not matter), and in "
            f"{percent(self.share)} of the others"
        )
        return text + "; it may as well follow from a positive result" * self.may_follow


@dataclass(eq=False)
class Candidate:
    """A column that may be the label."""

    column: NamedColumn
    positive: tuple[str, ...]
    untested: tuple[str, ...]
    looked: np.ndarray  # [n] whether it holds a result
    structure: int = 1  # 4 if a decision to test goes with it, down to 1
    doubts: list[str] = field(default_factory=list)
    meaning: str = ""  # of its words, in a sentence
    unclear: tuple[str, ...] = ()  # words that are neither clearly yes nor clearly no
    tested: tuple[NamedColumn, ...] = ()
    decisions: tuple[Decision, ...] = ()  # columns that may say who was tested, best first
    waiting: tuple[str, ...] = ()  # a decision some of whose results are to come, and a doubt
    details: int = 0  # subtracted where it is a detail of another one's positives

    def is_one_value(self) -> bool:
        """Whether it marks those who were found positive, and nobody else."""
        said = values.yes_or_no(self.column.text.values)
        return said is not None and bool(said.all())

    @property
    def evidence(self) -> float:
        """Structure, and its name as a tie-breaker."""
        column = self.column
        name = 2.0 if LABEL.search(column.words) else 1.0 if RESULT.search(column.words) else 0.0
        name = min(name + 0.5 * column.has_results(), 2)
        if not name and column.is_called_a_test() and self.looked.mean() >= ENOUGH:
            name = -2  # the decision rather than its result, unless it has gaps or results
        small = self.structure < 4 and min(self.counts()) < FEW_RESULTS
        vague = [v for v in self.unclear if v in self.positive or not outcome.meaning_of(v)]
        return self.structure + name - self.details - small - bool(vague)

    @property
    def score(self) -> float:
        """Evidence, then much missing, then late in the table: what candidates are ranked by."""
        return self.evidence - 0.25 * (self.looked.mean() < 0.1) + self.column.place

    def is_yes(self) -> np.ndarray:
        """Rows [n] that are positive."""
        text = self.column.text
        yes = self.positive or [*compress(text.values, values.yes_no(text.values) == 1)]
        return text.among(yes)

    def counts(self) -> tuple[int, int]:
        """Positive and negative results."""
        yes = int(self.is_yes().sum())
        return yes, int(self.looked.sum()) - yes

    def why(self) -> str:
        """One line on what speaks for it."""
        results = [v for v in self.column.text.values if v not in self.untested]
        whys = []
        if LABEL.search(self.column.words) or RESULT.search(self.column.words):
            whys.append("the name suggests a result")
        elif self.column.has_results():
            whys.append("the values are those of a test")
        empty = 1 - float(self.looked.mean())
        if empty > 0:
            whys.append(f"no result in {percent(empty)} of the rows")
        if self.decisions and empty < GAPS:
            whys.append(self.decisions[0].counts(self.column.name))
        elif self.tested:
            whys.append(f"{' or '.join(repr(c.name) for c in self.tested)} goes with it")
        return "; ".join([*whys, f"values {quoted(results)}"])


def label_candidates(
    seen: Sequence[NamedColumn], label: str | None = None, untested: Sequence[str] = ()
) -> list[Candidate]:
    """Columns with few values that may be the label, best first.

    A `label` that is given is the only one, whatever it looks like; `untested` are its values that
    are given to mean so.
    """
    yes_no = [c for c in seen if c.is_yes_no()]
    candidates = []
    for column in seen if label is None else [c for c in seen if c.name == label]:
        least = 0 if column.missing > 0 else 1  # a mark and blanks, or several values
        likely = least < len(column.text.values) <= FEW_VALUES and not column.is_sensitive()
        if label is None and not likely:
            continue
        in_place = untested or _value_where_not(column, yes_no)
        candidate = _as_label(column, in_place, given=label is not None)
        if candidate is not None:
            candidates.append(candidate)
    candidates.sort(key=lambda c: -c.score - 2 * (c.looked.mean() <= 1 - GAPS))
    del candidates[MOST_RATED:]
    _find_decisions(candidates, seen)
    chance: dict[bytes, bool] = {}
    for candidate in candidates:
        _rate(candidate, [c for c in yes_no if c is not candidate.column], seen, chance)
    strong = [c for c in candidates if c.structure == 4 and not c.column.is_called_a_test()]
    for candidate in candidates:
        inside = candidate.is_yes() | (candidate.looked & (not candidate.looked.all()))
        for other in strong:
            if other is candidate or not inside.any() or (inside & ~other.is_yes()).any():
                continue
            if (other.is_yes() != candidate.is_yes()).any():
                candidate.details = 2
    return sorted(candidates, key=lambda c: -c.score)


def is_clear(ranked: Sequence[Candidate]) -> bool:
    """True if the first candidate is good enough, and far enough ahead of the second."""
    return bool(ranked) and (
        ranked[0].evidence >= SURE
        and (len(ranked) == 1 or ranked[0].score - ranked[1].score >= CLOSE)
    )


def _value_where_not(column: NamedColumn, yes_no: Sequence[NamedColumn]) -> Sequence[str]:
    """The value that stands exactly where a decision says no, in whatever language, if there is."""
    if len(column.text.values) < 3 or column.is_yes_no():
        return ()
    for decision in yes_no:
        if decision.missing or not TESTED.search(decision.words):
            continue
        off = ~decision.says_yes()
        for code, value in enumerate(column.text.values):
            if np.mean((column.text.codes == code) == off) >= ENOUGH:
                return (value,)
    return ()


def _as_label(column: NamedColumn, in_place: Sequence[str], *, given: bool) -> Candidate | None:
    """The column as a label, if its values may be results; some may stand for no test."""
    no_result = outcome.without_result(column.text.values)
    untested = tuple(v for v in column.text.values if v in in_place or v in no_result)
    results = [v for v in column.text.values if v not in untested]
    candidate = Candidate(column, (), untested, column.text.among(results))
    named = bool(LABEL.search(column.words) or RESULT.search(column.words))
    plain = values.yes_or_no(results)
    is_code = values.all_numbers(results)
    if plain is not None:
        is_mark = plain.all() and column.missing and named
        if len(set(plain)) == 2 and not is_code:
            _ask_unaccounted(candidate, [*compress(results, plain == 1)], results)
        return candidate if len(set(plain)) == 2 or is_mark or given else None
    meanings = {value: "" if is_code else outcome.meaning_of(value) for value in results}
    yes = tuple(v for v in results if meanings[v] == "yes")
    no = tuple(v for v in results if meanings[v] == "no")
    if len(results) == 2 and len(yes) + len(no) == 1:  # one of two tells the other
        yes = yes or tuple(v for v in results if v not in no)
        no = tuple(v for v in results if v not in yes)
    if not yes and (named or given) and len(results) > 2:
        yes = _with_counterpart(results)
    if 0 < len(yes) < len(results) <= FEW_VALUES:
        candidate.positive = yes
        candidate.unclear = tuple(v for v in results if v not in (*yes, *no))
        _ask_unaccounted(candidate, yes, results)
        if not candidate.unclear and values.yes_no([*yes, *no]).tolist() != [1, 0]:
            candidate.meaning = (
                f"{quoted(yes)} in {column.name!r} {'counts' if len(yes) == 1 else 'count'} as "
                f"yes, {quoted(no)} as no."
            )
        return candidate
    gaps = 1 - candidate.looked.mean() >= GAPS
    if len(results) == 2 and (named or in_place or gaps or given or is_code):
        candidate.unclear = tuple(results)
        candidate.positive = (min(results, key=lambda v: int(column.text.among([v]).sum())),)
        return candidate
    if given and len(results) <= FEW_VALUES:
        candidate.unclear = tuple(results)
    return candidate if given else None


def _ask_unaccounted(candidate: Candidate, yes: Sequence[str], results: Sequence[str]) -> None:
    """Every word is open beside the positive ones and their counterpart."""
    others = [value for value in results if value not in yes]
    if open_words := outcome.unaccounted(yes, others):
        candidate.positive, candidate.unclear = tuple(yes), tuple(open_words)


def _with_counterpart(results: Sequence[str]) -> tuple[str, ...]:
    """The one value that is yes because another one plainly is its no; it may be 1."""
    codes = outcome.codes_of_missing(results)
    words = [value for value in results if value not in codes]
    found = [v for v in words if outcome.counterpart_of(v, [w for w in words if w != v])]
    if len(found) == 2:  # each is the other with a negation
        found = [v for v in found if outcome.meaning_of(v) != "no"]
    return tuple(found) if len(found) == 1 else ()


def _rate(
    candidate: Candidate,
    yes_no: Sequence[NamedColumn],
    seen: Sequence[NamedColumn],
    chance: dict[bytes, bool],
) -> None:
    """Find the column, or two of them, that say where this label was looked for; rate it by that.

    `chance` keeps which gaps are accidents.
    """
    complete = [c for c in yes_no if c.missing == 0]
    looked, named = candidate.looked, [c for c in complete if c.is_called_a_test()]
    if looked.mean() < ENOUGH:
        others = [c for c in complete if c not in named]
        likely: list[tuple[NamedColumn, ...]] = [(c,) for c in (*named, *others)]
        likely += combinations(named, 2)
        fitting = [some for some in likely if np.mean(any_yes(some) == looked) >= ENOUGH]
        fitting.sort(key=lambda some: not (any_yes(some) == looked).all())
        if fitting:
            candidate.tested = fitting[0]
            candidate.structure = 4
            _mention_slips(candidate)
        elif waited := _mention_waiting(candidate, complete):
            candidate.structure = waited
        elif looked.mean() <= 1 - GAPS:
            key = looked.tobytes()
            if key not in chance:
                chance[key] = not _depends(looked, [c for c in seen if c is not candidate.column])
            plain = candidate.untested and not candidate.unclear
            is_test = plain or candidate.column.has_results()
            candidate.structure = 2 if chance[key] and not is_test else 3
    elif strong := [d for d in candidate.decisions if d.expected >= EXPECTED]:
        best = strong[0]
        pair = 4 if best.is_called_a_test else 3
        weaker = best.may_follow + bool(best.positives)
        candidate.structure = max((pair if best.usable else 2) - weaker, 1)


def _depends(looked: np.ndarray, others: Sequence[NamedColumn]) -> bool:
    """True if a complete column predicts who has a result, beyond chance."""
    rate = looked.mean()
    for column in [c for c in others if c.missing == 0][:MOST_COMPARED]:
        rows = np.bincount(column.cells, minlength=1)
        hits = np.bincount(column.cells, looked, minlength=1)
        used = rows >= 20
        if column.text.values and used.sum() > 1 and len(rows) <= MOST_LEVELS + 2:
            off = ((hits - rows * rate)[used] ** 2 / (rows[used] * rate * (1 - rate))).sum()
            df = used.sum()
            if off > df + 6 * np.sqrt(2 * df) + 10:
                return True
    return False


def _find_decisions(candidates: Sequence[Candidate], seen: Sequence[NamedColumn]) -> None:
    """For each label, the columns under one of whose values it is never positive, best first.

    By chance that happens where hardly any positives would be expected; so ten or more are asked
    for, or three of a column that is called like a test.
    """
    readings = [(c, c.is_yes()) for c in candidates]
    for c in candidates:  # of two codes, either may mean yes
        is_pair = len(c.unclear) == 2 and {*c.positive} < {*c.unclear}
        swapped = [v for v in c.unclear if v not in c.positive] if is_pair else []
        readings += [(c, c.column.text.among(swapped))] if swapped else []
    if not readings:
        return
    yes = np.array([is_yes for _, is_yes in readings], np.float32)
    known = np.array([c.looked for c, _ in readings], np.float32)
    positives, results = yes.sum(axis=1), known.sum(axis=1)
    alone = [(c,) for c in seen if not c.is_sensitive()]
    named = [c for c in seen if c.is_called_a_test() and c.is_yes_no() and c.missing == 0]
    for columns in (*alone, *combinations(named, 2)):
        for off, when, usable in _sides(columns):
            hits, rows = yes @ off.astype(np.float32), known @ off.astype(np.float32)
            expected = rows * positives / np.maximum(results, 1)
            share = (positives - hits) / np.maximum(results - rows, 1)
            slips = SLIPS * expected * (usable & (expected >= EXPECTED / SLIPS / 2))
            least = WEAK if columns[0].is_called_a_test() else EXPECTED
            for i in np.flatnonzero((hits <= slips) & (expected >= least) & (share < 1)):
                candidate, is_yes = readings[i]
                others = candidate.decisions
                if candidate.column in columns or any({*d.columns} <= {*columns} for d in others):
                    continue
                if others and (candidate.is_yes() != is_yes).any():  # the other code means yes
                    continue
                if i >= len(candidates):
                    text = candidate.column.text
                    candidate.positive = (text.values[text.codes[is_yes][0]],)
                counts = int(rows[i]), int(hits[i]), float(expected[i]), float(share[i])
                candidate.decisions += (Decision(columns, off, *counts, when, usable),)
    for candidate in candidates:
        candidate.decisions = tuple(sorted(candidate.decisions, key=lambda d: d.rank))


def _sides(columns: Sequence[NamedColumn]) -> Iterator[tuple[np.ndarray, str, bool]]:
    """Rows [n] where columns may say no, the words for it, and whether that is plain."""
    column = columns[0]
    if len(columns) > 1:
        yield ~any_yes(columns), "says no", True
    elif column.is_yes_no():
        plain = column.missing == 0
        yield ~column.says_yes(), "says no" if plain else "says no or is empty", plain
        if plain:
            yield column.says_yes(), "says yes", False  # turned round: `lost`, `not_seen`
    elif len(column.text.values) <= FEW_LEVELS and column.missing == 0:
        for code, value in enumerate(column.text.values):
            said = outcome.decided([value])
            if len(column.text.values) == 2 or (said is not None and not said[0]):
                yield column.text.codes == code, f"is {value!r}", False
    elif GAPS <= column.missing < 1:
        yield ~column.known, "is empty", False


def _mention_slips(candidate: Candidate) -> None:
    """A decision and a label that disagree in some rows cannot both be taken as they are."""
    slips = int((any_yes(candidate.tested) != candidate.looked).sum())
    if slips:
        candidate.doubts.append(
            f"{_either(candidate)} and {candidate.column.name!r} disagree about who was tested in "
            f"{counted(slips, 'row')}, so only the label is used. Correct these rows if the column "
            "should be used as `tested`."
        )
        candidate.tested = ()


def _mention_waiting(candidate: Candidate, yes_no: Sequence[NamedColumn]) -> int:
    """A decision that says yes wherever there is a result, and in some more: how much it adds."""
    looked = candidate.looked
    for column in yes_no:
        name, said = column.name, column.says_yes()
        waiting, fewer = int((said & ~looked).sum()), min(said.sum(), (~said).sum())
        if looked.any() and said[looked].mean() >= ENOUGH and 0 < waiting <= WAITING * fewer:
            candidate.waiting = (
                name,
                f"{name!r} says yes in {counted(waiting, 'row')} without a result in "
                f"{candidate.column.name!r}; they count as untested. If their results are still to "
                "come, leave the latest rows out (`time`, `until`); where that leaves no such row, "
                f"name {name!r} as `tested`.",
            )
            return 4 if TESTED.search(column.words) else 3
    return 0


def any_yes(columns: Sequence[NamedColumn]) -> np.ndarray:
    """Rows [n] in which at least one of some yes-or-no columns says yes."""
    return np.any([c.says_yes() for c in columns], axis=0)


def _either(candidate: Candidate) -> str:
    return " or ".join(repr(c.name) for c in candidate.tested)


def why_tested(best: Candidate) -> str:
    """The sentence that goes with every column of `best.tested`."""
    label, rows = repr(best.column.name), f"{percent(any_yes(best.tested).mean())} of the rows"
    says = _either(best) if len(best.tested) > 1 else "It"
    return f"{says} says yes exactly where {label} has a result: {rows}."


def group_candidates(seen: Sequence[NamedColumn]) -> list[NamedColumn]:
    """Columns without a telling name that may hold a group: complete, with few levels, in order.

    Levels are text other than yes and no, or codes from 1 on: counts begin with 0.
    """
    return [c for c in seen if _may_be_group(c)]


def _may_be_group(column: NamedColumn) -> bool:
    levels = column.text.values
    other = (MEASURE, ROW, PERSON, DECIDER, PLACE, TESTED, RESULT, LABEL, AFTER, PERHAPS_AFTER)
    if not 2 <= len(levels) <= FEW_LEVELS or column.missing > 0.02 or column.is_yes_no():
        return False
    if column.has_results() or any(pattern.search(column.words) for pattern in other):
        return False
    sizes = values.parsed(levels)
    meanings = {outcome.meaning_of(value) for value in levels}
    decides = [value for value in levels if values.word(value) in outcome.DECIDED]
    if np.isnan(sizes).any() and (decides or meanings >= {"yes", "no"}):
        return False
    is_code = not np.isnan(sizes).any() and (sizes % 1 == 0).all() and sizes.min() >= 1
    enough = column.text.counts().min() >= max(10, 0.01 * len(column.text.codes))
    return bool(enough and (is_code or np.isnan(sizes).all()))


def is_measured(column: NamedColumn) -> bool:
    """True of numbers with so many levels that a group needs bands: ages, not codes."""
    bands = re.search(r"band|cat|bracket|class|group|gruppe|klasse", column.words)
    return (
        len(column.text.values) > FEW_LEVELS
        and not bands
        and values.all_numbers(column.text.values)
    )
