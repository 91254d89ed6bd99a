"""EAGLE-3: a small head drafts a dynamic tree from the target's own features.

After a pass the head reads the verified tokens with the target's true features (low, mid and high
layer) and keeps these rows alone in its cache; then it drafts level by level on its own outputs
(EAGLE, `cnets.py`; a round: `draft_round.py`, its tree: `draft_tree.py`).

Letters: M newly verified rows, F width of the target's features, H hidden of the draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.decoding.tree import DraftTree
from specviz.drafters.base import DraftEvidence, PassResult, Proposal, UnverifiedToken
from specviz.drafters.draft_round import FixedRounds, SlicedWindow, draft_round
from specviz.drafters.draft_tree import DraftedRound, NodeLogProbs, TreeShape, UnsentDrafts
from specviz.drafters.draft_vocabulary import DraftVocabulary
from specviz.drafters.eagle3_head import DraftCache, DraftHead
from specviz.target.cache import SoftRows
from specviz.target.model import Target
from specviz.trace import DrafterInfo

HEADROOM = 256  # columns for the answer and a round's tree; the cache grows where this is too little


@dataclass(frozen=True)
class LoadedHead:
    """A head with its vocabulary, on the target's device, and what the trace says of them."""

    head: DraftHead
    vocabulary: DraftVocabulary
    info: DrafterInfo


class Eagle3Drafter:
    """What all sequences of a run share: the target's embeddings, the head, the shape of its trees."""

    soft_rows: SoftRows | None = None
    max_batch: int | None = 1

    def __init__(self, target: Target, loaded: LoadedHead, shape: TreeShape) -> None:
        self.target = target
        self.head = loaded.head
        self.vocabulary = loaded.vocabulary
        self.shape = shape
        self.info = loaded.info
        self.feature_layers = loaded.head.config.feature_layers
        self.n_positions = min(loaded.head.config.n_positions, target.n_positions)

    def begin(self, prompt_ids: Sequence[int]) -> Eagle3Session:
        return Eagle3Session(self, prompt_ids)

    def embed(self, token_ids: Tensor) -> Tensor:
        """Return the head's input embeddings (..., H): its own where it has them, else the target's."""
        if self.head.config.own_embedding:
            return self.head.embed_tokens(token_ids)
        return self.target.embed(token_ids)


class Eagle3Session:
    """One sequence."""

    def __init__(self, drafter: Eagle3Drafter, prompt_ids: Sequence[int]) -> None:
        self.run = HeadRun(drafter, prompt_ids)

    @torch.inference_mode()
    def propose(self, root_id: int, max_depth: int) -> Proposal:
        depth = self.run.absorb(max_depth)
        if depth == 0:
            return Proposal(DraftTree((root_id,)))
        drafted = self.run.draft(depth)
        return Proposal(drafted.tree(root_id), evidence=evidence_of(drafted))

    def take_unverified(self, result: PassResult) -> Sequence[UnverifiedToken]:
        return ()

    @torch.inference_mode()
    def observe(self, result: PassResult) -> None:
        self.run.observe(result)


def evidence_of(drafted: DraftedRound) -> DraftEvidence:
    """Return what a full record may ask of a round; nothing is computed before it asks."""
    return DraftEvidence(NodeLogProbs(drafted), UnsentDrafts(drafted), depth_limit=drafted.depth)


class HeadRun:
    """The head on one sequence: reads verified rows, drafts rounds.

    The cache always holds exactly the rows of the verified tokens: as many as the target's cache.
    """

    def __init__(self, drafter: Eagle3Drafter, prompt_ids: Sequence[int]) -> None:
        self._drafter = drafter
        self._head = drafter.head
        self._ids = list(prompt_ids)
        self._news: Tensor | None = None  # (M, F) features that the head has not read yet
        self._last: tuple[Tensor, Tensor] | None = None  # inputs (1, 2H) and state (1, H) of the last verified row
        target = drafter.target
        self.cache = DraftCache(drafter.head.config, len(prompt_ids) + HEADROOM, target.device, target.dtype)
        self._fixed = FixedRounds(drafter, self.cache)

    @property
    def last_state(self) -> Tensor:
        """The fused features (H,) of the last verified token."""
        assert self._last is not None, "a round follows a pass"
        return self._last[1][0]

    def observe(self, result: PassResult) -> None:
        """Remember the features of the rows that were verified and the tokens that followed them."""
        assert result.features is not None, "the loop gives the features that a drafter asks for"
        self._ids.extend(result.committed)
        self._news = result.features[torch.tensor(result.layout.kept_rows(result.accepted))]

    def absorb(self, max_depth: int) -> int:
        """Read the newly verified rows and return how deep the next round may be; 0 where nothing can be drafted.

        The rows' keys and values depend on their inputs alone, so only the last row is ever run further.
        """
        if self._news is None or len(self._ids) > self._drafter.n_positions:
            return 0
        n_read, n_new = self.cache.length, len(self._news)
        next_ids = torch.tensor(self._ids[n_read + 1 : n_read + 1 + n_new], device=self._news.device)
        states = self._head.fuse(self._news)  # (M, H)
        inputs = self._head.inputs(self._drafter.embed(next_ids), states)
        angles = self._head.rotary.at(n_read, n_new, states)
        self._head.remember(inputs, angles, self.cache, self.cache.end)
        self.cache.length += n_new
        self._news, self._last = None, (inputs[-1:], states[-1:])
        n_free = self._drafter.n_positions - self.cache.length
        shape = self._drafter.shape
        return max(0, min(shape.depth, max_depth, n_free)) if shape.nodes > 1 else 0

    def write_future(self, embed: Tensor, state: Tensor) -> None:
        """Put ConFu's future token, (1, H) each, in its column, at the position of the first drafted token's row."""
        angles = self._head.rotary.at(self.cache.length, 1, state)
        self._head.remember(self._head.inputs(embed, state), angles, self.cache, 0)

    def draft(self, depth: int, gate: Tensor | None = None) -> DraftedRound:
        """Draft a round of at most `depth` levels; `gate` lets it see the future token."""
        assert self._last is not None, "a round follows a pass"
        if self._drafter.target.fixed_shapes:
            return self._fixed.draft(self._last, depth, gate)
        return draft_round(self._drafter, SlicedWindow(self._head, self.cache), self._last, depth, gate)
