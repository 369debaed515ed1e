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

Median [worst] over 12 decision boundaries at q_y 1/2, k 1, q_t 2, on the paper's data sets: AUC, then
ROC gap. *As published* is `published(name)`. *Repair alone* is the same with `variant="corrected"`
and nothing else changed. *Default* is `make(name)`: the repair together with what every method of
this package does unless told otherwise (standardised features, stopping by held-out rows, the best
weights instead of the last; DCEM and its ablations: the fast schedule). "Worst" is the lowest AUC
and the largest gap. Recorded in `results/methods.csv` and `results/repairs.csv`.

"""

NOTES = {
    "ipw": "weights clipped and normalised: better, above all at the worst boundary",
    "dragonnet": "effect on testing instead of on the record, for everybody: lower AUC",
    "peer-loss": "the peer term has a gradient, so this is no longer y-obs; hardly better",
    "group-peer-loss": "likewise, with noise rates estimated instead of read off the truth",
    "self": "rounds compared by probabilities, the best one kept: the same here",
    "dividemix": "losses of each network's own, labels refined: ranks against the truth still",
    "sar-em": "stops without truth, starts balanced: higher AUC, larger gap",
    "imputation-only": "pseudo-labels from the tested-only network: follows tested-only",
    "no-causal-regularization": "stops by tested rows, best iterate: lower; the fast schedule gains",
    "dcem": "stops by tested rows, best iterate: lower; the fast schedule gains",
}


def repairs() -> str:
    """Published choices, the repair alone, and the defaults, method by method."""
    old = pd.read_csv(RESULTS / "methods.csv").query("k == 1 and q_t == 2")
    old = pd.concat([old, pd.read_csv(RESULTS / "tables.csv").query("label == 'imputation-only'")])
    new = pd.read_csv(RESULTS / "repairs.csv")
    rows = ["| method | as published | repair alone | default | what the repair does |"]
    rows.append("|---|---|---|---|---|")
    for name, cls in METHODS.items():
        before, after = old[old["method"] == name], new[new["label"] == name]
        alone = new[new["label"] == f"{name}, repair alone"]
        repaired = _spread(alone) if hasattr(cls(), "variant") else ""
        if len(after):
            cells = [f"`{name}`", _spread(before), repaired, _spread(after), NOTES.get(name, "")]
            rows.append(f"| {' | '.join(cells)} |")
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
