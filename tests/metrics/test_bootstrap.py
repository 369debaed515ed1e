"""The bootstrap against literal resampling, and its intervals against known truths."""

import numpy as np
import pytest
from scipy.stats import norm

from dcem import DataWarning, metrics
from dcem.metrics import Estimate, bootstrap
from dcem.metrics._inputs import Checked, read_groups, read_identifiers, read_rows
from dcem.metrics._statistics import BinnedError, GroupedPeople, Statistics
from dcem.metrics.calibration import bin_of


def simulated(n=600, seed=0, decimals=17, n_groups=2, better=0.5, visits=1):
    """Scores that rank group 1 better by `better`; each person has `visits` rows."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n // visits), visits)
    group = np.sort(rng.integers(0, n_groups, n // visits))[person]
    y = (rng.random(n // visits) < 0.3)[person] ^ (rng.random(n) < 0.1)
    score = norm.cdf(rng.normal(size=n) + y * (1 + better * group) - 1).round(decimals)
    return y, score, group, person


def prepared(y, score, group, person=None, weight=None):
    rows = read_rows(y, score, weight)
    groups = read_groups(group, rows)
    people = GroupedPeople(groups.code, None if person is None else read_identifiers(person, rows))
    return rows, groups, people


def plain(name, of, y, score, group):
    """A metric by its public function, on rows that were written out."""
    needs_group = name not in ("auc", "calibration_error")
    value = getattr(metrics, name)(y, score, *[group] * needs_group)
    return value if of is None else value[of]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decimals", [1, 17])
def test_each_replicate_is_the_metric_of_the_resampled_rows(decimals, weighted):
    y, score, group, person = simulated(240, decimals=decimals, n_groups=3, visits=2)
    weight = np.random.default_rng(1).integers(0, 3, len(y)) if weighted else None
    rows, groups, people = prepared(y, score, group, person, weight)
    statistics = Statistics(rows, groups, people, n_bins=5, calibration=False)
    counts = people.resample(np.random.default_rng(2), 8)
    values = statistics(counts)
    assert {name for name, _ in values} == {
        "auc",
        "group_auc",
        "xauc",
        "xauc_difference",
    }
    for i, count in enumerate(counts):
        times = count[people.of_row] * (1 if weight is None else weight)
        drawn = np.repeat(np.arange(len(y)), times.astype(int))
        for (name, of), value in values.items():
            expected = plain(name, of, y[drawn], score[drawn], group[drawn])
            assert value[i] == pytest.approx(expected, abs=1e-12), (name, of)


def test_calibration_replicates_keep_the_bins_of_the_sample():
    y, score, group, _ = simulated(300)
    rows, groups, people = prepared(y, score, group)
    statistics = Statistics(rows, groups, people, n_bins=5, calibration=True)
    counts = people.resample(np.random.default_rng(2), 4)
    for label, members in [(None, np.arange(300)), *enumerate(groups.members())]:
        name = "calibration_error" if label is None else "group_calibration_error"
        bins = bin_of(rows.take(members), 5, "quantile")
        errors = np.abs(statistics.calibration[name, label](counts)).mean(axis=1)
        for i, count in enumerate(counts):
            weight = count[people.of_row[members]]
            error = sum(
                abs(np.sum((weight * (score[members] - y[members]))[bins == b])) for b in range(5)
            )
            assert errors[i] == pytest.approx(error / weight.sum(), abs=1e-12)


def test_people_are_drawn_within_groups_with_all_their_rows():
    y, score, group, person = simulated(400, n_groups=3, visits=4)
    shuffled = np.random.default_rng(5).permutation(400)
    y, score, group, person = (column[shuffled] for column in (y, score, group, person))
    _, _, people = prepared(y, score, group, person)
    assert len(people) == 100
    assert len(np.unique(people.of_row * 1000 + person)) == 100  # a renumbering
    counts = people.resample(np.random.default_rng(0), 50)
    for g in range(3):
        drawn = counts[:, people.group == g].sum(axis=1)
        assert (drawn == len(np.unique(person[group == g]))).all()
    assert counts.mean() == 1
    assert counts.var() == pytest.approx(1, abs=0.1)  # nearly Poisson(1)


def test_someone_in_two_groups_is_a_stratum_of_its_own():
    y, score, group, person = simulated(300, visits=2)
    group[person == 7] = [0, 1]
    _, _, people = prepared(y, score, group, person)
    counts = people.resample(np.random.default_rng(0), 20)
    assert (counts[:, people.of_row[person == 7]] == 1).all()  # alone in it
    gap = bootstrap(y, score, group, id=person, n_resamples=20).roc_gap
    assert gap.low < gap.value < gap.high
    assert 0 < gap.p_value <= 1


def test_estimates_are_those_of_the_functions_and_every_metric_is_there():
    y, score, group, _ = simulated(n_groups=3)
    result = bootstrap(y, score, group, n_resamples=50)
    seen = set()
    for name, of, interval in result.items():
        seen.add(name)
        expected = plain(name, of, y, score, group)
        if "calibration" in name:  # given without its upward bias
            assert 0 <= interval.value < expected, (name, of)
        else:
            assert interval.value == pytest.approx(expected, abs=1e-12), (name, of)
        assert interval.low <= interval.value <= interval.high, (name, of)
        assert not interval.reason
    not_metrics = {"bootstrap", "ranking", "roc_curve", "calibration_curve"}
    not_metrics |= {"gini", "kickout", "ks"}  # a lender's, without an interval here
    floats_and_dicts = set(metrics.__all__) - not_metrics
    assert seen == {n for n in floats_and_dicts if n.islower() and not n.endswith("curves")}


def test_same_random_state_same_result():
    data = simulated()[:3]
    one, same, other = (
        bootstrap(*data, n_resamples=40, random_state=state)
        for state in (3, np.random.default_rng(3), 4)
    )
    assert one == same
    assert one.roc_gap.reference.tolist() == same.roc_gap.reference.tolist()
    assert one != other


def test_batches_do_not_change_what_is_computed(monkeypatch):
    data = simulated(n_groups=1)[:3]
    whole = bootstrap(*data, n_resamples=30)
    monkeypatch.setattr("dcem.metrics._statistics._BATCH", 600 * 7)
    # one stratum: the same draws in the same order, seven resamples at a time
    assert bootstrap(*data, n_resamples=30).auc == whole.auc


def test_auc_interval_agrees_with_delong():
    y, score, group, _ = simulated(2000)
    result = bootstrap(y, score, group, n_resamples=2000).group_auc
    for g in (0, 1):
        above, below = score[(group == g) & y], score[(group == g) & ~y]
        won = (above[:, None] > below).astype(float)
        error = np.sqrt(won.mean(1).var(ddof=1) / len(above) + won.mean(0).var(ddof=1) / len(below))
        width = result[g].high - result[g].low
        assert width == pytest.approx(2 * 1.96 * error, rel=0.06)


def test_repeated_rows_of_a_person_add_no_certainty():
    y, score, group, _ = simulated(400)
    ten = [np.repeat(column, 10) for column in (y, score, group, np.arange(400))]
    honest = bootstrap(*ten[:3], id=ten[3]).auc
    assert (honest.low, honest.high) == pytest.approx(
        (bootstrap(y, score, group).auc.low, bootstrap(y, score, group).auc.high), abs=0.005
    )
    naive = bootstrap(*ten[:3]).auc
    assert honest.high - honest.low > 2.5 * (naive.high - naive.low)


def test_the_gap_of_a_fair_score_may_be_zero_and_that_of_an_unfair_one_not():
    fair = bootstrap(*simulated(better=0)[:3], n_resamples=100)
    assert fair.roc_gap.low == 0  # a percentile interval would never reach down to the truth
    assert fair.roc_gap.p_value > 0.05
    unfair = bootstrap(*simulated(4000, better=1)[:3], n_resamples=100)
    for gap in (unfair.roc_gap, unfair.roc_gaps[0, 1]):
        assert gap.p_value == pytest.approx(1 / 101)
        assert gap.expected < gap.low < gap.value < gap.high
        # where curves do not cross, the gap is the AUC difference
        assert gap.low == pytest.approx(-unfair.auc_differences[0, 1].high, abs=0.01)
        assert gap.high == pytest.approx(-unfair.auc_differences[0, 1].low, abs=0.01)


def test_p_value_tells_fair_from_unfair():
    p_values = np.array(
        [
            bootstrap(*simulated(200, seed, better=0)[:3], n_resamples=99).roc_gap.p_value
            for seed in range(40)
        ]
    )
    assert 0.35 < p_values.mean() < 0.65
    assert np.mean(p_values <= 0.1) <= 0.25


def test_the_noise_of_a_small_group_does_not_hide_a_clear_pair():
    y, score, group, _ = simulated(4000, better=0.8)
    group[np.flatnonzero(y)[:14]] = 2  # fourteen positives of a group with another hundred
    group[np.flatnonzero(~y)[:100]] = 2
    result = bootstrap(y, score, group, n_resamples=200)
    assert result.roc_gap.p_value == result.roc_gaps[0, 1].p_value < 0.05
    assert 0 < result.roc_gap.low <= result.roc_gaps[0, 1].value


def test_a_perfect_area_of_few_people_is_not_certain():
    y = np.r_[np.ones(6), np.zeros(30), np.ones(40), np.zeros(60)].astype(bool)
    rng = np.random.default_rng(0)
    score = np.where(np.arange(136) < 36, y * 1.0, rng.normal(size=136) / 9 + 0.2 * y)
    auc = bootstrap(y, score, np.arange(136) < 36, n_resamples=100).group_auc
    assert auc[True].value == auc[True].high == 1
    assert auc[True].low < 0.7


def test_calibration_error_of_a_calibrated_score_is_about_zero():
    rng = np.random.default_rng(0)
    score = rng.uniform(size=(30, 500))
    y = rng.random((30, 500)) < score
    found = [bootstrap(y[i], score[i], n_resamples=60).calibration_error for i in range(30)]
    plain_error = np.mean([metrics.calibration_error(y[i], score[i]) for i in range(30)])
    assert plain_error > 0.04
    assert np.mean([one.value for one in found]) < 0.4 * plain_error
    assert np.median([one.value for one in found]) < 0.01
    assert np.mean([one.low > 0 for one in found]) <= 0.15


# Not estimable is an answer.


def test_a_group_with_one_class_gets_a_reason():
    y, score, group, _ = simulated(n_groups=3)
    names = np.array(["a", "b", "c"])[group]
    y = y & (names != "c")
    with pytest.warns(DataWarning, match="group 'c' has no positives"):
        result = bootstrap(y, score, names, n_resamples=20)
    for interval in (
        result.roc_gap,
        result.group_auc["c"],
        result.worst_group_auc,
        result.auc_differences["a", "c"],
        result.xauc["c", "a"],
    ):
        assert np.isnan([interval.value, interval.low, interval.high]).all()
        assert interval.reason == "group 'c' has no positives"
    assert np.isnan(result.roc_gap.p_value)
    assert result.roc_gaps["a", "b"].reason == ""
    assert result.xauc["a", "c"].reason == ""
    assert result.auc.reason == ""
    assert "no positives" in str(result.group_auc["c"])


def test_too_few_people_have_a_value_but_no_interval():
    y, score, group, _ = simulated()
    few = np.flatnonzero(y & (group == 1))
    y[few[3:]] = False
    with pytest.warns(DataWarning, match="positives from 3 of at least 5 people"):
        auc_1 = bootstrap(y, score, group, n_resamples=20).group_auc[1]
    assert auc_1.value > 0
    assert np.isnan(auc_1.low)
    assert "3 of at least 5" in auc_1.reason


def test_many_rows_of_few_people_are_few_people():
    y, score, group, _ = simulated()
    person = np.where(group == 1, -1 - np.arange(600) % 4, np.arange(600))
    with pytest.warns(DataWarning, match="group 1 has positives from 4"):
        result = bootstrap(y, score, group, id=person, n_resamples=20)
    assert result.group_auc[0].reason == ""


def test_without_groups_and_without_probabilities():
    y, score, _, _ = simulated()
    result = bootstrap(y, 10 * score, n_resamples=20)
    assert result.auc.reason == ""
    assert list(result.group_auc) == ["all"]
    assert result.roc_gap.reason == "there is only one group"
    assert result.calibration_error.reason == "scores are not probabilities"
    assert not result.roc_gaps


def test_results_print_what_a_reader_needs():
    interval = Estimate(0.8123, 0.7901, 0.8342)
    assert str(interval) == "0.812 [0.790, 0.834]"
    result = bootstrap(*simulated()[:3], n_resamples=20)
    assert "equal curves 0.0" in str(result.roc_gap)
    assert len(repr(result).splitlines()) == len(list(result.items()))
    y, score, group = simulated()[:3]
    named = bootstrap(y, score, [f"people of group {g}" for g in group], n_resamples=20)
    lines = zip(repr(named).splitlines(), named.items(), strict=True)
    starts = {line.index(str(interval)) for line, (_, _, interval) in lines}
    assert len(starts) == 1  # long names push no number out of its column
    with pytest.raises(AttributeError):
        interval.low = 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "means", "spread", "prevalence"),
    [
        (400, (1, 1), 1, (0.3, 0.3)),
        (2000, (1, 1), 1, (0.3, 0.1)),
        (2000, (1, 1.2), 1, (0.3, 0.3)),
        (2000, (1, 1.3), 1.6, (0.3, 0.3)),
        (400, (1, 2), 1, (0.3, 0.3)),
    ],
)
def test_intervals_cover_the_truth(n, means, spread, prevalence):
    """Two normal classes per group, where the true gap and AUCs are known; 95 % intervals."""
    cut = norm.isf((np.arange(10**5) + 0.5) / 10**5)
    gap = np.mean(np.abs(norm.sf(cut - means[0]) - norm.sf((cut - means[1]) / spread)))
    aucs = norm.cdf(means[0] / np.sqrt(2)), norm.cdf(means[1] / np.sqrt(1 + spread**2))

    def draw(seed):
        rng = np.random.default_rng(seed)
        group = rng.integers(0, 2, n)
        y = rng.random(n) < np.array(prevalence)[group]
        noise = rng.normal(size=n) * np.where(y & (group == 1), spread, 1)
        return y, noise + y * np.array(means)[group], group

    results = [bootstrap(*draw(seed), n_resamples=300, random_state=seed) for seed in range(200)]

    def covers(truth, intervals):
        return np.mean([interval.low <= truth <= interval.high for interval in intervals])

    difference = covers(aucs[0] - aucs[1], [result.auc_differences[0, 1] for result in results])
    assert 0.9 <= difference <= 0.99
    assert covers(gap, [result.roc_gap for result in results]) >= 0.9
    assert covers(min(aucs), [result.worst_group_auc for result in results]) >= 0.9
    excluded = np.mean([result.roc_gap.low > 0 for result in results])
    assert excluded <= 0.1 if gap < 1e-9 else excluded >= 0.9 if gap > 0.1 else True


def test_errors_of_bins_and_what_chance_alone_would_make_of_them():
    """Mean over bins of |.| is the calibration error; by chance, outcomes vary as coins do."""
    rng = np.random.default_rng(0)
    n, n_bins = 200, 4
    score, weight = rng.random(n), rng.uniform(0.5, 2, n)
    rows = Checked(rng.random(n) < score, score, weight)
    error = BinnedError(rows, GroupedPeople(np.zeros(n, int)), np.arange(n), n_bins)
    found = error(np.ones((1, n), int))[0]
    bins = bin_of(rows, n_bins, "quantile")
    off = np.bincount(bins, weight * (score - rows.positive)) / weight.sum()
    np.testing.assert_allclose(found, n_bins * off)
    drawn = error.by_chance(rng, 4000)
    expected = np.bincount(bins, weight**2 * score * (1 - score)) * (n_bins / weight.sum()) ** 2
    np.testing.assert_allclose(drawn.var(axis=0), expected, rtol=0.15)
    assert np.abs(drawn.mean(axis=0)).max() < 0.01


def test_chance_knows_how_far_the_rows_of_a_person_go_together():
    rng = np.random.default_rng(0)
    n, visits = 150, 4
    score = np.repeat(rng.uniform(0.1, 0.9, n), visits)
    person = np.repeat(np.arange(n), visits)
    spread = []
    for luck in (rng.random(n * visits), np.repeat(rng.random(n), visits)):
        rows = Checked(luck < score, score, None)
        people = GroupedPeople(np.zeros(len(score), int), person)
        drawn = BinnedError(rows, people, np.arange(len(score)), 1).by_chance(rng, 1000)
        spread.append(float(drawn.std()))
    alone = np.sqrt(np.mean(score * (1 - score)) / len(score))
    assert spread == pytest.approx([alone, alone * np.sqrt(visits)], rel=0.15)


def test_groups_that_are_told_apart_perfectly_have_no_gap_by_chance():
    y, _, group, _ = simulated(200)
    gap = bootstrap(y, y.astype(float), group, n_resamples=50).roc_gap
    assert (gap.value, gap.low, gap.p_value) == (0, 0, 1)
