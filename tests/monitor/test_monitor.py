"""Monitoring against plain pandas and SciPy, and its verdicts in worlds that are known."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import chi2_contingency
from sklearn.linear_model import LogisticRegression

from dcem.compare.run import compare_methods
from dcem.estimation import measures
from dcem.estimation.outcomes import masses
from dcem.estimation.results import EVERYBODY
from dcem.methods import make
from dcem.metrics.estimate import Estimate
from dcem.metrics.plain import from_plain, to_plain
from dcem.monitor import Baseline
from dcem.monitor.baseline import (
    GROUP,
    UNLIKE,
    Bins,
    _column_bins,
    _shared,
    column_features,
    design,
)
from dcem.monitor.findings import with_verdict
from dcem.monitor.run import _pearson, holm, stability
from dcem.report.from_json import read_result
from dcem.report.to_markdown import to_markdown
from dcem.scoring import TableModel, fit_table, monitor_model
from dcem.table import Roles, read_table
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning, InputError
from dcem.text import percent

pytestmark = pytest.mark.usefixtures("linear_models")

ROLES = Roles(label="y", tested="tested", group="sex", time="day")


def table(
    n: int, seed: int, *, shift=0.0, policy=0.0, relation=0.0, of_m=0.0, level=0.0, late=False
):
    """Who arrives, who is tested, what is found: each can change by itself."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + np.array([shift, 0, 0])
    sex = rng.choice(["f", "m"], n)
    ward = rng.choice(["er", "icu", "rare"], n, p=[0.6, 0.397, 0.003])
    day = rng.integers(0, 365, n)
    slope = 1 - relation - of_m * (sex == "m")
    y = rng.random(n) < expit(-1 + level + X[:, 0] * slope + 0.7 * X[:, 1])
    chance = expit(0.2 + 0.6 * X[:, 0] - 0.5 * (sex == "m") + policy)
    tested = rng.random(n) < np.where(late & (day > 340), 0.1, 1) * chance
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.loc[rng.random(n) < 0.1, "c"] = np.nan
    return frame.assign(
        ward=ward, sex=sex, day=day, tested=tested * 1, y=np.where(tested, y, np.nan).astype(float)
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> TableModel:
    old = read_table(table(2500, 0), ROLES)
    estimator = make("ensemble", parts=("linear",), random_state=0)
    estimator.fit_problem(old.problem)
    made = TableModel(estimator, old.encoder, old.roles, old.source).explained(old)
    params = {"parts": ("linear",)}
    judged = compare_methods(old.problem, ["ensemble"], planted=0, n_resamples=20, params=params)
    folder = tmp_path_factory.mktemp("model") / "m"
    made.save(folder, judged)
    return TableModel.load(folder)


def watched(model: TableModel, **world):
    new = read_table(table(2500, 1, **world), model.roles_of_new, encoder=model.encoder)
    return monitor_model(model, new)


def keys(found) -> set[str]:
    return {finding.key for finding in found.findings}


# -- numbers -----------------------------------------------------------------------------------


def test_weights_count_in_both_tables_as_what_they_tell():
    """Heavy weights make shares vary more, then as now: two tables of one world look alike."""
    found = []
    for seed in range(6):
        old, new = (
            table(400, 2 * seed + part).assign(w=np.random.default_rng(seed).lognormal(0, 1.2, 400))
            for part in (0, 1)
        )
        read = read_table(old, replace(ROLES, weight="w"))
        made = TableModel(
            make("tested-only:linear").fit_problem(read.problem),
            *(read.encoder, read.roles, read.source),
        ).explained(read)
        weight = read.problem.weights
        size = made.baseline.effective_sample_size
        assert size == pytest.approx(weight.sum() ** 2 / (weight @ weight))
        again = read_table(new, made.roles_of_new, encoder=made.encoder)
        found += [one.p_value for one in monitor_model(made, again).columns]
    assert size < 200
    assert np.nanmean(np.array(found) < 0.05) < 0.05


def test_the_test_of_a_column_is_that_of_a_contingency_table():
    before, now = np.array([120, 60, 20]), np.array([90, 80, 40])
    expected = chi2_contingency(np.stack([before, now]), correction=False).pvalue
    n, m = before.sum(), now.sum()
    assert _pearson(before / n, now / m, n, m) == pytest.approx(expected)


def test_the_stability_index_is_its_definition_in_large_samples():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.3, 0.3])
    assert stability(p, q, 1e9, 1e9) == pytest.approx(((q - p) * np.log(q / p)).sum())


def test_holm_is_its_definition():
    p = np.array([0.04, 0.01, np.nan, 0.03])
    np.testing.assert_allclose(holm(p), [0.06, 0.03, np.nan, 0.06])


def test_the_calibration_slope_is_that_of_a_logistic_regression():
    rng = np.random.default_rng(0)
    score = expit(rng.normal(size=3000))
    y = (rng.random(3000) < expit(0.3 + 0.6 * logit(score))).astype(float)
    with pytest.warns(DataWarning):
        problem = SelectiveLabels.from_arrays(score[:, None], y, tested=np.ones(3000))
    found = measures.calibration_slope(score, masses("tested", problem))
    plain = LogisticRegression(C=1e9, tol=1e-10).fit(logit(score)[:, None], y)
    assert found.value == pytest.approx(plain.coef_[0, 0], rel=1e-4)
    X = np.stack([np.ones(3000), logit(score)], axis=1)
    p = plain.predict_proba(logit(score)[:, None])[:, 1]
    error = np.sqrt(np.linalg.inv((X * (p * (1 - p))[:, None]).T @ X)[1, 1])
    assert found.standard_error(None) == pytest.approx(error, rel=0.1)


def test_the_model_of_testing_is_a_ridge_regression(model):
    old = read_table(table(2500, 0), ROLES).problem
    then = model.baseline
    X = design(model.estimator.standardized(old.X), old, then.inputs, then.groups)
    plain = LogisticRegression(C=1.0, tol=1e-8, max_iter=500).fit(X[:, 1:], old.tested)
    np.testing.assert_allclose(then.coefficients[1:], plain.coef_[0], atol=2e-3)
    p = then.expected(model.estimator.standardized(old.X), old)[0]
    assert p.mean() == pytest.approx(old.tested.mean(), abs=1e-3)


def test_rates_are_plain_shares(model):
    frame = table(2500, 0)
    by_sex = frame.groupby("sex")["tested"].mean()
    assert model.baseline.tested["f"].value == pytest.approx(by_sex["f"], abs=1e-5)
    assert model.baseline.positive["m"].value == pytest.approx(
        frame[frame["sex"] == "m"]["y"].mean(), abs=1e-5
    )
    assert model.baseline.period == ("1", "363")


# -- what is remembered ------------------------------------------------------------------------


def test_what_is_remembered_survives_a_file_and_holds_no_small_bin(model):
    plain = json.loads(json.dumps(to_plain(model.baseline), allow_nan=False))
    again = from_plain(Baseline, plain)
    assert again.columns == model.baseline.columns
    np.testing.assert_array_equal(again.covariance, model.baseline.covariance)
    assert again.judged.auc.keys() == {"everybody", "f", "m"}
    for bins in again.columns:
        *shares, last = np.array(bins.share) * again.people
        assert min(shares) >= 9.99
        assert last == 0 or last >= 9.99 or round(last, 1) == 5  # nobody, ten, or one to nine
    ward = next(one for one in again.columns if one.column == "ward")
    assert ward.names[-1] == "others"
    assert ward.share[-1] * again.people == pytest.approx(5, abs=0.01)
    assert not any("rare" in name for name in ward.names)  # seven people
    missing = next(one for one in again.columns if one.column == "c")
    assert missing.names[-1] == "missing"
    assert missing.share[-1] == pytest.approx(table(2500, 0)["c"].isna().mean(), abs=1e-5)


def test_shares_do_not_tell_how_many_people_the_smallest_bin_holds():
    """Whoever reads them can think of every number from one to nine."""
    bins = Bins(GROUP, (), ("a", "b", "others"), (), ())
    everybody = np.arange(400)
    y = np.where(everybody % 3, everybody % 2, np.nan)
    problem = SelectiveLabels.from_arrays(everybody[:, None], y)

    def shares(of_a: int, rare: int) -> tuple[float, ...]:
        group = np.repeat([0, 1, 2], [of_a, 400 - of_a - rare, rare])
        return _shared(bins, group, problem).share

    told = shares(223, 4)
    assert told[-1] * 400 == pytest.approx(5)
    assert sum(told) == pytest.approx(1, abs=1e-5)
    assert told[0] == pytest.approx(223 / 400, abs=0.02)
    for rare in range(1, 10):
        assert told in [shares(of_a, rare) for of_a in range(215, 231)]


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
def test_the_share_that_is_told_is_the_one_there_was():
    """Not the one that is expected of a level that chance may have made frequent."""
    rng = np.random.default_rng(0)
    old, new = (
        table(1500, seed).assign(site=rng.choice([f"s{i}" for i in range(30)], 1500))
        for seed in (0, 1)
    )
    read = read_table(old, ROLES)
    made = TableModel(
        make("tested-only:linear").fit_problem(read.problem),
        *(read.encoder, read.roles, read.source),
    ).explained(read)
    found = monitor_model(made, read_table(new, made.roles_of_new, encoder=made.encoder))
    site = next(one for one in found.columns if one.column == "site")
    bins = next(one for one in made.baseline.columns if one.column == "site")
    assert site.then == bins.share[bins.names.index(site.bin)]


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
def test_none_tested_of_a_few_people_is_no_change():
    """Two of forty were expected: none happens in every eighth table."""
    old, new = (table(3000, seed, policy=-2.9) for seed in (0, 1))
    read = read_table(old, ROLES)
    made = TableModel(
        make("tested-only:linear").fit_problem(read.problem),
        *(read.encoder, read.roles, read.source),
    ).explained(read)
    few = new[(new["sex"] == "m") & (new["tested"] == 0)][:40]
    new = pd.concat([new[new["sex"] == "f"], few], ignore_index=True)
    found = monitor_model(made, read_table(new, made.roles_of_new, encoder=made.encoder))
    tested = {one.of: one for one in found.about("tested")}
    assert 1 < 40 * tested["m"].then.value < 3
    assert not tested["m"].clear


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
@pytest.mark.parametrize("left", [0, 15])
def test_a_group_that_is_hardly_tested_any_more_is_named(model, left):
    new = table(2500, 1)
    no_more = new.index[(new["sex"] == "m") & (new["tested"] == 1)][left:]
    new.loc[no_more, ["tested", "y"]] = [0, np.nan]
    found = monitor_model(model, read_table(new, model.roles_of_new, encoder=model.encoder))
    told = next(f for f in found.findings if f.key == "who-is-tested")
    assert told.groups == ("m",)
    assert "m" not in found.positive


def test_a_model_that_remembers_nothing_is_refused(model):
    new = read_table(table(300, 1), model.roles_of_new, encoder=model.encoder)
    with pytest.raises(InputError, match=r"fit it again .*explained\(table\)"):
        monitor_model(replace(model, baseline=None), new)


def test_a_model_watched_on_its_own_table_is_told(model):
    own = read_table(table(2500, 0), model.roles_of_new, encoder=model.encoder)
    with pytest.warns(DataWarning, match="fitted to this very table"):
        monitor_model(model, own)


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
def test_shares_of_groups_are_withheld_beside_a_small_one(model):
    frame = table(2500, 0, policy=-1.0)
    frame.loc[:5, "sex"] = "x"
    new = read_table(frame, model.roles_of_new, encoder=model.encoder)
    found = monitor_model(model, new)
    tested = {one.of: one for one in found.about("tested")}
    assert "withheld" in tested["m"].now.reason  # one more than the small one, the smaller
    assert not tested["m"].difference.estimable  # from `then` and it, `now` would follow
    assert tested["m"].clear  # an alarm all the same
    told = next(f for f in found.findings if f.key == "who-is-tested")
    assert told.groups == ("f", "m")
    assert "group m withheld" in told.text
    assert tested["f"].difference.value < 0  # fewer than were expected
    shares = [percent(one.value) for one in (tested["everybody"].now, tested["everybody"].then)]
    assert told.headline.endswith(
        "everybody {}, expected from the earlier decisions {}".format(*shares)
    )
    (before, _), now = found.positive["f"], [one.now for one in tested.values()]
    assert before.estimable
    assert sum(one.estimable for one in now) == len(now) - 1
    assert tested["everybody"].now.estimable
    small = next(finding for finding in found.findings if finding.key == "small-groups")
    assert small.groups == ("x",)
    assert "group x" in small.text  # the first screen may show the text alone


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
def test_the_index_does_not_tell_how_many_people_a_small_bin_holds(model):
    told = []
    for few in (1, 4, 9):
        frame = table(2500, 0).assign(sex=np.where(np.arange(2500) < few, "m", "f"))
        found = monitor_model(model, read_table(frame, model.roles_of_new, encoder=model.encoder))
        told.append(next(one for one in found.columns if one.column == GROUP))
    assert len({one.index for one in told}) == 1
    for one in told:
        assert np.isnan([one.p_value, one.now]).all()
        assert one.clear  # an alarm all the same
        assert one.index == pytest.approx(np.log(500) / 2, abs=0.2)  # as if they were five


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
def test_what_was_never_there_is_called_by_its_name(model):
    frame = table(2500, 1)
    frame = frame[(frame["sex"] == "m") | (np.arange(2500) < 10)]  # a group is nearly gone
    frame["a"] = frame["a"].where(np.arange(len(frame)) % 3 > 0)  # a number no longer recorded
    frame["ward"] = frame["ward"].where(np.arange(len(frame)) % 4 > 0, "annexe")  # a new level
    found = monitor_model(model, read_table(frame, model.roles_of_new, encoder=model.encoder))
    column = {one.column: one for one in found.columns}
    assert (column["a"].bin, column["a"].then, column["a"].clear) == ("missing", 0, True)
    assert column["a"].now == pytest.approx(1 / 3, abs=0.01)
    assert (column["ward"].bin, column["ward"].clear) == ("others", True)
    assert column["ward"].now == pytest.approx(1 / 4, abs=0.02)
    assert column["(group)"].clear
    assert np.isnan(column["(group)"].now)  # under ten people
    assert column["(group)"].said[1] in ("fewer than 10 people", "all but fewer than 10 people")


@pytest.mark.parametrize("values", [("no", "yes"), ("1", "2")])
def test_two_values_are_bins_by_their_names(values):
    frame = table(300, 2).assign(two=np.where(np.arange(300) % 3 > 0, *values))
    read = read_table(frame, ROLES)
    column = next(one for one in _column_bins(read.problem, read.encoder) if one.column == "two")
    assert column.names[:2] == values
    assert column.share[:2] == pytest.approx((2 / 3, 1 / 3), abs=1e-5)


@pytest.mark.parametrize(("levels", "first"), [(120, 0.3), (30, 0.0)])
def test_levels_that_chance_made_frequent_do_not_seem_to_become_rare(levels, first):
    """Of many equal levels the 20 most frequent of a table are less frequent in the next."""
    alarms, seen = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        share = np.full(levels, (1 - first) / levels)
        share[0] += first  # one is frequent indeed
        frame = table(3000, seed).assign(
            school=rng.choice([f"s{i}" for i in range(levels)], 3000, p=share)
        )
        read = read_table(frame, ROLES)
        place, own = next(
            pair
            for pair in column_features(read.encoder, read.problem.X)
            if pair[0].name == "school"
        )
        bins = next(b for b in _column_bins(read.problem, read.encoder) if b.column == "school")
        kept = [int(name[1:]) for name in bins.names[:-2]]
        assert len(kept) == 20
        assert not first or kept[0] == 0
        for changed, called in (
            (share, alarms),
            (share[::-1] * np.linspace(0.5, 1.5, levels), seen),
        ):
            chance = changed[kept] / changed.sum()
            next_one = rng.multinomial(3000, [*chance, 1 - chance.sum(), 0]) / 3000
            before = bins.expected(place, 3000, next_one)
            assert before.sum() == pytest.approx(1, abs=1e-4)
            called.append(_pearson(before, next_one, 3000, 3000) < 0.0125)
        assert bins.share == pytest.approx(
            np.bincount(bins.place(place, own), minlength=len(bins.names)) / 3000, abs=1e-5
        )
    assert sum(alarms) <= 1
    assert all(seen)


# -- verdicts ----------------------------------------------------------------------------------


def test_nothing_changed_and_the_model_holds(model):
    found = watched(model)
    assert found.answer == "holds"
    assert keys(found) == {"holds"}


@pytest.mark.parametrize(
    ("world", "key", "verdict"),
    [
        ({"shift": 0.6}, "who-comes", "holds"),
        ({"policy": -0.8}, "who-is-tested", "holds"),
        ({"level": 0.8}, "recalibrate", "recalibrate"),
        ({"relation": 1.0}, "refit", "refit"),
    ],
)
def test_each_change_is_called_by_its_name(model, world, key, verdict):
    found = watched(model, **world)
    assert key in keys(found)
    assert found.answer == verdict


def test_nobody_is_told_to_rank_people_by_what_ranks_them_by_chance(model):
    """Also where nobody judged the model, so that nothing can be said to have become worse."""
    unjudged = replace(model, baseline=replace(model.baseline, judged=None))
    for level in (0.0, 1.5):
        frame = table(2500, 1, level=level)
        known = frame["y"].notna()
        frame.loc[known, "y"] = np.random.default_rng(0).permutation(frame.loc[known, "y"])
        new = read_table(frame, unjudged.roles_of_new, encoder=unjudged.encoder)
        found = monitor_model(unjudged, new)
        assert found.ranks_by_chance
        assert found.answer == "refit"
        page = found.to_markdown()
        assert "No: it does not clearly rank people better than chance" in page
        assert "only to rank people" not in page
        assert "and then" not in page


@pytest.mark.usefixtures("all_models")
def test_what_is_said_of_risks_is_how_far_they_are_off_now(model):
    """Not how much that changed; and risks that were off and have come right are no alarm."""
    off = Estimate(0.3, 0.28, 0.32)
    judged = replace(model.baseline.judged, calibration_in_the_large={EVERYBODY: off})
    once_off = replace(model, baseline=replace(model.baseline, judged=judged))
    calibration = watched(once_off).about("calibration")[0]
    assert calibration.clear
    assert watched(once_off).answer == "holds"
    changed = watched(model, level=0.8)
    verdict = next(one for one in changed.findings if one.key == "recalibrate")
    now = changed.about("calibration")[0].now.value
    assert (
        f"everybody: risks are {-100 * now:.1f} percentage points too low" in verdict.text.lower()
    )


@pytest.mark.parametrize(("level", "said"), [(1.0, "more"), (-1.0, "less")])
def test_it_says_whether_the_outcome_is_more_common_or_less(model, level, said):
    found = watched(model, level=level)
    headline = next(one.headline for one in found.findings if one.key == "what-is-found")
    assert headline == f"The outcome is {said} common than it was"


def test_columns_made_here_are_not_called_like_those_of_the_table(model):
    found = watched(model, shift=2.0)
    comes = next(finding for finding in found.findings if finding.key == "who-comes")
    assert {UNLIKE, "a"} <= comes.values.keys()
    assert UNLIKE not in comes.headline + comes.text


@pytest.mark.usefixtures("all_models")
def test_one_group_that_is_no_longer_served_is_named(model):
    found = watched(model, of_m=1.3)
    clear = {(one.about, one.of) for one in found.changes if one.clear}
    assert {("auc", "m"), ("slope", "m")} <= clear
    assert not {one for one in clear if one[1] == "f"}
    verdict = next(finding for finding in found.findings if finding.key == "refit")
    assert "m" in verdict.groups


def test_risks_that_are_off_in_a_group_are_told_though_they_were_so_before(model):
    found = watched(model)
    off = Estimate(-0.14, -0.19, -0.09)
    changes = [
        replace(one, now=off) if (one.about, one.of) == ("calibration", "m") else one
        for one in found.changes
    ]
    told = with_verdict(replace(found, changes=tuple(changes)), model.baseline, "")
    assert told.answer == "holds"
    assert (told.findings[0].key, told.findings[0].groups) == ("groups-off", ("m",))
    verdict = told.document().opening.verdict
    assert (verdict.severity, verdict.answer) == ("caution", "Not as a risk for group m")
    assert "too low for group m (-14.0 points" in verdict.sentences[0]
    assert verdict.sentences[1].startswith(f"AUC {found.about('auc')[0].now:score}")
    assert not [one for one in told.findings if "no longer holds" in one.headline]


def test_what_is_off_for_an_attribute_is_seen_though_it_is_crossed_with_another():
    """Risks of the old are off in every site; each site has too few of them to tell."""
    rng = np.random.default_rng(3)

    def crossed(n: int, off: float) -> pd.DataFrame:
        a, old = rng.normal(size=n), rng.random(n) < 0.3
        y, tested = rng.random(n) < expit(a - 1 + off * old), rng.random(n) < expit(a)
        return pd.DataFrame(
            {
                "a": a,
                "age": np.where(old, "old", "young"),
                "site": rng.choice(["north", "east", "south", "west"], n),
                "y": np.where(tested, y, np.nan),
            }
        )

    read = read_table(crossed(2000, 0.0), Roles(label="y", group=("site", "age")))
    estimator = make("ensemble", parts=("linear",), random_state=0).fit_problem(read.problem)
    made = TableModel(estimator, read.encoder, read.roles, read.source).explained(read)
    for off, named in ((0.0, set()), (0.6, {"group old of age"})):
        new = read_table(crossed(1200, off), made.roles_of_new, encoder=made.encoder)
        found = monitor_model(made, new)
        assert len(found.by_attribute) == 6
        told = {who for one in found.findings if one.key == "groups-off" for who in one.groups}
        assert told == named
        assert ("Not as a risk" in found.document().opening.verdict.answer) == bool(named)


def test_only_a_lower_auc_is_asked_for(model):
    better = watched(model, relation=-2.0)
    auc = better.about("auc")[0]
    assert auc.difference.low > 0
    assert (auc.p_value, auc.clear) == (pytest.approx(1.0), False)
    slope = better.about("slope")[0]
    assert slope.now.value > 1.2
    assert slope.then.value == 1
    assert np.isnan(slope.then.low)  # it is so by construction
    assert slope.difference.low > 0


def test_a_prevalence_that_was_stated_does_not_hide_a_change():
    """Compared with the old rate, risks are calibrated whatever happens: that is not an answer."""
    roles = replace(ROLES, prevalence=".30-.35")
    old = read_table(table(1500, 0), roles)
    estimator = make("ensemble", parts=("linear",), random_state=0).fit_problem(old.problem)
    made = TableModel(estimator, old.encoder, old.roles, old.source).explained(old)
    for level, answer in ((0.0, "holds"), (1.2, "cannot tell")):
        found = watched(made, level=level)
        assert found.answer == answer
        assert "stated-then" in keys(found)
    new = read_table(
        table(2500, 1, level=1.2),
        replace(made.roles_of_new, prevalence=".55-.6"),
        encoder=made.encoder,
    )
    told = monitor_model(made, new)
    assert told.answer == "recalibrate"
    assert "stated-then" not in keys(told)


def test_late_results_are_not_taken_for_a_change_of_testing(model):
    found = watched(model, late=True)
    assert "late-results" in keys(found)
    assert "who-is-tested" not in keys(found)
    assert found.rows_judged < found.rows


def beyond_reach(frame: pd.DataFrame) -> pd.DataFrame:
    """The same people, of whom those at low risk are not tested."""
    out = frame["a"] < -0.4
    return frame.assign(tested=frame["tested"] * ~out, y=frame["y"].mask(out))


def test_those_within_reach_are_not_held_against_everybody(model):
    """People at low risk are no longer tested: all that was found then is of other people."""
    frame = beyond_reach(table(2500, 1))
    new = read_table(frame, model.roles_of_new, encoder=model.encoder)
    found = monitor_model(model, new)
    assert model.baseline.reach[EVERYBODY] == model.baseline.judged.reach == 1
    assert found.answer == "cannot tell"
    assert {"cannot-tell", "who-is-tested"} <= keys(found)
    assert not {"refit", "recalibrate", "what-is-found"} & keys(found)
    for about in ("prevalence", "auc", "calibration", "slope"):
        everybody = found.about(about)[0]
        assert everybody.now.estimable
        assert not everybody.difference.estimable
        assert "of the people now and reached 100 % then" in everybody.difference.reason
    assert "tests reach" in found.findings[0].text
    assert "holds" not in found.to_markdown().splitlines()[0]
    # the same where nobody judged it, and where it is found to rank them by chance
    known = frame["y"].notna()
    frame.loc[known, "y"] = np.random.default_rng(0).permutation(frame.loc[known, "y"])
    unjudged = replace(model, baseline=replace(model.baseline, judged=None))
    for one in (model, unjudged):
        new = read_table(frame, one.roles_of_new, encoder=one.encoder)
        assert monitor_model(one, new).answer == "cannot tell"


def test_the_same_people_within_reach_are_compared(model):
    old = read_table(beyond_reach(table(2500, 0)), ROLES)
    made = TableModel(
        make("tested-only:linear").fit_problem(old.problem), old.encoder, old.roles, old.source
    ).explained(old)
    assert 0.5 < made.baseline.reach[EVERYBODY] < 0.8
    new = read_table(beyond_reach(table(2500, 1)), made.roles_of_new, encoder=made.encoder)
    found = monitor_model(made, new)
    assert found.answer == "holds"
    assert found.about("prevalence")[0].difference.estimable
    reach = {name: one + 0.025 for name, one in made.baseline.reach.items()}  # chance, and 2 %
    near = replace(made, baseline=replace(made.baseline, reach=reach))
    assert monitor_model(near, new).answer == "holds"
    now_all = read_table(table(2500, 1), made.roles_of_new, encoder=made.encoder)
    assert monitor_model(made, now_all).answer == "cannot tell"


def test_what_older_models_remember_says_nothing_of_reach(model):
    plain = to_plain(model.baseline)
    del plain["reach"], plain["judged"]["reach"]
    older = replace(model, baseline=from_plain(Baseline, plain))
    assert older.baseline.reach == {}
    assert watched(older).answer == "holds"


def test_people_of_a_new_group_are_expected_to_be_tested_as_all_were(model):
    """They were taken for those of the first group, in the numbers of everybody too."""
    frame = table(2500, 1)
    new = frame.assign(sex=np.where(np.arange(2500) % 2, "x", frame["sex"]))
    read = read_table(new, model.roles_of_new, encoder=model.encoder)
    standard = model.estimator.standardized(read.problem.X)
    then, of = model.baseline, read.problem.group_names.index("x")
    p, slopes = then.expected(standard, read.problem)
    each = [
        expit(design(standard, read.problem, then.inputs, then.groups, name) @ then.coefficients)
        for name in then.groups
    ]
    shares = next(one for one in then.columns if one.column == GROUP)
    mine, own = read.problem.group == of, dict(zip(shares.names, shares.share, strict=True))
    expected = np.average(each, axis=0, weights=[own[name] for name in then.groups])
    assert p[mine] == pytest.approx(expected[mine])
    step = 1e-6 * np.eye(len(then.coefficients))[-1]
    moved = replace(then, coefficients=then.coefficients + step)
    change = (moved.expected(standard, read.problem)[0] - p) / 1e-6
    assert slopes[:, -1] == pytest.approx(change, abs=1e-5)
    everybody = monitor_model(model, read).about("tested")[0]
    assert not everybody.clear


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
def test_rows_of_weight_0_are_nobody(model):
    kept = np.arange(2500) % 5 > 0
    frame = table(2500, 1)
    read = read_table(frame, model.roles_of_new, encoder=model.encoder)
    weighted = replace(read.problem, weight=kept * 1.0)
    some = replace(read, problem=weighted.subset(kept))
    found = monitor_model(model, replace(read, problem=weighted))
    assert found.rows == kept.sum()
    pd.testing.assert_frame_equal(found.to_frame(), monitor_model(model, some).to_frame())


def test_too_few_tests_cannot_tell(model):
    few = table(80, 5)
    found = monitor_model(model, read_table(few, model.roles_of_new, encoder=model.encoder))
    assert found.answer == "cannot tell"


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
@pytest.mark.parametrize("results", ["none", "negative"])
def test_before_results_are_in_it_is_told_who_comes(model, results):
    frame = table(600, 5, shift=0.6)
    frame["y"] = frame["y"] * 0 if results == "negative" else np.nan
    frame["tested"] *= results == "negative"
    found = monitor_model(model, read_table(frame, model.roles_of_new, encoder=model.encoder))
    assert found.answer == "cannot tell"
    assert "who-comes" in keys(found)
    with pytest.raises(InputError, match="tested"):
        read_table(frame, ROLES)


@pytest.mark.usefixtures("all_models")
def test_tested_rows_without_a_result_count_as_tested_and_in_no_other_number(model):
    whole = table(2500, 1)
    late = (whole["tested"] == 1) & (np.arange(2500) % 3 == 0)
    frames = (
        whole.assign(y=whole["y"].mask(late)),
        whole.assign(y=whole["y"].mask(late), tested=whole["tested"].mask(late, 0)),
    )
    with pytest.warns(DataWarning, match="still to come"):
        waiting = read_table(frames[0], model.roles_of_new, encoder=model.encoder)
    untested = read_table(frames[1], model.roles_of_new, encoder=model.encoder)
    found, other = monitor_model(model, waiting), monitor_model(model, untested)
    assert found.about("tested")[0].now.value == pytest.approx(whole["tested"].mean())
    assert "who-is-tested" not in keys(found)
    assert "who-is-tested" in keys(other)
    assert found.about("auc") == other.about("auc")
    assert str(late.sum()) in found.configuration["results not in yet"]
    with pytest.raises(InputError, match="until"):
        read_table(frames[0], ROLES)
    with pytest.raises(InputError, match="without a result"):
        fit_table(waiting, start=model)


def test_rows_of_one_day_may_be_looked_at(model):
    new = read_table(table(600, 5).assign(day=400), model.roles_of_new, encoder=model.encoder)
    assert monitor_model(model, new).rows_judged == 600


def test_it_writes_itself(model):
    found = watched(model)
    assert set(found.to_frame()["about"]) >= {"column", "tested", "prevalence", "auc", "slope"}
    assert json.loads(found.to_json())["verdict"]["severity"] == "fine"
    assert "Who is tested?" in found.to_markdown()


def test_a_saved_look_is_the_same_page_again(model, tmp_path):
    found = watched(model, shift=0.6, late=True)
    path = tmp_path / "look.json"
    path.write_text(found.to_json())
    again = read_result(path)
    assert to_markdown(again) == found.to_markdown()


def test_in_the_words_of_a_field_nothing_is_approved_that_is_not(model):
    page = to_markdown(watched(model).document(), "credit")
    assert "P-values of no change" in page
    assert "(unlike anybody approved)" in page
