"""The attention mask of a pass: row = query, column = key, True = may attend.

Letters: B batch, R rows, C columns, S soft-prompt rows, P cached prefix, T nodes, K added rows a group.
The part among the rows of a pass depends on its layout alone, so it is built once and reused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from specviz.decoding.layout import RowLayout
from specviz.target.cache import RowCache

MAX_KEPT_BLOCKS = 64  # a dynamic tree seldom comes again, and a run may be long


class MaskBuilder:
    """Builds the masks of a run and remembers the blocks that came last: a chain's or a slot tree's come again."""

    def __init__(self) -> None:
        self._block = lru_cache(MAX_KEPT_BLOCKS)(pass_block)

    def build(self, layouts: Sequence[RowLayout], cache: RowCache, device: torch.device) -> Tensor:
        """Return the mask (B, 1, R, C) of one pass; rows of padding see themselves alone."""
        n_rows = max(layout.n_rows for layout in layouts)
        mask = torch.zeros(len(layouts), 1, n_rows, cache.base + n_rows, dtype=torch.bool)
        for batch_row, layout in enumerate(layouts):
            rows = mask[batch_row, 0]
            rows[: layout.n_rows, cache.n_soft : cache.n_soft + cache.lengths[batch_row]] = True
            rows[layout.n_real : layout.n_rows, : cache.n_soft] = True
            rows[: layout.n_rows, cache.base : cache.base + layout.n_rows] = self._block(layout)
            rows[:, cache.base :].fill_diagonal_(True)
        return mask.to(device, non_blocking=True)


def ancestors(parents: Sequence[int]) -> Tensor:
    """Return (T, T): whether column is row itself or one of its ancestors; nodes hang under one root, node 0.

    ::

        parents -1 0 0 1:   1 . . .
                            1 1 . .
                            1 . 1 .
                            1 1 . 1

    Every product doubles how far up a node sees, so a tree of depth d takes log2(d) of them.
    """
    seen = torch.eye(len(parents))
    seen[torch.arange(1, len(parents)), torch.tensor(parents[1:], dtype=torch.long)] = 1
    while not seen[:, 0].all():  # the root is the farthest ancestor of all
        seen = (seen @ seen).clamp_(max=1)
    return seen.bool()


def pass_block(layout: RowLayout) -> Tensor:
    """Return (R, R): which rows of a pass see which rows of the same pass.

    A root with one draft and two causal slots behind each::

        root    1 . . . . .
        draft   1 1 . . . .
        slot r1 1 . 1 . . .
        slot r2 1 . 1 1 . .
        slot d1 1 1 . . 1 .
        slot d2 1 1 . . 1 1
    """
    n_real, k = layout.n_real, layout.k
    block = torch.zeros(layout.n_rows, layout.n_rows, dtype=torch.bool)
    n_before = layout.n_pending - 1
    block[:n_before, :n_before] = torch.ones(n_before, n_before, dtype=torch.bool).tril()
    block[n_before:, :n_before] = True
    nodes = ancestors(layout.parents)  # (T, T)
    block[n_before:n_real, n_before:n_real] = nodes
    if layout.groups:
        carried = nodes[torch.tensor(layout.groups)]  # (G, T)
        block[n_real:, n_before:n_real] = carried.repeat_interleave(k, dim=0)
        block[n_real:, n_real:] = _group_block(len(layout.groups), k, layout.causal_slots)
    return block


def _group_block(n_groups: int, k: int, causal: bool) -> Tensor:
    """Return (G*K, G*K): a group sees itself alone, causally or on the diagonal only (LA seed 3.1)."""
    one = torch.ones(k, k, dtype=torch.bool).tril() if causal else torch.eye(k, dtype=torch.bool)
    blocks = torch.zeros(n_groups, k, n_groups, k, dtype=torch.bool)
    blocks.diagonal(dim1=0, dim2=2)[:] = one[..., None]  # (K, K, G)
    return blocks.flatten(2).flatten(0, 1)
