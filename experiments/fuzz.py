"""Damaged tables, put through every command: `python experiments/fuzz.py`.

Every table of `tests/support/damages.py` is read, whole and in batches; those that can be read are
scored and allocated with a model of a sound table; one in `EVERY` is audited, compared and fitted.
Writes `results/fuzz.csv`, what was tried and how it ended; `docs/reliability.md` is made from it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import damaged
import numpy as np
from damaged_benchmarks import configurations
from damages import cases

from _record import RESULTS, record
from dcem.audit import audit_labels
from dcem.benchmark.toml_file import load_benchmark
from dcem.compare import compare_methods
from dcem.methods import make
from dcem.scoring import TableModel, next_tests, predict_file
from dcem.table import UserTable, read_table
from dcem.table.messages import InputError
from dcem.table.write import write_frame

EVERY = 8
PLAIN = {"learner": "linear", "n_members": 1}


def fitted(table: UserTable) -> TableModel:
    """A small model of a table."""
    estimator = make("tested-only", random_state=0, **PLAIN)
    estimator.fit_problem(table.problem)
    return TableModel(estimator, table.encoder, table.roles, table.source)


def predicted(model: TableModel, path: Path, rows: int, foreign: str = "") -> bool:
    """Whether as many scores come out as rows went in, and a column in another unit is named."""
    done = predict_file(model, path, path.with_name("scores.parquet"))
    return done.rows == rows and (not foreign or any(n.startswith(foreign) for n in done.notes))


def allocated(model: TableModel, path: Path, tested: np.ndarray) -> bool:
    """Whether everybody untested has a chance, and nobody else."""
    found = next_tests(model, path, 10).table
    untested = np.flatnonzero(~tested)
    chances = found["probability"].to_numpy()
    return bool(np.array_equal(found["row"], untested) and (chances > 0).all())


def returned(model: TableModel, path: Path) -> bool:
    """Whether the list of tests is read back beside the table, each row with its probability."""
    found = next_tests(model, path, 10)
    given = path.with_name("list.csv")
    write_frame(found.table, given)
    again = read_table(path, replace(model.roles, testing_probability=str(given))).problem
    known = again.testing_probability
    if known is None:
        return False
    expected = np.minimum(found.table["probability"].to_numpy(), 1 - 1e-9)
    return bool(np.allclose(known[found.table["row"].to_numpy()], expected))


def loaded(file: Path) -> bool:
    """Whether a benchmark file is read."""
    return bool(load_benchmark(file).name)


def ended(work: Callable[[], bool]) -> str:
    """How it ended: right, refused, wrong, or in a crash."""
    try:
        return "right" if work() else "wrong"
    except InputError:
        return "refused"
    except Exception as error:
        print(f"  {type(error).__name__}: {error}"[:300], file=sys.stderr)
        return "crash"


def main() -> None:
    """Run all and write the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=EVERY)
    every = parser.parse_args().every
    begun = time.perf_counter()
    warnings.simplefilter("ignore")
    counts: Counter[tuple[str, str, str]] = Counter()
    with tempfile.TemporaryDirectory() as place:
        sound = Path(place) / "sound"
        sound.mkdir()
        model = fitted(read_table(damaged.as_csv(damaged.cells(400))(sound), damaged.ROLES))
        for number, case in enumerate(cases()):
            folder = Path(place) / str(number)
            folder.mkdir()
            found, why = damaged.judge(case, folder)
            counts["read", case.family, found] += 1
            if found in ("wrong", "crash"):
                print(case.name, found, why, file=sys.stderr)
            if found != "right":
                continue
            path = case.write(folder)
            table = read_table(path, case.roles)
            problem = table.problem
            if case.roles == damaged.ROLES:
                end = ended(partial(predicted, model, path, len(problem), case.foreign))
                if end == "wrong":
                    print(case.name, "scored in silence", file=sys.stderr)
                counts["predict", "damaged", end] += 1
                end = ended(partial(allocated, model, path, problem.tested))
                counts["next-tests", "damaged", end] += 1
                if case.family in ("identifiers", "names"):
                    end = ended(partial(returned, model, path))
                    counts["list", "damaged", end] += 1
                    if end != "right":
                        print(case.name, "list", end, file=sys.stderr)
            if number % every == 0:
                for name, work in analyses(path, table).items():
                    found = ended(work)
                    counts[name, "damaged", found] += 1
                    if found == "crash":
                        print(case.name, name, file=sys.stderr)
        for name, content in configurations():
            file = Path(place) / "benchmark.toml"
            file.write_bytes(content)
            found = ended(partial(loaded, file))
            counts["benchmark file", "damaged", found] += 1
            if found == "crash":
                print(name, file=sys.stderr)
    rows = []
    for what, family in dict.fromkeys((what, family) for what, family, _ in counts):
        ends = {end: counts[what, family, end] for end in ("right", "refused", "wrong", "crash")}
        rows.append({"what": what, "family": family, "tried": sum(ends.values()), **ends})
    record("fuzz", rows, RESULTS, time.perf_counter() - begun, every=every)


def analyses(path: Path, table: UserTable) -> dict[str, Callable[[], bool]]:
    """The long commands, on a table that was read right."""
    problem = table.problem

    def compared() -> bool:
        how: dict[str, Any] = {"n_folds": 2, "planted": 0, "n_resamples": 5, "n_members": 1}
        how["params"] = {"learner": "linear"}
        return len(compare_methods(problem, ["tested-only", "ipw"], **how).methods) == 2

    def refitted() -> bool:
        model = fitted(table)
        good = predicted(model, path, len(problem))
        return good and (problem.tested.all() or allocated(model, path, problem.tested))

    return {
        "audit": lambda: (
            audit_labels(problem, sources=table.encoder.sources).total.rows == len(problem)
        ),
        "compare": compared,
        "fit": refitted,
    }


if __name__ == "__main__":
    main()
