"""A step as one tree: its draft nodes, and the tokens that the target itself added behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from specviz.figures.labels import label_piece, show_piece
from specviz.figures.palette import STATUS_OF_SOURCE, StatusName
from specviz.trace import NodeTrace, StepTrace, TokenTrace

EXTRA_NODE = -1


@dataclass(frozen=True)
class DrawnNode:
    """A node or an added token; `place` is its place in the list, `idx` the trace's, `EXTRA_NODE` for a token."""

    idx: int
    parent_place: int
    status: StatusName
    source: NodeTrace | TokenTrace

    @property
    def draft_prob(self) -> float | None:
        return self.source.draft_prob if isinstance(self.source, NodeTrace) else None

    def label(self, limit: int = 9) -> str:
        return label_piece(self.source.piece, limit, token_id=self.source.token_id, raw_bytes=self.source.bytes)


def collect_drawn_nodes(step: StepTrace) -> list[DrawnNode]:
    """Return the step's nodes in order, then the token that the target added, behind the last reached node.

    Where slots' tokens were taken unverified they follow the target's own token, which then comes right after the root.
    """
    extra = find_extra_token(step)
    if extra is not None and takes_unverified(step):
        return _put_extra_first(step, extra)
    places = {node.idx: place for place, node in enumerate(step.nodes)}
    drawn = [_draw_node(node, places) for node in step.nodes]
    if extra is None:
        return drawn
    added = DrawnNode(EXTRA_NODE, places.get(find_last_reached(step), -1), STATUS_OF_SOURCE[extra.source], extra)
    return [*drawn, added]


def takes_unverified(step: StepTrace) -> bool:
    """Return whether the step took slots' tokens without the target's word, those that the end cut included."""
    return any(is_slot_token(node) for node in step.nodes)


def is_slot_token(node: NodeTrace) -> bool:
    """Return whether a node was taken, or would have been, without being judged."""
    return node.status == "unverified" or (node.status == "cut" and node.target_prob is None)


def find_last_reached(step: StepTrace) -> int:
    """Return the index of the last accepted node, or the root's."""
    return step.accepted[-1] if step.accepted else 0


def find_extra_token(step: StepTrace) -> TokenTrace | None:
    """Return the token that the target added to the step: correction, bonus, or plain decoding's own."""
    own = [token for token in step.committed if token.source in ("correction", "bonus", "target")]
    return own[-1] if own else None


def find_taken_token(step: StepTrace, parent_idx: int) -> NodeTrace | TokenTrace | None:
    """Return what the target took behind a reached node: its matching child, or the token it added itself."""
    for node in step.nodes:
        if node.parent == parent_idx and node.status in ("accepted", "cut"):
            return node
    return find_extra_token(step) if parent_idx == find_last_reached(step) else None


def _draw_node(node: NodeTrace, places: dict[int, int]) -> DrawnNode:
    return DrawnNode(node.idx, places.get(node.parent, -1), cast(StatusName, node.status), node)


def _put_extra_first(step: StepTrace, extra: TokenTrace) -> list[DrawnNode]:
    root, *slots = step.nodes
    places = {root.idx: 1} | {node.idx: place for place, node in enumerate(slots, start=2)}
    added = DrawnNode(EXTRA_NODE, 0, STATUS_OF_SOURCE[extra.source], extra)
    return [_draw_node(root, {}), added, *(_draw_node(node, places) for node in slots)]


def quote_token(token: NodeTrace | TokenTrace, limit: int = 24) -> str:
    """Return a token's piece in quotation marks, visible and cut; plain text."""
    return f"“{show_piece(token.piece, limit, token_id=token.token_id, raw_bytes=token.bytes)}”"
