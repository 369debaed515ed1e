"""`dcem demo`: an audit and a comparison of simulated patients, beside the truth about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcem.cli._progress import telling

if TYPE_CHECKING:
    from dcem.audit.results import Audit
    from dcem.compare.results import TableComparison
    from dcem.tasks.patients import Patients

METHODS = {  # in the order of the table
    "y-obs:boost": "boosted trees, the untested as negative",
    "tested-only:linear": "logistic regression on the tested",
    "tested-only:boost": "boosted trees on the tested",
    "ensemble": "ensemble, the default of dcem",
}
LEAD = (
    "Simulated patients. The doctor was made to test group B less than group A with the same "
    "symptoms, so that you can see whether that is found."
)


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the table and the pages.")
    ] = Path("demo-output"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Simulate 1,500 patients instead of 4,000.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the patients and the models.")] = 1,
) -> None:
    """Audit a simulated table, compare models on it, and show the truth beside each estimate.

    Simulates patients of two groups. Some of them are tested for an infection, in one group fewer
    than in the other. Writes the table that a hospital would have (`patients.csv`), a page of the
    audit and one of the comparison (`audit.html` and `comparison.html`, no network needed).
    """
    import time

    from dcem.cli._console import Console
    from dcem.files import write_text
    from dcem.report.to_html import to_html
    from dcem.table.write import write_frame
    from dcem.tasks.patients import simulate_patients
    from dcem.text import duration, percent

    begun, console = time.perf_counter(), Console(highlight=False)
    table = out / "patients.csv"
    pages = {"audit": out / "audit.html", "comparison": out / "comparison.html"}
    _require_places([table, *pages.values()])
    patients = simulate_patients(1_500 if quick else 4_000, seed)
    n, tested = len(patients.frame), (patients.frame["infection"] != "").mean()
    console.print(
        f"{n:,} simulated patients. A doctor tests {percent(tested, 0)} of them for an infection, "
        "and in group B fewer than in group A with the same symptoms. The very young and the very "
        "old are most at risk, which logistic regression misses. Whoever is not tested has no "
        "result. The last column below is the truth, which dcem does not use for its estimates."
    )
    audit, comparison = judged(patients, seed, Console(stderr=True, highlight=False))
    show_audit(audit, patients, console)
    show_comparison(comparison, console)
    of_models = comparison.document("Models for simulated patients", LEAD)
    documents = {
        "audit": replace(audit.document("Audit of simulated patients"), lead=LEAD),
        "comparison": replace(of_models, opening=without_truth(comparison).document().opening),
    }
    write_frame(patients.frame, table)
    for name, document in documents.items():
        write_text(pages[name], to_html(document))
    took = duration(time.perf_counter() - begun)
    console.print(f"\nDone in {took}. Everything else is on two pages, and the table beside them:")
    for path in (*pages.values(), table):
        console.print(f"  {path}", style="bold", soft_wrap=True)
    console.print(
        "\nNow your own table (CSV, Excel, Parquet and others), here visits.csv:\n"
        "  dcem init visits.csv       finds the columns, and asks where it is not sure\n"
        "  dcem audit visits.csv --report audit.html\n"
        "  dcem compare visits.csv --report comparison.html --out .\n"
        "  dcem fit visits.csv --out model",
        markup=False,
    )


def _require_places(paths: list[Path]) -> None:
    """Refuse to begin where the pages could not be written at the end."""
    from dcem.extras import MissingExtra, is_installed, is_missing
    from dcem.files import require_file_place

    if not is_installed("matplotlib"):
        raise MissingExtra(is_missing("the pages of the demo", "matplotlib"))
    for path in paths:
        require_file_place(path)


def judged(patients: Patients, seed: int, console: Any) -> tuple[Audit, TableComparison]:
    """The audit, which sees the recorded table alone, and the comparison, beside the truth."""
    import numpy as np

    from dcem.audit.run import audit_labels, audit_steps
    from dcem.compare.durations import compare_steps
    from dcem.compare.run import compare_methods
    from dcem.table.labels import SelectiveLabels

    frame = patients.frame
    label = np.where(frame["infection"] == "", np.nan, frame["infection"] == "yes")
    features = frame.drop(columns=["group", "infection"]).assign(cough=frame["cough"] == "yes")
    problem = SelectiveLabels.from_arrays(features.astype(float), label, group=frame["group"])
    with telling(audit_steps(problem), console) as progress:
        audit = audit_labels(problem, random_state=seed, progress=progress)
    with telling(compare_steps(problem, [*METHODS], planted=0), console) as progress:
        comparison = compare_methods(
            problem,
            [*METHODS],
            truth=patients.infected,
            planted=0,
            n_members=1,
            random_state=seed,
            progress=progress,
        )
    return audit, comparison


def without_truth(comparison: TableComparison) -> TableComparison:
    """The comparison as of any other table: the truth is shown, but it decides nothing."""
    blind = tuple(target for target in comparison.targets if target.key != "truth")
    return replace(comparison, targets=blind)


def show_audit(audit: Audit, patients: Patients, console: Any) -> None:
    """Print what the audit found beside what was put in."""
    from dcem.text import estimated, percent, points

    grid = _grid("Is the labelling biased?", "dcem estimates", "truth")
    of_b = next(rate.difference for rate in audit.testing if rate.group == "B")
    grid.add_row(
        "tested, B against A, same symptoms",
        *estimated(of_b.value, of_b.low, of_b.high, "points"),
        points(patients.difference),
    )
    for each in audit.prevalence:
        everybody = each.group == audit.prevalence[0].group
        here = everybody | (patients.frame["group"] == each.group)
        rate = each.doubly_robust
        grid.add_row(
            "infected, everybody" if everybody else f"infected, group {each.group}",
            *estimated(rate.value, rate.low, rate.high, "percent"),
            percent(patients.infected[here].mean()),
        )
    console.print(grid)
    answer = "That is what was put in."
    if not of_b.excludes(0):
        answer = "A difference was put in, which so few patients cannot show."
    recorded = percent(audit.prevalence[0].recorded.value)
    console.print(
        f"{_answer(audit)}. {answer} If the untested were counted as negative, "
        f"{recorded} would seem infected."
    )


def show_comparison(comparison: TableComparison, console: Any) -> None:
    """Print how well each method ranks, as estimated without the truth and in truth."""
    from dcem.text import estimated, number

    grid = _grid("Which model? AUC of", "dcem estimates", "truth")
    for method in comparison.methods:
        without, truth = (method.judgements[key].auc for key in ("dr", "truth"))
        words = METHODS[method.name]
        grid.add_row(
            words, *estimated(without.value, without.low, without.high), number(truth.value)
        )
    console.print(grid)
    console.print(
        "AUC: of two patients, one infected and one not, how often the infected one gets the "
        f"higher score (by chance: .5). {_answer(without_truth(comparison))}."
    )


def _grid(question: str, *headings: str) -> Any:
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column(f"\n{question}")
    for heading in (headings[0], "", *headings[1:]):
        grid.add_column(f"\n{heading}", justify="right", no_wrap=True)
    return grid


def _answer(result: Audit | TableComparison) -> str:
    """The first sentence of a result's own page."""
    from rich.markup import escape

    opening = result.document().opening
    return escape(opening.verdict.answer) if opening else ""
