"""Stops and searches: is one group searched on weaker grounds?

Police stop drivers, search some, and find something in some of the searches. Nobody knows what the
others carried. Usually two shares are compared: how often a group is searched, and how often a
search of it finds something (the *outcome test*). Either can mislead; at equal features, and
together, they say more.
"""

# %%
# Made-up stops. What a driver carries depends on the hour, the reason of the stop and how nervous
# the driver seems, not on the group. Officers search group B at a lower bar.

import numpy as np
import pandas as pd

import dcem

rng = np.random.default_rng(1)
n = 6_000
stops = pd.DataFrame(
    {
        "hour": rng.integers(0, 24, n),
        "reason": rng.choice(["speeding", "equipment", "investigation"], n, p=[0.6, 0.3, 0.1]),
        "nervous": rng.normal(size=n).round(2),
        "district": rng.choice(["north", "south", "centre"], n),
        "group": rng.choice(["A", "B"], n, p=[0.7, 0.3]),
    }
)
night = (stops["hour"] < 5).to_numpy()
suspicion = 0.9 * stops["nervous"] + 1.2 * (stops["reason"] == "investigation") + 0.5 * night
carries = rng.random(n) < 1 / (1 + np.exp(2.0 - suspicion))
bar = np.where(stops["group"] == "B", 0.3, 1.2)
searched = rng.random(n) < 1 / (1 + np.exp(bar - suspicion))
stops["found"] = np.where(searched, carries, np.nan)

# %%
# Three names are all that the table needs: where the result is, who belongs to which group, and
# that an empty result means that nobody searched. Text columns are encoded on the way.

table = dcem.read_table(stops, dcem.Roles(label="found", group="group"))
print(table.problem.summary())

# %%
# Group B is searched more often, and its searches find less: each could have an innocent reason.
# The audit compares drivers with the same features.

audit = dcem.audit_labels(table.problem)
for rate in audit.testing:
    print(
        f"{rate.group}: {rate.crude.value:.0%} searched; at equal features {rate.equal.value:.0%}"
    )
    print(f"   the others at the same features: {rate.others.value:.0%}")
    print(f"   difference {rate.difference}")

# %%
# The outcome test, among stops that were equally likely to end in a search: a lower rate of finds
# in B says that its searches start on weaker grounds.

for row in audit.yields:
    print(
        f"{row.group}: {row.rate.value:.1%} of searches find something; {row.at_equal_probability}"
    )

# %%
# Could something that officers saw and nobody wrote down explain the difference? The audit says how
# strong it would have to be. What matters most comes first.

for finding in audit.findings[:4]:
    print(f"[{finding.severity}] {finding.headline}")
