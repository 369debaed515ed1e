"""Columns as people write them: what each is read as must not change in silence.

`RARE` names the spellings that a later version may give up. It may then read them as text, if it
says so, but never as other numbers.
"""

import numpy as np
import pandas as pd

ROWS = 1200
RARE = {"price", "share", "mixed share", "sas", "sas time", "excel", "minus", "joined date"}


def kinds() -> dict[str, list[str]]:
    """Name of a column -> its cells as text."""
    rng = np.random.default_rng(0)

    def mixed(share: float, word: str, values: list[str]) -> list[str]:
        return [
            word if hit else value
            for hit, value in zip(rng.random(ROWS) < share, values, strict=True)
        ]

    def dates(form: str, freq: str = "D") -> list[str]:
        return list(pd.date_range("2020", periods=ROWS, freq=freq).strftime(form))

    def choice(values: list[str], p: list[float] | None = None) -> list[str]:
        return list(rng.choice(values, ROWS, p=p))

    numbers = [f"{value:.2f}" for value in rng.normal(size=ROWS)]
    order = rng.permutation(2 * ROWS)[:ROWS]
    return {
        "measurement": numbers,
        "with NA": mixed(0.3, "NA", numbers),
        "with blanks": mixed(0.3, "", numbers),
        "with words": mixed(0.005, "hemolyzed", numbers),
        "with limits": mixed(0.1, "<0.5", numbers),
        "icd": choice(["250.01", "428", "414", "V57", "E909"]),
        "zip": choice(["02139", "10027", "94110"]),
        "admission_type_id": choice(list("12345678")),
        "time_in_hospital": choice(list("12345678")),
        "visit": [str(i) for i in range(ROWS)],
        "patient_nbr": [str(i) for i in order],
        "uuid": [f"{i:x}-{i * 7:x}" for i in range(ROWS)],
        "smoker": choice(["Yes", "no"]),
        "flag": choice(["True", "False"]),
        "iso": dates("%Y-%m-%d %H:%M:%S", "h"),
        "us": dates("%m/%d/%Y"),
        "german": dates("%d.%m.%Y"),
        "sas": dates("%d%b%Y"),
        "sas time": dates("%d%b%Y:%H:%M:%S"),
        "excel": dates("%m/%d/%Y %I:%M:%S %p"),
        "joined date": dates("%Y%m%d"),
        "minus": [f"−{i % 50}.5" for i in range(ROWS)],
        "price": [f"${i:,}.50" for i in range(ROWS)],
        "share": [f"{i % 100} %" for i in range(ROWS)],
        "mixed share": [f"{i % 40} %" if i % 2 else f"0.{i % 40}" for i in range(ROWS)],
        "exponent": [f"{value:.3e}" for value in rng.lognormal(size=ROWS)],
        "large": [str(10**9 + 37 * i) for i in rng.integers(0, 500, ROWS)],
        "constant": ["x"] * ROWS,
        "nearly constant": ["x"] * (ROWS - 3) + ["y"] * 3,
        "empty": [""] * ROWS,
        "glucose": choice(["None", "Norm", ">200", ">300"], [0.9, 0.05, 0.03, 0.02]),
        "rare level": ["nine"] * 9 + choice(["a", "b"])[9:],
        "ten level": ["ten"] * 10 + choice(["a", "b"])[10:],
        "many levels": [f"ward {i % 40}" for i in range(ROWS)],
    }


def table() -> pd.DataFrame:
    """All of these columns beside a label that a third of the people lack, and three groups."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(kinds())
    frame["group"] = rng.choice(["A", "B", "None"], ROWS, p=[0.6, 0.35, 0.05])
    frame["label"] = rng.choice(["pos", "neg", ""], ROWS, p=[0.2, 0.46, 0.34])
    return frame
