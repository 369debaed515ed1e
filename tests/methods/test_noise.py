"""Noise that depends on seed, step and row alone."""

import numpy as np
import torch

from dcem.methods.noise import STREAMS, Noise, partners, slots_of

CPU = torch.device("cpu")
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def splitmix(word: int) -> int:
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def noise(*seeds: int) -> Noise:
    return Noise(seeds, CPU, torch.float64)


def test_finaliser_gives_the_reference_stream_of_splitmix64():
    # First outputs of the reference generator from state 1234567.
    state, outputs = 1234567, []
    for _ in range(3):
        state = (state + GOLDEN) & MASK
        outputs.append(splitmix(state))
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_uniform_is_the_hash_computed_with_whole_numbers():
    one = noise(42)
    one.advance()
    one.advance()
    key = splitmix((42 + GOLDEN) & MASK)
    state = splitmix((key + (2 * STREAMS + 3) * GOLDEN) & MASK)
    expected = [
        (splitmix((state + (row + 1) * GOLDEN) & MASK) >> 40) * 2.0**-24 + 2.0**-25
        for row in range(5)
    ]
    np.testing.assert_allclose(one.uniform(torch.arange(5), stream=3)[0], expected, rtol=0)


def test_a_fleet_gets_the_numbers_of_single_fits_whatever_its_length():
    rows = torch.arange(50)
    fleet = noise(7, 8, 7)
    singles = [noise(seed) for seed in (7, 8, 7)]
    for one in (fleet, *singles):
        one.advance()
    drawn = fleet.normal(rows, 3)
    assert torch.equal(drawn, torch.cat([one.normal(rows, 3) for one in singles]))
    assert torch.equal(drawn[:, 10:20], fleet.normal(rows[10:20], 3))
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])


def test_normal_has_the_moments_of_a_normal_and_steps_streams_columns_are_unrelated():
    rows = torch.arange(100_000)
    one = noise(0)
    first = one.normal(rows, 3)[0]
    other_stream = one.normal(rows, 3, stream=1)[0]
    one.advance()
    later = one.normal(rows, 3)[0]
    assert abs(first.mean()) < 0.01
    assert abs(first.std() - 1) < 0.01
    assert abs(first.pow(4).mean() - 3) < 0.1
    columns = torch.cat([first, other_stream, later], 1)
    off_diagonal = torch.corrcoef(columns.T) - torch.eye(9)
    assert off_diagonal.abs().max() < 0.015


def test_uniform_fills_the_unit_interval_evenly():
    drawn = noise(5).uniform(torch.arange(100_000))[0]
    assert 0 < drawn.min() < 1e-3
    assert 1 - 1e-3 < drawn.max() < 1
    counts = torch.histc(drawn, 20, 0, 1)
    assert (counts - 5000).abs().max() < 350  # five standard deviations


def test_partners_are_a_permutation_of_the_rows_that_count():
    weight = torch.tensor([[1.0, 0, 2, 1, 1, 0, 1], [1, 1, 1, 1, 0, 0, 0]])
    found = partners(noise(1, 2), weight, slots_of(weight))
    for of_network, real in zip(found, weight > 0, strict=True):
        assert sorted(of_network[real].tolist()) == torch.nonzero(real).flatten().tolist()


def test_padding_does_not_change_the_partners():
    weight = torch.ones(1, 30)
    padded = torch.cat([weight, torch.zeros(1, 12)], 1)
    alone = partners(noise(3), weight, slots_of(weight))
    assert torch.equal(alone, partners(noise(3), padded, slots_of(padded))[:, :30])
    assert not torch.equal(alone[0], torch.arange(30))
