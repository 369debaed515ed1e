"""The command line: ``dcem --help``.

Each command is one module of this package: it parses, calls one library function and writes the
answer. Nothing heavy (NumPy, pandas, scikit-learn, torch, matplotlib) is imported before a command
runs, so help and completion answer at once; `tests/test_layers.py` keeps it so.
"""

import os
import sys
from typing import Annotated

import typer

from dcem import __version__
from dcem.cli._errors import PoliteGroup
from dcem.cli._lazy import LazyCommand, lazy_group, show_help

COMMANDS = {
    "demo": LazyCommand(
        "dcem.cli.demo:demo",
        "Audit a simulated table, compare models on it, and show the truth beside each estimate.",
    ),
    "app": LazyCommand(
        "dcem.cli.app_:app",
        "Use dcem in the browser: audit, compare, fit and score without typing commands.",
    ),
    "init": LazyCommand(
        "dcem.cli.init:init",
        "Propose what the columns of a table mean, and write that to dcem.toml.",
    ),
    "check": LazyCommand(
        "dcem.cli.check:check",
        "Is the table ready? Checks roles, leaks and overlap, and estimates the time of each step.",
    ),
    "audit": LazyCommand(
        "dcem.cli.audit:audit",
        "Is my labelling biased? Compares testing between groups at equal features.",
    ),
    "compare": LazyCommand(
        "dcem.cli.compare:compare",
        "Compare methods on a table, although most true outcomes are missing.",
    ),
    "fit": LazyCommand(
        "dcem.cli.fit:fit",
        "Fit a method to a table and write the model to a folder.",
    ),
    "predict": LazyCommand(
        "dcem.cli.predict:predict",
        "Score the people of a table with a fitted model.",
    ),
    "monitor": LazyCommand(
        "dcem.cli.monitor:monitor",
        "Does a model still hold? Compares a new table with the one it was fitted to.",
    ),
    "next-tests": LazyCommand(
        "dcem.cli.next_tests:next_tests",
        "Whom to test next? Gives each untested person a testing probability, with the reason.",
    ),
    "history": LazyCommand(
        "dcem.cli.history:history",
        "Add columns to a table that describe each person's earlier tests.",
    ),
    "report": LazyCommand(
        "dcem.cli.report:report",
        "Write a saved audit, comparison or monitoring report again, in any format or vocabulary.",
    ),
    "methods": LazyCommand(
        "dcem.cli.methods:methods",
        "List the methods, or explain one: its idea, assumptions, failures and parameters.",
    ),
    "simulate": LazyCommand(
        "dcem.cli.simulate:simulate",
        "Write a simulated table with selectively collected labels.",
    ),
    "benchmark": LazyCommand(
        "dcem.cli.benchmark:app",
        "Run many methods on many tasks, resumably, and compare the results.",
    ),
    "reproduce": LazyCommand(
        "dcem.cli.reproduce:reproduce",
        "Draw the paper's figures and tables, with the published values next to ours.",
    ),
    "sepsis": LazyCommand(
        "dcem.cli.sepsis:app",
        "Build the sepsis cohort from MIMIC-III, or write artificial tables in its format.",
    ),
}

app = typer.Typer(
    name="dcem",
    cls=lazy_group(COMMANDS, base=PoliteGroup),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dcem {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Learn from labels that somebody decided to collect.

    People who were never tested have no label. dcem treats them as unknown, not as negative. It
    audits who is tested, fits and compares models, and shows how good and how fair they are.

    Start with `dcem demo`; or, on your own table, `dcem init TABLE` and then `dcem check`.
    """


def main() -> None:
    """Entry point of the `dcem` script."""
    # Threads that wait by spinning take the cores from whoever else works on the machine, and slow
    # themselves down tenfold; read once, when torch and NumPy are first imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # which cannot wait in any other way
    if not show_help(sys.argv[1:], COMMANDS):
        app(prog_name="dcem")
