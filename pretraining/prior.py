"""Simulated tables with selective labels, many at once on one device.

`simulate` returns a batch of tables of one shape: rows that were tested, rows that were not, and
rows to answer for. Nothing here waits for the device, so a CUDA graph can record all of it.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

HIDDEN = 4  # causes that no column shows
ACTIVATIONS: list[Callable[[Tensor], Tensor]] = [
    lambda h: h,
    torch.tanh,
    torch.relu,
    lambda h: torch.sin(2 * h),
    torch.abs,
    lambda h: torch.exp(-h * h),
    torch.sign,
    lambda h: (h * h).clamp(max=9),
    lambda h: torch.floor(1.5 * h),
    lambda h: torch.sigmoid(4 * h),
    lambda h: torch.where(h > 0, h, 0.1 * h),
]
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
    weight: Tensor  # [tables]: 0 where the tested have one result alone
    risk: Tensor  # [tables, query]: probability that the network should answer
    result: Tensor  # [tables, query]
    tag: Tensor  # [tables, 1, columns, 16]: random names of the columns
    policy: Tensor  # [tables]: index into POLICIES


def uniform(low: float, high: float, *size: int, device: torch.device) -> Tensor:
    """Draw from the interval."""
    return torch.rand(*size, device=device) * (high - low) + low


def log_uniform(low: float, high: float, *size: int, device: torch.device) -> Tensor:
    """Draw from the interval, evenly on the log scale."""
    return torch.exp(uniform(math.log(low), math.log(high), *size, device=device))


def chance(share: float, *size: int, device: torch.device) -> Tensor:
    """Draw booleans that are true with probability `share`."""
    return torch.rand(*size, device=device) < share


@lru_cache(maxsize=64)
def constant(values: tuple[float, ...], device: torch.device) -> Tensor:
    """Return the values on the device; kept, since a graph cannot copy them there."""
    return torch.tensor(values, device=device)


def draw(weight: Tensor, count: int) -> Tensor:
    """Draw `count` indices per table, with replacement, in proportion to weight [B, K]."""
    total = weight.cumsum(1)
    at = torch.rand(weight.shape[0], count, device=weight.device) * total[:, -1:]
    return torch.searchsorted(total, at).clamp(max=weight.shape[1] - 1)


def choose(shares: Sequence[float], tables: int, count: int, device: torch.device) -> Tensor:
    """Draw indices [tables, count] with fixed shares."""
    return draw(constant(tuple(shares), device).expand(tables, -1), count)


def standard(h: Tensor) -> Tensor:
    """Give every column mean 0 and standard deviation 1 over the rows (dimension 1)."""
    return (h - h.mean(1, True)) / (h.std(1, keepdim=True) + 1e-4)


def activate(h: Tensor, kind: Tensor) -> Tensor:
    """Apply to each column its own activation."""
    out = h
    for i in range(1, len(ACTIVATIONS)):
        out = torch.where(kind == i, ACTIVATIONS[i](h), out)
    return out


def pick(values: Tensor, index: Tensor) -> Tensor:
    """Return columns `index` [B, K] of values [B, N, F]."""
    return values.gather(2, index[:, None].expand(-1, values.shape[1], -1))


def take_rows(values: Tensor, index: Tensor) -> Tensor:
    """Return rows `index` [B, K] of values [B, N, F]."""
    return values.gather(1, index[..., None].expand(-1, -1, values.shape[2]))


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
    return torch.stack(
        [z.masked_fill(missing, 0), rank.masked_fill(missing, 0), missing.float()], -1
    )


def causes(tables: int, rows: int, width: int, layers: int, device: torch.device) -> Tensor:
    """Draw a random network of causes: [tables, rows, (layers + 1) * width], standardised."""
    h = torch.randn(tables, rows, width, device=device)
    kind = torch.randint(0, 6, (tables, 1, width), device=device)
    clusters = torch.randint(1, 6, (tables, 1), device=device)
    cluster = torch.randint(0, 60, (tables, rows), device=device) % clusters
    centres = take_rows(2 * torch.randn(tables, 5, width, device=device), cluster)
    h = torch.where(kind == 1, uniform(-1.7, 1.7, tables, rows, width, device=device), h)
    h = torch.where(kind == 2, h * log_uniform(1, 6, tables, rows, width, device=device), h)
    h = torch.where(kind == 3, h + centres, h)
    h = torch.where(kind == 4, (h > uniform(-1.5, 1.5, tables, 1, width, device=device)) * 1.0, h)
    h = standard(h)
    out = [h]
    for _ in range(layers):
        density = log_uniform(1.5, 8, tables, 1, 1, device=device) / width
        matrix = torch.randn(tables, width, width, device=device)
        matrix = matrix * (torch.rand_like(matrix) < density)
        matrix = matrix / (matrix.square().sum(1, True).sqrt() + 0.1)
        slope = log_uniform(0.5, 3, tables, 1, width, device=device)
        shift = 0.7 * torch.randn(tables, 1, width, device=device)
        kind = torch.randint(0, len(ACTIVATIONS), (tables, 1, width), device=device)
        noise = log_uniform(0.02, 1, tables, 1, 1, device=device) * torch.randn_like(h)
        noise = noise * log_uniform(0.3, 2, tables, 1, width, device=device)
        keep = 0.5 * chance(0.5, tables, 1, 1, device=device)
        h = standard(standard(activate((h @ matrix) * slope + shift, kind)) + noise + keep * h)
        out.append(h)
    return torch.cat(out, 2)


def columns_as_recorded(values: Tensor) -> Tensor:
    """Give columns [B, N, F] the look of records: surveys, laboratories, codes, counts."""
    tables, rows, width = values.shape
    device = values.device
    copy = chance(0.06, tables, 1, width, device=device)  # the same thing measured twice
    second = values.roll(1, 2) + 0.2 * torch.randn_like(values)
    v = torch.where(copy, second, values)
    v = torch.where(chance(0.05, tables, 1, width, device=device), v.roll(1, 1), v)  # noise alone
    lean = constant((1.8, 0.0, 0.2, 0.5, -0.4, -0.5, -0.6, -0.3, 0.2, 0.0, 0.0), device)
    share = torch.softmax(1.4 * torch.randn(tables, len(lean), device=device) + lean, 1)
    kind = draw(share, width)[:, None]
    cut = uniform(-1.9, 1.9, tables, 1, width, device=device)
    scale = log_uniform(0.3, 2, tables, 1, width, device=device)
    levels = torch.randint(2, 12, (tables, 1, width), device=device).float()
    even = torch.special.ndtr(v)
    level = (even * levels).floor().clamp(max=11)
    codes = torch.rand(tables, width, 12, device=device).argsort(-1).float()
    code = codes.gather(2, level.long().transpose(1, 2)).transpose(1, 2)
    x = torch.where(kind == 1, torch.sign(v) * torch.expm1(v.abs().clamp(max=5) * scale), v)
    x = torch.where(kind == 2, level, x)
    x = torch.where(kind == 3, (v > cut).float(), x)
    x = torch.where(kind == 4, code, x)
    x = torch.where(kind == 5, torch.relu(v - cut), x)
    # dummies: neighbours share one cause
    i = torch.arange(width, device=device)[None, None]
    run = torch.randint(2, 8, (tables, 1, 1), device=device)
    base = (i // run * run).expand(tables, rows, width)
    x = torch.where(kind == 6, ((even.gather(2, base) * run).floor() == i % run).float(), x)
    x = torch.where(kind == 7, torch.exp(v.clamp(max=4) * scale + cut).floor(), x)  # counts
    # laboratory: skewed, rounded, nothing below a detection limit
    step = log_uniform(0.01, 0.5, tables, 1, width, device=device)
    lab = ((torch.exp(v.clamp(max=5) * scale * 0.5) / step).round() * step).clamp(min=step)
    limit = torch.exp((cut - 1.5) * scale * 0.5)
    x = torch.where(kind == 8, torch.maximum(lab, limit), x)
    # age and the like: whole numbers, often in fives, with a top code
    unit = torch.where(chance(0.3, tables, 1, width, device=device), 5.0, 1.0)
    whole = (v * 15 / unit).round() * unit
    x = torch.where(kind == 9, torch.minimum(whole, 15 * cut.abs() + 10), x)
    # answers 1 to 5 or so; a few refuse, with a code above all others
    refuse = torch.rand_like(v) < 0.05 * chance(0.5, tables, 1, width, device=device)
    return torch.where(kind == 10, torch.where(refuse, levels + 3, level + 1), x)


def trees(v: Tensor, weight: Tensor, count: int = 16, depth: int = 5) -> Tensor:
    """Sum random decision trees on columns drawn in proportion to weight: [B, N]."""
    tables, rows, width = v.shape
    device = v.device
    nodes = 2**depth - 1
    feature = draw(weight, count * nodes)
    row = torch.randint(0, rows, feature.shape, device=device)
    cut = v.flatten(1).gather(1, row * width + feature)  # the value of some row
    level = torch.log2(torch.arange(1, nodes + 1, device=device).float() + 0.01).floor()
    deep = torch.randint(1, depth + 1, (tables, count, 1), device=device)
    cut = cut.view(tables, count, nodes).masked_fill(level >= deep, torch.inf).flatten(1)
    start = torch.arange(count, device=device) * nodes
    at = torch.zeros(tables, rows, count, dtype=torch.long, device=device)
    for _ in range(depth):
        node = (start + at).flatten(1)
        value = v.gather(2, feature.gather(1, node).view_as(at))
        at = 2 * at + 1 + (value > cut.gather(1, node).view_as(at))
    fade = log_uniform(0.02, 3, tables, 1, 1, device=device)
    fade = torch.exp(-fade * torch.arange(count, device=device)[:, None])
    leaf = torch.randn(tables, count, nodes + 1, device=device) * fade
    return leaf.gather(2, (at - nodes).transpose(1, 2)).sum(1)


def unusual(v: Tensor, weight: Tensor) -> Tensor:
    """Return a score unlike the others: parity, nearest centre, fast waves, or noise: [B, N]."""
    tables, rows, _ = v.shape
    device = v.device
    few = pick(v, draw(weight, 3))
    parity = torch.sign(few).prod(2)
    centre = take_rows(few, torch.randint(0, rows, (tables, 12), device=device))
    near = torch.cdist(few, centre).argmin(2)
    cluster = torch.randn(tables, 12, device=device).gather(1, near)
    wave = torch.sin(few.sum(2) * log_uniform(3, 12, tables, 1, device=device))
    every = torch.stack([parity, cluster, wave, torch.randn_like(wave)], 2)
    return pick(every, torch.randint(0, 4, (tables, 1), device=device))[..., 0]


def risk_score(v: Tensor, columns: int) -> Tensor:
    """Draw a random function of the columns and of the hidden causes after them: [B, N]."""
    tables, _, width = v.shape
    device = v.device
    v = v.clamp(-4, 4)
    fade = torch.exp(
        -torch.arange(width, device=device) * log_uniform(0.03, 1.2, tables, 1, device=device)
    )
    weight = fade.gather(1, torch.rand(tables, width, device=device).argsort(1))
    weight = weight * torch.rand_like(weight)
    known = torch.arange(width, device=device) < columns
    weight = torch.where(known, weight, weight * log_uniform(0.005, 0.7, tables, 1, device=device))
    signed = (weight * torch.sign(torch.randn_like(weight)))[..., None]
    linear = (v @ signed)[..., 0]
    kind = torch.randint(0, len(ACTIVATIONS), (tables, 1, width), device=device)
    slope = log_uniform(0.5, 2.5, tables, 1, width, device=device)
    bent = activate(v * slope + torch.randn(tables, 1, width, device=device), kind)
    additive = (standard(bent) @ signed)[..., 0]
    some = weight + 1e-3 / width
    left, right = pick(v, draw(some, 6)), pick(v, draw(some, 6))
    products = (left * right * torch.randn(tables, 1, 6, device=device)).sum(2)
    matrix = weight[..., None] * torch.randn(tables, width, 16, device=device)
    matrix = matrix * log_uniform(0.5, 3, tables, 1, 1, device=device)
    inner = torch.tanh(v @ matrix + torch.randn(tables, 1, 16, device=device))
    network = (inner @ torch.randn(tables, 16, 1, device=device))[..., 0]
    parts = torch.stack([linear, additive, trees(v, some), products, network], 2)
    lean = constant((0.6, 0.3, 0.8, -0.7, 0.0), device)
    share = torch.softmax(2 * torch.randn(tables, 5, device=device) + lean, 1)
    plain = constant((1.0, 0.0, 0.0, 0.0, 0.0), device)
    share = torch.where(chance(0.15, tables, 1, device=device), plain, share)
    score = (standard(parts) * share[:, None]).sum(2)
    # every twentieth table is unlike the others
    return torch.where(chance(0.05, tables, 1, device=device), unusual(v, some), score)


def risks(score: Tensor, tested: Tensor) -> Tensor:
    """Turn scores into probabilities: weak and strong signals, rare and common outcomes."""
    tables = score.shape[0]
    device = score.device
    weak = log_uniform(0.1, 1.0, tables, 1, device=device)
    strong = log_uniform(0.7, 7.0, tables, 1, device=device)
    eta = score * torch.where(chance(0.35, tables, 1, device=device), weak, strong)
    floor = (4 / tested).clamp(0.01, 0.2)  # fewer tests: less rare, or no result is seen
    rare = floor * (0.4 / floor) ** torch.rand(tables, 1, device=device)
    mean = torch.where(
        chance(0.5, tables, 1, device=device), rare, uniform(0.05, 0.6, tables, 1, device=device)
    )
    mean = torch.where(chance(0.1, tables, 1, device=device), 1 - mean, mean)
    low, high = torch.full_like(mean, -60.0), torch.full_like(mean, 60.0)
    for _ in range(22):
        middle = (low + high) / 2
        under = torch.sigmoid(eta + middle).mean(1, True) < mean
        low, high = torch.where(under, middle, low), torch.where(under, high, middle)
    p = torch.sigmoid(eta + low)
    share = 0.3 * torch.rand(tables, 1, device=device)  # results that nothing explains
    share = share * chance(0.15, tables, 1, device=device)
    return p + share * (mean - p)


def testing(
    v: Tensor, columns: int, risk: Tensor, p: Tensor, y: Tensor, group: Tensor, other: Tensor
) -> tuple[Tensor, Tensor]:
    """Score every row for testing [B, N] and return the index of the policy [B]."""
    tables, rows, _ = v.shape
    device = v.device

    def column(low: float, high: float) -> Tensor:
        return log_uniform(low, high, tables, 1, device=device)

    index = torch.randint(0, columns, (tables, 3), device=device)
    index = torch.where(chance(0.1, tables, 3, device=device), 0, index)
    few = pick(v, index)
    used = torch.randn(tables, 1, 3, device=device) * chance(0.7, tables, 1, 3, device=device)
    rule = standard((few * used).sum(2))
    first = few[..., 0]
    old = risk + column(0.1, 2) * rule + column(0.05, 1) * torch.randn_like(risk)
    old = standard(old)
    kind = torch.randint(0, len(ACTIVATIONS), (tables, 1), device=device)
    bumpy = standard(activate(rule * column(0.5, 3), kind))
    hidden = v[:, :, columns] + column(0.05, 1) * 2 * (y - p)
    unrelated = torch.where(
        chance(0.5, tables, 1, device=device), other, standard(first.roll(1, 1))
    )
    every = [torch.zeros_like(old), rule, first, old, -old, bumpy, unrelated, standard(hidden)]
    every = torch.stack(every, 2)
    policy = choose(tuple(POLICIES.values()), tables, 2, device)
    slope = log_uniform(0.4, 8, tables, 1, 2, device=device)
    sharp = chance(0.3, tables, 1, 2, device=device)  # a cut-off
    both = pick(every, policy) * torch.where(sharp, 40.0, slope)
    site = (torch.special.ndtr(few[..., 1]) * 6).floor().long().clamp(0, 5)
    shift = torch.randn(tables, 6, device=device).gather(1, site)
    member = v[:, :, 0] > 0
    # two policies in one table: by group, by site, or by whom a row happens to meet
    met = torch.rand(tables, rows, device=device) < column(0.1, 0.6)
    mixture = torch.stack([torch.zeros_like(member), member, shift > 0, met], 2)
    by = choose((0.6, 0.16, 0.12, 0.12), tables, 1, device)[:, None].expand(-1, rows, 1)
    second = both[..., 1] + torch.randn(tables, 1, device=device)
    score = torch.where(mixture.gather(2, by)[..., 0], second, both[..., 0])
    capacity = column(0.3, 3) * chance(0.25, tables, 1, device=device)
    score = score + shift * capacity
    favour = torch.randn(tables, 1, device=device) * chance(0.6, tables, 1, device=device)
    score = score + member * favour * group[:, None]
    hole = torch.special.ndtr(few[..., 2]) < uniform(0.1, 0.5, tables, 1, device=device)
    score = score - 12.0 * (hole & chance(0.1, tables, 1, device=device))
    push = torch.randn(tables, 1, device=device) * chance(0.08, tables, 1, device=device)
    return score + push * hidden, policy[:, 0]


def with_holes(x: Tensor, v: Tensor, risk: Tensor) -> Tensor:
    """Remove values: at random, by their size, in blocks of columns; some become a code."""
    tables, rows, width = x.shape
    device = x.device
    rate = log_uniform(0.01, 0.6, tables, 1, width, device=device)
    rate = rate * chance(0.5, tables, 1, width, device=device)
    rate = rate * chance(0.35, tables, 1, 1, device=device)
    size = torch.sigmoid(v * torch.randn(tables, 1, width, device=device))
    missing = torch.rand_like(x) < 2 * rate * size
    blocks = torch.randint(2, 7, (tables, 1, 1), device=device)
    block = torch.arange(width, device=device) * blocks // width
    cause = torch.stack([risk, v[..., 0], v[..., -1]] * 2, 2)
    cause = cause * torch.randn(tables, 1, 6, device=device) + 0.5 * torch.randn_like(cause)
    gone = standard(cause) > uniform(-1, 2.5, tables, 1, 6, device=device)
    gone = gone & chance(0.5, tables, 1, 6, device=device)
    gone = gone & chance(0.2, tables, 1, 1, device=device)  # panels that were not ordered
    missing = missing | gone.gather(2, block.expand(tables, rows, width))
    coded = chance(0.08, tables, 1, 1, device=device) & chance(0.5, tables, 1, width, device=device)
    beyond = x.mean(1, True) + x.std(1, keepdim=True) * uniform(
        -6, 6, tables, 1, width, device=device
    )
    return torch.where(missing, torch.where(coded, beyond, torch.nan), x)


def simulate(shape: Shape, device: torch.device, tested: int | None = None) -> Batch:
    """Draw a batch of tables; `tested` fixes how many context rows were tested."""
    tables, context, query, columns, pool = shape
    rows = pool + query
    latent = causes(tables, rows, columns + 8, 3, device)
    lean = torch.randn(tables, 4, device=device).repeat_interleave(columns + 8, 1)
    index = (torch.rand(tables, latent.shape[2], device=device) + 0.3 * lean).argsort(1)
    latent = pick(latent, index[:, : columns + HIDDEN + 2])
    # repeated rows, now and then with the same result
    repeated = chance(0.1, tables, 1, device=device)
    number = torch.arange(rows, device=device).expand(tables, -1)
    distinct = 1 + (rows - 1) * uniform(0.1, 0.9, tables, 1, device=device)
    source = (torch.rand(tables, rows, device=device) * distinct).long()
    source = torch.where(repeated, source, number)
    x = take_rows(columns_as_recorded(latent[:, :, : columns + HIDDEN]), source)
    latent = take_rows(latent, source)
    group = chance(0.7, tables, device=device)
    member = latent[:, :, 0] > uniform(-1.2, 1.2, tables, 1, device=device)
    first = torch.arange(x.shape[2], device=device) == 0
    x = torch.where(first & group[:, None, None], member[..., None].float(), x)
    v = standard(x)
    node = chance(0.2, tables, 1, device=device)  # the result is one of the causes itself
    score = standard(torch.where(node, latent[:, :, -1], risk_score(v, columns)))
    if tested is None:
        most = (0.6 * uniform(0, 1, tables, 1, device=device) * context).clamp(max=512)
        spare = most * ~chance(0.1, tables, 1, device=device)
        count = context - spare.long()
    else:
        count = torch.full((tables, 1), tested, device=device)
    p = risks(score, count)
    luck = torch.rand(tables, rows, device=device)
    same = repeated & chance(0.5, tables, 1, device=device)
    luck = torch.where(same, luck.gather(1, source), luck)
    y = (luck < p).float()
    wish, policy = testing(v, columns, score, p, y, group, latent[:, :, -2])
    luck = torch.rand(tables, pool, device=device).clamp(1e-6, 1 - 1e-6)
    order = (wish[:, :pool] + torch.logit(luck)).argsort(1, descending=True)
    place = number[:, :pool]
    key = torch.where(place < count, place - pool, torch.rand(tables, pool, device=device))
    chosen = order.gather(1, key.argsort(1)[:, :context])
    chosen = torch.cat([chosen, number[:, pool:]], 1)
    x = with_holes(x[:, :, :columns], v[:, :, :columns], score)
    seen = number[:, : context + query] < count
    y, p = y.gather(1, chosen), p.gather(1, chosen)
    code = torch.where(seen, y.long(), UNTESTED)
    code = torch.where(number[:, : context + query] < context, code, QUERY)
    positive = (y * seen).sum(1)
    weight = ((positive > 0) & (positive < count[:, 0])).float()
    return Batch(
        cells=encode(take_rows(x, chosen), context),
        code=code,
        group=group * ~chance(0.15, tables, device=device) * 1.0,
        weight=weight,
        risk=torch.where(same, y, p)[:, context:],
        result=y[:, context:],
        tag=torch.randn(tables, 1, columns, 16, device=device),
        policy=policy,
    )
