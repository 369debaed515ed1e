"""A command group that knows its commands by name and imports one only when it runs.

Importing every command to print ``dcem --help`` would cost whatever the slowest of them imports.
The group is therefore built from a table: each name stands beside its one line of help and the
place of its code, ``"module:attribute"``. Help and completion of command names read the table;
running a command, asking for its own help, or completing its options loads that one module.
"""

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group


class Entry(NamedTuple):
    """One command: where its code is and what it does, in a line."""

    location: str
    help: str


def load(name: str, entry: Entry) -> Any:
    """Import a command: a function becomes a command, a `typer.Typer` a group of commands."""
    module, attribute = entry.location.split(":")
    target = getattr(import_module(module), attribute)
    if isinstance(target, typer.Typer):
        command: Any = get_group(target)
    else:
        app = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        app.command(name)(target)
        command = get_command(app)
    command.name = name
    return command


def lazy_group(entries: dict[str, Entry], base: type[TyperGroup] = TyperGroup) -> type[TyperGroup]:
    """Make a group class (for ``typer.Typer(cls=...)``) with these commands, in this order."""

    class LazyGroup(base):  # type: ignore[valid-type,misc]
        def __init__(self, **attrs: Any) -> None:
            super().__init__(**attrs)
            for name, entry in entries.items():
                self.commands[name] = TyperCommand(name, help=entry.help)  # a signpost, never run

        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
            name, signpost, rest = super().resolve_command(ctx, args)
            if signpost is not None:
                self.commands[name] = load(name, entries[name])
            return name, signpost and self.commands[name], rest

    return LazyGroup
