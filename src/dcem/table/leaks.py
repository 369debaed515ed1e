"""Columns that may have been recorded after the labelling decision.

Such a column (the result of a follow-up test, the drug that the result led to) lets a model read
the decision, or its outcome, off a value that does not exist when the model is to be used. A table
has no clock, but it gives three hints, each about one column alone:

* the column nearly determines who was tested: its AUC for `tested` is .9 or more. What drives
  testing in practice (symptoms, age, the ward) stays below; results of the test do not;
* some of its values hardly ever occur without the test: they are filled in by it;
* among the tested, the column nearly determines the label: its AUC is .98 or more. Risk factors do
  not reach that; the label in other words does.

A hint is no proof, and its absence proves nothing: a drug that is changed *because of* the result
may be only weakly related to testing. Only a person who knows when each column is written can tell.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

AUC_LIMIT = 0.9
LABEL_AUC_LIMIT = 0.98
LABEL_FEWEST = 20  # positives, and negatives, among the tested: cells cannot fit so many by chance
EXACT = 0.9999
BINS = 20
FEWEST = 50  # rows that a value needs to be called tested only
NEARLY_ALL = 0.995  # share of its rows that is tested
PART = 0.1  # of all tested rows that such values must cover


def suspicion(
    codes: np.ndarray, names: list[str], tested: np.ndarray, label: np.ndarray | None = None
) -> str:
    """Why a column may follow the decision, or an empty text.

    `codes [n]` cut the column into cells (levels, or bands of numbers; missing is one of them),
    which `names` describe; `label [n]` is 0 or 1 where somebody was tested.
    """
    told = [] if label is None else _says_the_label(codes[tested], len(names), label[tested] == 1)
    return "; ".join([*_says_who_was_tested(codes, names, tested), *told])


def _says_the_label(codes: np.ndarray, cells: int, positive: np.ndarray) -> list[str]:
    """The third hint; codes and label [n] of the tested alone."""
    if min(positive.sum(), (~positive).sum()) < LABEL_FEWEST:
        return []
    rows = np.bincount(codes, minlength=cells).astype(float)
    ill = np.bincount(codes[positive], minlength=cells).astype(float)
    area = _auc(ill / np.maximum(rows, 1), ill, rows - ill)
    if area < LABEL_AUC_LIMIT:
        return []
    return [f"among the tested it says the label itself (AUC {area:.2f})"]


def _says_who_was_tested(codes: np.ndarray, names: list[str], tested: np.ndarray) -> list[str]:
    """The first two hints."""
    rate = float(tested.mean())
    if not 0 < rate < 1:
        return []
    rows = np.bincount(codes, minlength=len(names)).astype(float)
    looked = np.bincount(codes[tested], minlength=len(names)).astype(float)
    share = looked / np.maximum(rows, 1)
    found = []
    area = _auc(share, looked, rows - looked)
    if area > EXACT:
        return ["it says exactly who was tested (if it is the decision itself, name it: --tested)"]
    if area >= AUC_LIMIT:
        found.append(f"it alone predicts who was tested with an AUC of {area:.2f}")
    only = (rows >= FEWEST) & (share >= NEARLY_ALL)
    # Where almost everybody is tested, a value among the tested alone is no surprise.
    surprising = only & (rows * np.log(max(rate, 1e-12)) < np.log(1e-6))
    if looked[surprising].sum() >= PART * looked.sum():
        which = ", ".join(repr(names[i]) for i in np.flatnonzero(surprising)[:3])
        many = " and others" if surprising.sum() > 3 else ""
        found.append(f"{which}{many} hardly ever occurs without the test")
    return found


def bands(values: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Numbers [n] in at most `BINS` bands of about equal size, missing ones in one of their own."""
    absent = np.isnan(values)
    present = values[~absent]
    if len(present) == 0 or present.min() == present.max():
        return absent.astype(np.int64), ["a value", "no value"]
    edges = np.unique(np.quantile(present, np.linspace(0, 1, BINS + 1)))
    codes = np.full(len(values), len(edges) - 1)
    codes[~absent] = np.clip(np.searchsorted(edges, present, side="right") - 1, 0, len(edges) - 2)
    named = [f"{low:g} to {high:g}" for low, high in itertools.pairwise(edges)]
    return codes, [*named, "no value"]


def levels(codes: np.ndarray, names: tuple[str, ...]) -> tuple[np.ndarray, list[str]]:
    """Codes with missing (-1) as a level of its own, rare levels in one."""
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    kept = np.flatnonzero(counts >= FEWEST)
    place = np.full(len(names) + 1, len(kept))  # all rare ones together
    place[kept] = np.arange(len(kept))
    place[-1] = len(kept) + 1  # what the code -1 finds
    return place[codes], [*(names[i] for i in kept), "a rare value", "no value"]


def _auc(score: np.ndarray, positives: np.ndarray, negatives: np.ndarray) -> float:
    """AUC of cells with this score that hold so many positives and negatives; ties count half."""
    cells = pd.DataFrame({"p": positives, "n": negatives}).groupby(score, sort=True).sum()
    p, n = cells["p"].to_numpy(), cells["n"].to_numpy()
    below = np.cumsum(n) - n
    return float((p * (below + n / 2)).sum() / (p.sum() * n.sum()))
