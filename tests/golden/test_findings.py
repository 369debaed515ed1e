"""Class: exact in keys. Findings that simulated tables of known truth must and must not have."""

import names
import pytest
import worlds

BY_NAME = {world.name: world for world in worlds.WORLDS}
TRUE = "true"  # a stated prevalence that is the truth


def audited(world):
    """Key -> findings of the audit of a world."""
    frame = world.table()
    roles = {"label": "flu", "group": "race"} | world.roles
    if roles.get("prevalence") == TRUE:
        roles["prevalence"] = round(float(frame["truth_"].mean()), 4)
    table = names.read(worlds.hidden_truth(frame), **roles)
    return names.findings(names.audit(table))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BY_NAME)
def test_what_is_there_is_found_and_nothing_else(name):
    world = BY_NAME[name]
    found = audited(world)
    assert world.must <= found.keys()
    assert not world.must_not & found.keys()
    for key, group in world.about.items():
        assert [finding.groups for finding in found[key]] == [(group,)]
    for key, level in world.levels.items():
        assert found[key][0].severity == level


@pytest.fixture(scope="module")
def model():
    frame = worlds.hidden_truth(worlds.people(300, **worlds.BEFORE))
    return names.model(names.read(frame, label="flu", group="race"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(worlds.DRIFTS)), ids=[d.name for d in worlds.DRIFTS])
def test_monitoring_sees_what_changed_and_nothing_else(model, number):
    drift = worlds.DRIFTS[number]
    later = worlds.people(310 + number, **(worlds.BEFORE | drift.changes))
    found = names.findings(names.watched(model, worlds.hidden_truth(later)))
    assert drift.must <= found.keys()
    assert not drift.must_not & found.keys()
