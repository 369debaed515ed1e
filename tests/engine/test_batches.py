"""Minibatches: every row once per epoch, each network by its own seed."""

import pytest
import torch

from dcem.engine.fit import Batches

CPU = torch.device("cpu")


@pytest.mark.parametrize(("n", "size"), [(10, 5), (10, 3), (7, 6)])
def test_each_row_comes_once_an_epoch(n, size):
    batches = Batches(n, size, [1, 2], CPU)
    seen = []
    for _ in range(6 * n):  # whole epochs, whatever the remainder
        batches.advance()
        assert batches.index.shape == (2, size)
        seen.append(batches.index.clone())
    walked = torch.cat(seen, dim=1)
    for epoch in walked[:, : walked.shape[1] // n * n].split(n, dim=1):
        for network in epoch:
            assert sorted(network.tolist()) == list(range(n))
    assert not torch.equal(walked[0], walked[1])
    assert not torch.equal(walked[0, :n], walked[0, n : 2 * n])  # each epoch in a new order


def test_a_network_walks_the_same_way_in_any_company():
    alone, together = Batches(20, 6, [5], CPU), Batches(20, 6, [9, 5, 7], CPU)
    for _ in range(15):
        alone.advance()
        together.advance()
        assert torch.equal(alone.index[0], together.index[1])


def test_networks_with_other_numbers_of_rows_walk_as_alone():
    together = Batches([20, 13], 6, [5, 9], CPU)
    alone = Batches(20, 6, [5], CPU), Batches(13, 6, [9], CPU)
    for _ in range(15):
        together.advance()
        for m, one in enumerate(alone):
            one.advance()
            assert torch.equal(one.index[0], together.index[m])


@pytest.mark.parametrize("n_rows", [20, [20, 13]])
def test_a_walk_goes_on_from_its_state(n_rows):
    walked, resumed = Batches(n_rows, 6, [5, 6], CPU), Batches(n_rows, 6, [0, 0], CPU)
    for _ in range(5):
        walked.advance()
    resumed.load_state(walked.state())
    for _ in range(12):
        walked.advance()
        resumed.advance()
        assert torch.equal(walked.index, resumed.index)
