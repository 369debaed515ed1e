"""With scikit-learn: pipelines and searches where labels are missing.

A method of dcem is a classifier like any other, except that `y` may be NaN where nobody tested.
Two things have to change in a search. Stratified folds must not look at NaN labels, and the score
must not be agreement with the record, which rewards a model for knowing who was tested.
"""

# %%
# Made-up people: what is wrong with them depends on `x0` and `x1`, who is tested on `x2` above all.

import numpy as np
import sklearn
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import dcem
from dcem.estimation import SelectiveKFold, scorer
from dcem.methods import ObservedLabelsClassifier, TestedOnlyClassifier

rng = np.random.default_rng(5)
n = 3_000
X = rng.normal(size=(n, 3))
group = rng.choice(["A", "B"], n)
logit = 1.2 * X[:, 0] + 1.5 * X[:, 1] ** 2 - 2
ill = rng.random(n) < 1 / (1 + np.exp(-logit))
tested = rng.random(n) < 1 / (1 + np.exp(-(1.5 * X[:, 2] - 0.8 * (group == "B"))))
y = np.where(tested, ill, np.nan)
print(f"{np.isnan(y).mean():.0%} of the labels are missing")

# %%
# A pipeline, judged in folds. With metadata routing the group is cut along with the rows; it helps
# to say who was tested, and is never an input of the model.

pipeline = make_pipeline(
    PolynomialFeatures(2, include_bias=False),
    TestedOnlyClassifier(learner="linear", random_state=0),
)
with sklearn.config_context(enable_metadata_routing=True):
    for name in ("tested-auc", "dr-auc"):
        values = cross_val_score(
            pipeline,
            X,
            y,
            cv=SelectiveKFold(3),
            scoring=scorer(name),
            params={"sensitive_features": group},
        )
        print(f"{name:11} {values.mean():.3f}")

# %%
# A search over the steps of the pipeline, by the doubly robust AUC.

with sklearn.config_context(enable_metadata_routing=True):
    search = GridSearchCV(
        pipeline,
        {"polynomialfeatures__degree": [1, 2]},
        cv=SelectiveKFold(3),
        scoring=scorer("dr-auc"),
    )
    search.fit(X, y, sensitive_features=group)
print(search.best_params_)

# %%
# Why not the ordinary score? Counting the untested as healthy, it prefers a model that knows who is
# tested. Here are both, with the truth beside them.

record = np.where(tested, ill, 0)
models = {
    "y-obs": ObservedLabelsClassifier(learner="boost", random_state=0),
    "tested-only": TestedOnlyClassifier(learner="boost", random_state=0),
}
half = np.arange(n) < n // 2
print("             by the record  by the truth")
for name, model in models.items():
    model.fit(X[half], y[half], sensitive_features=group[half])
    risk = model.predict_proba(X[~half])[:, 1]
    by_record = dcem.metrics.auc(record[~half], risk)
    by_truth = dcem.metrics.auc(ill[~half], risk)
    print(f"{name:12} {by_record:13.3f} {by_truth:13.3f}")
