"""A difference is that of its two rates; the verdict includes each attribute of crossed groups."""

import numpy as np
import pandas as pd
import pytest

import dcem

N = 2_000


def with_an_extreme(share: float, size: int, seed: int) -> pd.DataFrame:
    """Groups A and B, and one of which everybody or nobody is tested."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 3))
    group = rng.choice(["A", "B"], N).astype(object)
    group[:size] = "all"
    tested = rng.random(N) < 1 / (1 + np.exp(0.4 - x[:, 0]))
    tested[:size] = rng.random(size) < share
    sick = rng.random(N) < 1 / (1 + np.exp(1 - x[:, 0]))
    frame = pd.DataFrame(x.round(3), columns=["x1", "x2", "x3"])
    return frame.assign(g=group, r=np.where(tested, np.where(sick, "1", "0"), ""))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("share", "size", "seed"),
    [(1.0, 200, seed) for seed in range(3)] + [(0.0, 150, seed) for seed in range(3)],
)
def test_a_difference_is_that_of_its_rates(share: float, size: int, seed: int) -> None:
    found = dcem.audit.audit_labels(with_an_extreme(share, size, seed), label="r", group="g")
    for rate in found.testing:
        if rate.difference.estimable:
            gap = rate.equal.value - rate.others.value
            assert rate.difference.value == pytest.approx(gap, abs=1e-9)


def crossed(shift: float, seed: int, sites: int = 8, n: int = 3_000) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x, sex = rng.normal(size=n), rng.choice(["F", "M"], n)
    site = rng.choice(list("ABCDEFGH")[:sites], n)
    tested = rng.random(n) < 1 / (1 + np.exp(-(x + shift * (sex == "M"))))
    result = np.where(rng.random(n) < 0.3, "1", "0")
    columns = {"x": x.round(2), "sex": sex, "site": site}
    return pd.DataFrame(columns).assign(r=np.where(tested, result, ""))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [0, 2])
def test_the_verdict_includes_an_attribute(seed: int) -> None:
    found = dcem.audit.audit_labels(crossed(0.25, seed), label="r", group=["site", "sex"])
    assert not found.clear(found.testing)
    assert found.clear(found.by_attribute["sex"])
    said = " ".join(str(found).split())
    assert "of sex" in said
    assert "No clear sign" not in said
    assert "tested-alike" not in {finding.key for finding in found.findings}


@pytest.mark.filterwarnings("ignore")
def test_attributes_are_corrected_for_their_number() -> None:
    frame = crossed(0.15, 4)
    alone = dcem.audit.audit_labels(frame, label="r", group=["sex"])
    both = dcem.audit.audit_labels(frame, label="r", group=["site", "sex"])
    one = {rate.group: rate.p_value for rate in alone.testing}
    for rate in both.by_attribute["sex"]:
        assert rate.p_value > 1.5 * one[rate.group]
