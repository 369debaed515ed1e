"""The 13 features: their names in the published order, what each one is; and the two groups.

They follow the Risk of Sepsis model (Delahanty et al., 2019): summaries of what was charted in the
first three hours. Two versions exist (the argument `features`):

* `published` takes every charted number, as the authors did: entries marked as wrong, alarm limits
  among the heart rates, ventilator settings among the respiratory rates, pulmonary-artery pressures
  in the shock index. It is what reproduces the paper.
* `cleaned` keeps what measures the named quantity, is not marked as wrong and lies in a range a
  living patient can show (query 16 lists the ranges). What it leaves out becomes missing, and the
  quality page counts it. It is what a new study should use.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Feature:
    """One column: what it says, its unit, and the axis on which its distribution is drawn."""

    name: str
    meaning: str
    unit: str
    axis: tuple[float, float]


FEATURES: tuple[Feature, ...] = (
    Feature("max_lactic_acid", "highest lactate", "mmol/L", (0, 12)),
    Feature("first_shock_index_age", "first shock index times age", "years", (0, 120)),
    Feature("last_shock_index_age", "last shock index times age", "years", (0, 120)),
    Feature("max_wbc", "highest white cell count", "K/uL", (0, 40)),
    Feature("delta_lactic_acid", "lactate, last minus first", "mmol/L", (-6, 6)),
    Feature("max_neuts", "highest share of neutrophils", "percent", (0, 100)),
    Feature("max_glucose", "highest glucose", "mg/dL", (0, 500)),
    Feature("max_bun", "highest urea nitrogen", "mg/dL", (0, 120)),
    Feature("max_rr", "highest respiratory rate", "per minute", (0, 60)),
    Feature("last_albumin", "last albumin", "g/dL", (0, 6)),
    Feature("min_sbp", "lowest systolic pressure", "mmHg", (0, 220)),
    Feature("max_creatinine", "highest creatinine", "mg/dL", (0, 10)),
    Feature("max_temp_f", "highest temperature", "°F", (88, 108)),
)
FEATURE_NAMES: tuple[str, ...] = tuple(feature.name for feature in FEATURES)

RACE_CODES: dict[str, int] = {"Black": 0, "white": 1}  # name -> code a of the published task
PUBLISHED_SD = {"max_rr": 9.807072379603103, "min_sbp": 21.76634883880265}  # training split

# Measurement of query 16 -> the words a reader knows it by.
MEASURES: dict[str, str] = {
    "lactate": "lactate",
    "heart_rate": "heart rate",
    "any_systolic": "systolic pressure, for the shock index",
    "systolic": "systolic pressure, for its minimum",
    "wbc": "white cell count",
    "neutrophils": "neutrophils",
    "glucose": "glucose",
    "bun": "urea nitrogen",
    "respiratory_rate": "respiratory rate",
    "albumin": "albumin",
    "creatinine": "creatinine",
    "temperature": "temperature",
}
# Why a value does not enter a cleaned feature.
VERDICTS = ("error", "other quantity", "implausible", "no number")
