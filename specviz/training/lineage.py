"""What a drafter's folder tells of its training, and of the trainings before that its weights started from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specviz.errors import SpecVizError

TRAINING = "training.json"
CURVE = "curve.json"
KEPT = ("method", "steps_done", "batch_tokens", "answer_tokens", "hours", "hardware", "seed")
METHODS = ("lookahead", "eagle3", "confu")
OF_A_RUN: dict[str, type | tuple[type, ...]] = {"method": str, "steps_done": int, "hours": (int, float)}
OF_THE_LAST: dict[str, type | tuple[type, ...]] = {
    "target": str,
    "hardware": str,
    "corpus": list,
    "answers": int,
    "answer_tokens": int,
}


def earlier_trainings(parent: Path) -> list[dict[str, Any]]:
    """Return the parent's trainings, the earliest first; none for weights that were not trained here."""
    if not (parent / TRAINING).is_file():
        return []
    training = read_training(parent)
    return [*training.get("history", []), {key: training[key] for key in KEPT if key in training}]


def read_training(folder: Path) -> dict[str, Any]:
    """Return what a drafter's folder says of its training; raise SpecVizError where a card could not tell it."""
    training, name = read_json(folder / TRAINING), f"The {TRAINING} of {folder.name!r}"
    history = training.get("history", []) if isinstance(training, dict) else None
    if not isinstance(history, list) or not all(isinstance(run, dict) for run in history):
        raise SpecVizError(f"{name} does not tell the method and the steps of its training and of those before it.")
    for run, wanted in [*((run, OF_A_RUN) for run in history), (training, OF_A_RUN | OF_THE_LAST)]:
        for key, kind in wanted.items():
            if not isinstance(run.get(key), kind):
                raise SpecVizError(f"{name} does not tell the {key} of a training: {run.get(key)!r}.")
    if training["method"] not in METHODS or not all(isinstance(part, str) for part in training["corpus"]):
        raise SpecVizError(f"{name} is not of a training of {', '.join(METHODS)} on files of answers.")
    return dict(training)


def read_measures(folder: Path) -> list[dict[str, float]]:
    """Return what was measured in a drafter's training, the last one last; raise SpecVizError where it is no curve."""
    curve = read_json(folder / CURVE)
    measures = curve.get("measures") if isinstance(curve, dict) else None
    if not isinstance(measures, list) or not all(_is_measure(row) for row in measures):
        raise SpecVizError(f"The {CURVE} of {folder.name!r} does not hold the measurements of a training.")
    return measures


def _is_measure(row: Any) -> bool:
    return isinstance(row, dict) and "tau" in row and all(isinstance(value, int | float) for value in row.values())


def read_json(path: Path) -> Any:
    """Return what a JSON file beside a drafter holds; raises SpecVizError where it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecVizError(f"{path} could not be read: {error.strerror}.") from None
    except ValueError:
        raise SpecVizError(f"{path} is not JSON.") from None
