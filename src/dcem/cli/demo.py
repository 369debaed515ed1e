"""`dcem demo`: the main job on simulated people, from biased labels to a report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import numpy as np

    from dcem.metrics import Interval
    from dcem.report.results import Comparison, Estimate, GroupCounts, History
    from dcem.tasks import Task

# In the order of the report; the first is what the others are compared with.
METHODS = {
    "y-obs": "Takes the table at its word: whoever was not tested counts as negative.",
    "tested-only": "Learns from the tested alone and applies that to everybody.",
    "dcem": "Fills in the missing outcomes by expectation-maximisation, with a model of who is "
    "tested.",
    "y-model": "Learns from the true outcome of everybody; only a simulation allows it.",
}
LEVEL = 0.95


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the report and the tables.")
    ] = Path("demo-output"),
    quick: Annotated[
        bool,
        typer.Option("--quick", help="4,000 people a split instead of 20,000, fewer resamples."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the networks and the resamples.")] = 0,
) -> None:
    """Simulate biased labelling, fit and compare methods, write a report.

    Two groups of simulated people: one is ill twice as often and tested half as often. Three
    methods that see only what was tested, and one that is given the truth, are judged against the
    truth of fresh people. Writes `report.html` (one file, no network), `report.md` and
    `comparison.csv`.
    """
    from rich.console import Console

    from dcem.report import html, tables
    from dcem.report.files import write_text
    from dcem.report.task_figures import draw_task
    from dcem.tasks import make_sinusoid

    console = Console(highlight=False)
    started = time.perf_counter()
    n = 4_000 if quick else 20_000
    console.print(f"Simulating {n:,} people to learn from, {n:,} to validate, {n:,} to judge by.")
    task = (
        make_sinusoid(stream="independent", random_state=seed, n_train=n, n_validation=n, n_test=n)
        if quick
        else make_sinusoid()
    )
    comparison = compare(task, seed, 100 if quick else 300, console)
    console.print()
    show(comparison, console)
    files = {
        "report.html": html.render(comparison, [draw_task(task)]),
        "report.md": tables.to_markdown(comparison),
        "comparison.csv": tables.to_csv(comparison),
    }
    for name, text in files.items():
        write_text(out / name, text)
    console.print(f"\nDone in {time.perf_counter() - started:.0f} seconds. Open the report:")
    console.print(f"  {out / 'report.html'}", style="bold", soft_wrap=True)
    console.print(f"  beside it: {', '.join(list(files)[1:])}")


def compare(task: Task, seed: int, resamples: int, console: Any) -> Comparison:
    """Fit every method to a task and judge it on the truth of the test split."""
    from dcem import methods, metrics
    from dcem.evaluate import paired_differences
    from dcem.report.results import Comparison, Curve, MethodResult

    test, truth = task.test, task.truth["test"]
    group = [test.group_names[code] for code in test.group]
    scores: dict[str, np.ndarray] = {}
    seconds, history = {}, {}
    for name in METHODS:
        with console.status(f"fitting {name} ..."):
            begun = time.perf_counter()
            model = methods.make(name, random_state=seed)
            known = (task.truth["train"], task.truth["validation"])
            extra = {"truth": known} if model.uses_truth else {}
            model.fit_problem(task.train, validation=task.validation, **extra)
            seconds[name] = time.perf_counter() - begun
            history[name] = history_of(model)
            scores[name] = model.predict_proba(test.X)[:, 1]
        console.print(f"  fitted {name:<12} {seconds[name]:5.1f} s")
    with console.status("resampling the test people ..."):
        reference = next(iter(METHODS))
        gains = paired_differences(
            truth, scores, group, reference=reference, n_replicates=resamples, random_state=seed
        )
        results = []
        for name, summary in METHODS.items():
            judged = metrics.bootstrap(
                truth, scores[name], group, n_replicates=resamples, random_state=seed, level=LEVEL
            )
            curves = metrics.group_roc_curves(truth, scores[name], group)
            results.append(
                MethodResult(
                    name=name,
                    what_it_does=summary,
                    uses_truth=methods.make(name).uses_truth,
                    auc=estimate(judged.auc),
                    roc_gap=estimate(judged.roc_gap),
                    gap_by_chance=quantile(judged.roc_gap.reference, 0.95),
                    auc_difference=estimate(next(iter(judged.auc_differences.values()))),
                    auc_gain=estimate(gains[name]["auc"]) if name in gains else None,
                    gap_change=estimate(gains[name]["roc_gap"]) if name in gains else None,
                    curves={str(of): Curve(c.fpr, c.tpr) for of, c in curves.items()},
                    seconds=seconds[name],
                    history=history[name],
                )
            )
    return Comparison(
        title="Learning from biased labels: a demonstration",
        description="Simulated people of two groups. Group 1 is ill twice as often as group 0, and "
        "is tested half as often. The untested are recorded as negative. How well do models rank "
        "people by risk, and do they serve both groups equally?",
        level=LEVEL,
        resamples=resamples,
        groups=count(task),
        methods=tuple(results),
        configuration=configuration(task, seed),
        versions=versions(),
    )


def show(comparison: Comparison, console: Any) -> None:
    """Print the comparison as a table with its conclusion."""
    from rich.table import Table

    from dcem.report import tables, words

    table = Table(title="Judged on the truth of fresh people", title_justify="left", box=None)
    shown = [column for column in tables.COLUMNS if column != "AUC difference"]  # 80 columns wide
    for column in shown:
        table.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    for method, cells in zip(comparison.methods, tables.rows(comparison), strict=True):
        by_column = dict(zip(tables.COLUMNS, cells, strict=True))
        table.add_row(*map(by_column.get, shown), style="dim" if method.uses_truth else None)
    console.print(table)
    console.print(f"{words.level(comparison)} intervals; y-model is given the truth.", style="dim")
    console.print()
    for sentence in words.conclusions(comparison):
        console.print(f"- {sentence.replace('`', '')}", markup=False)


def estimate(interval: Interval) -> Estimate:
    """A library interval as the report's plain number."""
    from dcem.report.results import Estimate

    return Estimate(interval.estimate, interval.low, interval.high, interval.reason or "")


def quantile(values: np.ndarray, share: float) -> float:
    """A quantile, NaN of nothing."""
    import numpy as np

    return float(np.quantile(values, share)) if len(values) else float("nan")


def count(task: Task) -> tuple[GroupCounts, ...]:
    """Who was tested among those to learn from, and what was seen."""
    from dcem.report.results import GroupCounts

    train, truth = task.train, task.truth["train"]
    return tuple(
        GroupCounts(
            name=name,
            people=int(here.sum()),
            tested=int(train.tested[here].sum()),
            positives_seen=int((train.y_imputed[here] == 1).sum()),
            positives=int(truth[here].sum()),
        )
        for name, here in ((n, train.group == code) for code, n in enumerate(train.group_names))
    )


def history_of(model: Any) -> History | None:
    """The course of an EM fit, for methods that have one."""
    import numpy as np

    from dcem.report.results import History

    if not hasattr(model, "history_"):
        return None
    shown = {
        "train_loss": "training",
        "validation_loss": "validation, everybody",
        "tested_validation_loss": "validation, the tested",
    }
    why = {
        "max_iter": "All iterations that were allowed were used.",
        "no_improvement": "EM stopped when the loss on tested validation rows no longer fell.",
    }
    return History(
        loss={label: np.asarray(model.history_[key]) for key, label in shown.items()},
        kept=model.best_iter_,
        termination=why[model.termination_],
    )


def configuration(task: Task, seed: int) -> Mapping[str, str]:
    """What made this comparison, for its last section."""
    from math import degrees

    p = task.params
    return {
        "simulation": f"{task.kind}, {p['preset']}, {p['stream']} stream",
        "setting": f"q_y {p['q_y']:g}, k {p['k']:g}, q_t {p['q_t']:g}, "
        f"phase {degrees(p['phase']):g}°",
        "people": f"{len(task.train):,} to learn from, {len(task.validation):,} to validate, "
        f"{len(task.test):,} to judge by",
        "seed": str(seed),
    }


def versions() -> Mapping[str, str]:
    """Versions of what computed the numbers."""
    import platform
    from importlib.metadata import version

    packages = ("numpy", "scikit-learn", "torch")
    return {
        "dcem": version("dcem"),
        "Python": platform.python_version(),
        **{name: version(name) for name in packages},
    }
