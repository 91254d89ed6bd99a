"""Plain decoding: nothing is drafted, one token a pass. The reference lane."""

from __future__ import annotations

from collections.abc import Sequence

from specviz.decoding.tree import DraftTree
from specviz.drafters.base import PassResult, Proposal, UnverifiedToken
from specviz.target.cache import SoftRows


class PlainDrafter:
    """Proposes the root alone. It has no state, so it is its own session."""

    info = None
    feature_layers: tuple[int, ...] | None = None
    soft_rows: SoftRows | None = None
    max_batch: int | None = None

    def begin(self, prompt_ids: Sequence[int]) -> PlainDrafter:
        return self

    def propose(self, root_id: int, max_depth: int) -> Proposal:
        return Proposal(DraftTree((root_id,)))

    def take_unverified(self, result: PassResult) -> Sequence[UnverifiedToken]:
        return ()

    def observe(self, result: PassResult) -> None:
        return None
