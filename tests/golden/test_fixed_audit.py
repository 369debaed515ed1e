"""Class: exact. Audit and monitoring: one test for each repair that changed a number."""

import names
import numpy as np
import pandas as pd
import pytest
from made_rows import expit

pytestmark = pytest.mark.filterwarnings("ignore")


def people(n, seed, groups, shares, shift=None, **facts):
    """People of these groups; testing follows a feature, and `shift` for each group."""
    rng = np.random.default_rng(seed)
    x, code = rng.normal(size=(n, 2)), rng.choice(len(groups), n, p=shares)
    shift = np.zeros(len(groups)) if shift is None else np.array(shift)
    tested = rng.random(n) < expit(-0.4 + 0.5 * x[:, 0] + shift[code])
    y = np.where(tested, rng.random(n) < 0.4, np.nan)
    return names.arrays(x, y, group=np.array(groups)[code], **facts)


# -- audit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [1.0, -1.0])
def test_others_do_not_differ_because_one_group_stands_out(shift):
    """Where one of several groups was tested more, the audit called the others tested less."""
    problem = people(3000, 3, list("abcd"), [0.4, 0.2, 0.2, 0.2], [shift, 0, 0, 0])
    found = names.audit_of(problem)
    assert names.tested_differently(found) == {"a"}
    assert max(found.testing, key=lambda rate: abs(rate.difference.value)) is found.testing[0]


@pytest.mark.parametrize("visits", [1, 5])
def test_a_group_of_fifty_of_whom_nobody_is_tested(visits):
    """Claims by chance: groups of about 50 people, of whom few or none were tested at 2 %."""
    rng = np.random.default_rng(0)
    n = 3000
    group = np.where(np.arange(n) < 50, "small", "large")
    tested = (rng.random(n) < 0.02) & (group == "large")
    rows = np.repeat(np.arange(n), visits if visits > 1 else 1)
    y = np.where(tested, rng.random(n) < 0.4, np.nan)[rows]
    problem = names.arrays(rng.normal(size=(n, 1))[rows], y, group=group[rows], id=rows.astype(str))
    assert not names.tested_differently(names.audit_of(problem))


def test_two_comparisons_with_a_reference_are_corrected():
    """Groups compared with a reference: p-values were not corrected for two comparisons."""
    shift = [0, -0.22, 0.22]
    three = people(2000, 5, list("abc"), [0.5, 0.25, 0.25], shift, reference_group="a")
    beside = names.testing(names.audit_of(three))
    assert not beside["a"].difference.estimable
    for name in "bc":
        rate = beside[name]
        error = (rate.difference.high - rate.difference.low) / (2 * 1.96)
        alone = 2 * (1 - normal(abs(rate.difference.value) / error))
        assert alone < 0.2, name  # otherwise it says nothing
        assert rate.p_value > 1.2 * alone


def normal(z):
    """The distribution function of the normal, by its integral."""
    grid = np.linspace(-9, z, 20_001)
    return np.trapezoid(np.exp(-(grid**2) / 2), grid) / np.sqrt(2 * np.pi)


def test_rows_of_a_person_add_no_certainty():
    """Intervals were too narrow where people have many rows."""
    problem = people(800, 1, ["a", "b"], [0.5, 0.5])
    again = np.tile(np.arange(800), 3)
    rows = problem.subset(again)
    copied = names.arrays(rows.X, rows.y_obs, group=rows.group, id=again)
    once, thrice = (names.audit_of(part).testing[0].crude for part in (problem, copied))
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high), abs=3e-3)


def test_nobody_of_few_is_not_never():
    """Intervals were too narrow where few people carry a number (shares of 0 or 1)."""
    problem = people(600, 1, ["a", "b"], [0.5, 0.5])
    few = np.arange(600) < 30
    y = np.where(few, np.nan, problem.y_obs)
    problem = names.arrays(problem.X, y, group=np.where(few, "few", "others"))
    crude = names.testing(names.audit_of(problem))["few"].crude
    assert crude.value == crude.low == 0
    assert 0.08 < crude.high < 0.15  # Wilson's, of 0 in 30


def test_uneven_weights_make_intervals_wider():
    """Intervals were too narrow where weights are uneven."""
    even = people(800, 2, ["a", "b"], [0.5, 0.5])
    weight = np.where(np.arange(800) % 20 == 0, 19.0, 1.0)
    uneven = names.arrays(even.X, even.y_obs, group=even.group, weight=weight)
    first, second = (names.audit_of(part).testing[0].crude for part in (even, uneven))
    assert second.high - second.low > 1.8 * (first.high - first.low)


def test_a_known_rate_stays_that_of_everybody():
    """Where some are out of reach, a known prevalence was told as an estimate, or the reverse."""
    rng = np.random.default_rng(4)
    X = np.stack([rng.normal(size=2000), rng.random(2000) < 0.4], axis=1)
    tested = rng.random(2000) < np.where(X[:, 1] == 1, 0.001, 0.4)
    y = np.where(tested, rng.random(2000) < expit(X[:, 0] - 1), np.nan)
    found = names.audit_of(names.arrays(X, y, prevalence=".15-.25"))
    (known,) = found.known
    assert known.stated.value == pytest.approx(0.2, abs=0.01)
    assert not known.odds_ratio.estimable
    assert found.prevalence[0].within.estimable


def test_deciders_to_whom_people_return_are_told_apart():
    """Differences between deciders were missed where people return to several of them."""
    rng = np.random.default_rng(0)
    n = 2400
    person, who = np.repeat(np.arange(n // 4), 4), rng.integers(6, size=n)
    x = rng.normal(size=n // 4)[person]
    tested = rng.random(n) < expit(0.5 * x + np.linspace(-0.6, 0.6, 6)[who])
    y = np.where(tested, rng.random(n) < expit(x - 1), np.nan)
    problem = names.arrays(x[:, None], y, id=person, decider=[f"clinic {one}" for one in who])
    found = names.audit_of(problem)
    assert names.decider_comparison(found).testing.p_value < 1e-3
    assert "deciders-differ" in names.findings(found)


def test_judges_of_courts_do_not_see_different_people():
    """Deciders nested in a feature were said to see different people in nearly every table."""
    rng = np.random.default_rng(1)
    n, courts = 2400, 6
    home = np.append(np.arange(courts), rng.integers(courts, size=18))
    who = rng.integers(24, size=n)
    X = rng.normal(size=(n, 2))
    X[:, 0] += rng.normal(size=courts)[home[who]]
    y = rng.random(n) < expit(-2 + 0.8 * X[:, 0])
    spread = 0.7 * rng.normal(size=24)
    tested = rng.random(n) < expit(-0.5 + 0.5 * X[:, 0] + spread[who])
    problem = names.arrays(
        np.column_stack([X, home[who][:, None] == np.arange(courts)]).astype(float),
        np.where(tested, y, np.nan),
        decider=[f"judge {one:02d}" for one in who],
    )
    found = names.audit_of(problem)
    assert names.decider_comparison(found).mix.p_value > 0.02
    assert "deciders-mix" not in names.findings(found)
    assert "deciders-differ" in names.findings(found)  # how unequally they test


def test_a_small_group_with_few_positives_has_no_other_bar():
    """ "Tests are positive more often in some groups" was claimed without any difference."""
    alarms = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        small = rng.random(1500) < 0.06
        y = np.where(rng.random(1500) < 0.5, rng.random(1500) < 0.06, np.nan)
        problem = names.arrays(rng.normal(size=(1500, 1)), y, group=np.where(small, "b", "a"))
        alarms += bool({"higher-bar", "lower-bar"} & names.findings(names.audit_of(problem)).keys())
    assert alarms == 0


def test_rows_of_weight_0_are_nobody():
    """Rows of weight 0 were counted where tables came from arrays."""
    whole = people(900, 6, list("abc"), [0.4, 0.3, 0.3])
    weight = np.where(whole.group == 2, np.arange(900) % 3 == 0, 1.0)
    weighted = names.arrays(whole.X, whole.y_obs, group=whole.group, weight=weight)
    found, kept = names.audit_of(weighted), names.audit_of(weighted.subset(weight > 0))
    assert found.total.people == (weight > 0).sum()
    pd.testing.assert_frame_equal(found.to_frame(), kept.to_frame())


def test_guards_count_people():
    """Guards of independence and prevalence counted rows, not people."""
    rng = np.random.default_rng(0)
    few = np.repeat([560, 561], 12)
    person = np.r_[0:560, few]
    y = np.r_[rng.random(560) < 0.3, np.arange(24) % 2 == 0].astype(float)
    group = np.repeat(["a", "b"], [560, 24])
    problem = names.arrays(rng.normal(size=(584, 1)), y, group=group, id=person)
    named = {one.group: one for one in names.audit_of(problem).prevalence}
    assert named["a"].tested_only.estimable
    assert not named["b"].tested_only.estimable


def test_groups_of_several_attributes_are_their_own():
    """Groups of several attributes were mixed; a group that nobody tests had a ratio."""
    rng = np.random.default_rng(0)
    n = 1600
    sex, site = rng.choice(["F", "M"], n), rng.choice(["east", "west"], n)
    tested = (rng.random(n) < 0.4) & ~((sex == "F") & (site == "west"))
    y = np.where(tested, rng.random(n) < 0.4, np.nan)
    frame = pd.DataFrame({"x": rng.normal(size=n), "sex": sex, "site": site, "y": y})
    table = names.read(frame, label="y", group=("sex", "site"))
    group = names.rows(table)["group"]
    assert (group == [f"{a} & {b}" for a, b in zip(sex, site, strict=True)]).all()
    rates = names.testing(names.audit_of(table.problem))
    for name, rate in rates.items():
        assert rate.crude.value == pytest.approx(tested[group == name].mean(), abs=0.02)
    assert not rates["F & west"].ratio.estimable


# -- monitoring ------------------------------------------------------------------------------------


def arriving(n, seed, *, off=0.0, names_of=("f", "m")):
    """People with a feature, two wards and two sexes; `off` moves the outcome of the second sex."""
    rng = np.random.default_rng(seed)
    X, sex = rng.normal(size=(n, 2)), rng.choice(names_of, n)
    y = rng.random(n) < expit(-1 + X[:, 0] + 0.7 * X[:, 1] + off * (sex == "m"))
    tested = rng.random(n) < expit(0.2 + 0.6 * X[:, 0])
    frame = pd.DataFrame(X, columns=["a", "b"])
    return frame.assign(sex=sex, tested=tested * 1, y=np.where(tested, y * 1.0, np.nan))


ROLES = {"label": "y", "tested": "tested", "group": "sex"}


@pytest.fixture(scope="module")
def model():
    return names.model(names.read(arriving(2500, 0), **ROLES))


def test_risks_that_are_off_in_a_group_are_no_yes():
    """`monitor` answered "yes" although risks were far off in single groups."""
    table = names.read(arriving(2000, 0), **ROLES)
    found = names.watched(names.quick_default(table), arriving(2500, 1, off=0.9))
    (told,) = names.findings(found)["groups-off"]
    assert told.groups == ("m",)
    assert names.changes(found, "calibration")["m"].now.high < -0.05


def test_a_group_that_is_hardly_tested_any_more_is_named(model):
    """It did not name a group of which hardly anybody was tested any more."""
    later = arriving(2500, 1)
    dropped = later.index[(later["sex"] == "m") & (later["tested"] == 1)][10:]
    later.loc[dropped, ["tested", "y"]] = [0, np.nan]
    (told,) = names.findings(names.watched(model, later))["who-is-tested"]
    assert told.groups == ("m",)


def test_those_within_reach_are_not_held_against_everybody(model):
    """`monitor` held the people within reach of the tests now against everybody then."""
    later = arriving(2500, 1)
    out = later["a"] < -0.4
    later = later.assign(tested=later["tested"] * ~out, y=later["y"].mask(out))
    found = names.watched(model, later)
    assert found.answer == "cannot tell"
    assert not {"refit", "recalibrate", "what-is-found"} & names.findings(found).keys()
    assert not names.changes(found, "prevalence")["everybody"].difference.estimable


def test_a_new_group_is_not_the_first_one():
    """It took a group that was new for the first one."""
    old = arriving(3000, 0)
    rng = np.random.default_rng(9)
    # the first group is tested always, the other seldom: those who are new, as all were
    tested = rng.random(3000) < np.where(old["sex"] == "f", 0.9, 0.1)
    truth = rng.random(3000) < expit(-1 + old["a"])
    old = old.assign(tested=tested * 1, y=np.where(tested, truth * 1.0, np.nan))
    fitted = names.model(names.read(old, **ROLES))
    new = old.assign(sex=np.where(np.arange(3000) % 2, "x", old["sex"]))
    change = names.changes(names.watched(fitted, new), "tested")["everybody"]
    assert not change.clear


def test_levels_that_chance_made_frequent_do_not_change():
    """Claims by chance: changed columns in `monitor` (8 to 20 % at 30 levels)."""
    rng = np.random.default_rng(0)
    alarms = 0
    for seed in range(3):
        ward = np.array([f"ward {i:02d}" for i in range(30)])
        old, new = (arriving(1200, seed + k).assign(ward=rng.choice(ward, 1200)) for k in (0, 50))
        found = names.watched(names.model(names.read(old, **ROLES)), new)
        alarms += "who-comes" in names.findings(found)
        assert not [one for one in found.columns if one.column == "ward" and one.clear]
    assert alarms <= 1
