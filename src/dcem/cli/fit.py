"""`dcem fit`: a model of a user's own table, in a folder that anybody can read."""

import time
from pathlib import Path
from typing import Annotated

import typer

from dcem.cli import _table_options as options


def fit(
    table: options.Table,
    label: options.Label,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the model; an older model is replaced.")
    ],
    tested: options.Tested = None,
    group: options.Group = None,
    id: options.Id = None,
    weight: options.Weight = None,
    truth: Annotated[
        str | None,
        typer.Option(
            help="Column with everybody's true outcome, if it exists: no feature, used for nothing "
            "here.",
            rich_help_panel=options.PANEL,
            show_default=False,
        ),
    ] = None,
    exclude: options.Exclude = None,
    category: options.Category = None,
    include: options.Include = None,
    positive: options.Positive = None,
    untested_value: options.UntestedValue = None,
    missing: options.Missing = None,
    group_as_feature: options.GroupAsFeature = False,
    method: Annotated[str, typer.Option(help="The method; see docs/methods.md.")] = "dcem",
    members: Annotated[
        int,
        typer.Option(
            min=1, help="Networks in the model; their disagreement is the score's spread."
        ),
    ] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights, batches, held-out rows.")] = 0,
) -> None:
    """Fit a method to a table and write the model to a folder.

    Shows how each column was understood, then fits. The folder holds the numbers (safetensors),
    what they mean (JSON) and a model card (Markdown); no pickle, and no person's row. `dcem
    predict` reads raw tables with it.
    """
    roles = options.read_roles(locals())
    from rich.console import Console

    from dcem.saving.folder import require_place
    from dcem.scoring import fit_table, require_method
    from dcem.table import load_table

    console = Console(highlight=False)
    replaces = require_place(out)
    require_method(method)
    with console.status(f"reading {table} ..."):
        read = load_table(table, roles)
    options.show_columns(read, console)
    console.print()
    console.print(read.problem.summary(), markup=False)
    console.print()
    started = time.perf_counter()
    networks = "1 network" if members == 1 else f"{members} networks"
    if replaces:
        console.print(f"{out} holds a model already: the new one will replace it.", soft_wrap=True)
    console.print(f"Fitting {method}, {networks}, {len(read.problem.feature_names)} features.")
    model = fit_table(
        read, method, members=members, random_state=seed, verbose=int(console.is_terminal)
    )
    model.save(out)
    where = "The model, in place of the older one" if replaces else "The model"
    console.print(f"Fitted in {time.perf_counter() - started:.0f} seconds. {where}:")
    console.print(f"  {out}", style="bold", soft_wrap=True)
    console.print(f"  read {out / 'MODEL_CARD.md'}; score people with: dcem predict {out} TABLE")
