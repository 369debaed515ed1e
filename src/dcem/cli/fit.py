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

if TYPE_CHECKING:
    from dcem.compare.found import FoundComparison
    from dcem.compare.results import TableComparison


@options.takes_roles(
    helps={"truth": "Column with everybody's true outcome, if it exists: never a feature."}
)
def fit(
    table: options.TableArgument,
    roles: options.Roles,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the model; an older model is replaced.")
    ],
    method: Annotated[
        str,
        typer.Option(
            help="The method; see docs/methods.md. auto: the default, unless a comparison of this "
            "table shows another to be clearly better."
        ),
    ] = "auto",
    comparison: Annotated[
        Path | None,
        typer.Option(
            help="The comparison.json that auto uses. Default: one of this table, in its folder "
            "or beside the model."
        ),
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option(
            help="What learns, such as network, linear or boost, for the methods that take others "
            "than networks (docs/estimator.md). Default: the method's own."
        ),
    ] = None,
    members: options.Members = 3,
    bounds: options.BoundsOption = None,
    judge: Annotated[
        bool,
        typer.Option(
            "--judge",
            help="Judge the method by cross-validation, for the card, if no comparison of this "
            "table did: takes five fits more.",
        ),
    ] = False,
    start_from: Annotated[
        Path | None,
        typer.Option(
            help="A model to continue from, with its method and columns, once tests that "
            "next-tests drew are in the table: --testing-probability says which (docs/table.md)."
        ),
    ] = None,
    words: Annotated[
        str | None,
        typer.Option(
            help="Vocabulary of the card: general, medicine, credit or policing. Default: those of "
            "the comparison that it uses, else general."
        ),
    ] = None,
    seed: options.Seed = 0,
    query: options.Query = None,
    sample_rows: options.SampleRows = None,
    all_rows: Annotated[
        bool,
        typer.Option(
            "--all-rows",
            help="Learn from all rows of a table that is too large to be read whole, as they pass: "
            "tested-only or y-obs, with the learner linear or boost.",
        ),
    ] = False,
) -> None:
    """Fit a method to a table and write the model to a folder.

    Says how columns were understood, then fits. The folder holds the numbers (safetensors),
    what they mean (JSON) and a model card (a page, and Markdown) with how good the model is, for
    whom, and at which threshold, if a comparison says so; no pickle, and no person's row. `dcem
    predict` reads raw tables with it. With bounds it also learns limits of each person's risk,
    which `predict` then gives at any strength; the card shows them at this one.
    """
    from rich.console import Console

    from dcem.compare.times import fit_seconds
    from dcem.estimation.bounds import check_strength
    from dcem.estimation.ends import require_learnable
    from dcem.methods.choosing import Choice, choose
    from dcem.methods.fitting import require_no_record
    from dcem.methods.registry import METHODS
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
            f"{start_from} is a model of the method {start.name!r}, and what starts from it is of "
            "the same: leave out --method and --learner."
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
    console.print()
    console.print(read.problem.summary(small_cells=False, say=say), markup=False)
    console.print()
    started = time.perf_counter()
    chosen: str | Choice = method
    if start is not None:
        method = start.estimator.name
        console.print(f"Starting from {start_from}, a model of {start.source.name}.")
        if (chance := read.problem.testing_probability) is not None:
            new = int((read.problem.tested & (chance < 1)).sum())
            new_tests = "Tests that it has not seen, drawn with known probabilities"
            console.print(f"{say(new_tests)}: {SMALL if 0 < new < THRESHOLD else f'{new:,}'}.")
    elif method == AUTO:
        chosen = choice_for(read, place)
        method = chosen.method
        console.print(f"Taking {method}: {say(chosen.reason)}.", soft_wrap=True)
    if roles.no_record:
        require_no_record(method)
    parts = ""
    if "n_members" in METHODS[method].__dataclass_fields__:
        parts = f", {counted(members, 'member')}"
    if replaces:
        console.print(f"{out} holds a model already: the new one will replace it.", soft_wrap=True)
    console.print(f"Fitting {method}{parts}, {len(read.problem.feature_names)} features.")
    aside = Console(stderr=True, highlight=False)
    fitting, asking = f"fitting {method}", "asking what drives its score, and testing"
    takes = fit_seconds(read.problem, f"{method}:{learner}" if learner else method)
    with telling(dict(zip((fitting, asking), takes, strict=True)), aside, say) as progress:
        on_step = partial(progress.counted, fitting)
        how: Any = {"n_members": members, "random_state": seed, "progress": on_step}
        if all_rows and learner and read.draw is not None:
            model = fit_all_rows(table, read, method, learner=learner, query=query, **how)
        else:
            model = fit_table(read, chosen, learner=learner, start=start, **how)
        progress(asking)
        model = model.explained(read, seed)
        if bounds is not None:
            progress("learning the limits of each person's risk")
            model = with_bounds(model, read, bounds, seed)
    judged = _saved(place) if place else None
    if judge and not (judged and model.judged_by(judged)):
        console.print(f"Judging {model.name} {say('on people that it is not fitted to')}.")
        how = {"n_members": members, "random_state": seed, "data": options.source_facts(read)}
        judged = compare.judged(read, [model.name], aside, say, of_tested={"planted": 0}, **how)
    model.save(out, judged, words=words)
    where = "The model, in place of the older one" if replaces else "The model"
    done = "Fitted and judged" if judge else "Fitted"
    console.print(f"{done} in {duration(time.perf_counter() - started)}. {where}:")
    console.print(f"  {out}", style="bold", soft_wrap=True)
    console.print(f"  read {out / 'MODEL_CARD.html'}", soft_wrap=True)
    scoring = f"dcem predict {shlex.quote(str(out))} TABLE"
    console.print(f"  {say('score people with')}: {scoring}", markup=False, soft_wrap=True)
    if not (judged and model.judged_by(judged)):
        console.print(
            "  Its card says nothing of how good it is: add --judge, or first run: "
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
        notice(f"The card does without {place.name}: {error}")
        return None
