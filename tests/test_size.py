"""`make size` counts what it says: lines of code and templates, tokens without prose, branches."""

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "size.py"

CODE = '''"""A room."""


def plain(x):
    """Return x."""  # not counted
    return x


def branchy(x):
    if x and x > 1:
        return [a for a in x]
    while x:
        x = 1 if x else 2
    for a in x:
        try:
            x = a
        except ValueError:
            pass
    if a:
        pass
    if x:
        pass
    return x
'''


@pytest.fixture
def package(tmp_path):
    room = tmp_path / "room"
    room.mkdir()
    (tmp_path / "__init__.py").write_text('"""A package."""\n')
    (room / "code.py").write_text(CODE)
    (room / "page.html").write_text("<p>\n</p>\n")
    (room / "cohort.sql").write_text("select 1\n")
    return tmp_path


def test_counts_by_room(package):
    size = runpy.run_path(str(SCRIPT))
    rooms = size["by_room"](package)
    assert list(rooms) == ["", "room"]
    assert rooms[""][:3] == (1, 1, 0)
    assert rooms["room"].lines == CODE.count("\n") + 2  # templates count, queries do not
    assert rooms["room"].files == 1
    assert rooms["room"].functions == 2
    # one, three `if`, `and`, comprehension, `while`, conditional, `for`, handler: ten
    assert rooms["room"].branchy == 0


def test_a_function_with_one_branch_more_is_branchy(package):
    size = runpy.run_path(str(SCRIPT))
    path = package / "room" / "code.py"
    path.write_text(CODE.replace("    return x\n", "    return 1 if x else 2\n"))
    assert size["of_file"](path).branchy == 1


def test_comments_and_docstrings_are_no_tokens(package):
    size = runpy.run_path(str(SCRIPT))
    path = package / "room" / "code.py"
    before = size["of_file"](path)
    path.write_text(CODE.replace('"""Return x."""', '"""Return what was given, in full."""'))
    assert size["of_file"](path).tokens == before.tokens
    path.write_text(CODE.replace("return x\n", "return (x)\n", 1))
    assert size["of_file"](path).tokens == before.tokens + 2


def test_a_room_over_its_budget_is_marked():
    size = runpy.run_path(str(SCRIPT))
    small, large = size["Size"](1, 10, 5, 2, 0), size["Size"](1, 30, 5, 2, 1)
    assert not size["line"]("room", small, 20).endswith("over")
    assert size["line"]("room", large, 20).endswith("over")
    assert not size["line"]("room", large, None).endswith("over")
