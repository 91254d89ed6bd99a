"""Other trees out of the drafts that a step recorded."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specviz.analysis.drafted import Drafted, is_complete, list_drafted, rank_drafted
from specviz.sentence import Sentence, say
from specviz.trace import StepTrace

TIE = 1e-5  # 16 bits have many equal probabilities, and a record rounds: nearer scores than this are equal


class NotRecordedError(Exception):
    """The record does not hold what a question needs; `sentence` says it."""

    def __init__(self, sentence: Sentence) -> None:
        super().__init__(sentence)
        self.sentence = sentence


@dataclass(frozen=True)
class Change:
    """Other settings for one step; None leaves one as it was.

    `nodes` counts the root, `depth` is the deepest level, `top_k` the children of a node (for lookahead the
    candidates of a slot), `threshold` the least probability of a draft that is sent, or taken.
    """

    nodes: int | None = None
    depth: int | None = None
    top_k: int | None = None
    threshold: float | None = None


def prune_tree(step: StepTrace, change: Change, settings: dict[str, Any]) -> list[Drafted]:
    """Return the dynamic tree that a change would have sent, root first.

    The tree is the best-scored part of all drafts, so any budget of nodes can be cut out of the recorded ones. A
    shallower or narrower beam drafts a part of them; a deeper or wider one drafts what nobody recorded.
    """
    drafted = list_drafted(step)
    depth = settings.get("depth") or max(token.depth for token in drafted)
    top_k = settings.get("tree_top_k")
    if change.depth is not None and change.depth > depth:
        raise NotRecordedError(
            say("{n} levels were drafted; what a deeper one would hold is not in the record.", n=depth)
        )
    if change.top_k is not None and change.top_k > (top_k or 0):
        raise NotRecordedError(say("{n} children of a node were drafted; more are not in the record.", n=top_k))
    known, lost_below = drafted[1:], -math.inf
    if top_k is not None and change.top_k is not None and change.top_k < top_k:
        known, lost_below = _narrow_beam(drafted, change.top_k, top_k, change.depth or depth)
    known = [token for token in known if token.depth <= (change.depth or depth) and token.score >= lost_below]
    n_wanted = (change.nodes or len(step.nodes)) - 1
    if n_wanted > len(known) and not (is_complete(step) and lost_below == -math.inf):
        raise NotRecordedError(
            say("Only the best {n} drafts of such a tree can be told from the record.", n=len(known))
        )
    return [drafted[0], *rank_drafted(known)[:n_wanted]]


def _narrow_beam(drafted: Sequence[Drafted], top_k: int, top_k_then: int, depth: int) -> tuple[list[Drafted], float]:
    """Return the recorded drafts that a narrower beam makes too, and the score below which others may be lost.

    A level runs the best `top_k` of its candidates and takes as many children of each. A candidate that the wider
    beam did not run has unknown children, none of which would score more than it.
    """
    kept: list[Drafted] = []
    running, lost_below = [drafted[0]], -math.inf
    for level in range(1, depth + 1):
        ranked = rank_drafted([token for token in drafted if token.depth == level])
        children = [token for parent in running for token in _children_of(parent, ranked)[:top_k]]
        kept += children
        running = rank_drafted(children)[:top_k]
        run_then = {token.place for token in ranked[:top_k_then]}
        if level < depth:
            lost_below = max([lost_below, *(token.score for token in running if token.place not in run_then)])
    return kept, lost_below


def _children_of(parent: Drafted, ranked: Sequence[Drafted]) -> list[Drafted]:
    return [token for token in ranked if token.parent == parent.place]


def grow_slots(step: StepTrace, change: Change, settings: dict[str, Any]) -> list[Drafted]:
    """Return the lookahead tree that a change would have sent, root first: the most probable paths, one by one.

    Slots do not see each other's choices, so every node of a level continues with the same candidates.
    """
    k, n_candidates = settings.get("k"), settings.get("candidates")
    if change.depth is not None and change.depth > (k or 0):
        raise NotRecordedError(say("{n} slots spoke; what a further one would say is not in the record.", n=k))
    if change.top_k is not None and change.top_k > (n_candidates or 0):
        raise NotRecordedError(say("A slot had {n} candidates; more are not in the record.", n=n_candidates))
    drafted = list_drafted(step)
    choices, threshold = read_choices(drafted), change.threshold or 0.0
    allowed = [slot[: change.top_k] for slot in choices[: change.depth]]
    n_wanted = change.nodes or len(step.nodes)
    lost_below = -math.inf if is_complete(step) else min(token.score for token in drafted)
    paths = itertools.islice(_best_paths(drafted, allowed, threshold), n_wanted)
    tree = list(itertools.takewhile(lambda token: token.node is not None or token.score > lost_below, paths))
    if len(tree) < n_wanted and threshold <= _most_probable_unlisted(choices, lost_below, k or 0):
        raise NotRecordedError(say("Only the best {n} nodes of such a tree can be told from the record.", n=len(tree)))
    return tree


def _most_probable_unlisted(choices: Sequence[Sequence[Drafted]], lost_below: float, k: int) -> float:
    """Return the most that a candidate outside of the record can have, whatever its slot; -1 where all are in it.

    Behind the best path its score would be no more than the worst that is listed.
    """
    if lost_below == -math.inf:
        return -1.0
    best_path, most = 0.0, math.exp(lost_below)
    for slot in range(1, k):
        best_path += math.log(choices[slot - 1][0].prob) if slot <= len(choices) else 0.0
        most = max(most, math.exp(min(0.0, lost_below - best_path)))
    return most


def read_choices(drafted: Sequence[Drafted]) -> list[list[Drafted]]:
    """Return each slot's recorded candidates, best first: the children of the best node of each level."""
    best_parent: dict[int, int | None] = {}
    for token in drafted[1:]:
        best_parent.setdefault(token.depth, token.parent)
    return [
        sorted((token for token in drafted if token.parent == parent), key=lambda token: (-token.prob, token.place))
        for _, parent in sorted(best_parent.items())
    ]


def _best_paths(
    drafted: Sequence[Drafted], choices: Sequence[Sequence[Drafted]], threshold: float
) -> Iterator[Drafted]:
    """Yield the root and its descendants, the most probable path first; of equal paths one that was sent."""
    sent = {(token.parent, token.token_id): token.node for token in drafted if token.node is not None}
    places, order = itertools.count(), itertools.count()
    frontier = [(0.0, next(order), drafted[0])]
    while frontier:
        token = replace(heapq.heappop(frontier)[2], place=next(places))
        yield token
        for choice in choices[token.depth] if token.depth < len(choices) else ():
            if choice.prob >= threshold:
                node = None if token.node is None else sent.get((token.node, choice.token_id))
                score = token.score + math.log(choice.prob)
                path = replace(choice, parent=token.place, score=score, node=node)
                heapq.heappush(frontier, (-score if node is None else -score - TIE, next(order), path))
