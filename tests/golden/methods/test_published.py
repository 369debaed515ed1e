"""The published runs: their choices, their draws, and how recorded fits agree: class *exact*."""

import hashlib

import names
import numpy as np
import pytest

TASKS = ("sinusoid", "sepsis")
# Four ratios of the simulation, at phases (in degrees) that are all of the published ones.
DRAWS = [(0.5, 1.0, 2.0, phase) for phase in range(0, 360, 30)] + [
    (0.5, 1.0, 0.5, 0), (0.5, 1.0, 1.0, 30), (0.5, 1.0, 4.0, 60), (0.5, 1.0, 0.25, 90),
    (0.5, 0.25, 2.0, 120), (0.5, 0.5, 3.0, 150), (0.5, 2.0, 2.0, 180), (0.5, 3.0, 0.5, 210),
    (0.25, 1.0, 2.0, 240), (1 / 3, 0.5, 1 / 3, 270), (1.0, 2.0, 1.0, 300), (0.5, 4.0, 2.0, 330),
]  # fmt: skip


@pytest.mark.parametrize("method", names.PAPER)
@pytest.mark.parametrize("task", TASKS)
def test_choices(golden, method, task):
    """Every choice of a published run by its meaning, whatever parameter has it."""
    golden.check(f"choices: {method}, {task}", lambda _: names.choices(method, task), tolerance=0)


def digest(values: np.ndarray) -> str:
    """SHA-256 of numbers; features to six decimals, since a logarithm may round otherwise."""
    if values.dtype.kind == "f":
        values = np.round(values, 6) + 0.0  # no negative zero
        values = values.astype("<f8")
    else:
        values = values.astype("<i8")
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


@pytest.mark.parametrize(
    "setting", DRAWS, ids=lambda setting: "q_y {:.2g} k {:g} q_t {:.2g} phase {}".format(*setting)
)
def test_draws(golden, setting):
    """The very rows of the published runs: features, who is tested, and the truth."""
    q_y, k, q_t, phase = setting

    def compute(_: float) -> dict[str, object]:
        splits = names.draw(q_y, k, q_t, np.pi * phase / 180)
        out: dict[str, object] = {}
        for role in ("X", "tested", "truth"):
            out[role] = digest(
                np.concatenate(
                    [part[role].astype(float if role == "X" else int) for part in splits.values()]
                )
            )
        out["rows"] = [len(part["truth"]) for part in splits.values()]
        out["tested_rows"] = [int(part["tested"].sum()) for part in splits.values()]
        out["positive_rows"] = [int(part["truth"].sum()) for part in splits.values()]
        return out

    golden.check("draw: q_y {:.2g}, k {:g}, q_t {:.2g}, phase {}".format(*setting), compute)


def test_agreement_with_the_paper(golden):
    """112 comparisons of recorded fits with the published figures: numbers and verdicts."""

    def compute(_: float) -> dict[str, object]:
        frame = names.compared_with_paper()
        assert len(frame) == 112
        names_of_row = ["source", "setting", "method", "metric"]
        keys = frame[names_of_row].agg(", ".join, axis=1)
        numbers = frame[["ours", "published", "difference", "points"]].to_numpy(float)
        verdicts = {
            verdict: sorted(keys[frame["verdict"] == verdict])
            for verdict in ("off", "incomplete", "reported")
        }
        assert (frame["verdict"] == "agrees").sum() == 110
        return {
            "n": frame["n"].astype(int).tolist(),
            **verdicts,
            **dict(zip(keys, numbers, strict=True)),
        }

    golden.check("agreement with the paper", compute, tolerance=1e-6)
