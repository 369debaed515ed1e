import re
import xml.etree.ElementTree as ElementTree
from math import inf

import numpy as np
import pytest
from made_up import made_up_comparison

from dcem.metrics.estimate import Estimate
from dcem.report.document import Number
from dcem.report.dots import _scale, axis_of
from dcem.report.figures.curves import AT, calibration_curves, decision_curves, roc_curves
from dcem.report.figures.people import em_history, who_is_tested
from dcem.report.style import PALETTE
from dcem.report.svg import _short, _thinned, inline_svg
from dcem.text import percent


def target_of(comparison, key: str):
    return next(target for target in comparison.targets if target.key == key)


def contrast(first: str, second: str) -> float:
    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", sorted(set(PALETTE) - {"paper", "marked", "grid", "faint"}))
@pytest.mark.parametrize("dark", [False, True])
def test_text_and_lines_have_enough_contrast(name, dark) -> None:
    assert contrast(PALETTE[name][dark], PALETTE["paper"][dark]) >= 4.5


def test_figures_follow_the_theme_and_are_valid_xml() -> None:
    comparison = made_up_comparison(n_methods=2)
    target = comparison.targets[0]
    drawings = (who_is_tested(comparison, comparison.methods[0]), roc_curves(comparison, target))
    for drawing in drawings:
        svg = inline_svg(drawing)
        root = ElementTree.fromstring(svg)
        assert root.find("{*}title").text == drawing.title
        assert root.find("{*}desc").text
        colours = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", svg))
        assert not colours, f"{drawing.name}: colours outside the palette {colours}"
        assert "font-family" not in svg


@pytest.mark.filterwarnings("error")
def test_a_sign_that_only_a_page_can_draw_is_left_to_it() -> None:
    drawing = roc_curves(made_up_comparison(n_methods=1), made_up_comparison().targets[0])
    drawing.figure.axes[0].set_title("\N{SLIGHTLY SMILING FACE}")
    assert "\N{SLIGHTLY SMILING FACE}" in inline_svg(drawing)


def test_the_axes_of_a_decision_curve_hold_its_curves() -> None:
    comparison = made_up_comparison(n_methods=1)
    judged = comparison.methods[0].judgements["dr"]
    judged.decision_curves["everybody"].net_benefit[-3:] = -0.9  # a score that does much harm
    (ax,) = decision_curves(comparison, target_of(comparison, "dr")).figure.axes[:1]
    bottom, top = ax.get_ylim()
    assert bottom < -0.9 < judged.decision_curves["everybody"].net_benefit.max() < top


def test_words_of_a_field_reach_the_inside_of_a_figure() -> None:
    comparison = made_up_comparison(n_methods=2)
    drawing = roc_curves(comparison, comparison.targets[0]).in_words(str.upper)
    assert "TESTED-ONLY" in inline_svg(drawing)
    assert drawing.title.isupper()


def test_a_pointer_on_a_point_is_told_its_number() -> None:
    comparison = made_up_comparison(n_methods=1)
    method = comparison.methods[0]
    root = ElementTree.fromstring(inline_svg(who_is_tested(comparison, method)))
    titles = [element.text for element in root.iterfind(".//{*}*/{*}title")]
    points = [len(line.score) for line in method.testing_by_score.values() if len(line.score) > 1]
    assert len(titles) == sum(points) > 0
    assert all(re.search(r"\d %.* tested at a risk of [\d.]+ %", title) for title in titles)


def titles(drawing) -> list[str]:
    root = ElementTree.fromstring(inline_svg(drawing))
    return [element.text for element in root.iterfind(".//{*}*/{*}title")]


def test_a_pointer_on_a_curve_is_told_its_numbers() -> None:
    comparison = made_up_comparison(n_methods=2)
    target = target_of(comparison, "dr")
    judged = comparison.methods[0].judgements["dr"]
    told = titles(roc_curves(comparison, target))
    assert len(told) == 2 * len(judged.roc_curves) * len(AT)
    group, curve = next(iter(judged.roc_curves.items()))
    at_a_fifth = percent(np.interp(0.2, curve.fpr, curve.tpr))
    assert any(f"{group}: true positive rate {at_a_fifth}," in title for title in told)
    assert len(titles(calibration_curves(comparison, target))) >= 2 * len(
        judged.calibration_curves["everybody"].predicted
    )
    assert titles(decision_curves(comparison, target))
    course = comparison.methods[0].history or made_up_comparison().methods[3].history
    steps = sum(len(loss) for loss in course.loss.values())
    assert len(titles(em_history("dcem", course))) == steps


def test_hidden_marks_are_hidden_and_words_of_a_field_reach_them() -> None:
    comparison = made_up_comparison(n_methods=1)
    svg = inline_svg(roc_curves(comparison, target_of(comparison, "dr")).in_words(str.upper))
    assert "TRUE POSITIVE RATE" in svg
    assert re.search(r'<g fill-opacity="0"><circle ', svg)


def test_marks_of_an_axis_have_room_and_hold_both_ends() -> None:
    for high, form, shown in ((0.3, "percent", 2), (0.4, "percent", 3), (0.3, "score", 4)):
        axis = axis_of([Number(Estimate(0.0, 0.0, high), form)])
        marks = re.findall(r"left:([\d.]+)%", _scale(axis))
        assert (marks[0], marks[-1]) == ("0", "100")
        assert len(marks) == shown, (high, form)


def test_marks_of_rare_outcomes_are_told_apart_and_an_interval_may_have_no_end() -> None:
    axis = axis_of([Number(Estimate(0.004, 0.002, 0.0075), "percent")])
    labels = [axis.label(tick) for tick in axis.ticks]
    assert labels == ["0.0 %", "0.2 %", "0.4 %", "0.6 %", "0.8 %"]
    assert axis_of([Number(Estimate(2.0, 1.0, inf), "ratio")]).high == 2.0


def test_paths_are_short_and_their_lines_the_same() -> None:
    assert _short("M 0 0\nL 10 0.1\nL 20 0\nL 20.04 30.5\nz\n") == "M0 0l20 0 0 30.5z"
    assert _short("M 1 2\nL 0.5 1.5\nM 7 7\nL 7 9\n") == "M1 2l-.5-.5M7 7l0 2"
    assert _short("M 0 5.54\nC 1 2 3 4 5 6.66\n") == "M 0 5.5 C 1 2 3 4 5 6.6"
    draw = np.random.default_rng(0)
    line = np.arange(300) * 5 + 1j * np.round(np.cumsum(draw.normal(size=300)) * 4)
    kept = _thinned(line)
    assert len(kept) < 200
    seen = np.interp(line.real, kept.real, kept.imag)
    assert (
        np.abs(seen - line.imag).max() <= 4
    )  # tenths, straight down; across the line no more than 2
