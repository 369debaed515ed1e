"""One invented patient for each side of each rule of the first-day SOFA score."""

from __future__ import annotations

from sepsis_rules.world import Stay, World

MINUTE = 1 / 60
VENTILATOR, VENTILATOR_TYPE, OXYGEN_DEVICE = 224_687, 223_848, 226_732
EXTUBATION = 227_194


def sofa(world: World) -> None:
    """All six organs, the windows, and the ventilation spells behind respiration."""
    laboratory(world)
    circulation(world)
    kidneys(world)
    consciousness(world)
    gases(world)
    ventilation(world)


def laboratory(world: World) -> None:
    """Platelets, bilirubin, creatinine: thresholds, limits and the window."""
    thresholds: tuple[tuple[str, int, tuple[tuple[float, int | None], ...]], ...] = (
        ("coagulation", 51265, ((19, 4), (20, 3), (49, 3), (50, 2), (99, 2), (100, 1), (149, 1),
                                (150, 0), (10_000, 0), (10_001, None), (0, None))),
        ("liver", 50885, ((12, 4), (11.9, 3), (6, 3), (5.9, 2), (2, 2), (1.9, 1), (1.2, 1),
                          (1.1, 0), (150, 4), (151, None), (0, None))),
        ("renal", 50912, ((5, 4), (4.9, 3), (3.5, 3), (3.4, 2), (2, 2), (1.9, 1), (1.2, 1),
                          (1.1, 0), (0.5, 0), (151, None))),
    )  # fmt: skip
    for organ, item, values in thresholds:
        for value, score in values:
            stay = world.patient(organ, f"a value of {value:g}").lab(item, value)
            stay.expect(**{organ: score}, sofa=score or 0)
    world.patient("coagulation", "the lowest counts").lab(51265, 200).lab(51265, 60, at=9).expect(
        coagulation=2
    )
    world.patient("renal", "the highest counts").lab(50912, 1).lab(50912, 4, at=9).expect(renal=3)
    world.patient("liver", "the highest counts").lab(50885, 1).lab(50885, 7, at=9).expect(liver=3)
    for at, counts in ((-6, True), (-6 - MINUTE, False), (24, True), (24 + MINUTE, False)):
        stay = world.patient("laboratory window", f"at {at:.2f} h").lab(51265, 30, at=at)
        stay.expect(coagulation=3 if counts else None)
    stay = world.patient("laboratory window", "without an admission")
    world.add(
        "labevents",
        subject_id=stay.subject,
        itemid=51265,
        charttime=stay.moment(1),
        value="30",
        valuenum=30,
    )
    stay.expect(coagulation=None)
    world.patient("sum", "one organ").lab(51265, 60).expect(sofa=2)
    world.patient("sum", "two organs").lab(51265, 60).lab(50885, 3).expect(sofa=4)


def circulation(world: World) -> None:
    """Mean pressure and vasopressors."""
    rule = "cardiovascular"
    pressures: tuple[tuple[float, int | None], ...] = (
        (69, 1), (70, 0), (0.5, 1), (0, None), (300, None),
    )  # fmt: skip
    for value, score in pressures:
        world.patient(rule, f"mean pressure {value:g}").charted(220052, value).expect(
            cardiovascular=score
        )
    for item in (220181, 225312):
        world.patient(rule, f"mean pressure by {item}").charted(item, 60).expect(cardiovascular=1)
    world.patient(rule, "the lowest pressure").charted(220052, 90).charted(220052, 60, at=2).expect(
        cardiovascular=1
    )
    world.patient(rule, "an entry marked wrong").charted(220052, 60, error=1).expect(
        cardiovascular=None
    )
    world.patient(rule, "error unknown counts as none").charted(220052, 60, error=None).expect(
        cardiovascular=1
    )
    for at, score in ((24.0, 1), (24 + MINUTE, None), (-MINUTE, None)):
        world.patient(rule, f"pressure at {at:.2f} h").charted(220052, 60, at=at).expect(
            cardiovascular=score
        )
    doses: tuple[tuple[str, int, float, int | None], ...] = (
        ("norepinephrine", 221906, 0.105, 4),
        ("norepinephrine", 221906, 0.1, 3),
        ("norepinephrine at 0", 221906, 0.0, 3),
        ("epinephrine", 221289, 0.105, 4),
        ("epinephrine", 221289, 0.1, 3),
        ("dopamine", 221662, 15.1, 4),
        ("dopamine", 221662, 15, 3),
        ("dopamine", 221662, 5.1, 3),
        ("dopamine", 221662, 5, 2),
        ("dopamine at 0", 221662, 0, 0),
        ("dopamine", 221662, 0.5, 2),
        ("dobutamine", 221653, 0.5, 2),
        ("dobutamine at 0", 221653, 0, 0),
        ("vasopressin", 222315, 2.4, None),
        ("phenylephrine", 221749, 1.5, None),
    )
    for name, item, rate, score in doses:
        world.patient(rule, f"{name} {rate:g}").infused(item, rate).expect(cardiovascular=score)
    for item, low, high, score in (
        (221906, 0.05, 0.2, 4), (221289, 0.05, 0.2, 4), (221662, 1, 16, 4), (221653, 0, 3, 2),
    ):  # fmt: skip
        stay = world.patient(rule, f"the highest rate of {item}").infused(item, high)
        stay.infused(item, low, at=2).expect(cardiovascular=score)
    world.patient(rule, "rewritten order").infused(221906, 0.2, status="Rewritten").expect(
        cardiovascular=None
    )
    for at, score in ((0.0, 4), (24.0, 4), (24 + MINUTE, None), (-MINUTE, None)):
        world.patient(rule, f"started at {at:.2f} h").infused(221906, 0.2, at=at).expect(
            cardiovascular=score
        )


def kidneys(world: World) -> None:
    """Urine of the first day."""
    rule = "renal"
    for amount, score in ((199, 4), (200, 3), (499, 3), (500, 0)):
        world.patient(rule, f"{amount} ml of urine").output(226559, amount).expect(renal=score)
    urine = (226557, 226558, 226560, 226561, 226563, 226564, 226565, 226567, 226584, 227489)
    for item in urine:
        world.patient(rule, f"urine as {item}").output(item, 300).expect(renal=3)
    world.patient(rule, "another output").output(226571, 100).expect(renal=None)
    world.patient(rule, "summed").output(226559, 300).output(226559, 300, at=9).expect(renal=0)
    world.patient(rule, "irrigant subtracted").output(227489, 700).output(227488, 300).expect(
        renal=3
    )
    world.patient(rule, "at 24 h").output(226559, 100, at=24).expect(renal=4)
    world.patient(rule, "after the first day").output(226559, 100, at=24 + MINUTE).expect(
        renal=None
    )
    world.patient(rule, "the worse of urine and creatinine").output(226559, 100).lab(
        50912, 1.0
    ).expect(renal=4)


def consciousness(world: World) -> None:
    """The Glasgow coma score and what stands in for a missing part of it."""

    def gcs(
        stay: Stay,
        at: float = 0,
        verbal: float | None = None,
        motor: float | None = None,
        eyes: float | None = None,
    ) -> Stay:
        for item, part in ((223900, verbal), (223901, motor), (220739, eyes)):
            if part is not None:
                text = "No Response-ETT" if item == 223900 and part == 0 else f"level {part:g}"
                stay.charted(item, max(part, 1), at=at, text=text)
        return stay

    rule = "cns"
    for verbal, motor, eyes, score in (
        (1, 1, 3, 4), (1, 4, 1, 3), (2, 6, 1, 3), (2, 6, 2, 2), (4, 6, 2, 2), (4, 6, 3, 1),
        (4, 6, 4, 1), (5, 6, 4, 0),
    ):  # fmt: skip
        stay = world.patient(rule, f"GCS {verbal + motor + eyes}")
        gcs(stay, 0, verbal, motor, eyes).expect(cns=score)
    world.patient(rule, "never charted").expect(cns=None)
    gcs(world.patient(rule, "intubated counts as normal"), 0, 0, 1, 1).expect(cns=0)
    stay = gcs(world.patient(rule, "still intubated: no verbal part"), 0, 0, 1, 1)
    gcs(stay, 2, motor=1, eyes=1).expect(cns=0)
    stay = gcs(world.patient(rule, "just extubated: nothing carried over"), 0, 0, 1, 1)
    gcs(stay, 2, verbal=2).expect(cns=2)  # 2 + 6 + 4
    gcs(world.patient(rule, "only eyes charted"), eyes=1).expect(cns=2)  # 5 + 6 + 1
    gcs(world.patient(rule, "only speech charted"), verbal=2).expect(cns=2)  # 2 + 6 + 4
    stay = gcs(world.patient(rule, "parts carried over"), 0, 5, 1, 4)
    gcs(stay, 6 - MINUTE, eyes=1).expect(cns=3)  # 5 + 1 + 1
    stay = gcs(world.patient(rule, "not after 6 h"), 0, 5, 1, 4)
    gcs(stay, 6, eyes=1).expect(cns=2)  # 5 + 6 + 1
    stay = gcs(world.patient(rule, "only from the row before"), 0, 5, 1, 4)
    gcs(gcs(stay, 2, verbal=5), 4, eyes=1).expect(cns=2)  # 5 + 6 + 1; the lowest is 10
    stay = gcs(world.patient(rule, "highest of one time"), 0, 1, 1, 1)
    gcs(stay, 0, 5, 6, 4).expect(cns=0)
    gcs(world.patient(rule, "at 24 h"), 24, 1, 1, 1).expect(cns=4)
    stay = gcs(world.patient(rule, "wrong entries are dropped"), 0, 5, 6, 4)
    stay.charted(220739, 1, at=1, error=1).expect(cns=0)
    stay = gcs(world.patient(rule, "error unknown counts as none"), 0, 5, 6, 4)
    stay.charted(220739, 1, at=1, error=None).expect(cns=2)  # 5 + 6 + 1
    gcs(world.patient(rule, "before admission"), -MINUTE, 1, 1, 1).expect(cns=None)
    gcs(world.patient(rule, "after the first day"), 24 + MINUTE, 1, 1, 1).expect(cns=None)


def gases(world: World) -> None:
    """Which gases count, and their PaO2/FiO2. Nobody is ventilated here."""
    rule = "respiration"
    for pressure, points in ((149, 2), (150, 1), (199, 1), (200, 0), (49, 2)):
        stay = world.patient(rule, f"breathing, P/F {2 * pressure}").gas(po2=pressure)
        stay.expect(respiration=points)
    world.patient(rule, "the lowest while breathing").gas(po2=250).gas(at=2, po2=100).expect(
        respiration=2
    )
    rule = "arterial gas"
    # With FiO2 50 and nothing else the model is .710 sure at PO2 40 and .755 at PO2 45.
    cases: tuple[tuple[str, float, str | None, int | None], ...] = (
        ("venous, model unsure", 40, "VEN", None),
        ("venous, model sure", 45, "VEN", 2),
        ("unrecorded, model unsure", 40, None, None),
        ("unrecorded, model sure", 45, None, 2),
        ("arterial, model unsure", 40, "ART", 2),
    )
    for case, po2, specimen, score in cases:
        world.patient(rule, case).gas(po2=po2, specimen=specimen).expect(respiration=score)
    # At PO2 50 it is .795 sure; a saturation of 100 within 2 h makes that .698.
    saturations: tuple[tuple[str, float, int | None, int | None], ...] = (
        ("saturation 2 h before", -1.0, 0, None),
        ("saturation older than 2 h", -1 - MINUTE, 0, 2),
        ("saturation after the gas", 1 + MINUTE, 0, 2),
        ("saturation marked wrong counts", 0.5, 1, None),
    )
    for case, at, error, score in saturations:
        stay = world.patient(rule, case).gas(po2=50, specimen=None)
        stay.charted(220277, 100, at=at, error=error).expect(respiration=score)
    stay = world.patient(rule, "latest saturation unusable").gas(po2=50, specimen=None)
    stay.charted(220277, 100, at=0.2).charted(220277, 150, at=0.5).expect(respiration=2)
    stay = world.patient(rule, "saturation of 0 is none").gas(po2=40, specimen=None)
    stay.charted(220277, 0, at=0.5).expect(respiration=None)
    stay = world.patient(rule, "two specimens: the last in the alphabet").gas(po2=40)
    stay.lab(50800, None, text="VEN").expect(respiration=None)
    world.patient(rule, "PO2 over 800").gas(po2=801).expect(respiration=None)
    world.patient(rule, "PO2 of 800").gas(po2=800, fio2=100).expect(respiration=0)
    world.patient(rule, "6 h before admission").gas(at=-6).expect(respiration=2)
    world.patient(rule, "earlier").gas(at=-6 - MINUTE).expect(respiration=None)

    rule = "arterial model"
    # Item, value, and the PO2 at which the model is exactly .75 sure (FiO2 50, nothing else known).
    # Of two values at one time the higher counts.
    for item, number, even in (
        (None, 0, 44.378), (50801, 300, 37.903), (50803, 20, 40.878), (50804, 22, 47.265),
        (50811, 9, 48.711), (50813, 4, 44.022), (50815, 70, 25.082), (50816, 20, 54.034),
        (50816, 100, 28.284), (50817, 100, 21.083), (50818, 40, 43.337), (50820, 7.2, 44.631),
        (220277, 100, 55.667), (223835, 100, 32.399), (223835, 1, 32.399), (223835, 21, 43.069),
    ):  # fmt: skip
        for po2, kept in ((even + 0.05, 2), (even - 0.05, None)):
            stay = world.patient(rule, f"{item} of {number:g}, PO2 {po2:.3f}")
            stay.lab(50821, po2).lab(50821, po2 / 2)
            if item != 50816:
                stay.lab(50816, 50)
            if item in (220277, 223835):
                stay.charted(item, number, at=1).charted(item, number / 2, at=1)
            elif item is not None:
                stay.lab(item, number).lab(item, number / 2)
            stay.expect(respiration=kept)

    for po2, kept in ((41.426 + 0.05, 2), (41.426 - 0.05, None)):
        stay = world.patient(rule, f"no laboratory FiO2, PO2 {po2:.3f}").lab(50821, po2)
        stay.charted(223835, 50, at=1).expect(respiration=kept)
    # Out of range is as good as missing, so the model is even at PO2 44.378 again.
    for item, number in ((50817, 101), (50815, 71), (220277, 101)):
        for po2, kept in ((44.378 + 0.05, 2), (44.378 - 0.05, None)):
            stay = world.patient(rule, f"{item} of {number} is none, PO2 {po2:.3f}")
            stay.lab(50821, po2).lab(50816, 50)
            if item == 220277:
                stay.charted(item, number, at=1)
            else:
                stay.lab(item, number)
            stay.expect(respiration=kept)

    rule = "oxygen fraction"
    fractions: tuple[tuple[str, float, float, int | None, int | None], ...] = (
        ("charted as a share", 0.5, 0.5, 0, 2),
        ("charted in percent", 50, 0.5, 0, 2),
        ("charted as a flow", 15, 0.5, 0, None),
        ("charted as 0", 0, 0.5, 0, None),
        ("charted as 1.5", 1.5, 0.5, 0, None),
        ("charted 4 h before", 50, -3.0, 0, 2),
        ("charted earlier", 50, -3 - MINUTE, 0, None),
        ("charted, marked wrong", 50, 0.5, 1, None),
        ("charted, error unknown counts as none", 50, 0.5, None, 2),
        ("charted over 100", 101, 0.5, 0, None),
    )
    for case, number, at, error, score in fractions:
        stay = world.patient(rule, case).gas(fio2=None)
        stay.charted(223835, number, at=at, error=error).expect(respiration=score)
    stay = world.patient(rule, "the laboratory's comes first").gas(po2=350, fio2=100)
    stay.charted(223835, 50, at=0.5).expect(respiration=1)
    stay = world.patient(rule, "the laboratory's over 100").gas(po2=180, fio2=101)
    stay.charted(223835, 50, at=0.5).expect(respiration=1)
    stay = world.patient(rule, "the laboratory's below 20").gas(po2=80, fio2=19)
    stay.charted(223835, 50, at=0.5).expect(respiration=2)


def ventilation(world: World) -> None:
    """Ventilation spells. A gas with P/F 98 scores 4 inside a spell and 2 outside."""

    def breathing(case: str, gas_at: float, *vents: float) -> Stay:
        stay = world.patient("ventilation", case).gas(at=gas_at, po2=49)
        for at in vents:
            stay.charted(VENTILATOR, 8, at=at)
        return stay

    for po2, score in ((49, 4), (50, 3), (99, 3), (100, 0)):
        stay = world.patient("respiration", f"ventilated, P/F {2 * po2}").gas(at=1, po2=po2)
        stay.charted(VENTILATOR, 8, at=0).charted(VENTILATOR, 8, at=2).expect(respiration=score)

    stay = breathing("the lowest while ventilated", 1.5, 0, 2).gas(at=1, po2=180)
    stay.expect(respiration=4)
    breathing("at the start of a spell", 1, 1, 2).expect(respiration=4)
    breathing("at the end of a spell", 2, 1, 2).expect(respiration=4)
    breathing("after the spell", 2 + MINUTE, 1, 2).expect(respiration=2)
    breathing("8 h apart are one spell", 4, 0, 8).expect(respiration=4)
    breathing("more than 8 h apart are two", 4, 0, 8 + MINUTE).expect(respiration=2)
    breathing("one row makes no spell", 1, 1).expect(respiration=2)

    for device, splits in (
        ("Nasal cannula", True), ("Face tent", True), ("Aerosol-cool", True), ("Trach mask", True),
        ("Trach mask ", True), ("High flow neb", True), ("Non-rebreather", True),
        ("Venti mask ", True), ("Medium conc mask ", True), ("T-piece", True),
        ("High flow nasal cannula", True), ("Ultrasonic neb", True), ("Vapomist", True),
        ("Bipap mask ", False), ("None", False),
    ):  # fmt: skip
        stay = breathing(f"oxygen by {device!r}", 3, 0, 4, 5)
        stay.charted(OXYGEN_DEVICE, at=2, text=device).expect(respiration=2 if splits else 4)
    stay = breathing("oxygen together with a ventilator", 3, 0, 2, 4)
    stay.charted(OXYGEN_DEVICE, at=2, text="Nasal cannula").expect(respiration=4)
    stay = breathing("oxygen marked wrong", 3, 0, 4)
    stay.charted(OXYGEN_DEVICE, at=2, text="Nasal cannula", error=1).expect(respiration=4)

    for item in (EXTUBATION, 225_468, 225_477):
        stay = breathing(f"after extubation {item}", 3, 0, 4, 5)
        stay.procedure(item, at=2).expect(respiration=2)
    stay = breathing("until extubation", 1, 0, 4, 5).procedure(EXTUBATION, at=2)
    stay.expect(respiration=4)
    stay = breathing("extubation at a ventilator row ends it", 1, 0, 2, 3, 4)
    stay.procedure(EXTUBATION, at=2).expect(respiration=4)
    stay = breathing("and a new one begins after it", 2.5, 0, 2, 3, 4)
    stay.procedure(EXTUBATION, at=2).expect(respiration=2)

    stay = breathing("a new one, whatever is charted between", 2.7, 0, 1, 3, 4)
    stay.procedure(EXTUBATION, at=2).charted(OXYGEN_DEVICE, at=2.5, text="None")
    stay.expect(respiration=2)

    # Two extubations at one time are one row, unless one of them was the patient's own doing; then
    # the second begins a spell, and the rows of that time leave the first.
    for other, score in ((225_477, 4), (225_468, 2)):
        stay = breathing(f"extubated twice at once, {other}", 1, 0, 4, 5).procedure(
            EXTUBATION, at=2
        )
        stay.procedure(other, at=2).expect(respiration=score)

    for text, score in (("Drager", 4), ("Other", 2)):
        stay = breathing(f"ventilator type {text}", 1)
        for at in (0, 2):
            stay.charted(VENTILATOR_TYPE, at=at, text=text)
        stay.expect(respiration=score)
    stay = breathing("rows without a value", 1)
    for at in (0, 2):
        stay.charted(VENTILATOR, 8, at=at, text=None)
    stay.expect(respiration=2)
    marks: tuple[tuple[str, int | None, int], ...] = (
        ("marked wrong", 1, 2),
        ("whose error is unknown", None, 4),
    )
    for case, error, score in marks:
        stay = breathing(f"rows {case}", 1)
        for at in (0, 2):
            stay.charted(VENTILATOR, 8, at=at, error=error)
        stay.expect(respiration=score)
    for item in (
        223849, 224684, 224685, 224686, 224695, 224696, 224697, 224746, 224747, 226873, 224738,
        224419, 224750, 227187, 224705, 224706, 224707, 224709, 220339, 224700, 224701, 224702,
    ):  # fmt: skip
        stay = breathing(f"ventilator row {item}", 1)
        stay.charted(item, 5, at=0).charted(item, 5, at=2).expect(respiration=4)
