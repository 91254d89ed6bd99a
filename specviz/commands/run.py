"""`python -m specviz run`: decode a prompt, show its tokens and metrics, save the trace."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specviz import terminal
from specviz.commands import arguments
from specviz.decoding.events import Finished, Started, Stepped
from specviz.errors import SpecVizError
from specviz.metrics import complete_run
from specviz.settings import METHODS, RunSettings, make_settings
from specviz.trace import BatchTrace, RunTrace, StepTrace, check_trace_path, save_trace

if TYPE_CHECKING:
    from specviz.decoding.engine import Engine

HELP = "decode a prompt, show its tokens and metrics, save the trace"
NOT_SETTINGS = ("prompt", "prompt_file", "out", "cuda_graphs")


def add_arguments(run: argparse.ArgumentParser) -> None:
    """Add the arguments of `run`."""
    run.add_argument("--method", required=True, choices=METHODS)
    run.add_argument("--prompt", action="extend", nargs="+", metavar="TEXT", help="may repeat: a batch")
    run.add_argument("--prompt-file", metavar="FILE", help="a file whose text is the prompt")
    run.add_argument("--drafter", metavar="PATH|HUB_ID")
    run.add_argument("--stop", action="append", metavar="TEXT", help="end the answer before this text; may repeat")
    run.add_argument("--record", default="full", choices=("light", "full"))
    run.add_argument(
        "--attention-row", type=int, metavar="ROW", help="record the attention weights of this row of each pass"
    )
    run.add_argument("--compare-plain", action="store_true", help="decode plainly too, compare and time")
    run.add_argument("--out", metavar="TRACE.json", help="save the trace")
    arguments.add_model(run)
    arguments.add_cuda_graphs(run)
    arguments.add_sampling(run)
    arguments.add_method_settings(run)


def start(parsed: dict[str, Any]) -> int:
    """Run and return the exit status; `parsed` are the arguments by name."""
    prompts = _prompts(parsed)
    out = parsed["out"]
    fields = {name: value for name, value in parsed.items() if name not in NOT_SETTINGS and value is not None}
    make_settings(**fields)  # mistakes are told before a model is loaded
    if out is not None:
        check_trace_path(str(out))
    trace = _decode(prompts, fields, parsed["cuda_graphs"])
    print(f"\n\n{terminal.summary(trace)}")
    if out is not None:
        save_trace(trace, str(out))
        print(f"  trace saved to {out}")
    return 0


def _prompts(parsed: dict[str, Any]) -> list[str]:
    prompts, file = parsed["prompt"], parsed["prompt_file"]
    if (prompts is None) == (file is None):
        raise SpecVizError("Give the prompt with --prompt or with --prompt-file, one of the two.")
    if file is None:
        return list(prompts)
    try:
        return [Path(str(file)).read_text(encoding="utf-8")]
    except (OSError, UnicodeDecodeError) as error:
        raise SpecVizError(f"The prompt file {file} could not be read: {error}.") from None


def _decode(prompts: list[str], fields: dict[str, Any], cuda_graphs: bool) -> RunTrace | BatchTrace:
    """Decode while printing; Ctrl-C keeps what there is."""
    from transformers.utils import logging

    from specviz.decoding.engine import Engine

    logging.disable_progress_bar()
    drafters = [str(fields["drafter"])] if "drafter" in fields else []
    engine = Engine([str(fields["model"])], drafters, progress=terminal.tell, cuda_graphs=cuda_graphs)
    names = {"model": engine.model_names[0]} | ({"drafter": engine.drafter_names[0]} if drafters else {})
    return _consume(engine, prompts, make_settings(**{**fields, **names}))


def _consume(engine: Engine, prompts: list[str], settings: RunSettings) -> RunTrace | BatchTrace:
    colour = terminal.uses_colour(sys.stdout)
    headers: list[RunTrace] = []
    steps: dict[int, list[StepTrace]] = {}
    n_shown = 0
    try:
        for event in engine.stream(prompts, settings):
            if isinstance(event, Started):
                headers = event.runs
                print(terminal.legend(colour) if settings.method != "plain" else "", end="\n\n" if colour else "")
            elif isinstance(event, Stepped):
                steps.setdefault(event.row, []).append(event.step)
                if len(prompts) == 1:
                    n_new = len(event.text) - n_shown
                    print(terminal.shown_tokens(event.step.committed, n_new, colour), end="", flush=True)
                    n_shown = len(event.text)
            elif isinstance(event, Finished):
                return event.trace
    except KeyboardInterrupt:
        if not steps:
            raise SpecVizError("Stopped before the first token.") from None
    stopped = [complete_run(run, steps.get(run.row, []), "stopped") for run in headers]
    return stopped[0] if len(stopped) == 1 else BatchTrace(batch=stopped)
