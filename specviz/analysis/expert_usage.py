"""Which experts a site uses, and how evenly: over a run, and pooled over runs.

The seed's claim (ConFu, section 3.2) is that routing changes with the context. Nothing in its loss balances the
experts, so they may also collapse onto one: the usage entropy says which of both happened.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from specviz.trace import RunTrace


class ExpertUsage(BaseModel):
    """What the routings of one site used: `weights` holds a sum for each expert, each routing adds 1 in all."""

    model_config = ConfigDict(frozen=True)

    n_routings: int
    weights: tuple[float, ...]

    @property
    def shares(self) -> list[float]:
        """Each expert's part of all that was used; the parts sum to 1."""
        return [weight / self.n_routings for weight in self.weights]

    @property
    def entropy(self) -> float:
        """Entropy of the shares in nat: 0 where one expert does all, log(number of experts) where all do the same."""
        return -sum(share * math.log(share) for share in self.shares if share > 0)

    @property
    def n_effective(self) -> float:
        """exp(entropy): so many experts, used evenly, have this entropy."""
        return math.exp(self.entropy)


def count_experts(run: RunTrace) -> dict[str, ExpertUsage]:
    """Count what each site of a run used; empty where no step routed."""
    found: dict[str, list[ExpertUsage]] = {}
    for step in run.steps:
        for routing in step.routing:
            weights = [0.0] * len(routing.probabilities)
            for expert, weight in zip(routing.selected, routing.weights, strict=True):
                weights[expert] = weight / sum(routing.weights)
            found.setdefault(routing.site, []).append(ExpertUsage(n_routings=1, weights=tuple(weights)))
    return {site: pool_usage(usages) for site, usages in found.items()}


def pool_usage(usages: Iterable[ExpertUsage]) -> ExpertUsage:
    """Sum usages of one site."""
    own = list(usages)
    return ExpertUsage(
        n_routings=sum(usage.n_routings for usage in own),
        weights=tuple(map(sum, zip(*(usage.weights for usage in own), strict=True))),
    )


def context_information(usages: Iterable[ExpertUsage]) -> float:
    """Return the mutual information of context and expert in nat, one usage a context.

    0 where every context uses the experts alike; at most log(number of experts), where the context decides the expert.
    """
    own = list(usages)
    whole = pool_usage(own)
    return whole.entropy - sum(usage.n_routings * usage.entropy for usage in own) / whole.n_routings
