"""`dcem sepsis`: build the sepsis cohort from MIMIC-III, or artificial tables of its shape."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcem.cli._lazy import PlainGroup

if TYPE_CHECKING:
    from dcem.tasks.sepsis.stages import StageProgress

app = typer.Typer(
    name="sepsis",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Build the sepsis cohort from MIMIC-III, or write artificial tables in its format.",
)


Suspicion = StrEnum("Suspicion", ["corr24", "v2018", "head2019"])  # the three published rules
FeatureSet = StrEnum("FeatureSet", ["published", "cleaned"])  # cleaned: without implausible entries
Release = StrEnum("Release", ["auto", "full", "demo"])
ArtificialKind = StrEnum("ArtificialKind", ["cohort", "rules"])
FileLayout = StrEnum("FileLayout", {"csv_gz": "csv.gz", "csv": "csv", "parquet": "parquet"})


@app.command()
def build(
    mimic: Annotated[
        Path,
        typer.Option(help="Folder of MIMIC-III tables (CSV, CSV.gz, Parquet), or a DuckDB file."),
    ],
    out: Annotated[Path, typer.Option(help="The cohort to write, a Parquet file.")],
    stays: Annotated[
        Path | None,
        typer.Option(help="Also write one row per ICU stay, included or not, to this CSV file."),
    ] = None,
    suspicion: Annotated[
        Suspicion, typer.Option(help="Rule for suspected infection; corr24 is the paper's.")
    ] = Suspicion.corr24,
    features: Annotated[
        FeatureSet,
        typer.Option(help="Features as published, or without wrong and implausible entries."),
    ] = FeatureSet.published,
    release: Annotated[
        Release,
        typer.Option(help="Require the row counts of this release; auto accepts any."),
    ] = Release.auto,
    memory_limit: Annotated[
        str, typer.Option(help="Maximum memory; beyond it, data go to disk.")
    ] = "4GiB",
    threads: Annotated[
        int | None, typer.Option(min=1, help="Number of threads. Default: all.")
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            help="Folder for finished stages, which later runs reuse. Default: beside the cohort."
        ),
    ] = None,
    show_small_cells: Annotated[
        bool,
        typer.Option("--show-small-cells", help="Show counts below ten: for open data only."),
    ] = False,
) -> None:
    """Build the sepsis cohort from MIMIC-III v1.4.

    Writes the cohort, and beside it a flow chart (`.flow.json`, `.flow.svg`) and a data quality
    report (`.quality.json`, `.quality.html`). Every stage is kept, so an interrupted or repeated
    run does only what is new. Data stay in the folders named here.
    """
    from dcem.files import write_text
    from dcem.report.cohort import cohort_document, draw_flow, save_figure
    from dcem.report.to_html import to_html
    from dcem.tasks.sepsis.cohort import build_cohort

    built = build_cohort(
        mimic,
        out,
        stays=stays,
        suspicion=suspicion.value,
        features=features.value,
        release=release.value,
        work=work,
        memory_limit=memory_limit,
        threads=threads,
        show_small_cells=show_small_cells,
        progress=_tell,
    )
    figure, page = out.with_suffix(".flow.svg"), out.with_suffix(".quality.html")
    save_figure(draw_flow(built.flow), figure)
    write_text(page, to_html(cohort_document(built.flow, built.quality)))
    study = built.flow["study"]
    typer.echo(f"{out}: {study['all']['count']} stays in the study ({built.release} tables)")
    for path in (stays, figure, out.with_suffix(".flow.json"), page):
        if path is not None:
            typer.echo(str(path))


@app.command()
def artificial(
    out: Annotated[Path, typer.Option(help="Empty or new folder to write the tables to.")],
    kind: Annotated[
        ArtificialKind,
        typer.Option(help="A random cohort, or patients on either side of each inclusion rule."),
    ] = ArtificialKind.cohort,
    stays: Annotated[int, typer.Option(min=10, help="Number of ICU stays in the cohort.")] = 5_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the cohort.")] = 0,
    layout: Annotated[FileLayout, typer.Option(help="File format.")] = FileLayout.csv_gz,
    lower_case: Annotated[
        bool,
        typer.Option(
            "--lower-case",
            help="Lower-case names, as in the demo release.",
        ),
    ] = False,
) -> None:
    """Write artificial tables in the format of MIMIC-III.

    For those without access to MIMIC-III: everything runs on these tables, and every figure made
    from them is marked as artificial. With `--kind rules`, `expected.csv` says what each rule
    requires for each patient.
    """
    from dcem.tasks.sepsis.artificial import write_artificial

    folder = write_artificial(
        out,
        kind.value,
        stays=stays,
        random_state=seed,
        layout=layout.value,
        upper_case=not lower_case,
    )
    typer.echo(f"{folder}: artificial tables ({kind.value})")


def _tell(progress: "StageProgress") -> None:
    """One line per stage, on stderr; counts and seconds only."""
    place = f"[{progress.number:>2}/{progress.of}]"
    if progress.state == "running":
        typer.echo(f"{place} {progress.question}", err=True)
    elif progress.state == "kept":
        typer.echo(f"{place} {progress.question} kept, {progress.rows:,} rows", err=True)
    else:
        typer.echo(f"        {progress.rows:,} rows, {progress.seconds:.1f} s", err=True)
