"""How long commands will take: budgets hold, and cores share the fits."""

import numpy as np
import pytest

from dcem import SelectiveLabels
from dcem.cli.check import seconds_of
from dcem.compare import durations, fitting
from dcem.compare.durations import compare_steps, fit_seconds, pace
from dcem.compare.fitting import fit_steps
from dcem.methods.choosing import DEFAULT, RIVALS

METHODS = (DEFAULT, *RIVALS)


def people(rows: int, columns: int = 2, groups: int = 2) -> SelectiveLabels:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(rows, columns)).astype(np.float32)
    y = np.where(draw.random(rows) < 0.4, draw.integers(0, 2, rows), np.nan)
    return SelectiveLabels.from_arrays(x, y, group=np.arange(rows) % groups)


def all_steps(problem: SelectiveLabels, cores: int, monkeypatch) -> float:
    for module in (fitting, durations):
        monkeypatch.setattr(module, "cpu_count", lambda: cores)
    return sum(compare_steps(problem, METHODS).values())


def test_longer_tables_take_longer_and_budgets_hold() -> None:
    few, many = (seconds_of(people(rows)) for rows in (5000, 20_000))
    assert all(few[step] < many[step] for step in few)
    more, again = (seconds_of(people(rows, 30)) for rows in (400_000, 200_000))
    assert more["compare"] == pytest.approx(again["compare"], rel=1e-3)  # over the budget of rows


@pytest.mark.parametrize("rows", [300, 10_000])  # planted outcomes, all in processes
def test_cores_share_the_fits(rows, monkeypatch) -> None:
    alone, two, many = (all_steps(people(rows, 20), cores, monkeypatch) for cores in (1, 2, 16))
    started = 2 * durations.START
    assert alone / 2 < two < alone / 2 + started + 0.15 * alone
    assert alone / 16 < many < two * (0.6 if rows == 10_000 else 1.0)


def test_few_quick_fits_are_worth_no_process_and_those_done_meanwhile_take_no_time(monkeypatch):
    quick = "tested-only:linear", "tested-only:boost"
    assert fitting.at_once(fit_steps("x", quick, 5, 1600, 20)) == 1
    for module in (fitting, durations):
        monkeypatch.setattr(module, "cpu_count", lambda: 2)
    told = compare_steps(people(10_000, 100), METHODS)
    first, *_, last = (cost for step, cost in told.items() if "planted" in step)
    assert first == 0 < last  # the longest, which began while scores were judged


def test_fits_that_are_told_together_take_the_time_of_all() -> None:
    alike = ("tested-only:linear", "tested-only:boost")
    together, apart = (fit_steps("x", (DEFAULT, *alike), 5, rows, 2) for rows in (500, 5000))
    assert sum(together.values()) * 10**0.5 == pytest.approx(sum(apart.values()), rel=0.05)
    first = np.array(list(together.values())).reshape(3, 5)  # [methods, parts], the longest first
    assert (first[0] == first[0, 0]).all()  # of the ensemble, each is told when it is done
    assert (first[1:, 0] > 0).all()
    assert (first[1:, 1:] == 0).all()


def test_single_models_take_as_much_in_all_and_differ_less() -> None:
    several, single = (fit_steps("x", METHODS, 5, 5000, 2, single=one) for one in (False, True))
    assert sum(single.values()) == pytest.approx(fitting.COST_OF_SINGLE * sum(several.values()))
    spread = [max(steps.values()) / min(steps.values()) for steps in (several, single)]
    assert spread[1] < spread[0] / 2


def test_columns_and_groups_take_time() -> None:
    plain, wide, grouped = (
        sum(compare_steps(people(4000, *shape), METHODS).values())
        for shape in ((5, 2), (100, 2), (5, 8))
    )
    assert plain < grouped < wide


def test_what_drives_a_model_takes_its_share_of_a_fit(monkeypatch) -> None:
    monkeypatch.setattr(durations, "cpu_count", lambda: 2)
    fit, asking = fit_seconds(people(4200, 12))
    assert asking == pytest.approx(0.9, rel=0.5)  # seconds of the processor, as measured
    assert asking < fit
    wide = fit_seconds(people(20_000, 180))[1]
    assert wide > 8 * asking
    assert seconds_of(people(4200, 12))["fit"] == pytest.approx(pace() * (fit + asking))
    assert fit_seconds(people(4200, 12), "group-1-only:linear")[0] < fit / 5
    assert fit_seconds(people(4200, 12), "tested-only:linear")[0] < fit / 5


def test_a_wide_table_takes_its_time_to_fit_as_well(monkeypatch) -> None:
    monkeypatch.setattr(durations, "cpu_count", lambda: 2)
    fit, asking = fit_seconds(people(2500, 500))
    assert asking / fit == pytest.approx(3.5, rel=0.3)  # as measured


def test_this_machine_has_a_pace() -> None:
    assert 0.05 < pace() < 100
