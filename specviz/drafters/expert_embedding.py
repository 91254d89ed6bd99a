"""An embedding that is a mixture of experts (ConFu seed, design 2): softmax over all, then the best K, then their sum.

Letters: E experts, K selected, H width of the embedding, F width of the router's input.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from specviz.trace import RoutingTrace


@dataclass(frozen=True)
class ExpertConfig:
    """How many experts there are, how many are selected, and whether their weights are made to sum to one."""

    n_experts: int = 8
    n_selected: int = 2
    renormalise: bool = True


@dataclass(frozen=True)
class Routing:
    """Probabilities (..., E) over all experts, the selected (..., K) best first, and their weights (..., K) as used."""

    probabilities: Tensor
    selected: Tensor
    weights: Tensor


class ExpertEmbedding(nn.Module):
    """E learned vectors (E, H) and a linear router from F."""

    def __init__(self, config: ExpertConfig, input_size: int, embedding_size: int) -> None:
        super().__init__()
        self.config = config
        self.router = nn.Linear(input_size, config.n_experts, bias=False)
        self.experts = nn.Parameter(torch.empty(config.n_experts, embedding_size))

    def route(self, state: Tensor) -> Routing:
        """Route by hidden states (..., F)."""
        return choose_experts(self.router(state).float(), self.config.n_selected, self.config.renormalise)

    def uniform(self) -> Routing:
        """Return the routing that mixes all experts alike: the first round's, and the one without a router."""
        n_experts = self.config.n_experts
        even = torch.full((n_experts,), 1 / n_experts, device=self.experts.device)
        return Routing(even, torch.arange(n_experts, device=even.device), even)

    def mix(self, routing: Routing) -> Tensor:
        """Return the embeddings (..., H) of a routing."""
        weights = routing.weights.to(self.experts.dtype)[..., None, :]
        return (weights @ self.experts[routing.selected]).squeeze(-2)


def choose_experts(logits: Tensor, n_selected: int, renormalise: bool) -> Routing:
    """Select from router logits (..., E): softmax over all experts first, then the top K; equal ones by index."""
    probabilities = logits.softmax(dim=-1)
    selected = probabilities.sort(descending=True, stable=True).indices[..., :n_selected]
    weights = probabilities.gather(-1, selected)
    return Routing(probabilities, selected, weights / weights.sum(dim=-1, keepdim=True) if renormalise else weights)


def routing_trace(site: str, routing: Routing, node: int | None = None) -> RoutingTrace:
    """Return a routing as plain values; one wait for the device."""
    n_experts, n_selected = len(routing.probabilities), len(routing.selected)
    values = torch.cat([routing.probabilities, routing.selected.float(), routing.weights.float()]).tolist()
    return RoutingTrace(
        site=site,
        node=node,
        probabilities=values[:n_experts],
        selected=[int(expert) for expert in values[n_experts : n_experts + n_selected]],
        weights=values[n_experts + n_selected :],
    )
