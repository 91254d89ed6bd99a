"""The acceptance rule, one for every method.

At each reached node the target chooses its own token y; if a child carries y the walk descends,
else y is emitted and the walk ends. What is emitted is always the target's own choice, so the output
law is the target's, and a child is accepted with exactly the target's probability of it
(for deterministically chosen children this equals the rule of EAGLE-2, `evaluate_posterior`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specviz.decoding.tree import DraftTree


@dataclass(frozen=True)
class Verdict:
    """The accepted nodes in order, the root not among them, and the target's extra token."""

    accepted: tuple[int, ...]
    extra_id: int
    is_correction: bool

    @property
    def last_node(self) -> int:
        """The node at which the walk ended; 0 is the root."""
        return self.accepted[-1] if self.accepted else 0


def verify(tree: DraftTree, choose: Callable[[int], int]) -> Verdict:
    """Walk from the root along the target's choices; `choose(node)` is its token after that node."""
    accepted: list[int] = []
    node = 0
    token_id = choose(node)
    while (child := tree.child_of.get((node, token_id))) is not None:
        accepted.append(child)
        node = child
        token_id = choose(node)
    return Verdict(tuple(accepted), token_id, is_correction=node in tree.inner_nodes)
