"""Write docs/methods.md from the registry and its docstrings: `python docs/generate_methods.py`."""

import inspect
import re
from pathlib import Path
from typing import Any

from dcem.methods.registry import METHODS

PAGE = Path(__file__).with_name("methods.md")

INTRODUCTION = """\
# Methods

This page is generated from the registry. Every method is a scikit-learn classifier with the same
`fit(X, y, *, tested=None, sensitive_features=None, validation=None)`:

```python
from dcem.methods import make, names, published

names()                          # all of them
names(usable=True)               # those that need no truth
make("tested-only", n_members=5)
published("dcem", task)          # with every choice behind the published numbers
```

`variant="corrected"`, the default, is a method as its own authors meant it; `variant="published"`
is what produced the paper's figures. Where the two agree there is no such parameter.

"""


def paragraphs(cls: type) -> dict[str, str]:
    """The parts of a docstring: first line, then Idea, Assumption, When it fails, Variants."""
    text = inspect.cleandoc(cls.__doc__ or "")
    body, *_ = re.split(r"\n(?:Parameters|Attributes|References)\n-+\n", text)
    found = {"summary": body.split("\n")[0]}
    for match in re.finditer(r"\*([A-Z][a-z ]+)\.\*\s+(.*?)(?=\n\n|\Z)", body, flags=re.DOTALL):
        found[match.group(1)] = " ".join(match.group(2).split())
    reference = re.search(r"References\n-+\n(.*?)(?=\n\n|\Z)", text, flags=re.DOTALL)
    if reference:
        found["Reference"] = " ".join(reference.group(1).split())
    return found


def page() -> str:
    """The whole page."""
    head = ["| name | in a sentence | variants | needs the truth | predicts with the group |"]
    head.append("|---|---|---|---|---|")
    sections = []
    for name, cls in METHODS.items():
        method: Any = cls()
        parts = paragraphs(cls)
        variants = [method]
        if hasattr(method, "variant"):
            variants.append(cls(variant="published"))

        def when(flags: list[bool]) -> str:
            return "yes" if all(flags) else "published" if any(flags) else ""

        head.append(
            f"| [`{name}`](#{name}) | {parts['summary']} | {'yes' if len(variants) > 1 else ''} "
            f"| {when([one.uses_truth for one in variants])} "
            f"| {when([one.needs_group for one in variants])} |"
        )
        lines = [f"## {name}", f"`dcem.methods.{cls.__module__.split('.')[-1]}.{cls.__name__}`"]
        lines += [parts.pop("summary")]
        lines += [f"**{title}.** {text}" for title, text in parts.items()]
        sections.append("\n\n".join(lines))
    return INTRODUCTION + "\n".join(head) + "\n\n" + "\n\n".join(sections) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE.name}")
