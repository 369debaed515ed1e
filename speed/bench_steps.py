"""How long do the steps take, in units of a first look? `python speed/bench_steps.py 10000x20`

What `dcem check` tells of the time that audit, comparison and fit will take are proportions that
were measured here: seconds of each step, and of the quick models that `check` times. Times of one
run compare with each other; on a machine that does other work, repeat it.
"""

from __future__ import annotations

import argparse
import json
import time

from bench_default import people


def main() -> None:
    """Measure, and print a line of JSON for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", default=["2000x5", "10000x5", "10000x40", "40000x10"])
    parser.add_argument("--compare", action="store_true", help="also the comparison: minutes each")
    given = parser.parse_args()

    from dcem import audit_labels, compare_methods
    from dcem.compare.first_look import first_look
    from dcem.methods.registry import delivered

    for size in given.sizes:
        rows, columns = map(int, size.split("x"))
        problem = people(rows, columns)
        guessed = first_look(problem).seconds
        steps = {"fit": lambda p=problem: delivered("ensemble").fit_problem(p)}
        steps["audit"] = lambda p=problem: audit_labels(p)
        if given.compare:
            steps["compare"] = lambda p=problem: compare_methods(p)
        found = {}
        for name, run in steps.items():
            begun = time.perf_counter()
            run()
            found[name] = [round(time.perf_counter() - begun, 1), round(guessed[name], 1)]
        print(json.dumps({"size": size, "seconds, and as guessed": found}), flush=True)


if __name__ == "__main__":
    main()
