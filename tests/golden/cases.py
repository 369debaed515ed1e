"""Tables of about 1,000 rows whose estimates are recorded, with what is stated about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import names
import numpy as np
import pandas as pd
import worlds
from scipy.special import expit

EXCERPTS = Path(__file__).parent / "tables"
KEY = ["case", "result", "about", "of"]
ROLES = {"label": "flu", "group": "race"}


@dataclass(frozen=True)
class Case:
    """A table with its roles, and whether methods are compared on it."""

    table: Callable[[], pd.DataFrame]
    roles: dict[str, Any] = field(default_factory=lambda: dict(ROLES))
    compared: bool = True


def excerpt(name: str) -> pd.DataFrame:
    """A real table as pandas reads it."""
    return pd.read_csv(EXCERPTS / f"{name}.csv.gz", keep_default_na=False, na_values=[""])


def diabetes() -> pd.DataFrame:
    """Encounters: HbA1c was measured in some, and is positive above 7 %."""
    columns = ["age", "time_in_hospital", "num_medications", "number_inpatient", "insulin"]
    table = excerpt("diabetes130")
    tested = table["A1Cresult"] != "None"
    high = table["A1Cresult"].isin([">7", ">8"]).astype(float)
    table = table.assign(flu=high.where(tested))
    return table[[*columns, "race", "patient_nbr", "flu"]]


def lender() -> pd.DataFrame:
    """Credit-card clients of whom only those at low apparent risk got credit."""
    table = excerpt("credit-default")
    rng = np.random.default_rng(2)
    delay, limit = table["PAY_0"].clip(-1, 3), np.log(table["LIMIT_BAL"])
    granted = rng.random(len(table)) < expit(0.4 - 0.7 * delay + 0.5 * (limit - limit.mean()))
    columns = ["LIMIT_BAL", "AGE", "PAY_0", "PAY_2", "BILL_AMT1", "PAY_AMT1"]
    label = table["class"].astype(float).where(granted)
    return table[columns].assign(race=table["SEX"].map({1: "male", 2: "female"}), flu=label)


def survey() -> pd.DataFrame:
    """Adults: who says that blood was tested, and prediabetes as the survey measured it."""
    table = excerpt("nhanes")
    table = table[table["DIQ180"].isin([1, 2]) & table["LBXGH"].notna()]
    columns = ["RIDAGEYR", "INDFMPIR", "BMXBMI", "BMXWAIST", "BPQ020", "HIQ011"]
    label = (table["LBXGH"] >= 5.7).astype(float).where(table["DIQ180"] == 1)
    race = table["RIDRETH1"].map({1: "Mexican", 2: "Hispanic", 3: "White", 4: "Black", 5: "other"})
    return table[columns].assign(race=race, flu=label)


def simulated() -> pd.DataFrame:
    """A draw of the paper's simulation."""
    return names.sinusoid(1000).assign(race=lambda t: t["group"]).drop(columns="group")


def world(seed: int, **changes: Any) -> Callable[[], pd.DataFrame]:
    """One of the tables of the corpus of findings, with 1,000 rows."""
    return lambda: worlds.hidden_truth(worlds.people(seed, n=1000, **changes))


def of_world(table: pd.DataFrame) -> pd.DataFrame:
    return worlds.hidden_truth(table)


FIVE = {"groups": worlds.FIVE, "shares": (4, 2, 2, 1, 1), "by_group": {"C": -1.0}}
CASES = {
    "simulation": Case(simulated),
    "diabetes": Case(diabetes, ROLES | {"id": "patient_nbr"}),
    "lender": Case(lender),
    "survey": Case(survey),
    "five groups": Case(world(101, **FIVE)),
    "visits": Case(world(102, visits=4, by_group={"B": -1.0}), ROLES | {"id": "patient"}),
    # one for each statement
    "wrong results": Case(
        lambda: of_world(worlds.wrong_results(103, {"A": 0.8, "B": 0.8}, 0.95, n=1000)),
        ROLES | {"test_sensitivity": 0.8, "test_specificity": 0.95},
    ),
    "known rate": Case(
        lambda: of_world(worlds.unseen_cause(104, n=1000)), ROLES | {"prevalence": ".30-.38"}
    ),
    "deciders": Case(
        lambda: of_world(worlds.decided(105, strictness=1.0, n=1200)),
        ROLES | {"decider": "clinic"},
        compared=False,
    ),
    "time": Case(
        lambda: of_world(worlds.over_time(106, testing=1.0, n=1200)), ROLES | {"time": "day"}
    ),
}


LATER = {
    "nothing changed": {},
    "testing changed": {"base": -1.5},
    "outcome changed": {"outcome": 0.4},
}


def later(name: str) -> pd.DataFrame:
    """People who came after the model of the case "five groups" was fitted."""
    return worlds.hidden_truth(worlds.people(201, n=1000, **(FIVE | LATER[name])))


@cache
def fitted() -> Any:
    """The model that is watched, and that says whom to test next."""
    one = CASES["five groups"]
    return names.model(names.read(one.table(), **one.roles))


@cache
def today(case: str, result: str) -> pd.DataFrame:
    """All estimates of one result of one table."""
    if result == "monitor":
        numbers = names.monitor_numbers(fitted(), later(case))
    elif result == "next tests":
        numbers = names.next_tests_numbers(fitted(), later(case), 60)
    else:
        one = CASES[case]
        table = names.read(one.table(), **one.roles)
        work_out = {"audit": names.audit_numbers, "compare": names.compare_numbers}[result]
        numbers = work_out(table)
    return numbers.assign(case=case, result=result)


def chapters() -> list[tuple[str, str]]:
    """Tables, and what is worked out of each."""
    audits = [(name, "audit") for name in CASES]
    compared = [(name, "compare") for name, one in CASES.items() if one.compared]
    watched = [(name, "monitor") for name in LATER]
    return [*audits, *compared, *watched, ("nothing changed", "next tests")]
