"""What became of each node of a tree."""

from __future__ import annotations

from specviz.decoding.tree import DraftTree
from specviz.decoding.verification import Verdict
from specviz.trace import Status


def node_statuses(tree: DraftTree, verdict: Verdict, n_committed: int) -> list[Status]:
    """Return each node's status; `n_committed` counts the step's tokens that the cut left.

    A child was judged if the token after its parent was committed: then the parent was reached and
    the answer went on behind it.
    """
    place = {node: i for i, node in enumerate(verdict.accepted)}
    judged_parents = {0} | {node for node, i in place.items() if i + 1 < n_committed}
    statuses: list[Status] = ["root"]
    for node in range(1, len(tree)):
        if node in place:
            statuses.append("accepted" if place[node] < n_committed else "cut")
        else:
            statuses.append("rejected" if tree.parents[node] in judged_parents else "unreached")
    return statuses
