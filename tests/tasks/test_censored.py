"""make_censored and its policies: rates met, identity kept, missing values said out loud."""

import numpy as np
import pandas as pd
import pytest

from dcem import DataWarning, InputError
from dcem.tasks import LinearPolicy, make_censored

N = 6_000
SPLITS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def table():
    """A fully labelled table with two groups and three features; `c` has gaps."""
    rng = np.random.default_rng(0)
    group = np.where(rng.random(N) < 0.3, "blue", "green")
    frame = pd.DataFrame({"a": rng.normal(5, 2, N), "b": rng.exponential(size=N)})
    frame["c"] = np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N))
    y = (rng.random(N) < 1 / (1 + np.exp(-(frame["a"] - 6)))).astype(int)
    return frame, y.rename("ill"), pd.Series(group, name="colour")


POLICY = LinearPolicy({"a": 1.0, "b": -0.5}, slope=5, k=0.8, q_t=2.0)


def test_expected_rates_on_training_rows_meet_k_and_q_t(table):
    task = make_censored(*table, POLICY, random_state=1)
    train, p = task.train, task.process.testing_probability(task.train.X, task.train.group)
    assert p.mean() == pytest.approx(0.8 * task.truth["train"].mean(), abs=1e-9)
    blue, green = p[train.group == 0].mean(), p[train.group == 1].mean()
    assert train.group_names == ("blue", "green")
    assert blue / green == pytest.approx(2.0, abs=1e-9)


def test_decisions_follow_the_probabilities_in_every_split(table):
    task = make_censored(*table, POLICY, random_state=1)
    for split in SPLITS:
        problem = task.split(split)
        p = task.process.testing_probability(problem.X, problem.group)
        noise = np.sqrt((p * (1 - p)).sum())
        assert abs(problem.tested.sum() - p.sum()) < 4 * noise
        assert problem.tested[p > 0.9].mean() > 0.9
        assert problem.tested[p < 0.1].mean() < 0.1


def test_the_score_is_the_stated_formula(table):
    frame, y, group = table
    task = make_censored(frame, y, group, POLICY, random_state=1)
    train = task.train
    a, b = train.X[:, 0], train.X[:, 1]
    score = (a - a.mean()) / a.std() - 0.5 * (b - b.mean()) / b.std()
    tau = np.array(task.process.thresholds)[train.group]
    expected = 1 / (1 + np.exp(-5 * (score - tau)))
    np.testing.assert_allclose(task.process.testing_probability(train.X, train.group), expected)


def test_rows_truth_and_labels_stay_together(table):
    frame, y, group = table
    task = make_censored(frame, y, group, POLICY, random_state=1)
    rows = np.concatenate([task.split(s).row for s in SPLITS])
    assert sorted(rows) == list(range(N))
    assert [len(task.split(s)) for s in SPLITS] == [3_600, 1_200, 1_200]
    for split in SPLITS:
        problem = task.split(split)
        np.testing.assert_array_equal(problem.X, frame.to_numpy()[problem.row])
        np.testing.assert_array_equal(task.truth[split], y.to_numpy()[problem.row])
        np.testing.assert_array_equal(problem.y_obs[problem.tested], y[problem.row][problem.tested])
        assert np.isnan(problem.y_obs[~problem.tested]).all()


def test_arrays_and_frames_give_the_same_task(table):
    frame, y, group = table
    named = make_censored(frame, y, group, POLICY, random_state=4)
    policy = LinearPolicy({"x0": 1.0, "x1": -0.5}, slope=5, k=0.8, q_t=2.0)
    plain = make_censored(frame.to_numpy(), y.to_numpy(), group.to_numpy(), policy, random_state=4)
    np.testing.assert_array_equal(plain.train.tested, named.train.tested)
    assert plain.process.thresholds == named.process.thresholds


def test_params_make_the_task_again(table):
    task = make_censored(*table, POLICY, random_state=None)
    policy = LinearPolicy(**task.params["policy"])
    rest = {key: task.params[key] for key in ("shares", "random_state")}
    again = make_censored(*table, policy, **rest)
    np.testing.assert_array_equal(again.test.tested, task.test.tested)
    np.testing.assert_array_equal(again.test.row, task.test.row)


def test_the_same_seed_pairs_tasks_of_different_policies(table):
    few = make_censored(*table, LinearPolicy({"a": 1.0}, slope=5, k=0.3), random_state=2)
    many = make_censored(*table, LinearPolicy({"a": 1.0}, slope=5, k=0.9), random_state=2)
    np.testing.assert_array_equal(few.train.row, many.train.row)
    assert few.train.tested.sum() < many.train.tested.sum()
    assert not (few.train.tested & ~many.train.tested).any()  # a lower bar tests the same and more


def test_a_persons_rows_stay_in_one_split(table):
    frame, y, group = table
    person = np.repeat(np.arange(N // 4), 4)
    task = make_censored(frame, y, group, POLICY, id=person, random_state=1)
    homes = [set(task.split(s).id) for s in SPLITS]
    assert sum(map(len, homes)) == len(set.union(*homes)) == N // 4


def test_explicit_rates_for_many_groups(table):
    frame, y, _ = table
    group = np.resize(["n", "e", "s", "w"], N)
    rates = {"n": 0.1, "e": 0.2, "s": 0.3, "w": 1.0}
    task = make_censored(frame, y, group, LinearPolicy({"a": 1.0}, rates=rates), random_state=0)
    p = task.process.testing_probability(task.train.X, task.train.group)
    for code, name in enumerate(task.train.group_names):
        assert p[task.train.group == code].mean() == pytest.approx(rates[name], abs=1e-9)
    assert task.train.tested[task.train.group == task.train.group_names.index("w")].all()


def test_without_groups_everybody_is_one_group(table):
    frame, y, _ = table
    task = make_censored(frame, y, None, LinearPolicy({"a": 1.0}, k=0.5), random_state=0)
    assert task.train.group_names == ("all",)
    assert task.train.tested.mean() == pytest.approx(0.5 * y.mean(), abs=0.03)


def test_weights_count_in_the_rates(table):
    frame, y, group = table
    weight = np.where(group == "blue", 5.0, 1.0) * np.random.default_rng(1).random(N)
    task = make_censored(frame, y, group, POLICY, weight=weight, random_state=0)
    t, p = task.train, task.process.testing_probability(task.train.X, task.train.group)
    prevalence = np.average(task.truth["train"], weights=t.weight)
    assert np.average(p, weights=t.weight) == pytest.approx(0.8 * prevalence, abs=1e-9)


def missing_policy(how):
    return LinearPolicy(
        {"a": 1.0, "c": 1.0}, slope=5, rates={"blue": 0.5, "green": 0.4}, missing=how
    )


def test_missing_values_are_refused_unless_they_mean_something(table):
    gaps = int(table[0]["c"].isna().sum())
    with pytest.raises(InputError, match=rf"'c', which is missing in {gaps:,} of {N:,} rows"):
        make_censored(*table, missing_policy("refuse"), random_state=0)


def test_a_missing_value_without_weight_does_not_matter(table):
    make_censored(*table, LinearPolicy({"a": 1.0, "c": 0.0}, k=1.0), random_state=0)


@pytest.mark.parametrize(("how", "share"), [("tested", 1.0), ("untested", 0.0)])
def test_missing_values_may_decide_and_the_rates_still_hold(table, how, share):
    task = make_censored(*table, missing_policy(how), random_state=0)
    train = task.train
    absent = np.isnan(train.X[:, 2])
    assert train.tested[absent].mean() == share
    p = task.process.testing_probability(train.X, train.group)
    assert p[train.group == 0].mean() == pytest.approx(0.5, abs=1e-9)
    assert p[train.group == 1].mean() == pytest.approx(0.4, abs=1e-9)


def test_missing_values_may_count_as_average(table):
    task = make_censored(*table, missing_policy("average"), random_state=0)
    filled = task.train.X.copy()
    filled[np.isnan(filled[:, 2]), 2] = np.nanmean(filled[:, 2])
    np.testing.assert_allclose(
        task.process.testing_probability(filled, task.train.group),
        task.process.testing_probability(task.train.X, task.train.group),
    )


def test_rates_that_missing_values_make_impossible(table):
    policy = LinearPolicy({"c": 1.0}, rates={"blue": 0.1, "green": 0.5}, missing="tested")
    message = r"group 'blue' should be tested at a rate of 0\.1,.* between 0\.\d+ and 1\."
    with pytest.raises(InputError, match=message):
        make_censored(*table, policy, random_state=0)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"weights": {"aa": 1.0}}, "no column 'aa'. Did you mean 'a'"),
        ({"weights": {"a": 1.0}, "k": 2.5, "q_t": 3.0}, "group blue would need a testing rate of"),
        (
            {"weights": {"a": 1.0}, "rates": {"blue": 0.5}},
            "has rates for blue, but the groups are blue, green",
        ),
        ({"weights": {"a": 1.0}, "rates": {"blue": 0.5, "green": 1.5}}, r"rates must lie in"),
    ],
)
def test_policies_that_do_not_fit_the_table(table, policy, message):
    with pytest.raises(InputError, match=message):
        make_censored(*table, LinearPolicy(**policy), random_state=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": {}}, "at least one column"),
        ({"weights": {"a": np.nan}}, "finite weights"),
        ({"weights": {"a": 1.0}, "slope": 0.0}, "slope must be positive"),
        ({"weights": {"a": 1.0}, "missing": "zero"}, "one of refuse, average, tested, untested"),
        ({"weights": {"a": 1.0}, "k": 1.0, "rates": {"x": 0.5}}, "either rates, or k and q_t"),
        ({"weights": {"a": 1.0}, "scales": {"b": 1.0}}, "'b'"),
        ({"weights": {"a": 1.0}, "scales": {"a": -1.0}}, "scale of 'a' must be positive"),
        ({"weights": {"a": 1.0}, "slope": np.inf}, "slope must be positive"),
        ({"weights": {"a": 1.0}, "centers": {"a": np.nan}}, "finite weights and centres"),
    ],
)
def test_policies_that_make_no_sense(arguments, message):
    with pytest.raises(InputError, match=message):
        LinearPolicy(**arguments)


def test_q_t_needs_two_groups(table):
    frame, y, _ = table
    group = np.resize(["n", "e", "s"], N)
    with pytest.raises(InputError, match="compares two groups, but there are 3"):
        make_censored(frame, y, group, POLICY, random_state=0)


def test_a_constant_policy_column_is_refused(table):
    frame, y, group = table
    with pytest.raises(InputError, match="'flat', which is constant"):
        make_censored(frame.assign(flat=1.0), y, group, LinearPolicy({"flat": 1.0}), random_state=0)


def test_the_truth_must_be_complete_and_indices_agree(table):
    frame, y, group = table
    with pytest.raises(InputError, match="'y' is missing in 1 of"):
        make_censored(frame, y.astype(float).mask(y.index == 3), group, POLICY, random_state=0)
    with pytest.raises(InputError, match="indices"):
        make_censored(frame, y.sample(frac=1.0, random_state=0), group, POLICY, random_state=0)


def test_limits_are_reported_for_the_training_rows(table):
    frame, y, group = table
    with pytest.warns(DataWarning, match="flat"):
        make_censored(frame.assign(flat=1.0), y, group, POLICY, random_state=0)


def test_a_feature_cannot_pass_for_a_role_in_the_table_written_out(table):
    frame, y, group = table
    task = make_censored(
        frame.rename(columns={"b": "label"}),
        y,
        group,
        LinearPolicy({"a": 1.0}, k=1.0),
        random_state=0,
    )
    with pytest.raises(InputError, match="Features named label clash"):
        task.to_frame()


def test_a_policy_must_be_given(table):
    for policy in (None, {"a": 1.0}):
        with pytest.raises(InputError, match="needs a policy"):
            make_censored(*table, policy)


def test_rates_may_be_named_by_the_groups_own_values(table):
    frame, y, group = table
    policy = LinearPolicy({"a": 1.0}, slope=5, rates={1: 0.2, 0: 0.6})
    task = make_censored(frame, y, (group == "green").astype(int), policy, random_state=0)
    assert task.process.targets == (0.6, 0.2)


def test_a_group_whose_rows_do_not_count_is_named(table):
    frame, y, group = table
    weight, policy = (group != "green").astype(float), LinearPolicy({"a": 1.0}, k=0.5)
    with pytest.raises(InputError, match="'green' has no rows, or none that count"):
        make_censored(frame, y, group, policy, weight=weight, random_state=0)


@pytest.mark.parametrize("seed", [1.5, -1, "3", np.random.RandomState(0)])
def test_seeds_that_would_be_read_as_another_are_refused(table, seed):
    with pytest.raises(InputError, match="`random_state` must be a whole number"):
        make_censored(*table, POLICY, random_state=seed)


def test_group_order_decides_what_q_t_compares(table):
    task = make_censored(*table, POLICY, group_names=["green", "blue"], random_state=1)
    green, blue = task.process.targets
    assert green / blue == pytest.approx(2.0)
    assert task.train.group_names == ("green", "blue")
