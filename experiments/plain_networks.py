"""Two methods once more, in plain PyTorch: what do rounding and the order of updates change?

Written from the description of the methods, without this package's engine (DivideMix borrows its
mixtures), on the published data sets of the four settings whose published points the project has.

`tested-only`: one network after the other, the same loss written in four ways. Exact arithmetic
would make them equal; how far they are apart is what rounding does to 1000 steps.

`dividemix`: the two networks of a pair updated together or in turns, with several draws of all
that is random (starts of the mixtures, who is mixed with whom, and in which proportion).

    python experiments/plain_networks.py tested-only     # an accelerator: three minutes
    python experiments/plain_networks.py dividemix       # ten
    python experiments/plain_networks.py show
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, logsigmoid, softplus

from _record import RESULTS, record
from dcem import metrics, tasks
from dcem.engine import resolve_device
from dcem.methods.mixture import fit_two_normals
from dcem.paper.published import figures

SETTINGS = [(1.0, 0.5), (1.0, 1.0), (1.0, 2.0), (2.0, 2.0)]  # k, q_t
PHASES = range(0, 360, 30)
STEPS, WARM_UP, RAMP, WEIGHT = 1000, 20, 16, 50.0


def make(k: float, q_t: float, phase: int) -> tasks.Task:
    return tasks.make_sinusoid(q_y=0.5, k=k, q_t=q_t, phase=math.radians(phase))


def measured(task: tasks.Task, score: np.ndarray) -> dict[str, float]:
    found = metrics.ranking(task.truth["test"], score, task.test.group)
    return {"auc": round(found["auc"], 4), "roc_gap": round(found["roc_gap"], 4)}


# -- tested-only, one network at a time ---------------------------------------------------------

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]  # logits, labels, tested -> loss
WRITINGS: dict[str, tuple[bool, Loss]] = {  # only tested rows? and the loss
    "mean over tested rows": (True, lambda o, y, t: cross_entropy(o, y)),
    "the same by softmax and log": (
        True,
        lambda o, y, t: -(o.softmax(1).clamp_min(1e-30).log().gather(1, y[:, None])).mean(),
    ),
    "sum over tested, divided": (
        False,
        lambda o, y, t: (cross_entropy(o, y, reduction="none") * t).sum() / t.sum(),
    ),
    "mean over all, untested at 0": (
        False,
        lambda o, y, t: (cross_entropy(o, y, reduction="none") * t).mean(),
    ),
}


def tested_only(device: torch.device, steps: int) -> list[dict[str, Any]]:
    """All settings, boundaries and writings, one after the other."""
    rows = []
    for k, q_t in SETTINGS:
        for phase in PHASES:
            task = make(k, q_t, phase)
            X = torch.tensor(task.train.X, dtype=torch.float32, device=device)
            y = torch.tensor(task.train.y_imputed, device=device).long()
            tested = torch.tensor(task.train.tested, dtype=torch.float32, device=device)
            for writing, (only, loss) in WRITINGS.items():
                keep = tested > 0 if only else torch.ones_like(tested, dtype=torch.bool)
                data = X[keep], y[keep], tested[keep]
                torch.manual_seed(42)
                net = nn.Sequential(
                    nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
                ).to(device)
                adam = torch.optim.Adam(net.parameters(), 1e-3, foreach=False)
                for _ in range(steps):
                    adam.zero_grad()
                    loss(net(data[0]), *data[1:]).backward()
                    adam.step()
                with torch.no_grad():
                    test = torch.tensor(task.test.X, dtype=torch.float32, device=device)
                    score = net(test).softmax(1)[:, 1].cpu().numpy()
                about = {"writing": writing, "k": k, "q_t": q_t, "phase": phase}
                rows.append(about | measured(task, score))
        print(f"k {k:g}, q_t {q_t:g} done", flush=True)
    return rows


# -- DivideMix, K pairs at once: weights and biases stacked --------------------------------------


def initial(seed: int, n: int, device: torch.device) -> list[Tensor]:
    """n copies of the network that a seed draws: weights `[K, in, out]`, biases `[K, 1, out]`."""
    torch.manual_seed(seed)
    pieces = []
    for layer in (nn.Linear(2, 64), nn.Linear(64, 64), nn.Linear(64, 2)):
        pieces += [layer.weight.detach().T.expand(n, -1, -1), layer.bias.detach().expand(n, 1, -1)]
    return [piece.clone().to(device).requires_grad_() for piece in pieces]


def log_odds(net: list[Tensor], X: Tensor) -> Tensor:
    """`[K, N]` from rows `[K, N, 2]`."""
    hidden = torch.relu(torch.baddbmm(net[1], X, net[0]))
    hidden = torch.relu(torch.baddbmm(net[3], hidden, net[2]))
    logits = torch.baddbmm(net[5], hidden, net[4])
    return logits[..., 1] - logits[..., 0]


def clean(loss: Tensor, generator: torch.Generator) -> Tensor:
    """Which labels the mixture takes for clean, `[K, N]`, from one random start each."""
    low, high = loss.amin(1, keepdim=True), loss.amax(1, keepdim=True)
    scaled = (loss - low) / (high - low)
    chance = torch.rand(len(loss), 3, device=loss.device, generator=generator)
    fitted = fit_two_normals(scaled, torch.ones_like(scaled), chance=chance)
    return (fitted.probability_of_lower(scaled) > 0.5).to(loss.dtype)


def dividemix(device: torch.device, steps: int, n_chances: int) -> list[dict[str, Any]]:
    """All settings and boundaries with every chance, the pair updated together and in turns."""
    places = [(k, q_t, phase) for k, q_t in SETTINGS for phase in PHASES]
    made = [make(*place) for place in places]
    X, y = (
        torch.tensor(np.stack(values), dtype=torch.float32, device=device).repeat(
            n_chances, *[1] * dims
        )
        for values, dims in (
            ([task.train.X for task in made], 2), ([task.train.y_imputed for task in made], 1)
        )
    )  # fmt: skip
    test = torch.tensor(np.stack([t.test.X for t in made]), dtype=torch.float32, device=device)
    rows = []
    for turns in (False, True):
        nets = _train_pairs(X, y, steps, turns=turns)
        with torch.no_grad():
            X_test = test.repeat(n_chances, 1, 1)
            score = sum(torch.sigmoid(log_odds(net, X_test)) for net in nets).cpu().numpy() / 2
        for number, one in enumerate(score):
            chance, place = divmod(number, len(places))
            about = dict(zip(("k", "q_t", "phase"), places[place], strict=True))
            way = "in turns" if turns else "together"
            rows.append({"updated": way, "chance": chance, **about} | measured(made[place], one))
        print("in turns" if turns else "together", "done", flush=True)
    return rows


def _train_pairs(X: Tensor, y: Tensor, steps: int, *, turns: bool) -> list[list[Tensor]]:
    n_pairs, n_rows = y.shape
    nets = [initial(seed, n_pairs, X.device) for seed in (42, 43)]
    adams = [torch.optim.Adam(net, 1e-3, weight_decay=5e-4) for net in nets]
    generator, shares = torch.Generator(X.device).manual_seed(7), np.random.default_rng(5)

    def learn(which: int, loss: Tensor) -> None:
        adams[which].zero_grad()
        loss.sum().backward()
        adams[which].step()

    for step in range(steps):
        if step < WARM_UP:
            for which, net in enumerate(nets):
                z = log_odds(net, X)
                p = torch.sigmoid(z)
                certainty = p * logsigmoid(z) + (1 - p) * logsigmoid(-z)
                learn(which, (softplus(z) - y * z + certainty).mean(1))
            continue
        with torch.no_grad():
            z = [log_odds(net, X) for net in nets]
            loss = softplus(z[0] + z[1]) - y * (z[0] + z[1])
            split = [clean(loss, generator) for _ in nets]
        for which, net in enumerate(nets):
            with torch.no_grad():
                if turns:
                    z = [log_odds(one, X) for one in nets]
                mean = (torch.sigmoid(z[0]) + torch.sigmoid(z[1])) / 2
                target = mean**2 / (mean**2 + (1 - mean) ** 2)
                share = torch.tensor(shares.beta(4, 4, n_pairs), dtype=X.dtype, device=X.device)
                share = torch.maximum(share, 1 - share)[:, None]
                other = torch.rand(n_pairs, n_rows, device=X.device, generator=generator).argsort(1)
                target = share * target + (1 - share) * target.gather(1, other)
                moved = X.gather(1, other[..., None].expand(-1, -1, 2))
                mixed = share[..., None] * X + (1 - share[..., None]) * moved
            trusted = split[1 - which]
            z_mixed = log_odds(net, mixed)
            p = torch.sigmoid(z_mixed)
            labelled = (softplus(z_mixed) - target * z_mixed) * trusted
            doubtful = (p - target).square() * (1 - trusted)
            ramp = min((step - WARM_UP) / RAMP, 1)
            mean_p = p.mean(1)
            learn(
                which,
                labelled.sum(1) / trusted.sum(1).clamp_min(1)
                + WEIGHT * ramp * doubtful.sum(1) / (1 - trusted).sum(1).clamp_min(1)
                - 0.5 * (torch.log(2 * mean_p) + torch.log(2 * (1 - mean_p))),
            )
    return nets


# -- what came out -------------------------------------------------------------------------------


def show(out: Path) -> None:
    published = figures()
    for method, name, ways in (
        ("tested-only", "plain_tested_only", ["writing"]),
        ("dividemix", "plain_dividemix", ["updated", "chance"]),
    ):
        if not (out / f"{name}.csv").exists():
            continue
        print(f"\n{method}: AUC, ours against the published points")
        table = pd.read_csv(out / f"{name}.csv")
        for (k, q_t), part in table.groupby(["k", "q_t"]):
            at = published.query(
                "method == @method and metric == 'auc' and k == @k and q_t == @q_t"
            )
            theirs = at["values"].iloc[0]
            for way, cells in part.groupby(ways):
                ours = np.sort(cells["auc"])
                apart = np.median(np.abs(ours - theirs))
                print(
                    f"k {k:g}, q_t {q_t:g}, {', '.join(map(str, way))}: "
                    f"median {np.median(ours):.3f} ({np.median(theirs):.3f}), "
                    f"points {apart:.4f} apart"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["tested-only", "dividemix", "show"])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder to write into")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--chances", type=int, default=2, help="draws of what is random")
    options = parser.parse_args()
    device, started = resolve_device(options.device), time.monotonic()
    if options.what == "tested-only":
        rows = tested_only(device, options.steps)
        record("plain_tested_only", rows, options.out, time.monotonic() - started)
    elif options.what == "dividemix":
        rows = dividemix(device, options.steps, options.chances)
        record("plain_dividemix", rows, options.out, time.monotonic() - started)
    show(options.out)


if __name__ == "__main__":
    main()
