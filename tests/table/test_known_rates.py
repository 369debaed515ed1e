"""A stated prevalence: how it is spelt, and what is refused."""

import re

import numpy as np
import pytest

from dcem.estimation.outcomes import seen_outcomes
from dcem.table.known_rates import known_words
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError
from dcem.table.positives_only import recorded


def made(prevalence, **more):
    """400 people, 60 % tested, of these 30 % positive: between 18 and 58 % in truth."""
    n = np.arange(400)
    y = np.where(n % 10 < 6, (n % 10 < 2).astype(float), np.nan)
    group = np.where(n // 10 % 2, "<65", "M")
    return SelectiveLabels.from_arrays(n[:, None], y, group=group, prevalence=prevalence, **more)


def test_spellings():
    assert made(None).known_prevalence == ()
    (one,) = made(".3").known_prevalence
    assert (one.value, one.error, one.group) == (0.3, 0.0, "")
    (one,) = made(".30-.34").known_prevalence
    assert one.value == pytest.approx(0.32, abs=1e-3)
    assert one.interval == (0.3, 0.34)
    text, mapping = made("<65=.3,M=.4-.5"), made({"<65": 0.3, "M": ".4-.5"})
    assert text.known_prevalence == mapping.known_prevalence
    assert known_words(text.known_prevalence).startswith("prevalence .300 in group <65, .4")
    assert [one.group for one in made("M=.3").known_prevalence] == ["M"]
    assert text.subset(text.tested).known_prevalence == text.known_prevalence


def test_an_interval_is_told_as_it_was_stated():
    """Also a wide one, whose middle in log-odds is not the middle."""
    (one,) = made(".22-.56").known_prevalence
    assert one.words == ".375 [.220, .560]"
    assert one.error == pytest.approx(0.34 / (2 * 1.96), rel=1e-4)


def test_without_groups_one_number_is_asked_for():
    y = np.where(np.arange(400) % 10 < 6, (np.arange(400) % 10 < 2).astype(float), np.nan)
    with pytest.raises(InputError, match="one number for all"):
        SelectiveLabels.from_arrays(np.arange(400)[:, None], y, prevalence="F=.3")


def test_names_of_groups_may_hold_commas_and_signs():
    names = np.where(np.arange(400) // 10 % 2, ">=65", "Ward 3, east")
    y = np.where(np.arange(400) % 10 < 6, (np.arange(400) % 10 < 2).astype(float), np.nan)
    found = SelectiveLabels.from_arrays(
        np.arange(400)[:, None], y, group=names, prevalence="Ward 3, east=.3, >=65=.4"
    ).known_prevalence
    assert {one.group: one.value for one in found} == {"Ward 3, east": 0.3, ">=65": 0.4}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (".1", "have already been found to have the outcome, 20.0 % of all people"),
        (".7", "if every untested person had the outcome, 60.0 % of all people"),
        ("M=.1", "have already been found to have the outcome, 20.0 % of all people of group M"),
        ("F=.3", "does not occur"),
        ("1.2", "must lie between 0 and 1"),
        ("rate", "such as .12"),
        ("M=0,3", "such as .12"),
        ("M=.3,,<65=.4", "such as .12"),
        (",".join([*(f"g{i}=.3" for i in range(40)), "M"]), "such as .12"),  # at once
        (".4-.3", "the lower one first"),
    ],
)
def test_what_cannot_be_is_refused(given, says):
    with pytest.raises(InputError, match=says):
        made(given)


def test_weights_count_and_test_rates_do():
    weight = np.where(np.arange(400) % 10 < 2, 0.1, 1.0)  # positives hardly count
    assert made(".1", weight=weight).known_prevalence[0].value == 0.1
    with pytest.raises(InputError, match="found to have"):
        made(".25", test_sensitivity=0.6)  # a third is found; there are more


def test_what_luck_could_explain_is_not_refused():
    """Of twelve people a quarter is found, where a fifth has the outcome."""
    n = np.arange(400)
    y = np.where(n % 10 < 6, (n % 10 < 2).astype(float), np.nan)
    y[:12] = [1, 1, 1, *[np.nan] * 9]
    group = np.where(n < 12, "few", "M")
    found = SelectiveLabels.from_arrays(n[:, None], y, group=group, prevalence="few=.2,M=.3")
    assert [one.value for one in found.known_prevalence] == [0.2, 0.3]
    with pytest.raises(InputError, match="already"):
        SelectiveLabels.from_arrays(n[:, None], y, group=group, prevalence="M=.15")


def test_of_found_positives_it_says_which_share_is_found():
    """What the refusal proposes gives the stated prevalences back."""
    n = np.arange(1000)
    group = np.where(n < 400, "F", "M")
    found = np.where(n < 400, n < 40, n < 520)  # a tenth of F, a fifth of M
    table = {"X": n[:, None], "y": found * 1.0, "group": group, "positives_only": True}

    def proposed(prevalence):
        with pytest.raises(InputError) as refused:
            SelectiveLabels.from_arrays(**table, prevalence=prevalence)
        return re.search(r"here ([^)]*)", str(refused.value))[1]

    stated = proposed("F=.25,M=.8")
    assert stated == "F=.40,M=.25"
    people = SelectiveLabels.from_arrays(**table, test_sensitivity=stated)
    y = seen_outcomes(recorded(people))
    assert [y[group == name].mean() for name in "FM"] == pytest.approx([0.25, 0.8])
    assert proposed(".32") == ".50"
    assert proposed("F=.2-.4,M=.5") == "F=.25-.50,M=.40"
    with pytest.raises(InputError, match="more people of group F have already been found"):
        SelectiveLabels.from_arrays(**table, prevalence="F=.05,M=.5")
