"""Training of the pretrained network: it learns, and a stopped run goes on where it was."""

import shutil
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pretraining.model import Network  # noqa: E402
from pretraining.prior import QUERY, UNTESTED, Shape, encode, simulate  # noqa: E402
from pretraining.state import Training, read_state, write_state  # noqa: E402
from pretraining.train import FULL, Steps, draw_shapes, main, wait  # noqa: E402

CPU = torch.device("cpu")
TINY = ["--tiny", "--seconds", "600"]


def train(out: Path, *more: str) -> dict:
    main([*TINY, "--out", str(out), *more])
    tensors, record = read_state(out)
    return {**tensors, "record": record}


def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(tmp_path):
    whole = train(tmp_path / "whole", "--steps", "5")
    train(tmp_path / "piece", "--steps", "2")
    resumed = train(tmp_path / "next", "--steps", "3", "--state", str(tmp_path / "piece"))
    for name in ("weights", "momentum", "first", "second", "count"):
        assert torch.equal(whole[name], resumed[name]), name
    torch.testing.assert_close(whole["distance"], resumed["distance"], rtol=0.05, atol=1e-4)
    assert whole["record"]["tables"] == resumed["record"]["tables"]


def test_no_table_comes_twice(tmp_path, monkeypatch):
    learned: list[float] = []
    study = Steps.study

    def noted(steps, shape, buffer):
        learned.append(buffer.cells.sum().item())
        study(steps, shape, buffer)

    monkeypatch.setattr(Steps, "study", noted)
    train(tmp_path / "a", "--steps", "3")
    train(tmp_path / "b", "--steps", "3", "--state", str(tmp_path / "a"))
    assert len(learned) == len(set(learned)) == 12


def test_a_run_killed_while_it_writes_leaves_the_state_before(tmp_path, monkeypatch):
    monkeypatch.setattr("pretraining.state.PART", 1000)
    write_state(tmp_path, {"a": torch.arange(999.0)}, {"tables": 1})

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            write_state(tmp_path, {"a": torch.zeros(999)}, {"tables": 2})
    tensors, record = read_state(tmp_path)
    assert torch.equal(tensors["a"], torch.arange(999.0))
    assert record["tables"] == 1
    assert len(record["parts"]) > 3
    (tmp_path / record["parts"][1]).write_bytes(b"?" * 1000)
    with pytest.raises(ValueError, match="damaged"):
        read_state(tmp_path)


def test_a_state_of_another_network_or_seed_is_refused(tmp_path):
    train(tmp_path, "--steps", "1")
    more = ["--state", str(tmp_path), "--out", str(tmp_path)]
    with pytest.raises(ValueError, match="seed"):
        main([*TINY, *more, "--seed", "2"])
    record = tmp_path / "state.json"
    record.write_text(record.read_text().replace('"width": 16', '"width": 32'))
    with pytest.raises(ValueError, match="size"):
        main([*TINY, *more])


def test_it_learns(tmp_path):
    torch.manual_seed(0)
    net = Network(width=16, wide=16, cells=1, rows=1, marks=2)
    training = Training(net)
    training.rate.fill_(0.02)
    batch = simulate(Shape(16, 40, 16, 4, 80), CPU)
    losses = []
    for _ in range(60):
        z = net(*batch[:4], 40)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(z, batch.risk)
        training.add_gradient(loss)
        training.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.1


def test_annealing_writes_weights_and_leaves_the_state(tmp_path):
    train(tmp_path / "a", "--steps", "1")
    shutil.copytree(tmp_path / "a", tmp_path / "before")
    main(
        [*TINY, "--steps", "2", "--anneal", "--state", str(tmp_path / "a"), "--out", str(tmp_path)]
    )
    kept = torch.load(tmp_path / "network.pt", weights_only=True)
    net = Network(**kept["record"]["size"])
    net.load_state_dict({name: w.float() for name, w in kept["weights"].items()})
    assert (tmp_path / "a" / "state.json").read_text() == (
        tmp_path / "before" / "state.json"
    ).read_text()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
def test_recorded_work_keeps_its_tables():
    device = torch.device("cuda")
    shapes = [Shape(8, 64, 16, columns, 256) for columns in (5, 9, 30)]
    steps = Steps(net := Network().to(device), Training(net), shapes, 1)
    wait()
    torch.cuda.empty_cache()
    torch.full((2**28,), torch.nan, device=device)  # would land in memory that was given back
    for make, learn, buffer in zip(steps.make, steps.learn, steps.buffers, strict=True):
        seen = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            make()
            wait()
            seen.append(buffer.cells.clone())
        learn()
        wait()
        assert torch.equal(seen[0], seen[1])
        assert not torch.equal(seen[0], seen[2])
        assert steps.loss.isfinite()


def test_shapes_cover_the_whole_range():
    shapes = draw_shapes(FULL, "any")
    assert len(shapes) % 2 == 1
    assert min(s.columns for s in shapes) == 3
    assert max(s.columns for s in shapes) > 90
    assert min(s.context for s in shapes) < 70
    assert max(s.context for s in shapes) > 2050
    assert all(s.context < s.pool and s.pool + s.query <= 4096 for s in shapes)


def test_tables_hold_what_they_say():
    torch.manual_seed(3)
    batch = simulate(Shape(64, 120, 30, 7, 400), CPU)
    assert all(part.isfinite().all() for part in batch)
    tested = batch.code < 2
    assert ((batch.code == QUERY).sum(1) == 30).all()
    assert (tested[:, 1:] <= tested[:, :-1]).all()  # tested rows come first
    assert ((batch.code == UNTESTED).sum(1) == 120 - tested.sum(1)).all()
    assert tested.sum(1).min() < 80 < 110 < tested.sum(1).max()
    both = ((batch.code == 1).any(1) & (batch.code == 0).any(1)).float()
    assert torch.equal(batch.weight, both)


def test_cells_hold_size_rank_and_what_is_missing():
    table = torch.tensor([1.0, 3.0, torch.nan, 2.0, 9.0]).view(1, 5, 1)
    z, rank, missing = encode(table, 4)[0, :, 0].unbind(1)
    assert missing.tolist() == [0, 0, 1, 0, 0]
    assert z[2] == rank[2] == 0
    torch.testing.assert_close(rank, torch.tensor([-2 / 3, 2 / 3, 0, 0, 1]))
    torch.testing.assert_close(z[1], torch.asinh(torch.tensor(1.5**0.5)), rtol=1e-4, atol=0)
    assert 0.01 < simulate(Shape(64, 64, 16, 9, 256), CPU).cells[..., 2].mean() < 0.2


def test_answers_do_not_depend_on_the_other_rows_or_the_order_of_columns():
    torch.manual_seed(4)
    net = Network(width=16, wide=16, cells=2, rows=1, marks=2)
    torch.nn.init.normal_(net.head.weight)
    for part in (*net.down, *net.across, *net.rows):
        torch.nn.init.normal_(part.out.weight, std=0.3)
    table = torch.randn(1, 50, 6)
    table[torch.rand_like(table) < 0.1] = torch.nan
    code = torch.cat([torch.randint(0, 3, (1, 40)), torch.full((1, 10), QUERY)], 1)
    group, tag = torch.zeros(1), torch.randn(1, 1, 6, 16)
    whole = net(encode(table, 40), code, group, tag, 40)
    part = net(encode(table[:, :43], 40), code[:, :43], group, tag, 40)
    torch.testing.assert_close(whole[:, :3], part, rtol=1e-4, atol=1e-5)
    order = torch.randperm(6)
    turned = net(encode(table[:, :, order], 40), code, group, tag[:, :, order], 40)
    torch.testing.assert_close(whole, turned, rtol=1e-4, atol=1e-5)
