"""The loop: resuming, checking, stopping; losses without weight; memory; checkpoints; modules."""

import warnings

import pytest
import torch
from forked import FORK, started
from torch import nn

from dcem.engine import (
    MLP,
    SGD,
    Adam,
    Fleet,
    FromModule,
    Patience,
    Rows,
    Trainer,
    checkpoint,
    cross_entropy,
    in_chunks,
    resolve_device,
    supervised,
    train,
)
from dcem.engine.fleet import weighted_mean

SEEDS = [1, 2]


def make_rows(n: int = 120) -> Rows:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(n, 3, generator=generator)
    return Rows(X, {"target": (X[:, 0] + X[:, 1] > 0).float()})


def make_trainer(rows: Rows, optimizer=None, batch_size=32) -> Trainer:
    architecture = MLP(3, (6,))
    return Trainer(
        Fleet.initial(architecture, SEEDS),
        rows,
        supervised(architecture, cross_entropy),
        optimizer or Adam(1e-2),
        batch_size=batch_size,
        seeds=SEEDS,
    )


@pytest.mark.parametrize("batch_size", [None, 32])
@pytest.mark.parametrize("optimizer", [Adam, lambda lr: SGD(lr, momentum=0.9)])
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(batch_size, optimizer):
    rows = make_rows()
    whole = make_trainer(rows, optimizer(1e-2), batch_size)
    whole.run(50)
    first = make_trainer(rows, optimizer(1e-2), batch_size)
    first.run(23)
    state = first.state()
    first.run(5)  # the state is a copy: going on does not change it
    second = make_trainer(rows, optimizer(1e-2), batch_size)
    second.load_state(state)
    second.run(27)
    assert torch.equal(second.fleet.flat, whole.fleet.flat)
    assert second.steps_done == whole.steps_done == 50


def test_minibatches_need_seeds():
    architecture = MLP(3, (6,))
    fleet = Fleet.initial(architecture, SEEDS)
    with pytest.raises(ValueError, match="seeds"):
        Trainer(fleet, make_rows(), supervised(architecture, cross_entropy), Adam(), batch_size=8)


def test_checks_come_every_so_many_steps_and_end_the_run():
    rows = make_rows()
    trainer = make_trainer(rows, batch_size=None)
    rule = Patience(trainer.fleet.flat, patience=1)
    never_better = Rows(rows.X, {"target": torch.full_like(rows["target"], torch.inf)})
    trainer.run(2000, stopping=rule, validation=never_better, check_every=10)
    assert not rule.active.any()
    assert trainer.steps_done < 2000
    assert int(rule.checks) * 10 == trainer.steps_done


def test_the_best_weights_are_those_of_the_best_check():
    rows = make_rows()
    trainer = make_trainer(rows, Adam(5e-2), batch_size=None)
    other = Rows(rows.X, {"target": 1 - rows["target"]})  # gets worse as training goes on
    rule = Patience(trainer.fleet.flat, patience=100)
    trainer.run(40, stopping=rule, validation=other, check_every=5)
    assert rule.best_step.tolist() == [1, 1]
    rule.restore(trainer.fleet.flat)
    short = make_trainer(rows, Adam(5e-2), batch_size=None)
    short.run(5)
    assert torch.equal(trainer.fleet.flat, short.fleet.flat)


# -- losses -----------------------------------------------------------------------------------


def test_a_batch_without_weight_has_no_loss_and_no_gradient():
    values = torch.tensor([[1.0, 3.0], [1.0, 3.0]], requires_grad=True)
    mean = weighted_mean(values, torch.tensor([[1.0, 3.0], [0.0, 0.0]]))
    assert mean[0].item() == 2.5
    assert mean[1].isnan()
    (gradient,) = torch.autograd.grad(mean.sum(), values)
    assert gradient.tolist() == [[0.25, 0.75], [0.0, 0.0]]


def test_cross_entropy_is_torchs_and_so_is_its_gradient():
    logits = torch.tensor([[[40.0, -40.0], [0.3, 0.1], [-2.0, 90.0]]], dtype=torch.float64)
    target = torch.tensor([1.0, 0.25, 0.0], dtype=torch.float64)
    results = []
    for loss in (
        lambda z: cross_entropy(z, Rows(z[0], {"target": target}))[0],
        lambda z: nn.functional.cross_entropy(z[0], torch.stack([1 - target, target], dim=1)),
    ):
        z = logits.clone().requires_grad_()
        value = loss(z)
        results.append((value.detach(), torch.autograd.grad(value, z)[0]))
    torch.testing.assert_close(results[0], results[1], rtol=1e-12, atol=1e-14)


# -- memory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError])
def test_a_fleet_too_large_is_split_and_says_so(error):
    sizes, trained = [], []

    def run(items):
        sizes.append(len(items))
        if len(items) > 3:
            raise error("no room")
        trained.extend(items)

    with pytest.warns(RuntimeWarning, match="networks does not fit") as said:
        in_chunks(run, list(range(11)))
    assert trained == list(range(11))
    assert [str(one.message).split()[3] for one in said] == ["11", "6", "5"]
    assert sum(size for size in sizes if size <= 3) == 11


def test_what_does_not_fit_alone_raises_and_other_errors_do_at_once():
    def full(items):
        raise torch.OutOfMemoryError("no room")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(torch.OutOfMemoryError):
            in_chunks(full, [1, 2])
    calls = []

    def wrong(items):
        calls.append(items)
        raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        in_chunks(wrong, [1, 2, 3])
    assert len(calls) == 1


def test_a_limit_cuts_without_a_warning():
    sizes = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_chunks(lambda items: sizes.append(len(items)), list(range(7)), limit=3)
    assert sizes == [3, 3, 1]


# -- checkpoints ------------------------------------------------------------------------------


def test_a_checkpoint_is_whole_or_the_one_before(tmp_path):
    path = tmp_path / "deep" / "run.safetensors"
    tensors = {"a": torch.arange(4.0).reshape(2, 2).T, "b": torch.tensor(3)}
    checkpoint.write_checkpoint(path, tensors, {"done": 1})
    found, meta = checkpoint.read(path)
    assert meta == {"done": 1}
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    with pytest.raises(TypeError):  # fails before the rename: the first one stays
        checkpoint.write_checkpoint(path, tensors, {"done": object()})
    assert checkpoint.read(path)[1] == {"done": 1}
    path.write_bytes(path.read_bytes()[:-5])
    assert checkpoint.read(path) is None
    assert checkpoint.read(tmp_path / "none") is None


def write_for_ever(path, told):
    big, number = torch.zeros(1_000_000), 0
    while True:
        number += 1
        checkpoint.write_checkpoint(path, {"x": big + number}, {"number": number})
        told.send(number)


def test_kill_9_while_writing_leaves_a_readable_checkpoint(tmp_path):
    path = tmp_path / "run.safetensors"
    heard, told = FORK.Pipe(duplex=False)
    writer = started(write_for_ever, path, told)
    for _ in range(5):
        reported = heard.recv()
    writer.kill()
    writer.join()
    tensors, meta = checkpoint.read(path)
    assert meta["number"] >= reported
    assert bool((tensors["x"] == meta["number"]).all())


# -- modules ----------------------------------------------------------------------------------


def small_module(n_inputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(n_inputs, 6), nn.ReLU(), nn.Linear(6, 2))


def test_a_module_trains_as_the_same_mlp_does():
    rows = make_rows()
    flats = []
    for architecture in (MLP(3, (6,)), FromModule(small_module, 3)):
        fleet = Fleet.initial(architecture, SEEDS)
        Trainer(fleet, rows, supervised(architecture, cross_entropy), Adam(1e-2)).run(30)
        flats.append(fleet.flat)
    torch.testing.assert_close(flats[0], flats[1], rtol=0, atol=1e-5)


def test_a_module_by_itself_gives_the_logits_of_the_fleet():
    architecture = FromModule(lambda d: nn.Sequential(nn.Linear(d, 1), nn.Flatten(0)), 3)
    fleet = Fleet.initial(architecture, SEEDS)
    rows = make_rows().X
    for m in range(2):
        module = architecture.module(fleet.flat[m])
        torch.testing.assert_close(fleet.logits(rows)[m, :, 0], module(rows).detach())


def test_modules_that_mix_rows_or_give_odd_shapes_are_refused():
    with pytest.raises(ValueError, match="LayerNorm"):
        FromModule(lambda d: nn.Sequential(nn.BatchNorm1d(d), nn.Linear(d, 1)), 3)
    with pytest.raises(ValueError, match="one logit per row, or two"):
        FromModule(lambda d: nn.Linear(d, 5), 3)


def test_devices():
    assert resolve_device("cpu").type == "cpu"
    if not torch.cuda.is_available():
        assert resolve_device("auto").type == "cpu"
        with pytest.raises(ValueError, match='device="auto"'):
            resolve_device("cuda")
    with pytest.raises(ValueError, match="auto, cpu or cuda; got 'gpu'"):
        resolve_device("gpu")


def test_making_a_module_leaves_the_users_random_numbers_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    architecture = FromModule(small_module, 3)
    architecture.module(architecture.initial(0))
    assert torch.rand(1) == expected


@pytest.mark.parametrize("steps", [5, 25])
def test_the_best_step_is_the_last_one_where_none_was_checked(steps):
    rows, architecture = make_rows(), MLP(3, (6,))
    fleet = Fleet.initial(architecture, SEEDS)
    objective = supervised(architecture, cross_entropy)
    kept = train(fleet, rows, objective, Adam(1e-3), steps, validation=rows, patience=3)
    assert kept == [5 if steps < 10 else 20] * 2
