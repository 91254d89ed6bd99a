"""One sequence's part of one pass: the rows as they were run, and then what became of them.

Letters: R rows, C columns, T nodes, J judged rows, V vocabulary, H hidden.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field

from torch import Tensor

from specviz.decoding.layout import RowLayout
from specviz.decoding.limits import Cut
from specviz.decoding.verification import Verdict
from specviz.drafters.base import PassResult, Proposal, UnverifiedToken
from specviz.target.attention import AttentionProbe
from specviz.target.experts import LayerRouting


@dataclass(frozen=True)
class PassPart:
    """What was run for a sequence.

    `last` (R, H), `features` (R, 3H) or None, `mask` (R, C) in physical columns; rows of padding
    follow the layout's own. `prefix_ids` are all tokens committed before the pass; `routing` is what
    a target with experts decided, layer by layer; `attention` is what was seen of one row's weights,
    in the batch's row `batch_row`.
    """

    index: int
    prefix_ids: tuple[int, ...]
    proposal: Proposal
    layout: RowLayout
    last: Tensor
    features: Tensor | None
    mask: Tensor
    n_soft: int
    n_padding: int
    routing: tuple[LayerRouting, ...] = field(default=(), kw_only=True)
    attention: AttentionProbe | None = field(default=None, kw_only=True)
    batch_row: int = field(default=0, kw_only=True)

    @property
    def n_cached(self) -> int:
        """Columns of this sequence's prefix that were in the cache before the pass."""
        return len(self.prefix_ids) - self.layout.n_pending

    @property
    def first_judged(self) -> int:
        """First row whose logits are wanted: of a prefill the root; later every committed row, because
        an unverified token is judged by the row before it."""
        return self.layout.node_row(0) if self.index == 0 else 0

    def of_nodes(self, logits: Tensor) -> Tensor:
        """Return the part (T, V) of judged logits (J, V) that follows each node."""
        return logits[self.layout.node_row(0) - self.first_judged :]

    def path_ids(self, verdict: Verdict, unverified: SequenceOf[UnverifiedToken]) -> list[int]:
        """Return the step's tokens before the cut: accepted nodes, the target's extra token, unverified ones."""
        accepted = [self.proposal.tree.token_ids[node] for node in verdict.accepted]
        return [*accepted, verdict.extra_id, *(token.token_id for token in unverified)]

    def result(self, accepted: tuple[int, ...], committed: tuple[int, ...]) -> PassResult:
        """Return what a drafting session is told."""
        return PassResult(self.layout, self.last, self.features, accepted, committed)


@dataclass(frozen=True)
class Turn(PassPart):
    """The same with the target's word: `logits` (J, V) of the rows from `first_judged` to the last node,
    what was accepted, what was taken unverified, and where the answer was cut."""

    logits: Tensor
    verdict: Verdict
    unverified: tuple[UnverifiedToken, ...]
    cut: Cut

    @property
    def node_logits(self) -> Tensor:
        """The logits (T, V) after each node."""
        return self.of_nodes(self.logits)

    @property
    def accepted(self) -> tuple[int, ...]:
        """The accepted nodes that were committed."""
        return self.verdict.accepted[: self.cut.n_tokens]

    @property
    def committed_ids(self) -> tuple[int, ...]:
        return tuple(self.path_ids(self.verdict, self.unverified)[: self.cut.n_tokens])
