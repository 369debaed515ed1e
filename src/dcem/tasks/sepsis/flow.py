"""The flow of stays through the criteria, counted at every step beside the published counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dcem.table.disclosure import WITHHELD, Shown, Sum

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
GROUPS: dict[str, int] = {"Black": 0, "white": 1}  # name -> code a of the published task

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


def count_flow(study: pd.DataFrame) -> tuple[dict[str, int], list[Sum]]:
    """Every count of the flow by name, and every sum among them that a reader can form."""
    counts: dict[str, int] = {"all_stays": len(study)}
    sums: list[Sum] = []
    before = "all_stays"
    for step in STEPS:
        removed, left = f"removed:{step}", f"left:{step}"
        counts[removed] = int((study["left_out_because"] == step).sum())
        counts[left] = counts[before] - counts[removed]
        sums.append((before, (removed, left)))
        if step in EXCLUSIONS:  # a flagged stay may have left at an earlier step
            counts[f"flag:{step}"] = int(study[f"exclusion_{step}"].sum())
            counts[f"{FORMED}flagged_before:{step}"] = counts[f"flag:{step}"] - counts[removed]
            sums.append((f"flag:{step}", (removed, f"{FORMED}flagged_before:{step}")))
            counts[f"{FORMED}unflagged:{step}"] = len(study) - counts[f"flag:{step}"]
            sums.append(("all_stays", (f"flag:{step}", f"{FORMED}unflagged:{step}")))
        before = left
    # What several steps removed together follows from the counts before and after them.
    lefts = ["all_stays", *(f"left:{step}" for step in STEPS)]
    for i, first in enumerate(lefts):
        for last in lefts[i + 2 :]:
            between = f"{FORMED}between {first} and {last}"
            counts[between] = counts[first] - counts[last]
            sums.append((first, (between, last)))

    cohort = study[study["in_cohort"]]
    suspected = cohort["suspicion_time"].notna()
    sofa = cohort["sofa"] >= 2
    counts["in_cohort"] = len(cohort)
    sums.append(("in_cohort", ("left:bad_data",)))
    for name, mask in (("suspected", suspected), ("sofa_2", sofa), ("sepsis3", suspected & sofa)):
        counts[name], counts[f"{FORMED}not_{name}"] = int(mask.sum()), int((~mask).sum())
        sums.append(("in_cohort", (name, f"{FORMED}not_{name}")))
    for name in ("suspected", "sofa_2"):
        counts[f"{FORMED}{name}_alone"] = counts[name] - counts["sepsis3"]
        sums.append((name, ("sepsis3", f"{FORMED}{name}_alone")))
    counts[f"{FORMED}sepsis3_in_window"] = (
        counts["sepsis3"] - counts["removed:onset_outside_window"]
    )
    sums.append(("sepsis3", ("removed:onset_outside_window", f"{FORMED}sepsis3_in_window")))

    final = study[study["left_out_because"].isna()]
    counts["study"] = len(final)
    sums.append(("study", ("left:no_features",)))
    sepsis = final["sepsis3"].astype(bool)
    for name, mask in (("sepsis", sepsis), ("no_sepsis", ~sepsis)):
        counts[f"study:{name}"] = int(mask.sum())
        for group, code in GROUPS.items():
            counts[f"study:{group}:{name}"] = int((mask & (final["a"] == code)).sum())
        sums.append((f"study:{name}", tuple(f"study:{group}:{name}" for group in GROUPS)))
    for group, code in GROUPS.items():
        counts[f"study:{group}"] = int((final["a"] == code).sum())
        sums.append((f"study:{group}", (f"study:{group}:sepsis", f"study:{group}:no_sepsis")))
    sums.append(("study", ("study:sepsis", "study:no_sepsis")))
    sums.append(("study", tuple(f"study:{group}" for group in GROUPS)))
    for name, before in (("sepsis", "sepsis3_in_window"), ("no_sepsis", "not_sepsis3")):
        later = f"{FORMED}{name}_left_out_later"
        counts[later] = counts[FORMED + before] - counts[f"study:{name}"]
        sums.append((FORMED + before, (f"study:{name}", later)))
    return counts, sums


def describe_flow(shown: dict[str, Shown], about: dict[str, Any]) -> dict[str, Any]:
    """The flow as one JSON-ready object; `shown` holds counts after small ones were hidden."""
    known = published_counts(about["suspicion"])

    def pair(name: str) -> dict[str, Any]:
        return {"count": shown[name], "published": known.get(name)}

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
        "study": {
            "all": pair("study"),
            "sepsis": pair("study:sepsis"),
            "no_sepsis": pair("study:no_sepsis"),
            "groups": {
                group: {
                    "all": pair(f"study:{group}"),
                    "sepsis": pair(f"study:{group}:sepsis"),
                    "no_sepsis": pair(f"study:{group}:no_sepsis"),
                }
                for group in GROUPS
            },
        },
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
