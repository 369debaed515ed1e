"""A health survey: prevalence and models when half of the people were never tested.

Of people in a survey, some had their blood tested for diabetes and some did not; the insured and
the older were tested more often. What is the prevalence, and which model should be trained? This is
the shape of the US health survey NHANES, with made-up people, so that the truth is at hand.
"""

# %%
# Made-up people, with text, missing values and a group. Illness depends on age, weight and family;
# testing on age, insurance, visits and group.

import numpy as np
import pandas as pd

import dcem

rng = np.random.default_rng(3)
n = 5_000
people = pd.DataFrame(
    {
        "age": rng.integers(20, 85, n),
        "bmi": rng.normal(28, 5, n).round(1),
        "family_history": rng.choice(["yes", "no"], n, p=[0.3, 0.7]),
        "insured": rng.choice(["yes", "no"], n, p=[0.75, 0.25]),
        "visits": rng.poisson(3, n),
        "origin": rng.choice(["A", "B", "C"], n, p=[0.6, 0.3, 0.1]),
    }
)
family = (people["family_history"] == "yes").to_numpy()
insured = (people["insured"] == "yes").to_numpy()
logit = -2.6 + 0.045 * (people["age"] - 50) + 0.11 * (people["bmi"] - 28) + 0.9 * family
ill = rng.random(n) < 1 / (1 + np.exp(-logit))
asks = 0.03 * (people["age"] - 50) + 1.6 * insured + 0.4 * (people["visits"] - 3) - 1.0
asks -= 0.7 * (people["origin"] == "B")
tested = rng.random(n) < 1 / (1 + np.exp(-asks))
people["diabetes"] = np.where(tested, ill, np.nan)
people.loc[rng.random(n) < 0.05, "bmi"] = np.nan

# %%
# Read with its roles. Nothing has to be encoded or filled in before.

table = dcem.read_table(people, dcem.Roles(label="diabetes", group="origin"))
for column in table.columns:
    print(f"{column.name:15} {column.role:8} {column.kind}")

# %%
# The audit. Four answers to one question, and the truth beside them: in the record the untested
# count as healthy; among the tested the older are over-represented; the doubly robust estimate
# corrects for who was tested.

audit = dcem.audit_labels(table.problem)
truth = {name: ill[(people["origin"] == name)].mean() for name in "ABC"}
print("group      record tested doubly robust         truth")
for row in audit.prevalence:
    true = truth.get(row.group, ill.mean())
    print(
        f"{row.group:10} {row.recorded.value:.3f}  {row.tested_only.value:.3f}  "
        f"{row.doubly_robust} {true:.3f}"
    )

# %%
# What to know first:

for finding in audit.findings[:3]:
    print(f"[{finding.severity}] {finding.headline}")
    print(f"    {finding.text}")

# %%
# Three models, compared although half of the truth is missing. `y-obs` counts the untested as
# healthy, so it learns who goes to the doctor. *tested* is the AUC among the tested; *dr* is the
# doubly robust estimate of the AUC for everybody.

comparison = dcem.compare_methods(
    table.problem,
    ["y-obs", "tested-only", "ipw"],
    params={"learner": "linear"},
    n_folds=3,
    planted=0,  # no simulation on top
    n_resamples=50,
)
frame = comparison.to_frame()
auc = frame[frame["metric"] == "auc"].pivot(index="method", columns="target", values="value")
print(auc.round(3))
