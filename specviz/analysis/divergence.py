"""How far the draft's distribution lies from the target's, by depth: whether errors grow along a draft."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specviz.trace import NodeTrace, StepTrace


@dataclass(frozen=True)
class DepthDivergence:
    """Means over the reached nodes of one depth where the draft's distribution was recorded.

    `kl` is KL(target || draft) in nats, renormalised over the draft vocabulary; `outside` is the target's mass
    outside of it; `agree` is the share of nodes at which both have the same favourite.
    """

    depth: int
    n_nodes: int
    kl: float
    outside: float
    agree: float


def diverge_by_depth(steps: Iterable[StepTrace]) -> list[DepthDivergence]:
    """Average the divergence after the reached nodes of each depth, the root's being 0."""
    by_depth: dict[int, list[NodeTrace]] = {}
    for node in (node for step in steps for node in step.nodes):
        if node.next is not None and node.next.kl is not None:
            by_depth.setdefault(node.depth, []).append(node)
    return [_average(depth, nodes) for depth, nodes in sorted(by_depth.items())]


def _average(depth: int, nodes: list[NodeTrace]) -> DepthDivergence:
    n = len(nodes)
    after = [node.next for node in nodes if node.next is not None]
    favourites = [(said.draft_top5 or [], said.target_top5) for said in after]
    n_agreeing = sum(bool(draft and target) and draft[0].token_id == target[0].token_id for draft, target in favourites)
    return DepthDivergence(
        depth=depth,
        n_nodes=n,
        kl=sum(said.kl or 0.0 for said in after) / n,
        outside=sum(said.outside_mass or 0.0 for said in after) / n,
        agree=n_agreeing / n,
    )
