"""The public endpoints: `/trace` gives a whole trace, `/run` the same run as it happens.

Their arguments are those of `python -m specviz run`, which are the fields of `RunSettings`: the signature
is made from them, so that page, API and command line cannot drift apart. Errors are sentences (`gr.Error`).
"""

from __future__ import annotations

import inspect
import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import gradio as gr

from specviz.decoding.events import Event, Finished, Passing, Started, Told
from specviz.errors import SpecVizError
from specviz.settings import RunSettings
from specviz.trace import to_json
from specviz.ui import packing
from specviz.ui.backend import Backend, Decode
from specviz.ui.live import UNEXPECTED
from specviz.ui.request import VisitorLimits, make_request

logger = logging.getLogger(__name__)

MODEL_QUEUE = "model"

DESCRIPTIONS = {
    "prompt": "the text to answer; a list of texts is decoded together, one row each",
    "method": "how to decode",
    "model": "a model that the operator of this page offers, by name",
    "drafter": "a drafter that the operator of this page offers, by name",
    "device": "auto; the operator of this page chose the device",
    "dtype": "auto; the operator of this page chose the number format",
    "max_new_tokens": "budget of new tokens",
    "temperature": "0 is greedy",
    "top_p": "nucleus of the sampling, 1 is off",
    "seed": "seed of the sampling",
    "stop": "texts before which the answer ends",
    "raw": "leave out the chat template",
    "record": "how much every step records",
    "attention_row": "a row of each pass whose attention weights a full record holds too",
    "compare_plain": "decode plainly too, and measure the speed-up",
    "k": "lookahead: slots behind a token",
    "selection": "lookahead: verified is lossless, self-consistent is the seed's rule",
    "threshold": "lookahead: the least probability that the self-consistent selection takes",
    "placeholder": "lookahead: what a slot holds",
    "slot_attention": "lookahead: what a slot sees of the slots before it",
    "candidates": "lookahead: candidates for a slot",
    "rows": "lookahead: most rows in a pass",
    "groups": "lookahead: most nodes that carry slots",
    "nodes": "draft tree: most nodes, root included",
    "depth": "draft tree: deepest drafted level",
    "tree_top_k": "draft tree: most children of a node",
    "confu_f": "confu: the predicted future token, on or off",
    "experts": "confu: routed experts or a fixed one",
    "contemplate": "confu: contemplate tokens behind all nodes or the root",
}


def add_endpoints(backend: Backend, decode: Decode, limits: VisitorLimits) -> None:
    """Add the endpoints to the current page; they wait in one queue with its Run button."""
    names = list(_parameters(backend))

    def stream(values: tuple[Any, ...]) -> Iterator[Told]:
        fields = dict(zip(names, values, strict=True))
        with sentences():
            request = make_request(fields.pop("prompt"), fields, backend, limits)
            with closing(decode(request.prompts, request.settings)) as events:  # type: ignore[type-var]
                yield from _bound(events, limits.wall_seconds)

    def trace(*values: Any) -> dict[str, Any]:
        *_, last = stream(values)
        return _event_record(last)["trace"]

    def run(*values: Any) -> Iterator[dict[str, Any]]:
        for event in stream(values):
            yield _event_record(event)

    _describe(trace, backend, "Decode and return the whole trace: every step, node, mask and metric.")
    _describe(run, backend, "Decode and yield what happens: started, then every step, then finished with the trace.")
    for function in (trace, run):
        gr.api(function, api_name=function.__name__, concurrency_limit=1, concurrency_id=MODEL_QUEUE)


class sentences:  # noqa: N801 - read as a statement: `with sentences(): ...`
    """Turn a user's mistake into a `gr.Error`, and an unforeseen failure into a sentence without its details."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: Any) -> None:
        if isinstance(error, SpecVizError):
            raise gr.Error(str(error), print_exception=False) from None
        if isinstance(error, Exception) and not isinstance(error, gr.Error):
            logger.error("a call failed", exc_info=error)
            raise gr.Error(UNEXPECTED, print_exception=False) from None


def _bound(events: Iterator[Event], wall_seconds: float) -> Iterator[Told]:
    """Pass on what a client is told until the time is up: a client that went away does not stop its run."""
    deadline = time.monotonic() + wall_seconds
    for event in events:
        if not isinstance(event, Passing):
            yield event
        if time.monotonic() > deadline and not isinstance(event, Finished):
            raise SpecVizError(f"A run on this page may take {wall_seconds:g} seconds; ask for fewer new tokens.")


def _event_record(event: Told) -> dict[str, Any]:
    """Return an event as plain values."""
    if isinstance(event, Started):
        return {"event": "started", "runs": [json.loads(packing.head_text(run)) for run in event.runs]}
    if isinstance(event, Finished):
        return {"event": "finished", "trace": json.loads(to_json(event.trace))}
    return {"event": "step", "row": event.row, "step": event.step.model_dump(mode="json")}


def _describe(function: Callable[..., Any], backend: Backend, purpose: str) -> None:
    """Give a function of positional values the signature and the docstring that clients see."""
    parameters = _parameters(backend)
    result = dict[str, Any]
    function.__signature__ = inspect.Signature(list(parameters.values()), return_annotation=result)  # type: ignore[attr-defined]
    function.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    function.__annotations__["return"] = result
    lines = [f"    {name}: {DESCRIPTIONS.get(name, name)}" for name in parameters]
    function.__doc__ = "\n".join([purpose, "", "Parameters:", *lines])


def _parameters(backend: Backend) -> dict[str, inspect.Parameter]:
    """Return the prompt and the fields of the settings as parameters."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = {"prompt": inspect.Parameter("prompt", kind, annotation=str | list[str])}
    own = {"model": (str, backend.model_names[0]), "stop": (list[str], [])}
    for name, field in RunSettings.model_fields.items():
        annotation, default = own.get(name, (field.annotation, field.default))
        parameters[name] = inspect.Parameter(name, kind, default=default, annotation=annotation)
    return parameters
