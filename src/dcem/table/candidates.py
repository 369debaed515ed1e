"""Which column may be the label, and which says who was tested: each is known by the other.

What the names of columns suggest are patterns, and nothing that decides: they are weighed against
what the values say. Names are compared as `normalised` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, compress

import numpy as np
import pyarrow as pa

from dcem.table import outcome, values
from dcem.table.messages import quoted
from dcem.text import counted, percent

FEW_VALUES = 12  # distinct values of a label
ENOUGH = 0.99  # of the rows agree: the rest are slips
WAITING = 0.2  # of those decided on, at most, whose results may still be to come
LABEL = re.compile(
    r"(^|_)(y|y_obs|label|labels|outcome|target|class|response|event|result)(_|$)|result$"
    r"|(befund|ergebnis|résultat|resultado|risultato)(_|$)"
)
RESULT = re.compile(
    r"diagnos|positiv|(^|_)(found|hit|weapon|contraband|default(ed)?|fraud|bad|repaid|died|death"
    r"|sepsis|cancer|diabetes|disease|infect(ed|ion)|malignan\w*|recid\w*|relaps\w*|readmi\w*"
    r"|diagnose|nachweis|treffer|sichergestellt|ausfall|gefunden"
    r"|charge_?off|charged_off|loan_status|delinquen\w*|violation|violates|diseased|ill|sick|truth"
    r"|substantiated|convicted|guilty|offer|offered|hired)(_|$)"
)
TESTED = re.compile(
    r"(^|_)(tested|screened|searched|search|search_conducted|frisked|approved|accepted|granted"
    r"|funded|lent|measured|ordered|biopsied|biopsy|cultured|culture|labell?ed|examined|inspected"
    r"|audited|investigated|reviewed|interviewed|assessed|checked|released|referred|imaged|scanned|swabbed|test_done|testing|test"
    r"|getestet|angefordert|untersucht|gemessen|durchsucht|durchgeführt|genehmigt)(_|$)"
)
SENSITIVE = {  # in this order
    "race or ethnicity": re.compile(r"(^|_)(race|races|ethni\w*|raceeth\w*|ridreth\d|hispanic)"),
    "sex or gender": re.compile(
        r"(^|_)(sex|gender|riagendr|geschlecht|sexe|sexo|sesso|género|geslacht)(_|$)"
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
BAD = re.compile(
    r"^>|high|abnormal|elevated|positiv|reactive|detected|found|default|charged off|charge-off"
    r"|late|bad|dead|died|deceased|malignant|fail|yes|hit|recid|erhöht|auffällig|pathologisch"
)
OF_A_TEST = re.compile(r"^(pos|neg)$|positiv|negativ|reactive|detected|malign|benign|nachgewiesen")
GOOD = re.compile(r"^no|non-?reactive|not detected|^un|fully paid|current|good|benign|pass|alive")
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


@dataclass(frozen=True)
class NamedColumn:
    """A column, its name in words, its values, and the share of rows that have none."""

    name: str
    words: str
    text: values.Coded
    missing: float

    @classmethod
    def of(cls, name: str, column: pa.ChunkedArray, missing: Sequence[str]) -> NamedColumn:
        """A column of a table; what cannot be read counts as missing."""
        text = values.Coded(np.full(len(column), -1), ())
        if values.is_known(column):
            text = values.coded(column, missing)
        return cls(name, normalised(name), text, float((text.codes < 0).mean()))

    @property
    def known(self) -> np.ndarray:
        """Rows [n] that have a value."""
        return self.text.codes >= 0

    def is_yes_no(self) -> bool:
        """Whether its values say yes and no, in whatever spelling, and nothing else."""
        said = outcome.decided(self.text.values)
        return said is not None and len(set(said)) == 2

    def says_yes(self) -> np.ndarray:
        """Rows [n] of a yes-or-no column that say yes."""
        return self.text.take(np.asarray(outcome.decided(self.text.values)) == 1, False)

    def has_results(self) -> bool:
        """Whether its values are those of a test, whatever it is called."""
        return sum(bool(OF_A_TEST.search(value.casefold())) for value in self.text.values) > 1

    def is_sensitive(self) -> bool:
        """Whether it is named like a group of people."""
        return any(pattern.search(self.words) for pattern in SENSITIVE.values())


@dataclass
class Candidate:
    """A column that may be the label."""

    column: NamedColumn
    score: float
    positive: tuple[str, ...]
    untested: tuple[str, ...]
    looked: np.ndarray  # [n] whether it holds a result
    whys: list[str]
    doubts: list[str] = field(default_factory=list)
    why_positive: str = ""
    tested: tuple[NamedColumn, ...] = ()
    waiting: tuple[str, ...] = ()  # a decision some of whose results are to come, and a doubt

    def is_one_value(self) -> bool:
        """Whether it marks those who were found positive, and nobody else."""
        said = values.yes_or_no(self.column.text.values)
        return said is not None and bool(said.all())


def label_candidates(
    seen: Sequence[NamedColumn], label: str | None = None, untested: Sequence[str] = ()
) -> Iterator[Candidate]:
    """Columns with few values that may be the label, rated by name, gaps and testing.

    A `label` that is given is the only one, whatever it looks like; `untested` are its values that
    are given to mean so.
    """
    yes_no = [c for c in seen if c.is_yes_no()]
    for column in seen if label is None else [c for c in seen if c.name == label]:
        least = 0 if column.missing > 0 else 1  # a mark and blanks, or several values
        likely = least < len(column.text.values) <= FEW_VALUES and not column.is_sensitive()
        if label is None and not likely:
            continue
        in_place = untested or _value_where_not(column, yes_no)
        found = _as_label(column, in_place, given=label is not None)
        if found is None:
            continue
        decision = TESTED.search(column.words) and not RESULT.search(column.words)
        if decision and not column.has_results():
            found.score -= 2  # the decision rather than its result, unless it has gaps
        _pair(found, [c for c in yes_no if c.name != column.name])
        yield found


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
    """The column as a label, rated by its name and its values; some may stand for no test."""
    no_result = outcome.without_result(column.text.values)
    untested = tuple(v for v in column.text.values if v in in_place or v in no_result)
    results = [v for v in column.text.values if v not in untested]
    looked = column.text.among(results)
    score, whys = 0.0, []
    if LABEL.search(column.words):
        score, whys = 3.0, ["The name suggests an outcome"]
    elif RESULT.search(column.words):
        score, whys = 2.0, ["The name suggests a result"]
    doubts: list[str] = []
    positive: tuple[str, ...] = ()
    why_positive = ""
    said = values.yes_or_no(results)
    if said is None:
        bad = [v for v in results if BAD.search(v.casefold()) and not GOOD.search(v.casefold())]
        if 0 < len(bad) < len(results) <= FEW_VALUES:
            positive, why_positive = tuple(bad), "It sounds like a positive result."
            rest = [v for v in results if v not in bad]
            doubts.append(
                f"{quoted(bad)} in {column.name!r} {'counts' if len(bad) == 1 else 'count'} as "
                f"yes, {quoted(rest)} as no."
            )
        elif (score or in_place) and len(results) == 2:
            counts = dict(zip(column.text.values, column.text.counts(), strict=True))
            positive = (min(results, key=lambda v: counts[v]),)
            why_positive = "It is the rarer of two results; which one means yes is unclear."
            doubts.append(
                f"It is unclear which of {quoted(results)} in {column.name!r} means yes; "
                f"{positive[0]!r} was chosen because it is rarer."
            )
        elif not given:
            return None
    elif len(set(said)) != 2 and not (score and said.all() and column.missing) and not given:
        return None
    empty = 1 - float(looked.mean())
    if 0.01 < empty < 1:
        if column.has_results():
            score, whys = score + 2, whys or ["The values are those of a test"]
        score += 1 + bool(untested) + empty  # of two, the one that fewer have
        whys.append(f"no result in {percent(empty)} of the rows")
    if score:
        whys.append(f"values {quoted(results)}")
    return Candidate(column, score, positive, untested, looked, whys, doubts, why_positive)


def _pair(candidate: Candidate, yes_no: Sequence[NamedColumn]) -> None:
    """Find the column, or two of them, that say where this label was looked for."""
    complete = [c for c in yes_no if c.missing == 0]
    named = [c for c in complete if TESTED.search(c.words)]
    if candidate.looked.mean() < ENOUGH:
        others = [c for c in complete if c not in named]
        likely: list[tuple[NamedColumn, ...]] = [(c,) for c in (*named, *others)]
        likely += combinations(named, 2)
        fitting = (some for some in likely if np.mean(any_yes(some) == candidate.looked) >= ENOUGH)
        candidate.tested = next(fitting, ())
        if candidate.tested:
            candidate.score += 4 if candidate.tested[0] in named else 2
            _mention_slips(candidate)
        else:
            candidate.score += _mention_waiting(candidate, complete)
        return
    text = candidate.column.text
    yes = candidate.positive or [*compress(text.values, values.yes_no(text.values) == 1)]
    positive = text.among(yes)
    for c in named:  # zeros may stand for "nobody looked"
        off = ~c.says_yes()
        if off.sum() >= 20 and not positive[off].any() and positive[~off].mean() > 0.01:
            candidate.tested = (c,)
            candidate.score += 4
            return


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


def _mention_waiting(candidate: Candidate, yes_no: Sequence[NamedColumn]) -> float:
    """A decision that says yes wherever there is a result, and in some rows more: what it adds."""
    looked = candidate.looked
    for column in yes_no:
        name, said = column.name, column.says_yes()
        waiting, fewer = int((said & ~looked).sum()), min(said.sum(), (~said).sum())
        if said[looked].mean() >= ENOUGH and 0 < waiting <= WAITING * fewer:
            candidate.waiting = (
                name,
                f"{name!r} says yes in {counted(waiting, 'row')} without a result in "
                f"{candidate.column.name!r}; they count as untested. If their results are still to "
                "come, leave the latest rows out (`time`, `until`); where that leaves no such row, "
                f"name {name!r} as `tested`.",
            )
            return 3.0 if TESTED.search(column.words) else 1.0
    return 0.0


def any_yes(columns: Sequence[NamedColumn]) -> np.ndarray:
    """Rows [n] in which at least one of some yes-or-no columns says yes."""
    return np.any([c.says_yes() for c in columns], axis=0)


def _either(candidate: Candidate) -> str:
    return " or ".join(repr(c.name) for c in candidate.tested)


def why_tested(best: Candidate) -> str:
    """The sentence that goes with every column of `best.tested`."""
    label, rows = repr(best.column.name), f"{percent(any_yes(best.tested).mean())} of the rows"
    if best.looked.mean() >= ENOUGH:
        return f"It says yes in {rows}; where it says no, {label} is never yes."
    says = _either(best) if len(best.tested) > 1 else "It"
    return f"{says} says yes exactly where {label} has a result: {rows}."
