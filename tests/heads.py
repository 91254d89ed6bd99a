"""EAGLE-3 and ConFu drafters for tests: random heads of any variant, and a drafter whose head follows an oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from specviz.drafters.base import DraftEvidence, PassResult, Proposal, UnverifiedToken
from specviz.drafters.checkpoint_confu import start_parts
from specviz.drafters.confu import ConfuConfig, ConfuDrafter, ConfuParts, ConfuSession, ConfuSwitches
from specviz.drafters.draft_tree import TreeShape
from specviz.drafters.draft_vocabulary import DraftVocabulary
from specviz.drafters.eagle3 import Eagle3Drafter, Eagle3Session, LoadedHead
from specviz.drafters.eagle3_head import DraftHead, HeadConfig
from specviz.target.model import Target
from specviz.trace import DrafterInfo
from tests.kit import OracleDrafter

SHAPE = TreeShape(nodes=30, depth=5, top_k=6)
ODD_IDS = tuple(range(1, 201, 2))  # 100 of 512, far from the identity


def head_config(target: Target, **changes: object) -> HeadConfig:
    """Return the shape of a head for TINY."""
    config = HeadConfig(
        hidden_size=target.hidden_size,
        target_hidden_size=target.hidden_size,
        intermediate_size=96,
        n_heads=4,
        n_kv_heads=2,
        head_dim=16,
        vocab_size=target.vocab_size,
        draft_vocab_size=len(ODD_IDS),
        n_positions=target.n_positions,
        feature_layers=target.feature_layers,
        rope={"rope_theta": 5000.0},
    )
    return replace(config, **changes)  # type: ignore[arg-type]


def random_head(target: Target, seed: int = 0, trained: bool = True, **changes: object) -> LoadedHead:
    """Return a head with lively random weights: large enough that its trees have depth and its norms matter."""
    torch.manual_seed(seed)
    head = DraftHead(head_config(target, **changes)).eval().requires_grad_(False)
    for name, parameter in head.named_parameters():
        if "norm" in name:
            parameter.copy_(0.5 + torch.rand_like(parameter))
        elif parameter.ndim == 2:
            parameter.copy_(torch.randn_like(parameter) * 2 / parameter.shape[1] ** 0.5)
    vocabulary = DraftVocabulary(torch.tensor(ODD_IDS), target.vocab_size)
    if head.config.draft_vocab_size != len(ODD_IDS):
        vocabulary = DraftVocabulary.first(head.config.draft_vocab_size, target.vocab_size)
    info = DrafterInfo(name="random head", source="test", trained=trained)
    return LoadedHead(head.to(target.device), vocabulary.to(target.device), info)


def random_parts(
    target: Target, loaded: LoadedHead, gate: float = 1.0, config: ConfuConfig | None = None, seed: int = 0
) -> ConfuParts:
    """Return ConFu's parts with experts and routers that matter."""
    parts = start_parts(loaded, target, config)
    torch.manual_seed(seed)
    for parameter in (parts.soft_prompt, parts.con_experts.experts, parts.f_experts.experts):
        parameter.copy_(torch.randn_like(parameter) * 0.3)
    for experts in (parts.con_experts, parts.f_experts):
        experts.router.weight.copy_(torch.randn_like(experts.router.weight) * 0.1)
    parts.f_gate.fill_(gate)
    return parts


def confu_drafter(
    target: Target,
    loaded: LoadedHead | None = None,
    parts: ConfuParts | None = None,
    shape: TreeShape = SHAPE,
    **switches: bool,
) -> ConfuDrafter:
    loaded = loaded or random_head(target)
    return ConfuDrafter(target, loaded, parts or random_parts(target, loaded), shape, ConfuSwitches(**switches))


class GuidedDrafter(Eagle3Drafter):
    """Runs the real head, then proposes what an oracle knows: rows are accepted, scattered among siblings."""

    def __init__(self, target: Target, loaded: LoadedHead, oracle: OracleDrafter) -> None:
        super().__init__(target, loaded, SHAPE)
        self.oracle = oracle
        self.sessions: list[GuidedSession] = []

    def begin(self, prompt_ids: Sequence[int]) -> GuidedSession:  # type: ignore[override]
        self.sessions.append(GuidedSession(super().begin(prompt_ids), self.oracle, prompt_ids))
        return self.sessions[-1]


class GuidedConfuDrafter(ConfuDrafter):
    """The same for ConFu."""

    def __init__(
        self, target: Target, loaded: LoadedHead, parts: ConfuParts, oracle: OracleDrafter, switches: ConfuSwitches
    ) -> None:
        super().__init__(target, loaded, parts, SHAPE, switches)
        self.oracle = oracle
        self.sessions: list[GuidedSession] = []

    def begin(self, prompt_ids: Sequence[int]) -> GuidedSession:  # type: ignore[override]
        self.sessions.append(GuidedSession(super().begin(prompt_ids), self.oracle, prompt_ids))
        return self.sessions[-1]


def guided(target: Target, method: str, oracle: OracleDrafter) -> GuidedDrafter | GuidedConfuDrafter:
    """Return a guided drafter of either method, its head and parts random."""
    loaded = random_head(target)
    if method == "eagle3":
        return GuidedDrafter(target, loaded, oracle)
    return GuidedConfuDrafter(target, loaded, random_parts(target, loaded), oracle, ConfuSwitches())


class GuidedSession:
    """Keeps, for every turn, how many rows the head's cache held and how many tokens the target's did."""

    def __init__(self, own: Eagle3Session | ConfuSession, oracle: OracleDrafter, prompt_ids: Sequence[int]) -> None:
        self.own = own
        self.guide = oracle.begin(prompt_ids)
        self.n_committed = len(prompt_ids)
        self.lengths: list[tuple[int, int]] = []

    def propose(self, root_id: int, max_depth: int) -> Proposal:
        proposal = self.own.propose(root_id, max_depth)
        self.lengths.append((self.own.run.cache.length, self.n_committed - 1))
        return replace(proposal, tree=self.guide.propose(root_id, max_depth).tree, evidence=DraftEvidence())

    def take_unverified(self, result: PassResult) -> Sequence[UnverifiedToken]:
        return ()

    def observe(self, result: PassResult) -> None:
        self.n_committed += len(result.committed)
        self.own.observe(result)
        self.guide.observe(result)
