"""Early stopping network by network, and the best weights as a real copy."""

import torch

from dcem.engine import Patience


def flat_of(value: float, networks: int = 2) -> torch.Tensor:
    return torch.full((networks, 3), value)


def test_patience_counts_failures_in_a_row_for_each_network():
    rule = Patience(flat_of(0.0), patience=2)
    losses = [(1.0, 1.0), (2.0, 0.5), (0.9, 0.6), (3.0, 0.7), (3.0, 0.1)]
    active = []
    for step, pair in enumerate(losses, start=1):
        rule.update(torch.tensor(pair), flat_of(float(step)))
        active.append(rule.active.tolist())
    # the first network improves at checks 1 and 3 and fails at 4 and 5; the second, having
    # failed at 3 and 4, is not asked about the fifth
    assert active == [[True, True]] * 3 + [[True, False], [False, False]]
    assert rule.best_step.tolist() == [3, 2]
    torch.testing.assert_close(rule.best_loss, torch.tensor([[0.9, 0.5]]))


def test_in_minibatches_a_network_whose_loss_rises_waits_twice_as_long_as_its_best_took():
    rule = Patience(flat_of(0.0, 4), patience=10, sooner=True)
    best_at, slope = torch.tensor([1, 4, 8, 1]), torch.tensor([1.0, 1.0, 1.0, 0.001])
    ended = [0] * 4
    for step in range(1, 20):
        rule.update(1 + slope * (step - best_at).abs(), flat_of(float(step), 4))
        ended = [end or (0 if on else step) for end, on in zip(ended, rule.active, strict=True)]
    # half of the patience at least, all of it at most, and all of it on a plateau
    assert ended == [1 + 5, 4 + 8, 8 + 10, 1 + 10]


def test_restore_brings_back_a_copy():
    flat = flat_of(1.0)
    rule = Patience(flat, patience=5)
    rule.update(torch.tensor([1.0, 1.0]), flat)
    flat.fill_(2.0)  # in place, as training does
    rule.update(torch.tensor([2.0, 0.5]), flat)
    flat.fill_(3.0)
    rule.restore(flat)
    assert flat[:, 0].tolist() == [1.0, 2.0]


def test_a_network_that_never_improved_keeps_what_it_has():
    flat = flat_of(1.0)
    rule = Patience(flat, patience=5)
    rule.update(torch.tensor([torch.nan, 0.3]), flat_of(2.0))
    flat.fill_(3.0)
    rule.restore(flat)
    assert flat[:, 0].tolist() == [3.0, 2.0]


def test_an_improvement_must_exceed_min_delta():
    rule = Patience(flat_of(0.0, 1), patience=9, min_delta=0.1)
    for loss in (1.0, 0.95, 0.85):
        rule.update(torch.tensor([loss]), flat_of(loss, 1))
    assert rule.best_step.tolist() == [3]
    rule.update(torch.tensor([0.8]), flat_of(0.8, 1))
    assert rule.best_step.tolist() == [3]


def test_state_and_back():
    rule, other = Patience(flat_of(0.0), patience=2), Patience(flat_of(9.0), patience=2)
    for loss in (1.0, 2.0):
        rule.update(torch.tensor([loss, -loss]), flat_of(loss))
    other.load_state({name: tensor.clone() for name, tensor in rule.state().items()})
    for one in (rule, other):
        one.update(torch.tensor([3.0, 3.0]), flat_of(3.0))
    for name, tensor in rule.state().items():
        assert torch.equal(tensor, other.state()[name]), name
    assert rule.active.tolist() == [False, True]
