"""One invented patient for each side of each rule: the cohort, suspicion, sepsis and the study."""

from __future__ import annotations

from datetime import timedelta

from sepsis_rules.features import features
from sepsis_rules.sofa import sofa
from sepsis_rules.world import NOON, World

MINUTE = 1 / 60
# The published list, a second time: a name that the query lost has a patient who misses it.
LISTED = """
adoxa, ala-tet, alodox, amikacin, amikin, amoxicillin, ampicillin, augmentin, avelox, avidoxy,
axetil, azactam, azithromycin, aztreonam, bactocill, bactrim, bethkis, biaxin, bicillin l-a,
cayston, cedax, cefaclor, cefadroxil, cefazolin, cefdinir, cefditoren, cefepime, cefotaxime,
cefotetan, cefoxitin, cefpodoxime, cefprozil, ceftazidime, ceftibuten, ceftin, cefuroxime,
cephalexin, chloramphenicol, cipro, claforan, clarithromycin, clavulanate, cleocin, clindamycin,
cubicin, dicloxacillin, doryx, doxycycline, duricef, dynacin, ery-tab, eryc, eryped, erythrocin,
erythromycin, factive, flagyl, fortaz, furadantin, garamycin, gentamicin, kanamycin, keflex,
ketek, levaquin, lincocin, macrobid, macrodantin, maxipime, mefoxin, metronidazole, minocin,
minocycline, monodox, monurol, morgidox, moxatag, moxifloxacin, myrac, nafcillin sodium, nicazel
doxy 30, nitrofurantoin, noroxin, ocudox, ofloxacin, omnicef, oracea, oraxyl, oxacillin,
panixine, pc pen vk, pce dispertab, pediazole, penicillin, periostat, pfizerpen, piperacillin,
primsol, proquin, raniclor, rifadin, rifampin, rocephin, septra, smz-tmp, solodyn, spectracef,
streptomycin sulfate, sulfadiazine, sulfamethoxazole, sulfatrim, sulfisoxazole, suprax,
synercid, tazicef, tazobactam, tetracycline, timentin, tobi, tobramycin, trimethoprim, unasyn,
vancocin, vancomycin, vantin, vibativ, vibra-tabs, vibramycin, zinacef, zithromax, zmax, zosyn,
zyvox
"""
UNLISTED = ("CefTRIAXone", "Meropenem", "Imipenem", "Ertapenem", "Linezolid", "Daptomycin")
_Hours = float | None


def invent_rules() -> World:
    """Every rule case, in the order in which the build applies the rules."""
    world = World()
    exclusions(world)
    antibiotic_names(world)
    suspicion(world)
    sofa(world)
    sepsis(world)
    study(world)
    features(world)
    return world


def exclusions(world: World) -> None:
    """The seven exclusion flags, each from both sides."""
    rule = "nonadult"
    world.patient(rule, "5,843 days are 15.9976 years", days_old=5_843).expect(
        exclusion_nonadult=1, in_cohort=0
    )
    world.patient(rule, "5,844 days are 16.0004 years", days_old=5_844).expect(
        exclusion_nonadult=0, in_cohort=1
    )
    rule = "exported age"
    world.patient(rule, "89.0012 years become 91.4", days_old=32_507, ordinary=False).charted(
        220045, 100
    ).charted(220179, 100).expect(first_shock_index_age=91.4)
    world.patient(rule, "88.9985 years stay", days_old=32_506, ordinary=False).charted(
        220045, 100
    ).charted(220179, 100).expect(first_shock_index_age=round(32_506 / 365.242, 4))
    world.patient(rule, "born 300 years ago", days_old=109_573, ordinary=False).charted(
        220045, 50
    ).charted(220179, 100).expect(first_shock_index_age=45.7, exclusion_nonadult=0)

    rule, later = "secondarystay", NOON + timedelta(days=9)
    first = world.patient(rule, "the first of two").expect(exclusion_secondarystay=0)
    world.patient(rule, "the second of two", of=first, start=later).expect(
        exclusion_secondarystay=1, in_cohort=0
    )
    first = world.patient(rule, "a CareVue stay before", dbsource="carevue")
    world.patient(rule, "after a CareVue stay", of=first, start=later).expect(
        exclusion_secondarystay=1
    )
    only = world.patient(rule, "first stay of a second admission").expect(exclusion_secondarystay=0)
    world.add(
        "admissions",
        subject_id=only.subject,
        hadm_id=world.next_id(),
        admittime="2149-01-01 00:00:00",
        ethnicity="WHITE",
        has_chartevents_data=0,
    )

    rule = "csurg"
    for service in ("CSURG", "VSURG", "TSURG"):
        world.patient(rule, f"first service {service}", service=service).expect(
            exclusion_csurg=1, in_cohort=0
        )
    world.patient(rule, "surgery after medicine").served("CSURG", at=5).expect(exclusion_csurg=0)
    world.patient(rule, "surgery before, listed later").served("CSURG", at=-9).expect(
        exclusion_csurg=1
    )
    world.patient(rule, "no service at all", service=None).expect(exclusion_csurg=0, in_cohort=1)

    rule = "carevue"
    for source, out in (("carevue", 1), ("both", 1), ("metavision", 0)):
        world.patient(rule, f"charted in {source}", dbsource=source).expect(
            exclusion_carevue=out, in_cohort=1 - out
        )

    rule = "early_suspicion"
    world.patient(rule, "exactly 24 h before").cultured(at=-24).prescribed(day=0).expect(
        exclusion_early_suspicion=0, in_cohort=1
    )
    world.patient(rule, "a minute earlier").cultured(at=-24 - MINUTE).prescribed(day=0).expect(
        exclusion_early_suspicion=1, in_cohort=0
    )
    rule = "late_suspicion"
    world.patient(rule, "exactly 24 h after").cultured(at=24).prescribed(day=2).expect(
        exclusion_late_suspicion=0, in_cohort=1
    )
    world.patient(rule, "a minute later").cultured(at=24 + MINUTE).prescribed(day=2).expect(
        exclusion_late_suspicion=1, in_cohort=0
    )
    world.patient("suspicion", "none excludes nobody").expect(in_cohort=1, suspicion_time=None)

    rule = "bad_data"
    world.patient(rule, "no charted data", has_chartevents_data=0).expect(
        exclusion_bad_data=1, in_cohort=0
    )
    world.patient(rule, "no discharge time", outtime=False).expect(exclusion_bad_data=1)
    world.patient(rule, "no admission time", intime=False).expect(exclusion_bad_data=1)
    world.patient(rule, "complete").expect(exclusion_bad_data=0)


def antibiotic_names(world: World) -> None:
    """Which prescriptions admit a drug name. Each case has a name of its own."""
    rule = "antibiotic names"
    cases: tuple[tuple[str, str, str | None, str, bool], ...] = (
        ("a listed generic", "Vancomycin A1", "IV", "MAIN", True),
        ("any case", "vaNComycin A2", "IV", "MAIN", True),
        ("as an additive", "Vancomycin A3", "IV", "ADDITIVE", True),
        ("as a base", "Vancomycin A4", "IV", "BASE", False),
        *((f"{drug} is not listed", f"{drug} A5", "IV", "MAIN", False) for drug in UNLISTED),
        ("no antibiotic", "Furosemide A7", "IV", "MAIN", False),
        ("route unknown", "Vancomycin A8", None, "MAIN", False),
        ("a word with eye", "Ciprofloxacin A9", "BOTH EYES", "MAIN", False),
        ("a word with ear", "Ciprofloxacin B1", "left ear", "MAIN", False),
        ("excluded routes are upper case", "Metronidazole B2", "tp", "MAIN", True),
        ("cream", "Metronidazole Cream B3", "PO", "MAIN", False),
        ("gel", "MetRONIDAZOLE GEL B4", "PO", "MAIN", False),
        ("ointment", "Erythromycin 0.5% Ophth Oint B5", "PO", "MAIN", False),
        ("desensitization", "Penicillin Desensitization B6", "IV", "MAIN", False),
    )
    for case, drug, route, drug_type, counts in cases:
        stay = world.patient(rule, case).cultured(at=4).prescribed(drug, 0, route, drug_type)
        stay.expect(suspicion_time=stay.date(0) if counts else None)
    for drug in " ".join(LISTED.split()).split(", "):
        stay = world.patient(rule, f"{drug} is listed").cultured(at=4)
        stay.prescribed(f"Some {drug.title()}", 0, "IV").expect(suspicion_time=stay.date(0))
    for route in ("OU", "OS", "OD", "AU", "AS", "AD", "TP"):
        stay = world.patient(rule, f"route {route}").cultured(at=4)
        stay.prescribed(f"Ofloxacin {route}-only", 0, route).expect(suspicion_time=None)

    rule = "names, not rows"
    world.patient(rule, "admits the name").prescribed("Tobramycin shared", 0, "IV")
    stay = world.patient(rule, "eye drops of an admitted name").cultured(at=4)
    stay.prescribed("Tobramycin shared", 0, "OU").expect(suspicion_time=stay.date(0))
    world.patient(rule, "admits the name with a blank").prescribed("Azithromycin blank ", 0, "IV")
    stay = world.patient(rule, "the name without the blank").cultured(at=4)
    stay.prescribed("Azithromycin blank", 0, "OU").expect(suspicion_time=None)


def suspicion(world: World) -> None:
    """How far apart antibiotic and culture may be, and whose time counts, under the three rules."""

    # Hours are from noon: midnight of day 0 is -12, of day 3 is 60, of day 4 is 84.
    # Case; hours of the cultures; day of a culture known by its date; day of the antibiotic; then
    # the time of suspicion under v2018, head2019 and corr24.
    cases: tuple[tuple[str, tuple[float, ...], int | None, int, _Hours, _Hours, _Hours], ...] = (
        ("culture 72 h before", (-12,), None, 3, -12, -12, -12),
        ("culture a minute more before", (-12 - MINUTE,), None, 3, None, 60, None),
        ("culture at the antibiotic's midnight", (-12,), None, 0, -12, -12, -12),
        ("culture on the antibiotic's day", (4,), None, 0, 4, -12, -12),
        ("culture a minute within 24 h", (12 - MINUTE,), None, 0, 12 - MINUTE, -12, -12),
        ("culture 24 h after", (12,), None, 0, None, -12, None),
        ("no culture", (), None, 0, None, -12, None),
        ("dated culture the day before", (), -1, 0, -36, -36, -36),
        ("dated culture 3 days before", (), 0, 3, -12, -12, -12),
        ("dated culture 4 days before", (), 0, 4, None, 84, None),
        ("dated culture the same day", (), 0, 0, None, -12, None),
        ("before beats after", (-20, 4), None, 0, -20, -20, -20),
        ("earliest of several before", (-20, -30, -16), None, 0, -30, -30, -30),
    )
    for case, cultures, dated, day, *by_rule in cases:
        stay = world.patient("suspicion", case).prescribed(day=day)
        for at in cultures:
            stay.cultured(at=at, specimen="URINE")
        if dated is not None:
            stay.cultured(day=dated)
        for rule, hours in zip(("v2018", "head2019", "corr24"), by_rule, strict=True):
            when = None if hours is None else stay.moment(hours)
            stay.expect(f"{rule} published", suspicion_time=when)

    stay = world.patient("suspicion", "earliest of two antibiotics").cultured(at=4).cultured(at=90)
    stay.cultured(at=7).prescribed(day=4).prescribed(day=0)
    stay.expect(suspicion_time=stay.moment(-12))
    stay.expect("head2019 published", suspicion_time=stay.moment(-12))
    stay.expect("v2018 published", suspicion_time=stay.moment(4))
    stay = world.patient("suspicion", "culture of another admission").prescribed(day=0)
    world.add(
        "microbiologyevents",
        subject_id=stay.subject,
        hadm_id=world.next_id(),
        chartdate=stay.date(0),
        charttime=stay.moment(4),
    )
    stay.expect(suspicion_time=None)
    first = world.patient("suspicion", "of the whole admission").suspected()
    again = world.patient(
        "suspicion",
        "a later stay of the admission",
        of=first,
        same_admission=True,
        start=NOON + timedelta(days=5),
    )
    again.expect(suspicion_time=first.date(0), exclusion_early_suspicion=1)


def sepsis(world: World) -> None:
    """Sepsis-3 and its onset."""
    rule = "sepsis-3"
    world.patient(rule, "suspected, SOFA 2").suspected().failing().expect(sofa=2, sepsis3=1)
    world.patient(rule, "suspected, SOFA 1").suspected().lab(50885, 1.5).expect(sofa=1, sepsis3=0)
    world.patient(rule, "SOFA 2, not suspected").failing().expect(sofa=2, sepsis3=0)
    world.patient(rule, "no organ measured counts as 0").suspected().expect(sofa=0, sepsis3=0)
    world.patient(
        rule, "not evaluated in CareVue", dbsource="carevue"
    ).suspected().failing().expect(sofa=None, sepsis3=None, onset_time=None)

    rule = "onset"
    stay = world.patient(rule, "midnight, culture the same day").suspected().failing()
    stay.expect(suspicion_time=stay.date(0), onset_time=stay.moment(4))
    stay = world.patient(rule, "not midnight").cultured(at=-2).prescribed(day=1).failing()
    stay.expect(suspicion_time=stay.moment(-2), onset_time=stay.moment(-2))
    stay = world.patient(rule, "no sepsis, no onset").suspected().expect(onset_time=None)
    stay = world.patient(rule, "culture found by its date").cultured(at=-30).prescribed(day=-1)
    stay.failing().expect(suspicion_time=stay.date(-1), onset_time=stay.moment(-30))
    stay = world.patient(rule, "culture too long before").cultured(at=-54).prescribed(day=-2)
    stay.failing().expect(suspicion_time=stay.date(-2), onset_time=stay.date(-2))
    stay = world.patient(rule, "midnight, culture another day").cultured(day=-2).cultured(at=1)
    stay.prescribed(day=0).failing()
    stay.expect(suspicion_time=stay.date(-2), onset_time=stay.date(-2))
    stay = world.patient(rule, "midnight, no culture").prescribed(day=0).failing()
    stay.expect("head2019 published", onset_time=stay.date(0), sepsis3=1)

    stay = world.patient(rule, "midnight, the first of two cultures").suspected().cultured(at=9)
    stay.failing().expect(onset_time=stay.moment(4))

    rule = "cultured"
    # Admitted half an hour after or before midnight, where a day's window is easy to miss.
    for hour, days in ((0, {-2: 0, -1: 1, 0: 1, 1: 1, 2: 0}), (23, {-2: 0, -1: 1, 1: 1, 2: 0})):
        for day, counts in days.items():
            start = NOON.replace(hour=hour, minute=30)
            stay = world.patient(rule, f"at {hour}:30, culture on day {day}", start=start)
            stay.cultured(day=day).expect(cultured=counts)
        # Beyond a day, and on a date that is beyond it too.
        for at, counts in ((-24, 1), (24, 1), (24.6 if hour else -24.6, 0)):
            stay = world.patient(rule, f"at {hour}:30, culture {at} h later", start=start)
            stay.cultured(at=at).expect(cultured=counts)

    rule = "first charttime"
    stay = world.patient(rule, "any item, even marked wrong").charted(999_999, 1, at=-9.5, error=1)
    stay.expect(first_charttime=stay.moment(-9.5))
    stay = world.patient(rule, "nothing charted", ordinary=False).expect(first_charttime=None)


def study(world: World) -> None:
    """Who enters the study: onset in (3, 11] hours, white or Black, at least one feature."""
    rule = "onset window"
    for case, hours, enters in (
        ("at 3 h", 3.0, 0),
        ("a minute after 3 h", 3 + MINUTE, 1),
        ("at 11 h", 11.0, 1),
        ("a minute after 11 h", 11 + MINUTE, 0),
    ):
        stay = world.patient(rule, case).prescribed(day=0).cultured(at=hours).failing()
        stay.expect(sepsis3=1, in_cohort=1, in_study=enters)
    stay = world.patient(rule, "hours count from the first charting").charted(220210, 18, at=-2)
    stay.prescribed(day=0).cultured(at=2).failing().expect(in_study=1, y=1)
    world.patient(rule, "without sepsis").expect(in_study=1, y=0)

    rule = "ethnicity"
    white = ("", " - RUSSIAN", " - OTHER EUROPEAN", " - BRAZILIAN", " - EASTERN EUROPEAN")
    for ending in white:
        world.patient(rule, "WHITE" + ending, ethnicity="WHITE" + ending).expect(in_study=1, a=1)
    black = ("AFRICAN AMERICAN", "CAPE VERDEAN", "HAITIAN", "AFRICAN")
    for name in (*(f"BLACK/{ending}" for ending in black), "CARIBBEAN ISLAND"):
        world.patient(rule, name, ethnicity=name).expect(in_study=1, a=0)
    for name in ("PORTUGUESE", "HISPANIC OR LATINO", "ASIAN", "UNKNOWN/NOT SPECIFIED", "white"):
        world.patient(rule, name, ethnicity=name).expect(in_study=0, in_cohort=1)

    rule = "at least one feature"
    world.patient(rule, "none", ordinary=False).charted(220277, 97).expect(in_study=0, in_cohort=1)
    world.patient(rule, "one", ordinary=False).charted(227456, 3.1).expect(in_study=1)
    world.patient(rule, "too late", ordinary=False).charted(220277, 97).charted(
        227456, 3.1, at=3 + MINUTE
    ).expect(in_study=0)
