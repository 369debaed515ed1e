"""`variant` means something for every method that has it."""

from typing import Any

import numpy as np
import pytest
from choices import some

from dcem.methods.registry import METHODS, make
from dcem.table.labels import SelectiveLabels

# long enough for the last network to be worse than the best one
LONG = {"schedule": "published", "steps": 20, "max_iter": 25, "learning_rate": 0.05}
SMALL: dict[str, dict[str, Any]] = {
    "imputation-only": {"steps": 30},
    "no-causal-regularization": LONG,
    "dcem": LONG,
    "sar-em": {"steps": 20, "max_iter": 6},
    "self": {"steps": 60, "max_iter": 4, "learning_rate": 0.1},
    "dividemix": {"steps": 40},
}
WITH_VARIANTS = [name for name, cls in METHODS.items() if hasattr(cls(), "variant")]


def problem(n: int = 400) -> tuple[SelectiveLabels, np.ndarray]:
    """Testing depends steeply on a feature, so that some propensities are small."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] + rng.normal(size=n) > 0.5).astype(float)
    tested = rng.random(n) < 1 / (1 + np.exp(-3 * X[:, 1]))
    rows = SelectiveLabels.from_arrays(
        X, np.where(tested, y, np.nan), group=rng.integers(0, 2, n), tested=tested
    )
    return rows, y


# Of two that share their EM one is enough every time.
@pytest.mark.parametrize(
    "name", some(WITH_VARIANTS, set(WITH_VARIANTS) - {"no-causal-regularization"})
)
def test_published_and_corrected_differ(name):
    rows, y = problem()
    scores = []
    for variant in ("published", "corrected"):
        settings = {"steps": 100} | SMALL.get(name, {})
        method = make(name, variant=variant, random_state=3, hidden=(8,), **settings)
        truth = {"truth": y} if method.uses_truth else {}
        method.fit_problem(rows, **truth)
        group = {"sensitive_features": rows.group} if method.needs_group else {}
        scores.append(method.predict_proba(rows.X, **group)[:, 1])
    assert np.abs(scores[0] - scores[1]).max() > 1e-4
