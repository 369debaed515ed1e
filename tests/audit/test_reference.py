"""Groups compared with a named one instead of with everybody else."""

import numpy as np
from choices import linear
from scipy.special import expit

from dcem.audit import audit_labels
from dcem.compare import compare_methods
from dcem.report.audit import audit_document
from dcem.table.labels import SelectiveLabels

NAMES = ("a", "b", "c")


def world(reference: str | None) -> SelectiveLabels:
    """Group b is tested less than a, and c less still, at equal features."""
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=6000)
    x = rng.normal(size=(6000, 2)) + 0.3 * group[:, None]
    tested = rng.random(6000) < expit(x[:, 0] - 0.7 * group)
    y = rng.random(6000) < expit(x[:, 0] - 1)
    return SelectiveLabels.from_arrays(
        x,
        np.where(tested, y, np.nan),
        group=np.array(NAMES)[group],
        reference_group=reference,
    )


def test_disparities_are_told_against_the_reference() -> None:
    against = {}
    for reference in (None, "a"):
        found = audit_labels(world(reference), learners=linear)
        against[reference] = {rate.group: rate for rate in found.testing}
        told = {f.groups[0]: f for f in found.findings if f.key in ("tested-less", "tested-more")}
        if reference is None:
            assert told["a"].key == "tested-more"  # than everybody else; b is in the middle
            continue
        assert {group: f.key for group, f in told.items()} == {
            "b": "tested-less",
            "c": "tested-less",
        }
        assert all(f.values["reference"] == "a" and "group a" in f.headline for f in told.values())
        assert not {"group-too-small"} & {f.key for f in found.findings}
        assert found.testing_sensitivity.group == "c"
        assert "than group a" in found.testing_sensitivity.breakdown.conclusion
        yields = {item.group: item for item in found.yields}
        assert not yields["a"].difference.estimable
        assert yields["c"].difference.estimable
        assert "group a" in str(audit_document(found))
    # x and the two intercepts make the difference; what it is was computed from the formula
    rng = np.random.default_rng(1)
    x = rng.normal(size=400_000) + 0.15  # about where a and b share their features
    expected = (expit(x - 0.7) - expit(x)).mean()
    assert not against["a"]["a"].difference.estimable
    assert abs(against["a"]["b"].difference.value - expected) < 0.04
    assert against["a"]["c"].difference.value < against[None]["c"].difference.value - 0.03


def test_of_two_groups_the_reference_decides_which_way_it_is_told() -> None:
    problem = world(None)
    two = problem.subset(np.flatnonzero(problem.group < 2))
    for reference, key in (("a", "tested-less"), ("b", "tested-more")):
        named = SelectiveLabels.from_arrays(
            two.X, two.y_obs, group=np.array(NAMES)[two.group], reference_group=reference
        )
        found = {f.key: f for f in audit_labels(named, learners=linear).findings}
        assert found[key].values["reference"] == reference
        assert len({"tested-less", "tested-more"} & set(found)) == 1


def test_a_comparison_takes_the_reference() -> None:
    found = compare_methods(
        world("c"), ["tested-only"], params={"learner": "linear"}, planted=0, n_resamples=20
    )
    assert found.reference_group == "c"
    assert set(found.methods[0].judgements["tested"].auc_against) == {"a", "b"}
