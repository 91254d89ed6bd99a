"""What a step costs: the plain lane against transformers' generate, recording, and verification against a bare pass.

`python -m specviz.evaluation.speed --questions FILE` prints the ratios; all pairs are measured in one run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch

from specviz.decoding.engine import Engine
from specviz.decoding.events import Finished
from specviz.decoding.layout import RowLayout
from specviz.decoding.masks import MaskBuilder
from specviz.errors import exit_status
from specviz.evaluation.lanes import EngineLane, Lane
from specviz.evaluation.peers import GenerateLane
from specviz.evaluation.questions import Question, load_questions, spread_over_categories
from specviz.metrics import step_ms
from specviz.settings import RunSettings, make_settings
from specviz.target.model import Target
from specviz.trace import RunTrace

PREFIX = 256
REPEATS = 20
ROW_COUNTS = (1, 8, 16, 30, 60, 120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", required=True)
    parser.add_argument("--n", type=int, default=13)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--dtype", default="auto")
    chosen = parser.parse_args()
    engine = Engine([chosen.model], dtype=chosen.dtype)
    name = engine.model_names[0]
    questions = spread_over_categories(load_questions(chosen.questions), chosen.n)
    info = engine.info(name)
    print(f"{info.name}, {info.dtype} on {info.device}, {len(questions)} questions, {chosen.tokens} tokens, greedy\n")
    print(compare_with_generate(engine, name, questions, chosen.tokens))
    print(recording_cost(engine, name, questions, chosen.tokens))
    print(verification_cost(engine.target(name)))


def compare_with_generate(engine: Engine, model: str, questions: list[Question], n_tokens: int) -> str:
    """Time the plain lane and transformers' generate in turns on the same prompts; both with prefill."""
    settings = make_settings(method="plain", model=model, max_new_tokens=n_tokens, record="light")
    lanes: dict[str, Lane] = {
        "plain": EngineLane(engine, settings),
        "generate": GenerateLane(engine.target(model), settings),
    }
    rates: dict[str, list[float]] = {name: [] for name in lanes}
    for question in questions:
        for name, lane in lanes.items():
            lane.warm_up([question])
            (answer,) = lane.answer([question])
            rates[name].append(len(answer.token_ids) / answer.seconds)
    plain, generate = (statistics.mean(rates[name]) for name in lanes)
    return (
        f"plain lane {plain:.1f} tokens/s, transformers generate {generate:.1f} tokens/s: ratio {plain / generate:.2f}"
    )


def recording_cost(engine: Engine, model: str, questions: list[Question], n_tokens: int) -> str:
    """Return what recording and yielding add to a step, in percent, for each method and level."""
    lines = []
    for method in engine.methods:
        for level in ("light", "full"):
            settings = make_settings(method=method, model=model, max_new_tokens=n_tokens, record=level)
            shares = [_overhead(engine, question, settings) for question in questions[:5]]
            lines.append(
                f"recording and yielding, {method:9} {level:5}: {100 * statistics.mean(shares):.1f} % of a step"
            )
    return "\n".join(lines)


def _overhead(engine: Engine, question: Question, settings: RunSettings) -> float:
    """Return (wall time of the stream - decoding time) / decoding time, after the header."""
    stream = engine.stream([question.prompt], settings)
    next(stream)
    started = perf_counter()
    for event in stream:
        if isinstance(event, Finished):
            wall_ms = 1000 * (perf_counter() - started)
            assert isinstance(event.trace, RunTrace), "one prompt gives one run"
            decoding_ms = sum(step_ms(step) for step in event.trace.steps)
            return (wall_ms - decoding_ms) / decoding_ms
    raise AssertionError("a stream ends with Finished")


def verification_cost(target: Target) -> str:
    """Return, by rows, our pass (rows, mask, cache, logits, keep) against a bare forward of as many rows."""
    lines = []
    for n_rows in ROW_COUNTS:
        ours, bare = _median_pair(_our_pass(target, n_rows), _bare_pass(target, n_rows))
        lines.append(f"verification of {n_rows:3} rows {ours:6.1f} ms, bare forward {bare:6.1f} ms: {ours / bare:.2f}")
    return "\n".join(lines)


def _our_pass(target: Target, n_rows: int) -> Callable[[], Any]:
    masks, layout = MaskBuilder(), RowLayout(tuple(range(-1, n_rows - 1)))
    cache = target.new_cache(1, PREFIX + n_rows)
    _run_rows(target, masks, cache, RowLayout((-1,), n_pending=PREFIX))
    cache.keep([range(PREFIX)])

    def run() -> None:
        last = _run_rows(target, masks, cache, layout)
        target.logits(last[0]).argmax(dim=-1).tolist()
        cache.keep([[]])

    return run


def _run_rows(target: Target, masks: MaskBuilder, cache: Any, layout: RowLayout) -> torch.Tensor:
    embeds = target.embed([[100 + i for i in range(layout.n_rows)]])
    positions = torch.tensor([layout.positions(cache.lengths[0])], device=target.device)
    return target.forward(embeds, positions, masks.build([layout], cache, target.device), cache).last


def _bare_pass(target: Target, n_rows: int) -> Callable[[], Any]:
    """The model's own forward over a prefix of its own cache, which is cropped back after each pass."""
    row = torch.arange(100, 100 + PREFIX + n_rows, device=target.device)[None]
    with torch.inference_mode():
        output = target.model(input_ids=row[:, :PREFIX], use_cache=True)
    cache = getattr(output, target.cache_argument)

    def run() -> None:
        with torch.inference_mode():
            logits = target.model(input_ids=row[:, PREFIX:], use_cache=True, **{target.cache_argument: cache}).logits
        logits.argmax(dim=-1).tolist()
        cache.crop(-n_rows)

    return run


def _median_pair(one: Callable[[], Any], other: Callable[[], Any]) -> tuple[float, float]:
    """Time two functions in turns and return their medians in milliseconds."""
    times: tuple[list[float], list[float]] = ([], [])
    for repeat in range(REPEATS + 3):
        for place, run in enumerate((one, other)):
            started = perf_counter()
            run()
            if repeat >= 3:
                times[place].append(1000 * (perf_counter() - started))
    return statistics.median(times[0]), statistics.median(times[1])


if __name__ == "__main__":
    sys.exit(exit_status(main))
