"""ConFu (arXiv 2603.08899): EAGLE-3 whose head also sees where the target is heading.

Behind every node of the tree rides a contemplate token; it alone sees a learned soft prompt, and what
the target computes at it is a prediction of the future. The prediction behind the last accepted
node becomes one more key and value of the draft head, the future token f, for the whole next round.
Both tokens' embeddings are mixtures of experts: that of the contemplate token is routed by the target's
features of the last token accepted in the round before, that of f by the head's fusion of the features
of the last accepted node. Real rows see none of this, so the text stays the target's own.

Letters: S soft-prompt rows, E experts, H hidden of the target, F width of its features, D hidden of the draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from specviz.decoding.layout import RowLayout
from specviz.decoding.masks import MaskBuilder
from specviz.decoding.tree import DraftTree
from specviz.drafters.base import AddedRows, DraftEvidence, PassResult, Proposal, UnverifiedToken
from specviz.drafters.draft_tree import TreeShape
from specviz.drafters.eagle3 import Eagle3Drafter, HeadRun, LoadedHead, evidence_of
from specviz.drafters.eagle3_head import HeadConfig
from specviz.drafters.expert_embedding import ExpertConfig, ExpertEmbedding, Routing, routing_trace
from specviz.target.cache import SoftRows
from specviz.target.model import Target


@dataclass(frozen=True)
class ConfuConfig:
    """The size of what ConFu adds to a head; the paper states none of these numbers but `n_soft`."""

    n_soft: int = 16
    experts: ExpertConfig = field(default_factory=ExpertConfig)


@dataclass(frozen=True)
class ConfuSwitches:
    """Ablations of a run: use f or not, route the experts or mix all alike, contemplate at all nodes or the root."""

    future: bool = True
    routed: bool = True
    all_nodes: bool = True


class ConfuParts(nn.Module):
    """What ConFu adds to an EAGLE-3 head. The parameters carry the names of our checkpoints.

    `f_gate` is a scalar: attention is without_f + gate * (with_f - without_f).
    """

    def __init__(self, config: ConfuConfig, head: HeadConfig) -> None:
        super().__init__()
        self.config = config
        self.soft_prompt = nn.Parameter(torch.empty(config.n_soft, head.target_hidden_size))
        self.con_experts = ExpertEmbedding(config.experts, head.feature_size, head.target_hidden_size)
        self.f_experts = ExpertEmbedding(config.experts, head.hidden_size, head.hidden_size)
        self.f_gate = nn.Parameter(torch.empty(()))


class ConfuDrafter(Eagle3Drafter):
    """An EAGLE-3 drafter with its parts, its soft prompt already run through the target."""

    def __init__(
        self, target: Target, loaded: LoadedHead, parts: ConfuParts, shape: TreeShape, switches: ConfuSwitches
    ) -> None:
        super().__init__(target, loaded, shape)
        self.parts = parts
        self.switches = switches
        self.soft_rows = run_soft_prompt(target, parts.soft_prompt)

    def begin(self, prompt_ids: Sequence[int]) -> ConfuSession:  # type: ignore[override]
        return ConfuSession(self, prompt_ids)


@torch.inference_mode()
def run_soft_prompt(target: Target, embeds: Tensor) -> SoftRows | None:
    """Return the keys and values of a soft prompt (S, H): run once, alone, at positions 0 to S - 1."""
    n_soft = embeds.shape[0]
    if n_soft == 0:
        return None
    cache = target.new_cache(1, n_soft)
    mask = MaskBuilder().build([RowLayout((-1,), n_pending=n_soft)], cache, target.device)
    positions = torch.arange(n_soft, device=target.device)[None]
    target.forward(embeds[None].to(target.dtype), positions, mask, cache)
    cache.keep([list(range(n_soft))])
    return cache.rows()


class ConfuSession:
    """One sequence: the head's state, the contemplate embedding of the next pass, the future of the last one."""

    def __init__(self, drafter: ConfuDrafter, prompt_ids: Sequence[int]) -> None:
        self.run = HeadRun(drafter, prompt_ids)
        self._parts = drafter.parts
        self._switches = drafter.switches
        self._head = drafter.head
        self._con = drafter.parts.con_experts.uniform()
        self._future: Tensor | None = None  # (1, F), the target's features at a contemplate row

    @torch.inference_mode()
    def propose(self, root_id: int, max_depth: int) -> Proposal:
        depth = self.run.absorb(max_depth)
        con = routing_trace("con", self._con)
        if depth == 0:
            return Proposal(DraftTree((root_id,)), self._contemplate(), DraftEvidence(routing=(con,)))
        gate, routing = self._write_future()
        drafted = self.run.draft(depth, gate)
        evidence = replace(
            evidence_of(drafted),
            routing=(con,) if routing is None else (con, routing_trace("f", routing)),
            shadow=None if gate is None else lambda: self._draft_without_future(root_id, depth),
        )
        return Proposal(drafted.tree(root_id), self._contemplate(), evidence)

    def take_unverified(self, result: PassResult) -> Sequence[UnverifiedToken]:
        return ()

    @torch.inference_mode()
    def observe(self, result: PassResult) -> None:
        self.run.observe(result)
        assert result.features is not None, "the loop gives the features that a drafter asks for"
        carrier = result.last_node if self._switches.all_nodes else 0
        self._future = result.group(result.features, carrier)
        if self._switches.routed:
            last_row = result.layout.node_row(result.last_node)
            self._con = self._parts.con_experts.route(result.features[last_row])

    def _contemplate(self) -> AddedRows:
        """Return the contemplate rows of the next pass: one embedding behind every node, or behind the root alone.

        It is shared because a node's own state is not known before the pass; place and path tell rows apart.
        """
        embed = self._parts.con_experts.mix(self._con)  # (H,)
        return AddedRows("contemplate", embed[None, None], carriers=None if self._switches.all_nodes else (0,))

    def _write_future(self) -> tuple[Tensor | None, Routing | None]:
        """Put f before the head; return its gate and routing, or (None, None) where the run goes without."""
        if not self._switches.future or self._future is None:
            return None, None
        experts = self._parts.f_experts
        routing = experts.route(self.run.last_state) if self._switches.routed else experts.uniform()
        self.run.write_future(experts.mix(routing)[None], self._head.fuse(self._future))
        return self._parts.f_gate.float(), routing

    @torch.inference_mode()
    def _draft_without_future(self, root_id: int, depth: int) -> DraftTree:
        return self.run.draft(depth).tree(root_id)
