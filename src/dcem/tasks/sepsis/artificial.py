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
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dcem.files import whole_file, write_text
from dcem.table.messages import InputError, require_one_of
from dcem.tasks.sepsis.sources import ARTIFICIAL_MARK, COLUMNS

if TYPE_CHECKING:
    import pandas as pd

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
_HOUR = np.timedelta64(3600, "s")
_ETHNICITIES = ("WHITE", "WHITE - RUSSIAN", "BLACK/AFRICAN AMERICAN", "BLACK/HAITIAN", "ASIAN")
_ETHNICITY_SHARES = (0.78, 0.04, 0.09, 0.02, 0.07)
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
    target = Path(folder)
    require_one_of("kind", kind, KINDS)
    require_one_of("layout", layout, LAYOUTS)
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
    write_text(target / ARTIFICIAL_MARK, json.dumps(mark, indent=2))
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
    unknown = set(frame.columns) - set(COLUMNS[table])
    if unknown:
        raise KeyError(f"{table} has no column {sorted(unknown)}")
    if "row_id" not in frame:
        frame["row_id"] = range(1, len(frame) + 1)
    return frame.reindex(columns=COLUMNS[table])


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
    if upper_case:
        frame = frame.rename(columns=str.upper)
    with whole_file(folder / f"{name}.{layout}") as unfinished:
        if layout == "parquet":
            frame.convert_dtypes().to_parquet(unfinished, index=False)
            return
        times = frame.select_dtypes("datetime").columns
        text = frame.assign(**{c: frame[c].dt.strftime("%Y-%m-%d %H:%M:%S") for c in times})
        whole = [c for c in text if _is_whole(text[c])]
        text = text.astype(dict.fromkeys(whole, pd.Int64Dtype()))
        opener: Any = gzip.open if layout == "csv.gz" else open
        with opener(unfinished, "wt", encoding="utf-8", newline="") as file:
            header = (f'"{c}"' if upper_case else c for c in text.columns)
            file.write(",".join(header) + "\n")
            text.to_csv(file, header=False, index=False)


def _is_whole(column: pd.Series) -> bool:
    """Ids with gaps became floats in pandas; MIMIC writes them as whole numbers."""
    import pandas as pd

    known = column.dropna()
    return pd.api.types.is_float_dtype(column) and bool((known == known.round()).all())


def invent_cohort(stays: int, random_state: int) -> dict[str, pd.DataFrame]:
    """All tables of a cohort with this many ICU stays, one per patient.

    The numbers are drawn from a plain recipe and resemble an intensive care unit only in their
    ranges. A hidden severity raises heart and respiratory rate, lactate and creatinine, lowers
    pressure, and raises the chance of sepsis and of being measured at all, so that a model has
    something to learn, from what is missing too.
    """
    if stays < 10:
        raise InputError(f"a cohort needs at least 10 stays, got {stays}")
    people = _People(stays, np.random.default_rng(random_state))
    return {
        **people.registers(),
        "prescriptions": people.prescriptions(),
        "microbiologyevents": people.cultures(),
        "labevents": people.labs(),
        "chartevents": people.charts(),
        "inputevents_mv": people.infusions(),
        "outputevents": people.urine(),
        "procedureevents_mv": people.procedures(),
        "d_items": item_frame(),
    }


class _People:
    """What is true of each invented stay; the methods write it down as MIMIC would."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n, self.rng, self.everybody = n, rng, np.arange(n)
        self.subject, self.admission, self.stay = (
            first + self.everybody for first in (10_000, 100_000, 200_000)
        )
        minutes = rng.integers(0, 95 * 365 * 24 * 60, n)
        self.intime = np.datetime64("2101-01-01", "s") + minutes.astype("timedelta64[m]")
        self.ethnicity = rng.choice(_ETHNICITIES, n, p=_ETHNICITY_SHARES)
        self.carevue = rng.random(n) < 0.06
        self.severity = rng.normal(size=n)
        # About one stay in eight is septic; a few of those begin outside the 3 to 11 hours.
        self.septic = rng.random(n) < 1 / (1 + np.exp(2.6 - 1.1 * self.severity))
        self.onset = np.where(
            rng.random(n) < 0.9, rng.uniform(3.1, 10.9, n), rng.uniform(12, 20, n)
        )

    def registers(self) -> dict[str, pd.DataFrame]:
        """ICUSTAYS, ADMISSIONS, PATIENTS and SERVICES."""
        rng, n = self.rng, self.n
        who = {"subject_id": self.subject, "hadm_id": self.admission}
        years = np.clip(rng.normal(64, 16, n), 12, 89)
        years = np.where(rng.random(n) < 0.04, 300, years)  # how MIMIC hides ages over 89
        admitted = self.intime - _HOUR
        born = (admitted - (years * 365.242).astype(int).astype("timedelta64[D]")).astype("<M8[D]")
        services = ("MED", "SURG", "CMED", "CSURG", "TRAUM")
        shares = (0.6, 0.2, 0.1, 0.05, 0.05)
        columns = {
            "icustays": {
                **who, "icustay_id": self.stay, "intime": self.intime,
                "dbsource": np.where(self.carevue, "carevue", "metavision"),
                "outtime": self.intime + 72 * _HOUR,
            },
            "admissions": {
                **who, "admittime": admitted, "ethnicity": self.ethnicity,
                "has_chartevents_data": (rng.random(n) > 0.01).astype(int),
            },
            "patients": {
                "subject_id": self.subject, "gender": rng.choice(["F", "M"], n),
                "dob": born.astype("<M8[s]"),
            },
            "services": {
                **who, "transfertime": admitted,
                "curr_service": rng.choice(services, n, p=shares),
            },
        }  # fmt: skip
        return {table: table_frame(table, of) for table, of in columns.items()}

    def prescriptions(self) -> pd.DataFrame:
        """An antibiotic for the septic and some others, other drugs for the rest."""
        treated = self.septic | (self.rng.random(self.n) < 0.15)
        drug = np.where(treated, "Vancomycin", "Furosemide")
        # On the day of the culture the suspicion time is midnight; on the next it is the culture's.
        later = (self.rng.random(self.n) < 0.5).astype("timedelta64[D]")
        day = (self._at(self.everybody, self.onset).astype("<M8[D]") + later).astype("<M8[s]")
        about = {"startdate": day, "drug_type": "MAIN", "drug": drug, "route": "IV"}
        return self._events("prescriptions", self.everybody, **about)

    def cultures(self) -> pd.DataFrame:
        """Everybody septic is cultured, and nine tenths of the others."""
        who = np.flatnonzero(self.septic | (self.rng.random(self.n) < 0.9))
        when = self._at(who, self.onset)
        return self._events(
            "microbiologyevents",
            who,
            chartdate=when.astype("<M8[D]").astype("<M8[s]"),
            charttime=when,
            spec_type_desc=self.rng.choice(["BLOOD CULTURE", "URINE"], len(who)),
        )

    def labs(self) -> pd.DataFrame:
        """Bilirubin, platelets and creatinine; the septic have a failing liver or coagulation."""
        rng, n = self.rng, self.n
        liver = self.septic & (rng.random(n) < 0.5)
        bilirubin = np.where(liver, rng.uniform(2, 9, n), rng.uniform(0.2, 1.8, n))
        low = self.septic & ~liver
        platelets = np.where(low, rng.uniform(25, 95, n), rng.uniform(120, 380, n))
        creatinine = np.exp(0.35 * self.severity + rng.normal(-0.2, 0.3, n))
        values = {50885: bilirubin, 51265: platelets, 50912: creatinine}
        return self._joined(
            self._numbers("labevents", self.everybody, item, 1.5, value)
            for item, value in values.items()
        )

    def charts(self) -> pd.DataFrame:
        """Vital signs each hour, laboratory copies for some, coma scores, and some nonsense."""
        rng, z, parts = self.rng, self.severity, []

        def chart(who: np.ndarray, item: int, hours: float, value: np.ndarray) -> None:
            parts.append(self._numbers("chartevents", who, item, hours, value))

        unseen = {item: rng.random(self.n) < 0.02 for item in (220179, 220210)}  # never charted
        for hour in (0.0, 1.0, 2.0, 5.0):
            for item, center, slope, spread in (
                (220045, 86.0, 7, 14), (220179, 122, -8, 17), (220181, 82, -5, 11),
                (220210, 19, 2.2, 4.5), (220277, 97, -0.4, 1.6),
            ):  # fmt: skip
                value = np.round(center + slope * z + rng.normal(0, spread, self.n)).clip(1)
                who = np.flatnonzero(~unseen[item]) if item in unseen else self.everybody
                chart(who, item, hour, value[who])
        warm = rng.random(self.n) < 0.8
        celsius = 36.8 + 0.25 * z + rng.normal(0, 0.6, self.n)
        fahrenheit, metric = np.flatnonzero(warm), np.flatnonzero(~warm)
        chart(fahrenheit, 223761, 0.5, 1.8 * celsius[fahrenheit] + 32)
        chart(metric, 223762, 0.5, celsius[metric])
        for item, share, center, slope, spread in (
            (225668, 0.45, 0.5, 0.35, 0.4), (220546, 0.6, 2.3, 0.15, 0.4),
            (225643, 0.35, 4.3, 0.03, 0.1), (220621, 0.6, 4.9, 0.1, 0.3),
            (225624, 0.6, 3.0, 0.25, 0.5), (227456, 0.2, 1.1, -0.1, 0.2),
            (220615, 0.6, 0.1, 0.3, 0.4),
        ):  # fmt: skip
            ordered = 1 / (1 + (1 - share) / share * np.exp(-0.9 * z))  # the sicker, the likelier
            who = np.flatnonzero(rng.random(self.n) < ordered)
            value = np.exp(center + slope * z[who] + rng.normal(0, spread, len(who)))
            chart(who, item, rng.uniform(0.2, 1.5), value)
            again = np.flatnonzero(rng.random(len(who)) < 0.3)
            value = value[again] * np.exp(rng.normal(0, 0.15, len(again)))
            chart(who[again], item, 2.5, value)
        for item, level in ((223900, 5), (223901, 6), (220739, 4)):
            chart(self.everybody, item, 0.5, np.full(self.n, level))
        for item, level in ((220046, 120), (224688, 16), (220210, 0), (220179, 0), (223761, 0)):
            who = np.flatnonzero(rng.random(self.n) < 0.02)
            chart(who, item, 1.0, np.full(len(who), level))
        frame = self._joined(parts)
        frame["error"] = (rng.random(len(frame)) < 0.005).astype(int)
        return frame

    def infusions(self) -> pd.DataFrame:
        """Norepinephrine for the very sick among the septic."""
        who = np.flatnonzero(self.septic & (self.severity > 1))
        rate = np.round(self.rng.uniform(0.02, 0.3, len(who)), 3)
        about = {"itemid": 221906, "rate": rate, "statusdescription": "FinishedRunning"}
        return self._events("inputevents_mv", who, starttime=self._at(who, 6.0), **about)

    def urine(self) -> pd.DataFrame:
        """A day's urine, rarely too little."""
        value = np.round(np.exp(7.4 + self.rng.normal(0, 0.35, self.n)))
        about = {"itemid": 226559, "charttime": self._at(self.everybody, 12.0), "value": value}
        return self._events("outputevents", self.everybody, **about)

    def procedures(self) -> pd.DataFrame:
        """Extubations without a ventilator row: they must change nothing."""
        who = np.flatnonzero(self.rng.random(self.n) < 0.05)
        return self._events("procedureevents_mv", who, itemid=227194, starttime=self._at(who, 4.0))

    def _at(self, who: np.ndarray, hours: float | np.ndarray) -> np.ndarray:
        minutes = np.round(np.broadcast_to(hours, (self.n,))[who] * 60).astype("timedelta64[m]")
        return self.intime[who] + minutes

    def _numbers(
        self, table: str, who: np.ndarray, item: int, hours: float, value: np.ndarray
    ) -> pd.DataFrame:
        rounded = np.round(value.astype(float), 1)
        text = np.char.mod("%g", rounded)
        return self._events(
            table, who, itemid=item, charttime=self._at(who, hours), value=text, valuenum=rounded
        )

    def _events(self, table: str, who: np.ndarray, **columns: Any) -> pd.DataFrame:
        keys = {"subject_id": self.subject[who], "hadm_id": self.admission[who]}
        if table not in ("labevents", "microbiologyevents"):
            keys["icustay_id"] = self.stay[who]
        return table_frame(table, {**keys, **columns})

    def _joined(self, parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
        import pandas as pd

        frame = pd.concat(list(parts), ignore_index=True)
        frame["row_id"] = np.arange(1, len(frame) + 1)
        return frame
