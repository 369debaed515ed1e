"""`dcem fit`: a model of a user's own table, in a folder that anybody can read."""

from __future__ import annotations

import shlex
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcem.cli import _table_options as options
from dcem.cli import compare
from dcem.cli._progress import telling
from dcem.cli._settings import given_again

if TYPE_CHECKING:
    from dcem.compare.positives_only import FoundComparison
    from dcem.compare.results import TableComparison


@options.takes_roles(
    helps={"truth": "Column with everybody's true outcome, if it exists; never used as a feature."}
)
def fit(
    context: typer.Context,
    table: options.TableArgument,
    roles: options.Roles,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Folder for the model; an existing model is replaced."),
    ],
    method: Annotated[
        str,
        typer.Option(
            help="Method to fit (docs/methods.md). auto: the default method, unless a comparison "
            "of this table shows that another is clearly better."
        ),
    ] = "auto",
    comparison: Annotated[
        Path | None,
        typer.Option(
            help="The comparison.json that auto uses. Default: one of this table, in the table's "
            "folder or beside the model."
        ),
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option(
            help="Underlying model, such as network, linear or boost, for methods that allow a "
            "choice (docs/estimator.md). Default: the method's own."
        ),
    ] = None,
    members: options.Members = 3,
    bounds: options.BoundsOption = None,
    judge: Annotated[
        bool,
        typer.Option(
            "--judge",
            help="Judge the method by cross-validation, for the model card, if no comparison of "
            "this table did. Takes five more fits.",
        ),
    ] = False,
    start_from: Annotated[
        Path | None,
        typer.Option(
            help="Model to update once the results of tests drawn by next-tests are in the table. "
            "Its method and columns are kept; name the list of drawn tests with "
            "--testing-probability (docs/table.md)."
        ),
    ] = None,
    words: Annotated[
        str | None,
        typer.Option(
            help="Vocabulary of the model card: general, medicine, credit or policing. Default: "
            "that of the comparison used, else general."
        ),
    ] = None,
    seed: options.Seed = 0,
    query: options.Query = None,
    sample_rows: options.SampleRows = None,
    all_rows: Annotated[
        bool,
        typer.Option(
            "--all-rows",
            help="Learn from all rows of a table that is too large for memory, in batches. Only "
            "for tested-only or y-obs with the learner linear or boost.",
        ),
    ] = False,
) -> None:
    """Fit a method to a table and write the model to a folder.

    Shows how the columns are read, then fits. The folder holds the model's numbers (safetensors),
    what they mean (JSON) and a model card (HTML and Markdown). It holds no pickle and no
    individual rows. If there is a comparison of the table, the card says how good the model is,
    for whom, and at which threshold. `dcem predict` scores raw tables with the folder.

    With --bounds the model also learns limits for each person's risk. `dcem predict` can then give
    them at any strength; the card shows them at this one.
    """
    from dcem.cli._console import Console
    from dcem.compare.durations import fit_seconds
    from dcem.compare.one_column import about_dominant
    from dcem.estimation.bounds import check_strength
    from dcem.estimation.risk_limits import require_learnable
    from dcem.methods.choosing import Choice, choose
    from dcem.methods.fitting import require_no_record
    from dcem.report.from_json import words_of
    from dcem.report.words import speak
    from dcem.saving.folder import require_place
    from dcem.scoring import TableModel, choice_for, fit_all_rows, fit_table, require_method
    from dcem.scoring.all_rows import require_all_rows
    from dcem.scoring.bounds import with_bounds
    from dcem.scoring.fit import AUTO, find_comparison
    from dcem.table import read_table
    from dcem.table.disclosure import SMALL, THRESHOLD
    from dcem.table.messages import InputError
    from dcem.text import counted, duration

    console = Console(highlight=False)
    speak(words or "general")  # refuses words it does not know
    options.refuse_bounds(roles, bounds)
    if bounds is not None:
        check_strength(bounds)
    replaces = require_place(out)
    start = None if start_from is None else TableModel.load(start_from)
    if start is not None and (method not in (AUTO, start.name) or learner is not None):
        raise InputError(
            f"{start_from} was fitted with the method {start.name!r}, and a model that starts from "
            "it keeps that method. Leave out --method and --learner."
        )
    wanted = choose(record=not roles.no_record).method if method == AUTO else method
    (require_all_rows if all_rows else require_method)(wanted, learner)
    with console.status(f"reading {table} ..."):
        read = read_table(
            table,
            roles,
            query,
            sample_rows=sample_rows,
            random_state=seed,
            encoder=start.encoder if start else None,
        )
    if bounds is not None:
        require_learnable(read.problem)
    place = find_comparison(read, comparison, table.parent, out.parent)
    words = words or (words_of(place) if place else "general")
    say = speak(words, read.problem.group_names)
    options.show_columns(read, console, say)
    options.mention_who_was_tested(read, table, query, console, say)
    console.print()
    console.print(read.problem.summary(small_cells=False, say=say), markup=False)
    console.print()
    options.show_finding(about_dominant(read.problem, read.encoder), console, say)
    started = time.perf_counter()
    chosen: str | Choice = method
    if start is not None:
        method = start.estimator.name
        console.print(f"Starting from {start_from}, a model of {start.source.name}.")
        if (chance := read.problem.testing_probability) is not None:
            new = int((read.problem.tested & (chance < 1)).sum())
            new_tests = "New tests, drawn with known probabilities"
            console.print(f"{say(new_tests)}: {SMALL if 0 < new < THRESHOLD else f'{new:,}'}.")
    elif method == AUTO:
        chosen = choice_for(read, place)
        method = chosen.method
        console.print(f"Using {method}: {say(chosen.reason)}.", soft_wrap=True)
    if roles.no_record:
        require_no_record(method)
    parts = ""
    if options.mention_members(context, [method]):
        parts = f", {counted(members, 'member')}"
    if replaces:
        console.print(f"{out} already holds a model: the new one will replace it.", soft_wrap=True)
    console.print(f"Fitting {method}{parts}, {len(read.problem.feature_names)} features.")
    aside = Console(stderr=True, highlight=False)
    fitting, asking = f"fitting {method}", "measuring what drives the score, and testing"
    takes = fit_seconds(read.problem, f"{method}:{learner}" if learner else method)
    with telling(dict(zip((fitting, asking), takes, strict=True)), aside, say) as progress:
        on_step = partial(progress.counted, fitting)
        how: Any = {"n_members": members, "random_state": seed, "progress": on_step}
        if all_rows and start is None and read.draw is not None:
            model = fit_all_rows(table, read, method, learner=learner, query=query, **how)
        else:
            model = fit_table(read, chosen, learner=learner, start=start, **how)
        progress(asking)
        model = model.explained(read, seed)
        if bounds is not None:
            progress("learning limits for each person's risk")
            model = with_bounds(model, read, bounds, seed)
    judged = _saved(place) if place else None
    if judge and not (judged and model.judged_by(judged)):
        console.print(f"Judging {model.name} {say('on people it was not fitted to')}.")
        how = {"n_members": members, "random_state": seed, "data": options.source_facts(read)}
        judged = compare.judged(read, [model.name], aside, say, of_tested={"planted": 0}, **how)
    model.save(out, judged, words=words)
    where = "The model, which replaces the older one" if replaces else "The model"
    done = "Fitted and judged" if judge else "Fitted"
    console.print(f"{done} in {duration(time.perf_counter() - started)}. {where}:")
    console.print(f"  {out}", style="bold", soft_wrap=True)
    console.print(f"  read {out / 'MODEL_CARD.html'}", soft_wrap=True)
    scoring = shlex.join(["dcem", "predict", str(out), "TABLE", *given_again(context, ["words"])])
    console.print(f"  {say('score people with')}: {scoring}", markup=False, soft_wrap=True)
    if not (judged and model.judged_by(judged)):
        console.print(
            "  Its model card does not say how good it is: add --judge, or first run: "
            "dcem compare --out .",
            soft_wrap=True,
        )


def _saved(place: Path) -> TableComparison | FoundComparison | None:
    """A saved comparison, or None with a note if another version wrote it."""
    from dcem.report.from_json import read_comparison
    from dcem.table.messages import InputError, notice

    try:
        return read_comparison(place)
    except InputError as error:
        notice(f"The model card does not use {place.name}: {error}")
        return None
