"""How good the data are: missing features, implausible values, distributions, who was cultured.

All of it is counted over the stays of the study. Counts pass through `dcem.table.disclosure`;
shares and quantiles are given only where at least ten stays stand behind each of them, and a
distribution is given in bins of at least ten stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dcem.table.disclosure import THRESHOLD, Shown, Sum
from dcem.tasks.sepsis.features import FEATURE_NAMES, FEATURES, MEASURES, VERDICTS
from dcem.tasks.sepsis.flow import GROUPS

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED_SD = {"max_rr": 9.807072379603103, "min_sbp": 21.76634883880265}  # training split
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_BINS = 24


def count_quality(study: pd.DataFrame, verdicts: pd.DataFrame) -> tuple[dict[str, int], list[Sum]]:
    """Counts and their sums: missing by feature and group, cultured by group, verdicts by measure.

    `verdicts` has one row per measure and verdict with the number `n` of charted values. Names of
    counts shared with the flow ("study", "study:white") are not counted again.
    """
    counts: dict[str, int] = {}
    sums: list[Sum] = []
    traits = {name: study[name].isna() for name in FEATURE_NAMES}
    traits |= {"cultured": study["blood_culture_time"].notna()}
    for trait, mask in traits.items():
        for sign, having in (("with", mask), ("without", ~mask)):
            counts[f"{sign}:{trait}"] = int(having.sum())
            for group, code in GROUPS.items():
                counts[f"{sign}:{trait}:{group}"] = int((having & (study["a"] == code)).sum())
            sums.append((f"{sign}:{trait}", tuple(f"{sign}:{trait}:{group}" for group in GROUPS)))
        sums.append(("study", (f"with:{trait}", f"without:{trait}")))
        sums += [
            (f"study:{group}", (f"with:{trait}:{group}", f"without:{trait}:{group}"))
            for group in GROUPS
        ]
    columns = (verdicts[name].tolist() for name in ("measure", "verdict", "n"))
    found = {(measure, verdict): n for measure, verdict, n in zip(*columns, strict=True)}
    for measure in MEASURES:
        for verdict in VERDICTS:  # how many were plausible is not shown, so nothing adds up
            counts[f"values:{measure}:{verdict}"] = found.get((measure, verdict), 0)
        counts[f"values:{measure}"] = sum(counts[f"values:{measure}:{v}"] for v in VERDICTS)
        counts[f"values:{measure}"] += found.get((measure, "plausible"), 0)
    return counts, sums


def describe_quality(
    study: pd.DataFrame, shown: dict[str, Shown], about: dict[str, Any], *, show_all: bool
) -> dict[str, Any]:
    """The quality page as one JSON-ready object, without anything that was to be hidden."""
    by_group = {group: study[study["a"] == code] for group, code in GROUPS.items()}

    def share(trait: str) -> dict[str, Any]:
        whole = {"all": _share(shown, f"with:{trait}", "study")}
        return whole | {
            group: _share(shown, f"with:{trait}:{group}", f"study:{group}") for group in GROUPS
        }

    features = {}
    for feature in FEATURES:
        distribution = {
            group: _distribution(part[feature.name], feature.axis, show_all)
            for group, part in by_group.items()
            if isinstance(shown[f"without:{feature.name}:{group}"], int)
        }
        features[feature.name] = {
            "meaning": feature.meaning,
            "unit": feature.unit,
            "missing": share(feature.name),
            "distribution": distribution,
        }
    return {
        "build": about,
        "stays": {"all": shown["study"]} | {g: shown[f"study:{g}"] for g in GROUPS},
        "cultured": share("cultured"),
        "features": features,
        "values": {
            measure: {"meaning": words, "all": shown[f"values:{measure}"]}
            | {verdict: shown[f"values:{measure}:{verdict}"] for verdict in VERDICTS}
            for measure, words in MEASURES.items()
        },
        "standard_deviations": {
            name: {"here": _spread(study[name], show_all), "published": sd}
            for name, sd in PUBLISHED_SD.items()
        },
    }


def _share(shown: dict[str, Shown], part: str, whole: str) -> dict[str, Any]:
    count, total = shown[part], shown[whole]
    known = isinstance(count, int) and isinstance(total, int) and total > 0
    return {"count": count, "share": round(count / total, 4) if known else None}  # type: ignore[operator]


def _spread(values: pd.Series, show_all: bool) -> float | None:
    known = values.dropna()
    enough = len(known) >= (2 if show_all else 2 * THRESHOLD)
    return round(float(known.std(ddof=0)), 3) if enough else None


def _distribution(
    values: pd.Series, axis: tuple[float, float], show_all: bool
) -> dict[str, Any] | None:
    known = np.asarray(values.dropna(), dtype=float)
    least = 1 if show_all else THRESHOLD
    if len(known) < 2 * least:
        return None
    quantiles = {
        f"{q:g}": round(float(np.quantile(known, q)), 2)
        for q in _QUANTILES
        if min(q, 1 - q) * len(known) >= least
    }
    # What lies beyond the axis is counted in the outermost bins.
    edges = np.linspace(*axis, _BINS + 1)
    counts = np.histogram(np.clip(known, *axis), bins=edges)[0]
    if not show_all:
        edges, counts = _merge_small(edges, counts)
    return {
        "quantiles": quantiles,
        "edges": [round(float(edge), 3) for edge in edges],
        "shares": [round(float(c) / len(known), 2) for c in counts],
    }


def _merge_small(edges: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Join neighbouring bins from the left until each holds at least the threshold."""
    kept_edges, kept, filling = [edges[0]], [], 0
    for right, count in zip(edges[1:], counts, strict=True):
        filling += int(count)
        if filling >= THRESHOLD:
            kept_edges.append(right)
            kept.append(filling)
            filling = 0
    kept[-1] += filling  # at least one bin is full: the caller has twice the threshold
    kept_edges[-1] = edges[-1]
    return np.array(kept_edges), np.array(kept)
