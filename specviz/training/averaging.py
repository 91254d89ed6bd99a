"""The mean of a drafter's weights at several moments of its training (stochastic weight averaging, arXiv 1803.05407).

`python -m specviz train average FOLDER FOLDER … --out FOLDER`: checkpoints of one line of training, each where its
learning rate had come down, the last one last. What the card and the curve say of the training is the last one's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from specviz.drafters.checkpoint_files import CONFIG, locate_drafter, read_config, read_tensors, write_drafter
from specviz.errors import SpecVizError
from specviz.training.card import CARD, compose_card
from specviz.training.lineage import CURVE, TRAINING, earlier_trainings, read_measures, read_training

CURVES = (CURVE, "curve.html")
OF_TRAINING = ("training", "notes")  # what may differ between the configs of one line


def average_drafters(drafters: Sequence[str], out: Path) -> None:
    """Write the mean of drafters as a drafter.

    Raises SpecVizError, before anything is written, where they are not of one kind, where one tells nothing of its
    training, and where `out` is one of them.
    """
    if len(drafters) < 2:
        raise SpecVizError("An average needs two drafters at least.")
    folders = [locate_drafter(drafter) for drafter in drafters]
    if any(out.exists() and out.samefile(folder) for folder in folders):
        raise SpecVizError(f"{out} is one of the drafters: the mean needs a folder of its own.")
    configs = [read_config(folder) for folder in folders]
    shapes = [{key: value for key, value in config.items() if key not in OF_TRAINING} for config in configs]
    for folder, shape in zip(folders, shapes, strict=True):
        if shape != shapes[0]:
            parts = sorted(key for key in {*shape, *shapes[0]} if shape.get(key) != shapes[0].get(key))
            raise SpecVizError(
                f"{folder.name!r} and {folders[0].name!r} differ in {', '.join(parts)} of their {CONFIG}."
            )
    trainings = [read_training(folder) for folder in folders]
    training = trainings[-1] | {"averaged": [_describe(folder) for folder in folders]}
    beside = {name: _read_curve(folders[-1] / name) for name in CURVES}
    beside[TRAINING] = json.dumps(training, indent=2) + "\n"
    beside[CARD] = compose_card(training, read_measures(folders[-1]))
    tensors = average_tensors([read_tensors(folder) for folder in folders])
    write_drafter(out, configs[-1] | {"training": training}, tensors, beside)


def average_tensors(drafters: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the means, taken in float32; tensors of integers (the draft vocabulary) have to be equal."""
    first = drafters[0]
    for other in drafters[1:]:
        if {name: part.shape for name, part in other.items()} != {name: part.shape for name, part in first.items()}:
            raise SpecVizError("Only drafters with the same tensors of the same shapes can be averaged.")
    return {name: _average(name, [drafter[name] for drafter in drafters]) for name in first}


def _average(name: str, parts: list[Tensor]) -> Tensor:
    if parts[0].is_floating_point():
        return torch.stack([part.float() for part in parts]).mean(dim=0).to(parts[-1].dtype)
    if not all(torch.equal(part, parts[0]) for part in parts):
        raise SpecVizError(f"The drafters differ in {name}: only those with one draft vocabulary can be averaged.")
    return parts[0]


def _describe(folder: Path) -> str:
    """Name a drafter by the steps that led to it."""
    trainings = earlier_trainings(folder)
    return f"{trainings[-1]['method']} after {sum(training['steps_done'] for training in trainings)} steps in all"


def _read_curve(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise SpecVizError(f"The {path.name} of {path.parent.name!r} could not be read.") from None
