"""Are learned slots better than the training-free placeholder, slot by slot, on the same held-out answers?

`python -m specviz.evaluation.slots --corpus PATH --drafter FOLDER` prints how often each slot's best token is the
answer's own, for the learned slots and for the vocabulary's mean embedding, both with a group behind every token of the
answers. The answers are those that a training on this corpus leaves out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from specviz import terminal
from specviz.drafters.checkpoint import load_slot_table
from specviz.drafters.checkpoint_files import read_config
from specviz.errors import SpecVizError, exit_status
from specviz.evaluation.markdown import make_table
from specviz.target.bundled import cache_root
from specviz.target.loading import load_target
from specviz.target.model import Target
from specviz.training.corpus import read_corpus
from specviz.training.features import FeatureStore
from specviz.training.lookahead import MEASURED_ANSWERS, SlotModule, SlotTrainee, SlotTrainingConfig
from specviz.training.plan import split_corpus


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True, nargs="+", type=Path)
    parser.add_argument("--drafter", required=True, type=Path, help="the learned slots")
    parser.add_argument("--model", default="bundled")
    chosen = parser.parse_args()
    return exit_status(lambda: _print(chosen))


def compare_slots(target: Target, held_out: FeatureStore, folder: Path) -> list[tuple[int, float, float]]:
    """Return (slot from 1 on, accuracy of the training-free placeholder, of the learned slots) for every slot."""
    table, _ = load_slot_table(folder, target)
    causal = bool(read_config(folder).get("causal", True))
    free = SlotModule(target.mean_embedding.detach().expand(len(table.slots), -1), None)
    modules = ((free, False), (SlotModule(table.slots, table.prefix), causal))
    by_lane = [_accuracies(target, held_out, module, is_causal) for module, is_causal in modules]
    return [(slot, *pair) for slot, pair in enumerate(zip(*by_lane, strict=True), start=1)]


def _accuracies(target: Target, held_out: FeatureStore, module: SlotModule, causal: bool) -> Sequence[float]:
    config = SlotTrainingConfig(k=len(module.slots), causal=causal)
    with torch.no_grad():
        figures = SlotTrainee(target, module, (held_out, held_out), config).measure(module)
    return [figures[f"accuracy_{slot}"] for slot in range(config.k)]


def _print(chosen: argparse.Namespace) -> None:
    _, answers = split_corpus(read_corpus(chosen.corpus), MEASURED_ANSWERS)
    if not answers:
        raise SpecVizError("The corpus leaves no greedy answer to measure.")
    target = load_target(chosen.model, "auto", "auto", progress=terminal.tell)
    held_out = FeatureStore(cache_root() / "features", answers, target, tuple(sorted(target.feature_layers)))
    compared = compare_slots(target, held_out, chosen.drafter)
    rows = [[str(slot), f"{free:.3f}", f"{own:.3f}"] for slot, free, own in compared]
    n_tokens = sum(len(answer.answer_ids) for answer in answers)
    print(f"{len(answers)} held-out answers, {n_tokens:,} tokens, {target.info.dtype}\n")
    print(make_table(["slot", "vocab-mean, no training", "learned"], rows))


if __name__ == "__main__":
    sys.exit(main())
