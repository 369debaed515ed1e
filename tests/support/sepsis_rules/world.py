"""The builder behind the artificial rule cases: invent a patient, event by event.

Times are hours after admission to the ICU, which is at noon, so that a date is easy to hit. Every
patient starts as an ordinary one whom no rule touches: 60 years old, white, one MetaVision stay,
heart rate 80 and pressure 120 charted at admission, no suspicion, no organ failing.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any

NOON = datetime(2150, 6, 10, 12)
DEFAULT = "corr24 published"  # the options under which an expectation holds unless it says other


class World:
    """All invented patients and what is expected of them."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.expected: list[dict[str, Any]] = []
        self._last_id = 0
        self._last_row = 0

    def next_id(self) -> int:
        """A number no other patient, admission or stay has."""
        self._last_id += 1
        return 900_000 + self._last_id

    def next_row(self) -> int:
        """A row id; later rows have larger ones."""
        self._last_row += 1
        return self._last_row

    def add(self, table: str, **row: Any) -> None:
        """Append a row to a table."""
        self.rows.setdefault(table, []).append({"row_id": self.next_row(), **row})

    def patient(self, rule: str, case: str, **traits: Any) -> Stay:
        """A new ordinary patient, changed by `traits`, who shows one side of one rule."""
        return Stay(self, rule, case, **traits)


class Stay:
    """One ICU stay of an invented patient; methods add events and return the stay."""

    def __init__(
        self,
        world: World,
        rule: str,
        case: str,
        *,
        days_old: int = 21_915,
        ethnicity: str = "WHITE",
        dbsource: str = "metavision",
        service: str | None = "MED",
        has_chartevents_data: int = 1,
        ordinary: bool = True,
        intime: bool = True,
        outtime: bool = True,
        of: Stay | None = None,
        same_admission: bool = False,
        start: datetime = NOON,
    ) -> None:
        self.world, self.rule, self.case, self.start = world, rule, case, start
        self.stay = world.next_id()
        self.subject: int = of.subject if of else world.next_id()
        self.admission: int = of.admission if of and same_admission else world.next_id()
        admitted = start - timedelta(hours=1)
        if not of:
            born = datetime(admitted.year, admitted.month, admitted.day) - timedelta(days=days_old)
            world.add("patients", subject_id=self.subject, gender="F", dob=_text(born))
        if not same_admission:
            world.add(
                "admissions",
                subject_id=self.subject,
                hadm_id=self.admission,
                admittime=_text(admitted),
                ethnicity=ethnicity,
                has_chartevents_data=has_chartevents_data,
            )
            if service is not None:
                self.served(service, at=-1)
        world.add(
            "icustays",
            subject_id=self.subject,
            hadm_id=self.admission,
            icustay_id=self.stay,
            dbsource=dbsource,
            intime=_text(start) if intime else None,
            outtime=_text(start + timedelta(days=3)) if outtime else None,
        )
        if ordinary:
            self.charted(220045, 80).charted(220179, 120)

    def moment(self, at: float) -> str:
        """The moment `at` hours after admission to the ICU."""
        return _text(self.start + timedelta(hours=at))

    def date(self, day: int) -> str:
        """Midnight of the day `day` days after the day of admission to the ICU."""
        return _text(datetime.combine(self.start.date(), time.min) + timedelta(days=day))

    def charted(
        self,
        item: int,
        number: float | None = None,
        at: float = 0.0,
        text: str | None = "",
        error: int | None = 0,
        row_id: int | None = None,
    ) -> Stay:
        """A row of CHARTEVENTS; the text is the number's unless given (None: no value at all)."""
        shown = (None if number is None else f"{number:g}") if text == "" else text
        row = dict(self._who(), itemid=item, charttime=self.moment(at), value=shown)
        row |= {"valuenum": number, "error": error}
        self.world.rows.setdefault("chartevents", []).append(
            {"row_id": row_id if row_id is not None else self.world.next_row(), **row}
        )
        return self

    def lab(self, item: int, number: float | None, at: float = 1.0, text: str = "") -> Stay:
        """A row of LABEVENTS, which knows the admission but not the stay."""
        who = {"subject_id": self.subject, "hadm_id": self.admission}
        value = text or (None if number is None else f"{number:g}")
        self.world.add(
            "labevents", **who, itemid=item, charttime=self.moment(at), value=value, valuenum=number
        )
        return self

    def gas(
        self,
        at: float = 1.0,
        po2: float = 80,
        fio2: float | None = 50,
        specimen: str | None = "ART",
    ) -> Stay:
        """A blood gas, arterial unless said otherwise."""
        self.lab(50821, po2, at)
        if fio2 is not None:
            self.lab(50816, fio2, at)
        if specimen is not None:
            self.lab(50800, None, at, text=specimen)
        return self

    def cultured(
        self, at: float | None = None, day: int | None = None, specimen: str = "BLOOD CULTURE"
    ) -> Stay:
        """A culture, at a time, or with `day` on a date alone."""
        when = self.moment(at) if at is not None else None
        date = when[:10] + " 00:00:00" if when else self.date(day or 0)
        self.world.add(
            "microbiologyevents",
            subject_id=self.subject,
            hadm_id=self.admission,
            chartdate=date,
            charttime=when,
            spec_type_desc=specimen,
        )
        return self

    def prescribed(
        self,
        drug: str = "Vancomycin",
        day: int = 0,
        route: str | None = "IV",
        drug_type: str = "MAIN",
    ) -> Stay:
        """A prescription that starts on a date."""
        self.world.add(
            "prescriptions",
            subject_id=self.subject,
            hadm_id=self.admission,
            startdate=self.date(day),
            drug_type=drug_type,
            drug=drug,
            route=route,
        )
        return self

    def suspected(self) -> Stay:
        """An antibiotic and a culture 4 hours after admission, on the same day."""
        return self.prescribed().cultured(at=4)

    def infused(
        self, item: int, rate: float | None, at: float = 1.0, status: str = "FinishedRunning"
    ) -> Stay:
        """A row of INPUTEVENTS_MV."""
        who, when = self._who(), self.moment(at)
        row = {"itemid": item, "starttime": when, "rate": rate, "statusdescription": status}
        self.world.add("inputevents_mv", **who, **row)
        return self

    def output(self, item: int, millilitres: float, at: float = 1.0) -> Stay:
        """A row of OUTPUTEVENTS."""
        who, when = self._who(), self.moment(at)
        self.world.add("outputevents", **who, itemid=item, charttime=when, value=millilitres)
        return self

    def procedure(self, item: int, at: float) -> Stay:
        """A row of PROCEDUREEVENTS_MV."""
        self.world.add("procedureevents_mv", **self._who(), itemid=item, starttime=self.moment(at))
        return self

    def served(self, service: str, at: float) -> Stay:
        """A row of SERVICES."""
        who = {"subject_id": self.subject, "hadm_id": self.admission}
        self.world.add("services", **who, transfertime=self.moment(at), curr_service=service)
        return self

    def failing(self) -> Stay:
        """A liver that scores 2: with suspected infection, sepsis."""
        return self.lab(50885, 3.0)

    def expect(self, options: str = DEFAULT, /, **columns: Any) -> Stay:
        """What the build must say of this stay, under these options."""
        for column, value in columns.items():
            self.world.expected.append(
                {
                    "rule": self.rule,
                    "case": self.case,
                    "icustay_id": self.stay,
                    "options": options,
                    "column": column,
                    "value": value,
                }
            )
        return self

    def _who(self) -> dict[str, Any]:
        return {
            "subject_id": self.subject,
            "hadm_id": self.admission,
            "icustay_id": self.stay,
        }


def _text(when: datetime) -> str:
    return when.isoformat(sep=" ", timespec="seconds")
