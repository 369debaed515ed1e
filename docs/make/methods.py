"""Write docs/methods.md from the registry and its docstrings: `python docs/make/methods.py`."""

from pathlib import Path

import pandas as pd

from dcem.methods.describe import Description, describe_all
from dcem.methods.registry import METHODS
from dcem.text import number

PAGE = Path(__file__).resolve().parents[1] / "methods.md"
RESULTS = PAGE.parent.parent / "results"

INTRODUCTION = """\
# Methods

This page describes every method: what it does, what it assumes and when it fails. It is generated
from the registry. Every method is a scikit-learn classifier with the same
`fit(X, y, *, tested=None, sensitive_features=None, validation=None)`:

```python
from dcem.methods import make, names, published

names()                          # all of them
names(usable=True)               # those that need no truth
make("tested-only", n_members=5)
published("dcem", task)          # with every choice behind the published numbers
```

On the command line, `dcem methods` lists them, and `dcem methods NAME` describes one.

`variant="corrected"`, the default, is a method as its own authors meant it; `variant="published"`
is what produced the paper's figures. Where the two agree there is no such parameter.

*Time* is relative to `y-obs` for the same networks and rows (`results/method_times.csv`). *A step*
is the cost of one training step with everything around it, measured with budgets cut to 10 steps,
or 5 rounds of 10. *A fit* is a whole fit with the published budget on 2,000 rows. There EM stops
after a few rounds; on the paper's 20,000 rows most fits of `dcem` go through all 50. (Its default
takes 1 in 25 of those steps.) `ensemble`, the default of `dcem fit`, has no published budget; it
takes a few seconds for 20,000 rows on two cores ([the default](default.md)).

"""

REPAIRS = """\
## What each repair changes

Each cell gives the AUC, then the ROC gap, as median [worst] over 12 decision boundaries at q_y 1/2,
k 1, q_t 2, on the paper's data sets. "Worst" is the lowest AUC and the largest gap. *As published*
is `published(name)`. *Repair alone* is the same with `variant="corrected"` and nothing else
changed. *Default* is `make(name)`: the repair together with the defaults of this package
(standardised features, stopping by held-out rows, the best weights instead of the last; for DCEM
and its ablations, the fast schedule). The results are recorded in `results/methods.csv` and
`results/repairs.csv`.

"""

NOTES = {
    "ipw": "weights clipped and normalised: better, above all at the worst boundary (recorded "
    "before the propensity was cross-fitted)",
    "dragonnet": "removes the effect on testing instead of on the record, for everybody: lower AUC",
    "peer-loss": "the peer term has a gradient, so this is no longer y-obs; hardly better",
    "group-peer-loss": "likewise, with noise rates estimated instead of read off the truth",
    "self": "rounds compared by probabilities, the best one kept: the same here",
    "dividemix": "each network has its own losses, labels refined: still ranks against the truth",
    "sar-em": "stops without truth, starts balanced: higher AUC, larger gap",
    "imputation-only": "pseudo-labels from the tested-only network: follows tested-only",
    "no-causal-regularization": "stops by tested rows, best iterate: lower; schedule: higher",
    "dcem": "stops by tested rows, best iterate: lower; the fast schedule: higher",
}


def repairs() -> str:
    """Published choices, the repair alone, and the defaults, method by method."""
    old = pd.read_csv(RESULTS / "methods.csv").query("k == 1 and q_t == 2")
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
    worst = {"auc": table["auc"].min(), "roc_gap": table["roc_gap"].max()}
    return ", ".join(
        f"{number(table[metric].median())} [{number(end)}]" for metric, end in worst.items()
    )


def parameters(one: Description, *, common: bool) -> str:
    """Parameters with their defaults, as a list."""
    entries = [entry for entry in one.parameters if entry.common is common]
    return "\n".join(f"- `{entry}`: {entry.text}" for entry in entries)


def section(one: Description) -> str:
    """One method: what it is in words, and what it takes."""
    cls = METHODS[one.name]
    lines = [f"## {one.name}", f"`dcem.methods.{cls.__module__.split('.')[-1]}.{cls.__name__}`"]
    lines += [one.summary]
    lines += [f"**{title}.** {text}" for title, text in one.sections.items()]
    return "\n\n".join(part for part in [*lines, parameters(one, common=False)] if part)


def _time(times: pd.DataFrame, name: str, what: str) -> str:
    return f"{times.loc[name, what]:g}" if name in times.index else ""


def page() -> str:
    """The whole page."""
    head = [
        "| name | in a sentence | variants | needs the truth | predicts with the group "
        "| time: a step | a fit |"
    ]
    head.append("|---|---|---|---|---|---:|---:|")
    times = pd.read_csv(RESULTS / "method_times.csv").set_index("method")
    found = describe_all()
    for one in found:
        head.append(
            f"| [`{one.name}`](#{one.name}) | {one.summary} | {'yes' if one.variants else ''} "
            f"| {one.needs_truth} | {one.needs_group} "
            f"| {_time(times, one.name, 'step')} | {_time(times, one.name, 'fit')} |"
        )
    table = INTRODUCTION + "\n".join(head) + "\n\n" + repairs()
    shared = "## Parameters of all methods\n\n" + parameters(found[0], common=True) + "\n\n"
    return table + shared + "\n\n".join(map(section, found)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE.name}")
