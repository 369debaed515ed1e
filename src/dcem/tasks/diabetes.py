"""Hospital readmission of people with diabetes, censored by a simulated policy.

A real table with weak signal: where the simulation is separable to an AUC of .91, here even the
complete truth gives about .63, and a network trained for long on the few tested rows memorises
them. A method should not be tuned to the simulation alone.

Data: Strack et al., "Impact of HbA1c measurement on hospital readmission rates", BioMed Research
International, 2014; "Diabetes 130-US Hospitals for Years 1999-2008", UCI, CC BY 4.0.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from dcem.table.messages import InputError, require_columns
from dcem.tasks.censored import make_censored
from dcem.tasks.policy import LinearPolicy
from dcem.tasks.task import Task

COUNTS = (
    "time_in_hospital",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_outpatient",
    "number_emergency",
    "number_inpatient",
    "number_diagnoses",
)

# feature -> (column, codes that count as 1); codes are explained in the UCI description.
INDICATORS = {
    "male": ("gender", ("Male",)),
    "admitted_as_emergency": ("admission_type_id", ("1",)),
    "admitted_as_urgent": ("admission_type_id", ("2",)),
    "admitted_as_elective": ("admission_type_id", ("3",)),
    "from_referral": ("admission_source_id", ("1", "2", "3")),
    "from_emergency_room": ("admission_source_id", ("7",)),
    "from_other_facility": ("admission_source_id", ("4", "5", "6", "10", "18", "22", "25", "26")),
    "a1c_normal": ("A1Cresult", ("Norm",)),
    "a1c_over_7": ("A1Cresult", (">7",)),
    "a1c_over_8": ("A1Cresult", (">8",)),
    "glucose_normal": ("max_glu_serum", ("Norm",)),
    "glucose_over_200": ("max_glu_serum", (">200",)),
    "glucose_over_300": ("max_glu_serum", (">300",)),
    "insulin_steady": ("insulin", ("Steady",)),
    "insulin_up": ("insulin", ("Up",)),
    "insulin_down": ("insulin", ("Down",)),
    "medication_changed": ("change", ("Ch",)),
    "on_diabetes_medication": ("diabetesMed", ("Yes",)),
}

# feature -> drugs of which at least one was given, whatever the change of dose.
DRUGS = {
    "metformin": ("metformin",),
    "sulfonylurea": ("glipizide", "glyburide", "glimepiride"),
    "glitazone": ("pioglitazone", "rosiglitazone"),
    "other_oral_drug": ("repaglinide", "nateglinide", "acarbose", "glyburide-metformin"),
}

# feature -> ICD-9 of the primary diagnosis: [from, to) ranges, grouped as in Strack et al.
DIAGNOSES = {
    "circulatory": ((390, 460), (785, 786)),
    "respiratory": ((460, 520), (786, 787)),
    "digestive": ((520, 580), (787, 788)),
    "diabetes": ((250, 251),),
    "injury": ((800, 1000),),
    "musculoskeletal": ((710, 740),),
    "genitourinary": ((580, 630), (788, 789)),
    "neoplasms": ((140, 240),),
}

RACES = ("AfricanAmerican", "Caucasian")


def load_diabetes_readmission(
    path: str | Path,
    beta: float = 0.5,
    *,
    k: float = 0.5,
    q_t: float = 2.0,
    slope: float = 5.0,
    n_train: int = 16_000,
    n_validation: int = 8_000,
    random_state: int | np.random.Generator | None = 0,
) -> Task:
    """The readmission task: everybody's truth is known, a policy decides whose label is seen.

    One row per person (the first encounter): 66,378 African American and Caucasian patients. The
    truth is readmission at any time (`readmitted` other than "NO", 40 %). A person is tested
    with probability sigmoid(slope (beta * time_in_hospital + (1 - beta) * num_medications -
    threshold of the group)), both columns standardised.

    The 39 features, standardised over the cohort: 8 counts (stay, procedures, medications, earlier
    visits, diagnoses), age (the middle of its decade), and 30 indicators of sex, type and source
    of admission, A1c and glucose results, insulin and other drugs, change of medication, and
    primary diagnosis. The discharge disposition is left out: it says who died in hospital, and
    the dead are not readmitted.

    Parameters
    ----------
    path
        The table, `diabetes130.csv.gz` or unpacked.
    beta
        Weight of the time in hospital; 0, .1, ..., 1 are the eleven policies.
    k
        P(tested) / P(readmitted).
    q_t
        P(tested | African American) / P(tested | Caucasian).
    slope
        Sharpness of the decision.
    n_train, n_validation
        Rows of these splits; the test split gets the rest.
    random_state
        Seed of split and decisions. Tasks with another `beta` and the same seed have the same
        splits.
    """
    if not 0 <= beta <= 1:
        raise InputError(f"'beta' weighs two columns and must lie between 0 and 1, got {beta}.")
    table = read_encounters(path)
    X = diabetes_features(table)
    n, first, second = len(X), n_train / len(X), n_validation / len(X)
    if min(n_train, n_validation) < 1 or n_train + n_validation >= n:
        raise InputError(
            f"n_train = {n_train} and n_validation = {n_validation} must leave some of the "
            f"{n} rows for the test split."
        )
    zero = {"time_in_hospital": 0.0, "num_medications": 0.0}
    policy = LinearPolicy(
        weights={"time_in_hospital": float(beta), "num_medications": 1 - float(beta)},
        slope=slope,
        k=k,
        q_t=q_t,
        centers=zero,  # the columns are standardised already
        scales=dict.fromkeys(zero, 1.0),
        name=f"readmission beta={beta:g}",
    )
    return make_censored(
        X,
        (table["readmitted"] != "NO").astype(int),
        table["race"],
        policy,
        id=table["patient_nbr"],
        shares=(first, second, 1 - first - second),
        random_state=random_state,
        group_names=RACES,
    )


def read_encounters(path: str | Path) -> pd.DataFrame:
    """First encounter of each African American or Caucasian patient, all columns as text."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)  # "None" is a value here
    needed = [*COUNTS, "encounter_id", "patient_nbr", "race", "age", "diag_1", "readmitted"]
    needed += [column for column, _ in INDICATORS.values()]
    needed += [drug for drugs in DRUGS.values() for drug in drugs]
    require_columns(table.columns, needed, str(path))
    table = table.assign(encounter_id=table["encounter_id"].astype(np.int64))
    first = table.sort_values("encounter_id").drop_duplicates("patient_nbr")
    return first[first["race"].isin(RACES)].reset_index(drop=True)


def diabetes_features(table: pd.DataFrame) -> pd.DataFrame:
    """The 39 features of `load_diabetes_readmission`, mean 0 and variance 1 over these rows."""
    features = {name: table[name].astype(float) for name in COUNTS}
    features["age"] = table["age"].str.extract(r"(\d+)-")[0].astype(float) + 5
    for name, (column, codes) in INDICATORS.items():
        features[name] = table[column].isin(codes).astype(float)
    for name, drugs in DRUGS.items():
        features[name] = (table[list(drugs)] != "No").any(axis=1).astype(float)
    icd9 = pd.to_numeric(table["diag_1"], errors="coerce")  # V and E codes belong to no group
    for name, ranges in DIAGNOSES.items():
        inside = [(icd9 >= low) & (icd9 < high) for low, high in ranges]
        features[f"diagnosis_{name}"] = np.logical_or.reduce(inside).astype(float)
    frame = pd.DataFrame(features)
    return (frame - frame.mean()) / frame.std(ddof=0)
