"""Our attention function, which a model runs instead of its own.

It takes the mask as given, with grouped queries and without repeating keys, and is the one place
that decides how masked attention is computed.
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from specviz.errors import SpecVizError

NAME = "specviz_rows"
UNSUPPORTED = ("softcap", "s_aux", "sinks", "position_bias")


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
    if query.is_cuda and attention_mask is not None and query.shape[1] != key.shape[1]:
        output = _attend_folded(query, key, value, attention_mask, scaling)
    else:
        output = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=attention_mask,
            is_causal=attention_mask is None and query.shape[2] > 1,
            scale=scaling,
            enable_gqa=query.shape[1] != key.shape[1],
        )
    return output.transpose(1, 2).contiguous(), None


def _attend_folded(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float | None) -> Tensor:
    """Fold the query groups into the row dimension: CUDA's masked kernels take no grouped queries."""
    n_batch, n_heads, n_rows, width = query.shape
    n_groups = n_heads // key.shape[1]
    folded = query.reshape(n_batch, key.shape[1], n_groups * n_rows, width)  # (B, Hkv, G*R, D)
    output = F.scaled_dot_product_attention(folded, key, value, attn_mask=mask.repeat(1, 1, n_groups, 1), scale=scaling)
    return output.reshape(n_batch, n_heads, n_rows, width)
