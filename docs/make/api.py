"""Write docs/api/ from the public names of each package: `python docs/make/api.py`.

A page says which names there are; what it says of each comes from the docstrings when the site is
built. The names are those that Python sees (`__all__`), since packages load them when asked.
"""

import inspect
from importlib import import_module
from pathlib import Path

PAGES = Path(__file__).resolve().parents[1] / "api"
PACKAGES = {
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
The names that most people need are at the top. The rest is in packages: [methods](methods.md),
[learners](learners.md), [metrics](metrics.md) where the truth is known,
[estimation](estimation.md) where it is missing, [table](table.md), [tasks](tasks.md),
[audit](audit.md), [compare](compare.md), [saving](saving.md) and [scoring](scoring.md). What is not
on these pages is internal and may change without notice ([policy](../policy.md)).

"""
HEAD = """\
# `{package}`

{introduction}::: {package}
    options:
      members: false
      show_root_heading: false
      show_root_toc_entry: false
"""


def home_of(package: str, name: str) -> str | None:
    """Where the docstring of a public name is; None of a module, which has a page of its own."""
    value = getattr(import_module(package), name)
    if inspect.ismodule(value):
        return None
    module = getattr(value, "__module__", "")
    return f"{module if module.startswith('dcem') else package}.{name}"


def page(stem: str) -> str:
    """The page of a package: what the package is, then each of its names."""
    package = PACKAGES[stem]
    names = [
        name for name in getattr(import_module(package), "__all__", ()) if not name.startswith("_")
    ]
    homes = filter(None, (home_of(package, name) for name in names))
    head = HEAD.format(package=package, introduction=INTRODUCTION if stem == "index" else "")
    return head + "".join(f"\n::: {home}\n" for home in homes)


if __name__ == "__main__":
    for stem in PACKAGES:
        (PAGES / f"{stem}.md").write_text(page(stem), encoding="utf-8")
    print(f"wrote api/: {len(PACKAGES)} packages")
