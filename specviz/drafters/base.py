"""The seam between drafting and decoding.

A `Drafter` holds what every run shares (weights, settings); a `DraftSession` holds the state of one
sequence. The loop asks a session to `propose`, runs the rows, decides, and tells it what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from specviz.decoding.layout import AddedKind, RowLayout
from specviz.decoding.tree import DraftTree
from specviz.target.cache import SoftRows
from specviz.trace import DrafterInfo, RoutingTrace


@dataclass(frozen=True)
class AddedRows:
    """K rows that ride behind nodes of the tree; no real row ever sees them.

    `embeds` (G, K, H) are their inputs, a group for each carrying node in order, or (1, K, H) for the
    same behind all; `carriers` are the nodes that carry a group (None: all of them).
    """

    kind: AddedKind
    embeds: Tensor
    causal: bool = True
    carriers: tuple[int, ...] | None = None


@dataclass(frozen=True)
class DraftedToken:
    """A drafted token that was not sent to verification.

    `parent` is -1 where its parent was not sent either: `behind` is then the parent's place among the unsent.
    """

    parent: int
    depth: int
    token_id: int
    draft_prob: float
    score: float
    behind: int | None = None


@dataclass(frozen=True)
class DraftEvidence:
    """What a drafter knew when it proposed, kept for a full record.

    `log_probs[node]` is the draft's log-distribution (V,) over the target's vocabulary after that
    node, -inf outside the draft vocabulary; a node without an entry was not expanded: at
    `depth_limit` for its depth, above it because the beam went on elsewhere (None: always for its
    depth). `shadow` drafts what would have been proposed without the future token. A drafter may
    make `log_probs` and `unsent` lazy, for a light record never looks at them.
    """

    log_probs: Mapping[int, Tensor] = field(default_factory=dict)
    unsent: Sequence[DraftedToken] = ()
    routing: tuple[RoutingTrace, ...] = ()
    depth_limit: int | None = None
    shadow: Callable[[], DraftTree] | None = None


@dataclass(frozen=True)
class Proposal:
    """What a session wants in the next pass: a tree, rows behind its nodes, and its evidence."""

    tree: DraftTree
    added: AddedRows | None = None
    evidence: DraftEvidence = field(default_factory=DraftEvidence)

    def layout(self, n_pending: int) -> RowLayout:
        """Return the rows of this proposal behind `n_pending` committed rows, root included."""
        if self.added is None:
            return RowLayout(self.tree.parents, n_pending)
        added = self.added
        return RowLayout(self.tree.parents, n_pending, added.embeds.shape[1], added.kind, added.causal, added.carriers)


@dataclass(frozen=True)
class PassResult:
    """One sequence's part of a pass, as a session is told of it.

    `last` (R, H) and `features` (R, 3H) or None belong to the rows of `layout`; `accepted` are the
    committed nodes, `committed` all committed tokens of the step in order.
    """

    layout: RowLayout
    last: Tensor
    features: Tensor | None
    accepted: tuple[int, ...]
    committed: tuple[int, ...]

    @property
    def last_node(self) -> int:
        return self.accepted[-1] if self.accepted else 0

    def group(self, states: Tensor, node: int) -> Tensor | None:
        """Return the part of `states` (R, ...) that belongs to the group behind a node, (K, ...), or None."""
        rows = self.layout.group_rows(node)
        return None if rows is None else states[rows]


@dataclass(frozen=True)
class UnverifiedToken:
    """A token taken without the target's word (the self-consistent selection)."""

    token_id: int
    prob: float


class DraftSession(Protocol):
    """The drafting state of one sequence."""

    def propose(self, root_id: int, max_depth: int) -> Proposal:
        """Propose a tree under `root_id`, at most `max_depth` deep; called once before every pass."""

    def take_unverified(self, result: PassResult) -> Sequence[UnverifiedToken]:
        """Return tokens to commit behind the target's own without verification; empty for lossless rules."""

    def observe(self, result: PassResult) -> None:
        """Learn what the pass computed and what of it was committed."""


class Drafter(Protocol):
    """What all sequences of a run share."""

    @property
    def info(self) -> DrafterInfo | None:
        """What the trace says of this drafter; None for plain decoding."""

    @property
    def feature_layers(self) -> tuple[int, ...] | None:
        """The target's layers whose inputs sessions need (EAGLE-3: low, mid, high), or None."""

    @property
    def soft_rows(self) -> SoftRows | None:
        """Cache rows that only added rows see, or None."""

    @property
    def max_batch(self) -> int | None:
        """How many sequences can be decoded together; None for any number."""

    def begin(self, prompt_ids: Sequence[int]) -> DraftSession:
        """Start a sequence."""
