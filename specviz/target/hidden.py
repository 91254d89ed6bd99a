"""What a pass of the target leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from specviz.target.attention import AttentionProbe
from specviz.target.experts import LayerRouting


@dataclass(frozen=True)
class Hidden:
    """What a pass leaves behind.

    `last` is the final normed state (B, R, H); `features` are the residual streams that enter the
    layers a drafter named, concatenated from low to high (B, R, 3H), or None where it named none;
    `mask` (B, 1, R, C) is the mask that the layers used (those with full attention, where a model
    has layers of both kinds); `routing` holds the decisions of a target with experts, layer by layer.
    """

    last: Tensor
    mask: Tensor
    features: Tensor | None = None
    routing: tuple[LayerRouting, ...] = ()
    attention: AttentionProbe | None = None
