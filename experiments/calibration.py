"""Calibration of the testing probability of the published DCEM.

    python experiments/calibration.py


Twelve boundaries at q_y 1/2, k 1, q_t 2, on the published data sets; five temperatures, each group.
`dcem reproduce calibration --from results` draws it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from _record import RESULTS, record
from dcem.paper.exhibits.calibration import curves, errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder to write into")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    options = parser.parse_args()
    started = time.monotonic()
    table = curves(device=options.device)
    record("calibration", table.to_dict("records"), options.out, time.monotonic() - started)
    print(
        errors(table).groupby(["temperature", "group"])["error"].describe()[["min", "50%", "max"]]
    )


if __name__ == "__main__":
    main()
