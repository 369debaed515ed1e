"""How commands take roles and choices from `dcem.toml`, and write them to it.

A command reads the file before its options are parsed, as defaults: what is given on the command
line counts more, and a required option is satisfied by either. `dcem.table.settings` says what may
stand in the file.
"""

from __future__ import annotations

import errno
import inspect
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from dcem.table.messages import InputError, did_you_mean, quoted
from dcem.table.roles import Roles, as_list
from dcem.table.settings import NAME, OPEN, Settings, find_settings, read_settings, settings_text
from dcem.text import listed

# Commands that read the file; their sections in it bear their names.
READERS = ("audit", "compare", "fit", "predict", "monitor", "next-tests", "check", "report")
OF_THE_MODEL = ("monitor",)  # those for which columns mean what they meant for the model
SHARED = ("words", "seed", "query", "sample_rows")  # choices that may stand outside all sections
EITHER = ("threshold", "capacity")  # one of them on the command line stands for both
ADDED_TO = ("exclude", "missing", "category")  # lists that an option may be meant to lengthen
OUTPUTS = {  # options that name what a command writes, and how its name ends
    "report": (".html", ".htm"), "markdown": (".md",), "json": (".json",), "out": ()
}  # fmt: skip
TYPED_ONLY = ("address",)  # other machines: named by a person, not by a file beside a table
EMPTY = "[]"  # an empty list as an option: nobody is named, and that is an answer
SHOWN = 4  # entries of a list, where what was taken is told
SAID_OF_TABLE = (*Roles.settable(), "config", "query", "words")  # what the next command needs too
PANEL = "Settings"


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help=f"File with roles and options. Default: {NAME} beside the table or in this folder.",
        rich_help_panel=PANEL,
    ),
]
Remember = Annotated[
    bool,
    typer.Option(
        "--remember",
        help=f"Save the roles and options of this call to {NAME}, for later calls.",
        rich_help_panel=PANEL,
    ),
]


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """The function of a command with the options that come with the file."""
    parameters = parameters_of(command)
    more = [parameter("config", Config, None)]
    if any(one.name == "label" for one in parameters) and command.__name__ not in OF_THE_MODEL:
        more.append(parameter("remember", Remember, False))

    def run(**given: Any) -> None:
        for one in more:
            del given[one.name]
        command(**given)

    return in_place_of(command, run, [*parameters, *more])


def parameter(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """A parameter of a command: an option, by its annotation."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def parameters_of(command: Callable[..., None]) -> list[inspect.Parameter]:
    """The parameters of a command, with annotations as typer needs them."""
    hints = get_type_hints(command, include_extras=True)
    given = inspect.signature(command).parameters.values()
    return [parameter(one.name, hints[one.name], one.default) for one in given]


def in_place_of(
    command: Callable[..., None], run: Callable[..., None], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """`run`, which typer takes for the command, with these parameters."""
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def may_stand_in_file(command: Any, name: str | None) -> bool:
    """Whether what a command requires under this name may come from the file instead."""
    arguments = sum(param.param_type_name == "argument" for param in command.params)
    # Which of two files was left out cannot be determined.
    return command.name in READERS and (name == "label" or (name == "table" and arguments == 1))


def fill_from_file(command: Any, ctx: Any, args: list[str]) -> None:
    """Give the options that `args` leaves open the values of the file."""
    given, _, _ = command.make_parser(ctx).parse_args(list(args))
    table = Path(given["table"]) if given.get("table") else None
    path = Path(given["config"]) if given.get("config") else find_settings(table)
    settings = Settings()
    if path is not None and (path.exists() or not given.get("remember")):
        settings = read_settings(path)
    here = {param.name: param for param in command.params if given.get(param.name) is None}
    values = _settings_for(settings, command, path)
    if any(given.get(name) is not None for name in EITHER):
        values = {name: value for name, value in values.items() if name not in EITHER}
    if left_out := as_list(values.pop("exclude", None)):
        named = _columns_named(given)
        if left_out := [column for column in left_out if column not in named]:
            values["exclude"] = left_out
    for name in ADDED_TO:
        entries = _pieces(given.get(name))
        lost = [one for one in as_list(values.get(name)) if one not in entries]
        if entries and lost:
            option = name.replace("_", "-")
            typer.echo(
                f"note: --{option} replaces the list in {path}, which also has {quoted(lost)}. "
                "Name all that should apply.",
                err=True,
            )
    for name in OUTPUTS:
        if path is not None and name in values and given.get(name) is None:
            places = [_output_place(path, name, str(one)) for one in as_list(values[name])]
            values[name] = [*map(str, places)] if isinstance(values[name], list) else str(places[0])
    if settings.table is not None:
        values["table"] = str(settings.table)
    if not may_stand_in_file(command, "table"):
        values.pop("table", None)
    ctx.default_map = {
        name: _fitting(here[name], value) for name, value in values.items() if name in here
    }
    unanswered = [role for role in settings.open if role in here]
    no_label = getattr(here.get("label"), "required", False) and "label" not in ctx.default_map
    if unanswered or no_label:
        wanted = str(given.get("table") or ctx.default_map.get("table") or ".")
        if "://" not in wanted and not Path(wanted).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), wanted)
    if unanswered:
        raise InputError(
            f"{path} has an open question: {listed(unanswered)}. Choose one of the answers that "
            f'stand there as comments, and write it in place of the "{OPEN}".'
        )
    if no_label:
        raise InputError(
            "Which column holds the observed outcome? Name it with `label`; or let `dcem init "
            f"TABLE` propose all roles and write them to {NAME}, which every command reads."
        )
    if ctx.default_map:
        said = {name: listed(as_list(value), SHOWN) for name, value in ctx.default_map.items()}
        taken = "; ".join(f"{name} = {value}" for name, value in said.items())
        typer.echo(f"From {path}: {taken}.", err=True)


def _output_place(path: Path, name: str, value: str) -> Path:
    """The place that a settings file names for an output.

    Such a file may come with a table, from anybody: it names places in its own folder, and what is
    there is replaced only if dcem wrote it.
    """
    from dcem.cli._outputs import is_own, written_with
    from dcem.files import real_place

    place = path.parent / value
    if not real_place(place).is_relative_to(real_place(path.parent)):
        raise InputError(
            f"{path}: {name} = {value!r} is outside the folder of that file, where alone it may "
            f"name outputs. Give the option --{name} yourself."
        )
    if (endings := OUTPUTS[name]) and place.suffix.lower() not in endings:
        raise InputError(f"{path}: {name} = {value!r} must end in {' or '.join(endings)}.")
    for one in written_with(place):
        if one.exists() and not is_own(one):
            raise InputError(
                f"{path}: {name} = {value!r} would replace {one}, which dcem did not write. Give "
                f"the option --{name} yourself, or name another place."
            )
    return place


def _columns_named(given: Mapping[str, Any]) -> set[str]:
    """Columns that options give a role, or keep as features."""
    roles = set(Roles.named("column", "columns", "rate")) - {"exclude", "category"}
    return {piece for role in roles for piece in _pieces(given.get(role))}


def _pieces(given: Any) -> set[str]:
    """What an option names: its entries, and what commas part in them."""
    entries = [str(entry) for entry in as_list(given)]
    return {*entries, *(piece.strip() for entry in entries for piece in entry.split(","))}


def _settings_for(settings: Settings, command: Any, path: Path | None) -> dict[str, Any]:
    """Roles and choices for this command; a section or choice that nobody knows is an error."""
    for section in settings.choices:
        if section and section not in READERS:
            raise InputError(
                f"{path}: unknown section [{section}].{did_you_mean(section, READERS)} Allowed: "
                f"[roles], and a section for each of these commands: {', '.join(READERS)}."
            )
    own = settings.choices.get(command.name, {})
    names = [p.name for p in command.params if p.name not in ("config", "remember", "help")]
    for name in own:
        if name not in names or name in Roles.settable():
            hint = _AS_ROLE if name in Roles.settable() else did_you_mean(name, names)
            raise InputError(f"{path}: {command.name} has no option {name!r}.{hint}")
    for name in TYPED_ONLY:
        if name in own:
            raise InputError(f"{path}: give the option --{name} yourself: no file may name it.")
    shared = settings.shared
    for name in shared:
        if name not in SHARED:
            hint = _AS_ROLE if name in Roles.settable() else " Move it to a command's section."
            raise InputError(
                f"{path}: {name!r} may not come before the first section, where only these are "
                f"allowed: table, {', '.join(SHARED)}.{hint}"
            )
    return {**({} if command.name in OF_THE_MODEL else settings.roles), **shared, **own}


_AS_ROLE = " It is a role: move it under [roles]."


def _fitting(param: Any, value: Any) -> Any:
    """The value as the option takes it: a list where it may be repeated, text elsewhere."""
    if param.name == "tested" and value == []:
        return [EMPTY]
    if getattr(param, "multiple", False):
        return [str(entry) for entry in (value if isinstance(value, list) else [value])]
    if isinstance(value, list):
        raise InputError(f"{NAME}: {param.name!r} takes one entry, not a list.")
    return value if isinstance(value, bool) and getattr(param, "is_flag", False) else str(value)


def given_again(context: typer.Context, names: Collection[str] = SAID_OF_TABLE) -> list[str]:
    """Those options of the running command that were typed, for the command that comes next.

    What a file says need not be said again.
    """
    from dcem.app.commands import as_options

    typed = [one for one in names if one in context.params and is_typed(context, one)]
    return as_options({name: context.params[name] for name in typed})


def is_typed(context: Any, name: str) -> bool:
    """Whether an option was given on the command line."""
    return context.get_parameter_source(name).name == "COMMANDLINE"


def remember(command: Any, ctx: Any) -> None:
    """Write the roles and choices of a call that went well; what the file held besides stays."""
    from dcem.files import real_place, write_text

    if not ctx.params.get("remember"):
        return
    table = Path(ctx.params["table"])
    path: Path = ctx.params["config"] or find_settings(table) or table.parent / NAME
    if ctx.params["config"] is None and path.is_symlink():
        raise InputError(f"{path} is a link. Name the file to write: --config FILE.")
    before = read_settings(path) if path.exists() else Settings()
    now = {name: value for name, value in ctx.params.items() if value not in (None, False, [], ())}
    if now.get("tested") == [EMPTY]:
        now["tested"] = []
    roles = {name: now[name] for name in Roles.settable() if name in now}
    choices = {name: dict(options) for name, options in before.choices.items()}
    for name in now:
        if is_typed(ctx, name) and name not in {*roles, "table", "config", "remember"}:
            value = now[name]
            if name in OUTPUTS:
                place, folder = real_place(Path(value)), real_place(path.parent)
                if not place.is_relative_to(folder):
                    typer.echo(f"note: --{name} is outside {folder}: not remembered.", err=True)
                    continue
                value = place.relative_to(folder)
            elif name in TYPED_ONLY:
                continue
            plain = value if isinstance(value, bool | int | float | list) else str(value)
            choices.setdefault(command.name, {})[name] = plain
    earlier = {name: before.roles[name] for name in before.roles if name not in ctx.params}
    write_text(path, settings_text(Settings(table, {**earlier, **roles}, choices)))
    typer.echo(f"Remembered in {path}.", err=True)
