"""What goes wrong ends with one clear message, or with a traceback where it is our fault."""

import errno
import os
import subprocess
import sys
import warnings

import pytest
import typer
from forked import listens
from typer.testing import CliRunner

from dcem.cli._errors import PoliteGroup, message_for
from dcem.extras import EXTRAS
from dcem.table.messages import DataWarning, InputError


def run(action):
    """Run a command that does `action` inside our group."""
    app = typer.Typer(cls=PoliteGroup, pretty_exceptions_enable=False)

    @app.callback()
    def root() -> None: ...

    @app.command()
    def go(untested_value: str = "") -> None:
        action()

    return CliRunner().invoke(app, ["go"])


def raising(error):
    def action():
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError("column 'age' is not there"), "error: column 'age' is not there\n"),
        (
            FileNotFoundError(2, "No such file or directory", "people.csv"),
            "error: people.csv: no such file or directory\n",
        ),
        (
            InputError("name it with `untested_value`, not `label`"),
            "error: name it with --untested-value, not `label`\n",
        ),
        (PermissionError(13, "Permission denied", "out"), "error: out: permission denied\n"),
        (
            ModuleNotFoundError("No module named 'duckdb'", name="duckdb"),
            "error: this needs duckdb, which is not installed: pip install 'dcem[formats]'\n",
        ),
    ],
)
def test_what_the_user_can_mend_is_one_message(error, message) -> None:
    result = run(raising(error))
    assert result.exit_code == 2
    assert result.stderr == message
    assert result.stdout == ""


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a bug"),
        KeyError("a bug"),
        OSError("no file named"),
        ModuleNotFoundError("No module named 'dcem.nothing'", name="dcem.nothing"),
    ],
)
def test_what_is_our_fault_keeps_its_traceback(error) -> None:
    result = run(raising(error))
    assert result.exception is error


def test_an_unexpected_error_of_the_real_script_shows_a_traceback(tmp_path) -> None:
    code = (
        "import sys, dcem.cli.simulate as s, dcem.tasks as t\n"
        "t.make_sinusoid = lambda *a, **k: 1 / 0\n"
        "from dcem.cli import main\n"
        "sys.argv = ['dcem', 'simulate']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "ZeroDivisionError" in done.stderr


def test_warnings_about_data_are_notes_and_others_stay_warnings() -> None:
    def action():
        warnings.warn("group b: nobody was tested", DataWarning, stacklevel=1)
        warnings.warn("something old", DeprecationWarning, stacklevel=1)
        warnings.warn("something odd", UserWarning, stacklevel=1)

    before = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = run(action)
    assert "note: group b: nobody was tested\n" in result.stderr
    assert "UserWarning: something odd" in result.stderr
    assert warnings.showwarning is before


def test_notes_are_in_the_words_of_the_command(inside, tmp_path) -> None:
    rows = ["x,tested,paid", *(f"{i},a,{i % 2}" for i in range(40)), *["1,'b',"] * 20]
    (tmp_path / "loans.csv").write_text("\n".join(rows) + "\n")
    asked = ("check", "loans.csv", "--label", "paid", "--group", "tested", "--words", "credit")
    said = inside(*asked, cwd=tmp_path).stderr
    assert "Nobody is approved in group" in said


def test_ctrl_c_ends_with_130() -> None:
    result = run(raising(KeyboardInterrupt()))
    assert result.exit_code == 130
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(("number", "said"), [(2, "interrupted"), (15, "")])
def test_signals_end_the_real_script_tidily(number, said, tmp_path) -> None:
    code = (
        "import sys, time, dcem.tasks as t\n"
        "def slow(*a, **k):\n"
        "    try:\n        print('ready', flush=True); time.sleep(60)\n"
        "    finally:\n        print('tidied')\n"
        "t.make_sinusoid = slow\n"
        "from dcem.cli import main\n"
        "sys.argv = ['dcem', 'simulate']\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=listens,
        cwd=tmp_path,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert stdout == "tidied\n"
    assert stderr.strip() == said


def test_bad_input_at_the_real_command(dcem, tmp_path) -> None:
    done = dcem("simulate", "-o", "table.docx", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: table.docx")
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_every_extra_named_exists() -> None:
    import tomllib
    from pathlib import Path

    pyproject = Path(__file__).resolve().parents[2] / "pyproject.toml"
    declared = tomllib.loads(pyproject.read_text())["project"]["optional-dependencies"]
    for module, extra in EXTRAS.items():
        assert any(line.startswith(module.replace("_", "-")) for line in declared[extra]), module


def test_boosted_trees_that_cannot_be_loaded_are_told_in_a_line() -> None:
    assert "pip install" in message_for(ModuleNotFoundError("?", name="lightgbm"))
    cannot = "libgomp.so.1: cannot open shared object file: No such file or directory"
    assert "libgomp1" in message_for(OSError(cannot))
    assert message_for(ModuleNotFoundError("?", name="dcem.nowhere")) is None  # ours


def test_a_full_disk_is_told_in_a_line() -> None:
    assert message_for(OSError(errno.ENOSPC, "No space left on device")) == (
        "no space left on device"
    )
    assert message_for(OSError(errno.EBADF, "Bad file descriptor")) is None  # ours


def test_a_page_without_its_library_is_refused_before_the_work(monkeypatch, tmp_path) -> None:
    from dcem.cli._outputs import Outputs
    from dcem.extras import MissingExtra

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"audit\.html needs matplotlib.*dcem\[report\]"):
        Outputs([(tmp_path / "audit.html", "html")], tmp_path / "table.csv")
    Outputs([(tmp_path / "audit.md", "md")], tmp_path / "table.csv")
