"""`dcem compare`: which method serves a user's own table, judged without its truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcem.cli import _table_options as options
from dcem.cli._outputs import Outputs
from dcem.cli._progress import telling
from dcem.cli._settings import given_again, is_typed

if TYPE_CHECKING:
    from dcem.compare.positives_only import FoundComparison
    from dcem.compare.results import TableComparison
    from dcem.table import UserTable


@options.takes_roles()
def compare(
    context: typer.Context,
    table: options.TableArgument,
    roles: options.Roles,
    query: options.Query = None,
    sample_rows: options.SampleRows = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Method to compare; repeat it, or separate with commas. Gains are relative to "
            "the better of tested-only:boost and tested-only:linear, if they are among them."
        ),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    max_rows: Annotated[
        int,
        typer.Option(
            min=0,
            help="Maximum number of rows to compare on, drawn at random; all rows of a person "
            "stay together. 0: no limit.",
        ),
    ] = 10_000,
    planted: Annotated[
        int, typer.Option(min=0, help="Repetitions with planted outcomes, at least 2; 0: none.")
    ] = 3,
    floor: Annotated[
        float, typer.Option(min=0, help="Smallest difference in AUC that counts as a difference.")
    ] = 0.005,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Risk at which you would act, for rates by group."),
    ] = None,
    capacity: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of people to act on, if no threshold is given."),
    ] = 0.1,
    bounds: options.BoundsOption = None,
    members: options.Members = 3,
    seed: options.Seed = 0,
    backend: Annotated[str, typer.Option(help="Where methods are fitted: local or ray.")] = "local",
    address: options.Address = None,
    words: options.Words = "general",
    report: options.Report = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Folder for comparison.csv, comparison.md and comparison.json."
        ),
    ] = None,
) -> None:
    """Compare methods on a table, although most true outcomes are missing.

    Every method scores people it was not fitted to. It is judged in three ways: among the tested;
    for everybody, by inverse-propensity and doubly robust estimates, each with an interval and its
    assumption, or "not estimable" with the reason; and on planted outcomes, which are simulated
    from the table's own features.
    """
    from dcem.cli._console import Console
    from dcem.compare.fitting import be_ready, check_methods, default_methods
    from dcem.compare.positives_only import usual_methods
    from dcem.files import require_folder_place
    from dcem.methods.registry import require_libraries
    from dcem.report.words import speak
    from dcem.table import read_table
    from dcem.table.messages import InputError
    from dcem.table.write import csv_text

    options.refuse_bounds(roles, bounds)
    for name in ("planted", "threshold", "capacity"):
        if roles.positives_only and is_typed(context, name):
            raise InputError(
                f"`{name}` needs a record of who was tested, but the label says only who was found "
                "positive (`positives_only`). Leave out one of the two."
            )
    console = Console(highlight=False)
    files: list[tuple[Path | None, str]] = [(report, "html")]
    if report is not None:
        files.append((report.with_suffix(".md"), "md"))
    if out is not None:
        require_folder_place(out)
        files += [(out / "comparison.md", "md"), (out / "comparison.json", "json")]
    outputs = Outputs(files, table, words)
    usual = default_methods(bool(roles.decider))
    if roles.positives_only:
        usual = usual_methods(stated=not roles.no_record)
    names = check_methods(options.entries(method) if method else usual)
    for name in names:
        require_libraries(name)
    options.mention_members(context, names)
    if backend == "local":
        be_ready(table)
    with console.status(f"reading {table} ..."):
        read = read_table(table, roles, query, sample_rows=sample_rows, random_state=seed)
    say = speak(words, read.problem.group_names)
    options.show_columns(read, console, say)
    options.mention_who_was_tested(read, table, query, console, say)
    console.print()
    console.print(read.problem.summary(small_cells=False, say=say), markup=False)
    console.print()
    aside = Console(stderr=True, highlight=False)
    comparison = judged(
        read,
        names,
        aside,
        say,
        truth=read.truth,
        n_folds=folds,
        max_rows=max_rows or None,
        floor=floor,
        n_members=members,
        random_state=seed,
        data=options.source_facts(read),
        backend=backend,
        address=address,
        of_tested={
            "planted": planted,
            "threshold": threshold,
            "capacity": capacity,
            "bounds": bounds,
            "suspicious": options.suspicious(read),
            "lending": words == "credit",
        },
    )
    table_of_all = {} if out is None else {out / "comparison.csv": csv_text(comparison.to_frame())}
    model = (out or Path()) / "model"  # beside the comparison that it goes by
    then = ["fit", *given_again(context), "--out", str(model)]
    outputs.write(comparison.document(), console, table_of_all, then=then)


def judged(
    read: UserTable,
    names: Sequence[str],
    aside: Any,
    say: Callable[[str], str],
    *,
    of_tested: dict[str, Any],
    **how: Any,
) -> TableComparison | FoundComparison:
    """Methods compared on a table, progress shown as `say` puts it.

    `of_tested` is for a table that knows who was tested.
    """
    from dcem.compare.durations import compare_steps, drawing_seconds
    from dcem.compare.positives_only import compare_found
    from dcem.compare.run import compare_methods

    problem = read.problem
    asked = {name: how[name] for name in ("max_rows", "n_folds") if name in how}
    steps = compare_steps(problem, names, **asked, planted=of_tested["planted"])
    with telling(steps | {"writing": drawing_seconds(len(names))}, aside, say) as progress:
        if problem.positives_only:
            return compare_found(problem, names, **how, progress=progress)
        return compare_methods(
            problem, names, **how, **of_tested, encoder=read.encoder, progress=progress
        )
