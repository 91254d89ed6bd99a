"""A live run as a stream of messages for the stage."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from specviz.decoding.events import Finished, Passing, Started, Stepped, Told
from specviz.errors import SpecVizError
from specviz.metrics import complete_run, first_departure
from specviz.sentence import say
from specviz.trace import FinishReason, RunTrace
from specviz.ui import packing
from specviz.ui.backend import Decode
from specviz.ui.pacing import SECONDS_BETWEEN_MESSAGES, pace
from specviz.ui.request import RunRequest
from specviz.ui.shelf import TraceShelf
from specviz.ui.step_item import step_item
from specviz.ui.words import ENGLISH, translate_error

logger = logging.getLogger(__name__)

StageValue = dict[str, Any]

UNEXPECTED = say("Something went wrong on the server, and the run ended here; the next run is not affected.")


@dataclass
class StopSwitch:
    """One session's wish to stop; the run looks at it after every step and before every pass of the target."""

    requested: bool = False
    running: bool = False


@dataclass(frozen=True)
class Ended:
    """The run was ended from outside the engine, and this is why."""

    reason: FinishReason
    message: str


@dataclass
class LiveRun:
    """Keeps what a run has so far, and turns its events into items.

    `handle` is what the page asks by, `prompts` are as the visitor typed them.
    """

    handle: str
    prompts: list[str]
    runs: list[RunTrace] = field(default_factory=list)
    pieces: list[list[str]] = field(default_factory=list)

    def make_items(self, events: Iterable[Told | Ended]) -> list[packing.Item]:
        """Return the items of some events, with the metrics as they are after them."""
        items: list[packing.Item] = []
        touched: set[int] = set()
        for event in events:
            if isinstance(event, Started):
                self.runs = [run.model_copy(update={"steps": [], "row": row}) for row, run in enumerate(event.runs)]
                self.pieces = [[token.piece for token in run.prompt] for run in self.runs]
                items.append(packing.start_item(self.runs, "live", self.handle, prompts=self.prompts))
            elif isinstance(event, Stepped):
                items.append(self._add_step(event))
                touched.add(event.row)
            else:
                items.append(self._finish(event))
        return items + [packing.metrics_item(row, self.runs[row]) for row in sorted(touched)]

    def _add_step(self, event: Stepped) -> packing.Item:
        run, pieces = self.runs[event.row], self.pieces[event.row]
        run.steps.append(event.step)
        own = [token.piece for token in event.step.committed]
        n_characters = sum(len(piece) for piece in own)
        n_hidden = sum(len(token.piece) for token in run.answer) - len(event.text)
        item = step_item(event.row, event.step, pieces, min(n_characters, n_hidden))
        pieces += own
        return item

    def _finish(self, event: Finished | Ended) -> packing.Item:
        if isinstance(event, Finished):
            self.runs = packing.runs_of(event.trace)
            return packing.finish_item(self.runs)
        if not self.runs:
            return packing.failed_item(event.message)
        self.runs = [
            complete_run(run, run.steps, event.reason, divergence=first_departure(run.steps)) for run in self.runs
        ]
        return packing.finish_item(self.runs, event.message)


def stream_run(
    decode: Decode,
    request: RunRequest,
    switch: StopSwitch,
    shelf: TraceShelf,
    wall_seconds: float,
    interval: float = SECONDS_BETWEEN_MESSAGES,
    language: str = ENGLISH,
) -> Iterator[StageValue]:
    """Decode and yield stage values; closing this generator closes the engine's after the step in hand."""
    run, stream = uuid.uuid4().hex, packing.ItemStream(language)
    live = LiveRun(handle=run, prompts=request.prompts)
    shelf.hold(run, lambda: live.runs)
    with closing(_guard(decode, request, switch, wall_seconds, language)) as events:
        for n, group in enumerate(pace(events, interval)):
            yield stage_value(run, n, stream.pack(live.make_items(group)))


def stage_value(run: str, n: int, packed: bytes) -> StageValue:
    """Return a value for the stage; `n` makes each one new, since an equal value reaches no watcher."""
    return {"run": run, "n": n, "packed": packing.write_base64(packed)}


def _guard(
    decode: Decode, request: RunRequest, switch: StopSwitch, wall_seconds: float, language: str
) -> Generator[Told | Ended, None, None]:
    """Yield the engine's events until it ends, fails, is stopped, or takes too long."""
    deadline = time.monotonic() + wall_seconds
    switch.running = True
    try:
        if switch.requested:
            yield Ended("stopped", say("Stopped before it began."))
            return
        with closing(decode(request.prompts, request.settings)) as events:  # type: ignore[type-var]
            for event in events:
                if not isinstance(event, Passing):
                    yield event
                if isinstance(event, Finished):
                    return
                if switch.requested:
                    yield Ended("stopped", say("Stopped."))
                    return
                if time.monotonic() > deadline:
                    yield Ended(
                        "stopped", say("Stopped: a run on this page may take {n} seconds.", n=f"{wall_seconds:g}")
                    )
                    return
    except SpecVizError as error:
        yield Ended("error", translate_error(error, language))
    except Exception:
        logger.exception("a run failed")
        yield Ended("error", UNEXPECTED)
    finally:
        switch.running = False
