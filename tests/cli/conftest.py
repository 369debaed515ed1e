import os
import subprocess
import sys
from pathlib import Path

import pytest

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
