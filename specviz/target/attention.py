"""Our attention function, which a model runs instead of its own.

It takes the mask as given, with grouped queries and without repeating keys, and is the one place
that decides how masked attention is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from specviz.errors import SpecVizError

NAME = "specviz_rows"
UNSUPPORTED = ("softcap", "s_aux", "sinks", "position_bias")

_probe: ContextVar[AttentionProbe | None] = ContextVar("probe", default=None)
_blocks: ContextVar[Sequence[Block]] = ContextVar("blocks", default=())


@dataclass(frozen=True)
class Block:
    """Rows that see no columns but those of these slices."""

    rows: slice
    columns: tuple[slice, ...]

    def of_columns(self, tensor: Tensor, dim: int) -> Tensor:
        """Return what a tensor with all columns along `dim` holds of the block's."""
        parts = [tensor.narrow(dim, columns.start, columns.stop - columns.start) for columns in self.columns]
        return torch.cat(parts, dim=dim)


@dataclass
class AttentionProbe:
    """Computes the weights of one row again, layer by layer, and checks them against what the layer gave.

    Over all layers and heads, `mean` and `largest` are the weights (B, C), and `error` (B,) is the largest difference
    between the layers' output and that of the weights, relative to the largest value. A weight is exactly 0 where
    the mask hides the column; a small `error` says that the layers used these weights and no others.
    """

    row: int
    means: list[Tensor] = field(default_factory=list)
    largest: Tensor | None = None
    error: Tensor | None = None

    @property
    def mean(self) -> Tensor:
        return torch.stack(self.means).mean(dim=0)

    def observe(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float | None, given: Tensor
    ) -> None:
        """Look at one layer; shapes are those of `attend_rows`, `given` (B, Hq, R, D) is its output."""
        n_groups = query.shape[1] // key.shape[1]
        keys, values = (part.float().repeat_interleave(n_groups, dim=1) for part in (key, value))  # (B, Hq, C, D)
        asked = query[:, :, self.row].float() * (scaling if scaling is not None else query.shape[-1] ** -0.5)
        scores = torch.einsum("bhd,bhcd->bhc", asked, keys)
        weights = scores.masked_fill(~mask[:, :, self.row], float("-inf")).softmax(dim=-1)  # (B, Hq, C)
        expected = torch.einsum("bhc,bhcd->bhd", weights, values)
        error = (given[:, :, self.row].float() - expected).abs().amax(dim=(1, 2)) / expected.abs().amax(dim=(1, 2))
        self.means.append(weights.mean(dim=1))
        highest = weights.amax(dim=1)
        self.largest = highest if self.largest is None else torch.maximum(self.largest, highest)
        self.error = error if self.error is None else torch.maximum(self.error, error)


@contextmanager
def probed(row: int | None) -> Iterator[AttentionProbe | None]:
    """Observe the attention of one row in the passes inside; None observes nothing."""
    probe = None if row is None else AttentionProbe(row)
    token = _probe.set(probe)
    try:
        yield probe
    finally:
        _probe.reset(token)


@contextmanager
def in_blocks(blocks: Sequence[Block]) -> Iterator[None]:
    """Attend block by block in the passes inside: what no row of a block sees is not computed, only to be hidden.

    The blocks' rows are all rows in their order. The result is the same; each block still obeys the mask.
    """
    token = _blocks.set(blocks)
    try:
        yield
    finally:
        _blocks.reset(token)


def register_attention() -> str:
    """Make our attention known to transformers and return its name; harmless when repeated."""
    AttentionInterface.register(NAME, attend_rows)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    return NAME


def attend_rows(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attend from query (B, Hq, R, D) to key and value (B, Hkv, C, D) under a boolean mask (B, 1, R, C).

    Returns (B, R, Hq, D). Without a mask the rows are causal. Raises SpecVizError for models whose
    attention has terms beyond scaled dot products, because leaving one out would be silent.
    """
    extra = [name for name in UNSUPPORTED if kwargs.get(name) is not None]
    if extra:
        raise SpecVizError(f"This model's attention uses {', '.join(extra)}, which SpecViz does not compute.")
    blocks = _blocks.get()
    if blocks and attention_mask is not None:
        output = torch.cat([_attend_block(query, key, value, attention_mask, scaling, own) for own in blocks], dim=2)
    else:
        output = _attend(query, key, value, attention_mask, scaling)
    probe = _probe.get()
    if probe is not None and attention_mask is not None:
        probe.observe(query, key, value, attention_mask, scaling, output)
    return output.transpose(1, 2).contiguous(), None


def _attend_block(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float | None, block: Block
) -> Tensor:
    keys, values = block.of_columns(key, 2), block.of_columns(value, 2)
    return _attend(query[:, :, block.rows], keys, values, block.of_columns(mask[:, :, block.rows], 3), scaling)


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float | None) -> Tensor:
    """Return (B, Hq, R, D)."""
    if query.is_cuda and mask is not None and query.shape[1] != key.shape[1]:
        return _attend_folded(query, key, value, mask, scaling)
    return F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        is_causal=mask is None and query.shape[2] > 1,
        scale=scaling,
        enable_gqa=query.shape[1] != key.shape[1],
    )


def _attend_folded(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float | None) -> Tensor:
    """Fold the query groups into the row dimension: CUDA's masked kernels take no grouped queries."""
    n_batch, n_heads, n_rows, width = query.shape
    n_groups = n_heads // key.shape[1]
    folded = query.reshape(n_batch, key.shape[1], n_groups * n_rows, width)  # (B, Hkv, G*R, D)
    output = F.scaled_dot_product_attention(folded, key, value, attn_mask=mask.repeat(1, 1, n_groups, 1), scale=scaling)
    return output.reshape(n_batch, n_heads, n_rows, width)
