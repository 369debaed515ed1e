"""`dcem simulate`: write a simulated table with selectively collected labels."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dcem.cli import _table_options as options

Preset = StrEnum("Preset", {"as_released": "as-released", "as_written": "as-written"})
Stream = StrEnum("Stream", {"published": "published", "independent": "independent"})


def simulate(
    output: Annotated[
        Path, typer.Option("--out", "-o", help=f"Table to write: {options.WRITTEN}.")
    ] = Path("simulated.csv"),
    q_y: Annotated[
        float, typer.Option(help="Share of positives: ratio of group 0 to group 1.")
    ] = 0.5,
    k: Annotated[float, typer.Option("--k", "-k", help="Tests per person who is positive.")] = 1.0,
    q_t: Annotated[float, typer.Option(help="Share of tested: ratio of group 0 to group 1.")] = 2.0,
    phase: Annotated[float, typer.Option(help="Phase of the decision boundary, in degrees.")] = 0.0,
    preset: Annotated[
        Preset, typer.Option(help="Simulate as the published code does, or as the text says.")
    ] = Preset.as_released,
    stream: Annotated[
        Stream | None,
        typer.Option(
            help="The published random numbers, or new ones. Default: published for as-released "
            "without a seed, else independent."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the independent stream.")] = None,
    n: Annotated[int, typer.Option("--n", "-n", help="Rows in each of the three splits.")] = 20_000,
    truth: Annotated[
        bool, typer.Option("--truth", help="Add the true outcome, which no method may see.")
    ] = False,
) -> None:
    """Write a simulated table with selectively collected labels.

    Columns: x0, x1, group, tested, label (empty for the untested), split. In Python, read it with
    `SelectiveLabels.from_file`. The settings are those of `dcem.tasks.make_sinusoid`.
    """
    from math import radians

    from dcem.table.write import require_output, write_frame
    from dcem.tasks import make_sinusoid

    require_output(output)
    if stream is None and seed is not None:
        stream = Stream.independent
    task = make_sinusoid(
        q_y,
        k,
        q_t,
        radians(phase),
        preset=preset.value,
        stream=None if stream is None else stream.value,
        random_state=seed,
        n_train=n,
        n_validation=n,
        n_test=n,
    )
    drawn = task.params["random_state"]
    source = task.params["stream"] + (" stream" if drawn is None else f" stream, seed {drawn}")
    typer.echo(f"q_y {q_y:g}, k {k:g}, q_t {q_t:g}, phase {phase:g} degrees; {preset}, {source}")
    typer.echo(task.train.summary())
    table = task.to_frame(truth=truth)
    write_frame(table, output)
    typer.echo(f"Wrote {output}: {len(table):,} rows, columns {', '.join(table.columns)}.")
