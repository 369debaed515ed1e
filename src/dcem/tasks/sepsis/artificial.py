"""Made-up tables of MIMIC's shape, for those without access and for tests on bare machines.

No value here comes from a patient. Two kinds of folder can be written:

* `rules`: one invented patient for each side of each rule, with the outcome that the rule demands
  written down beside it (`expected.csv`). A build that gets one wrong has the rule wrong.
* `cohort`: thousands of invented stays with both outcomes and both groups, so that everything
  after the cohort (task, models, figures) runs end to end. Its numbers mean nothing; figures made
  from it are marked as artificial, because the folder says so (`ARTIFICIAL.json`).
"""

from __future__ import annotations

import gzip
import json
import os
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcem.table.checks import InputError
from dcem.tasks.sepsis.sources import ARTIFICIAL_MARK

if TYPE_CHECKING:
    import pandas as pd

# Every column of the real tables, in their order: the reader must choose by name.
COLUMNS: dict[str, str] = {
    "icustays": "row_id subject_id hadm_id icustay_id dbsource first_careunit last_careunit "
    "first_wardid last_wardid intime outtime los",
    "admissions": "row_id subject_id hadm_id admittime dischtime deathtime admission_type "
    "admission_location discharge_location insurance language religion marital_status ethnicity "
    "edregtime edouttime diagnosis hospital_expire_flag has_chartevents_data",
    "patients": "row_id subject_id gender dob dod dod_hosp dod_ssn expire_flag",
    "services": "row_id subject_id hadm_id transfertime prev_service curr_service",
    "prescriptions": "row_id subject_id hadm_id icustay_id startdate enddate drug_type drug "
    "drug_name_poe drug_name_generic formulary_drug_cd gsn ndc prod_strength dose_val_rx "
    "dose_unit_rx form_val_disp form_unit_disp route",
    "microbiologyevents": "row_id subject_id hadm_id chartdate charttime spec_itemid "
    "spec_type_desc org_itemid org_name isolate_num ab_itemid ab_name dilution_text "
    "dilution_comparison dilution_value interpretation",
    "labevents": "row_id subject_id hadm_id itemid charttime value valuenum valueuom flag",
    "chartevents": "row_id subject_id hadm_id icustay_id itemid charttime storetime cgid value "
    "valuenum valueuom warning error resultstatus stopped",
    "inputevents_mv": "row_id subject_id hadm_id icustay_id starttime endtime itemid amount "
    "amountuom rate rateuom storetime cgid orderid linkorderid ordercategoryname "
    "secondaryordercategoryname ordercomponenttypedescription ordercategorydescription "
    "patientweight totalamount totalamountuom isopenbag continueinnextdept cancelreason "
    "statusdescription comments_editedby comments_canceledby comments_date originalamount "
    "originalrate",
    "outputevents": "row_id subject_id hadm_id icustay_id charttime itemid value valueuom "
    "storetime cgid stopped newbottle iserror",
    "procedureevents_mv": "row_id subject_id hadm_id icustay_id starttime endtime itemid value "
    "valueuom location locationcategory storetime cgid orderid linkorderid ordercategoryname "
    "secondaryordercategoryname ordercategorydescription isopenbag continueinnextdept "
    "cancelreason statusdescription comments_editedby comments_canceledby comments_date",
    "d_items": "row_id itemid label abbreviation dbsource linksto category unitname param_type "
    "conceptid",
}

# Items the queries find by their label, and near misses that they must not find.
LABELS: dict[int, str] = {
    220045: "Heart Rate", 220046: "Heart rate Alarm - High", 220047: "Heart Rate Alarm - Low",
    220050: "Arterial Blood Pressure systolic", 220059: "Pulmonary Artery Pressure systolic",
    220179: "Non Invasive Blood Pressure systolic", 220210: "Respiratory Rate", 220546: "WBC",
    220615: "Creatinine", 220621: "Glucose (serum)", 223761: "Temperature Fahrenheit",
    223762: "Temperature Celsius", 224167: "Manual Blood Pressure Systolic Left",
    224688: "Respiratory Rate (Set)", 224689: "Respiratory Rate (spontaneous)",
    224690: "Respiratory Rate (Total)", 225309: "ART BP Systolic", 225624: "BUN",
    225643: "Differential-Neuts", 225664: "Glucose finger stick", 225668: "Lactic Acid",
    226329: "Blood Temperature CCO (C)", 226537: "Glucose (whole blood)",
    226850: "RV systolic pressure(PA Line)", 226852: "PA systolic pressure(PA Line)",
    227243: "Manual Blood Pressure Systolic Right", 227456: "Albumin",
    228152: "Aortic Pressure Signal - Systolic",
    # near misses
    220574: "ZAlbumin", 220864: "Albumin 5%", 226751: "CreatinineApacheIIScore",
    227000: "BUN_ApacheIV", 227015: "Glucose_ApacheIV", 227054: "TemperatureF_ApacheIV",
    225639: "Differential-Basos", 227062: "WBC_ApacheIV", 228242: "Pt. Temperature (BG)",
    228388: "Glucose (whole blood) (soft)",
}  # fmt: skip
CAREVUE_LABELS: dict[int, str] = {
    211: "Heart Rate",
    678: "Temperature F",
    1531: "Lactic Acid",
    1542: "WBC",
}
LAYOUTS = ("csv.gz", "csv", "parquet")
KINDS = ("rules", "cohort")
RULE_CASES = "rule_cases.json.gz"


def write_artificial(
    folder: str | Path,
    kind: str = "cohort",
    *,
    stays: int = 5_000,
    random_state: int = 0,
    layout: str = "csv.gz",
    upper_case: bool = True,
) -> Path:
    """Write a folder of artificial tables and return it.

    `layout` is the kind of file; `upper_case` gives table and column names as the full release has
    them (quoted, upper case) rather than as the demo does. `stays` and `random_state` belong to
    the `cohort`; the `rules` are the same every time.
    """
    from dcem.tasks.sepsis.artificial_cohort import invent_cohort

    target = Path(folder)
    if kind not in KINDS or layout not in LAYOUTS:
        raise InputError(
            f"the kind is one of {', '.join(KINDS)} and the layout one of {', '.join(LAYOUTS)}; "
            f"got {kind!r} and {layout!r}."
        )
    if target.exists() and any(target.iterdir()):
        raise InputError(
            f"{target} is not empty. Artificial tables go into a folder of their own, so that they "
            "are never mixed with patients' data."
        )
    target.mkdir(parents=True, exist_ok=True)
    if kind == "rules":
        tables, expected = rule_cases()
        expected.to_csv(target / "expected.csv", index=False)
    else:
        tables = invent_cohort(stays, random_state)
    mark = {"artificial": True, "kind": kind, "made_by": "dcem sepsis artificial"}
    if kind == "cohort":
        mark |= {"stays": stays, "random_state": random_state}
    (target / ARTIFICIAL_MARK).write_text(json.dumps(mark, indent=2), encoding="utf-8")
    for table, frame in tables.items():
        _write_table(target, table, frame, layout, upper_case)
    return target


def rule_cases() -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """The tables of the rule cases; and rule, case, icustay_id, options, column, value, one row for
    each thing that a build must say."""
    import pandas as pd

    file = resources.files("dcem.tasks.sepsis") / RULE_CASES
    content = json.loads(gzip.decompress(file.read_bytes()))
    tables = {name: table_frame(name, rows) for name, rows in content["tables"].items()}
    return tables | {"d_items": item_frame()}, pd.DataFrame(content["expected"])


def table_frame(table: str, rows: Any) -> pd.DataFrame:
    """Rows or columns with every column of the real table added, in its order."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    columns = COLUMNS[table].split()
    unknown = set(frame.columns) - set(columns)
    if unknown:
        raise KeyError(f"{table} has no column {sorted(unknown)}")
    if "row_id" not in frame:
        frame["row_id"] = range(1, len(frame) + 1)
    return frame.reindex(columns=columns)


def item_frame() -> pd.DataFrame:
    """D_ITEMS: the items found by label, their near misses, and namesakes in CareVue."""
    meta = [{"itemid": i, "label": t, "dbsource": "metavision"} for i, t in LABELS.items()]
    care = [{"itemid": i, "label": t, "dbsource": "carevue"} for i, t in CAREVUE_LABELS.items()]
    return table_frame("d_items", meta + care)


def _write_table(
    folder: Path, table: str, frame: pd.DataFrame, layout: str, upper_case: bool
) -> None:
    import pandas as pd

    name = table.upper() if upper_case else table
    path = folder / f"{name}.{layout}"
    unfinished = path.with_name(path.name + ".part")
    if upper_case:
        frame = frame.rename(columns=str.upper)
    if layout == "parquet":
        frame.convert_dtypes().to_parquet(unfinished, index=False)
    else:
        times = frame.select_dtypes("datetime").columns
        text = frame.assign(**{c: frame[c].dt.strftime("%Y-%m-%d %H:%M:%S") for c in times})
        whole = [c for c in text if _is_whole(text[c])]
        text = text.astype(dict.fromkeys(whole, pd.Int64Dtype()))
        opener: Any = gzip.open if layout == "csv.gz" else open
        with opener(unfinished, "wt", encoding="utf-8", newline="") as file:
            header = (f'"{c}"' if upper_case else c for c in text.columns)
            file.write(",".join(header) + "\n")
            text.to_csv(file, header=False, index=False)
    os.replace(unfinished, path)


def _is_whole(column: pd.Series) -> bool:
    """Ids with gaps became floats in pandas; MIMIC writes them as whole numbers."""
    import pandas as pd

    known = column.dropna()
    return pd.api.types.is_float_dtype(column) and bool((known == known.round()).all())
