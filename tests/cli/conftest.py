import os
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

SCRIPT = Path(sys.executable).with_name("dcem")


@pytest.fixture
def dcem():
    """Run the installed `dcem` script, as a shell would."""

    def run(*args, cwd=None, **env):
        return subprocess.run(
            [SCRIPT, *map(str, args)],
            capture_output=True,
            text=True,
            cwd=cwd,
            env=os.environ | {"COLUMNS": "100", "TERM": "dumb"} | env,
            timeout=120,
        )

    return run


@pytest.fixture(scope="session")
def inside():
    """The same in this process: what a command says and how it ends, without a start of Python."""
    from dcem.cli import app

    def run(*args, cwd="."):
        with chdir(cwd):
            ended = CliRunner(env={"COLUMNS": "100", "TERM": "dumb"}).invoke(
                app, [*map(str, args)], prog_name="dcem"
            )
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return SimpleNamespace(returncode=ended.exit_code, stdout=ended.stdout, stderr=ended.stderr)

    return run
