"""The seeds' own setups on their own models, for whoever can reach those: one command each, quoted figures beside.

`python -m specviz.evaluation.seeds confu-3b --questions FILE --out FOLDER` (or confu-8b, lookahead). No drafter of
ConFu is published: give yours with `--drafter METHOD=PATH`; a lane that would have none is left out, with a sentence.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specviz import terminal
from specviz.errors import exit_status
from specviz.evaluation.bench import NEED_WEIGHTS, BenchRequest, run_bench
from specviz.evaluation.lanes import PLAIN
from specviz.evaluation.plan import PlannedLane, read_named
from specviz.evaluation.questions import Question, load_questions, spread_over_categories
from specviz.evaluation.tables import show_lanes


@dataclass(frozen=True)
class SeedRun:
    """One bench of a setup: a target, its lanes, the settings they share, and what the seed says came out."""

    name: str
    model: str
    lanes: tuple[PlannedLane, ...]
    common: Mapping[str, Any]
    quoted: str
    drafters: Mapping[str, str] = field(default_factory=dict)  # public ones, by method


def _confu_runs(model: str, quoted: Mapping[str, str], drafters: Mapping[str, str]) -> tuple[SeedRun, ...]:
    """The ConFu seed, section 4: temperature and nodes as in its table."""
    shapes = {"t0-30": (0.0, 30), "t07-30": (0.7, 30), "t1-60": (1.0, 60)}
    return tuple(
        SeedRun(
            name=name,
            model=model,
            lanes=tuple(PlannedLane(method, method, {"nodes": nodes}) for method in NEED_WEIGHTS),
            common={"temperature": temperature},
            quoted=quoted.get(name, "no figure"),
            drafters=drafters,
        )
        for name, (temperature, nodes) in shapes.items()
    )


def _lookahead_run(name: str, model: str, quoted: str) -> SeedRun:
    """The Lookahead Attention seed, section 4: k = 2, 4, 8, by the lossless rule and by its literal one; k = 16 beside.

    These are base models without a chat template.
    """
    lanes = tuple(
        PlannedLane(selection, "lookahead", {"k": k, "candidates": 1, "selection": selection})
        for selection in ("verified", "self-consistent")
        for k in (2, 4, 8, 16)
    )
    return SeedRun(name, model, lanes, {"raw": True}, quoted)


SETUPS: Mapping[str, tuple[SeedRun, ...]] = {
    "confu-3b": _confu_runs(
        "meta-llama/Llama-3.2-3B-Instruct",
        {
            "t0-30": "tau EAGLE-3 4.00, ConFu 4.41; speed-up 1.83 and 2.11",
            "t07-30": "tau EAGLE-3 3.44, ConFu 3.75",
            "t1-60": "tau EAGLE-3 3.89, ConFu 4.27",
        },
        {},
    ),
    "confu-8b": _confu_runs(
        "meta-llama/Llama-3.1-8B-Instruct",
        {"t0-30": "tau of ConFu 8 to 11 % above EAGLE-3"},
        {"eagle3": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"},
    ),
    # Qwen2.5-7B stands for Qwen-7B, whose code is remote and therefore never run.
    "lookahead": (
        _lookahead_run("llama-7b", "huggyllama/llama-7b", "speed-up 1.6, 2.1 and 2.4; acceptance 94.2, 89.7, 83.1 %"),
        _lookahead_run("qwen-7b", "Qwen/Qwen2.5-7B", "speed-up 1.5, 2.0, 2.3; acceptance 93.1, 88.3, 81.4 %"),
        _lookahead_run("deepseek-7b", "deepseek-ai/deepseek-llm-7b-base", "speed-up 1.4, 1.9, 2.2"),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("setup", choices=tuple(SETUPS))
    parser.add_argument("--questions", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--n", type=int, help="so many questions, categories taking turns; all of them if not given")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--drafter", action="append", default=[], metavar="METHOD=PATH", help="yours, by method")
    parser.add_argument("--model", help="another target in place of the setup's own")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto")
    chosen = parser.parse_args()
    questions = load_questions(chosen.questions)
    if chosen.n is not None:
        questions = spread_over_categories(questions, chosen.n)
    own = read_named(chosen.drafter, "--drafter", "METHOD")
    for run in SETUPS[chosen.setup]:
        lanes, notices = choose_lanes(run, own)
        request = BenchRequest(
            questions=questions,
            lanes=lanes,
            out=chosen.out / run.name,
            model=chosen.model or run.model,
            device=chosen.device,
            dtype=chosen.dtype,
            common={"max_new_tokens": chosen.tokens, "record": "light", **run.common},
            peers=False,
        )
        print(_report(run, request, notices, questions), flush=True)


def choose_lanes(run: SeedRun, own: Mapping[str, str]) -> tuple[list[PlannedLane], list[str]]:
    """Return plain and the lanes that have a drafter or need none, and a sentence on each that was left out."""
    drafters = {**run.drafters, **own}
    lanes, notices = [PlannedLane(PLAIN, "plain")], []
    for lane in run.lanes:
        if lane.method in NEED_WEIGHTS and lane.method not in drafters:
            notices.append(
                f"{lane.name}: no drafter is published for {run.model}; train one (python -m specviz train) "
                f"and give it with --drafter {lane.method}=PATH."
            )
        else:
            lanes.append(PlannedLane(lane.stem, lane.method, lane.asked, drafters.get(lane.method)))
    return lanes, notices


def _report(run: SeedRun, request: BenchRequest, notices: list[str], questions: list[Question]) -> str:
    title = f"\n{run.name}: {request.model}, {len(questions)} questions, {dict(request.common)}"
    terminal.tell("\n".join([title, *notices]))
    report, _ = run_bench(request, progress=terminal.tell)
    table = show_lanes({name: lane.overall for name, lane in report.lanes.items()})
    return f"{title}\n\n{table}\n\nThe seed says: {run.quoted}"


if __name__ == "__main__":
    sys.exit(exit_status(main))
