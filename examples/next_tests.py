"""Closing the loop: whom to test next, and what the new tests tell.

A model of selectively tested people is weakest where nobody looked. `next_tests` gives everybody
who was not tested a probability of being tested next, higher where the model is unsure, where
people are unlike anybody tested, and where a group was tested less than others. Because the
probabilities are known, the new results represent everybody who was untested, whatever the model
got wrong.
"""

# %%
# Made-up patients. Two groups, ill alike at equal features; group B is hardly ever tested.

import numpy as np
import pandas as pd

import dcem
from dcem.scoring import fit_table, next_tests

rng = np.random.default_rng(4)
n = 5_000
patients = pd.DataFrame(
    {
        "fever": rng.normal(37.2, 0.8, n).round(1),
        "lactate": rng.gamma(2.0, 0.7, n).round(2),
        "age": rng.integers(18, 95, n),
        "group": rng.choice(["A", "B"], n, p=[0.6, 0.4]),
    }
)
logit = 0.9 * (patients["fever"] - 38) + 0.8 * (patients["lactate"] - 2) - 0.9
ill = rng.random(n) < 1 / (1 + np.exp(-logit))
asks = 1.2 * (patients["fever"] - 37.5) - 1.6 * (patients["group"] == "B") - 1.0
tested = rng.random(n) < 1 / (1 + np.exp(-asks))
patients["infection"] = np.where(tested, ill, np.nan)
patients.to_csv("patients.csv", index=False)

# %%
# A model of the table as it is.

table = dcem.read_table("patients.csv", dcem.Roles(label="infection", group="group"))
model = fit_table(table, "tested-only", n_members=3)
auc = dcem.metrics.auc(ill, model.score(patients).score)
print(f"tested: {tested.sum()} of {n}; AUC over everybody {auc:.3f}")

# %%
# Three hundred more tests. Nobody's probability is zero, and each has a reason.

chosen = next_tests(model, "patients.csv", budget=300)
print(chosen.by_group.round(2))
print(chosen.table["reason"].value_counts().head(4).to_string())

# %%
# Draw, and test them. (Here the truth is known; elsewhere this takes a while.) Weighted by one over
# their probability, the new tests give the share of ill people among all who were untested; the old
# tests alone do not.

drawn = chosen.draw(random_state=0)
rows = chosen.table["row"].to_numpy()[drawn]
weight = 1 / chosen.table["probability"].to_numpy()[drawn]
print(f"ill among the untested, in truth:   {ill[~tested].mean():.3f}")
print(f"ill among those tested before:      {ill[tested].mean():.3f}")
print(f"by the {len(rows)} new tests, weighted:    {np.average(ill[rows], weights=weight):.3f}")

# %%
# And with the new results in the table, the model is fitted again.

patients.loc[rows, "infection"] = ill[rows].astype(float)
patients.to_csv("patients.csv", index=False)
table = dcem.read_table("patients.csv", dcem.Roles(label="infection", group="group"))
again = fit_table(table, "tested-only", n_members=3)
print(f"AUC over everybody {dcem.metrics.auc(ill, again.score(patients).score):.3f}")
