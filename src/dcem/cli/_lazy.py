"""A command group that knows its commands by name and imports one only when it runs.

Importing every command to print ``dcem --help`` would cost whatever the slowest of them imports.
The group is therefore built from a table: each name stands beside its one line of help and the
place of its code, ``"module:attribute"``. Help and completion of command names read the table;
running a command, asking for its own help, or completing its options loads that one module.

Help is plain text in sections. Drawing it with rich, and preparing to parse options that nobody
gave, takes four times as long as all the rest.
"""

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from dcem.cli import _settings
from dcem.cli._errors import WORDS
from dcem.table.settings import NAME


class LazyCommand(NamedTuple):
    """One command: where its code is and what it does, in a line."""

    location: str
    help: str


class PlainCommand(TyperCommand):
    """A command whose help has a section for each panel of options, and that reads `dcem.toml`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, with the choices of the settings file as defaults."""
        asks_help = any(word in ctx.help_option_names for word in args)
        if self.name in _settings.READERS and not ctx.resilient_parsing and not asks_help:
            _settings.fill_from_file(self, ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run, and write the choices to the settings file if that was asked for."""
        ctx.meta[WORDS] = ctx.params.get("words")
        result = super().invoke(ctx)
        if self.name in _settings.READERS:
            _settings.remember(self, ctx)
        return result

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, those without a panel first."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                if _settings.may_stand_in_file(self, param.name):
                    names, text = record
                    record = names, text.replace("[required]", f"[required, or in {NAME}]")
                panel = getattr(param, "rich_help_panel", None)
                panel = panel or ("Arguments" if param.param_type_name == "argument" else "Options")
                sections.setdefault(panel, []).append(record)
        for title in sorted(sections, key=lambda panel: panel != "Arguments"):
            if sections[title]:
                with formatter.section(title):
                    formatter.write_dl(sections[title])


class PlainGroup(TyperGroup):
    """A group whose help has the whole line of each command, however narrow the window is."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands."""
        lines = [(name, one.get_short_help_str(1000)) for name, one in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(lines)


def show_help(words: list[str], entries: dict[str, LazyCommand]) -> bool:
    """Print the help of a command if that is all that was asked for; whether it was."""
    if len(words) != 2 or words[0] not in entries or words[1] not in ("-h", "--help"):
        return False
    command = load_command(words[0], entries[words[0]])
    settings = {"help_option_names": ["-h", "--help"]}
    typer.echo(
        command.get_help(command.context_class(command, info_name=f"dcem {words[0]}", **settings))
    )
    return True


def load_command(name: str, entry: LazyCommand) -> Any:
    """Import a command: a function becomes a command, a `typer.Typer` a group of commands."""
    module, attribute = entry.location.split(":")
    target = getattr(import_module(module), attribute)
    if isinstance(target, typer.Typer):
        command: Any = get_group(target)
    else:
        if name in _settings.READERS:
            target = _settings.with_settings(target)
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name, cls=PlainCommand)(target)
        command = get_command(app)
    command.name = name
    return command


def lazy_group(
    entries: dict[str, LazyCommand], base: type[TyperGroup] = TyperGroup
) -> type[TyperGroup]:
    """Make a group class (for ``typer.Typer(cls=...)``) with these commands, in this order."""

    class LazyGroup(PlainGroup, base):  # type: ignore[valid-type,misc]
        def __init__(self, **attrs: Any) -> None:
            super().__init__(**attrs)
            for name, entry in entries.items():
                self.commands[name] = TyperCommand(name, help=entry.help)  # a signpost, never run

        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
            name, command, rest = super().resolve_command(ctx, args)
            if name is not None and command is not None:
                command = self.commands[name] = load_command(name, entries[name])
            return name, command, rest

    return LazyGroup
