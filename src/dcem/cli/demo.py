"""`dcem demo`: the main job on simulated people, from biased labels to a report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcem.cli._outputs import Outputs
from dcem.cli._progress import telling

if TYPE_CHECKING:
    from dcem.compare.results import TableComparison
    from dcem.tasks import Task

METHODS = ("y-obs", "tested-only", "dcem", "y-model")  # in the order of the report

TITLE = "Learning from biased labels: a demonstration"
LEAD = (
    "Simulated people of two groups. Group 1 is ill twice as often as group 0, and is tested half "
    "as often; the untested are recorded as negative."
)


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the report and the tables.")
    ] = Path("demo-output"),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Use 4,000 people per split instead of 20,000, and fewer resamples."
        ),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the networks and the resamples.")] = 0,
) -> None:
    """Simulate biased labelling, fit and compare methods, and write a report.

    Simulates two groups of people: one is ill twice as often as the other and tested half as
    often. Three methods that see only the recorded labels, and one that sees the truth, are judged
    against the true outcomes of new people. Writes `report.html` (one file, no network needed),
    `report.md` and `comparison.csv`.
    """
    from dcem.cli._console import Console
    from dcem.report.document import Figure
    from dcem.report.figures.task import draw_task
    from dcem.tasks import make_sinusoid

    console = Console(highlight=False)
    outputs = Outputs([(out / "report.html", "html"), (out / "report.md", "md")], out)
    n = 4_000 if quick else 20_000
    console.print(f"Simulating {n:,} people to learn from, {n:,} to validate, {n:,} to judge by.")
    task = (
        make_sinusoid(stream="independent", random_state=seed, n_train=n, n_validation=n, n_test=n)
        if quick
        else make_sinusoid()
    )
    comparison = compare_on_truth(task, seed, 100 if quick else 300, console)
    document = comparison.document(TITLE, LEAD, [Figure(lambda: draw_task(task))])
    outputs.write(
        document, console, {out / "comparison.csv": comparison.to_frame().to_csv(index=False)}
    )
    console.print(
        "The demo compares the paper's methods. On your own table, dcem fit uses ensemble, unless "
        "dcem compare shows that another method is clearly better."
    )


def compare_on_truth(task: Task, seed: int, resamples: int, console: Any) -> TableComparison:
    """Fit every method to a task and judge it on the truth of the test split."""
    from dcem.compare.run import compare_methods

    with telling(demo_steps(task), console) as progress:
        return compare_methods(
            task.train,
            METHODS,
            truth=task.truth,
            validation=task.validation,
            test=task.test,
            planted=0,
            n_resamples=resamples,
            random_state=seed,
            n_members=1,
            data=configuration(task, seed),
            progress=progress,
        )


def demo_steps(task: Task) -> dict[str, float]:
    """What the demo tells its progress, and the seconds of each step as they were measured.

    Its networks take as long for few people as for many. The first of the models of who is tested,
    and the first network, import their libraries; that network is DCEM's, the longest to fit.
    """
    from dcem.compare.durations import compare_steps, drawing_seconds
    from dcem.compare.run import DOING, JUDGING

    people = len(task.train)
    seconds = {DOING: 1.3, JUDGING: 5e-5 * people}
    steps = compare_steps(task.train, METHODS, split=True, planted=0)
    found = {step: seconds.get(step.partition(",")[0], 6e-6 * people) for step in steps}
    network = next(step for step in found if step.startswith(DOING))
    found[next(iter(found))] += 1.5
    found[network] += 4.0
    return found | {"writing": drawing_seconds(len(METHODS))}


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
