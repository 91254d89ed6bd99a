"""`python -m specviz bench`: methods, checkpoints and peers side by side over a file of questions."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specviz import terminal
from specviz.commands import arguments
from specviz.errors import SpecVizError

if TYPE_CHECKING:
    from specviz.evaluation.questions import Question

HELP = "methods, checkpoints and peers side by side over a file of questions; goes on where it was interrupted"
COMMON = ("max_new_tokens", "temperature", "top_p", "seed", "raw")
PASSED = ("out", "model", "device", "dtype", "peers", "assistant", "batch", "cuda_graphs")
INTERRUPTED = 130


def add_arguments(bench: argparse.ArgumentParser) -> None:
    """Add the arguments of `bench`."""
    bench.add_argument("--questions", required=True, metavar="FILE", help="questions in Spec-Bench's format")
    bench.add_argument("--methods", required=True, metavar="A,B", help="plain is always run, for the speed-up")
    bench.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="records, traces and the report")
    bench.add_argument(
        "--lane",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="a checkpoint of the one method asked for; repeat it to compare several, with their misses",
    )
    bench.add_argument(
        "--drafter", action="append", default=[], metavar="METHOD=PATH", help="a method's drafter; may repeat"
    )
    bench.add_argument("--n", type=int, metavar="N", help="so many questions, categories taking turns")
    bench.add_argument("--per-category", type=int, metavar="N", help="the first N questions of each category")
    bench.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="transformers' generate")
    bench.add_argument("--assistant", metavar="MODEL", help="a smaller model, for transformers' assisted decoding")
    bench.add_argument("--batch", type=int, default=1, metavar="N", help="questions decoded together: greedy only")
    bench.add_argument("--record", choices=("light", "full"), help="full with --lane, else light")
    arguments.add_model(bench)
    arguments.add_cuda_graphs(bench)
    arguments.add_sampling(bench)
    arguments.add_method_settings(bench, several=True)


def start(parsed: dict[str, Any]) -> int:
    """Bench and return the exit status; `parsed` are the arguments by name."""
    from specviz.evaluation.questions import load_questions

    questions = _choose(load_questions(parsed["questions"]), parsed["n"], parsed["per_category"])
    try:
        return _bench(parsed, questions)
    except KeyboardInterrupt:
        print("\nspecviz: Stopped; the same command goes on from here.", file=sys.stderr)
        return INTERRUPTED


def _bench(parsed: dict[str, Any], questions: list[Question]) -> int:
    from transformers.utils import logging

    from specviz.evaluation.bench import BenchRequest, run_bench
    from specviz.evaluation.plan import SWEPT, plan_lanes, read_named
    from specviz.evaluation.tables import show_lanes

    _check_batch(parsed["batch"], parsed["temperature"])
    lanes = plan_lanes(
        [method.strip() for method in parsed["methods"].split(",")],
        {name: parsed[name] for name in SWEPT if parsed[name] is not None},
        read_named(parsed["drafter"], "--drafter", "METHOD"),
        read_named(parsed["lane"], "--lane", "NAME"),
    )
    logging.disable_progress_bar()
    logging.set_verbosity_error()  # generate warns of its own defaults at each call
    report, files = run_bench(
        BenchRequest(
            questions=questions,
            lanes=lanes,
            common={name: parsed[name] for name in COMMON} | {"record": _record_level(parsed)},
            **{name: parsed[name] for name in PASSED},
        ),
        progress=terminal.tell,
    )
    print(show_lanes({name: lane.overall for name, lane in report.lanes.items()}))
    print(f"\nwritten: {', '.join(map(str, files))}")
    return 0


def _choose(questions: list[Question], n: int | None, per_category: int | None) -> list[Question]:
    from specviz.evaluation.questions import first_of_categories, spread_over_categories

    for flag, count in (("--n", n), ("--per-category", per_category)):
        if count is not None and count < 1:
            raise SpecVizError(f"{flag} must be at least 1, not {count}.")
    if per_category is not None:
        questions = first_of_categories(questions, per_category)
    return questions if n is None else spread_over_categories(questions, n)


def _check_batch(batch: int, temperature: float) -> None:
    if batch < 1:
        raise SpecVizError(f"--batch must be at least 1, not {batch}.")
    if batch > 1 and temperature > 0:
        raise SpecVizError("--batch decodes greedily: in a batch a question's seed would depend on its neighbours.")


def _record_level(parsed: dict[str, Any]) -> str:
    return parsed["record"] or ("full" if parsed["lane"] else "light")
