"""The simulation of the paper: a sine-wave outcome, seen through a straight testing boundary."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError, require_one_of
from dcem.tasks.rates import rates_of_outcome, rates_of_testing
from dcem.tasks.sinusoid.exact_rates import calibrate_exactly
from dcem.tasks.sinusoid.process import AS_RELEASED, AS_WRITTEN, SinusoidConstants, SinusoidProcess
from dcem.tasks.sinusoid.published_stream import calibrate_on_draws, final_draws
from dcem.tasks.task import SPLITS, Task, Truth, seed_from

PRESETS = {"as-released": AS_RELEASED, "as-written": AS_WRITTEN}
DEFAULT_STREAM = {"as-released": "published", "as-written": "independent"}
# The study: its settings, each replicated at twelve phases.
Q_Y = (1 / 4, 1 / 3, 1 / 2, 1.0)
K = (0.1, 1 / 4, 1 / 3, 1 / 2, 1.0, 2.0, 3.0, 4.0)
Q_T = (1 / 4, 1 / 3, 1 / 2, 1.0, 2.0, 3.0, 4.0)
DEGREES = tuple(range(0, 360, 30))
"""The twelve phases in degrees, as files and result tables have them."""
PHASES = tuple(math.radians(degrees) for degrees in DEGREES)
"""The same in radians, as `make_sinusoid` takes them."""


def make_sinusoid(
    q_y: float = 0.5,
    k: float = 1.0,
    q_t: float = 2.0,
    phase: float = 0.0,
    preset: Literal["as-released", "as-written"] = "as-released",
    stream: Literal["published", "independent"] | None = None,
    random_state: int | np.random.Generator | None = None,
    *,
    n_train: int = 20_000,
    n_validation: int = 20_000,
    n_test: int = 20_000,
    variance: float | None = None,
    outcome_slope: float | None = None,
    outcome_threshold: float | None = None,
    testing_slope: float | None = None,
    frequency: float | None = None,
    amplitude: float | None = None,
    rotation: float | None = None,
    prevalence: float | None = None,
    group_share: float | None = None,
) -> Task:
    """Draw a simulated task: two features, two groups, labels only where somebody tested.

    The outcome boundary is a rotated sine wave; the testing boundary is a straight line across it,
    at another place for each group. Three ratios name a setting; means and thresholds are then
    calibrated to meet them.

    Parameters
    ----------
    q_y
        Prevalence disparity P(Y|group 0) / P(Y|group 1).
    k
        Testing multiple P(T) / P(Y). With k * prevalence = 1 everybody is tested and `q_t` has no
        meaning.
    q_t
        Testing disparity P(T|group 0) / P(T|group 1).
    phase
        Of the sine wave, in radians. The paper uses 0, 30, ..., 330 degrees.
    preset
        `"as-released"` is the process of the published runs: X|a ~ N(mu_a (1,1), .03 I) with
        *variance* .03; exactly half of the rows in each group, group 0 first, never shuffled; s_T =
        x0 - x1 + .5, T ~ Ber(sigmoid(30 (s_T - tau_a))); z = xR(30 degrees) + .5, s_Y = z0 - sin(4
        pi z1 + phase) / 4, Y ~ Ber(sigmoid(10 (s_Y - 1))); mu_a is tuned to the prevalences, tau_a
        to the testing rates. `"as-written"` is the process of the paper's text (its Sections 4.1
        and C.1), which differs: standard deviation .03 (covariance .03^2 I); the group of each row
        is drawn, a ~ Ber(1/2); s_T = x0 + x1 - tau_a; z = R(30 degrees) x + .5, s_Y = z1 - sin(8 pi
        z0 + phase) / 4 (coordinates exchanged, twice the frequency); Y ~ Ber(sigmoid(10 s_Y -
        c_y)). The text says that c_y is set to make P(Y) = 1/4 and that mu_a is then found from
        q_y, which leaves one degree of freedom: here c_y is tuned for a population centred at the
        origin. Features spread so little that the groups hardly overlap, and the prevalence is not
        monotone in the mean; the means are those that the published bisection would reach.
    stream
        `"published"` (default of as-released) draws the very rows of the published runs: NumPy's
        legacy generator seeded with 42, calibration by bisection on realised rates. `"independent"`
        (default and only choice of as-written) draws from `random_state`, with means and thresholds
        that meet the rates exactly in expectation.
    random_state
        Seed of the independent stream, or a generator to take one from. None takes a fresh one.
        `params` records it.
    n_train, n_validation, n_test
        Rows of each split, both groups together.
    variance
        Of each feature within a group.
    outcome_slope, testing_slope
        10 and 30; a smaller testing slope means more overlap. The thresholds are calibrated anew.
    outcome_threshold
        Value of s_Y at which P(Y|x) = 1/2 (c_y / 10 in the paper's notation).
    frequency, amplitude, rotation
        Of the wave (radians per unit, score units, radians).
    prevalence
        P(Y) over everybody.
    group_share
        P(A=0).

    Returns
    -------
    Task
        `task.process` knows P(Y|x) and P(T|x,a); `make_sinusoid(**task.params)` draws the same task
        again.

    Raises
    ------
    InputError
        If a group's rate would exceed 1 (the message names group and rate), or an argument makes no
        sense.
    """
    free = {
        "variance": variance, "outcome_slope": outcome_slope,
        "outcome_threshold": outcome_threshold, "testing_slope": testing_slope,
        "frequency": frequency, "amplitude": amplitude, "rotation": rotation,
        "prevalence": prevalence, "group_share": group_share,
    }  # fmt: skip
    constants = _constants(preset, free)
    if not np.isfinite(phase):
        raise InputError(f"'phase' must be a finite angle in radians, got {phase}.")
    source = _stream(preset, stream, random_state)
    outcome = rates_of_outcome(constants.prevalence, q_y, constants.group_share)
    testing = rates_of_testing(constants.prevalence, k, q_t, constants.group_share)
    sizes = {"train": n_train, "validation": n_validation, "test": n_test}
    counts = tuple(_group_counts(name, n, constants.group_share) for name, n in sizes.items())

    seed = None
    if source == "published":
        process = calibrate_on_draws(constants, phase, outcome, testing)
        drawn = final_draws(constants.variance, counts)
        draws = [
            (np.repeat([0, 1], pair), *map(np.concatenate, raw))
            for pair, raw in zip(counts, drawn, strict=True)
        ]
    else:
        process = calibrate_exactly(constants, phase, outcome, testing)
        seed = seed_from(random_state)
        rng = np.random.default_rng(seed)
        draws = [_independent_draw(constants, rng, pair) for pair in counts]

    (train, validation, test), truths = zip(
        *(_as_people(process, *draw) for draw in draws), strict=True
    )
    params: dict[str, Any] = {"q_y": q_y, "k": k, "q_t": q_t, "phase": phase}
    params |= {"preset": preset, "stream": source, "random_state": seed} | {
        f"n_{name}": n for name, n in sizes.items()
    }
    params |= {name: getattr(constants, name) for name in free}
    truth = Truth(dict(zip(SPLITS, truths, strict=True)))
    return Task(train, validation, test, truth, "sinusoid", params, process)


def _constants(preset: str, given: dict[str, float | None]) -> SinusoidConstants:
    require_one_of("preset", preset, PRESETS)
    changed = {name: float(value) for name, value in given.items() if value is not None}
    for name, value in changed.items():
        if name in ("variance", "outcome_slope", "testing_slope") and not value > 0:
            raise InputError(f"{name!r} must be positive, got {value}.")
        if not np.isfinite(value) and not name.endswith("slope"):  # a slope may be a step
            raise InputError(f"{name!r} must be finite, got {value}.")
    return replace(PRESETS[preset], **changed)  # type: ignore[arg-type]


def _stream(preset: str, stream: str | None, random_state: Any) -> str:
    stream = DEFAULT_STREAM[preset] if stream is None else stream
    require_one_of("stream", stream, ("published", "independent"))
    if stream == "published" and preset != "as-released":
        raise InputError(f"The preset {preset!r} has no published draws. Use stream='independent'.")
    if stream == "published" and random_state is not None:
        raise InputError(
            "The published stream is always seeded with 42; 'random_state' would change nothing. "
            "Leave it out, or use stream='independent'."
        )
    return stream


def _group_counts(name: str, n: int, share: float) -> tuple[int, int]:
    first = round(n * share)
    if n % 1 or not 0 < first < n:
        raise InputError(f"n_{name} = {n} is no whole number of rows that holds both groups.")
    return first, int(n) - first


def _independent_draw(
    c: SinusoidConstants, rng: np.random.Generator, counts: tuple[int, int]
) -> tuple[np.ndarray, ...]:
    """Groups, features less the group mean, and uniforms for T and Y of one split."""
    n = sum(counts)
    group = np.repeat([0, 1], counts) if c.balanced else (rng.random(n) >= c.group_share) * 1
    return group, rng.normal(scale=np.sqrt(c.variance), size=(n, 2)), rng.random(n), rng.random(n)


def _as_people(
    process: SinusoidProcess,
    group: np.ndarray,  # [n]
    noise: np.ndarray,  # [n, 2], features less the group mean
    u_tested: np.ndarray,
    u_outcome: np.ndarray,
) -> tuple[SelectiveLabels, np.ndarray]:
    """What was drawn as rows, and their truth."""
    x = noise + np.asarray(process.means)[group][:, None]
    tested = u_tested < process.testing_probability(x, group)
    y = (u_outcome < process.outcome_probability(x)).astype(np.int64)
    # Made directly: these rows obey the rules by construction, and thousands of tasks are drawn.
    problem = SelectiveLabels(
        X=x,
        y_obs=np.where(tested, y, np.nan),
        tested=tested,
        group=group,
        id=None,
        weight=None,
        feature_names=("x0", "x1"),
        group_names=("0", "1"),
        row=np.arange(len(x)),
    )
    return problem, y


class GridCell(NamedTuple):
    """One setting (q_y, k, q_t), and why it cannot exist (None where it can)."""

    q_y: float
    k: float
    q_t: float
    infeasible: str | None

    @property
    def feasible(self) -> bool:
        """Whether `make_sinusoid` can draw it."""
        return self.infeasible is None


def sinusoid_grid(prevalence: float = 0.25, group_share: float = 0.5) -> list[GridCell]:
    """All 224 settings of the study, in the order q_y, k, q_t.

    With the published prevalence of 1/4, k = 3 with q_t of 1/4, 1/3, 3 or 4 is infeasible: one
    group would be tested more often than always. With k = 4 everybody is tested, so its seven
    values of q_t name the same setting. k = .1 was run but is shown in no figure.
    """
    cells = []
    for q_y, k, q_t in product(Q_Y, K, Q_T):
        reason = None
        try:
            rates_of_testing(prevalence, k, q_t, group_share)
        except InputError as error:
            reason = str(error)
        cells.append(GridCell(q_y, k, q_t, reason))
    return cells
