"""Training ConFu from an EAGLE-3 head: the head goes on learning while it also sees the target's own future prediction.

A contemplate token behind an anchor runs through the frozen target, which alone sees the soft prompt; the target's
features at it become the future token f, one more key and value of the head for the rows that the anchor serves.
Loss: EAGLE-3's, with f (ConFu, arXiv 2603.08899; what the paper leaves open is settled in `anchors.py`).

Letters: A anchors, R rows, S soft rows, E experts, H hidden, F width of the features.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from specviz.drafters.checkpoint_confu import save_confu
from specviz.drafters.confu import ConfuParts
from specviz.drafters.eagle3 import LoadedHead
from specviz.drafters.eagle3_head import DraftHead
from specviz.target.model import Target
from specviz.training.added_rows import Anchors, read_texts, run_added, run_alone
from specviz.training.anchors import AnchorConfig, AnchorPlan, routing_places, sample_anchors
from specviz.training.eagle3 import Eagle3Trainee, UnrollConfig, trained_info
from specviz.training.features import AnsweredPrompt, FeatureStore
from specviz.training.loop import StepLoss
from specviz.training.router_input import RouterInput, measure_input
from specviz.training.seeds import derive_draws
from specviz.training.unroll import Future, UnrollBatch, pack, unroll

MEASURED_ANSWERS = 16  # over which the inputs of both routers are measured


@dataclass(frozen=True)
class ConfuTrainingConfig:
    """Unrolling, anchors, and the largest lag between a contemplate token and what routes it."""

    unrolled: UnrollConfig = field(default_factory=UnrollConfig)
    anchors: AnchorConfig = field(default_factory=AnchorConfig)
    max_lag: int = 7


class ConfuModule(nn.Module):
    """What is trained: the head and the parts that ConFu adds."""

    def __init__(self, head: DraftHead, parts: ConfuParts) -> None:
        super().__init__()
        self.head = head
        self.parts = parts


class ConfuTrainee(Eagle3Trainee):
    """A head with ConFu's parts. Routers and `fc` learn on inputs of one size; on disk that is folded in."""

    def __init__(
        self,
        target: Target,
        loaded: LoadedHead,
        parts: ConfuParts,
        stores: tuple[FeatureStore, FeatureStore],
        config: ConfuTrainingConfig,
    ) -> None:
        super().__init__(target, loaded, stores, config.unrolled)
        self.config = config
        trainable = copy.deepcopy(parts).float().train().requires_grad_(True)
        self.con_input, self.f_input = self.measure_inputs()
        for experts, router_input in ((trainable.con_experts, self.con_input), (trainable.f_experts, self.f_input)):
            experts.router.weight.data = router_input.unfold(experts.router.weight.data)
        self.module = ConfuModule(super().head_of(self.module), trainable)

    @torch.no_grad()
    def measure_inputs(self) -> tuple[RouterInput, RouterInput]:
        """Return the inputs of the routers of [con] and of f, over rows of the first answers, before any step.

        The prompts are left out: no anchor stands there, and a template's tokens are unlike an answer's.
        """
        taken = self.store.take(range(min(MEASURED_ANSWERS, len(self.store.answers))))
        batch = pack(taken, self.unrolled.n_steps)
        features = batch.features[batch.row_columns]
        states = self.fused(super().head_of(self.module), features)
        return measure_input(features, self.scale), measure_input(states)

    def loss(self, answers: Sequence[int], n_tokens: int, draws: Sequence[torch.Generator]) -> StepLoss:
        taken = self.store.take(answers)
        batch = pack(taken, self.unrolled.n_steps)
        plan = sample_anchors(batch.spans, self.config.anchors, draws)
        future = self.future(self.module, taken, batch, plan, routing_places(plan, self.config.max_lag, draws))
        served = (plan.serving >= 0).to(self.target.device)
        outputs = self.outputs_with(self.module, batch, future)
        return self.unrolled_loss(self.head_of(self.module), batch, outputs, served, n_tokens)

    def score_batch(self, module: nn.Module, taken: Sequence[AnsweredPrompt], batch: UnrollBatch) -> Iterator[Tensor]:
        """Yield the normed outputs with an anchor at every row, as in decoding, routed by the token before."""
        draws = derive_draws(range(len(taken)))
        plan = sample_anchors(batch.spans, AnchorConfig(1, 1), draws)
        future = self.future(module, taken, batch, plan, routing_places(plan, 1, draws))
        return self.outputs_with(module, batch, future)

    def head_of(self, module: nn.Module) -> DraftHead:
        return _confu(module).head

    def save(self, module: nn.Module, folder: Path, training: dict[str, Any]) -> None:
        loaded = LoadedHead(self.folded(self.head_of(module)), self.vocabulary, trained_info(self.info, folder.name))
        save_confu(folder, loaded, self.folded_parts(module), training=training)

    def folded_parts(self, module: nn.Module) -> ConfuParts:
        """Return a copy in the target's dtype whose routers take hidden states as they are."""
        parts = copy.deepcopy(_confu(module).parts).requires_grad_(False)
        for experts, router_input in ((parts.con_experts, self.con_input), (parts.f_experts, self.f_input)):
            experts.router.weight.data = router_input.fold(experts.router.weight.data)
        return parts.to(self.target.dtype)

    def outputs_with(self, module: nn.Module, batch: UnrollBatch, future: Future) -> Iterator[Tensor]:
        head = self.head_of(module)
        return unroll(head, batch, self.fused(head, batch.features), self.embed, future)

    def future(
        self,
        module: nn.Module,
        taken: Sequence[AnsweredPrompt],
        batch: UnrollBatch,
        plan: AnchorPlan,
        routed_by: Tensor,
    ) -> Future:
        """Return each row's future token: its anchor's f as a key and a value of the head."""
        parts, head, device = _confu(module).parts, self.head_of(module), self.target.device
        first = torch.tensor([span.first for span in batch.spans])[plan.sequences]  # (A,) where row 0 stands
        start = torch.tensor([span.columns.start for span in batch.spans])[plan.sequences]
        places = first + plan.rows  # (A,) the anchor's place in its text
        routing_features = self.con_input(batch.features[start + first + routed_by.clamp(min=0)])  # (A, F)
        experts = parts.con_experts
        routed, even = experts.mix(experts.route(routing_features)), experts.mix(experts.uniform())
        con = torch.where((routed_by < 0).to(device)[:, None], even, routed)  # (A, H)
        anchors = Anchors(plan.sequences.to(device), places.to(device))
        states = self.fused(head, self.contemplate(parts, taken, anchors, con))  # (A, D)
        routing_states = self.f_input(self.fused(head, batch.features[start + places]))  # (A, D)
        embeds = parts.f_experts.mix(parts.f_experts.route(routing_states)).float()  # the head's norms are float32
        cosines, sines = head.rotary.at(0, int(places.max()) + 2, states)
        angles = cosines[anchors.places + 1], sines[anchors.places + 1]  # where the first drafted token's row stands
        keys, values = head.midlayer.self_attn.keys_values(head.inputs(embeds, states), angles)
        serving = plan.serving.clamp(min=0).to(device)
        return Future((keys[:, serving], values[:, serving]), parts.f_gate)

    def contemplate(self, parts: ConfuParts, taken: Sequence[AnsweredPrompt], anchors: Anchors, con: Tensor) -> Tensor:
        """Return the target's features (A, F) at contemplate tokens whose embeddings are `con` (A, H)."""
        texts = read_texts(self.target, [answer.ids for answer in taken])
        soft = run_alone(self.target, parts.soft_prompt) if len(parts.soft_prompt) else None
        layers = self.head_of(self.module).config.feature_layers
        hidden = run_added(self.target, texts, anchors, con[:, None], soft, feature_layers=layers)
        assert hidden.features is not None, "features were asked for"
        return hidden.features[0]


def _confu(module: nn.Module) -> ConfuModule:
    assert isinstance(module, ConfuModule), "a ConFu trainee is a head with its parts"
    return module
