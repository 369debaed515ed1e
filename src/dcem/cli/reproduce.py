"""`dcem reproduce`: the paper's figures and tables, drawn again beside the published values."""

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="EXHIBIT...",
            help="figure2, table1, overlap, k1-qt2, simulation, sepsis, tables, summary, claims, "
            "robustness, all; or `list`, which shows them.",
        ),
    ],
    recorded: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Folder with recorded results: exported tables, or a store. Without it, missing "
            "results are computed.",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(help="Folder for figures and numbers, and for the store of computed results."),
    ] = Path("reproduction"),
    formats: Annotated[
        list[str] | None, typer.Option("--format", help="png (default), svg or pdf; repeatable.")
    ] = None,
    cohort: Annotated[
        Path | None,
        typer.Option(help="Cohort of the sepsis figures, as `dcem sepsis build` wrote it."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda, for the fits.")] = "auto",
    max_seconds: Annotated[
        float | None, typer.Option(help="Stop each computation cleanly after about this long.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Draw the paper's figures and tables, with the published values next to ours.

    `dcem reproduce all --from results` draws everything from recorded runs. Without `--from`, the
    fits that an exhibit needs are run first, in a store under `--out`; if interrupted, they can be
    resumed. The numbers of every figure are written beside it as CSV.
    """
    from dcem.benchmark.progress import Display
    from dcem.cli._console import Console
    from dcem.paper import Drawn, Recorded, Runs, find, reservations
    from dcem.paper import reproduce as draw

    if names == ["list"]:
        _list(recorded)
        return
    exhibits = find(names)
    console = Console(stderr=True)
    source: Recorded | Runs
    if recorded is not None:
        source = Recorded(recorded)
    else:
        display = Display(None if quiet else console)
        source = Runs(out, cohort=cohort, device=device, max_seconds=max_seconds, display=display)

    def tell(outcome: Drawn) -> None:
        where = outcome.files[0] if outcome.files else "not drawn"
        sides = "" if outcome.origins or not outcome.exhibit.needs else " (published side only)"
        typer.echo(f"{outcome.exhibit.id}: {where}{sides if outcome.files else ''}")

    outcomes = draw(exhibits, source, out, formats=formats or ["png"], drawn=tell)
    if not quiet:
        for note, ids in reservations(outcomes).items():
            console.print(f"{note} [{', '.join(ids)}]", soft_wrap=True, markup=False)
    typer.echo(f"All of it on one page: {out / 'README.md'}")


def _list(recorded: Path | None) -> None:
    from rich.table import Table

    from dcem.cli._console import Console
    from dcem.paper.exhibits.catalogue import ELSEWHERE, EXHIBITS
    from dcem.paper.sources import Recorded

    source = None if recorded is None else Recorded(recorded)
    table = Table(box=None)
    for column in ("exhibit", "name", "title"):
        table.add_column(column, no_wrap=column != "title")
    table.add_column("recorded in" if source else "made by")
    for one in EXHIBITS:
        if not one.needs:
            where = "a formula"
        elif source is not None:
            found = [source.rows(need).origin for need in one.needs]
            where = ", ".join(dict.fromkeys(name for name in found if name)) or "not recorded"
        else:
            where = ", ".join(dict.fromkeys(need.preset or need.recorded[0] for need in one.needs))
        table.add_row(one.id, one.name if one.name != one.id else "", one.title, where)
    console = Console()
    console.print(table)
    for name, why in ELSEWHERE.items():
        console.print(f"{name} is {why}.", style="dim")
