import pytest
from made_up import made_up_comparison

from dcem.report.compare import compare_document
from dcem.report.to_html import to_html
from dcem.report.to_markdown import to_markdown
from dcem.report.words import FIELDS, speak
from dcem.table.checks import InputError


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
    assert say("They have the outcome; had a chance of a test.") == (
        "They default; had a chance of an approval."
    )


def test_names_and_sayings_are_left_alone() -> None:
    say = speak("policing", {"tested twice", "t"})
    assert say("`tested-only` for group tested twice is put to the test by t: tested") == (
        "`tested-only` for group tested twice is put to the test by t: searched"
    )
    assert say("protested, contest") == "protested, contest"


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
