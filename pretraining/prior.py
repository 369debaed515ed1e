"""Simulated tables with selective labels, many at once on one device.

`simulate` returns a batch of tables of one shape: rows that were tested, rows that were not, and
rows to answer for. Nothing here waits for the device, so a CUDA graph can record all of it.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

HIDDEN = 4  # causes that no column shows
POLICIES = {  # direction of the testing: its share of the tables
    "random": 0.10,
    "rule": 0.14,
    "one column": 0.07,
    "follows risk": 0.21,
    "against risk": 0.26,
    "bumpy rule": 0.08,
    "unrelated": 0.06,
    "hidden cause": 0.08,
}
UNTESTED, QUERY = 2, 3  # codes of a row; 0 and 1 are the results of tested rows


class Shape(NamedTuple):
    """Sizes of a batch: tables, context rows, rows to answer for, columns, rows to choose from."""

    tables: int
    context: int
    query: int
    columns: int
    pool: int


class Batch(NamedTuple):
    """Tables of one shape: context rows first, then the rows to answer for."""

    cells: Tensor  # [tables, rows, columns, 3], see `encode`
    code: Tensor  # [tables, rows]: result of a tested row, UNTESTED or QUERY
    group: Tensor  # [tables]: 1 where column 0 is the group
    tag: Tensor  # [tables, 1, columns, 16]: random names of the columns
    weight: Tensor  # [tables]: 0 where the tested have one result alone
    risk: Tensor  # [tables, query]: probability that the network should answer
    result: Tensor  # [tables, query]
    policy: Tensor  # [tables]: index into POLICIES


class Dice:
    """Draw random numbers for each of the tables: [tables, *size]."""

    def __init__(self, tables: int, device: torch.device) -> None:
        self.tables, self.device = tables, device

    def normal(self, *size: int) -> Tensor:
        """Draw from the standard normal distribution."""
        return torch.randn(self.tables, *size, device=self.device)

    def uniform(self, low: float, high: float, *size: int) -> Tensor:
        """Draw from the interval."""
        return torch.rand(self.tables, *size, device=self.device) * (high - low) + low

    def log_uniform(self, low: float, high: float, *size: int) -> Tensor:
        """Draw from the interval, evenly on the log scale."""
        return torch.exp(self.uniform(math.log(low), math.log(high), *size))

    def chance(self, share: float, *size: int) -> Tensor:
        """Draw booleans that are true with probability `share`."""
        return self.uniform(0, 1, *size) < share

    def integer(self, low: int, high: int, *size: int) -> Tensor:
        """Draw integers from `low` to `high - 1`."""
        return torch.randint(low, high, (self.tables, *size), device=self.device)

    def mixture(self, spread: float, lean: tuple[float, ...]) -> Tensor:
        """Draw shares [tables, K] that sum to 1 and lean to some of K parts."""
        return torch.softmax(spread * self.normal(len(lean)) + constant(lean, self.device), 1)


@cache
def constant(values: tuple[float, ...], device: torch.device) -> Tensor:
    """Return the values on the device; kept, since a graph cannot copy them there."""
    return torch.tensor(values, device=device)


def draw(weight: Tensor, count: int) -> Tensor:
    """Draw `count` indices per table, with replacement, in proportion to weight [B, K]."""
    total = weight.cumsum(1)
    at = torch.rand(weight.shape[0], count, device=weight.device) * total[:, -1:]
    return torch.searchsorted(total, at).clamp(max=weight.shape[1] - 1)


def standard(h: Tensor) -> Tensor:
    """Give every column mean 0 and standard deviation 1 over the rows (dimension 1)."""
    return (h - h.mean(1, True)) / (h.std(1, keepdim=True) + 1e-4)


def select(kind: Tensor, options: Sequence[Tensor]) -> Tensor:
    """Return the option whose number `kind` gives."""
    out = options[0]
    for i, option in enumerate(options[1:], 1):
        out = torch.where(kind == i, option, out)
    return out


def bend(dice: Dice, h: Tensor) -> Tensor:
    """Apply to each column its own activation."""
    steps, waves = torch.floor(1.5 * h), torch.sin(2 * h)
    options = [h, h.tanh(), h.relu(), waves, h.abs(), torch.exp(-h * h), h.sign(), steps]
    options += [(h * h).clamp(max=9), torch.sigmoid(4 * h), torch.maximum(h, 0.1 * h)]
    return select(dice.integer(0, len(options), 1, h.shape[2]), options)


def pick(values: Tensor, index: Tensor) -> Tensor:
    """Return columns `index` [B, K] of values [B, N, F]."""
    return values.take_along_dim(index[:, None], 2)


def take_rows(values: Tensor, index: Tensor) -> Tensor:
    """Return rows `index` [B, K] of values [B, N, F]."""
    return values.take_along_dim(index[..., None], 1)


def encode(table: Tensor, context: int) -> Tensor:
    """Turn a table [B, N, F], nan where missing, into cells [B, N, F, 3].

    They are asinh of the z-score, mid-rank in (-1, 1), and missing. Mean, deviation and ranks are
    those of the first `context` rows, so that no answer depends on the other rows asked about.
    """
    missing = table.isnan()
    absent = missing[:, :context]
    count = (~absent).sum(1, True).clamp(min=1)
    values = table.nan_to_num(0.0)
    mean = values[:, :context].sum(1, True) / count
    gap = (values[:, :context] - mean).masked_fill(absent, 0)
    z = torch.asinh((values - mean) / ((gap.square().sum(1, True) / count).sqrt() + 1e-6))
    columns = table.nan_to_num(torch.inf).transpose(1, 2).contiguous()
    ordered = columns[:, :, :context].sort(-1).values.contiguous()
    below = torch.searchsorted(ordered, columns) + torch.searchsorted(ordered, columns, right=True)
    rank = below.transpose(1, 2) / count - 1
    cells = torch.stack([z, rank, missing.float()], -1)
    return torch.where(missing[..., None], constant((0.0, 0.0, 1.0), table.device), cells)


def causes(dice: Dice, rows: int, width: int) -> Tensor:
    """Draw a random network of causes, four layers deep: [tables, rows, 4 * width]."""
    h = dice.normal(rows, width)
    centres = take_rows(
        2 * dice.normal(5, width), dice.integer(0, 60, rows) % dice.integer(1, 6, 1)
    )
    even, tails = dice.uniform(-1.7, 1.7, rows, width), h * dice.log_uniform(1, 6, rows, width)
    yes = (h > dice.uniform(-1.5, 1.5, 1, width)).float()
    layers = [standard(select(dice.integer(0, 6, 1, width), [h, even, tails, h + centres, yes, h]))]
    for _ in range(3):
        h = layers[-1]
        matrix = dice.normal(width, width)
        matrix = matrix * (torch.rand_like(matrix) < dice.log_uniform(1.5, 8, 1, 1) / width)
        matrix = matrix / (matrix.square().sum(1, True).sqrt() + 0.1)
        h = (h @ matrix) * dice.log_uniform(0.5, 3, 1, width) + 0.7 * dice.normal(1, width)
        noise = dice.log_uniform(0.02, 1, 1, 1) * dice.log_uniform(0.3, 2, 1, width)
        keep = 0.5 * dice.chance(0.5, 1, 1) * layers[-1]
        layers.append(standard(standard(bend(dice, h)) + noise * torch.randn_like(h) + keep))
    return torch.cat(layers, 2)


def columns_as_recorded(dice: Dice, values: Tensor) -> Tensor:
    """Give columns [B, N, F] the look of records: surveys, laboratories, codes, counts."""
    width = values.shape[2]
    twice = values.roll(1, 2) + 0.2 * torch.randn_like(values)  # the same thing measured twice
    v = torch.where(dice.chance(0.06, 1, width), twice, values)
    v = torch.where(dice.chance(0.05, 1, width), v.roll(1, 1), v)  # noise alone
    cut = dice.uniform(-1.9, 1.9, 1, width)
    scale = dice.log_uniform(0.3, 2, 1, width)
    tails = torch.sign(v) * torch.expm1(v.abs().clamp(max=5) * scale)
    counts = torch.exp(v.clamp(max=4) * scale + cut).floor()
    even = torch.special.ndtr(v)
    levels = dice.integer(2, 12, 1, width)
    level = (even * levels).floor().clamp(max=11)
    codes = dice.uniform(0, 1, 12, width).argsort(1).float()
    code = codes.take_along_dim(level.long(), 1)
    refuse = torch.rand_like(v) < 0.05 * dice.chance(0.5, 1, width)
    survey = torch.where(refuse, levels + 3, level + 1)  # refusing has a code above all others
    place = torch.arange(width, device=v.device)
    run = dice.integer(2, 8, 1, 1)
    cause = pick(even, (place // run * run)[:, 0])
    dummy = ((cause * run).floor() == place % run).float()  # neighbours share one cause
    # laboratory: skewed, rounded, nothing below a detection limit
    step = dice.log_uniform(0.01, 0.5, 1, width)
    lab = (torch.exp(v.clamp(max=5) * scale / 2) / step).round() * step
    lab = torch.maximum(lab, torch.maximum(step, torch.exp((cut - 1.5) * scale / 2)))
    # age and the like: whole numbers, often in fives, with a top code
    unit = 1 + 4 * dice.chance(0.3, 1, width)
    age = torch.minimum((v * 15 / unit).round() * unit, 15 * cut.abs() + 10)
    looks = [v, tails, level, (v > cut).float(), code, torch.relu(v - cut), dummy, counts, lab]
    lean = (1.8, 0.0, 0.2, 0.5, -0.4, -0.5, -0.6, -0.3, 0.2, 0.0, 0.0)
    return select(draw(dice.mixture(1.4, lean), width)[:, None], [*looks, age, survey])


def trees(dice: Dice, v: Tensor, weight: Tensor, count: int = 16, depth: int = 5) -> Tensor:
    """Sum random decision trees on columns drawn in proportion to weight: [B, N]."""
    _, rows, width = v.shape
    nodes = 2**depth - 1
    feature = draw(weight, count * nodes)
    row = dice.integer(0, rows, count * nodes)
    cut = v.flatten(1).gather(1, row * width + feature)  # the value of some row
    level = torch.log2(torch.arange(1, nodes + 1, device=dice.device) + 0.01).floor()
    deep = dice.integer(1, depth + 1, count, 1)
    cut = cut.unflatten(1, (count, nodes)).masked_fill(level >= deep, torch.inf).flatten(1)
    number = torch.arange(count, device=dice.device)
    at = torch.zeros(dice.tables, rows, count, dtype=torch.long, device=dice.device)
    for _ in range(depth):
        node = (number * nodes + at).flatten(1)
        value = v.gather(2, feature.gather(1, node).view_as(at))
        at = 2 * at + 1 + (value > cut.gather(1, node).view_as(at))
    fade = torch.exp(-dice.log_uniform(0.02, 3, 1, 1) * number[:, None])
    leaf = dice.normal(count, nodes + 1) * fade
    return leaf.gather(2, (at - nodes).transpose(1, 2)).sum(1)


def unusual(dice: Dice, v: Tensor, weight: Tensor) -> Tensor:
    """Return a score unlike the others: parity, nearest centre, fast waves, or noise: [B, N]."""
    few = pick(v, draw(weight, 3))
    centre = take_rows(few, dice.integer(0, v.shape[1], 12))
    cluster = dice.normal(12).gather(1, torch.cdist(few, centre).argmin(2))
    wave = torch.sin(few.sum(2) * dice.log_uniform(3, 12, 1))
    every = torch.stack([torch.sign(few).prod(2), cluster, wave, torch.randn_like(wave)], 2)
    return pick(every, dice.integer(0, 4, 1))[..., 0]


def risk_score(dice: Dice, v: Tensor, columns: int) -> Tensor:
    """Draw a random function of the columns and of the hidden causes after them: [B, N]."""
    v = v.clamp(-4, 4)
    width = v.shape[2]
    place = torch.arange(width, device=dice.device)
    fade = torch.exp(-place * dice.log_uniform(0.03, 1.2, 1))
    weight = fade.gather(1, dice.uniform(0, 1, width).argsort(1)) * dice.uniform(0, 1, width)
    weight = torch.where(place < columns, weight, weight * dice.log_uniform(0.005, 0.7, 1))
    signed = (weight * torch.sign(torch.randn_like(weight)))[..., None]
    some = weight + 1e-3 / width
    bent = bend(dice, v * dice.log_uniform(0.5, 2.5, 1, width) + dice.normal(1, width))
    products = pick(v, draw(some, 6)) * pick(v, draw(some, 6)) * dice.normal(1, 6)
    matrix = weight[..., None] * dice.normal(width, 16) * dice.log_uniform(0.5, 3, 1, 1)
    network = torch.tanh(v @ matrix + dice.normal(1, 16)) @ dice.normal(16, 1)
    forest = trees(dice, v, some)[..., None]
    parts = [v @ signed, standard(bent) @ signed, forest, products.sum(2, True), network]
    linear = constant((1.0, 0.0, 0.0, 0.0, 0.0), dice.device)
    share = dice.mixture(2, (0.6, 0.3, 0.8, -0.7, 0.0))
    share = torch.where(dice.chance(0.15, 1), linear, share)
    score = (standard(torch.cat(parts, 2)) * share[:, None]).sum(2)
    # every twentieth table is unlike the others
    return torch.where(dice.chance(0.05, 1), unusual(dice, v, some), score)


def risks(dice: Dice, score: Tensor, tested: Tensor) -> Tensor:
    """Turn scores into probabilities: weak and strong signals, rare and common outcomes."""
    weak, strong = dice.log_uniform(0.1, 1, 1), dice.log_uniform(0.7, 7, 1)
    eta = score * torch.where(dice.chance(0.35, 1), weak, strong)
    floor = (4 / tested).clamp(0.01, 0.2)  # fewer tests: less rare, or no result is seen
    rare = floor * (0.4 / floor) ** dice.uniform(0, 1, 1)
    mean = torch.where(dice.chance(0.5, 1), rare, dice.uniform(0.05, 0.6, 1))
    mean = torch.where(dice.chance(0.1, 1), 1 - mean, mean)
    low, high = torch.full_like(mean, -60.0), torch.full_like(mean, 60.0)
    for _ in range(22):
        middle = (low + high) / 2
        under = torch.sigmoid(eta + middle).mean(1, True) < mean
        low, high = torch.where(under, middle, low), torch.where(under, high, middle)
    p = torch.sigmoid(eta + low)
    unexplained = dice.uniform(0, 0.3, 1) * dice.chance(0.15, 1)
    return p + unexplained * (mean - p)


def policies(dice: Dice, v: Tensor, columns: int, risk: Tensor, cause: Tensor) -> Tensor:
    """Return for each row the wish to test it under each of POLICIES: [B, N, 8]."""
    few = pick(v, dice.integer(0, columns, 3))
    rule = standard(few @ (dice.normal(3, 1) * dice.chance(0.7, 3, 1)))
    bumpy = bend(dice, rule * dice.log_uniform(0.5, 3, 1, 1))[..., 0]
    rule, first = rule[..., 0], few[..., 0]
    old = risk + dice.log_uniform(0.1, 2, 1) * rule
    old = standard(old + dice.log_uniform(0.05, 1, 1) * torch.randn_like(risk))
    other = torch.where(dice.chance(0.5, 1), v[..., -1], first.roll(1, 1))
    every = [torch.zeros_like(old), rule, first, old, -old, bumpy, other, cause]
    return standard(torch.stack(every, 2))


def testing(dice: Dice, v: Tensor, wishes: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
    """Score every row for testing [B, N] and return the index of the policy [B]."""
    shares = constant(tuple(POLICIES.values()), v.device).expand(len(v), -1)
    policy = draw(shares, 2)
    slope = torch.where(dice.chance(0.3, 1, 2), 40.0, dice.log_uniform(0.4, 8, 1, 2))
    both = pick(wishes, policy) * slope  # 40: a cut-off
    even = torch.special.ndtr(pick(v, dice.integer(0, v.shape[2], 2)))
    site = (even[..., 0] * 6).long().clamp(0, 5)
    shift = dice.normal(6).gather(1, site)
    member = v[:, :, 0] > 0
    # two policies in one table: by group, by site, or by whom a row happens to meet
    met = dice.uniform(0, 1, v.shape[1]) < dice.log_uniform(0.1, 0.6, 1)
    second = select(dice.integer(0, 3, 1), [member, shift > 0, met]) & dice.chance(0.4, 1)
    score = torch.where(second, both[..., 1] + dice.normal(1), both[..., 0])
    score = score + shift * dice.log_uniform(0.3, 3, 1) * dice.chance(0.25, 1)
    score = score + member * group[:, None] * dice.normal(1) * dice.chance(0.6, 1)
    hole = (even[..., 1] < dice.uniform(0.1, 0.5, 1)) & dice.chance(0.1, 1)
    push = dice.normal(1) * dice.chance(0.08, 1)  # a trace of the hidden cause
    return score - 12.0 * hole + push * wishes[..., -1], policy[:, 0]


def with_holes(dice: Dice, x: Tensor, v: Tensor, risk: Tensor) -> Tensor:
    """Remove values: at random, by their size, in blocks of columns; some become a code."""
    width = x.shape[2]
    rate = dice.log_uniform(0.01, 0.6, 1, width) * dice.chance(0.5, 1, width)
    rate = rate * dice.chance(0.35, 1, 1)
    missing = torch.rand_like(x) < 2 * rate * torch.sigmoid(v * dice.normal(1, width))
    # panels that were not ordered
    block = torch.arange(width, device=x.device) * dice.integer(2, 7, 1, 1) // width
    cause = torch.stack([risk, v[..., 0], v[..., -1]] * 2, 2) * dice.normal(1, 6)
    gone = standard(cause + 0.5 * torch.randn_like(cause)) > dice.uniform(-1, 2.5, 1, 6)
    gone = gone & dice.chance(0.5, 1, 6) & dice.chance(0.2, 1, 1)
    missing = missing | pick(gone, block[:, 0])
    coded = dice.chance(0.08, 1, 1) & dice.chance(0.5, 1, width)
    code = x.mean(1, True) + x.std(1, keepdim=True) * dice.uniform(-6, 6, 1, width)
    return torch.where(missing, torch.where(coded, code, torch.nan), x)


def choose_rows(dice: Dice, wish: Tensor, count: Tensor, context: int) -> Tensor:
    """Return indices [B, context]: the `count` rows most wished for, then some of the others."""
    luck = torch.logit(torch.rand_like(wish).clamp(1e-6, 1 - 1e-6))
    order = (wish + luck).argsort(1, descending=True)
    place = torch.arange(wish.shape[1], device=dice.device)
    key = torch.where(place < count, place - wish.shape[1], torch.rand_like(wish))
    return order.gather(1, key.argsort(1)[:, :context])


def simulate(shape: Shape, device: torch.device, tested: int | None = None) -> Batch:
    """Draw a batch of tables; `tested` fixes how many context rows were tested."""
    tables, context, query, columns, pool = shape
    rows = pool + query
    dice = Dice(tables, device)
    latent = causes(dice, rows, columns + 8)
    by_layer = 0.3 * dice.normal(4).repeat_interleave(columns + 8, 1)
    index = (dice.uniform(0, 1, latent.shape[2]) + by_layer).argsort(1)
    latent = pick(latent, index[:, : columns + HIDDEN + 2])
    # repeated rows, now and then with the same result
    repeated = dice.chance(0.1, 1)
    number = torch.arange(rows, device=device).expand(tables, -1)
    distinct = 1 + (rows - 1) * dice.uniform(0.1, 0.9, 1)
    source = torch.where(repeated, (dice.uniform(0, 1, rows) * distinct).long(), number)
    x = take_rows(columns_as_recorded(dice, latent[:, :, : columns + HIDDEN]), source)
    latent = take_rows(latent, source)
    group = dice.chance(0.7)
    member = (latent[:, :, :1] > dice.uniform(-1.2, 1.2, 1, 1)).float()
    x = torch.cat([torch.where(group[:, None, None], member, x[:, :, :1]), x[:, :, 1:]], 2)
    v = standard(x)
    node = dice.chance(0.2, 1)  # the result is one of the causes itself
    score = standard(torch.where(node, latent[:, :, -1], risk_score(dice, v, columns)))
    untested = (0.6 * dice.uniform(0, 1, 1) * context).clamp(max=512) * ~dice.chance(0.1, 1)
    count = context - untested.long()
    if tested is not None:
        count = torch.full_like(count, tested)
    p = risks(dice, score, count)
    luck = dice.uniform(0, 1, rows)
    same = repeated & dice.chance(0.5, 1)
    y = (torch.where(same, luck.gather(1, source), luck) < p).float()
    hidden = v[:, :, columns] + 2 * dice.log_uniform(0.05, 1, 1) * (y - p)
    known = torch.cat([v[:, :, :columns], latent[:, :, -2:-1]], 2)
    wishes = policies(dice, known, columns, score, hidden)
    wish, policy = testing(dice, v[:, :, :columns], wishes, group)
    chosen = choose_rows(dice, wish[:, :pool], count, context)
    chosen = torch.cat([chosen, number[:, pool:]], 1)
    x = with_holes(dice, x[:, :, :columns], v[:, :, :columns], score)
    y, p = y.gather(1, chosen), p.gather(1, chosen)
    place = number[:, : context + query]
    code = torch.where(place < count, y.long(), UNTESTED)
    positive = (y * (place < count)).sum(1)
    return Batch(
        cells=encode(take_rows(x, chosen), context),
        code=torch.where(place < context, code, QUERY),
        group=(group & dice.chance(0.85)).float(),
        tag=dice.normal(1, columns, 16),
        weight=((positive > 0) & (positive < count[:, 0])).float(),
        risk=torch.where(same, y, p)[:, context:],
        result=y[:, context:],
        policy=policy,
    )
