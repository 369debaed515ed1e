import re
from dataclasses import replace
from pathlib import Path

import pytest
from made_up import made_up_comparison

import dcem
from dcem.audit.remedies import TO_DO
from dcem.compare.findings import KEYS
from dcem.estimation.findings import Finding
from dcem.report.compare import compare_document
from dcem.report.document import Document, Findings, Opening, Verdict
from dcem.report.shared import OF_SEVERAL_GROUPS
from dcem.report.to_html import to_html
from dcem.report.to_markdown import to_markdown
from dcem.report.words import FIELDS, in_field_words, speak
from dcem.table.messages import InputError

pytestmark = pytest.mark.usefixtures("linear_models")


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("general", "Tested and untested people differ: the decision to test."),
        ("medicine", "Tested and untested patients differ: the decision to test."),
        ("credit", "Approved and declined applicants differ: the decision to approve."),
        ("policing", "Searched and unsearched people differ: the decision to search."),
    ],
)
def test_one_sentence_in_the_words_of_every_field(field, said) -> None:
    assert speak(field)("Tested and untested people differ: the decision to test.") == said


def test_longer_phrases_come_before_their_words() -> None:
    say = speak("credit")
    assert say("tests are positive") == "loans default"
    assert say("Tests are sometimes wrong") == "Recorded outcomes are sometimes wrong"
    assert say("They have the outcome; had a chance of a test.") == (
        "They default; had a chance of an approval."
    )


def test_a_search_has_a_search_probability() -> None:
    assert speak("policing")("At equal testing probability") == "At equal search probability"


def test_articles_follow_their_word() -> None:
    say = speak("credit")
    assert say("A person, an untested person: a person's outcome.") == (
        "An applicant, a declined applicant: an applicant's default."
    )
    assert speak("credit", ["a"])("in a, a person") == "in a, an applicant"  # a is a column, too
    assert say("a test that finds less in group b") == "a record that misses more in group b"


TOLD = [remedy for *_, remedy in KEYS.values()] + [
    words for pair in OF_SEVERAL_GROUPS.values() for words in pair
]


def _unbraced(source: str) -> str:
    """With a line in place of what is filled in."""
    return re.sub(r"\{[^{}]*\}", "_", source)


def test_phrases_of_a_field_are_phrases_of_a_report() -> None:
    """A sentence that is reworded in general must be so in the table."""
    names = ("audit", "compare", "estimation", "monitor")
    rooms = [Path(dcem.__file__).parent / name for name in names]
    files = [path for room in rooms for path in room.rglob("*.py")]
    files += [path for path in (rooms[0].parent / "report").rglob("*.py") if path.stem != "words"]
    sources = " ".join(path.read_text(encoding="utf-8") for path in files)
    joined = [re.sub(r"[\"']\s*f?[\"']", "", text) for text in (_unbraced(sources), sources)]
    written = re.sub(r"\s+", " ", " ".join([*joined, *TO_DO.values(), *TOLD])).lower()
    found = [phrase for words in FIELDS.values() for phrase in words if len(phrase.split()) > 4]
    bars = [f"{both}signs point to a _ bar for" for both in ("the ", "both ")]
    for phrase in found:
        general = re.sub(r"(higher|lower) bar", "_ bar", phrase)
        assert phrase in written or (general in bars and general in written), phrase


@pytest.mark.parametrize("remedies", [TO_DO, {k: remedy for k, (*_, remedy) in KEYS.items()}])
def test_nobody_is_told_to_search_people_or_to_give_loans_for_a_number(remedies) -> None:
    police, lender = speak("policing"), speak("credit")
    for remedy in remedies.values():
        said = police(remedy)
        assert not re.search(r"search (some|more|those|people)|collect", said, re.I), said
        assert not re.search(r"approval (some|more|those|applicants)|bear|finds", lender(remedy))
    assert "approve some of them at random" in lender(TO_DO["overlap"])


def test_where_a_test_is_a_burden_more_of_it_is_the_harm() -> None:
    police, lender = speak("policing"), speak("credit")
    assert "bear searches that others are spared" in police(TO_DO["tested-more"])
    assert "others are searched too much" in police(TO_DO["tested-less"])
    assert "too little" not in police(TO_DO["higher-bar"])
    # a loan goes to those who seem unlikely to default: fewer and worse is not a higher bar
    assert "not a sign of a higher bar" in lender(TO_DO["higher-bar"])
    assert "fewer defaults together point to a higher bar" in lender(TO_DO["yield-at-margin"])


def test_what_is_not_a_higher_bar_in_credit_is_not_serious_there() -> None:
    bar = Finding("higher-bar", "serious", "yield", headline="At equal probability")
    other = Finding("overlap", "caution", "overlap", headline="Overlap")
    opening = Opening(Verdict("serious", "Yes", (), ""), (), None, ())
    document = Document("An audit", "", opening, Findings((bar, other)), ())
    said = in_field_words(document, "credit")
    assert [item.key for item in said.findings.items] == ["overlap", "higher-bar"]
    assert (said.findings.items[1].severity, said.opening.verdict.severity) == ("note", "caution")
    assert in_field_words(document, "policing").opening.verdict.severity == "serious"
    beside = replace(opening, verdict=Verdict("note", "No", (), "", bar))
    said = in_field_words(replace(document, opening=beside), "credit").opening.verdict
    assert (said.severity, said.worst and said.worst.key) == ("note", "overlap")


def test_names_and_sayings_are_left_alone() -> None:
    say = speak("policing", {"tested twice", "t"})
    assert say("`tested-only` for group tested twice is put to the test by t: tested") == (
        "`tested-only` for group tested twice is put to the test by t: searched"
    )
    assert say("protested, contest") == "protested, contest"
    assert say("true positive rate, false positives") == "true positive rate, false positives"


def test_who_has_it_and_a_test_that_errs_have_words_in_every_field() -> None:
    police, lender = speak("policing"), speak("credit")
    told = "Whether a positive is found; not that the untested are negative."
    assert lender(told) == "Whether a default is found; not that the declined would repay."
    assert police(told) == (
        "Whether somebody with contraband is found; not that the unsearched carry nothing."
    )
    assert (
        lender("corrected for the errors of the test") == "corrected for the errors of the record"
    )
    for general in ("it counts tested negatives as unknown", "learns who is positive and tested",
                    "found positive, or found negative", "recorded as negative"):  # fmt: skip
        assert not re.search("positive|negative|tested|searched searches", police(general))
    assert police("column 'tested' of the tested") == "column 'tested' of the searched"


@pytest.mark.parametrize(
    ("general", "lender", "police"),
    [
        (
            "Test results are the truth. If a test errs more in one group",
            "Recorded outcomes are the truth. If the record errs more in one group",
            "Search results are the truth. If a search errs more in one group",
        ),
        (
            "fewer than 10 positive or negative such tests",
            "fewer than 10 such defaults or repaid loans",
            "fewer than 10 such searches that found something, or nothing",
        ),
        (
            "too few positive or negative tests of b",
            "too few defaults or repaid loans of b",
            "too few searches that found something, or nothing, of b",
        ),
        (
            "which counts as a negative result. If it means that nobody tested, or that it is open",
            "which counts as repaid. If it means that nobody was approved, or that it is open",
            "which counts as a negative result. If it means that nobody searched, or that it is "
            "open",
        ),
    ],
)
def test_an_approval_has_no_result_that_errs(general, lender, police) -> None:
    assert (speak("credit")(general), speak("policing")(general)) == (lender, police)


def test_an_unknown_field_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="medicine"):
        speak("medecine")


@pytest.mark.parametrize("field", sorted(set(FIELDS) - {"general", "medicine"}))
def test_no_word_of_testing_is_left_in_a_report_of_another_field(field) -> None:
    """On the page and inside its figures; methods keep their names."""
    document = compare_document(made_up_comparison(n_methods=2))
    for text in (to_markdown(document, field), to_html(document, field)):
        assert "tested people" not in text
        assert "share tested" not in text
        assert "tested-only" in text


def test_names_of_methods_stay_as_they_are_without_backticks() -> None:
    said = speak("policing")("No tested person; tested-only:linear is ahead of tested-only.")
    assert said == "No searched person; tested-only:linear is ahead of tested-only."
