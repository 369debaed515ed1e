"""What two other implementations say of one table: PySensemakr and DoubleML.

    pip install 'dcem[oracles]'
    python tests/reference/oracles.py          (writes oracles.json beside this file)

Both are given the table and, where they take one, the same models, so that the formulas alone are
compared. They bring a hundred megabytes of other things and are therefore not installed with the
test tools: `test_oracles.py` holds dcem to the recorded numbers, and the numbers to the oracles
where these are installed.
"""

import json
from pathlib import Path

import numpy as np
from scipy.special import expit

RECORDED = Path(__file__).with_suffix(".json")
COLUMNS = ("age", "lab", "visits")
STRENGTHS = ((0.03, 0.03), (0.1, 0.02), (0.02, 0.2))  # partial R² with group, with testing


def table() -> dict[str, np.ndarray]:
    """A table [800] with a disparity in testing, and models of it that are a little wrong."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(800, len(COLUMNS)))
    x[:, 1] += 0.6 * x[:, 0]
    member, testing, risk = (
        expit(b + x @ np.array(w))
        for b, w in ((-0.4, (0.7, 0.2, 0)), (0.2, (0.5, 0.8, -0.3)), (-0.8, (0.9, 0.5, 0.2)))
    )
    group = (rng.random(800) < member).astype(int)
    tested = rng.random(800) < expit(np.log(testing / (1 - testing)) - 0.9 * group)
    y = (rng.random(800) < risk) & tested
    return {
        "x": x,
        "group": group,
        "tested": tested,
        "y": y,
        "member": member,
        "testing": 0.9 * testing,
        "risk": 0.02 + 0.9 * risk,
    }


def doubleml_says() -> dict[str, object]:
    """The difference in testing at equal features, its bias under confounding; the prevalence."""
    import doubleml
    import pandas as pd
    from sklearn.dummy import DummyClassifier, DummyRegressor

    t = table()
    frame = pd.DataFrame(t["x"], columns=COLUMNS)
    frame = frame.assign(group=t["group"], tested=t["tested"] * 1, y=t["y"] * 1.0)
    given = {name: t[name][:, None] for name in ("testing", "member", "risk")}
    data = doubleml.DoubleMLData(frame, y_col="tested", d_cols="group", x_cols=list(COLUMNS))
    linear = doubleml.DoubleMLPLR(data, DummyRegressor(), DummyClassifier(), n_folds=2)
    linear.fit(external_predictions={"group": {"ml_l": given["testing"], "ml_m": given["member"]}})
    bounds = []
    for of_group, of_testing in STRENGTHS:
        linear.sensitivity_analysis(cf_y=of_testing, cf_d=of_group, rho=1.0)
        theta = linear.sensitivity_params["theta"]
        bounds.append([float(theta["lower"][0]), float(theta["upper"][0])])
    data = doubleml.DoubleMLData(frame, y_col="y", d_cols="tested", x_cols=list(COLUMNS))
    mean = doubleml.DoubleMLAPO(
        data, DummyClassifier(), DummyClassifier(), treatment_level=1, n_folds=2, normalize_ipw=True
    )
    models = {"ml_g_d_lvl1": given["risk"], "ml_g_d_lvl0": given["risk"], "ml_m": given["testing"]}
    mean.fit(external_predictions={"tested": models})
    return {
        "difference": [float(linear.coef[0]), float(linear.se[0])],
        "bounds": bounds,
        "robustness_value": float(linear.sensitivity_params["rv"][0]),
        "prevalence": [float(mean.coef[0]), float(mean.se[0])],
    }


def sensemakr_says() -> dict[str, object]:
    """The robustness value, and how strong a cause like each measured column would be."""
    import pandas as pd
    import sensemakr
    import statsmodels.formula.api as smf

    t = table()
    frame = pd.DataFrame(t["x"], columns=COLUMNS)
    frame = frame.assign(group=t["group"] * 1.0, tested=t["tested"] * 1.0)
    rest = " + ".join(COLUMNS)
    of_testing = smf.ols(f"tested ~ group + {rest}", frame).fit()
    of_group = smf.ols(f"group ~ {rest}", frame).fit()

    def partial(model, column: str) -> float:
        squared = float(model.tvalues[column]) ** 2
        return squared / (squared + model.df_resid)

    t_group, freedom = float(of_testing.tvalues["group"]), int(of_testing.df_resid)
    columns = {}
    for column in COLUMNS:
        shares = partial(of_group, column), partial(of_testing, column)
        bound = sensemakr.ovb_partial_r2_bound(r2dxj_x=shares[0], r2yxj_dx=shares[1], kd=1, ky=1)
        columns[column] = [float(bound["r2dz_x"].iloc[0]), float(bound["r2yz_dx"].iloc[0])]
    value = sensemakr.robustness_value(t_statistic=t_group, dof=freedom)
    return {
        "partial_f": abs(t_group) / freedom**0.5,
        "robustness_value": float(np.ravel(value)[0]),
        "columns": columns,
    }


def ask() -> dict[str, object]:
    """Everything the oracles say."""
    return {"doubleml": doubleml_says(), "sensemakr": sensemakr_says()}


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(ask(), indent=1) + "\n")
