"""A folder of recorded results: rows as the runner exports them, with numbers made up."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dcem.benchmark.cells import expand
from dcem.benchmark.read import results, setting_columns
from dcem.benchmark.store import Store
from dcem.benchmark.toml_file import load_benchmark
from dcem.paper.exhibits.calibration import curves
from dcem.tasks.sepsis.features import FEATURE_NAMES

SIZE = "n_train = 200\nn_validation = 200\nn_test = 400\n"
FEW = "params = {steps = 3, hidden = [4]}\n"
DCEM = 'name = "dcem"\nparams = {max_iter = 2, steps = 3, hidden = [4]}\n'

SIMULATION = f"""
[[tasks]]
k = ["1/3", "1/2", 1, 2, 3]
q_t = [0.5, 1, 2]
phase = [0, 120, 240]
stream = "independent"
seed = [0, 1]
{SIZE}
[[methods]]
name = ["y-model", "y-obs", "tested-only"]
{FEW}
[[methods]]
{DCEM}
"""

STUDIES = f"""
[[tasks]]
phase = [0, 120]
stream = "independent"
testing_slope = [7.5, 30, 120]
{SIZE}
[[methods]]
name = ["tested-only", "ipw", "imputation-only"]
{FEW}
[[methods]]
{DCEM}
"""

SEPSIS = f"""
[[tasks]]
kind = "sepsis"
k = ["1/4", 4]
q_t = 1.5
beta = [0, 0.5, 1]
[[methods]]
name = ["y-obs", "tested-only"]
{FEW}
[[methods]]
{DCEM}
"""


def fitted(folder: Path, name: str, text: str, **overrides: str) -> pd.DataFrame:
    """Results of a benchmark written as TOML, with the sizes of its tasks taken off.

    Nothing is trained: what a picture shows does not depend on where a number came from.
    """
    (folder / f"{name}.toml").write_text(text)
    plan, _ = expand(load_benchmark(folder / f"{name}.toml", **overrides))
    rng = np.random.default_rng(len(plan))
    with Store(folder / f"{name}.sqlite") as store:
        store.add(name, "", ["auc"], plan)
        store.want(one.cell.id for one in plan)
        with store.worker("cpu", {"dcem": "0"}):
            for kind in list(store.pending()):
                for cell in store.claim(kind, len(plan)).cells:
                    values = {"auc": rng.uniform(0.55, 0.95), "roc_gap": rng.uniform(0.005, 0.1)}
                    values |= {"roc_gap_grid": values["roc_gap"], "xauc_difference": 0.1}
                    store.finish(cell.id, values | {"auc_difference": 0.0}, {"seconds": 1.0})
    frame = results(folder / f"{name}.sqlite")
    assert len(frame) == len(plan)
    kept = ("task", "q_y", "k", "q_t", "testing_slope")
    return frame.drop(columns=[c for c in setting_columns(frame) if c not in kept])


def as_published(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(stream="published", variant="published", schedule="published")


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """shown, grid, seeds, tables, calibration and artificial sepsis, a few small fits each."""
    work, out = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("recorded")
    fits = fitted(work, "simulation", SIMULATION)
    as_published(fits[fits["seed"] == 0]).to_csv(out / "shown.csv", index=False)
    # SELF stands in the grid; a renamed fit is as good a number as any for drawing
    extra = fits[fits["method"] == "y-obs"].assign(method="self", label="self")
    pd.concat([fits, extra]).assign(benchmark="grid").to_csv(out / "grid.csv", index=False)
    chance = fits[(fits["k"] == 1) & (fits["method"] == "y-obs")]
    chance.assign(method="dividemix", label="seed 52").to_csv(
        out / "dividemix_chance.csv", index=False
    )
    targeted = as_published(chance[(chance["seed"] == 0) & (chance["q_t"] == 2)])
    targeted.assign(
        method="dragonnet", label="dragonnet", params='{"targeted_weight": 1.0}'
    ).to_csv(out / "dragonnet_targeted.csv", index=False)
    fits[(fits["k"] == 1)].assign(benchmark="seeds").to_csv(out / "seeds.csv", index=False)
    tables(as_published(fitted(work, "studies", STUDIES))).to_csv(out / "tables.csv", index=False)
    cohort(work / "cohort.parquet")
    sepsis = fitted(work, "sepsis", SEPSIS, cohort=str(work / "cohort.parquet"))
    as_published(sepsis).to_csv(out / "sepsis_artificial.csv", index=False)
    curves((0, 120), steps=5, device="cpu").to_csv(out / "calibration.csv", index=False)
    return out


def tables(studies: pd.DataFrame) -> pd.DataFrame:
    """The same fits under the names that the appendix tables give their rows."""
    usual = studies[studies["testing_slope"] == 30].drop(columns="testing_slope")
    dcem = usual[usual["method"] == "dcem"]
    parts = [studies.assign(benchmark="overlap")]
    parts.append(usual[usual["method"] != "ipw"].assign(benchmark="ablation"))
    parts.append(usual.assign(benchmark="causal-estimators"))
    parts += [
        dcem.assign(benchmark="temperature", label=t) for t in ("0.01", "0.1", "1", "10", "100")
    ]
    parts += [
        dcem.assign(benchmark="initialization", label=start)
        for start in ("random", "tested-only", "algorithm-1")
    ]
    return pd.concat(parts, ignore_index=True)


def cohort(path: Path) -> None:
    """A made-up cohort with the columns and rough rates of the real one."""
    rng = np.random.default_rng(0)
    n = 800
    frame = pd.DataFrame(rng.normal(20, 5, (n, len(FEATURE_NAMES))), columns=list(FEATURE_NAMES))
    frame["min_sbp"] += 90
    frame["icustay_id"] = frame["subject_id"] = np.arange(n)
    frame["a"] = (rng.random(n) < 0.7).astype(int)
    frame["y"] = (rng.random(n) < 0.12).astype(int)
    frame.to_parquet(path)
