"""Write docs/methods.md from the registry and its docstrings: `python docs/generate_methods.py`."""

import inspect
import re
from pathlib import Path
from typing import Any

import pandas as pd

from dcem.methods.registry import METHODS

PAGE = Path(__file__).with_name("methods.md")
RESULTS = PAGE.parent.parent / "results"

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

*Time* is that of a fit cut down to 10 steps, or 5 rounds of 10, relative to `y-obs` for the same
networks and rows (`results/method_times.csv`): what a step costs with everything around it. Whole
fits differ further by how many steps and rounds they take.

"""

REPAIRS = """\
## What each repair changes

Median [worst] over 12 decision boundaries at q_y 1/2, k 1, q_t 2, on the paper's data sets. *As
published* is `published(name)`; *default* is `make(name)`, that is the corrected variant together
with what every method of this package does unless told otherwise: standardised features, stopping
by held-out rows, the best weights instead of the last. So a row shows all that changes for a user,
not one repair alone; where a method has no variants, it shows the common part. "Worst" is the
lowest AUC and the largest gap. Recorded in `results/methods.csv` and `results/repairs.csv`.

"""

NOTES = {
    "ipw": "clipped, normalised weights: the worst boundary gains, the median hardly moves",
    "dragonnet": "effect on testing instead of on the record, for everybody: no better",
    "peer-loss": "gradients flow: no longer y-obs; higher median, lower worst",
    "group-peer-loss": "gradients flow, rates estimated: higher median, lower worst, larger gap",
    "truncated-lq": "other k and q (.5, .7); no longer ranks against the truth, at a large gap",
    "self": "rounds compared by probabilities, dropped rows kept for consistency: no better here",
    "dividemix": "as its authors meant it; still ranks against the truth",
    "sar-em": "stops without truth: higher",
    "imputation-only": "first pseudo-labels from the tested-only network: follows tested-only",
    "no-causal-regularization": "fast schedule",
    "dcem": "fast schedule",
}


def repairs() -> str:
    """Published choices beside the defaults, method by method."""
    old = pd.read_csv(RESULTS / "methods.csv").query("k == 1 and q_t == 2")
    new = pd.read_csv(RESULTS / "repairs.csv")
    rows = ["| method | as published: AUC, gap | default: AUC, gap | what changed |"]
    rows.append("|---|---|---|---|")
    for name in METHODS:
        before, after = (table[table["method"] == name] for table in (old, new))
        if len(after):
            rows.append(
                f"| `{name}` | {_spread(before)} | {_spread(after)} | {NOTES.get(name, '')} |"
            )
    return REPAIRS + "\n".join(rows) + "\n\n"


def _spread(table: pd.DataFrame) -> str:
    if len(table) < 12:
        return "not recorded"

    def three(value: float) -> str:
        return f"{value:.3f}".lstrip("0")

    return (
        f"{three(table['auc'].median())} [{three(table['auc'].min())}], "
        f"{three(table['roc_gap'].median())} [{three(table['roc_gap'].max())}]"
    )


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
    head = [
        "| name | in a sentence | variants | needs the truth | predicts with the group | time |"
    ]
    head.append("|---|---|---|---|---|---:|")
    times = pd.read_csv(RESULTS / "method_times.csv").set_index("method")["relative"]
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
            f"| {when([one.needs_group for one in variants])} | {times[name]:g} |"
        )
        lines = [f"## {name}", f"`dcem.methods.{cls.__module__.split('.')[-1]}.{cls.__name__}`"]
        lines += [parts.pop("summary")]
        lines += [f"**{title}.** {text}" for title, text in parts.items()]
        sections.append("\n\n".join(lines))
    table = INTRODUCTION + "\n".join(head) + "\n\n" + repairs()
    return table + "\n\n".join(sections) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE.name}")
