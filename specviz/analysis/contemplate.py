"""What each contemplate token "thinks" (the target's head top five there) beside what followed.

A contemplate token stands one place behind its node, so the first token that it can speak of is the one that follows
its node (offset 1). Nothing trains it to speak through the head: the table shows which following tokens it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specviz.trace import RunTrace, TokenTrace, TopToken

N_FOLLOWING = 6


@dataclass(frozen=True)
class Thought:
    """The top five at the contemplate token of a reached node, and the tokens that followed that node.

    `named[i]` is the rank (0 is best) in the top five of the i-th following token; None where it is not there.
    """

    step: int
    node: int
    top5: tuple[TopToken, ...]
    following: tuple[TokenTrace, ...]
    named: tuple[int | None, ...]


def list_thoughts(run: RunTrace) -> list[Thought]:
    """Return the thoughts at every reached node that carried a contemplate token, in order."""
    answer = run.answer
    thoughts, n_before = [], 0
    for step in run.steps:
        for place, node_idx in enumerate([0, *step.accepted]):
            node = next((node for node in step.nodes if node.idx == node_idx), None)
            if node is not None and node.contemplate_top5:
                following = answer[n_before + place : n_before + place + N_FOLLOWING]
                thoughts.append(_think(step.index, node.idx, node.contemplate_top5, following))
        n_before += len(step.committed)
    return thoughts


def count_named(thoughts: Sequence[Thought]) -> list[tuple[int, int]]:
    """Return, for each offset from 1 on, (how many thoughts name that following token, of how many)."""
    counts = []
    for offset in range(N_FOLLOWING):
        reaching = [thought for thought in thoughts if len(thought.named) > offset]
        counts.append((sum(thought.named[offset] is not None for thought in reaching), len(reaching)))
    return counts


def _think(step: int, node: int, top5: Sequence[TopToken], following: Sequence[TokenTrace]) -> Thought:
    ranks = {token.token_id: rank for rank, token in enumerate(top5)}
    named = tuple(ranks.get(token.token_id) for token in following)
    return Thought(step, node, tuple(top5), tuple(following), named)
