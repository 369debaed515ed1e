"""Write docs/cli.md from the commands' own help: `python docs/make/cli.py`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from dcem.cli import COMMANDS, app
from dcem.cli._lazy import load_command

PAGE = Path(__file__).resolve().parents[1] / "cli.md"

INTRODUCTION = """\
# Command line

This page is generated from `--help`. Every command ends with status 0 when it did its job, 2 when
something you can fix was wrong (the message says what, where and how), 130 after Ctrl-C, and 1
with a traceback for a fault of ours.

Completion of commands and options for bash, zsh, fish and PowerShell: `dcem --install-completion`,
then open a new terminal.
"""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its full name, groups before their members."""
    yield "dcem", get_command(app)
    for name, entry in COMMANDS.items():
        yield from _walk(f"dcem {name}", load_command(name, entry))


def _walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for child, member in getattr(command, "commands", {}).items():
        yield from _walk(f"{name} {child}", member)


def help_text(name: str, command: Any) -> str:
    """The help of a command as plain text, 88 columns wide, whatever the terminal."""
    command.rich_markup_mode = None
    context = command.make_context(
        name,
        [],
        resilient_parsing=True,
        max_content_width=88,
        terminal_width=88,
        help_option_names=["-h", "--help"],
    )
    lines = (line.rstrip() for line in command.get_help(context).splitlines())
    return "\n".join(lines).strip()


def page() -> str:
    """The whole reference."""
    parts = [INTRODUCTION]
    for name, command in commands():
        parts.append(f"## `{name}`\n\n```text\n{help_text(name, command)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}: {sum(1 for _ in commands())} commands")
