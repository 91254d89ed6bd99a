"""The trainings that led to the weights a run starts from, so that a drafter's steps and hours are told in all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specviz.training.card import read_json

KEPT = ("method", "steps_done", "batch_tokens", "answer_tokens", "hours", "hardware", "seed")


def earlier_trainings(parent: Path) -> list[dict[str, Any]]:
    """Return the parent's trainings, the earliest first; none for weights that were not trained here."""
    path = parent / "training.json"
    if not path.is_file():
        return []
    training = read_json(path)
    return [*training.get("history", []), {key: training[key] for key in KEPT if key in training}]
