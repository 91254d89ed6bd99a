"""The shadow of a ConFu step: the tree that the head would have drafted without the future token."""

from __future__ import annotations

from specviz.decoding.statuses import node_statuses
from specviz.decoding.tree import DraftTree
from specviz.decoding.turn import Turn
from specviz.decoding.verification import verify
from specviz.text import TextCodec, partial_bytes, piece_of
from specviz.trace import NodeTrace


def shadow_nodes(turn: Turn, tree: DraftTree, codec: TextCodec) -> list[NodeTrace]:
    """Return the shadow's nodes with the statuses they would have had.

    Shadow nodes were never run: they are judged by the tokens that the step chose, as far as these go.
    """
    path = turn.path_ids(turn.verdict, ())
    verdict = verify(tree, lambda node: path[tree.depths[node]] if tree.depths[node] < len(path) else -1)
    statuses = node_statuses(tree, verdict, min(turn.cut.n_tokens, len(path)))
    return [
        NodeTrace(
            idx=node,
            parent=tree.parents[node],
            depth=tree.depths[node],
            token_id=token_id,
            piece=piece_of(codec, token_id),
            bytes=partial_bytes(codec, token_id),
            draft_prob=tree.draft_probs[node] if node else None,
            score=tree.scores[node],
            status=statuses[node],
        )
        for node, token_id in enumerate(tree.token_ids)
    ]
