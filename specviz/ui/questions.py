"""What the stage asks of Python: a kind and plain values in, plain values out.

The scripts call `stage.ask(kind, values)`, or `stage.askOfRun(kind, values)` for a question about a run, which names
it by a handle (`shelf.py`). A server that has forgotten the trace says so (`missing`), and the scripts bring it again.

To add a kind: write a function from a `Question` to plain values, and name it in a table that `QUESTIONS` takes in.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from specviz.errors import SpecVizError
from specviz.figures import PlotlyDict, routing_figure
from specviz.sentence import say
from specviz.table import steps_csv
from specviz.trace import RunTrace, from_json
from specviz.ui.analyses import ANALYSES
from specviz.ui.lesson_questions import LESSONS
from specviz.ui.offline import offline_page
from specviz.ui.packing import write_base64, write_json
from specviz.ui.record import record_steps
from specviz.ui.recorded import pack_recording
from specviz.ui.shelf import MissingTraceError, TraceShelf
from specviz.ui.words import ENGLISH, translate_error, translate_values

UNCLEAR = say("The page asked for something that this server does not understand; please reload it.")


@dataclass(frozen=True)
class Question:
    """One request of the page, in the language that it speaks."""

    values: dict[str, Any]
    shelf: TraceShelf

    @property
    def language(self) -> str:
        """Return the language of the page."""
        return _language_of(self.values)

    def run(self, handle: str = "run", row: str = "row") -> RunTrace:
        """Return the run that the value `handle` stands for, its row the value `row`."""
        return self.runs(handle)[int(self.values.get(row, 0))]

    def runs(self, handle: str = "run") -> list[RunTrace]:
        """Return every row of the trace that the value `handle` stands for."""
        return self.shelf.runs(self.values[handle])


def keep_trace(question: Question) -> str:
    """Keep the trace that came along as JSON text; answer its handle."""
    text = question.values["trace"]
    if len(text) > question.shelf.max_bytes:
        raise SpecVizError(say("This trace is too long to be looked into on this page."))
    return question.shelf.keep(from_json(text))


def give_record(question: Question) -> str:
    """Answer the steps from the value `first` up to the value `last`, as `record.py` gives them, packed."""
    steps = record_steps(question.run(), int(question.values["first"]), int(question.values["last"]))
    told = write_json(translate_values(steps, question.language))
    return write_base64(zlib.compress(told.encode("utf-8", "surrogatepass")))


def open_recording(question: Question) -> str:
    """Answer the items of the recording called `name`, packed, for the stage to show."""
    return write_base64(pack_recording(question.shelf, question.values["name"], question.language))


def draw_routing(question: Question) -> PlotlyDict:
    """Answer the routing of one node of the step `step`, as a bare figure."""
    step = question.run().steps[int(question.values["step"])]
    return routing_figure(step, theme=None, node=int(question.values["node"]))


def give_csv(question: Question) -> str:
    """Answer the steps of a run as a table."""
    return steps_csv(question.run())


def give_page(question: Question) -> str:
    """Answer a page of the whole trace that works without a server."""
    return offline_page(question.runs(), language=question.language)


QUESTIONS: dict[str, Callable[[Question], Any]] = (
    {
        "keep": keep_trace,
        "record": give_record,
        "recording": open_recording,
        "routing": draw_routing,
        "csv": give_csv,
        "page": give_page,
    }
    | ANALYSES
    | LESSONS
)


def answer_question(request: dict[str, Any], shelf: TraceShelf) -> dict[str, Any]:
    """Answer one request: `{"value"}`, `{"error"}` with a sentence, or `{"missing"}` for a forgotten trace."""
    language = _language_of(request)
    try:
        return {"value": translate_values(QUESTIONS[request["kind"]](Question(request, shelf)), language)}
    except MissingTraceError:
        return {"missing": True}
    except SpecVizError as error:
        return {"error": translate_error(error, language)}
    except (ValidationError, LookupError, TypeError, ValueError, AttributeError):
        return {"error": translate_values(UNCLEAR, language)}


def _language_of(values: Any) -> str:
    return str(values.get("language", ENGLISH)) if isinstance(values, dict) else ENGLISH
