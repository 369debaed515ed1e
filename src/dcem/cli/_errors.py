"""What a person at the terminal reads when something goes wrong.

Two kinds of failure, told apart here and nowhere else. *Yours to mend*: input that breaks a rule,
a file that is not there, an extra that is not installed; one message on stderr, exit status 2, no
traceback. *Ours to mend*: everything else keeps its traceback, because a bug report needs it.
Ctrl-C ends with status 130, as a shell expects, and a closed terminal or a scheduler that ends the
command with 128 and the signal: on the way out workers are ended and half a file is removed.

Messages come from rooms that know no command line: they name an argument in backticks, as in
Python. Here it becomes the option that sets it.
"""

import errno
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import typer
from typer.core import TyperGroup

from dcem.cli._terminal import guarded_streams, trusted
from dcem.extras import MissingExtra, missing_extra
from dcem.table.messages import DataWarning, InputError, LeakWarning

# One word for one thing in all commands.
RENAMED = {
    "--output": "--out",
    "--row-budget": "--max-rows",
    "--most-rows": "--sample-rows",
    "--methods": "--method",
}
WORDS = "dcem.words"  # the field in whose words the running command speaks
# lightgbm is loaded by the first fit, and does not bring the OpenMP library.
INCOMPLETE = "boosted trees need lightgbm, which dcem usually installs: pip install lightgbm"
WITHOUT_OPENMP = (
    "boosted trees (lightgbm) need OpenMP, which this system lacks: install libgomp1 (Debian, "
    "Ubuntu), libgomp (Fedora) or libomp (macOS)"
)


def message_for(error: Exception) -> str | None:
    """The message for an error that the user can mend; None for one that is ours."""
    if isinstance(error, ModuleNotFoundError):
        return INCOMPLETE if error.name == "lightgbm" else missing_extra(error)
    if isinstance(error, OSError) and re.search("libg?omp", str(error)):
        return WITHOUT_OPENMP
    if isinstance(error, OSError):
        what = (error.strerror or type(error).__name__).lower()
        if error.filename is None:
            return what if error.errno in (errno.ENOSPC, errno.EDQUOT) else None
        return f"{os.fsdecode(error.filename)}: {what}"
    if isinstance(error, OverflowError) and "too large to convert" in str(error):
        return "one of the numbers that were given is too large"
    return str(error) if isinstance(error, InputError | MissingExtra) else None


def with_options(message: str, command: Any) -> str:
    """The message with `untested_value` as --untested-value, where the command has that option."""
    options = {
        (param.name or "").strip("_"): max(param.opts, key=len)
        for one in (command, *getattr(command, "commands", {}).values())
        for param in one.params
        if param.param_type_name == "option"
    }
    return re.sub(r"`(\w+)`", lambda found: options.get(found[1], found[0]), message)


def complain(kind: str, message: str) -> None:
    """Write one message to stderr, its kind in colour where there is a terminal."""
    colour = typer.colors.RED if kind == "error" else typer.colors.YELLOW
    typer.secho(f"{kind}: ", fg=colour, bold=True, nl=False, file=trusted(sys.stderr))
    typer.echo(message, err=True)


@contextmanager
def leaving_tidily() -> Iterator[None]:
    """Signals that end a command raise; one that is ignored, as under `nohup`, stays so."""
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    signals = [getattr(signal, name) for name in names if hasattr(signal, name)]
    usual = (signal.SIG_DFL, signal.default_int_handler)
    mine = {one: signal.getsignal(one) for one in signals if signal.getsignal(one) in usual}
    if threading.current_thread() is not threading.main_thread():
        mine = {}
    for one in mine:
        signal.signal(one, _leave)
    try:
        yield
    finally:
        for one, before in mine.items():
            signal.signal(one, before)


def _leave(number: int, frame: FrameType | None) -> None:
    # What threads and pools say of workers that are gone is of no use to anybody.
    threading.excepthook = lambda _: None
    warnings.simplefilter("ignore")
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


class PoliteGroup(TyperGroup):
    """A group that turns failures into messages and warnings about data into notes."""

    def main(self, *given: Any, **how: Any) -> Any:
        """Parse and run; see `dcem.cli._terminal` for where it prints to."""
        with guarded_streams():
            return super().main(*given, **how)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Options under the names they had before keep working for a release, with a note."""
        for place, word in enumerate(args):
            name, equals, value = word.partition("=")
            if name in RENAMED:
                complain("note", f"{name} is now {RENAMED[name]}; the old name will be removed.")
                args[place] = RENAMED[name] + equals + value
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; see the module docstring for how it may end."""

        def tell(kind: str, message: str) -> None:
            running = self.get_command(ctx, ctx.invoked_subcommand or "")
            complain(kind, with_options(message, running) if running else message)

        def show_warning(
            message: Any, category: Any, filename: str, lineno: int, *rest: Any, **more: Any
        ) -> None:
            if isinstance(message, DataWarning):
                from dcem.report.words import speak

                tell("note", speak(ctx.meta.get(WORDS) or "general")(str(message)))
            else:
                sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))

        try:
            with warnings.catch_warnings(), leaving_tidily():
                warnings.showwarning = show_warning
                warnings.simplefilter("ignore", LeakWarning)  # commands list them with the columns
                return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("\ninterrupted", err=True)
            raise typer.Exit(130) from None
        except Exception as error:
            message = message_for(error)
            if message is None:
                raise
            tell("error", message)
            raise typer.Exit(2) from None
