from math import inf, nan

import pytest

from dcem import text


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.7874, ".787"),
        (-0.0121, "-.012"),
        (1.0, "1.000"),
        (-1.25, "-1.250"),
        (0.0, ".000"),
        (-0.0001, ".000"),
        (0.9996, "1.000"),
        (12.5, "12.500"),
        (10.0, "10.000"),
        (nan, "–"),
        (inf, "∞"),
    ],
)
def test_number(value: float, written: str) -> None:
    assert text.number(value) == written


@pytest.mark.parametrize("form", text.FORMS)
@pytest.mark.parametrize("value", [-1e-7, -0.0])
def test_nothing_is_less_than_nothing(form: str, value: float) -> None:
    """-0.0001 has been written as -.000, as -0.000 and as -0.0 %."""
    for written in (text.value(value, form), text.interval(value, -value, form)):
        assert "-" not in written
        assert "+" not in written


def test_an_error_that_chance_explains_is_not_called_zero() -> None:
    assert text.estimated(0.0, 0.0, 0.067, "error") == ("at most .067", "")
    assert text.estimated(0.0, 0.0, 0.067) == (".000", "[.000, .067]")
    assert text.estimated(0.012, 0.0, 0.067, "error") == (".012", "[.000, .067]")
    assert text.estimated(0.0, 0.0, 0.0001, "error") == (".000", "[.000, .000]")
    assert text.estimated(0.0, nan, nan, "error") == (".000", "")


def test_percent_has_a_decimal_unless_it_is_a_whole_number() -> None:
    assert text.percent(1 / 3) == "33.3 %"
    assert text.percent(0.5) == "50 %"
    assert text.percent(1 / 40) == "2.5 %"
    assert text.percent(0.0996) == "10.0 %"  # as in a table: "10 % (7.1 % to 11.4 %)" is uneven
    assert text.percent(0.05) == text.percent(1 - 0.95) == "5 %"
    assert text.percent(0.07) == "7 %"
    assert text.percent(0) == "0 %"
    assert text.percent(0.0003) == "<0.1 %"
    assert text.percent(0.0007) == "0.1 %"
    assert text.percent(1) == "100 %"
    assert text.percent(0.9996) == ">99.9 %"
    assert text.percent(0.9994) == "99.9 %"
    assert text.percent(1 / 3, 1) == "33.3 %"
    assert text.percent(-0.00001, 1) == "0.0 %"
    assert text.percent(nan) == "–"


def test_of_100_the_interval_is_rounded_outwards_from_what_is_shown() -> None:
    assert text.of_100(0.651, 0.6148, 0.686) == ("65", "61 to 69")
    assert text.of_100(0.5, 0.27, 0.83) == ("50", "27 to 83")  # 100 * .83 is a hair below 83
    assert text.of_100(0.5, nan, nan) == ("50", "– to –")


def test_forms() -> None:
    assert text.value(-0.031, "points") == "-3.1 points"
    assert text.interval(-0.05, 0.012, "points") == "[-5.0, +1.2]"
    assert text.value(0.162, "percent") == "16.2 %"
    assert text.interval(0.159, 0.165, "percent") == "[15.9, 16.5]"
    assert text.value(1204.4, "ratio") == "1,204"
    assert text.value(0.0121, "gain") == "+.012"
    assert text.interval(nan, nan) == ""


@pytest.mark.parametrize(
    ("p", "written"), [(0.0312, "p = .031"), (0.0002, "p < .001"), (1.0, "p = 1.000")]
)
def test_p_values(p: float, written: str) -> None:
    assert text.p_value(p) == written


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0.3, "under a second"),
        (1.2, "1 second"),
        (12, "12 seconds"),
        (185, "3 minutes"),
        (9000, "2.5 hours"),
    ],
)
def test_durations(seconds: float, written: str) -> None:
    assert text.duration(seconds) == written


def test_a_time_span_names_its_unit_once() -> None:
    assert text.time_span(200, 700) == "3 to 12 minutes"
    assert text.time_span(18, 73) == "18 to 73 seconds"
    assert text.time_span(38, 180) == "38 seconds to 3 minutes"
    assert text.time_span(0.5, 4) == "under a second to 4 seconds"
    assert text.time_span(1, 1.2) == "1 second"


def test_lists_of_many_are_counted() -> None:
    assert text.listed(["a"]) == "a"
    assert text.listed(["a", "b", "c"]) == "a, b and c"
    assert text.listed(list("abcdef")) == "a, b, c and 3 more"
    assert text.listed([]) == "none"


@pytest.mark.parametrize(
    ("clause", "names", "sentence"),
    [
        (
            "always and never are tested less",
            ("always", "never"),
            "always and never are tested less",
        ),
        ("group g is tested less", ("g",), "Group g is tested less"),
        ("no group differs", ("north",), "No group differs"),
        ("`age` is missing", (), "`age` is missing"),
    ],
)
def test_a_name_that_begins_a_sentence_is_shown_as_it_is_written(clause, names, sentence) -> None:
    assert text.capitalised(clause, names) == sentence


@pytest.mark.parametrize("name", ["हिन्दी", "ไทย", "中文", "Māori", "I\u0302le"])
def test_a_group_with_a_name_of_any_script_needs_no_word(name: str) -> None:
    assert text.group(name) == name
    assert text.group("b") == "group b"


@pytest.mark.parametrize(
    ("names", "written"),
    [
        (["north", "हिन्दी", "ქართული"], "north, हिन्दी and ქართული"),
        (["1", "2"], "group 1 and group 2"),
        (["3", "north"], "group 3 and group north"),
    ],
)
def test_groups_in_a_sentence(names: list[str], written: str) -> None:
    assert text.groups(names) == written


def test_groups_behind_a_preposition() -> None:
    """`In White, tests are positive less often` is not English, nor is `in <65`."""
    assert f"in {text.named_groups(['White'])}" == "in group White"
    assert f"in {text.named_groups(['<65', 'Unknown'])}" == "in groups <65 and Unknown"
