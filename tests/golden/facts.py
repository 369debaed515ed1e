"""Facts about the tables whose reading is recorded: hashes of features, and kinds of columns."""

import hashlib
import warnings
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import kinds
import names
import numpy as np
import pandas as pd

HERE = Path(__file__).parent
TABLES = {
    "diabetes130": {
        "label": "A1Cresult",
        "positive": [">7", ">8"],
        "untested_value": "None",
        "group": "race",
        "id": "patient_nbr",
        "missing": "?",
        "exclude": ["encounter_id"],
    },
    "credit-default": {"label": "class", "group": "SEX", "exclude": ["ID"]},
    "nhanes": {
        "label": "DIQ180",
        "positive": "1",
        "group": "RIDRETH1",
        "id": "SEQN",
    },
}
KINDS = "kinds"


def source(name: str, folder: Path) -> Path:
    """The file of a table; that of the kinds of column is written anew."""
    if name != KINDS:
        return HERE / "tables" / f"{name}.csv.gz"
    file = folder / "kinds.csv"
    kinds.table().to_csv(file, index=False)
    return file


def digest(values: np.ndarray) -> str:
    """Hash of numbers; every NaN is the same, and -0 is 0."""
    plain = np.where(np.isnan(values), np.nan, values) + 0.0
    return hashlib.sha256(np.ascontiguousarray(plain, "<f8").tobytes()).hexdigest()[:16]


def facts(table) -> dict[str, str]:
    """Hash of each feature, of labels, tests and groups, and what each column was read as."""
    rows = names.rows(table)
    group = pd.Series(rows["group"])
    levels = sorted(group.unique())
    return {
        **{f"feature: {name}": digest(x) for name, x in names.features(table).items()},
        **{f"column: {name}": kind for name, (kind, _) in names.columns(table).items()},
        "label": digest(rows["label"].astype(float)),
        "tested": digest(rows["tested"].astype(float)),
        "groups": " | ".join(levels),
        "group": digest(group.map(levels.index).to_numpy(float)),
    }


def read(name: str, folder: Path):
    roles = TABLES.get(name, {"label": "label", "group": "group", "positive": "pos"})
    return names.read(source(name, folder), **roles)


@cache
def today(name: str) -> tuple[dict[str, str], dict[str, str]]:
    """The facts of a table, and the note about each column."""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = read(name, Path(folder))
        return facts(table), {c: note for c, (_, note) in names.columns(table).items()}
