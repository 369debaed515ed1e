"""Write docs/nhanes.md from what experiments/nhanes.py recorded: `python docs/make/nhanes.py`."""

import json
from pathlib import Path

import pandas as pd

from dcem.text import number, points

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "nhanes.md"
METHODS = {
    "ensemble": "**`ensemble`, the default**",
    "tested-only, linear": "`tested-only`, linear",
    "ipw, linear": "`ipw`, linear",
    "tested-only": "`tested-only`, networks",
    "tested-only, boost": "`tested-only`, boosted trees",
    "tested-only, forest": "`tested-only`, forest",
    "dcem": "`dcem`, networks",
    "y-obs, boost": "`y-obs`, boosted trees: the untested are negative",
    "truth of everybody, boost": "*boosted trees trained on the truth of everybody*",
}
WAYS = {
    "none": "no further test",
    "next-tests": "`next-tests`",
    "at random": "at random",
    "highest risk": "the highest risk first",
}
TEXT = """\
# A real decision to test, and the truth for everybody

The US survey NHANES lets us check `dcem` on real testing decisions, because the truth is known for
everybody. The survey measured glycohaemoglobin in everyone it examined, and asked whether their
blood had been tested for diabetes in the last three years. 28,355 adults had never been told that
they have diabetes. Half of them had been tested: 55 % of the insured and 32 % of the uninsured, 35
% at age 20 to 34 and 64 % at 65 and over. Nothing is simulated.
`dcem.tasks.load_nhanes(path, outcome="diabetes")` reads the CDC's own files, or one merged table.

Three cautions apply. The label of a tested person is the survey's measurement now, not the clinic's
result then. Leaving out people with a diagnosis selects on past tests. And the survey is a sample
with weights, strata and sampling units. The intervals below respect strata and units, except those
of the audit: like `dcem compare`, it takes people to be independent.

`python experiments/nhanes.py run --data FILE` computes every number of this page (`show` prints
them all), and `python docs/make/nhanes.py` writes the page.

## What each way of using the labels would have given

Every method sees only the labels of the tested, in five folds. It is then judged by the truth for
everybody, without survey weights.

{methods}

- **Counting the untested as negative** gives a prevalence of {naive[diabetes]} % instead of
  {prevalence[diabetes]} % for diabetes, and of {naive[prediabetes]} % instead of
  {prevalence[prediabetes]} % for prediabetes.
- **The default's risks are about right.** Their mean is {mean[diabetes]} % where the prevalence is
  {prevalence[diabetes]} %, and {mean[prediabetes]} % where it is {prevalence[prediabetes]} %. The
  default ranks people as well as a model that was given the truth.
- **Looking at the tested alone misleads.** Among them the default's AUC is {tested[diabetes]} and
  {tested[prediabetes]}. Doubly robust estimates without any truth give {dr[diabetes]} and
  {dr[prediabetes]}; the truth is {auc[diabetes]} and {auc[prediabetes]}. Over all methods and both
  outcomes, {inside_dr} of {n} doubly robust intervals hold the truth, but only {inside_tested} of
  {n} intervals among the tested.
- **What nobody recorded matters a little.** At equal features and group, the odds of the untested
  are {ratio[diabetes]} times those of the tested for diabetes, and {ratio[prediabetes]} times for
  prediabetes: the sick are tested somewhat more often than the table explains. The audit's
  sensitivity analysis states what would change a conclusion as such an odds ratio, so these values
  give a scale for it. If told how common diabetes is, the audit finds this without any other truth
  ([rates that are known](known_rates.md)).

With survey weights the default has AUCs of {weighted[diabetes]} and {weighted[prediabetes]}.

The other methods of the paper, as networks, five members each:

{networks}

`tested-only-plus-group` is told the group when it predicts, the others are not. The methods from
`peer-loss` on take the untested for negatives some of whose labels are wrong by chance.

## What the audit says, and what is true

`dcem audit` sees the labels of the tested alone. It says how much more or less often a group is
tested than others with the same features:

{testing}

It also estimates how common the outcome is:

{audited[prediabetes]}

{audited[diabetes]}

- **Equal rates hide unequal testing.** White people are tested as often as everybody, but less
  often than others with the same features.
- **Neither the record nor the tested alone tell how common the outcome is.** The estimates of
  groups do. Those over all groups, and the limits for diabetes, are slightly too high, because the
  sick are tested more often than the table explains (see above).
- **Limits instead of a number.** Where more than 2 % of the people were hardly ever tested, the
  audit does not estimate, and its limits assume nothing about these people.

## Whom to test next, with the truth in hand

Among four fifths of the people, {tests:,} of the untested are tested, chosen in three ways. The
default is then fitted again and judged on the last fifth. {folds}.

{further}

`next-tests` looks for people about whom little is known, not for the ill. To find the most cases,
test the highest risk first. What `next-tests` gives is knowledge about everybody: weighted by one
over the recorded probability, its tests estimate the prevalence among the untested without bias,
which tests of the highest risk cannot. (The last column gives the mean ± standard deviation over
draws, and the truth in brackets.) It does not improve the ranking here: with the existing tests,
2,000 more leave the AUC unchanged within chance, however they are chosen.

The 16 features are what a doctor could know before the test: age, sex, body measurements, income,
education, marital status, birth in the US, insurance, use of care, general health, and having been
told of high blood pressure or cholesterol. Race and ethnicity is the group, and not a feature.
"""


def page() -> str:
    """The page."""
    found = pd.read_csv(ROOT / "results" / "nhanes.csv")
    tried = pd.read_csv(ROOT / "results" / "nhanes_next_tests.csv")
    audited = pd.read_csv(ROOT / "results" / "nhanes_audit.csv").set_index(["outcome", "group"])
    ratios = json.loads((ROOT / "results" / "nhanes.json").read_text())[
        "odds_ratio_untested_to_tested"
    ]
    plain = found[~found["weighted"]].set_index(["outcome", "method"])
    weighted = found[found["weighted"]].set_index(["outcome", "method"])
    outcomes = ("diabetes", "prediabetes")
    shares = {one: plain.loc[one, "prevalence"].iloc[0] for one in outcomes}
    heads = [f" {o} ({_percent(shares[o])} %): AUC | calibration error |" for o in outcomes]
    lines = ["| |" + "".join(heads), "|---|" + "---|---|" * len(outcomes)]
    others = lines.copy()
    for method in found.loc[~found["method"].isin(METHODS), "method"].unique():
        rows = [plain.loc[outcome, method] for outcome in outcomes]
        cells = [number(row[key]) for row in rows for key in ("auc", "calibration_error")]
        others.append(f"| `{method}` | " + " | ".join(cells) + " |")
    shown = [method for method in METHODS if method != "truth of everybody, boost"]
    best = {o: plain.loc[o].loc[shown, "auc"].max() for o in outcomes}
    for method, words in METHODS.items():
        cells = []
        for outcome in outcomes:
            row = plain.loc[outcome, method]
            area = number(row["auc"])
            area = f"**{area}**" if row["auc"] == best[outcome] else area
            area += f" ± {number(1.96 * row['standard_error'])}" if method == "ensemble" else ""
            cells += [area, number(row["calibration_error"])]
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    inside = {
        target: int(plain["auc"].between(plain[f"low_{target}"], plain[f"high_{target}"]).sum())
        for target in ("dr", "tested")
    }
    ours = plain.xs("ensemble", level="method")
    means = tried.groupby(["outcome", "way"]).mean(numeric_only=True)
    folds = tried["fold"].nunique()
    heads = (f" {o}: found | AUC | prevalence among the untested |" for o in outcomes)
    further = ["| |" + "".join(heads), "|---|" + "---|---|---|" * len(outcomes)]
    for way, words in WAYS.items():
        cells = []
        for outcome in outcomes:
            row = means.loc[outcome, way]
            told = "cannot say"
            if pd.notna(row["estimate"]):
                spread, truth = row["spread"], row["prevalence_of_untested"]
                told = f"{number(row['estimate'], 4)} ± {number(spread, 4)} ({number(truth, 4)})"
            cells += [f"{row['found']:.0f}", number(row["auc"]), told]
        further.append(f"| {words} | " + " | ".join(cells) + " |")

    def ranged(row: pd.Series, value: str, low: str, high: str) -> str:
        return f"{number(row[value])} [{number(row[low])}, {number(row[high])}]"

    return TEXT.format(
        methods="\n".join(lines),
        networks="\n".join(others),
        testing=_testing(audited.xs("prediabetes")),
        audited={o: _prevalence(o, audited.xs(o)) for o in outcomes},
        further="\n".join(further),
        prevalence={o: _percent(shares[o]) for o in outcomes},
        naive={o: _percent(plain.loc[o, "y-obs, boost"]["mean_risk"]) for o in outcomes},
        mean={o: _percent(ours.loc[o, "mean_risk"]) for o in outcomes},
        tested={o: number(ours.loc[o, "auc_tested"]) for o in outcomes},
        dr={o: ranged(ours.loc[o], "auc_dr", "low_dr", "high_dr") for o in outcomes},
        auc={o: number(ours.loc[o, "auc"]) for o in outcomes},
        inside_dr=inside["dr"],
        inside_tested=inside["tested"],
        n=len(plain),
        ratio={
            o: f"{number(r['value'], 2)} [{number(r['low'], 2)}, {number(r['high'], 2)}]"
            for o, r in ratios.items()
        },
        weighted={
            o: f"{number(row['auc'])} ± {number(1.96 * row['standard_error'])}"
            for o, row in weighted.xs("ensemble", level="method").iterrows()
        },
        tests=int(tried["tests"].max()),
        folds=f"Means of {folds} folds" if folds > 1 else "One fold of five",
    )  # fmt: skip


def _testing(rows: pd.DataFrame) -> str:
    """How often each group is tested, and how much more or less often at equal features."""
    lines = ["| | tested | percentage points more or less at equal features |", "|---|---|---|"]
    for name, row in rows.iterrows():
        lines.append(f"| {name} | {_percent(row['tested'])} % | {_gap(row)} |")
    return "\n".join(lines)


def _prevalence(outcome: str, rows: pd.DataFrame) -> str:
    """How common the outcome is in each group: by the record, the tested, the audit; the truth."""
    lines = [f"| {outcome} | recorded | of the tested | estimated | truth |", "|---" * 5 + "|"]
    for name, row in rows.iterrows():
        cells = [str(name), *(f"{_percent(row[key])} %" for key in ("recorded", "tested_only"))]
        cells += [_estimated(row), f"**{_percent(row['truth'])} %**"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _gap(row: pd.Series) -> str:
    if pd.isna(row["difference"]):
        return ""
    low, value, high = (points(row[f"{end}difference"]) for end in ("low_", "", "high_"))
    return f"{value} [{low}, {high}]"


def _estimated(row: pd.Series) -> str:
    if pd.isna(row["doubly_robust"]):
        return f"{_percent(row['least'])} to {_percent(row['most'])} % (limits)"
    low, high = (_percent(row[f"{end}_doubly_robust"]) for end in ("low", "high"))
    return f"{_percent(row['doubly_robust'])} % [{low}, {high}]"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}" if share < 0.1 else f"{100 * share:.0f}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
