"""A lender who sees outcomes of low-risk people only.

A bank lends to applicants whose risk looks low and learns who of them defaults. About those it
turned away it knows nothing: tested means *accepted*, and the people one would like to know about
are never tested. No method repairs that. A small share of acceptances at random does.
"""

# %%
# Made-up applicants. The bank sees income, debt and years in the job; default depends on them.

import numpy as np
import pandas as pd

import dcem

rng = np.random.default_rng(2)
n = 6_000
applicants = pd.DataFrame(
    {
        "income": rng.lognormal(10.3, 0.4, n).round(-2),
        "debt": rng.gamma(2.0, 0.2, n).round(3),
        "years_in_job": rng.integers(0, 30, n),
        "sex": rng.choice(["woman", "man"], n),
    }
)
risk = (
    2.2 * (applicants["debt"] - 0.4)
    - 1.1 * (np.log(applicants["income"]) - 10.3)
    - 0.06 * (applicants["years_in_job"] - 10)
    - 1.2
)
defaults = rng.random(n) < 1 / (1 + np.exp(-risk))


def lend(accepted):
    """The table as the bank has it: default where it lent, nothing elsewhere."""
    seen = applicants.assign(default=np.where(accepted, defaults, np.nan))
    return dcem.read_table(seen, dcem.Roles(label="default", group="sex")).problem


# %%
# First a bank with a strict bar: nobody above it gets money.

strict = risk < np.quantile(risk, 0.5)
audit = dcem.audit_labels(lend(strict))
everybody = audit.prevalence[0]
print(f"true share of defaults          {defaults.mean():.3f}")
print(f"in the bank's books             {everybody.recorded.value:.3f}")
print(f"among those who got money       {everybody.tested_only.value:.3f}")
print(f"doubly robust, for everybody    {everybody.doubly_robust}")
print(f"without any assumption          {everybody.bounds[0]:.3f} to {everybody.bounds[1]:.3f}")

# %%
# For most applicants nobody like them was ever accepted, and the audit refuses to estimate instead
# of inventing a number. Now the same bank accepts one in five of the others at random.

curious = strict | (rng.random(n) < 0.2)
audit = dcem.audit_labels(lend(curious))
everybody = audit.prevalence[0]
print(f"true share of defaults          {defaults.mean():.3f}")
print(f"among those who got money       {everybody.tested_only.value:.3f}")
print(f"doubly robust, for everybody    {everybody.doubly_robust}")

# %%
# The same holds for models: one that is fitted to the accepted of the strict bank has never seen a
# person of high risk. Each is fitted to half of the applicants and judged on all of the other half.

learnt, judged = np.arange(n // 2), np.arange(n // 2, n)
for name, accepted in {"strict": strict, "curious": curious}.items():
    people = lend(accepted)
    model = dcem.methods.make("tested-only", learner="boost", random_state=0)
    model.fit_problem(people.subset(learnt))
    score = model.predict_proba(people.subset(judged))[:, 1]
    print(f"{name}: AUC {dcem.metrics.auc(defaults[judged], score):.3f}")
print(f"the best there could be: {dcem.metrics.auc(defaults[judged], risk[judged]):.3f}")
