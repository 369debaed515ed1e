"""What make_sinusoid promises: presets, streams, parameters, the grid, and clear refusals."""

import math

import numpy as np
import pytest

from dcem import InputError
from dcem.tasks import make_sinusoid, sinusoid_grid

SMALL = {"n_train": 4_000, "n_validation": 400, "n_test": 400}


def independent(**kwargs):
    return make_sinusoid(**{"stream": "independent", "random_state": 0, **SMALL, **kwargs})


def test_the_grid_has_224_cells_of_which_16_are_infeasible():
    cells = sinusoid_grid()
    assert len(cells) == len({cell[:3] for cell in cells}) == 224
    impossible = [cell for cell in cells if not cell.feasible]
    assert {(cell.k, cell.q_t) for cell in impossible} == {
        (3.0, 0.25),
        (3.0, 1 / 3),
        (3.0, 3.0),
        (3.0, 4.0),
    }
    assert len(impossible) == 16
    assert "group 0 would need a testing rate of 1.125" in next(
        cell.infeasible for cell in impossible if cell.q_t == 3.0
    )


@pytest.mark.parametrize("stream", ["published", "independent"])
@pytest.mark.parametrize(("q_t", "group", "rate"), [(0.25, 1, "1.2"), (4.0, 0, "1.2")])
def test_infeasible_settings_name_the_group_and_its_rate(stream, q_t, group, rate):
    with pytest.raises(InputError, match=rf"group {group} would need a testing rate of {rate}"):
        make_sinusoid(k=3.0, q_t=q_t, stream=stream)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 4.5}, r"overall testing rate would be 1\.125"),
        ({"k": 0.0}, "k is .* must be positive"),
        ({"q_t": -1.0}, "ratio .* must be positive"),
        ({"q_y": 0.01, "prevalence": 0.6}, "group 1 would need a prevalence of 1.188"),
        ({"phase": math.inf}, "finite angle in radians"),
        ({"preset": "as-drawn"}, "one of as-released, as-written"),
        ({"stream": "fresh"}, "one of published, independent"),
        ({"random_state": 3}, "seeded with 42"),
        ({"preset": "as-written", "stream": "published"}, "no published draws"),
        ({"n_train": 1}, "n_train = 1 .* both groups"),
        ({"variance": 0.0}, "'variance' must be positive"),
        ({"amplitude": math.nan}, "'amplitude' must be finite"),
        ({"outcome_threshold": math.nan}, "'outcome_threshold' must be finite"),
        ({"n_train": 99.5}, "n_train = 99.5 .* whole number"),
        ({"group_share": 1.0}, "share of group 0"),
    ],
)
def test_arguments_without_sense_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        make_sinusoid(**arguments)


def test_params_draw_the_same_task_again():
    for task in (
        independent(testing_slope=7.5, phase=1.0),
        independent(random_state=None),
        independent(random_state=np.random.default_rng(5)),
        independent(preset="as-written"),
        make_sinusoid(k=2.0, **SMALL),
    ):
        again = make_sinusoid(**task.params)
        assert again.process == task.process
        for split in ("train", "validation", "test"):
            np.testing.assert_array_equal(again.split(split).X, task.split(split).X)
            np.testing.assert_array_equal(again.split(split).y_obs, task.split(split).y_obs)
            np.testing.assert_array_equal(again.truth[split], task.truth[split])


def test_different_seeds_differ_and_splits_do_not_repeat():
    a, b = independent(random_state=1), independent(random_state=2)
    assert not np.isin(a.train.X[:, 0], b.train.X[:, 0]).any()
    assert not np.isin(a.test.X[:, 0], a.validation.X[:, 0]).any()


def test_as_written_follows_the_text():
    """Probabilities recomputed from the paper's formulas, with its 2D rotation matrix."""
    phase = 0.7
    task = independent(preset="as-written", phase=phase, n_train=20_000)
    x, a = task.train.X, task.train.group
    R = np.array([[np.cos(np.pi / 6), -np.sin(np.pi / 6)], [np.sin(np.pi / 6), np.cos(np.pi / 6)]])
    z = x @ R.T + 0.5
    s_y = z[:, 1] - 0.25 * np.sin(8 * np.pi * z[:, 0] + phase)
    c_y = 10 * task.process.constants.outcome_threshold
    p_y = 1 / (1 + np.exp(-(10 * s_y - c_y)))
    np.testing.assert_allclose(task.process.outcome_probability(x), p_y, atol=1e-6)
    s_t = x.sum(axis=1) - np.asarray(task.process.thresholds)[a]
    p_t = 1 / (1 + np.exp(-30 * s_t))
    np.testing.assert_allclose(task.process.testing_probability(x, a), p_t, atol=1e-5)
    for group in (0, 1):
        assert x[a == group].std(axis=0) == pytest.approx([0.03, 0.03], rel=0.05)
    assert 0 < abs((a == 0).sum() - 10_000) < 400  # drawn, not fixed
    assert (np.diff(a) < 0).sum() > 1_000  # and in no order


def test_every_constant_reaches_the_data():
    base = independent()
    assert base.train.X[base.train.group == 0].var() == pytest.approx(0.03, rel=0.1)
    wide = independent(variance=0.01)
    assert wide.train.X[wide.train.group == 0].var() == pytest.approx(0.01, rel=0.1)
    uneven = independent(group_share=0.2, prevalence=0.1, n_train=50_000)
    assert (uneven.train.group == 0).mean() == 0.2
    assert uneven.truth["train"].mean() == pytest.approx(0.1, abs=0.006)
    x = base.train.X
    for name, value in [
        ("outcome_slope", 20.0),
        ("outcome_threshold", 0.9),
        ("frequency", 2.0),
        ("amplitude", 0.1),
        ("rotation", 0.0),
    ]:
        changed = independent(**{name: value}).process
        gap = np.abs(changed.outcome_probability(x) - base.process.outcome_probability(x))
        assert gap.max() > 0.05, name
    gentle = independent(testing_slope=7.5)
    p = gentle.process.testing_probability(x, base.train.group)
    sharp = base.process.testing_probability(x, base.train.group)
    assert np.mean((p > 0.1) & (p < 0.9)) > 1.5 * np.mean((sharp > 0.1) & (sharp < 0.9))


def test_the_truth_is_nowhere_in_what_a_method_sees():
    task = independent()
    hidden = ~task.train.tested
    assert np.isnan(task.train.y_obs[hidden]).all()
    assert not task.train.y_imputed[hidden].any()
    assert task.truth["train"][hidden].sum() > 0


def test_to_frame_has_the_columns_and_hides_the_truth_unless_asked():
    task = independent()
    frame = task.to_frame()
    assert list(frame.columns) == ["x0", "x1", "group", "tested", "label", "split"]
    assert len(frame) == 4_800
    assert frame["label"].isna().equals(frame["tested"] == 0)
    with_truth = task.to_frame(truth=True)
    assert list(with_truth.columns)[-2:] == ["truth", "split"]
    train = with_truth[with_truth["split"] == "train"]
    np.testing.assert_array_equal(train["truth"], task.truth["train"])


def test_an_unknown_split_is_named():
    with pytest.raises(KeyError, match="train, validation, test"):
        independent().split("val")
