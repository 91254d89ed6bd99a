"""What the stage asks of Python on request: a kind and plain values in, plain values out.

The scripts call `stage.ask(kind, values)`. A question about a step brings the step along; one about a run names it by
a handle, which the kind `keep` gives for a trace, so that a trace travels up once. The server may forget a handle
(`missing`), and the scripts then keep the trace again.

To add a kind: write a function from a `Question` to plain values, and name it in a table that `QUESTIONS` takes in.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from specviz.errors import SpecVizError
from specviz.figures import EXTRA_NODE, explain_node, explain_token
from specviz.trace import BatchTrace, RunTrace, StepTrace, from_json
from specviz.ui.packing import runs_of

MOST_KEPT = 32
MOST_CHARACTERS = 64 * 2**20
UNCLEAR = "The page asked for something that this server does not understand; please reload it."


class MissingTraceError(LookupError):
    """The server does not hold the trace that a handle stands for."""


class KeptTraces:
    """The traces that were asked about last, by a handle that nobody can guess."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._runs: OrderedDict[str, list[RunTrace]] = OrderedDict()

    def keep(self, trace: RunTrace | BatchTrace) -> str:
        """Keep a trace and return its handle; the one that was not asked about for longest goes."""
        handle = secrets.token_urlsafe(16)
        self._runs[handle] = runs_of(trace)
        while len(self._runs) > self._most:
            self._runs.popitem(last=False)
        return handle

    def run(self, handle: str, row: int) -> RunTrace:
        """Return one row of a kept trace; raise MissingTraceError where it is gone."""
        if handle not in self._runs:
            raise MissingTraceError(handle)
        self._runs.move_to_end(handle)
        return self._runs[handle][row]


@dataclass(frozen=True)
class Question:
    """One request of the page."""

    values: dict[str, Any]
    kept: KeptTraces

    def step(self) -> StepTrace:
        """Return the step that came along."""
        return StepTrace.model_validate(self.values["step"])

    def run(self, name: str = "run", row: str = "row") -> RunTrace:
        """Return the run whose handle is the value `name`, its row the value `row`."""
        return self.kept.run(self.values[name], int(self.values.get(row, 0)))


def keep_trace(question: Question) -> str:
    """Keep the trace that came along as JSON text; answer its handle."""
    text = question.values["trace"]
    if len(text) > MOST_CHARACTERS:
        raise SpecVizError("This trace is too long to be analysed on this page.")
    return question.kept.keep(from_json(text))


def explain(question: Question) -> str:
    """Explain one node of a step in a sentence, or the token that the target added to it."""
    step, node = question.step(), int(question.values["node"])
    return explain_token(step.committed[-1]) if node == EXTRA_NODE else explain_node(step, node)


QUESTIONS: dict[str, Callable[[Question], Any]] = {"keep": keep_trace, "explain": explain}

_kept = KeptTraces()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one request: `{"value"}`, `{"error"}` with a sentence, or `{"missing"}` for a forgotten handle."""
    try:
        return {"value": QUESTIONS[request["kind"]](Question(request, _kept))}
    except MissingTraceError:
        return {"missing": True}
    except SpecVizError as error:
        return {"error": str(error)}
    except (ValidationError, LookupError, TypeError, ValueError):
        return {"error": UNCLEAR}
