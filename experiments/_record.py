"""What experiments share: their command line, work in many processes, means, and recorded runs.

A recorded run is a CSV, and beside it how, where, when and with what it was made.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from dcem import __version__
from dcem.benchmark.machine import commit
from dcem.files import write_text

RESULTS = Path(__file__).resolve().parents[1] / "results"
CORES = os.cpu_count() or 1
ONE_CORE = {"OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1"}  # read by workers: a core each
HELP = {
    "out": "folder to write into",
    "data": "a table, or the folder of tables (docs/data.md)",
    "fits": "repetitions of training",
    "splits": "repetitions of judging in time",
    "again": "what is run again; the rest is kept as recorded",
    "only": "only what has this in its name",
    "seconds": "stop after so many",
    "resume": "go on after the recorded ones",
    "device": "auto, cpu or cuda",
}


def command(
    doc: str | None, run: Callable[..., None], show: Callable[[Path], None], **options: Any
) -> None:
    """The command line of an experiment: `run` with its options (name -> default), then `show`.

    An option that is None by default names a file or folder; False, a flag; a list, many values.
    """
    parser = argparse.ArgumentParser(description=(doc or "").split("\n")[0])
    parser.add_argument("action", choices=["run", "show"])
    for name, default in {**options, "out": RESULTS}.items():
        kind: dict[str, Any] = {"type": type(default)}
        if default is None or isinstance(default, Path):
            kind = {"type": Path}
        elif isinstance(default, bool | list):
            kind = {"action": "append" if default == [] else "store_true"}
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, default=default, help=HELP.get(name), **kind)
    given = vars(parser.parse_args())
    if given.pop("action") == "run":
        run(**given)
    show(given["out"])


def device_name() -> str:
    """The card, or the processor and its number of threads."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{platform.machine()} CPU, {torch.get_num_threads()} threads"


def provenance(seconds: float, **more: Any) -> dict[str, Any]:
    """Versions, commit, device, command, date and time taken."""
    packages = ("torch", "numpy", "scipy", "scikit-learn", "pandas")
    return {
        "command": " ".join(["python", *map(_plain, sys.argv)]),
        "date": time.strftime("%Y-%m-%d"),
        "seconds": round(seconds, 1),
        "device": device_name(),
        "python": platform.python_version(),
        "dcem": __version__,
        "commit": commit() or "unknown",
        **{name: version(name) for name in packages},
        **more,
    }


def _plain(argument: str) -> str:
    """An argument without the folders of the machine it ran on."""
    if "/" not in argument:
        return argument
    name = Path(argument).name
    return f"experiments/{name}" if name.endswith(".py") else name


def recorded(name: str, out: Path) -> list[dict[str, Any]]:
    """Rows of an earlier run, to go on from."""
    path = out / f"{name}.csv"
    if not path.exists():
        return []
    return [dict(row) for row in pd.read_csv(path, keep_default_na=False).to_dict("records")]


def kept(name: str, out: Path, again: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of an earlier run whose `model` is not run again."""
    return [row for row in recorded(name, out) if again and row["model"] not in again]


def record(
    name: str, rows: Sequence[dict[str, Any]], out: Path, seconds: float, **more: Any
) -> None:
    """Write `name.csv` and `name.json` into `out`, whole or not at all."""
    write_text(out / f"{name}.csv", pd.DataFrame(rows).to_csv(index=False, float_format="%.6f"))
    write_text(out / f"{name}.json", json.dumps(provenance(seconds, **more), indent=2) + "\n")
    print(f"wrote {name}.csv: {len(rows)} rows, {seconds:.0f} s on {device_name()}")


def finished(tasks: Sequence[tuple[Any, ...]], jobs: int, until: float) -> Iterator[dict[str, Any]]:
    """Rows of tasks (a function that returns rows, and its arguments), in so many processes.

    Past `until` (of `time.perf_counter`) no more are begun or waited for: fewer repetitions.
    """
    os.environ |= ONE_CORE
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as workers:
        for done in as_completed([workers.submit(*task) for task in tasks]):
            yield from done.result()
            if time.perf_counter() > until:
                workers.shutdown(wait=False, cancel_futures=True)
                break


def in_time(waiting: Any, tasks: int, until: float) -> Iterator[Any]:
    """What comes of `imap` before `until` (of `time.time`); says how much did, if not all."""
    for number in range(tasks):
        try:
            yield waiting.next(timeout=max(1.0, until - time.time()))
        except multiprocessing.TimeoutError:
            print(f"{number} of {tasks} in time", flush=True)
            return


def growing(
    work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], jobs: int, every: int
) -> Iterator[list[Any]]:
    """What came of the first `every` tasks, of twice as many, ..., and of all.

    To be written as it goes: what a time limit ends is a run with fewer repetitions.
    """
    os.environ |= ONE_CORE
    found: list[Any] = []
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as workers:
        for one in workers.map(work, *zip(*tasks, strict=True)):
            found.append(one)
            if len(found) % every == 0 or len(found) == len(tasks):
                yield found


def means(
    rows: Iterable[dict[str, Any]],
    keys: Sequence[str],
    order: Iterable[str] = (),
    count: str = "repetitions",
) -> list[dict[str, Any]]:
    """Means over repetitions of what names a row: those of `keys` that it has.

    Names stand in the given order, or else sorted. A number that some repetitions lack is the mean
    of the others.
    """
    table = pd.DataFrame(rows)
    keys = [name for name in keys if name in table]
    table = table.astype(dict.fromkeys(table.columns.drop(keys), float))
    grouped = table.groupby(keys, sort=False)
    found = grouped.mean()
    found.insert(0, count, grouped.size())
    places = {name: place for place, name in enumerate(order)}
    found = found.reset_index().sort_values(
        keys, key=lambda names: names.map(lambda name: places.get(name, name))
    )
    return [dict(row) for row in found.to_dict("records")]


def record_means(
    tables: Mapping[str, tuple[Sequence[tuple[Any, ...]], float]],
    out: Path,
    jobs: int,
    seconds: float,
    of: Callable[[list[dict[str, Any]]], Sequence[dict[str, Any]]],
) -> None:
    """Run and record one table after the other: its tasks, and its share of the time by then."""
    begin = time.perf_counter()
    for name, (tasks, share) in tables.items():
        rows = list(finished(tasks, jobs, begin + share * seconds))
        if rows:
            record(name, of(rows), out, time.perf_counter() - begin, workers=jobs)


def scores_beside(truth: Any, risk: Any, score: Any, begin: float) -> dict[str, float]:
    """How good scores of new people are: for their truth, beside their risk; and the time."""
    from dcem.metrics import auc

    return {
        "auc": float(auc(truth, score)),
        "best_auc": float(auc(truth, risk)),
        "mean_score": float(score.mean()),
        "mean_risk": float(risk.mean()),
        "off": float(abs(score - risk).mean()),
        "seconds": time.perf_counter() - begin,
    }


def show_tables(*names: str, upright: bool = False) -> Callable[[Path], None]:
    """Print the recorded runs of these names that are in a folder; `upright`: a column per row."""

    def show(folder: Path) -> None:
        for name in names:
            if (folder / f"{name}.csv").exists():
                table = pd.read_csv(folder / f"{name}.csv").round(3)
                told = table.T.to_string(header=False) if upright else table.to_string(index=False)
                print(told, end="\n\n")

    return show
