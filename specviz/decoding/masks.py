"""The attention mask of a pass: row = query, column = key, True = may attend.

Letters: B batch, R rows, C columns, S soft-prompt rows, P cached prefix, T nodes, K added rows a group.
The part among the rows of a pass depends on its layout alone, so it is built once and reused.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from specviz.decoding.layout import RowLayout
from specviz.target.cache import RowCache

MAX_KEPT_ROWS = 512  # a prefill's block is large and never comes again


class MaskBuilder:
    """Builds the masks of a run and remembers the blocks that come again."""

    def __init__(self) -> None:
        self._blocks: dict[RowLayout, Tensor] = {}

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

    def _block(self, layout: RowLayout) -> Tensor:
        block = self._blocks.get(layout)
        if block is None:
            block = pass_block(layout)
            if layout.n_rows <= MAX_KEPT_ROWS:
                self._blocks[layout] = block
        return block


def ancestors(parents: Sequence[int]) -> Tensor:
    """Return (T, T): whether column is row itself or one of its ancestors.

    ::

        parents -1 0 0 1:   1 . . .
                            1 1 . .
                            1 . 1 .
                            1 1 . 1
    """
    table = torch.tensor(parents)
    seen = torch.eye(len(parents), dtype=torch.bool)
    rows, above = torch.arange(len(parents)), table
    while bool((above >= 0).any()):
        rows, above = rows[above >= 0], above[above >= 0]
        seen[rows, above] = True
        above = table[above]
    return seen


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
    return torch.block_diag(*[one] * n_groups).bool()
