"""Diabetes in the US survey NHANES: a real decision to test, and the truth for everybody.

The survey measured glycohaemoglobin in everyone it examined, and asked whether blood had been
tested for diabetes in the last three years. So there is a testing decision that somebody really
made, for reasons that are partly recorded (age, insurance, weight, health), and beside it an
outcome known for tested and untested alike. Nothing is simulated.

Three cautions. The label of a tested person is the survey's own measurement now, not the clinic's
result then. Leaving out those with a diagnosis, of whom most were tested, selects on past tests.
And the survey is a sample: people stand for others by their weight, and were drawn in clusters
within strata, which intervals have to respect (`survey_design`).

Data: National Center for Health Statistics, National Health and Nutrition Examination Survey,
cycles 2005-2012, 2015-2016 and 2017-March 2020; US government, public domain.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError, require_columns, require_one_of
from dcem.tasks.task import Task, seed_from

OUTCOMES = {"diabetes": 6.5, "prediabetes": 5.7}  # glycohaemoglobin from so many percent on
GROUPS = ("Mexican American", "other Hispanic", "White", "Black", "other")  # RIDRETH1 1 to 5
FILES = ("DEMO", "DIQ", "GHB", "BMX", "BPQ", "HIQ", "HUQ")
# The letter at the end of a cycle's file names; files of the last cycle begin with P_ instead.
CYCLES = {
    "D": "2005-2006", "E": "2007-2008", "F": "2009-2010", "G": "2011-2012", "I": "2015-2016",
    "P": "2017-2020",
}  # fmt: skip
YEARS = {"2017-2020": 3.2}  # of a cycle, where it is not 2
NUMBERS = {
    "age": "RIDAGEYR",
    "income_to_poverty": "INDFMPIR",
    "bmi": "BMXBMI",
    "waist": "BMXWAIST",
    "height": "BMXHT",
    "weight": "BMXWT",
}
# column -> the one that has it, coded differently, in later cycles
SINCE = {"WTMEC2YR": "WTMECPRP", "DMDMARTL": "DMDMARTZ", "DMDBORN2": "DMDBORN4", "HUQ050": "HUQ051"}
# feature -> (column, largest code that is an answer); higher ones mean refused or not known
SCALES = {
    "education": ("DMDEDUC2", 5),
    "health": ("HUQ010", 5),
    "visits": ("HUQ050", 5),
}
COARSER = {0: 0, 1: 1, 2: 2, 3: 3, 4: 3, 5: 3, 6: 4, 7: 5, 8: 5}  # HUQ051 as HUQ050 codes visits
# feature -> (column, code that counts as 1, codes that are answers)
ANSWERS = {
    "male": ("RIAGENDR", 1, (1, 2)),
    "told_high_blood_pressure": ("BPQ020", 1, (1, 2)),
    "told_high_cholesterol": ("BPQ080", 1, (1, 2)),
    "insured": ("HIQ011", 1, (1, 2)),
    "no_usual_place_of_care": ("HUQ030", 2, (1, 2, 3)),
}


def load_nhanes(
    path: str | Path,
    outcome: Literal["diabetes", "prediabetes"] = "diabetes",
    *,
    weights: bool = True,
    group_as_feature: bool = False,
    random_state: int | np.random.Generator | None = 0,
) -> Task:
    """The survey as a task: tested or not, what the survey measured, and who was asked.

    28,355 adults who were never told that they have diabetes. Tested: blood tested for it in the
    last three years, as they said. Truth: glycohaemoglobin of at least 6.5 % ("diabetes", 3.8 % of
    them) or 5.7 % ("prediabetes", 32 %). Group: race and ethnicity as the survey codes it. The 16
    features are what a doctor could know before the test: age, sex, measures of the body, income,
    education, marriage, birth in the US, insurance, use of care, general health, and being told of
    high blood pressure or cholesterol. Left out is what follows from a test, such as being told of
    prediabetes. In the last cycle "married" includes living with a partner, and in all of them the
    few who did not say count as unmarried, and as born elsewhere.

    Parameters
    ----------
    path
        A folder with the CDC's own files (`DEMO_D.XPT`, ..., `P_HUQ.XPT`) of all cycles or some, or
        these merged into one CSV under their own names, with a column `cycle`.
    weights
        Rows count as many people as they stand for (their mean is 1), or all alike.
    group_as_feature
        Whether features say the group, too.
    random_state
        Seed of the split in 60, 20 and 20 % of the people. `row` of each split says where its rows
        stand in `read_nhanes(path)`.
    """
    people = read_nhanes(path)
    problem, truth = nhanes_problem(
        people, outcome, weights=weights, group_as_feature=group_as_feature
    )
    seed = seed_from(random_state)
    parts = problem.split((0.6, 0.2, 0.2), np.random.default_rng(seed))
    params = {"outcome": outcome, "weights": weights, "group_as_feature": group_as_feature}
    return Task.of(parts, truth, "nhanes", params | {"random_state": seed})


def read_nhanes(path: str | Path) -> pd.DataFrame:
    """The people of the task, NHANES's own columns and codes, `cycle` and `survey_weight`."""
    path = Path(path)
    people = _merged(path) if path.is_dir() else pd.read_csv(path)
    either = [*SINCE, *SINCE.values()]
    needed = ["cycle", "DIQ010", "DIQ180", "LBXGH", "RIDRETH1", "SDMVSTRA", "SDMVPSU"]
    needed += NUMBERS.values()
    needed += [column for column, _ in SCALES.values()]
    needed += [column for column, *_ in ANSWERS.values()]
    require_columns(people.columns, [name for name in needed if name not in either], str(path))
    people = people.reindex(columns=[*people.columns, *(e for e in either if e not in people)])
    never_told = people["DIQ010"].isin([2, 3]) & (people["RIDAGEYR"] >= 20)
    known = people["DIQ180"].isin([1, 2]) & people["LBXGH"].notna()
    people = people[never_told & known].reset_index(drop=True)
    if not len(people):
        raise InputError(f"{path} has nobody who was both asked about tests and measured.")
    years = people["cycle"].map(lambda cycle: YEARS.get(cycle, 2.0))
    total = years[~people["cycle"].duplicated()].sum()
    given = people["WTMEC2YR"].fillna(people["WTMECPRP"])
    return people.assign(survey_weight=given * years / total)


def nhanes_problem(
    people: pd.DataFrame,
    outcome: str,
    *,
    weights: bool = True,
    group_as_feature: bool = False,
) -> tuple[SelectiveLabels, np.ndarray]:
    """All people as one problem, and the truth of each `[n]`."""
    require_one_of("outcome", outcome, OUTCOMES)
    truth = (people["LBXGH"] >= OUTCOMES[outcome]).to_numpy().astype(np.int64)
    X = nhanes_features(people)
    code = people["RIDRETH1"].astype(int).to_numpy() - 1
    if group_as_feature:
        for number, name in enumerate(GROUPS[:-1]):
            X[name] = (code == number).astype(float)
    weight = people["survey_weight"].to_numpy(float)
    problem = SelectiveLabels.from_arrays(
        X,
        np.where(people["DIQ180"] == 1, truth, np.nan),
        group=np.array(GROUPS)[code],
        weight=weight / weight.mean() if weights else None,
        group_names=GROUPS,
    )
    return problem, truth


def nhanes_features(people: pd.DataFrame) -> pd.DataFrame:
    """The 16 features; missing where nobody answered."""
    found = {name: people[column].astype(float) for name, column in NUMBERS.items()}
    for name, (column, largest) in SCALES.items():
        found[name] = people[column].where(people[column] <= largest).astype(float)
    for name, (column, one, answers) in ANSWERS.items():
        asked = people[column].isin(answers)
        found[name] = (people[column] == one).astype(float).where(asked)
    for name, older in (("married", "DMDMARTL"), ("born_in_us", "DMDBORN2")):
        answer = people[older].fillna(people[SINCE[older]])
        found[name] = (answer == 1).astype(float).where(answer.notna())
    found["visits"] = found["visits"].fillna(people["HUQ051"].map(COARSER))
    return pd.DataFrame(found)


def survey_design(people: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Stratum and sampling unit of each row, as codes `[n]`; units are unique over strata."""
    stratum = pd.factorize(people["SDMVSTRA"])[0]
    unit = pd.factorize(people["SDMVSTRA"] * 10 + people["SDMVPSU"])[0]
    return stratum, unit


def _merged(folder: Path) -> pd.DataFrame:
    """The CDC's files of all cycles that are there, one row per person."""
    files = {path.name.upper(): path for path in folder.iterdir()}
    cycles = []
    for letter, cycle in CYCLES.items():
        names = [f"P_{stem}.XPT" if letter == "P" else f"{stem}_{letter}.XPT" for stem in FILES]
        parts = [_xport_numbers(files[name]) for name in names if name in files]
        if parts:
            if lacking := [name for name in names[:3] if name not in files]:
                raise InputError(
                    f"{folder} holds files of {cycle}, but no {' or '.join(lacking)}, without "
                    "which nobody of these years is known. Add it, or take the others away."
                )
            whole = parts[0]
            for part in parts[1:]:
                whole = whole.join(part[part.columns.difference(whole.columns)])
            cycles.append(whole.reset_index().assign(cycle=cycle))
    if not cycles:
        raise InputError(
            f"{folder} has no files of the survey. Put {', '.join(FILES)} of some cycles there, "
            "under the CDC's names: DEMO_D.XPT, ..., P_HUQ.XPT."
        )
    return pd.concat(cycles, ignore_index=True)


def _xport_numbers(path: Path) -> pd.DataFrame:
    """A SAS transport file's columns of numbers by person; pandas reads its zeros as 5.4e-79."""
    found = pd.read_sas(path, format="xport").select_dtypes("number")
    return found.mask(found.abs() < 1e-70, 0.0).set_index("SEQN")
