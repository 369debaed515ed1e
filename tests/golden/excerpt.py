"""Write the excerpts of 1,000 rows: python excerpt.py FOLDER-OF-FULL-TABLES."""

import gzip
import sys
from pathlib import Path

import pandas as pd

ROWS = 1000
FOLDER = Path(__file__).parent / "tables"
WHOLE = {"diabetes130": "patient_nbr", "credit-default": "ID", "nhanes": "SEQN"}


def excerpt(table: pd.DataFrame, person: str) -> pd.DataFrame:
    """Whole people, evenly spread over the table, about 1,000 rows of them."""
    people = table[person].drop_duplicates()
    step = len(table) / ROWS
    kept = people.iloc[[int(i * step) for i in range(int(len(people) / step))]]
    return table[table[person].isin(set(kept))]


def main(full: Path) -> None:
    """Write all three, byte for byte the same every time."""
    FOLDER.mkdir(exist_ok=True)
    for name, person in WHOLE.items():
        table = pd.read_csv(full / f"{name}.csv.gz", dtype=str, keep_default_na=False)
        text = excerpt(table, person).to_csv(index=False, lineterminator="\n")
        (FOLDER / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
