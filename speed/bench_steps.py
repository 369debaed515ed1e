"""How long do the steps take, and how long was it said that they would?

    python speed/bench_steps.py 10000x20 my/dcem.toml --compare

For random people, or the table of a settings file, a line of JSON each: seconds of fit, audit and
comparison, and what `dcem check` says of them; and, while the comparison went on, how much `dcem
compare` said was left (`dcem.compare.durations`) and how much was. Times of one run compare with
each other; on a machine that does other work, repeat it.
`--trail` adds when each step of the comparison began.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from types import SimpleNamespace

from bench_default import people

SHARES = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)  # of a comparison, after which one asks


def problem_of(given: str):
    """Random people (`ROWSxCOLUMNS`), or the table of a settings file."""
    if not given.endswith(".toml"):
        return people(*map(int, given.split("x"))), None
    from dcem.table import Roles, read_table
    from dcem.table.settings import read_settings

    settings = read_settings(Path(given))
    read = read_table(settings.table, Roles(**settings.roles))
    return read.problem, read.encoder


def compared(problem, encoder) -> list[tuple[float, str]]:
    """When each step of a comparison and its page began, and when all were done."""
    from dcem import compare_methods
    from dcem.report.to_html import to_html

    begun, trail = time.perf_counter(), []

    def told(doing: str) -> None:
        trail.append((round(time.perf_counter() - begun, 2), doing))

    comparison = compare_methods(problem, encoder=encoder, progress=told)
    told("writing")
    to_html(comparison.document())
    told("done")
    return trail


def left(problem, trail: list[tuple[float, str]]) -> list[list[float | None]]:
    """Seconds that had passed, were said to be left, and were left."""
    from dcem.cli._progress import Progress
    from dcem.compare.durations import compare_steps, drawing_seconds
    from dcem.compare.fitting import default_methods

    now, quiet = [0.0], SimpleNamespace(update=lambda text: None, is_terminal=True)
    names = default_methods(problem.decider is not None)
    steps = compare_steps(problem, names) | {"writing": drawing_seconds(len(names))}
    said = Progress(steps, quiet, quiet, clock=lambda: now[0])
    end, found, waiting = trail[-1][0], [], list(trail)
    for passed in (share * end for share in SHARES):
        while waiting[0][0] <= passed:
            now[0], doing = waiting.pop(0)
            said(doing)
        now[0] = passed
        told = said.left()
        found.append([round(passed), None if told is None else round(told), round(end - passed)])
    return found


def main() -> None:
    """Measure, and print a line of JSON for each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=["2000x5", "10000x5", "10000x40", "40000x10"])
    parser.add_argument("--compare", action="store_true", help="also the comparison: minutes each")
    parser.add_argument("--trail", action="store_true")
    given = parser.parse_args()

    from dcem import audit_labels
    from dcem.cli.check import seconds_of
    from dcem.methods.registry import delivered

    for table in given.tables:
        problem, encoder = problem_of(table)
        guessed, found, trail = seconds_of(problem), {}, []

        def seconds(step: str, run, guessed=guessed, found=found):
            begun = time.perf_counter()
            done = run()
            found[step] = [round(time.perf_counter() - begun, 1), round(guessed[step], 1)]
            return done

        seconds("fit", lambda p=problem: delivered("ensemble").fit_problem(p))
        seconds("audit", lambda p=problem: audit_labels(p))
        line = {"table": table, "shape": problem.X.shape, "seconds, and as guessed": found}
        if given.compare:
            trail = seconds("compare", lambda p=problem, e=encoder: compared(p, e))
            line["passed, said to be left, left"] = left(problem, trail)
        print(json.dumps(line | ({"trail": trail} if given.trail else {})), flush=True)


if __name__ == "__main__":
    main()
