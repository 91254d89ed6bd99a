"""The routing of a target that is itself a mixture of experts, as its own router modules computed it.

transformers' routers (Qwen3-MoE, OLMoE, Mixtral and their kin) return (logits, weights, indices) for
every row; hooks keep these outputs of a pass, and nothing is computed unless a record asks.

Letters: B batch, R rows of a pass, E experts, K selected.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class LayerRouting:
    """One layer's decisions: router logits (..., E), weights (..., K) as used, and the selected experts (..., K)."""

    layer: int
    logits: Tensor
    weights: Tensor
    selected: Tensor

    def batch_row(self, row: int) -> LayerRouting:
        return LayerRouting(self.layer, self.logits[row], self.weights[row], self.selected[row])


def find_routers(base: Any) -> dict[int, nn.Module]:
    """Return the router module of each layer that has one."""
    found: dict[int, nn.Module] = {}
    for layer, block in enumerate(getattr(base, "layers", ())):
        for module in block.modules():
            if type(module).__name__.lower().endswith("topkrouter"):
                found[layer] = module
    return found


@contextmanager
def captured_routing(routers: dict[int, nn.Module], n_batch: int) -> Iterator[list[LayerRouting]]:
    """Collect the routings (B, R, ...) of one pass."""
    captured: list[LayerRouting] = []

    def keep(layer: int, outputs: Any) -> None:
        if isinstance(outputs, tuple) and len(outputs) == 3:
            captured.append(LayerRouting(layer, *(output.reshape(n_batch, -1, output.shape[-1]) for output in outputs)))

    with ExitStack() as hooks:
        for layer, router in routers.items():
            handle = router.register_forward_hook(lambda _module, _inputs, outputs, at=layer: keep(at, outputs))
            hooks.callback(handle.remove)
        yield captured
