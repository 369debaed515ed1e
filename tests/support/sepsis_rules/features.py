"""One invented patient for each side of each rule of the 13 features, published and cleaned."""

from __future__ import annotations

from sepsis_rules.world import World

MINUTE = 1 / 60
HEART, PRESSURE = 220_045, 220_179
AGE = round(21_915 / 365.242, 4)  # of every patient here


def features(world: World) -> None:
    """The items of each feature, its window and order, and what cleaning changes."""
    single_items(world)
    window(world)
    lactate(world)
    shock_index(world)
    albumin(world)
    cleaning(world)


def single_items(world: World) -> None:
    """Each item alone, and near misses that must not be taken for it."""
    items: tuple[tuple[str, int, float, float | None], ...] = (
        ("max_lactic_acid", 225668, 3.5, 3.5),
        ("max_lactic_acid", 1531, 3.5, None),  # CareVue's
        ("max_wbc", 220546, 12.5, 12.5),
        ("max_wbc", 227062, 12.5, None),  # an APACHE score
        ("max_wbc", 1542, 12.5, None),  # CareVue's
        ("max_neuts", 225643, 81, 81),
        ("max_neuts", 225639, 81, None),  # basophils
        ("max_glucose", 220621, 150, 150),
        ("max_glucose", 225664, 151, 151),
        ("max_glucose", 226537, 152, 152),
        ("max_glucose", 227015, 153, None),
        ("max_glucose", 228388, 154, None),  # text follows the bracket
        ("max_bun", 225624, 30, 30),
        ("max_bun", 227000, 30, None),
        ("max_rr", 220210, 21, 21),
        ("max_rr", 224688, 22, 22),
        ("max_rr", 224689, 23, 23),
        ("max_rr", 224690, 24, 24),
        ("last_albumin", 227456, 3.2, 3.2),
        ("last_albumin", 220574, 3.2, None),
        ("last_albumin", 220864, 25, None),
        ("min_sbp", 220050, 101, 101),
        ("min_sbp", 220179, 102, 102),
        ("min_sbp", 224167, 103, 103),
        ("min_sbp", 225309, 104, 104),
        ("min_sbp", 227243, 105, 105),
        ("min_sbp", 220059, 25, None),  # pulmonary artery
        ("min_sbp", 228152, 90, None),
        ("max_creatinine", 220615, 1.7, 1.7),
        ("max_creatinine", 226751, 2, None),
        ("max_temp_f", 223761, 100.4, 100.4),
        ("max_temp_f", 223762, 38, 100.4),
        ("max_temp_f", 226329, 39, 102.2),
        ("max_temp_f", 227054, 101, None),
        ("max_temp_f", 228242, 37, None),
    )
    for column, item, number, value in items:
        stay = world.patient(column, f"item {item}", ordinary=False).charted(item, number)
        stay.expect(**{column: value})
    stay = world.patient("max_temp_f", "the warmer of both units", ordinary=False)
    stay.charted(223761, 99).charted(223762, 39, at=1).expect(max_temp_f=102.2)
    highest = {
        "max_wbc": 220546, "max_neuts": 225643, "max_glucose": 220621, "max_bun": 225624,
        "max_rr": 220210, "max_creatinine": 220615, "max_lactic_acid": 225668,
    }  # fmt: skip
    for column, item in highest.items():
        stay = world.patient(column, "the highest", ordinary=False).charted(item, 9)
        stay.charted(item, 14, at=1).charted(item, 7, at=2).expect(**{column: 14})
    stay = world.patient("min_sbp", "the lowest", ordinary=False)
    stay.charted(PRESSURE, 120).charted(220050, 88, at=1).expect(min_sbp=88)
    stay = world.patient("max_creatinine", "not from the laboratory", ordinary=False)
    stay.charted(HEART, 80).lab(50912, 1.0).expect(max_creatinine=None)


def window(world: World) -> None:
    """Three hours from the first charting, whatever was charted then."""
    rule = "feature window"
    for case, at, value in (("at 3 h", 3.0, 12), ("after 3 h", 3 + MINUTE, None)):
        stay = world.patient(rule, case, ordinary=False).charted(220277, 97)
        stay.charted(220546, 12, at=at).expect(max_wbc=value)
    stay = world.patient(rule, "from the first charting, not admission", ordinary=False)
    stay.charted(220277, 97, at=-2).charted(220546, 12, at=1 + MINUTE).expect(max_wbc=None)
    stay = world.patient(rule, "before admission", ordinary=False)
    stay.charted(220546, 12, at=-5).expect(max_wbc=12)


def lactate(world: World) -> None:
    """The change of lactate: last minus first in time order."""
    rule = "delta_lactic_acid"
    stay = world.patient(rule, "two values", ordinary=False)
    stay.charted(225668, 2).charted(225668, 5, at=2).expect(delta_lactic_acid=3, max_lactic_acid=5)
    world.patient(rule, "one value", ordinary=False).charted(225668, 2).expect(delta_lactic_acid=0)
    world.patient(rule, "no value", ordinary=False).charted(HEART, 80).expect(
        delta_lactic_acid=None
    )
    stay = world.patient(rule, "file order is not time order", ordinary=False)
    stay.charted(225668, 5, at=2).charted(225668, 2, at=0).expect(delta_lactic_acid=3)
    first, second = world.next_row(), world.next_row()
    stay = world.patient(rule, "one time: by row", ordinary=False)
    stay.charted(225668, 5, row_id=second).charted(225668, 2, row_id=first)
    stay.expect(delta_lactic_acid=3)
    stay = world.patient(rule, "last entry without a number", ordinary=False)
    stay.charted(225668, 2).charted(225668, 5, at=1).charted(225668, None, at=2, text="ERROR")
    stay.expect(delta_lactic_acid=None, max_lactic_acid=5)
    stay.expect("corr24 cleaned", delta_lactic_acid=3)


def shock_index(world: World) -> None:
    """Heart rate over systolic pressure of the same time, times age."""
    rule = "shock index"
    stay = world.patient(rule, "first and last", ordinary=False)
    stay.charted(HEART, 60).charted(PRESSURE, 120).charted(HEART, 90, at=2)
    stay.charted(PRESSURE, 100, at=2)
    stay.expect(first_shock_index_age=0.5 * AGE, last_shock_index_age=0.9 * AGE)
    stay = world.patient(rule, "different times make no pair", ordinary=False)
    stay.charted(HEART, 60).charted(PRESSURE, 120, at=MINUTE)
    stay.expect(first_shock_index_age=None, last_shock_index_age=None)
    stay = world.patient(rule, "a pressure of 0 is skipped", ordinary=False)
    stay.charted(HEART, 60).charted(PRESSURE, 0).charted(HEART, 90, at=2)
    stay.charted(PRESSURE, 100, at=2)
    stay.expect(first_shock_index_age=0.9 * AGE, min_sbp=0)
    stay.expect("corr24 cleaned", first_shock_index_age=0.9 * AGE, min_sbp=100)
    stay = world.patient(rule, "pairs by pressure row, then heart row", ordinary=False)
    stay.charted(HEART, 60).charted(PRESSURE, 120).charted(HEART, 72).charted(220050, 100)
    stay.expect(first_shock_index_age=0.5 * AGE, last_shock_index_age=0.72 * AGE)
    for item in (220050, 224167, 225309, 227243):
        stay = world.patient(rule, f"pressure as {item}", ordinary=False)
        stay.charted(HEART, 60).charted(item, 120).expect(first_shock_index_age=0.5 * AGE)
    for item in (220059, 226850, 226852, 228152):
        stay = world.patient(rule, f"another pressure, {item}", ordinary=False)
        stay.charted(HEART, 60).charted(item, 30).expect(first_shock_index_age=2 * AGE)
        stay.expect("corr24 cleaned", first_shock_index_age=None)
    for item in (220046, 220047):
        stay = world.patient(rule, f"an alarm limit, {item}", ordinary=False)
        stay.charted(item, 120).charted(PRESSURE, 120).expect(first_shock_index_age=1 * AGE)
        stay.expect("corr24 cleaned", first_shock_index_age=None)


def albumin(world: World) -> None:
    """The last albumin that has a number."""
    stay = world.patient("last_albumin", "the last", ordinary=False)
    stay.charted(227456, 3.5, at=1).charted(227456, 2.5).expect(last_albumin=3.5)
    stay = world.patient("last_albumin", "entries without a number are skipped", ordinary=False)
    stay.charted(227456, 2.5).charted(227456, None, at=1, text="PENDING").expect(last_albumin=2.5)


def cleaning(world: World) -> None:
    """What `cleaned` leaves out: wrong entries, other quantities, implausible values."""
    rule = "cleaned"
    cases: tuple[tuple[str, int, float, float, float | None], ...] = (
        # column, item, number; published value; cleaned value
        ("max_rr", 220210, 69, 69, 69),
        ("max_rr", 220210, 70, 70, None),
        ("max_rr", 224690, 30, 30, 30),
        ("max_rr", 224688, 30, 30, None),
        ("max_rr", 224689, 30, 30, None),
        ("min_sbp", 220050, 399, 399, 399),
        ("min_sbp", 220050, 400, 400, None),
        ("max_temp_f", 223761, 119, 119, 119),
        ("max_temp_f", 223761, 120, 120, None),
        ("max_temp_f", 223761, 70, 70, None),
        ("max_temp_f", 223761, 70.5, 70.5, 70.5),
        ("max_temp_f", 223762, 10.5, 50.9, 50.9),
        ("max_temp_f", 223762, 10, 50, None),
        ("max_temp_f", 223762, 50, 122, None),
        ("max_temp_f", 223762, 36.5, 97.7, 97.7),
        ("max_temp_f", 226329, 38, 100.4, None),
        ("max_lactic_acid", 225668, 0, 0, None),
        ("max_wbc", 220546, -1, -1, None),
        ("max_neuts", 225643, 0, 0, None),
        ("max_glucose", 225664, 0, 0, None),
        ("max_bun", 225624, 0, 0, None),
        ("last_albumin", 227456, 0, 0, None),
        ("max_creatinine", 220615, 0, 0, None),
        ("max_creatinine", 220615, 0.5, 0.5, 0.5),
        ("max_rr", 220210, 0.5, 0.5, 0.5),
        ("min_sbp", 220050, 0.5, 0.5, 0.5),
    )
    for column, item, number, published, cleaned in cases:
        stay = world.patient(rule, f"{item} of {number:g}", ordinary=False).charted(item, number)
        stay.expect(**{column: published})
        stay.expect("corr24 cleaned", **{column: cleaned})
    for heart, kept in ((299, True), (300, False), (0.5, True)):
        stay = world.patient(rule, f"heart rate {heart}", ordinary=False)
        stay.charted(HEART, heart).charted(PRESSURE, 100)
        stay.expect(first_shock_index_age=heart / 100 * AGE)
        stay.expect("corr24 cleaned", first_shock_index_age=heart / 100 * AGE if kept else None)
    for pressure, kept in ((399, True), (400, False)):
        stay = world.patient(rule, f"shock index at pressure {pressure}", ordinary=False)
        stay.charted(HEART, 100).charted(PRESSURE, pressure)
        stay.expect(first_shock_index_age=100 / pressure * AGE)
        stay.expect("corr24 cleaned", first_shock_index_age=100 / pressure * AGE if kept else None)
    stay = world.patient(rule, "an entry marked wrong", ordinary=False).charted(220277, 97)
    stay.charted(220546, 99, error=1).expect(max_wbc=99)
    stay.expect("corr24 cleaned", max_wbc=None)
