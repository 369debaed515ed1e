"""Every command explains itself, and the reference page is its help."""

import pytest
from pages import DOCS, generator

from dcem.cli import COMMANDS
from dcem.cli._lazy import load_command

ALL = dict(generator("cli").commands())


@pytest.mark.parametrize("name", ALL)
def test_every_command_and_option_has_help(name: str) -> None:
    command = ALL[name]
    assert (command.help or "").strip(), f"{name} has no help"
    mute = [p.name for p in command.params if not (getattr(p, "help", "") or "").strip()]
    assert not mute, f"{name}: no help for {mute}"


@pytest.mark.parametrize("name", ALL)
def test_every_command_is_in_the_reference(name: str) -> None:
    assert f"## `{name}`" in (DOCS / "cli.md").read_text(encoding="utf-8")


def test_the_reference_is_current() -> None:
    written = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert written == generator("cli").page(), "run: python docs/make/cli.py"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_the_command_says(name: str) -> None:
    """The line in `dcem --help` is the first line of the command's own help."""
    own = load_command(name, COMMANDS[name]).help.strip().split("\n\n")[0].replace("\n", " ")
    assert own == COMMANDS[name].help
