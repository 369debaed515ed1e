"""The account of a cohort: how stays flow through the criteria, and how good the data are.

Every count has a name, and every sum among counts that a reader can form is listed, so that
`dcem.table.disclosure` can hide small counts for good. The flow stands beside the published counts.
Quality is told of the stays of the study: missing features, implausible values, distributions, who
was cultured; shares and quantiles only where at least ten stays stand behind each of them, and a
distribution in bins of at least ten stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dcem.table.disclosure import THRESHOLD, WITHHELD, Shown, Sum, hide_small
from dcem.tasks.sepsis.features import (
    FEATURE_NAMES,
    FEATURES,
    MEASURES,
    PUBLISHED_SD,
    RACE_CODES,
    VERDICTS,
)

if TYPE_CHECKING:
    import pandas as pd

# Step -> why a stay leaves there, in the order in which they are applied.
EXCLUSIONS: dict[str, str] = {
    "nonadult": "16 years old or younger",
    "secondarystay": "not the patient's first ICU stay",
    "csurg": "cardiac, vascular or thoracic surgery service",
    "carevue": "charted in CareVue, not MetaVision",
    "early_suspicion": "infection suspected more than 24 h before admission",
    "late_suspicion": "infection suspected more than 24 h after admission",
    "bad_data": "no charted data, or no time of admission or discharge",
}
STUDY_STEPS: dict[str, str] = {
    "onset_outside_window": "sepsis before 3 h or after 11 h",
    "neither_white_nor_black": "neither white nor Black, or not recorded",
    "no_features": "none of the 13 features charted in 3 h",
}
STEPS: dict[str, str] = {**EXCLUSIONS, **STUDY_STEPS}

# Johnson et al. 2018 on MIMIC-III v1.4, rule v2018: removed in turn, and flagged on its own.
# The first four steps hold for every rule.
_PUBLISHED_2018 = {
    "nonadult": (8_109, 8_109),
    "secondarystay": (14_826, 15_056),
    "csurg": (5_905, 7_343),
    "carevue": (18_909, 37_912),
    "early_suspicion": (1_250, 7_343),
    "late_suspicion": (724, 3_914),
    "bad_data": (18, 491),
}
_ALL_STAYS, _RULE_FREE = 61_532, ("nonadult", "secondarystay", "csurg", "carevue")
_COHORT_2018 = {"in_cohort": 11_791, "suspected": 7_061, "sofa_2": 8_868, "sepsis3": 5_784}
_IN_COHORT_CORR24, _STUDY_CORR24 = 11_705, 5_301  # the paper


def published_counts(suspicion: str) -> dict[str, int]:
    """What is published of the full release under this suspicion rule; nothing is filled in."""
    known = {"all_stays": _ALL_STAYS}
    left = _ALL_STAYS
    for step, (removed, flagged) in _PUBLISHED_2018.items():
        left -= removed
        if suspicion == "v2018" or step in _RULE_FREE:
            known |= {f"removed:{step}": removed, f"left:{step}": left, f"flag:{step}": flagged}
    if suspicion == "v2018":
        known |= _COHORT_2018
    if suspicion == "corr24":
        known |= {"in_cohort": _IN_COHORT_CORR24, "study": _STUDY_CORR24}
        known |= {"left:bad_data": _IN_COHORT_CORR24, "left:no_features": _STUDY_CORR24}
    return known


# Withheld last: a flow without its totals tells nobody anything.
IMPORTANT: tuple[str, ...] = (
    *("study", "in_cohort", "all_stays", "left:no_features", "left:bad_data", "left:carevue"),
    *(f"left:{step}" for step in reversed(STEPS)),
    *(f"removed:{step}" for step in STEPS),
    *("sepsis3", "study:sepsis", "suspected", "sofa_2"),
)
FORMED = "formed:"  # how the names of counts begin that are on no page, but that a reader can form
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_BINS = 24


class Counts:
    """Counts by name, and the sums among them."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.sums: list[Sum] = []

    def count(self, name: str, mask: pd.Series) -> None:
        """How many stays a mask holds."""
        self.counts[name] = int(mask.sum())

    def add_up(self, whole: str, *parts: str) -> None:
        """The parts make up the whole."""
        self.sums.append((whole, parts))

    def rest(self, whole: str, part: str, rest: str) -> None:
        """Count what is left of the whole without a part."""
        self.counts[rest] = self.counts[whole] - self.counts[part]
        self.add_up(whole, part, rest)

    def by_group(
        self, name: str, mask: pd.Series, group: pd.Series, place: str = "{name}:{group}"
    ) -> None:
        """A count, and that of each group under the name that `place` gives it."""
        self.count(name, mask)
        names = {one: place.format(name=name, group=one) for one in RACE_CODES}
        for one, code in RACE_CODES.items():
            self.count(names[one], mask & (group == code))
        self.add_up(name, *names.values())


def account(
    study: pd.DataFrame, verdicts: pd.DataFrame, about: dict[str, Any], *, show_all: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Flow and quality of a cohort as JSON-ready objects, small counts hidden unless `show_all`.

    `study` has one row per ICU stay, `verdicts` one per measure and verdict with the number `n` of
    charted values.
    """
    tally = Counts()
    count_flow(tally, study)
    final = study[study["left_out_because"].isna()]
    count_quality(tally, final, verdicts)
    shown = hide_small(
        tally.counts,
        tally.sums,
        unseen={name for name in tally.counts if name.startswith(FORMED)},
        important=IMPORTANT,
        show_all=show_all,
    )
    return describe_flow(shown, about), describe_quality(final, shown, about, show_all=show_all)


# -- the flow ---------------------------------------------------------------------------------


def count_flow(tally: Counts, study: pd.DataFrame) -> None:
    """Every count of the flow."""
    counts = tally.counts
    counts["all_stays"] = len(study)
    before = "all_stays"
    for step in STEPS:
        removed, left, flag = (f"{what}:{step}" for what in ("removed", "left", "flag"))
        tally.count(removed, study["left_out_because"] == step)
        tally.rest(before, removed, left)
        if step in EXCLUSIONS:  # a flagged stay may have left at an earlier step
            tally.count(flag, study[f"exclusion_{step}"])
            tally.rest(flag, removed, f"{FORMED}flagged_before:{step}")
            tally.rest("all_stays", flag, f"{FORMED}unflagged:{step}")
        before = left
    # What several steps removed together follows from the counts before and after them.
    lefts = ["all_stays", *(f"left:{step}" for step in STEPS)]
    for i, first in enumerate(lefts):
        for last in lefts[i + 2 :]:
            tally.rest(first, last, f"{FORMED}between {first} and {last}")

    cohort = study[study["in_cohort"]]
    suspected, sofa = cohort["suspicion_time"].notna(), cohort["sofa"] >= 2
    counts["in_cohort"] = len(cohort)
    tally.add_up("in_cohort", "left:bad_data")
    for name, mask in (("suspected", suspected), ("sofa_2", sofa), ("sepsis3", suspected & sofa)):
        tally.count(name, mask)
        tally.rest("in_cohort", name, f"{FORMED}not_{name}")
    for name in ("suspected", "sofa_2"):
        tally.rest(name, "sepsis3", f"{FORMED}{name}_alone")
    tally.rest("sepsis3", "removed:onset_outside_window", f"{FORMED}sepsis3_in_window")

    final = study[study["left_out_because"].isna()]
    counts["study"] = len(final)
    tally.add_up("study", "left:no_features")
    sepsis = final["sepsis3"].astype(bool)
    for name, mask in (("sepsis", sepsis), ("no_sepsis", ~sepsis)):
        tally.by_group(f"study:{name}", mask, final["a"], f"study:{{group}}:{name}")
    for group, code in RACE_CODES.items():
        tally.count(f"study:{group}", final["a"] == code)
        tally.add_up(f"study:{group}", f"study:{group}:sepsis", f"study:{group}:no_sepsis")
    tally.add_up("study", "study:sepsis", "study:no_sepsis")
    tally.add_up("study", *(f"study:{group}" for group in RACE_CODES))
    for name, before in (("sepsis", "sepsis3_in_window"), ("no_sepsis", "not_sepsis3")):
        tally.rest(FORMED + before, f"study:{name}", f"{FORMED}{name}_left_out_later")


def describe_flow(shown: dict[str, Shown], about: dict[str, Any]) -> dict[str, Any]:
    """The flow as one JSON-ready object; `shown` holds counts after small ones were hidden."""
    known = published_counts(about["suspicion"])

    def pair(name: str) -> dict[str, Any]:
        return {"count": shown[name], "published": known.get(name)}

    def outcomes(of: str) -> dict[str, Any]:
        return {"all": pair(of)} | {y: pair(f"{of}:{y}") for y in ("sepsis", "no_sepsis")}

    steps = [
        {"step": step, "reason": reason}
        | {"removed": pair(f"removed:{step}"), "left": pair(f"left:{step}")}
        for step, reason in STEPS.items()
    ]
    return {
        "build": about,
        "all_stays": pair("all_stays"),
        "steps": steps,
        "stages": _stages(shown),
        "flags_on_their_own": {step: pair(f"flag:{step}") for step in EXCLUSIONS},
        "cohort": {name: pair(name) for name in _COHORT_2018},
        "study": outcomes("study")
        | {"groups": {group: outcomes(f"study:{group}") for group in RACE_CODES}},
    }


def _stages(shown: dict[str, Shown]) -> list[dict[str, Any]]:
    """Steps told together: up to the next one after which the number left may be shown.

    The steps between two numbers that are shown removed their difference, and a reader may have it.
    """
    stages: list[dict[str, Any]] = []
    before, steps = shown["all_stays"], list[str]()
    for step in STEPS:
        steps.append(step)
        left = shown[f"left:{step}"]
        if isinstance(left, int) or step == list(STEPS)[-1]:
            known = isinstance(before, int) and isinstance(left, int)
            alone = shown[f"removed:{step}"] if len(steps) == 1 else WITHHELD
            removed = before - left if known and len(steps) > 1 else alone  # type: ignore[operator]
            stages.append({"steps": steps, "removed": removed, "left": left})
            before, steps = left, []
    return stages


# -- the quality ------------------------------------------------------------------------------


def count_quality(tally: Counts, study: pd.DataFrame, verdicts: pd.DataFrame) -> None:
    """Missing by feature and group, cultured by group, verdicts by measure."""
    traits = {name: study[name].isna() for name in FEATURE_NAMES}
    traits |= {"cultured": study["blood_culture_time"].notna()}
    for trait, mask in traits.items():
        for sign, having in (("with", mask), ("without", ~mask)):
            tally.by_group(f"{sign}:{trait}", having, study["a"])
        tally.add_up("study", f"with:{trait}", f"without:{trait}")
        for group in RACE_CODES:
            tally.add_up(f"study:{group}", f"with:{trait}:{group}", f"without:{trait}:{group}")
    found = verdicts.set_index(["measure", "verdict"])["n"]
    for measure in MEASURES:
        each = {v: int(found.get((measure, v), 0)) for v in (*VERDICTS, "plausible")}
        for verdict in VERDICTS:  # how many were plausible is not shown, so nothing adds up
            tally.counts[f"values:{measure}:{verdict}"] = each[verdict]
        tally.counts[f"values:{measure}"] = sum(each.values())


def describe_quality(
    study: pd.DataFrame, shown: dict[str, Shown], about: dict[str, Any], *, show_all: bool
) -> dict[str, Any]:
    """The quality page as one JSON-ready object, without anything that was to be hidden."""
    by_group = {group: study[study["a"] == code] for group, code in RACE_CODES.items()}

    def share(trait: str) -> dict[str, Any]:
        of = {"all": ""} | {group: f":{group}" for group in RACE_CODES}
        return {who: _shown_share(shown, f"with:{trait}{of[who]}", f"study{of[who]}") for who in of}

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
        "stays": {"all": shown["study"]} | {g: shown[f"study:{g}"] for g in RACE_CODES},
        "cultured": share("cultured"),
        "features": features,
        "values": {
            measure: {"meaning": words, "all": shown[f"values:{measure}"]}
            | {verdict: shown[f"values:{measure}:{verdict}"] for verdict in VERDICTS}
            for measure, words in MEASURES.items()
        },
        "standard_deviations": {
            name: {"here": _rounded_sd(study[name], show_all), "published": sd}
            for name, sd in PUBLISHED_SD.items()
        },
    }


def _shown_share(shown: dict[str, Shown], part: str, whole: str) -> dict[str, Any]:
    count, total = shown[part], shown[whole]
    known = isinstance(count, int) and isinstance(total, int) and total > 0
    return {"count": count, "share": round(count / total, 4) if known else None}  # type: ignore[operator]


def _rounded_sd(values: pd.Series, show_all: bool) -> float | None:
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
