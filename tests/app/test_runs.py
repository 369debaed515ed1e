"""A run is found again by whoever comes back, and its end is told as it was."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from running_app import wait_for

from dcem.app import runs
from dcem.app.runs import Run, start


def begun(tmp_path: Path, *words: str, result: str = "out.csv") -> Run:
    return start(tmp_path / "step-1", words, result, tmp_path, {})


def sleeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> Run:
    """A run of Python that a test writes, in place of the command."""
    (tmp_path / "interpreter").write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}"\n')
    (tmp_path / "interpreter").chmod(0o755)
    monkeypatch.setattr(runs.sys, "executable", str(tmp_path / "interpreter"))
    return begun(tmp_path)


def test_a_run_without_its_result_is_not_done(tmp_path) -> None:
    run = begun(tmp_path, "audit", "--help")
    wait_for(lambda: run.state != "running")
    assert run.ended["code"] == 0
    assert run.state == "failed"
    run.result.touch()
    assert run.state == "done"


def test_what_is_wrong_is_said_as_on_the_command_line(tmp_path) -> None:
    run = begun(tmp_path, "audit", "table.csv", "--lable", "x")
    wait_for(lambda: run.state != "running")
    assert run.state == "failed"
    assert run.ended["code"] == 2
    assert "--lable" in run.log


def test_a_killed_process_is_told_apart_with_its_last_words(tmp_path, monkeypatch) -> None:
    run = sleeper(tmp_path, monkeypatch, "import time; print('so far', flush=True); time.sleep(60)")
    assert run.state == "running"
    wait_for(lambda: "so far" in run.log)
    os.kill(int((run.folder / "process").read_text()), signal.SIGKILL)
    wait_for(lambda: run.state != "running")
    assert run.state == "killed"
    assert "so far" in run.log


def test_cancel_ends_the_children_too(tmp_path, monkeypatch) -> None:
    code = (
        "import subprocess, sys, time; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        "print(child.pid, flush=True); time.sleep(60)"
    )
    run = sleeper(tmp_path, monkeypatch, code)
    child = int(wait_for(lambda: run.log.strip()))
    run.cancel()
    assert run.state == "cancelled"
    wait_for(lambda: not _is_alive(child))


def test_a_process_that_does_not_listen_is_ended_all_the_same(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(runs, "PATIENCE", 0.2)
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print('deaf', flush=True); time.sleep(60)"
    )
    run = sleeper(tmp_path, monkeypatch, code)
    wait_for(lambda: run.log)
    run.cancel()
    wait_for(lambda: not run._is_locked())
    assert run.state == "cancelled"


def test_a_run_outlives_the_app_and_is_found_again(tmp_path) -> None:
    """Nobody is there to see its end: the folder alone tells."""
    script = (
        "import sys; sys.executable = sys.argv[1]\n"
        "from pathlib import Path\nfrom dcem.app.runs import start\n"
        "start(Path(sys.argv[2]) / 'step-1', [], 'out.csv', Path(sys.argv[2]), {})\n"
    )
    worker = tmp_path / "worker"
    worker.write_text(
        "#!/bin/sh\necho begun\nwhile [ ! -e go ]; do sleep 0.05; done\n: > step-1/out.csv\n"
    )
    worker.chmod(0o755)
    subprocess.run([sys.executable, "-c", script, str(worker), str(tmp_path)], check=True)
    run = runs.runs(tmp_path)[0]
    assert run.state == "running"
    wait_for(lambda: run.progress["doing"] == "begun")
    (tmp_path / "go").touch()
    wait_for(lambda: run.state != "running")
    assert run.state == "done"
    assert run.ended == {}


def test_progress_is_the_last_line_that_can_be_read(tmp_path) -> None:
    (tmp_path / "step-1").mkdir()
    run = Run(tmp_path / "step-1")
    lines = [{"doing": "one", "share": 0.1}, {"doing": "two", "share": 0.5, "left": 3}]
    text = "\n".join(map(json.dumps, lines)) + '\n{"doing": "thr'
    (run.folder / "progress").write_text(text)
    assert run.progress == lines[1]


def _is_alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False
