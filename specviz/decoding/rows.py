"""The rows of one pass as tensors: inputs, positions and mask for every sequence.

Letters: B sequences, R rows, C columns, H hidden.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.decoding.layout import RowLayout
from specviz.decoding.masks import MaskBuilder
from specviz.decoding.sequence import Sequence
from specviz.drafters.base import Proposal
from specviz.target.cache import RowCache
from specviz.target.model import Target


@dataclass(frozen=True)
class Rows:
    """Inputs (B, R, H), positions (B, R), mask (B, 1, R, C), and which row is what for each sequence."""

    embeds: Tensor
    positions: Tensor
    mask: Tensor
    layouts: tuple[RowLayout, ...]

    @property
    def n_rows(self) -> int:
        return self.embeds.shape[1]


def build_rows(
    target: Target,
    masks: MaskBuilder,
    cache: RowCache,
    sequences: SequenceOf[Sequence],
    proposals: SequenceOf[Proposal],
) -> Rows:
    """Lay out a pass: committed rows, drafted nodes, added rows; shorter sequences are padded at the end."""
    layouts = tuple(
        proposal.layout(sequence.n_pending) for sequence, proposal in zip(sequences, proposals, strict=True)
    )
    n_rows = max(layout.n_rows for layout in layouts)
    embeds = [
        _pad(_inputs(target, sequence, proposal), n_rows)
        for sequence, proposal in zip(sequences, proposals, strict=True)
    ]
    positions = [_positions(layout, cache.lengths[i], n_rows, target) for i, layout in enumerate(layouts)]
    return Rows(
        torch.stack(embeds),
        torch.tensor(positions, device=target.device),
        masks.build(layouts, cache, target.device),
        layouts,
    )


def _inputs(target: Target, sequence: Sequence, proposal: Proposal) -> Tensor:
    """Return the inputs (R, H) of one sequence's rows."""
    real = target.embed([*sequence.pending_ids, *proposal.tree.token_ids[1:]])
    if proposal.added is None:
        return real
    n_groups = len(proposal.layout(sequence.n_pending).groups)
    added = proposal.added.embeds.expand(n_groups, -1, -1).flatten(0, 1)  # (G*K, H)
    return torch.cat([real, added.to(real.dtype)])


def _pad(inputs: Tensor, n_rows: int) -> Tensor:
    return torch.nn.functional.pad(inputs, (0, 0, 0, n_rows - inputs.shape[0]))


def _positions(layout: RowLayout, n_cached: int, n_rows: int, target: Target) -> list[int]:
    """Return the rows' positions; added rows near the end of the context stay inside it, they only propose."""
    last = target.n_positions - 1
    own = [min(position, last) for position in layout.positions(n_cached)]
    return own + [0] * (n_rows - len(own))
