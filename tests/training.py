"""A tiny corpus and trainees for the tests of training."""

from __future__ import annotations

from pathlib import Path

import torch

from specviz.drafters.checkpoint_eagle3 import start_eagle3
from specviz.drafters.confu import ConfuParts
from specviz.drafters.eagle3 import LoadedHead
from specviz.target.model import Target
from specviz.training.anchors import AnchorConfig
from specviz.training.confu import ConfuTrainee, ConfuTrainingConfig
from specviz.training.corpus import Answer
from specviz.training.eagle3 import Eagle3Trainee, UnrollConfig, count_vocabulary
from specviz.training.features import FeatureStore
from specviz.training.lookahead import SlotTrainee, SlotTrainingConfig, start_slots
from specviz.training.plan import is_held_out
from tests.heads import random_head, random_parts

UNROLLED = UnrollConfig(n_steps=3)


def tiny_corpus(n: int = 12, seed: int = 0) -> list[Answer]:
    """Return answers over few tokens, so that there is something to learn."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(8, 20, (n,), generator=generator).tolist()
    return [
        Answer("file", 0.0, f"prompt {seed} {i}", _ids(5 + i % 3, generator), _ids(length, generator))
        for i, length in enumerate(lengths)
    ]


def save_corpus(path: Path, seed: int = 0) -> Path:
    """Write a corpus that leaves answers to measure; return its path."""
    answers = tiny_corpus(120, seed)
    assert any(is_held_out(answer.prompt) for answer in answers)
    path.write_text("".join(answer.to_json() + "\n" for answer in answers), encoding="utf-8")
    return path


def _ids(n: int, generator: torch.Generator) -> tuple[int, ...]:
    return tuple((2 * torch.randint(0, 60, (n,), generator=generator) + 1).tolist())


def stores(target: Target, folder: Path) -> tuple[FeatureStore, FeatureStore]:
    layers = tuple(sorted(target.feature_layers))
    return (
        FeatureStore(folder, tiny_corpus(), target, layers),
        FeatureStore(folder, tiny_corpus(3, seed=1), target, layers),
    )


def eagle3_trainee(target: Target, folder: Path, loaded: LoadedHead | None = None) -> Eagle3Trainee:
    vocabulary = count_vocabulary(tiny_corpus(), 100, target.vocab_size)
    return Eagle3Trainee(target, loaded or start_eagle3(target, vocabulary, 0), stores(target, folder), UNROLLED)


def confu_trainee(
    target: Target, folder: Path, gate: float = 0.5, start: tuple[LoadedHead, ConfuParts] | None = None
) -> ConfuTrainee:
    loaded = random_head(target)
    loaded, parts = start or (loaded, random_parts(target, loaded, gate))
    config = ConfuTrainingConfig(UNROLLED, AnchorConfig(stride=3, window=3), max_lag=3)
    return ConfuTrainee(target, loaded, parts, stores(target, folder), config)


def slot_trainee(target: Target, folder: Path, n_prefix: int = 0) -> SlotTrainee:
    config = SlotTrainingConfig(k=3, n_prefix=n_prefix, stride=3)
    return SlotTrainee(target, start_slots(target, config, 0), stores(target, folder), config)


TRAINEES = {"eagle3": eagle3_trainee, "confu": confu_trainee, "lookahead": slot_trainee}
