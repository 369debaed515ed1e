"""The network: cells, then rows, then an answer.

Columns have no order. Every row attends to the context rows alone, so the answer for a row does
not depend on the other rows asked about.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

FEW = 40  # up to so many columns, a plain product is faster than the attention kernel


def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attend, by whichever way is faster for sequences of this length."""
    if query.shape[2] > FEW:
        return functional.scaled_dot_product_attention(query, key, value)
    return torch.softmax(query @ key.mT * query.shape[-1] ** -0.5, -1) @ value


def wide_linear(x: Tensor, linear: nn.Linear) -> Tensor:
    """Apply a layer to few features, filled up to 16: matrix units are slow on odd sizes."""
    more = -x.shape[-1] % 16
    weight = functional.pad(linear.weight, (0, more))
    return functional.linear(functional.pad(x, (0, more)), weight, linear.bias)


class Attend(nn.Module):
    """Add to each element of a sequence what it reads in the first elements."""

    def __init__(self, width: int, width_of_head: int) -> None:
        super().__init__()
        self.heads = max(1, width // width_of_head)
        self.norm = nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        nn.init.zeros_(self.out.weight)

    def forward(self, x: Tensor, context: int) -> Tensor:
        """Return x [sequences, length, width] after reading its first `context` elements."""
        a = self.norm(x)
        read = a[:, :context]
        parts = self.query(a), self.key(read), self.value(read)
        heads = [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts]
        return x + self.out(attention(*heads).transpose(1, 2).flatten(2))


class Think(nn.Module):
    """Add the output of a small network to each element."""

    def __init__(self, width: int, times: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, times * width)
        self.down = nn.Linear(times * width, width)
        nn.init.zeros_(self.down.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return x with the output added."""
        return x + self.down(functional.gelu(self.up(self.norm(x))))


class Network(nn.Module):
    """Answer for new rows of a table from its tested and untested rows."""

    def __init__(
        self, width: int = 96, wide: int = 256, cells: int = 3, rows: int = 6, marks: int = 3
    ) -> None:
        super().__init__()
        self.size = {"width": width, "wide": wide, "cells": cells, "rows": rows, "marks": marks}
        self.embed = nn.Linear(9, width)
        self.tag = nn.Linear(16, width, bias=False)
        self.code = nn.Linear(4, width, bias=False)
        self.group = nn.Parameter(torch.zeros(width))
        self.mark = nn.Parameter(0.3 * torch.randn(marks, width))
        self.down = nn.ModuleList(Attend(width, 32) for _ in range(cells))
        self.across = nn.ModuleList(Attend(width, 32) for _ in range(cells))
        self.think = nn.ModuleList(Think(width, 2) for _ in range(cells))
        self.widen = nn.Linear(marks * width, wide)
        self.row_code = nn.Linear(4, wide, bias=False)
        self.rows = nn.ModuleList(Attend(wide, 64) for _ in range(rows))
        self.row_think = nn.ModuleList(Think(wide, 4) for _ in range(rows))
        self.norm = nn.LayerNorm(wide)
        self.head = nn.Linear(wide, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.normal_(self.code.weight)
        nn.init.normal_(self.row_code.weight)

    def forward(
        self, cells: Tensor, code: Tensor, group: Tensor, tag: Tensor, context: int
    ) -> Tensor:
        """Return the log-odds [tables, rows after the context] for the parts of a `Batch`."""
        tables, rows, columns, _ = cells.shape
        kind = self.mark.dtype
        angle = cells[..., 1:2] * torch.pi
        waves = [f(k * angle) for k in (1, 2, 4) for f in (torch.sin, torch.cos)]
        seen = torch.cat([cells, *waves], -1).to(kind)
        x = wide_linear(seen, self.embed) + self.tag(tag.to(kind))
        first = x[:, :, :1] + group.to(kind)[:, None, None, None] * self.group
        x = torch.cat([first, x[:, :, 1:], self.mark.expand(tables, rows, -1, -1)], 2)
        what = (code[..., None] == torch.arange(4, device=code.device)).to(kind)
        x = x + self.code(what)[:, :, None]
        for down, across, think in zip(self.down, self.across, self.think, strict=True):
            x = down(x.transpose(1, 2).flatten(0, 1), context)
            x = x.unflatten(0, (tables, -1)).transpose(1, 2).flatten(0, 1)
            x = think(across(x, x.shape[1])).unflatten(0, (tables, rows))
        x = self.widen(x[:, :, columns:].flatten(2)) + self.row_code(what)
        for read, think in zip(self.rows, self.row_think, strict=True):
            x = think(read(x, context))
        return self.head(self.norm(x[:, context:]))[..., 0].float()
