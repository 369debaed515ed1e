"""How a recorded run writes itself down: a CSV, and beside it how, where, when and with what."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from dcem import __version__
from dcem.benchmark.machine import commit
from dcem.files import write_text

RESULTS = Path(__file__).resolve().parents[1] / "results"


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


def kept(name: str, out: Path, again: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of an earlier run whose `model` is not run again."""
    path = out / f"{name}.csv"
    if not again or not path.exists():
        return []
    table = pd.read_csv(path, keep_default_na=False)
    return list(table[~table["model"].isin(again)].to_dict("records"))


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
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as workers:
        for done in as_completed([workers.submit(*task) for task in tasks]):
            yield from done.result()
            if time.perf_counter() > until:
                workers.shutdown(wait=False, cancel_futures=True)
                break


def show_tables(names: Sequence[str], folder: Path) -> None:
    """Print the recorded runs of these names that there are."""
    for name in names:
        if (folder / f"{name}.csv").exists():
            table = pd.read_csv(folder / f"{name}.csv").round(3)
            print(table.to_string(index=False), end="\n\n")
