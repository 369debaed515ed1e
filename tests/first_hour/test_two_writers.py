"""Two writers of one place, both process 1 as in two containers, leave a whole one."""

import os
import subprocess
import sys
import time

import pytest

FILE = """
import os, sys, time
os.getpid = lambda: 1
from pathlib import Path
from dcem.files import whole_file
with whole_file(Path(sys.argv[1])) as partial, partial.open("w") as file:
    print("begun", flush=True)
    for _ in range(40):
        file.write(sys.argv[2] * 1000); file.flush(); time.sleep(0.01)
"""
FOLDER = """
import os, sys, time
os.getpid = lambda: 1
from pathlib import Path
from dcem.files import whole_folder
with whole_folder(Path(sys.argv[1])) as partial:
    print("begun", flush=True)
    for number in range(20):
        (partial / f"{number}").write_text(sys.argv[2]); time.sleep(0.01)
"""


def together(code, place, writers="AB"):
    """Writers that all begin before the first one ends; how each of them ends."""
    begun = [
        subprocess.Popen([sys.executable, "-c", code, place, letter], stdout=subprocess.PIPE)
        for letter in writers
    ]
    return [process.wait(60) for process in begun]


@pytest.mark.parametrize("writers", ["AB", "ABC"])
def test_a_file_is_of_one_writer(tmp_path, writers):
    assert together(FILE, tmp_path / "page.html", writers) == [0] * len(writers)
    text = (tmp_path / "page.html").read_text()
    assert len(text) == 40_000
    assert len(set(text)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("can_swap", [True, False])
def test_a_folder_is_of_one_writer(tmp_path, there, can_swap):
    place = tmp_path / "model"
    if there:
        place.mkdir()
        (place / "old").write_text("old")
    refuse = "import dcem.files; dcem.files._swap = lambda *two: False\n"
    assert together(FOLDER if can_swap else refuse + FOLDER, place, "ABC") == [0, 0, 0]
    assert len(list(place.iterdir())) == 20
    assert len({path.read_text() for path in place.iterdir()}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_work_of_a_living_writer_elsewhere_is_left_alone(tmp_path):
    """Its number says nothing here; what a killed one left is removed."""
    place = tmp_path / "page.html"
    slow = FILE.replace("range(40)", "range(4000)")
    living = subprocess.Popen(
        [sys.executable, "-c", slow, place, "A"], stdout=subprocess.PIPE, text=True
    )
    assert living.stdout.readline() == "begun\n"
    assert together(FILE, place, "B") == [0]
    assert len(list(tmp_path.glob(".page.html.*"))) == 1
    living.kill()
    living.wait()
    time.sleep(0.1)
    assert together(FILE, place, "C") == [0]
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert set(place.read_text()) == {"C"}


def test_a_planted_pipe_beside_a_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / ".page.html.0123456789abcdef.partial")
    assert together(FILE, tmp_path / "page.html", "A") == [0]
