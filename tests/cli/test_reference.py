"""Every command explains itself, and the reference page is its help."""

import importlib.util
from pathlib import Path

import pytest

from dcem.cli import COMMANDS
from dcem.cli._lazy import load

DOCS = Path(__file__).resolve().parents[2] / "docs"


def generator():
    spec = importlib.util.spec_from_file_location("generate_cli", DOCS / "make" / "cli.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ALL = dict(generator().commands())


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
    assert written == generator().page(), "run: python docs/make/cli.py"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_the_command_says(name: str) -> None:
    """The line in `dcem --help` is the first line of the command's own help."""
    own = load(name, COMMANDS[name]).help.strip().split("\n\n")[0].replace("\n", " ")
    assert own == COMMANDS[name].help
