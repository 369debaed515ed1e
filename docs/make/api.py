"""Write docs/api/ from the public names of each room: `python docs/make/api.py`.

A page says which names there are; what it says of each comes from the docstrings when the site is
built. The names are those that Python sees (`__all__`), since rooms load them when asked.
"""

import inspect
from importlib import import_module
from pathlib import Path

PAGES = Path(__file__).resolve().parents[1] / "api"
ROOMS = {
    "index": "dcem",
    "methods": "dcem.methods",
    "learners": "dcem.learners",
    "metrics": "dcem.metrics",
    "estimation": "dcem.estimation",
    "table": "dcem.table",
    "tasks": "dcem.tasks",
    "audit": "dcem.audit",
    "compare": "dcem.compare",
    "saving": "dcem.saving",
    "scoring": "dcem.scoring",
}

INTRODUCTION = """\
The names that most people need are at the top. The rest lives in rooms: [methods](methods.md),
[learners](learners.md), [metrics](metrics.md) where the truth is known,
[estimation](estimation.md) where it is missing, [table](table.md), [tasks](tasks.md),
[audit](audit.md), [compare](compare.md), [saving](saving.md) and [scoring](scoring.md). What is not
on these pages is internal and may change without notice ([policy](../policy.md)).

"""
ROOM = """\
# `{room}`

{introduction}::: {room}
    options:
      members: false
      show_root_heading: false
      show_root_toc_entry: false
"""


def home_of(room: str, name: str) -> str | None:
    """Where the docstring of a public name is; None of a module, which has a page of its own."""
    value = getattr(import_module(room), name)
    if inspect.ismodule(value):
        return None
    module = getattr(value, "__module__", "")
    return f"{module if module.startswith('dcem') else room}.{name}"


def page(stem: str) -> str:
    """The page of a room: what the room is, then each of its names."""
    room = ROOMS[stem]
    names = [
        name for name in getattr(import_module(room), "__all__", ()) if not name.startswith("_")
    ]
    homes = filter(None, (home_of(room, name) for name in names))
    head = ROOM.format(room=room, introduction=INTRODUCTION if stem == "index" else "")
    return head + "".join(f"\n::: {home}\n" for home in homes)


if __name__ == "__main__":
    for stem in ROOMS:
        (PAGES / f"{stem}.md").write_text(page(stem), encoding="utf-8")
    print(f"wrote api/: {len(ROOMS)} rooms")
