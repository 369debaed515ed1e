"""A second, plain rendering of the cohort logic: one stay at a time, loops over its events.

Written from the specification without the queries, slow and obvious on purpose.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

HOUR = timedelta(hours=1)
TIMES = {
    "intime", "outtime", "admittime", "dob", "transfertime", "startdate", "chartdate", "charttime",
    "starttime",
}  # fmt: skip
ANTIBIOTICS = re.split(
    ", ",
    "adoxa, ala-tet, alodox, amikacin, amikin, amoxicillin, ampicillin, augmentin, avelox, "
    "avidoxy, axetil, azactam, azithromycin, aztreonam, bactocill, bactrim, bethkis, biaxin, "
    "bicillin l-a, cayston, cedax, cefaclor, cefadroxil, cefazolin, cefdinir, cefditoren, "
    "cefepime, cefotaxime, cefotetan, cefoxitin, cefpodoxime, cefprozil, ceftazidime, "
    "ceftibuten, ceftin, cefuroxime, cephalexin, chloramphenicol, cipro, claforan, "
    "clarithromycin, clavulanate, cleocin, clindamycin, cubicin, dicloxacillin, doryx, "
    "doxycycline, duricef, dynacin, ery-tab, eryc, eryped, erythrocin, erythromycin, factive, "
    "flagyl, fortaz, furadantin, garamycin, gentamicin, kanamycin, keflex, ketek, levaquin, "
    "lincocin, macrobid, macrodantin, maxipime, mefoxin, metronidazole, minocin, minocycline, "
    "monodox, monurol, morgidox, moxatag, moxifloxacin, myrac, nafcillin sodium, nicazel doxy "
    "30, nitrofurantoin, noroxin, ocudox, ofloxacin, omnicef, oracea, oraxyl, oxacillin, "
    "panixine, pc pen vk, pce dispertab, pediazole, penicillin, periostat, pfizerpen, "
    "piperacillin, primsol, proquin, raniclor, rifadin, rifampin, rocephin, septra, smz-tmp, "
    "solodyn, spectracef, streptomycin sulfate, sulfadiazine, sulfamethoxazole, sulfatrim, "
    "sulfisoxazole, suprax, synercid, tazicef, tazobactam, tetracycline, timentin, tobi, "
    "tobramycin, trimethoprim, unasyn, vancocin, vancomycin, vantin, vibativ, vibra-tabs, "
    "vibramycin, zinacef, zithromax, zmax, zosyn, zyvox",
)
TABLES = (
    "icustays", "admissions", "patients", "prescriptions", "microbiologyevents", "labevents",
    "chartevents", "inputevents_mv", "outputevents", "procedureevents_mv", "d_items",
)  # fmt: skip
VENT = {
    223849, 224687, 224684, 224685, 224686, 224695, 224696, 224697, 224746, 224747, 226873, 224738,
    224419, 224750, 227187, 224705, 224706, 224707, 224709, 220339, 224700, 224701, 224702,
}  # fmt: skip
OXYGEN = {
    "Nasal cannula", "Face tent", "Aerosol-cool", "Trach mask", "High flow neb", "Non-rebreather",
    "Venti mask", "Medium conc mask", "T-piece", "High flow nasal cannula", "Ultrasonic neb",
    "Vapomist",
}  # fmt: skip
# name: (weight, mean, correction when missing)
MODEL = {
    "spo2": (-0.15356, 97.49420, 0.13429), "charted": (0.00621, 51.49550, -0.24958),
    50811: (0.10559, 10.32307, 0.05954), 50817: (0.13251, 93.66539, -0.23172),
    50818: (-0.01511, 42.08866, -0.01630), 50816: (0.01480, 63.97836, -0.31142),
    50801: (-0.00200, 442.21186, -0.01328), 50803: (-0.03220, 22.96894, -0.06535),
    50804: (0.05384, 24.72632, -0.01405), 50813: (0.08202, 3.06436, 0.06038),
    50820: (0.10956, 7.36233, -0.00617), 50815: (0.00848, 7.59362, -0.35803),
}  # fmt: skip


class Demo:
    """The demo's tables as lists of rows, by admission or stay."""

    def __init__(self, folder: Path) -> None:
        read = {}
        for table in TABLES:
            path, columns = folder / f"{table.upper()}.csv.gz", None
            if table == "chartevents":  # by far the largest
                columns = ["row_id", "icustay_id", "itemid", "charttime", "value", "valuenum"]
                columns += ["error"]
            frame = pd.read_csv(path, low_memory=False, usecols=columns)
            if table == "chartevents":  # most rows are CareVue's, which nobody asks for here
                stays = read["icustays"].query("dbsource == 'metavision'")["icustay_id"]
                frame = frame[frame["icustay_id"].isin(stays)].reset_index(drop=True)
            for column in TIMES & set(frame.columns):
                # as objects, so that a missing time stays None
                frame[column] = pd.Series([_time(t) for t in frame[column]], dtype=object)
            read[table] = frame
        charts = read["chartevents"].sort_values(["charttime", "row_id"])
        joined = read["icustays"].merge(
            read["admissions"][["hadm_id", "admittime"]], on="hadm_id"
        ).merge(read["patients"][["subject_id", "dob"]], on="subject_id")  # fmt: skip
        self.stays = list(joined.itertuples(index=False))
        self.charts = _by(charts, "icustay_id")
        self.labs = _by(read["labevents"], "hadm_id")
        self.cultures = _by(read["microbiologyevents"], "hadm_id")
        self.infusions = _by(read["inputevents_mv"], "icustay_id")
        self.outputs = _by(read["outputevents"], "icustay_id")
        self.procedures = _by(read["procedureevents_mv"], "icustay_id")
        self.prescriptions = _by(read["prescriptions"], "hadm_id")
        self.names = self._antibiotic_names(read["prescriptions"])
        items = read["d_items"]
        self.labels = items[items["dbsource"] == "metavision"].set_index("itemid")["label"]

    def _antibiotic_names(self, prescriptions: pd.DataFrame) -> set[str]:
        names = set()
        for row in prescriptions.itertuples():
            if row.drug_type not in ("MAIN", "ADDITIVE") or not isinstance(row.route, str):
                continue
            if row.route in ("OU", "OS", "OD", "AU", "AS", "AD", "TP"):
                continue
            if re.search("ear|eye", row.route, re.IGNORECASE):
                continue
            drug = str(row.drug).lower()
            if any(word in drug for word in ("cream", "desensitization", "ophth oint", "gel")):
                continue
            if any(name in drug for name in ANTIBIOTICS):
                names.add(row.drug)
        return names

    def suspicion(self, stay: Any) -> dict[str, datetime | None]:
        """The earliest suspicion under each rule."""
        found: dict[str, list[datetime]] = {"v2018": [], "head2019": [], "corr24": []}
        for order in self.prescriptions.get(stay.hadm_id, []):
            if order.drug not in self.names or order.startdate is None:
                continue
            given, before, after = order.startdate, [], []
            for culture in self.cultures.get(stay.hadm_id, []):
                time = culture.charttime
                if time is None:
                    if culture.chartdate < given < culture.chartdate + 96 * HOUR:
                        before.append(culture.chartdate)
                elif time < given <= time + 72 * HOUR:
                    before.append(time)
                elif given <= time < given + 24 * HOUR:
                    after.append(time)
            if before:
                for times in found.values():
                    times.append(min(before))
            else:
                found["head2019"].append(given)
                if after:
                    found["v2018"].append(min(after))
                    found["corr24"].append(given)
        return {rule: min(times, default=None) for rule, times in found.items()}

    def sofa(self, stay: Any) -> dict[str, int | None]:
        """The six organs of the first day."""
        first, last = stay.intime, stay.intime + 24 * HOUR
        day = [r for r in self.charts.get(stay.icustay_id, []) if first <= r.charttime <= last]
        labs = [
            row
            for row in self.labs.get(stay.hadm_id, [])
            if row.subject_id == stay.subject_id and first - 6 * HOUR <= row.charttime <= last
        ]

        def lab(item: int, highest: float) -> list[float]:
            return [r.valuenum for r in labs if r.itemid == item and 0 < r.valuenum <= highest]

        platelets = min(lab(51265, 10_000), default=None)
        bilirubin = max(lab(50885, 150), default=None)
        return {
            "respiration": self._respiration(stay, labs),
            "coagulation": _below(platelets, (20, 50, 100, 150)),
            "liver": _above(bilirubin, (12, 6, 2, 1.2)),
            "cardiovascular": self._circulation(stay, day, first, last),
            "cns": _consciousness(day),
            "renal": self._kidneys(stay, max(lab(50912, 150), default=None), first, last),
        }

    def _circulation(self, stay: Any, day: list, first: datetime, last: datetime) -> int | None:
        pressures = [
            row.valuenum
            for row in day
            if row.itemid in (220052, 220181, 225312) and row.error != 1 and 0 < row.valuenum < 300
        ]
        rates: dict[int, list[float]] = {221906: [], 221289: [], 221662: [], 221653: []}
        for row in self.infusions.get(stay.icustay_id, []):
            given = row.statusdescription != "Rewritten" and not math.isnan(row.rate)
            if row.itemid in rates and first <= row.starttime <= last and given:
                rates[row.itemid].append(row.rate)
        strong = rates[221906] + rates[221289]
        dopamine = max(rates[221662], default=0)
        if dopamine > 15 or any(rate > 0.1 for rate in strong):
            return 4
        if dopamine > 5 or strong:
            return 3
        if dopamine > 0 or max(rates[221653], default=0) > 0:
            return 2
        if pressures and min(pressures) < 70:
            return 1
        return 0 if pressures or any(rates.values()) else None

    def _kidneys(
        self, stay: Any, creatinine: float | None, first: datetime, last: datetime
    ) -> int | None:
        urine_items = {
            226557, 226558, 226559, 226560, 226561, 226563, 226564, 226565, 226567, 226584, 227489,
        }  # fmt: skip
        amounts = []
        for row in self.outputs.get(stay.icustay_id, []):
            if first <= row.charttime <= last and not math.isnan(row.value):
                if row.itemid in urine_items:
                    amounts.append(row.value)
                elif row.itemid == 227488:
                    amounts.append(-row.value)
        by_urine = None if not amounts else 4 if sum(amounts) < 200 else 3 * (sum(amounts) < 500)
        scores = [s for s in (_above(creatinine, (5, 3.5, 2, 1.2)), by_urine) if s is not None]
        return max(scores, default=None)

    def _respiration(self, stay: Any, labs: list) -> int | None:
        gases: dict[datetime, dict[Any, Any]] = {}
        for row in labs:
            if row.itemid == 50800 and isinstance(row.value, str):
                gas = gases.setdefault(row.charttime, {})
                gas[50800] = max(gas.get(50800, ""), row.value)
            elif 50800 <= row.itemid <= 50821 and _gas_value(row.itemid, row.valuenum):
                gas = gases.setdefault(row.charttime, {})
                gas[row.itemid] = max(gas.get(row.itemid, 0), row.valuenum)
        spells = self._spells(stay)
        ventilated, breathing = [], []
        for time, gas in gases.items():
            if 50821 not in gas:
                continue
            gas["spo2"] = self._latest(stay, 220277, time, 2, True)
            gas["charted"] = self._latest(stay, 223835, time, 4, False)
            z = -0.02544 + 0.04598 * gas[50821]
            for name, (weight, mean, correction) in MODEL.items():
                value = gas.get(name)
                z += weight * mean + correction if value is None else weight * value
            if gas.get(50800) != "ART" and 1 / (1 + math.exp(-z)) <= 0.75:
                continue
            fraction = gas.get(50816, gas["charted"])
            if fraction is not None:
                inside = any(start <= time <= end for start, end in spells)
                (ventilated if inside else breathing).append(100 * gas[50821] / fraction)
        worst = min(ventilated, default=math.inf)
        if worst < 200:
            return 4 if worst < 100 else 3
        worst = min(breathing, default=math.inf)
        if worst < 400:
            return 2 if worst < 300 else 1
        return 0 if ventilated or breathing else None

    def _latest(
        self, stay: Any, item: int, time: datetime, hours: int, keep_errors: bool
    ) -> float | None:
        """The value of the most recent time charted within some hours; None if unusable."""
        rows = [
            row
            for row in self.charts.get(stay.icustay_id, [])
            if row.itemid == item
            and time - hours * HOUR <= row.charttime <= time
            and (keep_errors or row.error != 1)
        ]
        if not rows:
            return None
        latest = max(row.charttime for row in rows)
        values = []
        for row in rows:
            v = row.valuenum
            if row.charttime != latest or math.isnan(v):
                continue
            if item == 220277 and 0 < v <= 100:
                values.append(v)
            if item == 223835 and 0 < v <= 1:
                values.append(100 * v)
            if item == 223835 and 21 <= v <= 100:
                values.append(v)
        return max(values, default=None)

    def _spells(self, stay: Any) -> list[tuple[datetime, datetime]]:
        moments: dict[datetime, dict[str, bool]] = {}
        for row in self.charts.get(stay.icustay_id, []):
            if row.error == 1 or not isinstance(row.value, str):
                continue
            vent = row.itemid in VENT or (row.itemid == 223848 and row.value != "Other")
            oxygen = row.itemid == 226732 and row.value.rstrip() in OXYGEN
            if vent or oxygen:
                moment = moments.setdefault(row.charttime, {"vent": False, "oxygen": False})
                moment["vent"] |= vent
                moment["oxygen"] |= oxygen
        rows = [(time, 0, kind["vent"], kind["oxygen"]) for time, kind in moments.items()]
        pulled = {
            (row.starttime, row.itemid == 225468)
            for row in self.procedures.get(stay.icustay_id, [])
            if row.itemid in (227194, 225468, 225477)
        }
        rows += [(time, 1, False, False) for time, _ in pulled]
        rows.sort(key=lambda row: row[:2])
        spell, extubated_before, last_vent = 0, False, None
        at_time: dict[datetime, int] = {}
        for time, extubation, vent, oxygen in rows:
            new = (vent or extubation) and extubated_before
            new = new or (oxygen and not vent)
            new = new or (vent and last_vent is not None and time - last_vent > 8 * HOUR)
            spell += bool(new)
            at_time[time] = spell
            if vent or extubation:
                extubated_before = bool(extubation)
            last_vent = time if vent else last_vent
        members: dict[int, list[tuple[datetime, bool]]] = {}
        for time, extubation, vent, _ in rows:
            if vent or extubation:
                members.setdefault(at_time[time], []).append((time, vent))
        ends = [
            (min(t for t, _ in member), max(t for t, _ in member))
            for member in members.values()
            if any(vent for _, vent in member)
        ]
        return [(start, end) for start, end in ends if start < end]

    def features(self, stay: Any, *, cleaned: bool) -> dict[str, float | None]:
        """The 13 features."""
        charts = self.charts.get(stay.icustay_id, [])
        until = min((row.charttime for row in charts), default=stay.intime) + 3 * HOUR
        early = [row for row in charts if row.charttime <= until]  # by time, then row
        age = round((stay.admittime.date() - stay.dob.date()).days / 365.242, 4)
        age = 91.4 if age > 89 else age

        def rows(pattern: str, low: float, high: float, only: set[int] | None = None) -> list:
            found = self.labels[self.labels.str.contains(pattern, case=False, na=False, regex=True)]
            chosen = [row for row in early if row.itemid in found.index]
            if cleaned:
                chosen = [
                    row
                    for row in chosen
                    if row.error != 1
                    and low < row.valuenum < high
                    and (only is None or row.itemid in only)
                ]
            return chosen

        def numbers(chosen: list) -> list[float]:
            return [row.valuenum for row in chosen if not math.isnan(row.valuenum)]

        top = math.inf
        arterial = {220050, 220179, 224167, 225309, 227243}
        lactate = rows("lactic", 0, top)
        change = lactate[-1].valuenum - lactate[0].valuenum if lactate else math.nan
        pairs = [
            heart.valuenum / pressure.valuenum
            for pressure in rows("systolic", 0, 400, arterial)
            for heart in rows("heart rate", 0, 300, {220045})
            if heart.charttime == pressure.charttime
            and pressure.valuenum != 0
            and not math.isnan(heart.valuenum / pressure.valuenum)
        ]
        warm = numbers(rows("temperature F", 70, 120))
        warm += [1.8 * v + 32 for v in numbers(rows("temperature C", 10, 50, {223762}))]
        glucose = r"^glucose (?:finger stick|\([\w\s]+\)$)"
        return {
            "max_lactic_acid": max(numbers(lactate), default=None),
            "first_shock_index_age": pairs[0] * age if pairs else None,
            "last_shock_index_age": pairs[-1] * age if pairs else None,
            "max_wbc": max(numbers(rows("^wbc$", 0, top)), default=None),
            "delta_lactic_acid": None if math.isnan(change) else change,
            "max_neuts": max(numbers(rows("neuts", 0, top)), default=None),
            "max_glucose": max(numbers(rows(glucose, 0, top)), default=None),
            "max_bun": max(numbers(rows("^bun$", 0, top)), default=None),
            "max_rr": max(
                numbers(rows("^RR$|respiratory rate", 0, 70, {220210, 224690})), default=None
            ),
            "last_albumin": (numbers(rows("^albumin$", 0, top)) or [None])[-1],
            "min_sbp": min(numbers(rows("(?:blood pressure|bp) systolic", 0, 400)), default=None),
            "max_creatinine": max(numbers(rows("^creatinine$", 0, top)), default=None),
            "max_temp_f": max(warm, default=None),
        }


def _consciousness(day: list) -> int | None:
    parts: dict[datetime, dict[str, float]] = {}
    names = {223900: "verbal", 223901: "motor", 220739: "eyes"}
    for row in day:
        if row.itemid in names and row.error != 1:
            moment = parts.setdefault(row.charttime, {})
            tube = row.itemid == 223900 and row.value == "No Response-ETT"
            value = 0.0 if tube else row.valuenum
            if not math.isnan(value):
                name = names[row.itemid]
                moment[name] = max(moment.get(name, 0.0), value)
    scores, before, before_time = [], {}, None
    for time in sorted(parts):
        now = parts[time]
        old = before if before_time is not None and time - before_time < 6 * HOUR else {}
        if now.get("verbal", old.get("verbal")) == 0:
            scores.append(15.0)
        else:
            carried = {} if old.get("verbal") == 0 else old
            normal = {"motor": 6, "verbal": 5, "eyes": 4}
            scores.append(sum((normal | carried | now)[part] for part in normal))
        before, before_time = now, time
    return _below(min(scores, default=None), (6, 10, 13, 15))


def _gas_value(item: int, value: float) -> bool:
    if math.isnan(value) or value <= 0:
        return False
    if item == 50816:
        return 20 <= value <= 100
    return value <= {50817: 100, 50815: 70, 50821: 800}.get(item, math.inf)


def _below(value: float | None, limits: tuple[float, ...]) -> int | None:
    if value is None:
        return None
    return next((4 - i for i, limit in enumerate(limits) if value < limit), 0)


def _above(value: float | None, limits: tuple[float, ...]) -> int | None:
    if value is None:
        return None
    return next((4 - i for i, limit in enumerate(limits) if value >= limit), 0)


def _time(text: Any) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None


def _by(frame: pd.DataFrame, key: str) -> dict[int, list]:
    return {int(k): list(part.itertuples(index=False)) for k, part in frame.groupby(key)}
