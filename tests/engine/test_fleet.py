"""A fleet of M networks is M networks: nothing leaks from one to another."""

import pytest
import torch
from choices import each_once

from dcem.engine import MLP, Adam, Fleet, Patience, Rows, Trainer, cross_entropy, supervised

STEPS = 200
SEEDS = [3, 14, 15]


def make_rows(n: int, networks: int | None, dtype=torch.float64) -> Rows:
    """Rows of a learnable problem: one shared table, or one for each network."""
    generator = torch.Generator().manual_seed(5)
    shape = (n,) if networks is None else (networks, n)
    X = torch.randn(*shape, 4, generator=generator, dtype=torch.float64)
    noise = torch.rand(*shape, generator=generator, dtype=torch.float64)
    target = (noise < torch.sigmoid(2 * X[..., 0] - X[..., 1] ** 2)).double()
    weight = torch.rand(*shape, generator=generator, dtype=torch.float64)
    return on("cpu", Rows(X, {"target": target, "weight": weight}), dtype)


def on(device: str, rows: Rows, dtype=torch.float64) -> Rows:
    columns = {name: column.to(device, dtype) for name, column in rows.columns.items()}
    return Rows(rows.X.to(device, dtype), columns)


def row_of(rows: Rows, m: int) -> Rows:
    return Rows(
        rows.X if rows.X.dim() == 2 else rows.X[m],
        {k: v if v.dim() == 1 else v[m] for k, v in rows.columns.items()},
    )


def train(rows: Rows, seeds: list[int], *, batch_size=None, hidden=(8, 8)) -> Fleet:
    architecture = MLP(rows.X.shape[-1], hidden)
    fleet = Fleet.initial(architecture, seeds, dtype=rows.X.dtype)
    objective = supervised(architecture, cross_entropy)
    trainer = Trainer(fleet, rows, objective, Adam(3e-3), batch_size=batch_size, seeds=seeds)
    trainer.run(STEPS)
    return fleet


# 300 rows take the stacked path, 1100 the blocked one
@pytest.mark.parametrize("n", [300, 1100])
@pytest.mark.parametrize(("own_rows", "batch_size"), each_once([False, True], [None, 64]))
def test_a_fleet_gives_the_networks_of_single_fits(n, own_rows, batch_size):
    rows = make_rows(n, len(SEEDS) if own_rows else None)
    fleet = train(rows, SEEDS, batch_size=batch_size)
    moved = (fleet.flat - Fleet.initial(fleet.architecture, SEEDS).flat).abs().max()
    assert moved > 0.05  # there was something to learn
    for m, seed in enumerate(SEEDS):
        alone = train(row_of(rows, m), [seed], batch_size=batch_size)
        torch.testing.assert_close(fleet.flat[m], alone.flat[0], rtol=0, atol=1e-9)


def test_in_single_precision_a_fleet_is_close_to_single_fits():
    rows = make_rows(300, len(SEEDS), torch.float32)
    fleet = train(rows, SEEDS)
    for m, seed in enumerate(SEEDS):
        alone = train(row_of(rows, m), [seed])
        together, apart = fleet.predict(rows.X)[m], alone.predict(row_of(rows, m).X)[0]
        torch.testing.assert_close(together, apart, rtol=0, atol=1e-3)


def test_same_seed_same_bits_other_seed_other_network():
    rows = make_rows(300, None, torch.float32)
    first, again, other = (train(rows, [seed], batch_size=50).flat for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_training_leaves_the_global_seed_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    train(make_rows(100, None, torch.float32), [1], batch_size=20)
    assert torch.equal(torch.get_rng_state(), before)


def test_padding_of_weight_zero_changes_nothing():
    rows = make_rows(200, None)
    garbage = Rows(
        torch.cat([rows.X, torch.full((50, 4), 7.0, dtype=torch.float64)]),
        {
            "target": torch.cat([rows["target"], torch.ones(50, dtype=torch.float64)]),
            "weight": torch.cat([rows["weight"], torch.zeros(50, dtype=torch.float64)]),
        },
    )
    torch.testing.assert_close(train(rows, [3]).flat, train(garbage, [3]).flat, rtol=0, atol=1e-9)


def test_stopped_networks_rest_while_others_go_on():
    rows = make_rows(300, None)
    architecture = MLP(4, (8,))
    fleet = Fleet.initial(architecture, SEEDS, dtype=torch.float64)
    rule = Patience(fleet.flat, patience=1)
    rule.active[1] = False
    before = fleet.flat.clone()
    Trainer(fleet, rows, supervised(architecture, cross_entropy), Adam(1e-2)).run(5, stopping=rule)
    assert torch.equal(fleet.flat[1], before[1])
    assert not torch.equal(fleet.flat[0], before[0])


@pytest.mark.parametrize("size", [1, 7, 300])
def test_scores_do_not_depend_on_how_rows_are_cut(size):
    rows = make_rows(300, None)
    fleet = Fleet.initial(MLP(4, (8, 8)), SEEDS, dtype=torch.float64)
    whole = fleet.predict(rows.X)
    parts = [fleet.predict(rows.X[i : i + size]) for i in range(0, 300, size)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-14)


def test_scores_of_a_long_table_come_block_by_block(monkeypatch):
    fleet = Fleet.initial(MLP(4, (8,)), SEEDS, dtype=torch.float64)
    X = make_rows(2500, None).X
    whole, logits = fleet.predict(X), fleet.logits(X)
    monkeypatch.setattr("dcem.engine.fleet.PREDICT_ROWS", 1024)
    torch.testing.assert_close(fleet.predict(X), whole, rtol=0, atol=1e-14)
    torch.testing.assert_close(fleet.logits(X), logits, rtol=0, atol=1e-13)


@pytest.mark.cuda
def test_a_captured_graph_trains_like_the_cpu():
    rows = make_rows(300, len(SEEDS))
    on_cpu = train(rows, SEEDS, batch_size=64)
    architecture = MLP(4, (8, 8))
    fleet = Fleet.initial(architecture, SEEDS, device="cuda", dtype=torch.float64)
    objective = supervised(architecture, cross_entropy)
    on_cuda = on("cuda", rows)
    trainer = Trainer(fleet, on_cuda, objective, Adam(3e-3), batch_size=64, seeds=SEEDS)
    trainer.run(STEPS)
    assert trainer.steps_done == STEPS
    torch.testing.assert_close(fleet.flat.cpu(), on_cpu.flat, rtol=0, atol=1e-9)
