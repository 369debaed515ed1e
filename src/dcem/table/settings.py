"""`dcem.toml`: the roles of a table and the choices of a study, in one file beside it.

```toml
table = "visits.csv"
words = "medicine"        # for every command that has this choice

[roles]                   # the fields of `Roles`
label = "sepsis"
tested = ["cultured"]
exclude = ["lab_*_after"]

[compare]                 # for one command
capacity = 0.05
```

Nothing heavy is imported: the command line looks for this file before it knows what to do.
"""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dcem.files import read_bytes
from dcem.table.messages import InputError, did_you_mean, notice
from dcem.table.roles import Roles, as_list

NAME = "dcem.toml"
WIDTH = 96
ASKED = ("label", "tested", "group", "positive")  # roles that may be open
OPEN = "?"  # stands for a role that a person has yet to name
LONGEST = 1 << 24  # bytes of the file

Reasons = Mapping[tuple[str, str], str]  # of (role, column or value)


@dataclass(frozen=True)
class Settings:
    """What a settings file says: the table it is about, arguments of `Roles`, and options.

    `choices` are options by command; those under "" are for every command that has them. `open`
    are the roles that are still a question.
    """

    table: Path | None = None
    roles: dict[str, Any] = field(default_factory=dict)
    choices: dict[str, dict[str, Any]] = field(default_factory=dict)
    open: tuple[str, ...] = ()

    @property
    def shared(self) -> dict[str, Any]:
        """The choices for every command that has them."""
        return self.choices.get("", {})


def find_settings(table: Path | None = None) -> Path | None:
    """The settings file beside a table, else the one in the working directory, else None."""
    folders = [Path(), *([table.parent] if table is not None else [])]
    return next((f / NAME for f in reversed(folders) if (f / NAME).is_file()), None)


def read_settings(path: Path) -> Settings:
    """Read a settings file; what it cannot mean is an error with the nearest match."""
    try:
        raw = tomllib.loads(read_bytes(path, LONGEST).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else error
        raise InputError(
            f"{path}: not a readable TOML file: {why}. Text goes in quotes, lists in brackets: "
            'label = "sepsis", group = ["race", "sex"].'
        ) from None
    table = raw.pop("table", None)
    if not isinstance(table, str | None):
        raise InputError(f"{path}: `table` must be the name of a file, in quotes.")
    roles = _keys(raw.pop("roles", {}), f"{path}: [roles]")
    unanswered = tuple(n for n in ASKED if as_list(roles.get(n)) == [OPEN])
    roles = {name: value for name, value in roles.items() if name not in unanswered}
    known = Roles.settable()
    for name, value in roles.items():
        if name not in known:
            raise InputError(
                f"{path}: unknown role {name!r}.{did_you_mean(name, known)} Roles are: "
                f"{', '.join(known)}."
            )
        if name in Roles.named("columns", "values"):
            roles[name] = list(map(str, as_list(value)))
        elif name in Roles.named("flag") and not isinstance(value, bool):
            raise InputError(f"{path}: the role {name!r} must be true or false, without quotes.")
        elif isinstance(value, list):
            raise InputError(f"{path}: the role {name!r} takes one entry, not a list.")
    choices = {"": {k: v for k, v in raw.items() if not isinstance(v, dict)}}
    for command, options in raw.items():
        if isinstance(options, dict):
            choices[command] = _keys(options, f"{path}: [{command}]")
    choices[""] = _keys(choices[""], str(path))
    return Settings(None if table is None else path.parent / table, roles, choices, unanswered)


def _keys(section: Any, where: str) -> dict[str, Any]:
    """A section with its names as in Python: max-rows is max_rows."""
    if not isinstance(section, dict):
        raise InputError(f"{where} must be a section with one line per name.")
    for name, value in section.items():
        if isinstance(value, dict) or (
            isinstance(value, list) and any(isinstance(v, list | dict) for v in value)
        ):
            raise InputError(f"{where}: {name!r} must be a value or a list of values.")
        if any(isinstance(v, int) and abs(v) >= 1 << 63 for v in as_list(value)):
            raise InputError(f"{where}: the number at {name!r} is too large.")
    named = {name.replace("-", "_"): value for name, value in section.items()}
    if "most_rows" in named:
        notice(f"{where}: most_rows is now called sample_rows; rename it.")
        named["sample_rows"] = named.pop("most_rows")
    return named


def settings_text(
    settings: Settings,
    *,
    reasons: Reasons | None = None,
    doubts: Sequence[str] = (),
    questions: Sequence[Any] = (),
) -> str:
    """The text of a settings file, with its reasons, doubts and open questions as comments."""
    whys = reasons or {}
    lines = [
        "# What the columns of the table mean, for every dcem command. Options on the command line",
        "# override this file.",
        "",
    ]
    if settings.table is not None:
        lines += [f"table = {_value(settings.table.name)}", ""]
    for name, value in settings.shared.items():
        lines += [*_role_lines(name, value, whys), ""]
    if doubts:
        lines += ["# Please check:"]
        for doubt in doubts:
            lines += textwrap.wrap(
                _one_line(doubt), WIDTH, initial_indent="# - ", subsequent_indent="#   "
            )
        lines += [""]
    lines += ["[roles]"]
    for question in questions:
        lines += _question_lines(question)
    for name, value in settings.roles.items():
        lines += _role_lines(name, value, whys)
    for command, options in settings.choices.items():
        if command and options:
            lines += ["", f"[{command}]", *(f"{k} = {_value(v)}" for k, v in options.items())]
    return "\n".join(lines) + "\n"


def _role_lines(name: str, value: Any, reasons: Reasons) -> list[str]:
    if not isinstance(value, list | tuple):
        why = reasons.get((name, str(value)), "")
        return [*_comment(why), f"{name} = {_value(value)}"]
    whys = [reasons.get((name, str(entry)), "") for entry in value]
    if len(value) < 2 or not any(whys):
        return [*_comment(" ".join(whys[:1])), f"{name} = {_value(list(value))}"]
    entries = [
        f"    {_value(entry)}," + (f"  # {_one_line(why)}" if why else "")
        for entry, why in zip(value, whys, strict=True)
    ]
    return [f"{name} = [", *entries, "]"]


def _question_lines(question: Any) -> list[str]:
    """An open question with its answers, and the line to replace by one of them."""
    lines = ["", *_comment(f"QUESTION: {question.text}")]
    for roles, why in question.answers:
        answer = "; ".join(f"{name} = {_value(value)}" for name, value in roles.items())
        lines += [f"#   {answer}"] if answer else []
        lines += textwrap.wrap(
            _one_line(why), WIDTH, initial_indent="#     ", subsequent_indent="#     "
        )
    return [*lines, f"{question.role} = {_value(OPEN)}  # replace it by the answer", ""]


def _comment(why: str) -> list[str]:
    return textwrap.wrap(
        _one_line(why), WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False
    )


def _value(value: Any) -> str:
    """A value as TOML writes it; its strings are those of JSON, but for some controls."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    text = json.dumps(str(value), ensure_ascii=False)
    return re.sub("[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
