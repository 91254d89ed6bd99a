"""Training lookahead's slots: input embeddings, and keys and values that slots alone see, of a frozen target.

Groups of K slots stand behind anchors of the text; slot i learns the target's own distribution i tokens further on
(PPD, arXiv 2405.18628, for the embeddings; BiTA, arXiv 2401.12522, for the prefix keys and values).

Letters: K slots a group, G groups, R rows that can be anchors, S prefix rows, H hidden, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from specviz.drafters.checkpoint import SlotTable, save_slot_table
from specviz.target.cache import SoftRows
from specviz.target.model import Target
from specviz.training.added_rows import Anchors, Texts, read_texts, run_added, run_alone
from specviz.training.anchors import AnchorConfig, sample_anchors
from specviz.training.features import AnsweredPrompt, FeatureStore
from specviz.training.heldout import ChainScore
from specviz.training.loop import StepLoss
from specviz.training.seeds import derive_draws
from specviz.training.soft_cross_entropy import soft_cross_entropy
from specviz.training.unroll import UnrollBatch, pack

NOISE = 0.02
MEASURED_ANSWERS = 16  # with a group behind every token an answer is thousands of rows
GROUPS_OF_A_PASS = 64  # slots of other groups are columns of a pass too, though no row sees them


@dataclass(frozen=True)
class SlotTrainingConfig:
    """How many slots, whether they see their group's earlier ones, and how much less each further one weighs."""

    k: int = 8
    n_prefix: int = 0
    causal: bool = True
    decay: float = 0.8
    stride: int = 8


class SlotModule(nn.Module):
    """The table (K, H) and, where there is a prefix, its keys and values (layers, Hkv, S, D)."""

    def __init__(self, slots: Tensor, prefix: SoftRows | None) -> None:
        super().__init__()
        self.slots = nn.Parameter(slots.float().clone())
        self.prefix_keys = nn.Parameter(_stacked(prefix, 0)) if prefix else None
        self.prefix_values = nn.Parameter(_stacked(prefix, 1)) if prefix else None

    def soft_rows(self, dtype: torch.dtype) -> SoftRows | None:
        """Return the prefix as a pass takes it, with its graph."""
        if self.prefix_keys is None or self.prefix_values is None:
            return None
        keys, values = self.prefix_keys.to(dtype), self.prefix_values.to(dtype)
        return [(k[None], v[None]) for k, v in zip(keys, values, strict=True)]

    def table(self, dtype: torch.dtype) -> SlotTable:
        rows = self.soft_rows(dtype)
        prefix = None if rows is None else [(k.detach(), v.detach()) for k, v in rows]
        return SlotTable(self.slots.detach().to(dtype), prefix)


def start_slots(target: Target, config: SlotTrainingConfig, seed: int) -> SlotModule:
    """Return the training-free placeholder, the vocabulary's mean embedding, in every slot, a little noise apart."""
    generator = torch.Generator().manual_seed(seed)
    mean = target.mean_embedding.detach().float().cpu()
    spread = target.embed(torch.arange(min(4096, target.n_embeddings))).float().std().cpu()

    def near_mean(n: int, noise: float) -> Tensor:
        return (mean + noise * spread * torch.randn(n, len(mean), generator=generator)).to(target.device)

    with torch.no_grad():
        prefix = run_alone(target, near_mean(config.n_prefix, 1.0)) if config.n_prefix else None
    return SlotModule(near_mean(config.k, NOISE), prefix)


class SlotTrainee:
    """Slots in float32 behind anchors of answers; the target's distribution is computed from its stored states."""

    def __init__(
        self, target: Target, module: SlotModule, stores: tuple[FeatureStore, FeatureStore], config: SlotTrainingConfig
    ) -> None:
        self.target, self.config = target, config
        self.store, self.held_out = stores
        self.module = module.to(target.device)
        self.lengths = [len(answer.answer_ids) for answer in self.store.answers]
        self.autocast = False  # the target computes in its own dtype
        self.output = target.output_embedding(torch.arange(target.vocab_size))  # (V, H)

    def loss(self, answers: Sequence[int], n_tokens: int, draws: Sequence[torch.Generator]) -> StepLoss:
        taken = self.store.take(answers)
        batch = pack(taken, self.config.k)
        states, rows = self.run(self.module, taken, batch, self.config.stride, draws)
        total = torch.zeros((), device=self.target.device)
        figures: dict[str, float] = {}
        for slot in range(self.config.k):
            places, valid = batch.target_rows[slot, rows], batch.valid[slot, rows]
            wanted = self.target.logits(batch.last[places]).softmax(dim=-1).to(self.output.dtype)
            weights = valid.float() * self.config.stride / n_tokens
            part, _ = soft_cross_entropy(states[:, slot], self.output, wanted, weights)
            total = total + self.config.decay**slot * part
            figures[f"loss_{slot}"] = float(part.detach())
        return StepLoss(total, figures)

    def measure(self, module: SlotModule) -> dict[str, float]:
        """Return each slot's accuracy on held-out answers, all guesses before it being right or not, and a chain's tau.

        Slots stand behind every anchor row, so the chain's walk is a pass's: what it accepted plus one.
        """
        score = ChainScore()
        for index in range(min(len(self.held_out), MEASURED_ANSWERS)):
            taken = self.held_out.take([index])
            batch = pack(taken, self.config.k)
            states, rows = self.run(module, taken, batch, 1, derive_draws(range(1)))
            guesses = self.target.logits(states).argmax(dim=-1).T  # (K, R)
            score.add(guesses == batch.predicted[:, rows], batch.valid, batch.spans)
        return {"tau": score.tau} | {f"accuracy_{slot}": share for slot, share in enumerate(score.accuracy)}

    def save(self, module: SlotModule, folder: Path, training: dict[str, Any]) -> None:
        table = module.table(self.target.dtype)
        save_slot_table(folder, table, source="trained with specviz", causal=self.config.causal, training=training)

    def run(
        self,
        module: SlotModule,
        taken: Sequence[AnsweredPrompt],
        batch: UnrollBatch,
        stride: int,
        draws: Sequence[torch.Generator],
    ) -> tuple[Tensor, Tensor]:
        """Return the slots' final states (G, K, H) and the row of each group's anchor (G,)."""
        device = self.target.device
        plan = sample_anchors(batch.spans, AnchorConfig(stride, 1), draws)
        first = torch.tensor([span.first for span in batch.spans])[plan.sequences]
        start = torch.tensor([span.rows.start for span in batch.spans])[plan.sequences]
        anchors = Anchors(plan.sequences.to(device), (first + plan.rows).to(device))
        texts = read_texts(self.target, [answer.ids for answer in taken])
        states = [self._run_groups(module, texts, groups) for groups in anchors.split(GROUPS_OF_A_PASS)]
        return torch.cat(states), (start + plan.rows).to(device)

    def _run_groups(self, module: SlotModule, texts: Texts, anchors: Anchors) -> Tensor:
        """Return the final states (G, K, H) of a group of slots behind each anchor."""
        embeds = module.slots.to(self.target.dtype).expand(len(anchors), -1, -1)
        soft = module.soft_rows(self.target.dtype)
        hidden = run_added(self.target, texts, anchors, embeds, soft, self.config.causal)
        return hidden.last[0].unflatten(0, (len(anchors), -1))


def _stacked(prefix: SoftRows, part: int) -> Tensor:
    return torch.cat([pair[part] for pair in prefix]).float().clone()
