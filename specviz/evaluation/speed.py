"""What a step costs: the plain lane against transformers' generate, recording, verification, and drafting by level.

`python -m specviz.evaluation.speed --questions FILE` prints the figures; all pairs are measured in turns in one run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from time import perf_counter

from specviz.decoding.engine import Engine
from specviz.decoding.events import Finished
from specviz.errors import exit_status
from specviz.evaluation.draft_cost import draft_cost
from specviz.evaluation.lanes import EngineLane, Lane
from specviz.evaluation.peers import GenerateLane
from specviz.evaluation.questions import Question, load_questions, spread_over_categories
from specviz.evaluation.verification_cost import verification_cost
from specviz.metrics import step_ms
from specviz.settings import RunSettings, make_settings
from specviz.trace import RunTrace

PARTS = ("generate", "recording", "verification", "draft")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", required=True)
    parser.add_argument("--n", type=int, default=13)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure (default: all)")
    chosen = parser.parse_args()
    engine = Engine([chosen.model], dtype=chosen.dtype)
    name = engine.model_names[0]
    questions = spread_over_categories(load_questions(chosen.questions), chosen.n)
    info = engine.info(name)
    print(f"{info.name}, {info.dtype} on {info.device}, {len(questions)} questions, {chosen.tokens} tokens, greedy\n")
    measures: dict[str, Callable[[], str]] = {
        "generate": lambda: compare_with_generate(engine, name, questions, chosen.tokens),
        "recording": lambda: recording_cost(engine, name, questions, chosen.tokens),
        "verification": lambda: verification_cost(engine.target(name)),
        "draft": lambda: draft_cost(engine, name),
    }
    for part in chosen.parts:
        print(measures[part](), flush=True)


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


if __name__ == "__main__":
    sys.exit(exit_status(main))
