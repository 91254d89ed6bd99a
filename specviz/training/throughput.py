"""How fast answers are generated and drafters trained here, in answer tokens a second.

`python -m specviz.training.throughput --corpus PATH` answers the corpus's own prompts again, and trains each method for
a few steps into a folder that is thrown away. Generation has two rates: of the whole, and up to the moment when no
prompt is left, from which on the last long answers run alone. So has training: with the target's features computed in
the step, as in the first pass over a corpus, and taken from the store.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from specviz import terminal
from specviz.decoding.sampling import Sampler
from specviz.drafters.checkpoint_confu import start_parts
from specviz.drafters.checkpoint_eagle3 import start_eagle3
from specviz.errors import exit_status
from specviz.target.loading import load_target
from specviz.target.model import Target
from specviz.training.allocator import keep_freed_memory
from specviz.training.confu import ConfuTrainee, ConfuTrainingConfig
from specviz.training.corpus import Answer, read_corpus
from specviz.training.eagle3 import Eagle3Trainee, UnrollConfig, count_vocabulary
from specviz.training.features import FeatureStore
from specviz.training.generate import BatchGenerator, Request
from specviz.training.lookahead import SlotTrainee, SlotTrainingConfig, start_slots
from specviz.training.loop import STATE, Training, TrainingConfig

MAX_NEW_TOKENS = 280  # the corpus command's own limit
Stores = tuple[FeatureStore, FeatureStore]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True, nargs="+", type=Path)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch-tokens", type=int, default=1500)
    parser.add_argument("--answers", type=int, default=512, help="answers to generate; 0 for none")
    parser.add_argument("--model", default="bundled")
    chosen = parser.parse_args()
    return exit_status(lambda: measure(chosen.corpus, chosen.model, chosen.steps, chosen.batch_tokens, chosen.answers))


def measure(corpus: Sequence[Path], model: str, n_steps: int, batch_tokens: int, n_generated: int) -> None:
    """Print the rates of generation and of each method."""
    keep_freed_memory()
    target = load_target(model, "auto", "auto", progress=terminal.tell)
    answers = [answer for answer in read_corpus(corpus) if len(answer.answer_ids) > 4]
    if n_generated > 0:
        print(f"corpus   : {generation_rates(target, answers, n_generated)}", flush=True)
    config = TrainingConfig(steps=n_steps, batch_tokens=batch_tokens, measure_every=10**9, save_every=10**9)
    for name, build in trainees(target, answers).items():
        with tempfile.TemporaryDirectory() as folder:
            first = _rate(build, answers, target, Path(folder), config)
            (Path(folder) / "out" / STATE).unlink()  # the second run begins anew, with the features that the first left
            again = _rate(build, answers, target, Path(folder), config)
        print(f"{name:9}: {first:6.0f} answer tokens/s while features are computed, {again:6.0f} from the store")


def generation_rates(target: Target, answers: Sequence[Answer], n: int, n_places: int = 64) -> str:
    """Return the rates of answering `n` of the prompts, again and again where there are fewer; half are sampled."""
    asked = list(islice(cycle(answers), n))
    longest = max(len(answer.prompt_ids) for answer in asked) + MAX_NEW_TOKENS
    generator = BatchGenerator(target, min(n_places, n), min(longest, target.n_positions))
    requests = (
        Request(answer.prompt_ids, Sampler((0.0, 1.0)[i % 2], seed=i), MAX_NEW_TOKENS, target.eos_ids)
        for i, answer in enumerate(asked)
        if len(answer.prompt_ids) + MAX_NEW_TOKENS <= target.n_positions
    )
    full: list[float] = []

    def take() -> Request | None:
        request = next(requests, None)
        if request is None and not full:
            full.append(generator.load.tokens_per_second)
        return request

    with tqdm(total=n, unit="answer", desc="generating") as bar:
        for _ in generator.generate(take):
            bar.update()
    load = generator.load
    return (
        f"{load.tokens_per_second:6.0f} answer tokens/s over {load.n_prompts} answers ({load.n_tokens:,} tokens), "
        f"{full[0]:6.0f} while there are prompts"
    )


def trainees(target: Target, answers: Sequence[Answer], n_draft: int = 8000) -> dict[str, Callable[[Stores], Any]]:
    """Return, by method, how a trainee that was never trained is built over stores."""
    loaded = start_eagle3(target, count_vocabulary(answers, n_draft, target.vocab_size), seed=0)
    slots = SlotTrainingConfig()
    return {
        "eagle3": lambda stores: Eagle3Trainee(target, loaded, stores, UnrollConfig()),
        "confu": lambda stores: ConfuTrainee(
            target, loaded, start_parts(loaded, target), stores, ConfuTrainingConfig(UnrollConfig())
        ),
        "lookahead": lambda stores: SlotTrainee(target, start_slots(target, slots, 0), stores, slots),
    }


def _rate(
    build: Callable[[Stores], Any], answers: Sequence[Answer], target: Target, folder: Path, config: TrainingConfig
) -> float:
    """Train for the configured steps, one of them to warm up, and return answer tokens a second."""
    layers = tuple(sorted(target.feature_layers))
    stores = (
        FeatureStore(folder / "features", answers, target, layers),
        FeatureStore(folder, answers[:1], target, layers),
    )
    training = Training(build(stores), replace(config, steps=config.steps + 1), folder / "out")
    first, *rows = training.run().steps
    return sum(row["tokens"] for row in rows) / (rows[-1]["seconds"] - first["seconds"])


if __name__ == "__main__":
    sys.exit(main())
