"""The draft tree: token ids with parents. Node 0 is the root, the last committed token."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from specviz.mask_trace import depths_of


@dataclass(frozen=True)
class DraftTree:
    """T nodes, parents before children; `parents[0]` is -1.

    `draft_probs` are the draft's probabilities of a token given its parent, `scores` the
    cumulative log-probabilities that trees are ranked by; both are 1 and 0 for the root.
    """

    token_ids: tuple[int, ...]
    parents: tuple[int, ...] = (-1,)
    draft_probs: tuple[float, ...] = (1.0,)
    scores: tuple[float, ...] = (0.0,)

    def __len__(self) -> int:
        return len(self.token_ids)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Depth of every node; the root's is 0."""
        return tuple(depths_of(self.parents))

    @cached_property
    def child_of(self) -> dict[tuple[int, int], int]:
        """Map (node, token id) to the child that carries this token."""
        return {(self.parents[node], self.token_ids[node]): node for node in range(1, len(self))}

    @cached_property
    def inner_nodes(self) -> tuple[int, ...]:
        """The nodes that have children, in order."""
        return tuple(sorted(set(self.parents[1:])))
