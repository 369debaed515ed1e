"""The words of a field: who decides whom to look at is told differently in a bank and in a ward.

Reports are written in general words (tested, untested, the outcome). This is the one table that
puts them into those of a field, in every writer and inside the figures. Names of methods and what
users named themselves stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from dcem.estimation.findings import SEVERITIES, by_severity
from dcem.methods.registry import names as method_names
from dcem.report.document import Document
from dcem.table.messages import require_one_of

_BORNE = " at random, if the loss can be borne"
_NOBODY = "search nobody for the sake of a number"

# General word or phrase -> the field's. Longer phrases are tried before their words.
FIELDS: Mapping[str, Mapping[str, str]] = {
    "general": {},
    "medicine": {"people": "patients", "person": "patient", "the outcome": "the condition"},
    "credit": {
        "people": "applicants",
        "person": "applicant",
        "tested": "approved",
        "untested": "declined",
        "testing": "approval",
        "to test": "to approve",
        "test": "approval",
        "tests": "approvals",
        "what a test would show": "whether a loan would default",
        "what tests show": "which loans default",
        "what a test shows": "which loans default",
        "send people to a test": "have applicants approved",
        "what share of cases the test finds": "what share of the defaults is recorded",
        "a test that finds less in group": "a record that misses more in group",
        "the test found": "the record held",
        "how much a test misses": "how much a record misses",
        "errors of the test": "errors of the record",
        "corrected for the test": "corrected for what the record misses",
        "the test errs": "the record errs",
        "the test gives": "the record gives",
        "the test has these rates": "the record has these rates",
        "known of the test": "known of the record",
        "test sensitivity": "sensitivity of the record",
        "a test errs": "the record errs",
        "test results are the truth": "recorded outcomes are the truth",
        "a negative result": "repaid",
        "nobody tested, or that": "nobody was approved, or that",
        "positive or negative such tests": "such defaults or repaid loans",
        "positive or negative tests": "defaults or repaid loans",
        "imperfect test": "imperfect record",
        "imperfect tests": "imperfect records",
        "tests are sometimes wrong": "recorded outcomes are sometimes wrong",
        "of the tests show the opposite": "of the recorded outcomes are the opposite",
        "tests are positive": "loans default",
        "tests of group": "loans to group",
        "are positive more often": "default more often",
        "are positive less often": "default less often",
        "tested positive": "seen to default",
        "tested positive, or negative": "seen to default, or to repay",
        "all untested negative or all positive": "all declined would repay, or all default",
        "a single outcome": "a single loan whose end is known",
        "positive tests": "defaults",
        "positive of tested": "defaulted of approved",
        "positive, of the tested": "defaulted, of the approved",
        "are negative": "repaid",
        "the untested are negative": "the declined would repay",
        "tested negatives": "repaid loans",
        "negative": "repaid",
        "negatives": "repaid loans",
        "positive": "in default",
        "positives": "defaults",
        "a positive": "a default",
        "every positive": "every default",
        "have the outcome": "default",
        "with the outcome": "who default",
        "to do with the outcome": "to do with default",
        "one with the outcome and one without": "one who defaults and one who repays",
        "the outcome": "default",
        "outcome": "default",
        "outcomes": "defaults",
        # An approval is a benefit, and given to those who seem the least likely to default: fewer
        # approvals and *fewer* defaults tell of a higher bar, not fewer and more.
        "and whether tests help these people or burden them": "and whether others are declined "
        "too often",
        "the signs point to a higher bar for": "those who decide may know of a risk that no column "
        "shows, in",
        "both signs point to a higher bar for": "those who decide may know of a risk that no "
        "column shows, in",
        "the signs point to a lower bar for": "those who decide may know of a strength that no "
        "column shows, in",
        "both signs point to a lower bar for": "those who decide may know of a strength that no "
        "column shows, in",
        "review the rule: at equal risk these people are tested too little or others too much": (
            "ask what those who decide know; by itself this is not a sign of a higher bar"
        ),
        "review the rule: these people bear tests that find less": "ask what those who decide "
        "know; by itself this is not a sign of a lower bar",
        "read it together with who is tested at equal features": "read it together with who "
        "is approved at equal features: fewer approvals and fewer defaults together point to a "
        "higher bar",
        "or test some people at random": f"or approve some applicants{_BORNE}",
        "or test some of them": f"or approve some of them{_BORNE}",
        "or test more of them": f"or approve more of them{_BORNE}",
        "or test some": f"or approve some{_BORNE}",
        "test more of its people": f"approve more of its applicants{_BORNE}",
        "or test people out of reach": f"or approve some out of reach{_BORNE}",
        "test some of those out of reach": f"approve some of those out of reach{_BORNE}",
        "test people who are seldom tested": f"approve some who are seldom approved{_BORNE}",
        "collect more tests": "wait for more approvals",
    },
    "policing": {
        "tested": "searched",
        "untested": "unsearched",
        "testing": "searching",
        "test": "search",
        "tests": "searches",
        "testing probability": "search probability",
        "tests are positive": "searches find something",
        "send people to a test": "have people searched",
        "are positive more often": "find something more often",
        "are positive less often": "find something less often",
        "are positive more or less often": "find something more or less often",
        "tested positive": "found with something",
        "tested positive, or negative": "found with something, or with nothing",
        "positive or negative such tests": "such searches that found something, or nothing",
        "positive or negative tests": "searches that found something, or nothing,",
        "tested less and positive more often": "searched less and found with something more often",
        "tested more and positive less often": "searched more and found with something less often",
        "all untested negative or all positive": "all unsearched carry nothing, or all something",
        "a single outcome": "the result of a single search",
        "positive tests": "finds",
        "positive of tested": "found, of searched",
        "positive, of the tested": "found, of the searched",
        "are negative": "carry nothing",
        "as negative": "as carrying nothing",
        "tested negatives": "searches without a find",
        "tested and negative": "searched and found with nothing",
        "found negative": "found with nothing",
        "does not find negative": "does not clear",
        "are positive": "carry something",
        "is positive": "carries something",
        "is positive and tested": "is searched and found with something",
        "found positive": "found with something",
        "found positives": "finds",
        "of people positive": "of people with something",
        "what any decider finds positive": "what any decider finds",
        "a positive": "somebody with contraband",
        "every positive": "everybody with contraband",
        "positives": "finds",
        "negatives": "searches without a find",
        "have the outcome": "carry contraband",
        "the outcome": "contraband",
        "outcome": "contraband",
        "outcomes": "finds",
        # A search is a burden: to be searched more is the harm, and no estimate is worth a search.
        "the rule has to change": "others are searched too much, and the rule has to change",
        "and whether tests help these people or burden them": "for these people bear searches that "
        "others are spared; if nothing does, the rule has to change",
        "at equal risk these people are tested too little or others too much": "at equal risk "
        "others are searched too much",
        "or test some people at random": f"and {_NOBODY}",
        "or test some of them": f"and {_NOBODY}",
        "or test more of them": f"and {_NOBODY}",
        "or test some": f"and {_NOBODY}",
        "test more of its people": f"decide for its people as for others, and {_NOBODY}",
        "or test people out of reach": f"and {_NOBODY}",
        "test some of those out of reach": _NOBODY,
        "test people who are seldom tested": _NOBODY,
        "collect more tests": "wait for more records",
        "more tests would tell how common the outcome is, to within": (
            "how common contraband is, is not known to within"
        ),
        "at random among the people of the group": "so many more searches at random would tell, "
        "and none is worth it",
        "only tests drawn at random within the group would give a better estimate; until then, "
        "report the interval": f"report the interval, and {_NOBODY}",
    },
}
# Findings that are a serious matter in general words, and by themselves not in those of a field: an
# approval is a benefit, so fewer of them and more defaults do not tell of a higher bar.
BY_THEMSELVES_NOTES: Mapping[str, frozenset[str]] = {
    "credit": frozenset({"higher-bar", "lower-bar"}),
}
# What a list of whom to test next must say where a test is a burden: an audit in the same words
# advises against tests that serve an estimate.
BESIDE_A_LIST: Mapping[str, str] = {
    "policing": f"To be on this list is no ground for a search: {_NOBODY}.",
}
# Names of labels that a search of a person has, and the words that suit no other label.
FOUND_ON_PEOPLE = re.compile(r"(?i)contraband|drug|weapon|gun|knife|found|hit|seiz")
OF_A_FIND = re.compile(r"contraband|carry|carries|something|nothing|\bfinds?\b|found")
# No field's word is in them.
SAYINGS = (
    "put to the test",
    "true positive",
    "false positive",
    "true positives",
    "false positives",
)


def in_field_words(document: Document, field: str = "general") -> Document:
    """The document in the words of a field."""
    milder = BY_THEMSELVES_NOTES.get(field, frozenset())
    label = dict(document.data.get("made") or {}).get("label", "")
    return _milder(document, milder).in_words(speak(field, document.names, label))


def _milder(document: Document, keys: frozenset[str]) -> Document:
    """With findings of these keys as notes, and an answer no more serious than the worst left."""
    found, opening = document.findings, document.opening
    if found is None or not keys & {item.key for item in found.items}:
        return document
    items = by_severity(
        replace(item, severity="note") if item.key in keys else item for item in found.items
    )
    if opening is not None:
        verdict, first = opening.verdict, items[0]
        severity = max(verdict.severity, first.severity, key=SEVERITIES.index)
        worst = first if verdict.worst and first.severity != severity else None
        opening = replace(opening, verdict=replace(verdict, severity=severity, worst=worst))
    return replace(document, findings=replace(found, items=items), opening=opening)


def speak(field: str, names: Collection[str] = (), label: str = "") -> Callable[[str], str]:
    """A function that puts a sentence into the words of a field, and leaves names alone.

    These are the `names`, those of methods, and what stands in backticks or quotes. Where `label`,
    the name of the outcome, is not about what is found on people, nothing is said to be found.
    """
    require_one_of("words", field, FIELDS)
    words = FIELDS[field]
    if field == "policing" and label and not FOUND_ON_PEOPLE.search(label):
        words = {word: said for word, said in words.items() if not OF_A_FIND.search(said)}
    if not words:
        return str
    longest = partial(sorted, key=len, reverse=True)
    phrases = "|".join(map(re.escape, longest([*words, *SAYINGS])))
    # of the names, those that would be reworded: one that is called a must not hide an article
    every = longest([*names, *method_names()])
    spoken = [name for name in every if re.search(rf"\b(?i:{phrases})\b", name)]
    kept = [r"`[^`]*`", r"(?<!\w)'[^']*'(?!\w)"]
    kept += [rf"(?<!\w){re.escape(name)}(?!\w)" for name in spoken]
    pattern = re.compile(
        rf"(?P<kept>{'|'.join(kept)})|\b(?i:{phrases})\b"
        rf"|(?<!group )\b(?P<article>[Aa])n? (?P<noun>(?i:{phrases}))\b"
    )

    def reword(found: re.Match[str]) -> str:
        said = found["noun"] or found[0]
        if found["kept"] or said.lower() in SAYINGS:
            return found[0]
        word = words[said.lower()]
        if found["article"]:  # a person, an applicant
            return found["article"] + "n" * (word[0] in "aeiou") + " " + word
        return word[0].upper() + word[1:] if said[0].isupper() else word

    return lambda text: pattern.sub(reword, text)
