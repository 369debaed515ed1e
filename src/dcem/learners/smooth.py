"""A line, and smooth deviations from it: what is likely where hardly anybody was tested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
from scipy.special import expit

from dcem.learners.learner import FEWEST_IN_LEAF, Sample
from dcem.learners.linear import Linear, span
from dcem.learners.preprocess import SPREAD, Scaling

BUMPS = 100
WIDTHS = (0.5, 1.0, 2.0, 4.0)  # in standard deviations; chosen on validation rows
# Per row; chosen likewise. Smaller ones fit tests no better, and swing out where there are none.
PENALTIES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
WIDTH, PENALTY = 1.0, 1e-3  # where there are no validation rows; widths are compared at the latter
MOST_ROWS = 8_000  # to learn from; half as many to choose by, and while choosing
RARE = 1 / 16  # of these rows, where there are so many, are of the rarer class
OVERLAP = 1e-4  # so much of a bump is its own, however near others are
MOST_STEPS, SMALL_STEP, LARGE_STEP = 100, 0.02, 4.0  # of Newton's method, in log-odds


class Smooth(Linear):
    """Log-odds that are a line plus bumps, penalised: a Gaussian process with a linear trend.

    The bumps exp(-|x - c|^2 / (d width^2)) lie at random places c, drawn with the mean and the
    covariance of the features: they are nobody's features. (Where there are fewer people than
    features, these are the covariances along one main direction per ten people, and variances.)
    Their sum is penalised by how rough it is, and returns to the line where nobody was tested. The
    width and the penalty are those with the lowest loss on validation rows. (C. E. Rasmussen and
    C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006: trends in section 2.7, a few
    centres in 8.3.)
    """

    name = "smooth"
    words = "a smooth model"

    def __init__(self, seed: int = 0, squared: bool = False):
        super().__init__(seed, squared, drawn_in=True)

    def _learn(self, sample: Sample, held: Sample | None) -> None:
        rng = np.random.default_rng(self.seed)
        scaling = self.scaling = Scaling.fit(sample.X, preprocessor=self.preprocessor)
        rows = _some(sample, MOST_ROWS, rng)
        rows = rows._replace(X=scaling(rows.X).astype(np.float64))
        basis = span(rows.X)
        line = rows.X if basis is None else rows.X @ basis  # all that these rows tell of a line
        d = rows.X.shape[1]
        people = len(rows.X) if rows.person is None else len(np.unique(rows.person))
        if people >= d + FEWEST_IN_LEAF:
            shape = np.cov(rows.X.T).reshape(d, d)
        else:  # centres would lie where these people's features do, and tell who
            values, vectors = np.linalg.eigh(np.cov(line.T).reshape(line.shape[1], -1))
            main = (vectors * np.sqrt(np.maximum(values, 0)))[
                :, len(values) - people // FEWEST_IN_LEAF :
            ]
            main = main if basis is None else basis @ main
            rest = rows.X.var(axis=0, ddof=1) - (main**2).sum(axis=1)
            shape = main @ main.T + np.diag(np.maximum(rest, 0))
        root = np.linalg.cholesky(shape + 1e-3 * SPREAD**2 * np.eye(d))
        self.centers = rows.X.mean(axis=0) + rng.normal(size=(BUMPS, d)) @ root.T
        self.width, self.penalty, start = WIDTH, PENALTY, None
        if held is not None:
            fewer, held = (_some(of, MOST_ROWS // 2, rng) for of in (rows, held))
            start = self._choose(fewer, held._replace(X=scaling(held.X)), basis)
        design = Design(rows.X, self.centers, self.width, basis)
        at = _newton(design.columns, rows, self.penalty, self.squared, start)
        self.coefficients, self.intercept = design.plain(at)

    def _choose(self, rows: Sample, held: Sample, basis: np.ndarray | None) -> np.ndarray:
        """Set the width, then the penalty; the coefficients of some rows to begin with."""
        found: dict[tuple[float, float], tuple[float, np.ndarray]] = {}
        columns: dict[float, tuple[np.ndarray, np.ndarray]] = {}

        def tried(penalty: float, start: np.ndarray | None) -> tuple[float, np.ndarray]:
            """The loss on held-out rows, and the coefficients."""
            at = _newton(columns[self.width][0], rows, penalty, self.squared, start)
            return self._loss(columns[self.width][1] @ at, held), at

        for self.width in WIDTHS:
            design = Design(rows.X, self.centers, self.width, basis)
            columns[self.width] = design.columns, design(held.X)
            found[self.width, PENALTY] = tried(PENALTY, None)
        self.width = min(found, key=lambda tried: found[tried][0])[0]
        start = found[self.width, PENALTY][1]
        for penalty in PENALTIES:
            found[self.width, penalty] = tried(penalty, start)
            start = found[self.width, penalty][1]
        self.penalty = min(PENALTIES, key=lambda penalty: found[self.width, penalty][0])
        return found[self.width, self.penalty][1]

    def _say(self, value: float) -> None:
        super()._say(value)
        self.centers, self.width = np.zeros((0, self.preprocessor.n_outputs)), WIDTH

    def _inputs(self, X: np.ndarray) -> np.ndarray:
        z = super()._inputs(X)
        return np.hstack([z, bumps(z, self.centers, self.width)])

    def arrays(self) -> dict[str, np.ndarray]:
        """All that was learnt."""
        return {**super().arrays(), "centers": self.centers, "width": np.array([self.width])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_features: int) -> Self:
        """The inverse of `arrays`."""
        centers, width, every = (arrays[name] for name in ("centers", "width", "coefficients"))
        line = every[: len(every) - len(centers)]
        made = super().from_arrays({**arrays, "coefficients": line}, n_features)
        if centers.shape[1:] != line.shape or width.shape != (1,) or not width[0] > 0:
            raise ValueError("the basis functions do not fit the features")
        made.centers, made.width, made.coefficients = centers, float(width[0]), every
        return made


def bumps(z: np.ndarray, centers: np.ndarray, width: float) -> np.ndarray:
    """How near rows `[n, d]` are to each centre, from 0 to 1 `[n, centres]`."""
    unit = 1 / (z.shape[1] * (SPREAD * width) ** 2)
    near = z @ (2 * unit * centers.T)  # in place: large arrays are slow to come by
    near -= unit * (z**2).sum(axis=1)[:, None]
    near -= unit * (centers**2).sum(axis=1)
    return np.exp(np.minimum(near, 0, out=near), out=near)


class Design:
    """Columns that are penalised alike: a constant, the line, and bumps made independent.

    `columns` are those of the rows `z [n, d]` that it is made from; the line is along the `basis`
    `[d, n]` of rows that are fewer than features.
    """

    def __init__(
        self, z: np.ndarray, centers: np.ndarray, width: float, basis: np.ndarray | None = None
    ):
        self.centers, self.width, self.basis = centers, width, basis
        shared = bumps(centers, centers, width) + OVERLAP * np.eye(len(centers))
        values, vectors = np.linalg.eigh(shared)
        self.apart = vectors / np.sqrt(values) @ vectors.T
        self.unit = SPREAD * np.sqrt(z.shape[1])
        near = bumps(z, centers, width)
        self.middle = near.mean(axis=0)
        self.columns = self._columns(z, near)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """The columns of other rows `[n, 1 + line + centres]`."""
        return self._columns(z, bumps(z, self.centers, self.width))

    def _columns(self, z: np.ndarray, near: np.ndarray) -> np.ndarray:
        z = z / self.unit if self.basis is None else z @ self.basis / self.unit
        made = np.ones((len(z), 1 + z.shape[1] + len(self.centers)), np.float32)
        line, bent = np.split(made[:, 1:], [z.shape[1]], axis=1)
        near -= self.middle
        line[:], bent[:] = z, near @ self.apart
        return made

    def plain(self, at: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients of the inputs and the bumps as they are, and the intercept."""
        line, bent = np.split(at[1:], [len(at) - 1 - len(self.centers)])
        line, bent = line if self.basis is None else self.basis @ line, self.apart @ bent
        return np.append(line / self.unit, bent), float(at[0] - self.middle @ bent)


def _newton(
    columns: np.ndarray, sample: Sample, penalty: float, squared: bool, start: np.ndarray | None
) -> np.ndarray:
    """Coefficients `[p]` of penalised regression, logistic or least squares; the first is free.

    Where a test errs, of the truth behind its results. The gradient then is the exact one, and the
    curvature that of known outcomes, which is larger: steps are shorter, and safe. They end when
    they are as small in terms of what results tell.
    """
    y, evidence, share = sample.y, sample.evidence, sample.weight / sample.weight.sum()
    informed = 1.0 if sample.rates is None else share @ (sample.rates.sum(axis=1) - 1) ** 2
    prior = np.append(1e-6, np.full(columns.shape[1] - 1, penalty))
    at = start
    if at is None:
        at = np.zeros(columns.shape[1])
        at[0] = 0.0 if squared else sample.base_rate
    root = np.empty_like(columns)
    for _ in range(MOST_STEPS):
        z = (columns @ at.astype(np.float32)).astype(np.float64)
        p = z if squared else expit(z)
        known = y if evidence is None else expit(z + evidence)
        slope = (share * (p - known)).astype(np.float32) @ columns + prior * at
        curvature = share * (1 if squared else np.maximum(p * (1 - p), 1e-5))
        np.multiply(columns, np.sqrt(curvature).astype(np.float32)[:, None], out=root)
        step = np.linalg.solve((root.T @ root).astype(np.float64) + np.diag(prior), slope)
        change = float(np.abs(columns @ step.astype(np.float32)).max())
        at = at - step * (1 if squared else min(1.0, LARGE_STEP / max(change, 1e-12)))
        if change < SMALL_STEP * informed or squared:
            break
    return at


def _some(sample: Sample, most: int, rng: np.random.Generator) -> Sample:
    """At most so many of the rows, in their order.

    Where the rarer class would hardly be among them, more of it is drawn, and counts less.
    """
    y, weight = sample.y, sample.weight
    if len(y) <= most:
        return sample
    order = rng.permutation(len(y))
    rare = y == (y.mean() < 0.5)
    least = min(int(rare.sum()), round(RARE * most))
    kept, factor = np.sort(order[:most]), np.ones(len(y))
    if rare[kept].sum() < least:
        classes = [order[rare[order]], order[~rare[order]]]
        drawn = [classes[0][:least], classes[1][: most - least]]
        for every, some in zip(classes, drawn, strict=True):
            factor[some] = weight[every].sum() / (weight[some].sum() or 1.0)
        kept = np.sort(np.concatenate(drawn))
    return sample._replace(weight=weight * factor).take(kept)
