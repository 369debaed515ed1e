"""The pseudo-synthetic sepsis task: real patients and outcomes, simulated testing.

About nine tenths of the cohort were cultured, so the paper takes the recorded outcome for the truth
and simulates who would have been tested under a policy that follows qSOFA,

    s_T = beta (RR - 22) / 9.807 + (1 - beta) (100 - SBP) / 21.766,
    t ~ Bernoulli(sigmoid(30 (s_T - tau_a))),

with RR the highest respiratory rate and SBP the lowest systolic pressure of the first three hours.
The thresholds tau_a make k times as many people tested as have sepsis, and group 0 (Black) q_t
times as often as group 1 (white). An untested patient's label is absent.

Two things of the published task have two readings, and both exist here under a name:

* `sign`: "as-released" is the formula above, which the released code uses and which tests people
  with *low* pressure. "as-printed" is the paper's formula with (SBP - 100), which tests people with
  *high* pressure: a misprint, kept to show what difference it makes.
* `missing`: "published" puts -9999 for a missing value, in the features and in s_T. A patient
  without a pressure is then tested almost surely, one without a respiratory rate almost never, and
  a network sees numbers a thousand times larger than any measurement. "absent" leaves NaN in the
  features (a method must know what to do), and a missing vital sign adds nothing to s_T.
"""

from __future__ import annotations

import json
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError, require_columns, require_one_of, rows_text
from dcem.tasks.rates import rates_of_testing
from dcem.tasks.sepsis.features import FEATURE_NAMES, PUBLISHED_SD, RACE_CODES
from dcem.tasks.task import Task

BETAS: tuple[float, ...] = tuple(round(0.1 * i, 1) for i in range(11))
K_VALUES: tuple[float, ...] = (1 / 4, 1 / 3, 1 / 2, 1, 2, 3, 4, 5, 10)
Q_T_VALUES: tuple[float, ...] = (1 / 2, 2 / 3, 1, 3 / 2, 2)
Sign = Literal["as-released", "as-printed"]
Missing = Literal["published", "absent"]

_SHARES = (0.6, 0.2, 0.2)
_SLOPE = 30.0
_RR_CENTER, _SBP_CENTER = 22.0, 100.0  # of qSOFA; the scales are written into the released code
_FILL = -9999.0
_BOUND, _TOLERANCE = 10_000.0, 1e-12


def sepsis_settings() -> list[tuple[float, float]]:
    """The 45 published settings (k, q_t); each is run at all 11 `BETAS`.

    At k = 10 everybody is tested and q_t has no meaning. A setting that would test more than
    everybody in a group is infeasible: for the published cohort k = 5 with q_t = 2.
    """
    return list(product(K_VALUES, Q_T_VALUES))


def load_sepsis(
    cohort: str | Path | pd.DataFrame,
    k: float = 4.0,
    q_t: float = 1.5,
    beta: float = 0.5,
    *,
    sign: Sign = "as-released",
    missing: Missing = "published",
) -> Task:
    """The sepsis task at one setting, from a file that `dcem sepsis build` wrote.

    The split (60/20/20) and the draws are the published stream: seed 42, rows sorted by stay. The
    returned task's `params` hold the thresholds, and whether the cohort is artificial.

    Parameters
    ----------
    cohort
        The Parquet file, or a frame with its columns.
    k
        Tested people per septic one. From 1 / prevalence on, everybody is tested.
    q_t
        How many times as often Black patients are tested as white ones.
    beta
        Weight of the respiratory rate in the policy; the pressure has the rest.
    sign
        "as-released" tests low pressure, "as-printed" high pressure (see above).
    missing
        "published" (-9999 everywhere) or "absent" (NaN; nothing in the policy).

    Raises
    ------
    InputError
        Where no policy can reach the rates.
    """
    require_one_of("sign", sign, get_args(Sign))
    require_one_of("missing", missing, get_args(Missing))
    if not 0 <= beta <= 1:
        raise InputError(f"beta is a weight between 0 and 1; got {beta}.")
    frame, build = read_cohort(cohort)
    y = frame["y"].to_numpy(dtype=np.int64)
    group = frame["a"].to_numpy(dtype=np.int64)
    X = frame[list(FEATURE_NAMES)].to_numpy(dtype=float)  # [n, 13]
    score = _score(X, beta, sign, missing)
    if missing == "published":
        X = np.where(np.isnan(X), _FILL, X)

    stream = np.random.RandomState(42)
    order = stream.permutation(len(y))
    edges = [0, *(np.cumsum(_SHARES) * len(y)).astype(int)]
    rows = [order[start:stop] for start, stop in pairwise(edges)]
    # For every split one vector of uniforms for each group's threshold, over all of its rows.
    draws = [np.stack([stream.rand(len(part)), stream.rand(len(part))]) for part in rows]

    rates = _rates(y, group, k, q_t)
    if rates == (1.0, 1.0):
        thresholds = (-np.inf, -np.inf)
    else:
        thresholds = _calibrate(score[rows[0]], group[rows[0]], draws[0], rates)
    tested = np.zeros(len(y), dtype=bool)
    for part, uniforms in zip(rows, draws, strict=True):
        tested[part] = _decide(score[part], group[part], uniforms, thresholds)

    everyone = SelectiveLabels(
        X=X,
        y_obs=np.where(tested, y, np.nan),
        tested=tested,
        group=group,
        id=frame["subject_id"].to_numpy(),
        weight=None,
        feature_names=FEATURE_NAMES,
        group_names=tuple(RACE_CODES),
        row=np.arange(len(y)),
    )
    params: dict[str, Any] = {"k": k, "q_t": q_t, "beta": beta, "sign": sign, "missing": missing}
    params |= {"thresholds": tuple(float(t) for t in thresholds), "target_rates": rates}
    params |= {"cohort": build, "artificial": bool(build.get("artificial", False))}
    return Task.of([everyone.subset(part) for part in rows], y, "sepsis", params)


def read_cohort(cohort: str | Path | pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The cohort sorted by stay, as the published stream expects it, and how it was built."""
    if isinstance(cohort, pd.DataFrame):
        frame, build, where = cohort, {}, "cohort"
    else:
        import pyarrow
        import pyarrow.parquet

        where = f"cohort {Path(cohort).name}"
        try:
            table = pyarrow.parquet.read_table(cohort)
        except (OSError, pyarrow.ArrowInvalid) as error:
            raise InputError(
                f"{cohort} cannot be read as a cohort: {type(error).__name__}. Give the Parquet "
                "file that 'dcem sepsis build' wrote."
            ) from None
        metadata = table.schema.metadata or {}
        build = json.loads(metadata.get(b"dcem_sepsis", b"{}"))
        frame = table.to_pandas()
    require_columns(frame.columns, ["icustay_id", "subject_id", "a", "y", *FEATURE_NAMES], where)
    for column in ("a", "y"):
        bad = ~frame[column].isin([0, 1]).to_numpy()
        if bad.any():
            raise InputError(f"{column!r} of the {where} must be 0 or 1: {rows_text(bad)}.")
    return frame.sort_values("icustay_id", kind="stable").reset_index(drop=True), build


def _score(X: np.ndarray, beta: float, sign: str, missing: str) -> np.ndarray:
    """s_T of every row."""
    rate, pressure = (X[:, FEATURE_NAMES.index(name)] for name in ("max_rr", "min_sbp"))
    if missing == "published":
        rate, pressure = (np.where(np.isnan(v), _FILL, v) for v in (rate, pressure))
    direction = -1.0 if sign == "as-released" else 1.0
    fast = (rate - _RR_CENTER) / PUBLISHED_SD["max_rr"] * beta
    low = (pressure - _SBP_CENTER) * direction / PUBLISHED_SD["min_sbp"] * (1 - beta)
    return np.nan_to_num(fast) + np.nan_to_num(low)


def _rates(y: np.ndarray, group: np.ndarray, k: float, q_t: float) -> tuple[float, float]:
    """Shares to be tested of both groups, from the prevalence and balance of the whole cohort."""
    prevalence, share = float(y.mean()), float(1 - group.mean())
    if not 0 < prevalence < 1 or not 0 < share < 1:
        raise InputError(
            f"The cohort needs both outcomes and both groups; of {len(y)} stays "
            f"{int(y.sum())} have sepsis and {int((group == 0).sum())} are Black."
        )
    if k * prevalence >= 1:
        return 1.0, 1.0
    return rates_of_testing(prevalence, k, q_t, share)


def _decide(
    score: np.ndarray, group: np.ndarray, uniforms: np.ndarray, thresholds: tuple[float, float]
) -> np.ndarray:
    """Who is tested: the draw of a row is the one made for its own group's threshold."""
    threshold = np.where(group == 0, *thresholds)
    with np.errstate(over="ignore"):
        probability = 1 / (1 + np.exp(-_SLOPE * (score - threshold)))
    return np.where(group == 0, *uniforms) < probability


def _calibrate(
    score: np.ndarray, group: np.ndarray, uniforms: np.ndarray, rates: tuple[float, float]
) -> tuple[float, float]:
    """Thresholds at which the training split, with these very draws, shows the rates.

    Bisection of both groups in step over +-10000 until the interval is 1e-12 wide or both shares
    are met exactly; the last midpoint is taken, as published.
    """
    for name, code in RACE_CODES.items():
        if not (group == code).any():
            raise InputError(f"No {name} patient fell into the training split of the cohort.")
    low, high = np.full(2, -_BOUND), np.full(2, _BOUND)
    residual, middle = np.full(2, np.inf), np.zeros(2)
    while (np.abs(residual) > _TOLERANCE).any() and (high - low >= _TOLERANCE).all():
        middle = (low + high) / 2
        tested = _decide(score, group, uniforms, (middle[0], middle[1]))
        shares = np.array([tested[group == 0].mean(), tested[group == 1].mean()])
        residual = shares - rates
        low, high = np.where(residual > 0, middle, low), np.where(residual > 0, high, middle)
    return float(middle[0]), float(middle[1])
