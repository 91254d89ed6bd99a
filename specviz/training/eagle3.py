"""Training an EAGLE-3 head: unrolled over its own features, against the target's distribution (EAGLE-3, section 3).

Letters: I unrolled steps, R rows, H hidden, F width of the features, N draft vocabulary.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from specviz.drafters.checkpoint_eagle3 import save_eagle3
from specviz.drafters.draft_vocabulary import DraftVocabulary
from specviz.drafters.eagle3 import LoadedHead
from specviz.drafters.eagle3_head import DraftHead
from specviz.target.model import Target
from specviz.trace import DrafterInfo
from specviz.training.corpus import Answer
from specviz.training.features import AnsweredPrompt, FeatureStore
from specviz.training.heldout import ChainScore
from specviz.training.loop import StepLoss
from specviz.training.soft_cross_entropy import CHUNK, soft_cross_entropy
from specviz.training.unroll import UnrollBatch, pack, unroll

MEASURED_STEPS = 7
MEASURED_TOKENS = 1000  # answer tokens of a held-out batch; added rows attend to all of its tokens


@dataclass(frozen=True)
class UnrollConfig:
    """How far the head is unrolled in training, and how much each further step weighs (EAGLE: 7 and 0.8)."""

    n_steps: int = 4
    decay: float = 0.8


def count_vocabulary(answers: Sequence[Answer], n_draft: int, n_target: int) -> DraftVocabulary:
    """Return the tokens that answers use most, the lowest unused ids filling up what is left (EAGLE-3, 3.3)."""
    counts = Counter(token for answer in answers for token in answer.answer_ids)
    ranked = sorted(range(n_target), key=lambda token: (-counts[token], token))
    return DraftVocabulary(torch.tensor(sorted(ranked[:n_draft])), n_target)


class Eagle3Trainee:
    """A head in float32 with its features scaled to one size; on disk the scale is folded into `fc`."""

    def __init__(
        self,
        target: Target,
        loaded: LoadedHead,
        stores: tuple[FeatureStore, FeatureStore],
        unrolled: UnrollConfig,
    ) -> None:
        self.target, self.vocabulary, self.info = target, loaded.vocabulary, loaded.info
        self.unrolled = unrolled
        self.store, self.held_out = stores  # to train on, to measure on
        self.lengths = [len(answer.answer_ids) for answer in self.store.answers]
        self.scale = _feature_scale(loaded.head, self.store)
        self.module: nn.Module = _trainable(loaded.head, self.scale)
        self.autocast = target.dtype == torch.bfloat16
        self.target_weight = target.output_embedding(self.vocabulary.target_ids)  # (N, H)
        self.draftable = self.vocabulary.mask.to(target.device)  # (V,)

    def loss(self, answers: Sequence[int], n_tokens: int, draws: Sequence[torch.Generator]) -> StepLoss:
        batch = pack(self.store.take(answers), self.unrolled.n_steps)
        head = self.head_of(self.module)
        outputs = unroll(head, batch, self.fused(head, batch.features), self.embed)
        everywhere = torch.ones(batch.n_rows, dtype=torch.bool, device=self.target.device)
        return self.unrolled_loss(head, batch, outputs, everywhere, n_tokens)

    def unrolled_loss(
        self, head: DraftHead, batch: UnrollBatch, outputs: Iterator[Tensor], counted: Tensor, n_tokens: int
    ) -> StepLoss:
        """Sum the steps' losses over the rows that are `counted` (R,), each further step weighing less."""
        wanted = self.target_probs(batch)
        table = head.lm_head.weight.to(wanted.dtype)  # once for all steps, and their gradients are summed in it
        total = torch.zeros((), device=self.target.device)
        figures: dict[str, float] = {}
        for step, states in enumerate(outputs):
            weights = self.row_weights(batch, step) * counted / n_tokens
            part, _ = soft_cross_entropy(states.to(wanted.dtype), table, wanted[batch.target_rows[step]], weights)
            total = total + self.unrolled.decay**step * part
            figures[f"loss_{step}"] = float(part.detach())
        return StepLoss(total, figures)

    def measure(self, module: nn.Module) -> dict[str, float]:
        score = ChainScore()
        for group in _groups(self.held_out.answers):
            taken = self.held_out.take(group)
            batch = pack(taken, MEASURED_STEPS)
            outputs = self.score_batch(module, taken, batch)
            right = [self.right(batch, step, states, module) for step, states in enumerate(outputs)]
            score.add(torch.stack(right), batch.valid, batch.spans)
        return {"tau": score.tau} | {f"accuracy_{step}": share for step, share in enumerate(score.accuracy)}

    def score_batch(self, module: nn.Module, taken: Sequence[AnsweredPrompt], batch: UnrollBatch) -> Iterator[Tensor]:
        """Yield the normed outputs (R, H) of held-out answers, step by step."""
        head = self.head_of(module)
        return unroll(head, batch, self.fused(head, batch.features), self.embed)

    def save(self, module: nn.Module, folder: Path, training: dict[str, Any]) -> None:
        info = trained_info(self.info, folder.name)
        save_eagle3(folder, LoadedHead(self.folded(self.head_of(module)), self.vocabulary, info), training=training)

    def fused(self, head: DraftHead, features: Tensor) -> Tensor:
        """Return the head's float32 states (..., H) of the target's features (..., F)."""
        return head.fuse(features.float() / self.scale).float()

    def embed(self, token_ids: Tensor) -> Tensor:
        """Return the embeddings (R, H) that the head reads: the target's, frozen, or its own."""
        head = self.head_of(self.module)
        return head.embed_tokens(token_ids) if head.config.own_embedding else self.target.embed(token_ids).float()

    def row_weights(self, batch: UnrollBatch, step: int) -> Tensor:
        """Return (R,) of 1 where a row counts: inside the answer, the target's choice being a draft token."""
        choice = batch.argmax[batch.target_rows[step]]
        return (batch.valid[step] & self.draftable[choice]).float()

    def target_probs(self, batch: UnrollBatch) -> Tensor:
        """Return the target's probabilities after every token, over the draft vocabulary (tokens, N), in its dtype."""
        probs = [
            self.target.finish_logits((part @ self.target_weight.T).float()).softmax(dim=-1).to(part.dtype)
            for part in batch.last.split(CHUNK)
        ]
        return torch.cat(probs)

    def right(self, batch: UnrollBatch, step: int, states: Tensor, module: nn.Module) -> Tensor:
        """Return (R,): whether the best draft token is the answer's own."""
        guesses = self.head_of(module).lm_head(states).argmax(dim=-1)
        return self.vocabulary.target_ids[guesses] == batch.predicted[step]

    def head_of(self, module: nn.Module) -> DraftHead:
        """Return the head among what is trained."""
        assert isinstance(module, DraftHead), "an EAGLE-3 trainee is its head"
        return module

    def folded(self, module: DraftHead) -> DraftHead:
        """Return a copy in the target's dtype whose `fc` takes features as the target gives them."""
        head = copy.deepcopy(module).requires_grad_(False)
        head.fc.weight.div_(self.scale)
        return head.to(self.target.dtype)


def trained_info(info: DrafterInfo, name: str) -> DrafterInfo:
    """Return what a trace says of a drafter once it has been trained under a name."""
    return info.model_copy(update={"name": name, "source": "trained with specviz", "trained": True, "notes": []})


def _trainable(head: DraftHead, scale: Tensor) -> DraftHead:
    """Return a float32 copy that takes scaled features; an embedding of its own stays frozen (EAGLE-3)."""
    trainable = copy.deepcopy(head).float()
    trainable.fc.weight.data.mul_(scale)
    trainable.train().requires_grad_(True)
    if head.config.own_embedding:
        trainable.embed_tokens.requires_grad_(False)
    return trainable


def _feature_scale(head: DraftHead, store: FeatureStore) -> Tensor:
    """Return what features are divided by (F,); a head that norms them itself takes them as they are."""
    if head.config.norm_before_fc or head.config.fc_norm:
        return torch.ones(head.config.feature_size, device=head.fc.weight.device)
    return store.scale()


def _groups(answers: Sequence[Answer]) -> list[list[int]]:
    groups: list[list[int]] = []
    n_tokens = MEASURED_TOKENS
    for index, answer in enumerate(answers):
        if n_tokens + len(answer.answer_ids) > MEASURED_TOKENS:
            groups, n_tokens = [*groups, []], 0
        groups[-1].append(index)
        n_tokens += len(answer.answer_ids)
    return groups
