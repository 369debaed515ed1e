"""The exhibits: every figure and table by its number, what it needs, how it is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from dcem.paper.drawing import Exhibit
from dcem.paper.exhibits import (
    calibration,
    claims,
    points,
    robustness,
    sensitivity,
    summary,
    tables,
    tradeoff,
)
from dcem.paper.published import SELECTED
from dcem.paper.sources import Need
from dcem.table.messages import InputError, did_you_mean
from dcem.text import fraction

THIRD = 1 / 3
RUNS = ("shown", "methods")  # methods.csv: four of the fifteen settings
SEPSIS_RUNS = ("sepsis", "sepsis_artificial")
GRID_RUNS = ("grid",)
SIMULATION_K = (THIRD, 0.5, 1.0, 2.0, 3.0)
SIMULATION_Q_T = (0.5, 1.0, 2.0)
SEPSIS_K = (0.25, THIRD, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
# Not results, so nothing to reproduce; where they are instead.
ELSEWHERE = {
    "figure1": "the causal model, a drawing",
    "figure6": "the flow of the cohort, which 'dcem sepsis build' draws from MIMIC-III",
}


def _setting(k: float, q_t: float) -> dict[str, float]:
    return {"q_y": 0.5, "k": k, "q_t": q_t}


def _exhibits() -> Iterator[Exhibit]:
    yield Exhibit(
        "figure2", "main", "Simulation at q_y 1/2, k 1, q_t 2, selected methods",
        (Need("figure2", RUNS, _setting(1, 2), SELECTED),),
        partial(points.simulation, q_y=0.5, k=1.0, q_t=2.0, methods=SELECTED),
    )  # fmt: skip
    yield Exhibit(
        "figure3", "tradeoff", "ROC gaps of DCEM and tested-only at similar AUC",
        (Need("grid", GRID_RUNS, methods=("dcem", "tested-only")),), tradeoff.figure3,
    )  # fmt: skip
    sepsis_need = Need("sepsis-figure4", SEPSIS_RUNS, {"k": 4.0, "q_t": 1.5})
    yield Exhibit(
        "figure4", "sepsis-main", "Sepsis at k 4, q_t 3/2", (sepsis_need,),
        partial(points.sepsis, k=4.0),
    )  # fmt: skip
    yield Exhibit("figure5", "m-step", "The optimum of the M-step", (), sensitivity.m_step)
    yield Exhibit(
        "figure7", "overlap", "Causal estimators and DCEM against overlap",
        (Need("overlap", ("tables", "overlap")),), sensitivity.overlap,
    )  # fmt: skip
    yield Exhibit(
        "figure8", "calibration", "Calibration of the testing probability",
        (Need("", ("calibration",), compute=calibration.curves),), calibration.calibration,
    )  # fmt: skip
    yield Exhibit(
        "figure9", "self-tradeoff", "AUCs of DCEM and SELF at similar ROC gap",
        (Need("grid", GRID_RUNS, methods=("dcem", "self")),), tradeoff.self_tradeoff,
    )  # fmt: skip
    yield Exhibit(
        "figure10", "salience", "Sepsis against the features the testers look at",
        (sepsis_need,), sensitivity.salience,
    )  # fmt: skip
    number = 11
    for k in SIMULATION_K:
        for q_t in SIMULATION_Q_T:
            yield Exhibit(
                f"figure{number}", f"k{k:.3g}-qt{q_t:g}",
                f"Simulation at q_y 1/2, k {fraction(k)}, q_t {fraction(q_t)}, all methods",
                (Need("shown", RUNS, _setting(k, q_t)),),
                partial(points.simulation, q_y=0.5, k=k, q_t=q_t), "simulation",
            )  # fmt: skip
            number += 1
    for k in SEPSIS_K:
        yield Exhibit(
            f"figure{number}", f"sepsis-k{k:.3g}", f"Sepsis at k {fraction(k)}, q_t 3/2",
            (Need("sepsis-shown", SEPSIS_RUNS, {"k": k, "q_t": 1.5}),),
            partial(points.sepsis, k=k), "sepsis",
        )  # fmt: skip
        number += 1
    for place, table in enumerate(tables.TITLES, start=1):
        yield Exhibit(
            f"table{place}", table, tables.TITLES[table],
            (Need(table, ("tables", table)),), partial(tables.draw_table, name=table), "tables",
        )  # fmt: skip
    shown = Need("shown", RUNS)
    grid = Need("grid", GRID_RUNS, optional=True)
    yield Exhibit(
        "summary", "summary", "When DCEM is best, similar, worse: the paper's summary, checked",
        (shown, grid), summary.summary,
    )  # fmt: skip
    studies = Need("ablation", ("tables",), optional=True)  # the tables and the overlap study
    yield Exhibit(
        "claims", "claims", "What the paper's text says, number by number, checked",
        (
            Need("figure2", RUNS, _setting(1, 2)), replace(shown, optional=True), grid, studies,
            replace(sepsis_need, optional=True),
        ),
        claims.claims,
    )  # fmt: skip
    yield Exhibit(
        "robustness", "robustness", "Paired differences, ranks, and intervals over seeds",
        (shown, Need("seeds", ("seeds",), optional=True)), robustness.robustness,
    )  # fmt: skip


EXHIBITS: tuple[Exhibit, ...] = tuple(_exhibits())


def find(names: Sequence[str]) -> list[Exhibit]:
    """The exhibits that a user named: by number, by name, by family, or "all"."""
    found: list[Exhibit] = []
    for name in names:
        wanted = name.lower().replace("_", "-")
        if wanted in ELSEWHERE:
            raise InputError(f"{wanted} holds no results: it is {ELSEWHERE[wanted]}.")
        one = [
            exhibit
            for exhibit in EXHIBITS
            if wanted in (exhibit.id, exhibit.name, exhibit.stem, exhibit.family) or wanted == "all"
        ]
        if not one:
            known = {word for e in EXHIBITS for word in (e.id, e.name, e.family) if word} | {"all"}
            hint = did_you_mean(wanted, sorted(known))
            raise InputError(
                f"The paper has no exhibit {name!r}.{hint} 'dcem reproduce list' shows all."
            )
        found += [exhibit for exhibit in one if exhibit not in found]
    return found
