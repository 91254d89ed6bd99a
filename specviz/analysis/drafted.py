"""Everything that a step drafted, sent to verification or not, with the links between parents and children."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specviz.trace import N_CANDIDATES, StepTrace


@dataclass(frozen=True)
class Drafted:
    """One drafted token. `place` is its index in the list and `parent` another's, 0 being the root.

    `parent` is None where the record does not tell it; `node` is None where the token was not sent.
    """

    place: int
    parent: int | None
    depth: int
    token_id: int
    piece: str
    prob: float
    score: float
    node: int | None


def list_drafted(step: StepTrace) -> list[Drafted]:
    """Return the root, the other nodes in their order, and the recorded unsent drafts, best first.

    A node without a score has its path's: the sum of the logarithms of the draft's probabilities.
    """
    drafted: list[Drafted] = []
    for node in step.nodes:
        parent = drafted[node.parent] if node.parent >= 0 else None
        prob = 1.0 if node.draft_prob is None else node.draft_prob
        score = node.score if node.score is not None else (parent.score if parent else 0.0) + _log(prob)
        drafted.append(Drafted(node.idx, node.parent, node.depth, node.token_id, node.piece, prob, score, node.idx))
    n_nodes = len(drafted)
    for unsent in step.candidates or ():
        behind = unsent.parent if unsent.parent >= 0 else None
        if behind is None and unsent.behind is not None:
            behind = n_nodes + unsent.behind
        prob = 0.0 if unsent.draft_prob is None else unsent.draft_prob
        score = -math.inf if unsent.score is None else unsent.score
        drafted.append(Drafted(len(drafted), behind, unsent.depth, unsent.token_id, unsent.piece, prob, score, None))
    return drafted


def is_complete(step: StepTrace) -> bool:
    """Return whether the record lists every draft of the step."""
    return step.candidates is not None and len(step.candidates) < N_CANDIDATES


def rank_drafted(drafted: Sequence[Drafted]) -> list[Drafted]:
    """Return drafts without the root, best score first; of equal scores those that were sent come first, in order."""
    return sorted((token for token in drafted if token.depth > 0), key=lambda token: (-token.score, token.place))


def child_ranks(drafted: Sequence[Drafted]) -> dict[int, int]:
    """Return, for each place whose parent is known, its rank among the parent's drafted children (0 is best)."""
    ranks: dict[int, int] = {}
    n_before: dict[int, int] = {}
    for token in sorted(drafted, key=lambda token: (-token.prob, token.place)):
        if token.parent is not None:
            ranks[token.place] = n_before.get(token.parent, 0)
            n_before[token.parent] = ranks[token.place] + 1
    return ranks


def _log(prob: float) -> float:
    return math.log(prob) if prob > 0 else -math.inf
