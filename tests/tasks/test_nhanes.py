"""The survey as a task, from made-up people under NHANES's names and codes."""

import os
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dcem
from dcem.tasks.nhanes import OUTCOMES, nhanes_features, nhanes_problem, read_nhanes, survey_design

REAL = Path(os.environ.get("DCEM_NHANES", "../shared/real/nhanes.csv.gz"))


@pytest.fixture
def survey(tmp_path):
    """400 people of two cycles; some were told, not asked, or not measured."""
    rng = np.random.default_rng(0)
    n = 400
    last = np.arange(n) >= 200
    frame = pd.DataFrame(
        {
            "SEQN": np.arange(n),
            "cycle": np.where(last, "2017-2020", "2005-2006"),
            "RIDAGEYR": rng.integers(18, 80, n),
            "DIQ010": rng.choice([1, 2, 3], n, p=[0.1, 0.8, 0.1]),
            "DIQ180": rng.choice([1, 2, 9], n, p=[0.5, 0.45, 0.05]),
            "LBXGH": np.where(rng.random(n) < 0.05, np.nan, rng.normal(5.6, 0.6, n)),
            "RIDRETH1": rng.integers(1, 6, n),
            "SDMVSTRA": rng.integers(1, 5, n),
            "SDMVPSU": rng.integers(1, 3, n),
            "WTMEC2YR": np.where(last, np.nan, 1000.0),
            "WTMECPRP": np.where(last, 1000.0, np.nan),
            "HUQ050": np.where(last, np.nan, rng.choice([0, 3, 99], n)),
            "HUQ051": np.where(last, rng.choice([0, 5, 8], n), np.nan),
        }
    )
    for name in ("INDFMPIR", "BMXBMI", "BMXWAIST", "BMXHT", "BMXWT"):
        frame[name] = rng.normal(50, 10, n)
    for name in ("RIAGENDR", "BPQ020", "BPQ080", "HIQ011", "HUQ030"):
        frame[name] = rng.choice([1, 2, 9], n)
    for name in ("DMDEDUC2", "HUQ010", "DMDMARTL", "DMDBORN2"):
        frame[name] = rng.integers(1, 6, n)
    path = tmp_path / "nhanes.csv"
    frame.to_csv(path, index=False)
    return frame, path


def xport(frame: pd.DataFrame) -> bytes:
    """The numbers of a frame as a SAS transport file of version 5, the format of the CDC."""

    def card(text: str) -> bytes:
        return text.ljust(80).encode()

    def ibm(value: float) -> bytes:
        """A sign, a power of 16 from 64 on, and 56 bits; a point stands for what is missing."""
        if np.isnan(value):
            return b"." + bytes(7)
        if value == 0:
            return bytes(8)
        fraction, power = np.frexp(abs(value))
        shift = -power % 4
        mantissa = int(fraction * 2.0 ** (56 - shift))
        return bytes([(value < 0) << 7 | 64 + (power + shift) // 4]) + mantissa.to_bytes(7, "big")

    def named(number: int, name: str) -> bytes:
        whole = struct.pack(">hhhh8s", 1, 0, 8, number + 1, name.ljust(8).encode())
        whole += b" " * 40 + struct.pack(
            ">8shhh2s8shhl", b" " * 8, 0, 0, 0, b"", b" " * 8, 0, 0, 8 * number
        )
        return whole.ljust(140, b"\0")

    def padded(blocks: bytes) -> bytes:
        return blocks.ljust(-(-len(blocks) // 80) * 80)

    zeros = "000000000000000000000000000000"
    head = "HEADER RECORD*******{:<8}HEADER RECORD!!!!!!!{}"
    member = head.format("MEMBER", "000000000000000001600000000140")
    names = b"".join(named(i, name) for i, name in enumerate(frame))
    return b"".join(
        [
            card(head.format("LIBRARY", zeros)),
            card("SAS     SAS     SASLIB  9.4     Linux".ljust(64) + "01JAN20:00:00:00"),
            card("01JAN20:00:00:00"),
            card(member),
            card(head.format("DSCRPTR", zeros)),
            card("SAS     PEOPLE  SASDATA 9.4     Linux".ljust(64) + "01JAN20:00:00:00"),
            card("01JAN20:00:00:00"),
            card(head.format("NAMESTR", f"000000{frame.shape[1]:04d}00000000000000000000")),
            padded(names),
            card(head.format("OBS", zeros)),
            padded(b"".join(ibm(value) for value in frame.to_numpy(float).ravel())),
        ]
    )


def test_the_files_of_the_cdc_are_read_as_the_merged_table_is(survey, tmp_path):
    frame, path = survey
    of_file = {"DEMO": ["RIDAGEYR", "RIAGENDR", "RIDRETH1", "SDMVSTRA", "SDMVPSU", "INDFMPIR"]}
    of_file["DEMO"] += ["DMDEDUC2", "DMDMARTL", "DMDBORN2", "WTMEC2YR", "WTMECPRP"]
    of_file |= {"DIQ": ["DIQ010", "DIQ180"], "GHB": ["LBXGH"], "HIQ": ["HIQ011"]}
    of_file |= {"BMX": ["BMXBMI", "BMXWAIST", "BMXHT", "BMXWT"], "BPQ": ["BPQ020", "BPQ080"]}
    of_file |= {"HUQ": ["HUQ010", "HUQ030", "HUQ050", "HUQ051"]}
    folder = tmp_path / "cdc"
    folder.mkdir()
    for stem, columns in of_file.items():
        for cycle, name in (("2005-2006", f"{stem}_D.XPT"), ("2017-2020", f"p_{stem.lower()}.xpt")):
            rows = frame[frame["cycle"] == cycle]
            rows = rows[rows["LBXGH"].notna()] if stem == "GHB" else rows  # not everybody is there
            shuffled = rows.sample(frac=1, random_state=len(stem))
            (folder / name).write_bytes(xport(shuffled[["SEQN", *columns]]))
    merged, people = read_nhanes(path), read_nhanes(folder).sort_values("SEQN")
    people = people.reset_index(drop=True)[merged.columns]
    pd.testing.assert_frame_equal(people, merged, check_dtype=False)
    pd.testing.assert_frame_equal(nhanes_features(people), nhanes_features(merged))
    with pytest.raises(dcem.InputError, match="files of the survey"):
        read_nhanes(tmp_path / "cdc" / "..")


def test_who_is_in_it(survey):
    frame, path = survey
    people = read_nhanes(path)
    told = frame[frame["DIQ010"] == 1]["SEQN"]
    assert not people["SEQN"].isin(told).any()
    assert people["RIDAGEYR"].min() >= 20
    assert people["DIQ180"].isin([1, 2]).all()
    assert people["LBXGH"].notna().all()
    # a person of the longer cycle stands for more of the 5.2 years
    share = people.groupby("cycle")["survey_weight"].first() / 1000
    assert share.to_dict() == pytest.approx({"2005-2006": 2 / 5.2, "2017-2020": 3.2 / 5.2})


def test_codes_that_are_no_answers_are_missing(survey):
    _, path = survey
    people = read_nhanes(path)
    X = nhanes_features(people)
    assert X.shape[1] == 16
    assert X["insured"].isna().equals(people["HIQ011"] == 9)
    assert X["visits"].isna().equals(people["HUQ050"] == 99)
    newer = people["HUQ051"].map({0: 0, 5: 3, 8: 5})  # more finely coded
    assert (X["visits"][newer.notna()] == newer[newer.notna()]).all()


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_labels_are_seen_where_somebody_was_tested(survey, outcome):
    _, path = survey
    task = dcem.tasks.load_nhanes(path, outcome)
    people = read_nhanes(path)
    for name in ("train", "validation", "test"):
        part, truth = task.split(name), task.truth[name]
        here = people.iloc[part.row]
        np.testing.assert_array_equal(part.tested, here["DIQ180"] == 1)
        np.testing.assert_array_equal(truth, here["LBXGH"] >= OUTCOMES[outcome])
        np.testing.assert_array_equal(part.y_obs[part.tested], truth[part.tested])
    assert task.train.weight is not None
    assert dcem.tasks.load_nhanes(path, outcome, weights=False).train.weight is None


def test_what_is_wrong_is_said(survey, tmp_path):
    frame, path = survey
    with pytest.raises(dcem.InputError, match="diabetes, prediabetes"):
        dcem.tasks.load_nhanes(path, "gout")
    (tmp_path / "empty").mkdir()
    with pytest.raises(dcem.InputError, match=r"DEMO_D\.XPT"):
        read_nhanes(tmp_path / "empty")
    frame.drop(columns="DIQ180").to_csv(path, index=False)
    with pytest.raises(dcem.InputError, match="DIQ180"):
        read_nhanes(path)


@pytest.mark.skipif(not REAL.exists(), reason="nhanes.csv.gz is not here")
def test_the_survey_itself():
    people = read_nhanes(REAL)
    problem, truth = nhanes_problem(people, "prediabetes")
    assert len(problem) == 28_355
    assert truth.mean() == pytest.approx(0.3213, abs=1e-4)
    assert problem.tested.mean() == pytest.approx(0.4955, abs=1e-4)
    stratum, unit = survey_design(people)
    assert (stratum.max() + 1, unit.max() + 1) == (99, 203)


def test_some_cycles_are_enough(survey, tmp_path):
    """Later cycles have other names for weights, marriage, birth and visits."""
    frame, path = survey
    for cycle in ("2005-2006", "2017-2020"):
        part = frame[frame["cycle"] == cycle].dropna(axis=1, how="all").drop(columns="DMDBORN2")
        part.to_csv(tmp_path / "part.csv", index=False)
        people, whole = read_nhanes(tmp_path / "part.csv"), read_nhanes(path)
        same = whole[whole["cycle"] == cycle].reset_index(drop=True)
        assert (people["survey_weight"] == 1000).all()
        known = nhanes_features(people).drop(columns="born_in_us")
        pd.testing.assert_frame_equal(known, nhanes_features(same)[known.columns])
    folder = tmp_path / "cdc"
    folder.mkdir()
    (folder / "DIQ_D.XPT").write_bytes(xport(frame[["SEQN", "DIQ010", "DIQ180"]]))
    with pytest.raises(dcem.InputError, match=r"2005-2006, but no DEMO_D.XPT or GHB_D.XPT"):
        read_nhanes(folder)
