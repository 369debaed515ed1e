"""Record goldens anew: python tests/golden/record.py tables | numbers.

Only where a change is announced in the changelog. The difference is read before it is committed.
"""

import sys
import warnings
from pathlib import Path

import cases
import facts
import pandas as pd

RECORDED = Path(__file__).parent / "recorded"


def tables() -> None:
    """How every column of four tables is read."""
    found = [
        {"table": name, "fact": fact, "value": value}
        for name in [*facts.TABLES, facts.KINDS]
        for fact, value in facts.today(name)[0].items()
    ]
    pd.DataFrame(found).to_csv(RECORDED / "features.csv", index=False, lineterminator="\n")


def numbers() -> None:
    """Every estimate with its interval."""
    made = pd.concat([cases.today(*chapter) for chapter in cases.chapters()])
    made[[*cases.KEY, "value", "low", "high"]].to_csv(
        RECORDED / "estimates.csv",
        index=False,
        float_format="%.10g",
        na_rep="NaN",
        lineterminator="\n",
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in sys.argv[1:]:
        {"tables": tables, "numbers": numbers}[part]()
