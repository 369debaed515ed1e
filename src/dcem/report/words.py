"""The words of a field: who decides whom to look at is told differently in a bank and in a ward.

Reports are written in general words (tested, untested, the outcome). This is the one table that
puts them into those of a field, in every writer and inside the figures. Names of methods and what
users named themselves stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from dcem.report.document import Document
from dcem.table.checks import InputError

# General word or phrase -> the field's. Longer phrases are tried before their words.
FIELDS: Mapping[str, Mapping[str, str]] = {
    "general": {},
    "medicine": {
        "people": "patients",
        "person": "patient",
        "person's": "patient's",
        "have the outcome": "have the condition",
        "with the outcome": "with the condition",
        "the outcome": "the condition",
        "outcomes": "outcomes",
    },
    "credit": {
        "people": "applicants",
        "person": "applicant",
        "person's": "applicant's",
        "tested": "approved",
        "untested": "declined",
        "testing": "approval",
        "to test": "to approve",
        "a test": "an approval",
        "test": "approval",
        "tests": "approvals",
        "tests are positive": "loans default",
        "positive tests": "defaults",
        "positive of tested": "defaulted of approved",
        "positive, of the tested": "defaulted, of the approved",
        "count as negative": "count as repaid",
        "counting the untested as negative": "counting the declined as repaid",
        "recorded as negative": "recorded as repaid",
        "are negative": "repaid",
        "positive": "in default",
        "positives": "defaults",
        "have the outcome": "default",
        "with the outcome": "who default",
        "the outcome": "default",
        "outcome": "default",
        "outcomes": "defaults",
    },
    "policing": {
        "tested": "searched",
        "untested": "unsearched",
        "testing": "searching",
        "to test": "to search",
        "test": "search",
        "tests": "searches",
        "tests are positive": "searches find something",
        "positive tests": "finds",
        "positive of tested": "found, of searched",
        "positive, of the tested": "found, of the searched",
        "count as negative": "count as carrying nothing",
        "counting the untested as negative": "counting the unsearched as carrying nothing",
        "recorded as negative": "recorded as carrying nothing",
        "are negative": "carry nothing",
        "positives": "finds",
        "have the outcome": "carry contraband",
        "with the outcome": "with contraband",
        "the outcome": "contraband",
        "outcome": "contraband",
        "outcomes": "finds",
    },
}
SAYINGS = ("put to the test",)  # no field's word is in them


def in_words(document: Document, field: str = "general") -> Document:
    """The document in the words of a field."""
    return document.in_words(speak(field, document.names))


def speak(field: str, names: Collection[str] = ()) -> Callable[[str], str]:
    """A function that puts a sentence into the words of a field, and leaves names alone."""
    if field not in FIELDS:
        raise InputError(f"No words are known for {field!r}. Choose among: {', '.join(FIELDS)}.")
    words = FIELDS[field]
    if not words:
        return str
    kept = [r"`[^`]*`", *(rf"(?<!\w){re.escape(name)}(?!\w)" for name in _longest(names) if name)]
    phrases = "|".join(map(re.escape, _longest([*words, *SAYINGS])))
    pattern = re.compile(rf"(?P<kept>{'|'.join(kept)})|\b(?i:{phrases})\b")

    def reword(found: re.Match[str]) -> str:
        said = found[0]
        if found["kept"] or said.lower() in SAYINGS:
            return said
        word = words[said.lower()]
        return word[0].upper() + word[1:] if said[0].isupper() else word

    return lambda text: pattern.sub(reword, text)


def _longest(words: Collection[str]) -> list[str]:
    return sorted(words, key=len, reverse=True)
