"""Roles proposed for tables as hospitals, the police and lenders export them."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dcem.table import Roles, propose_roles, read_table
from dcem.table.candidates import field_of
from dcem.table.columns import HIDDEN, guess_kind
from dcem.table.messages import InputError
from dcem.table.values import FAR_OFF

N = 3000


def remarks(proposal):
    """Doubts and open questions."""
    return [*proposal.doubts, *map(str, proposal.questions)]


def reasons(proposal):
    return {(s.role, s.value): s.reason for s in proposal.suggestions}


@pytest.fixture(scope="module")
def draw():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def stops(draw):
    race = draw.choice(["white", "black", "hispanic", "asian/pacific islander"], N)
    searched = draw.random(N) < np.where(race == "white", 0.2, 0.4)
    found = searched & (draw.random(N) < 0.3)
    return pd.DataFrame(
        {
            "raw_row_number": np.arange(N) + 10_000,
            "date": pd.date_range("2019-01-01", periods=N, freq="7h").strftime("%Y-%m-%d"),
            "subject_age": draw.integers(16, 80, N),
            "subject_race": race,
            "subject_sex": draw.choice(["male", "female"], N),
            "officer_id_hash": draw.choice([f"{i:06x}" for i in range(40)], N),
            "reason_for_stop": draw.choice(["speeding", "lights", "plates"], N),
            "search_conducted": searched,
            "search_basis": np.where(searched, draw.choice(["consent", "plain view"], N), None),
            "contraband_found": np.where(searched, np.where(found, "TRUE", "FALSE"), None),
            "contraband_drugs": np.where(found, draw.random(N) < 0.6, None),
            "arrest_made": found & (draw.random(N) < 0.7),
            "outcome": draw.choice(["warning", "citation", "arrest"], N),
        }
    )


@pytest.fixture(scope="module")
def hospital(draw):
    ordered = draw.random(N) < 0.35
    result = np.where(draw.random(N) < 0.2, "Positive", "Negative")
    return pd.DataFrame(
        {
            "Encounter ID": 5_000_000 + draw.permutation(N),
            "MRN": 800_000 + draw.integers(0, 1800, N),
            "AdmitDateTime": pd.date_range("2021-03-01", periods=N, freq="h").strftime(
                "%m/%d/%Y %H:%M"
            ),
            "Age": draw.integers(18, 95, N),
            "Insurance": draw.choice(["Medicare", "Medicaid", "Private", "None"], N),
            "Sex": draw.choice(["F", "M"], N),
            "HR_max": draw.normal(90, 15, N).round(),
            "Lactate": np.where(draw.random(N) < 0.5, draw.gamma(2, 1, N).round(1), np.nan),
            "Facility": "Main campus",
            "Blood culture result": np.where(ordered, result, "Not ordered"),
            "Discharge diagnosis": draw.choice(["A41.9", "J18.9", "N39.0"], N),
        }
    )


@pytest.fixture(scope="module")
def loans(draw):
    approved = draw.random(N) < 0.6
    status = np.where(draw.random(N) < 0.15, "Charged Off", "Fully Paid")
    return pd.DataFrame(
        {
            "application_id": [f"A{i:07d}" for i in range(N)],
            "fico": draw.integers(500, 850, N),
            "gender": draw.choice(["woman", "man"], N),
            "zip": draw.choice(["02138", "60601", "94110"], N),
            "approved": np.where(approved, "Y", "N"),
            "interest_rate": np.where(approved, draw.normal(12, 3, N).round(2), np.nan),
            "loan_status": np.where(approved, status, ""),
        }
    )


def test_stops_and_searches(stops):
    proposal = propose_roles(stops)
    roles = proposal.roles
    assert roles["label"] == "contraband_found"
    assert roles["tested"] == ["search_conducted"]
    assert roles["group"] == ["subject_race"]
    assert {"raw_row_number", "search_basis", "contraband_drugs", "arrest_made", "outcome"} <= set(
        roles["exclude"]
    )
    assert not {"subject_age", "reason_for_stop", "subject_sex"} & set(roles["exclude"])
    assert any("'subject_sex'" in doubt for doubt in proposal.doubts)
    assert any("'date'" in doubt for doubt in proposal.doubts)


def test_numbers_named_like_codes_are_in_doubt(stops, draw):
    found = propose_roles(stops.assign(vehicle_id=draw.integers(1000, 1120, len(stops))))
    assert any("'vehicle_id'" in doubt and "codes" in doubt for doubt in found.doubts)
    assert ("exclude", "vehicle_id") not in reasons(found)


def test_a_hospital(hospital):
    proposal = propose_roles(hospital)
    roles = proposal.roles
    assert roles["label"] == "Blood culture result"
    assert roles["untested_value"] == ["Not ordered"]
    assert "tested" not in roles
    assert roles["id"] == "MRN"
    assert roles["group"] == ["Sex"]
    assert {"Encounter ID", "Facility", "Discharge diagnosis"} == set(roles["exclude"])
    assert any("'Insurance'" in doubt for doubt in proposal.doubts)


def test_a_lender(loans):
    proposal = propose_roles(loans)
    roles = proposal.roles
    assert (roles["label"], roles["tested"]) == ("loan_status", ["approved"])
    assert roles["positive"] == ["Charged Off"]
    assert {"application_id", "interest_rate"} == set(roles["exclude"])


@pytest.mark.parametrize("table", ["stops", "hospital", "loans"])
def test_what_is_proposed_can_be_read_and_every_role_has_its_reason(table, request):
    frame = request.getfixturevalue(table)
    proposal = propose_roles(frame)
    read = read_table(frame, Roles(**proposal.roles))
    assert not read.leaks
    assert all(reason.endswith(".") for reason in reasons(proposal).values())


def test_a_label_that_only_its_values_tell_has_a_whole_sentence_too(stops):
    plain = stops.rename(columns={"contraband_found": "failed_to_appear"})
    reason = reasons(propose_roles(plain))["label", "failed_to_appear"]
    assert reason.startswith("No result in ")


def test_two_columns_that_together_say_who_was_tested(stops, draw):
    person = stops["search_conducted"] & (draw.random(N) < 0.7)
    vehicle = stops["search_conducted"] & (~person | (draw.random(N) < 0.3))
    apart = stops.drop(columns="search_conducted").assign(
        person_searched=person, vehicle_searched=vehicle
    )
    roles = propose_roles(apart).roles
    assert roles["tested"] == ["person_searched", "vehicle_searched"]
    tested = read_table(apart, Roles(**roles)).problem.tested
    np.testing.assert_array_equal(tested, stops["search_conducted"])


@pytest.mark.parametrize("column", ["contraband_found", "search_conducted"])
@pytest.mark.parametrize("odd", ["Yes", "YES "])
def test_a_cell_in_another_spelling_hides_neither_label_nor_decision(stops, column, odd):
    words = {"TRUE": "yes", "FALSE": "no", True: "yes", False: "no"}
    frame = stops.assign(
        **{name: stops[name].map(words) for name in stops if stops[name].isin(words).any()}
    )
    frame.loc[frame[column].eq("yes").idxmax(), column] = odd
    roles = propose_roles(frame).roles
    assert (roles["label"], roles["tested"]) == ("contraband_found", ["search_conducted"])
    found = frame[["search_conducted", "contraband_found"]].rename(
        columns={"contraband_found": "y"}
    )
    found["y"] = found["y"].fillna("no")  # for "nobody looked"
    assert propose_roles(found).roles == {"label": "y", "tested": ["search_conducted"]}


@pytest.mark.parametrize("empty", [None, "left alone"])
def test_the_decision_is_found_beside_a_label_that_is_given(stops, empty):
    levels = pd.Series(["alpha", "beta", "gamma"] * (N // 3)).where(
        stops["search_conducted"], empty
    )
    frame = stops[["subject_age", "search_conducted"]].assign(seen=levels)
    given = {"label": "seen", "positive": ["alpha"], "untested_value": [empty] if empty else []}
    assert propose_roles(frame, **given).roles["tested"] == ["search_conducted"]


def test_positives_alone_in_two_spellings(draw):
    y = pd.Series(draw.choice(["yes", "Yes"], N)).where(draw.random(N) < 0.2)
    assert propose_roles(pd.DataFrame({"x": draw.normal(size=N), "y": y})).roles == {
        "label": "y",
        "positives_only": True,
    }


def test_zeros_that_mean_nobody_looked(draw):
    tested = draw.random(N) < 0.4
    frame = pd.DataFrame(
        {
            "x": draw.normal(size=N),
            "y": (tested & (draw.random(N) < 0.3)).astype(int),
            "screened": tested.astype(int),
            "group": draw.choice(["a", "b"], N),
        }
    )
    roles = propose_roles(frame).roles
    assert (roles["label"], roles["tested"]) == ("y", ["screened"])
    assert roles["group"] == ["group"]  # named by its role


def test_empty_labels_mean_untested_and_no_tested_column_is_needed(draw):
    label = pd.Series(draw.choice(["yes", "no"], N)).where(draw.random(N) < 0.5)
    frame = pd.DataFrame({"x": draw.normal(size=N), "sepsis": label, "sex": draw.choice([1, 2], N)})
    roles = propose_roles(frame).roles
    assert roles["label"] == "sepsis"
    assert "tested" not in roles


@pytest.mark.parametrize("mark", ["n/a", "Not applicable", "."])
def test_a_label_of_nobody_looked(draw, mark):
    label = pd.Series(draw.choice(["yes", "no"], N)).where(draw.random(N) < 0.5, mark)
    frame = pd.DataFrame({"x": draw.normal(size=N), "sepsis": label, "sex": draw.choice([1, 2], N)})
    roles = propose_roles(frame).roles
    assert (roles["label"], roles["untested_value"]) == ("sepsis", [mark])
    read = read_table(frame, Roles(**roles))
    assert read.problem.tested.tolist() == (label != mark).tolist()


def test_who_decides(draw):
    label = pd.Series(draw.choice(["yes", "no"], N)).where(draw.random(N) < 0.5)
    frame = pd.DataFrame(
        {
            "x": draw.normal(size=N),
            "sepsis": label,
            "sex": draw.choice([1, 2], N),
            "clinic": draw.choice(["north", "south"], N),
        }
    )
    asked = propose_roles(frame)
    assert "decider" not in asked.roles  # a place may be a feature
    assert any("'clinic'" in doubt and "`decider`" in doubt for doubt in asked.doubts)
    named = frame.rename(columns={"clinic": "judge_id"})
    assert propose_roles(named).roles["decider"] == "judge_id"
    few = named.assign(judge_id=[f"j{i}" for i in range(N)])
    assert "decider" not in propose_roles(few).roles
    # who did the test: recorded where there was one
    did = propose_roles(named.assign(judge_id=named.judge_id.where(label.notna()))).roles
    assert "decider" not in did
    assert "judge_id" in did["exclude"]


@pytest.mark.parametrize("name", ["time_in_hospital", "number_of_hospital_stays", "site_pressure"])
def test_a_measure_decides_nothing(draw, name):
    label = pd.Series(draw.choice(["yes", "no"], N)).where(draw.random(N) < 0.5)
    measured = draw.integers(1, 60, N) / 4 if name == "site_pressure" else draw.integers(1, 15, N)
    frame = pd.DataFrame({"sepsis": label, "sex": draw.choice([1, 2], N), name: measured})
    asked = propose_roles(frame)
    assert "decider" not in asked.roles
    assert not any("`decider`" in doubt for doubt in asked.doubts)
    numbered = propose_roles(frame.rename(columns={name: "hospital_id"}).round())
    assert any("'hospital_id'" in doubt and "`decider`" in doubt for doubt in numbered.doubts)


def test_everybody_tested_is_a_doubt(draw):
    frame = pd.DataFrame({"x": draw.normal(size=N), "class": draw.integers(0, 2, N)})
    proposal = propose_roles(frame)
    assert proposal.roles == {"label": "class"}
    assert any("all rows count as tested" in doubt for doubt in proposal.doubts)
    assert any("`group`" in doubt for doubt in proposal.doubts)


@pytest.mark.parametrize("known", [{}, {"positive": ["offer"]}, {"missing": ["site"]}])
def test_a_value_may_be_called_like_a_column(draw, known):
    frame = pd.DataFrame(
        {
            "sex": draw.choice(["F", "M"], N),
            "site": draw.choice(["north", "south"], N),
            "age": draw.integers(18, 60, N),
            "offer": np.where(
                draw.random(N) < 0.4, draw.choice(["offer", "refusal", "site"], N), None
            ),
        }
    )
    plain = propose_roles(
        frame.rename(columns={"offer": "y", "site": "clinic"}), label="y", **known
    )
    found = propose_roles(frame, label="offer", **known)
    assert [one.role for one in found.suggestions] == [one.role for one in plain.suggestions]
    assert found.doubts == tuple(
        one.replace("'y'", "'offer'").replace("'clinic'", "'site'") for one in plain.doubts
    )


def test_a_label_that_marks_the_found_alone(draw):
    found = draw.random(N) < 0.1
    frame = pd.DataFrame({"bmi": draw.normal(size=N), "outcome": np.where(found, "1", None)})
    proposal = propose_roles(frame)
    assert proposal.roles == {"label": "outcome", "positives_only": True}
    assert read_table(frame, Roles(**proposal.roles)).problem.positives_only
    frame["outcome"] = found * 1  # zeros may be results: it has to be said
    assert "positives_only" not in propose_roles(frame).roles
    told = propose_roles(frame, positives_only=True)
    assert told.roles["positives_only"] is True
    assert not any("tested" in doubt for doubt in told.doubts)


def test_no_plausible_label_is_not_guessed(draw):
    hba1c = pd.Series(draw.normal(5.6, 0.8, N)).where(draw.random(N) < 0.5)
    frame = pd.DataFrame({"BMXBMI": draw.normal(size=N), "LBXGH": hba1c, "q1": [1, 2, 3] * 1000})
    proposal = propose_roles(frame)
    assert "label" not in proposal.roles
    assert any("'LBXGH'" in remark for remark in remarks(proposal))


def test_a_decision_and_a_label_that_disagree(loans):
    slipped = loans.copy()
    slipped.loc[slipped.index[slipped["approved"] == "Y"][:4], "loan_status"] = ""
    proposal = propose_roles(slipped)
    assert proposal.roles["label"] == "loan_status"
    assert "tested" not in proposal.roles
    assert any("disagree about who was tested in 4 rows" in doubt for doubt in proposal.doubts)


def test_marks_of_missing_values(draw):
    frame = pd.DataFrame(
        {"diagnosis": draw.choice(["?", "0", "1"], N), "ward": draw.choice(["?", "A", "B"], N)}
    )
    assert propose_roles(frame).roles == {"label": "diagnosis", "missing": ["?"]}


def test_a_german_export(draw):
    """Names, yes and no, and what stands where nobody looked, in another language."""
    asked = draw.random(N) < 0.4
    high = np.where(draw.random(N) < 0.2, "erhöht", "normal")
    table = pd.DataFrame(
        {
            "Fall-Nr.": [f"F{i:06d}" for i in range(N)],
            "Patienten ID": 10_000 + draw.integers(0, 1500, N),
            "Geschlecht": draw.choice(["M", "W", "D"], N),
            "CRP [mg/l]": np.where(draw.random(N) < 0.1, "n.v.", draw.normal(9, 2, N).round(2)),
            "BMI": np.where(draw.random(N) < 0.07, -9, draw.normal(27, 4, N).round(1)),
            "HbA1c angefordert": np.where(asked, "ja", "nein"),
            "HbA1c-Befund": np.where(asked, high, "steht aus"),
            "Entlassgrund": draw.choice(["01", "02"], N),
        }
    )
    proposal = propose_roles(table)
    assert proposal.roles == {
        "label": "HbA1c-Befund",
        "tested": ["HbA1c angefordert"],
        "group": ["Geschlecht"],
        "id": "Patienten ID",
        "exclude": ["Fall-Nr.", "Entlassgrund"],
        "positive": ["erhöht"],
        "untested_value": ["steht aus"],
        "missing": ["n.v."],
    }
    assert any("'BMI': -9" in doubt for doubt in proposal.doubts)
    kinds = {c.name: c.kind for c in read_table(table, Roles(**proposal.roles)).columns}
    assert kinds["CRP [mg/l]"] == "number"


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (np.r_[np.arange(20, 80), [999] * 5], "999"),
        (np.r_[np.arange(0, 12), [-8] * 3], "-8"),
        (np.r_[np.arange(0, 12), [-1] * 3], None),  # one step away
        (np.r_[np.arange(0, 100), [99] * 5], None),
        (np.r_[np.arange(20, 80), [250] * 5], None),  # not a number that is written for missing
        (np.r_[np.arange(0, 30), [97, 98, 99]], "97, 98, 99"),
        (np.r_[np.arange(0, 30), [77, 88, 99]], "77, 88, 99"),
        (np.r_[np.arange(1, 9), [-7, -8, -9]], "-7, -8, -9"),
        (np.r_[np.arange(1, 10), [99]], "99"),  # 7 to 9 are what comes next
        (np.r_[np.arange(20, 78), [998]], "998"),
        (np.arange(5, 10), None),
        (np.r_[np.arange(1, 6), [7, 9]], "7, 9"),
        (np.arange(18, 100), None),
        (np.r_[np.tile(np.arange(20, 96), 50), [999] * 3], "999"),  # rare, and plainly no age
        (np.r_[np.tile(np.arange(20, 96), 50), [-1]], "-1"),
        (np.r_[np.tile(np.arange(0, 96), 50), [-9]], "-9"),
        (np.r_[np.tile(np.arange(20, 76), 50), [99]], None),  # rare, and may be an age
        (np.r_[np.tile(np.arange(0, 4), 500), [9]], None),  # or a large family
    ],
)
def test_a_number_that_stands_for_a_missing_one_is_pointed_out(numbers, said):
    note = guess_kind("x", pa.chunked_array([pa.array(numbers)])).note
    assert re.search(rf"(^|; ){said} lies? {FAR_OFF}", note) if said else FAR_OFF not in note


def test_two_hundred_columns_and_eight_groups(draw):
    frame = pd.DataFrame(draw.normal(size=(2000, 200)).round(2)).add_prefix("lab ")
    frame["Ethnicity"] = draw.choice([f"group {i}" for i in range(8)], 2000)
    frame["outcome"] = pd.Series(draw.choice([0.0, 1.0], 2000)).where(draw.random(2000) < 0.3)
    roles = propose_roles(frame).roles
    assert (roles["label"], roles["group"]) == ("outcome", ["Ethnicity"])
    assert "exclude" not in roles


def test_odd_names(draw):
    frame = pd.DataFrame(
        draw.normal(size=(500, 4)), columns=["", "a,b", "lab_*", "<b>x</b>"]
    ).assign(**{"Größe [m]": draw.normal(size=500), "Race/Ethnicity": draw.choice(["a", "b"], 500)})
    frame["test result?"] = pd.Series(draw.choice(["pos", "neg"], 500)).where(
        draw.random(500) < 0.5
    )
    roles = propose_roles(frame).roles
    assert roles == {"label": "test result?", "group": ["Race/Ethnicity"]}


def test_a_file(tmp_path, loans):
    loans.to_csv(tmp_path / "loans.csv", index=False)
    assert propose_roles(tmp_path / "loans.csv").roles == propose_roles(loans).roles
    (tmp_path / "empty.csv").write_text("label,group\n")
    with pytest.raises(InputError, match=r"empty\.csv: .*no rows"):
        propose_roles(tmp_path / "empty.csv")


def test_a_number_that_comes_again_does_not_number_the_rows(draw):
    result = pd.Series(draw.choice(["POS", "NEG"], 500)).where(draw.random(500) < 0.5)
    frame = pd.DataFrame({"Case no": draw.integers(0, 2000, 500), "result": result})
    proposal = propose_roles(frame)
    assert "repeats" in reasons(proposal)["exclude", "Case no"]
    assert any("'Case no'" in doubt and "`id`" in doubt for doubt in proposal.doubts)
    named = frame.rename(columns={"Case no": "Pt. No."})
    assert propose_roles(named).roles["id"] == "Pt. No."


@pytest.mark.parametrize(
    "name", ["Kundennr", "Kunden-Nummer", "customerid", "PatientID", "id_cliente"]
)
def test_people_are_known_by_their_number_in_several_languages(draw, name):
    result = pd.Series(draw.choice(["ja", "nein"], 500)).where(draw.random(500) < 0.5)
    numbers = {"Antragsnummer": np.arange(500), name: draw.integers(0, 300, 500)}
    where = draw.choice(["Mitte", "Ost", "Nord"], 500)
    proposal = propose_roles(pd.DataFrame({**numbers, "Bezirk": where, "Ausfall": result}))
    assert proposal.roles["id"] == name
    assert proposal.roles["exclude"] == ["Antragsnummer"]
    assert proposal.roles["group"] == ["Bezirk"]


def test_what_a_rule_decides_by_stays_a_feature_and_is_doubted(draw):
    """Without it the approved would seem to represent those whom the rule leaves out."""
    score = draw.normal(650, 60, 900).round()
    approved = score > 620
    frame = pd.DataFrame(
        {
            "score": score,
            "income": draw.normal(size=900),
            "approved": np.where(approved, "approved", "declined"),
            "default": np.where(approved, draw.choice(["Y", "N"], 900), ""),
        }
    )
    proposal = propose_roles(frame)
    assert proposal.roles["tested"] == ["approved"]
    assert "exclude" not in proposal.roles
    assert any("'score'" in doubt for doubt in proposal.doubts)


def test_what_is_of_a_person_is_not_the_person(draw):
    n = 1000
    frame = pd.DataFrame(
        {
            "patient_age": draw.integers(18, 90, n),
            "driver_weight": draw.normal(70, 9, n).round(1),
            "record_date": pd.date_range("2024", periods=n // 2).repeat(2).astype(str),
            "record_id": np.arange(n) // 2 + 1000,  # each of them twice
            "body_mass_index": draw.normal(27, 4, n).round(2),
            "prior_arrests": draw.poisson(1, n),
            "officer_rank": draw.choice(["PC", "Sergeant"], n),
            "officer_badge": draw.choice([f"B{i}" for i in range(20)], n),
            "Officer-defined ethnicity": draw.choice(["A", "B"], n),
            "y": draw.choice([0, 1, np.nan], n),
        }
    )
    proposal = propose_roles(frame)
    assert proposal.roles == {
        "label": "y",
        "id": "record_id",
        "group": ["Officer-defined ethnicity"],
        "decider": "officer_badge",
    }
    named = propose_roles(frame.rename(columns={"record_id": "visit_id"}))
    assert named.roles["exclude"] == ["visit_id"]
    assert any("Values of 'visit_id' repeat" in doubt for doubt in named.doubts)


def test_an_outcome_in_words_is_asked_for_and_kept(draw):
    found = np.where(draw.random(500) < 0.5, draw.choice(["Arrest", "Caution", "NFA"], 500), "")
    frame = pd.DataFrame({"x": draw.normal(size=500), "Outcome": found})
    proposal = propose_roles(frame)
    assert proposal.roles == {}
    assert any("'Outcome'" in one and "`positive`" in one for one in remarks(proposal))
    units = frame.assign(temp=[f"{36 + i % 40 / 10} °C" for i in range(500)], Outcome=found != "")
    assert any(HIDDEN in doubt for doubt in propose_roles(units).doubts)
    gaps = pd.DataFrame({"x": draw.normal(size=500), "case": draw.choice([0, 1, np.nan], 500)})
    (question,) = propose_roles(gaps).questions
    assert question.answers[0][0] == {"label": "case"}


def test_missing_values_that_are_given_are_cut_at_commas(draw):
    frame = pd.DataFrame({"x": draw.normal(size=400), "sex": draw.choice([1, 2, 9], 400)})
    frame["y"] = draw.choice([0, 1, np.nan], 400)
    proposal = propose_roles(frame, missing=["?,sex=9"])
    assert proposal.roles["missing"] == ["?", "sex=9"]
    assert "2 values: " in reasons(proposal)["group", "sex"]


@pytest.mark.parametrize(
    ("known", "found"),
    [
        ({"label": "lab_result", "exclude": "lab_*"}, {"exclude": ["lab_x"]}),
        ({"label": "lab_result", "category": "lab_*"}, {"category": ["lab_x", "lab_result"]}),
        ({"prevalence": 0.4}, {"prevalence": "0.4"}),
        ({"test_sensitivity": {"F": 0.9, "M": 0.8}}, {"test_sensitivity": "F=0.9,M=0.8"}),
        ({"positive": 0, "positives_only": False}, {"positive": ["0"]}),
    ],
)
def test_roles_that_are_given_in_any_form_are_kept(draw, known, found):
    frame = pd.DataFrame({"lab_x": draw.normal(size=400), "sex": draw.choice(["F", "M"], 400)})
    frame["clinic"] = draw.choice(list("abc"), 400)
    frame["lab_result"] = draw.choice([0, 1, np.nan], 400)
    roles = propose_roles(frame, **known).roles
    assert roles["label"] == "lab_result"
    assert found.items() <= roles.items()
    assert "positives_only" not in roles
    read_table(frame, Roles(**roles))


def test_the_weight_of_a_survey_is_proposed_where_everybody_has_one(draw):
    frame = pd.DataFrame({"fnlwgt": draw.integers(9000, 90_000, 400), "x": draw.normal(size=400)})
    frame["y"] = draw.choice([0, 1, np.nan], 400)
    assert propose_roles(frame).roles["weight"] == "fnlwgt"
    gaps = frame.assign(fnlwgt=frame["fnlwgt"].where(frame.index > 9))
    assert "weight" not in propose_roles(gaps).roles


def test_a_long_table_that_is_sorted_is_looked_at_all_over(draw, tmp_path):
    n, approved = 120_000, 70_000
    frame = pd.DataFrame({"x": draw.normal(size=n).round(2), "customer_id": np.arange(n) // 3})
    frame["default"] = draw.choice([0.0, 1.0], n)
    frame.loc[approved:, "default"] = np.nan  # the declined, below
    frame.to_parquet(tmp_path / "t.parquet")
    for source in (frame, tmp_path / "t.parquet"):
        proposal = propose_roles(source)
        assert 25_000 < proposal.rows < 50_000
        assert proposal.roles == {"label": "default", "id": "customer_id"}
        assert "no result in 4" in reasons(proposal)["label", "default"]
        assert "whose rows stay together" in reasons(proposal)["id", "customer_id"]


def test_a_column_that_would_be_a_number_is_not_left_out_for_good(draw):
    label = pd.Series(draw.choice(["yes", "no"], N)).where(draw.random(N) < 0.5)
    size = [f"{value:.3f} cm" for value in draw.normal(5, 1, N)]
    frame = pd.DataFrame({"sepsis": label, "sex": draw.choice(2, N), "x": draw.normal(size=N)})
    found = propose_roles(frame.assign(size=size))
    assert "size" not in found.roles.get("exclude", ())
    assert any("'size' is left out: text because of its unit" in doubt for doubt in found.doubts)


def test_words_of_other_fields(draw):
    """Referrals that were investigated, with a 0 where nobody looked; applicants interviewed."""
    looked = draw.random(N) < 0.4
    referrals = pd.DataFrame(
        {
            "prior": draw.poisson(1, N),
            "investigated": np.where(looked, "Yes", "No"),
            "substantiated": (looked & (draw.random(N) < 0.3)).astype(int),
        }
    )
    found = propose_roles(referrals).roles
    assert (found["label"], found["tested"]) == ("substantiated", ["investigated"])
    offers = pd.Series(draw.choice(["offer", "reject"], N, p=[0.3, 0.7])).where(looked)
    applicants = pd.DataFrame(
        {"years": draw.gamma(2, 3, N), "interviewed": looked.astype(int), "offer": offers}
    )
    found = propose_roles(applicants).roles
    assert (found["label"], found["tested"]) == ("offer", ["interviewed"])
    assert found["positive"] == ["offer"]


@pytest.mark.parametrize(
    ("name", "results", "blank"),
    [
        ("blood_culture", ("positive", "negative", "contaminated"), "not done"),
        ("covid_test", ("POSITIVE", "NEGATIVE"), None),
        ("biopsy", ("malignant", "benign"), ""),
    ],
)
def test_a_column_with_the_values_of_a_test_is_the_label_though_named_like_the_test(
    name, results, blank, draw
) -> None:
    column = draw.choice(np.array([*results, blank], object), N)
    column[:40] = "pending"
    table = pd.DataFrame({"heart_rate": draw.normal(80, 9, N), "sex": ["f", "m"] * (N // 2)})
    found = propose_roles(table.assign(**{name: column}))
    assert found.roles["label"] == name
    assert "pending" in found.roles["untested_value"]
    assert "unknown" in reasons(found)["untested_value", "pending"]


def test_a_decision_is_not_the_label_and_a_trait_of_everybody_neither(draw) -> None:
    table = pd.DataFrame(
        {
            "blood_culture": draw.choice(["yes", "no"], N),
            "rhesus": draw.choice(["positive", "negative"], N),
            "length_of_stay": draw.integers(1, 30, N),
            "icu_los": draw.integers(0, 9, N),
            "los_angeles": draw.choice(["yes", "no"], N),
        }
    )
    found = propose_roles(table)
    assert "label" not in found.roles
    assert found.roles["exclude"] == ["length_of_stay", "icu_los"]


@pytest.mark.parametrize(("open_rows", "doubted"), [(90, True), (0, False), (1200, False)])
def test_a_decision_with_results_still_to_come_is_pointed_out(open_rows, doubted, draw) -> None:
    granted = draw.random(N) < 0.5
    known = granted & (np.arange(N) < N - open_rows * 2)
    table = pd.DataFrame(
        {
            "decision": np.where(granted, "granted", "declined"),
            "default_12m": np.where(known, draw.choice(["Y", "N"], N), None),
            "income": draw.normal(40, 9, N),
        }
    )
    waiting = int((granted & ~known).sum())
    doubts = [one for one in propose_roles(table).doubts if f"{waiting:,} row" in one]
    assert [all(name in one for name in ("`tested`", "`until`")) for one in doubts] == [
        True
    ] * doubted


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["officer_id", "search_conducted", "contraband_found"], "policing"),
        (["loan_amount", "officer_id", "application_date"], "credit"),
        (["officer_id", "bus_stop"], "general"),
    ],
)
def test_names_of_columns_speak_of_a_field(columns, words) -> None:
    assert field_of(columns)[0] == words


@pytest.mark.parametrize("code", ["9", "-9", "99"])
def test_a_code_beside_yes_and_no_is_proposed_as_an_unknown_result(draw, code) -> None:
    results = draw.choice(["0", "1", code], N, p=[0.5, 0.2, 0.3])
    table = pd.DataFrame({"age": draw.integers(18, 90, N), "sepsis": results})
    found = propose_roles(table)
    assert found.roles["label"] == "sepsis"
    assert "the result is unknown" in reasons(found)["untested_value", code]
    for others in (["0", "1", "2"], ["7", "8", "9"], ["-1", "0", "1"]):
        found = propose_roles(table.assign(sepsis=draw.choice(others, N)))
        assert "untested_value" not in found.roles


def test_what_init_says_of_dates_that_need_a_word(draw) -> None:
    times = (
        pd.date_range("2020", periods=N, freq="h").strftime("%Y-%m-%dT%H:%M:%S").to_numpy(object)
    )
    table = pd.DataFrame(
        {
            "sepsis": draw.choice(["0", "1", ""], N),
            "seen": np.where(np.arange(N) % 3, times, times + "+02:00"),
            "valid_to": np.where(np.arange(N) % 3, times, "9999-12-31T00:00:00"),
        }
    )
    said = " ".join(propose_roles(table).doubts)
    assert "'seen': some times have an offset (+02:00), the others are read as UTC." in said
    assert "list valid_to=9999-12-31T00:00:00 under `missing`." in said


def test_a_word_for_unknown_among_numbers_is_not_proposed_as_missing_everywhere(draw) -> None:
    lab = [f"{x:.2f}" for x in draw.gamma(2, 1, N)]
    table = pd.DataFrame(
        {
            "sepsis": draw.choice(["0", "1", ""], N),
            "lactate": np.where(np.arange(N) % 5, lab, "unknown"),
            "smoker": draw.choice(["never", "now", "unknown"], N),
        }
    )
    roles = propose_roles(table).roles
    assert "missing" not in roles
    kinds = {
        c.name: (c.kind, round(c.missing, 1)) for c in read_table(table, Roles(**roles)).columns
    }
    assert kinds["lactate"] == ("number", 0.2)
    assert kinds["smoker"] == ("category", 0.0)


def test_a_column_with_results_is_named_where_none_is_taken_as_the_label(draw) -> None:
    table = pd.DataFrame(
        {
            "Sexe": draw.choice(["Homme", "Femme"], N),
            "Blutkultur": draw.choice(["positiv", "negativ", "n. d."], N),
        }
    )
    found = propose_roles(table)
    assert found.roles["group"] == ["Sexe"]
    (question,) = found.questions
    assert question.answers[0][0] == {"label": "Blutkultur"}


def test_a_label_with_results_still_to_come_is_known_by_the_decision(draw) -> None:
    """And not a feature that is 'unknown' in some rows."""
    released, pending = draw.random(N) < 0.6, draw.random(N) < 0.05
    table = pd.DataFrame(
        {
            "Employed": draw.choice(["Y", "N", "unknown"], N, p=[0.6, 0.37, 0.03]),
            "Released": np.where(released, "Yes", "No"),
            "FTA": np.where(pending, "Pending", draw.choice(["Yes", "No"], N)),
        }
    )
    table.loc[~released, "FTA"] = None
    found = propose_roles(table)
    assert (found.roles["label"], found.roles["exclude"]) == ("FTA", ["Released"])
    assert sum("'Released'" in doubt for doubt in found.doubts) == 1
    given = propose_roles(table, tested=["Released"])
    assert not any("says yes in" in doubt for doubt in given.doubts)
    assert propose_roles(table.drop(columns="Released")).roles["label"] == "FTA"


def test_short_words_for_a_result_and_a_policyholder(draw) -> None:
    ordered = draw.random(N) < 0.2
    table = pd.DataFrame(
        {
            "PolicyHolder": draw.integers(10_000, 10_000 + N, N),
            "smoker": draw.choice(["Y", "N", None], N, p=[0.2, 0.78, 0.02]),
            "troponin": np.where(ordered, draw.choice(["POS", "NEG"], N), None),
        }
    )
    roles = propose_roles(table).roles
    assert (roles["label"], roles["id"]) == ("troponin", "PolicyHolder")


@pytest.mark.parametrize(
    ("bad", "good", "said"),
    [
        ("defekt", "fehlerfrei", "sounds like"),  # one of two tells the other
        ("positiv", "negativ", ""),
        ("fail", "pass", "sounds like"),
    ],
)
def test_the_reason_for_a_positive_value_is_what_it_was_chosen_by(draw, bad, good, said):
    result = np.where(draw.random(N) < 0.2, bad, good)
    frame = pd.DataFrame({"x": draw.normal(size=N), "result": result})
    frame.loc[draw.random(N) < 0.5, "result"] = ""
    why = reasons(propose_roles(frame)).get(("positive", bad), "")
    assert said in why
    assert bool(said) == bool(why)
    assert ("sounds like" in why) == (said == "sounds like")
