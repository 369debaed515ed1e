"""The propensity model of DCEM: who gets tested, given features and group.

Its input is `[x, x * a_1, ..., x * a_(G-1), a_1, ..., a_(G-1)]` with indicators a_g of every group but
the first: the policy of each group may use the features in its own way. With two groups these are
the published 2d + 1 columns. Only the log-odds of being tested are kept.
"""

from __future__ import annotations

import torch
from torch import Tensor


def with_group(X: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """Features with group indicators and their interactions: `[..., N, G d + G - 1]`.

    `X` is `[N, d]` or `[M, N, d]`; `group` holds codes of the same leading shape.
    """
    indicators = [(group == g).to(X.dtype).unsqueeze(-1) for g in range(1, n_groups)]
    if X.dim() == 2 and group.dim() == 2:
        X = X.expand(group.shape[0], -1, -1)
    return torch.cat([X, *(X * a for a in indicators), *indicators], dim=-1)
