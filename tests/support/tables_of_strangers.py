"""Tables as strangers bring them: neutral names, imputed zeros, codes, and columns that mislead.

Each has the roles that are true of it. `tested` is empty where the gaps of the label say it all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

N = 3000


@dataclass(frozen=True)
class Stranger:
    frame: pd.DataFrame
    label: str
    tested: list[str]
    group: str | None

    must_ask: str | None = None  # a role that the table leaves open


TABLES: dict[str, Callable[[np.random.Generator], Stranger]] = {}


def stranger(make: Callable[[np.random.Generator], Stranger]) -> Callable:
    """Put the table on the list."""
    TABLES[make.__name__] = make
    return make


def logistic(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def chosen(draw: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return draw.random(len(z)) < logistic(z)


def blanked(values: np.ndarray, rows: np.ndarray) -> pd.Series:
    return pd.Series(values, dtype=object).mask(rows, None)


@stranger
def followed_up_and_dead(draw: np.random.Generator) -> Stranger:
    """A hospital's cohort: death is known of those who were followed up, and 0 of the others."""
    age, severity = draw.integers(18, 95, N), draw.normal(size=N)
    c2 = draw.choice(["A", "B", "C"], N, p=[0.6, 0.25, 0.15])
    followed = chosen(draw, 0.4 + 0.5 * severity - 0.7 * (c2 == "C"))
    dead = followed & chosen(draw, -1.5 + severity)
    frame = pd.DataFrame(
        {
            "c1": age,
            "c2": c2,
            "c3": draw.normal(120, 15, N).round(),
            "c4": severity.round(3),
            "diabetes": draw.integers(0, 2, N),
            "copd": (draw.random(N) < 0.15).astype(int),
            "statin": (draw.random(N) < 0.4).astype(int),
            "followed_up": followed.astype(int),
            "dead_180d": dead.astype(int),
        }
    )
    return Stranger(frame, "dead_180d", ["followed_up"], "c2")


@stranger
def ordered_and_flu(draw: np.random.Generator) -> Stranger:
    x = draw.normal(size=N)
    ordered = chosen(draw, -0.5 + x)
    frame = pd.DataFrame(
        {
            "age": draw.integers(1, 90, N),
            "sex": draw.choice(["F", "M"], N),
            "temp": (37 + x).round(1),
            "cough": chosen(draw, x).astype(int),
            "ordered": ordered.astype(int),
            "flu": (ordered & chosen(draw, x - 1)).astype(int),
            "oseltamivir": (draw.random(N) < 0.1).astype(int),
        }
    )
    return Stranger(frame, "flu", ["ordered"], "sex")


@stranger
def neutral_throughout(draw: np.random.Generator) -> Stranger:
    """No name means anything; the zeros of v12 are imputed where v11 is 0."""
    x = draw.normal(size=(N, 6))
    grp = draw.choice(["A", "B", "C"], N)
    seen = chosen(draw, x[:, 0] - 0.3)
    frame = pd.DataFrame(x.round(3), columns=[f"v{i}" for i in range(1, 7)])
    frame.insert(1, "c2", grp)
    for i in (7, 8, 9, 10):
        frame[f"v{i}"] = (draw.random(N) < 0.1 * (i - 5)).astype(int)
    frame["v11"] = seen.astype(int)
    frame["v12"] = (seen & chosen(draw, x[:, 1] - 1)).astype(int)
    return Stranger(frame, "v12", ["v11"], "c2")


@stranger
def hard_cut_off(draw: np.random.Generator) -> Stranger:
    """Everybody from 200 on is measured, nobody below; whether it is positive, words tell."""
    risk = draw.normal(200, 40, N).round()
    seen = risk >= 200
    result = np.where(chosen(draw, (risk - 260) / 20), "elevated", "normal")
    frame = pd.DataFrame(
        {
            "site": draw.choice(["N", "S"], N),
            "ethnicity": draw.choice(["p", "q", "r"], N),
            "screening_value": risk,
            "bmi": draw.normal(27, 4, N).round(1),
            "second_look": blanked(result, ~seen),
        }
    )
    return Stranger(frame, "second_look", [], "ethnicity")


@stranger
def five_similar_panels(draw: np.random.Generator) -> Stranger:
    """A viral panel: five tests with gaps, of which one is the study's, and 5.9 % Strepto A."""
    x = draw.normal(size=N)
    frame = pd.DataFrame(
        {
            "age_quantile": draw.integers(0, 20, N),
            "ward": draw.choice(["regular", "intensive", "none"], N),
            "hemoglobin": x.round(3),
        }
    )
    panel = chosen(draw, x - 1)
    for name, rate in {"Influenza A": 0.05, "Influenza B": 0.08, "Rhinovirus": 0.25}.items():
        result = np.where(draw.random(N) < rate, "detected", "not_detected")
        frame[name] = np.where(panel, result, None)
    strepto = draw.random(N) < 0.059
    result = draw.choice(["positive", "negative"], N, p=[0.2, 0.8])
    frame["Strepto A"] = np.where(strepto, result, "not_done")
    swabbed = chosen(draw, x)
    result = np.where(chosen(draw, x - 1.5), "positive", "negative")
    frame["SARS result"] = np.where(swabbed, result, "not_done")
    return Stranger(frame, "SARS result", [], "ward")


@stranger
def comorbidity_named_like_an_outcome(draw: np.random.Generator) -> Stranger:
    x = draw.normal(size=N)
    measured = chosen(draw, 0.8 * x - 0.5)
    frame = pd.DataFrame(
        {
            "patient_id": np.arange(N) + 10_000,
            "race": draw.choice(["white", "black", "other"], N),
            "diabetes": chosen(draw, x - 1).astype(int),
            "cancer": (draw.random(N) < 0.1).astype(int),
            "heart_disease": blanked(draw.integers(0, 2, N), np.arange(N) < 5),
            "crp": np.exp(x).round(2),
            "ejection_low": blanked(chosen(draw, x - 0.5).astype(int), ~measured),
        }
    )
    return Stranger(frame, "ejection_low", [], "race")


@stranger
def codes_for_groups(draw: np.random.Generator) -> Stranger:
    """Groups are codes from a survey; the decision and its result are, too, as 0 and 1."""
    x = draw.normal(size=N)
    tested = chosen(draw, x)
    frame = pd.DataFrame(
        {
            "q1": draw.choice([1, 2, 3, 5], N, p=[0.4, 0.3, 0.2, 0.1]),
            "q2": draw.integers(18, 80, N),
            "q3": x.round(2),
            "q4": draw.poisson(2, N),
            "q17": tested.astype(int),
            "q18": (tested & chosen(draw, x - 1)).astype(int),
        }
    )
    return Stranger(frame, "q18", ["q17"], "q1")


@stranger
def german_clinic(draw: np.random.Generator) -> Stranger:
    x = draw.normal(size=N)
    tested = chosen(draw, x - 0.2)
    result = np.where(chosen(draw, x - 1), "Nachgewiesen", "Nicht nachgewiesen")
    frame = pd.DataFrame(
        {
            "Fallnummer": [f"F{i:05d}" for i in range(N)],
            "Alter": draw.integers(18, 90, N),
            "Geschlecht": draw.choice(["m", "w"], N),
            "Versicherung": draw.choice(["gesetzlich", "privat"], N, p=[0.85, 0.15]),
            "Leukozyten": np.exp(x).round(2),
            "Blutkultur abgenommen": np.where(tested, "Ja", "Nein"),
            "Erreger": np.where(tested, result, "Nicht_untersucht"),
        }
    )
    return Stranger(frame, "Erreger", ["Blutkultur abgenommen"], "Geschlecht")


@stranger
def lender_with_zeros(draw: np.random.Generator) -> Stranger:
    x = draw.normal(size=N)
    approved = x + 0.3 * draw.normal(size=N) > -0.2
    frame = pd.DataFrame(
        {
            "application_id": np.arange(N),
            "gender": draw.choice(["f", "m"], N),
            "income": (40 + 10 * x).round(1),
            "purpose": draw.choice(["car", "home", "other"], N),
            "approved": approved.astype(int),
            "default": (approved & chosen(draw, -x - 1)).astype(int),
        }
    )
    return Stranger(frame, "default", ["approved"], "gender")


@stranger
def police_with_zeros(draw: np.random.Generator) -> Stranger:
    black = draw.random(N) < 0.3
    searched = chosen(draw, -1 + black)
    hit = searched & (draw.random(N) < 0.3)
    frame = pd.DataFrame(
        {
            "stop_id": np.arange(N) + 7_000,
            "driver_race": np.where(black, "Black", "White"),
            "driver_age": draw.integers(16, 80, N),
            "searched": np.where(searched, "Yes", "No"),
            "contraband": np.where(hit, "Yes", "No"),
            "arrested": np.where(hit & (draw.random(N) < 0.6), "Yes", "No"),
        }
    )
    return Stranger(frame, "contraband", ["searched"], "driver_race")


@stranger
def few_positives_among_noise(draw: np.random.Generator) -> Stranger:
    """40 positives; of 30 random columns several are never 0 beside a positive, by chance."""
    frame = pd.DataFrame({"sex": draw.choice(["F", "M"], N), "age": draw.integers(18, 90, N)})
    for i in range(30):
        frame[f"flag{i}"] = (draw.random(N) < draw.uniform(0.05, 0.97)).astype(int)
    seen = draw.random(N) < 0.4
    y = np.zeros(N, int)
    y[draw.choice(np.flatnonzero(seen), 40, replace=False)] = 1
    frame["reviewed"], frame["event"] = seen.astype(int), y
    return Stranger(frame, "event", ["reviewed"], "sex")


@stranger
def columns_with_five_blanks(draw: np.random.Generator) -> Stranger:
    x = draw.normal(size=N)
    frame = pd.DataFrame({"region": draw.choice(["n", "e", "s", "w"], N), "score_a": x.round(2)})
    for name in ("smoker", "married", "homeowner", "employed"):
        five = draw.permutation(N) < 5
        frame[name] = blanked(draw.choice(["Y", "N"], N), five)
    frame["reoffended"] = blanked(draw.choice(["Y", "N"], N, p=[0.3, 0.7]), ~chosen(draw, x))
    return Stranger(frame, "reoffended", [], "region")


@stranger
def not_done_with_hyphens(draw: np.random.Generator) -> Stranger:
    x = draw.normal(size=N)
    done = chosen(draw, x - 1)
    result = np.where(chosen(draw, x - 0.5), "DETECTED", "Not-Detected")
    frame = pd.DataFrame(
        {
            "hispanic": draw.choice(["no", "yes"], N),
            "fever": x.round(1),
            "pcr": np.where(done, result, "NOT_DONE"),
        }
    )
    return Stranger(frame, "pcr", [], "hispanic")


@stranger
def treatment_that_fits_the_first_half(draw: np.random.Generator) -> Stranger:
    """All positives are treated and billed, and so are a few others; charts are mostly closed."""
    x = draw.normal(size=N)
    seen = chosen(draw, x - 0.3)
    y = seen & chosen(draw, x - 1)
    frame = pd.DataFrame(
        {
            "c1": draw.choice(["A", "B", "C"], N),
            "c2": x.round(2),
            "antibiotic": (y | (draw.random(N) < 0.12)).astype(int),
            "code_995": (y | (draw.random(N) < 0.01)).astype(int),
            "chart_closed": (y | (draw.random(N) < 0.97)).astype(int),
            "workup": seen.astype(int),
            "late_death": y.astype(int),
        }
    )
    return Stranger(frame, "late_death", ["workup"], "c1", must_ask="tested")


@stranger
def billing_code_that_follows(draw: np.random.Generator) -> Stranger:
    """The code is written for all positives and hardly anybody else; it is no test."""
    x = draw.normal(size=N)
    seen = chosen(draw, x - 0.3)
    y = seen & chosen(draw, x - 1)
    frame = pd.DataFrame(
        {
            "c1": draw.choice(["A", "B", "C"], N),
            "c2": x.round(2),
            "checked": seen.astype(int),
            "code_995": (y | (draw.random(N) < 0.01)).astype(int),
            "late_death": y.astype(int),
        }
    )
    return Stranger(frame, "late_death", ["checked"], "c1")


@stranger
def two_things_that_may_be_the_test(draw: np.random.Generator) -> Stranger:
    x = draw.normal(size=N)
    asked = chosen(draw, x + 0.5)
    done = asked & (draw.random(N) < 0.7)
    frame = pd.DataFrame(
        {
            "k": draw.choice(["red", "blue"], N),
            "x": x.round(2),
            "invited": asked.astype(int),
            "attended": done.astype(int),
            "polyp": (done & chosen(draw, x - 1)).astype(int),
        }
    )
    return Stranger(frame, "polyp", ["attended"], "k", must_ask="tested")


@stranger
def lost_turned_round(draw: np.random.Generator) -> Stranger:
    """The column says who was *not* seen, and no role can be given to it as it is."""
    x = draw.normal(size=N)
    lost = chosen(draw, -x - 0.5)
    frame = pd.DataFrame(
        {
            "arm": draw.choice(["a", "b"], N),
            "x": x.round(2),
            "lost": lost.astype(int),
            "relapse": (~lost & chosen(draw, x - 1)).astype(int),
        }
    )
    return Stranger(frame, "relapse", [], "arm", must_ask="tested")


@stranger
def audits_of_claims(draw: np.random.Generator) -> Stranger:
    x = draw.normal(size=N)
    audited = chosen(draw, x - 1)
    frame = pd.DataFrame(
        {
            "claim": [f"C{i}" for i in range(N)],
            "category": draw.choice(["auto", "home", "health", "life"], N),
            "amount": np.exp(6 + x).round(2),
            "audited": np.where(audited, "audited", "not_audited"),
            "fraud": blanked(np.where(chosen(draw, x - 1), "fraud", "no fraud"), ~audited),
        }
    )
    return Stranger(frame, "fraud", ["audited"], "category")


@stranger
def date_of_the_test_only(draw: np.random.Generator) -> Stranger:
    """No column says yes or no; the date of the test is filled in where there was one."""
    x = draw.normal(size=N)
    seen = chosen(draw, x)
    days = pd.Timestamp("2022-01-01") + pd.to_timedelta(draw.integers(0, 700, N), "D")
    frame = pd.DataFrame(
        {
            "race": draw.choice(["a", "b", "c"], N),
            "x": x.round(2),
            "biopsy_day": blanked(days.strftime("%Y-%m-%d").to_numpy(), ~seen),
            "malignant": (seen & chosen(draw, x - 1)).astype(int),
        }
    )
    return Stranger(frame, "malignant", [], "race", must_ask="tested")


@stranger
def five_panels_without_a_name(draw: np.random.Generator) -> Stranger:
    """As above, but nothing says which of the five is the one that matters."""
    five = five_similar_panels(draw)
    frame = five.frame.rename(columns={"SARS result": "Corona"})
    return Stranger(frame, "Corona", [], "ward", must_ask="label")


@stranger
def group_that_follows_from_a_feature(draw: np.random.Generator) -> Stranger:
    """The district is the first digit of the code of the place."""
    place, x = draw.integers(100, 400, N), draw.normal(size=N)
    visited = chosen(draw, x - 0.5)
    frame = pd.DataFrame(
        {
            "place_code": place,
            "zone": pd.Series(place // 100).map({1: "inner", 2: "middle", 3: "outer"}),
            "rooms": draw.integers(1, 9, N),
            "rent": np.exp(6 + x).round(),
            "inspected": np.where(visited, "yes", "no"),
            "violation": np.where(visited & chosen(draw, x - 1), "yes", "no"),
        }
    )
    return Stranger(frame, "violation", ["inspected"], "zone")


@stranger
def codes_one_and_two(draw: np.random.Generator) -> Stranger:
    """Yes is 1 and no is 2; only a person can say so."""
    x = draw.normal(size=N)
    seen = chosen(draw, x)
    result = blanked(np.where(chosen(draw, x - 1), 1, 2), ~seen)
    frame = pd.DataFrame(
        {
            "RIDRETH1": draw.integers(1, 6, N),
            "BMXBMI": (27 + x).round(1),
            "DIQ_positive": result,
        }
    )
    return Stranger(frame, "DIQ_positive", [], "RIDRETH1", must_ask="positive")


@stranger
def hospital_of_neutral_names(draw: np.random.Generator) -> Stranger:
    """Imputed zeros, yes and no in words, the decision after the label, and a hard rule for it."""
    x = draw.normal(size=(N, 3))
    looked = (x[:, 0] > 0.3) | (draw.random(N) < 0.1)
    frame = pd.DataFrame(
        {
            "f1": x[:, 0].round(2),
            "f2": draw.choice(["p", "q"], N),
            "f3": x[:, 1].round(2),
            "f4": draw.poisson(2, N),
            "f5": np.where(draw.random(N) < 0.3, "yes", "no"),
            "f6": np.where(looked & chosen(draw, x[:, 1] - 1), "yes", "no"),
            "f7": np.where(looked, "yes", "no"),
        }
    )
    return Stranger(frame, "f6", ["f7"], "f2")
