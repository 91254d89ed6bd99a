"""What starts and ends a live run on the page: Run, a race, a run again from its link, Stop."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import gradio as gr

from specviz.errors import SpecVizError
from specviz.sentence import say
from specviz.ui.backend import Backend, Decode
from specviz.ui.controls import Controls
from specviz.ui.endpoints import MODEL_QUEUE
from specviz.ui.link import read_run
from specviz.ui.live import StageValue, StopSwitch, stream_run
from specviz.ui.request import RunRequest, VisitorLimits, make_request
from specviz.ui.shelf import TraceShelf
from specviz.ui.words import language_of, translate_error

SECONDS_TO_END = 10.0
PRIVATE: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}

Updates = tuple[dict[str, Any], ...]


def connect_run(
    controls: Controls,
    stage: gr.HTML,
    backend: Backend,
    decode: Decode,
    shelf: TraceShelf,
    limits: VisitorLimits,
) -> None:
    """Connect what starts a run, and Stop.

    A request is checked at once, outside the model's queue, and decoded in it: what was checked is what runs, whatever
    becomes of the controls meanwhile. Stop ends a run or takes it off the queue.
    """
    switch, asked = gr.State(StopSwitch()), gr.State()
    buttons = [controls.run, controls.race, controls.stop]
    own_model = {"model": backend.model_names[0]}  # for a link that names none

    def accept(request: gr.Request, flag: StopSwitch, make: Callable[[], RunRequest]) -> tuple[Any, ...]:
        with shown(language_of(request)):
            wanted = make()
        flag.requested = False
        return (wanted, *_show_running(True))

    def ask_as_set(request: gr.Request, flag: StopSwitch, *values: Any) -> tuple[Any, ...]:
        return accept(request, flag, lambda: make_request(*controls.read(values), backend, limits))

    def ask_for_race(request: gr.Request, flag: StopSwitch, *values: Any) -> tuple[Any, ...]:
        prompts, fields = controls.read(values)
        return accept(request, flag, lambda: _make_race(make_request(prompts, fields, backend, limits)))

    def ask_as_linked(request: gr.Request, flag: StopSwitch, event: gr.EventData) -> tuple[Any, ...]:
        prompts, fields = read_run(event.link)
        return accept(request, flag, lambda: make_request(prompts, own_model | fields, backend, limits))

    def decode_live(request: gr.Request, flag: StopSwitch, wanted: RunRequest) -> Iterator[StageValue]:
        yield from stream_run(decode, wanted, flag, shelf, limits.wall_seconds, language=language_of(request))

    inputs, outputs = [switch, *controls.components], [asked, *buttons]
    starts = [
        ("waiting", controls.run.click(ask_as_set, inputs, outputs, concurrency_limit=None, **PRIVATE)),
        ("racing", controls.race.click(ask_for_race, inputs, outputs, concurrency_limit=None, **PRIVATE)),
        ("waiting", stage.again(ask_as_linked, [switch], outputs, concurrency_limit=None, **PRIVATE)),
    ]
    runs = []
    for announced, start in starts:
        running = start.success(
            decode_live,
            [switch, asked],
            stage,
            js=_announce(announced, 2),
            concurrency_limit=1,
            concurrency_id=MODEL_QUEUE,
            **PRIVATE,
        )
        over = _announce("over")
        running.then(lambda: _show_running(False), None, buttons, js=over, concurrency_limit=None, **PRIVATE)
        runs.append(running)
    stopping = controls.stop.click(request_stop, [switch], None, js=_announce("stopping", 1), queue=False, **PRIVATE)
    stopping.then(None, None, None, cancels=runs)


def request_stop(flag: StopSwitch) -> None:
    """Ask a run to end after the step in hand, and wait until it has; one that still waits for its turn has not begun.

    The run is cancelled after this returns: too early, and the page would miss its last steps.
    """
    flag.requested = True
    deadline = time.monotonic() + SECONDS_TO_END
    while flag.running and time.monotonic() < deadline:
        time.sleep(0.02)


def _show_running(running: bool) -> Updates:
    """Return the updates of Run, Race and Stop."""
    return gr.update(interactive=not running), gr.update(interactive=not running), gr.update(interactive=running)


def _make_race(wanted: RunRequest) -> RunRequest:
    if wanted.settings.method == "plain":
        raise SpecVizError(say("Plain decoding cannot race itself: choose another method."))
    return replace(wanted, settings=wanted.settings.model_copy(update={"compare_plain": True}))


@contextmanager
def shown(language: str) -> Iterator[None]:
    """Show a user's mistake on the page, literally: gradio takes the text of an error for HTML."""
    try:
        yield
    except SpecVizError as error:
        raise gr.Error(html.escape(translate_error(error, language)), print_exception=False) from None


def _announce(what: str, n_inputs: int = 0) -> str:
    """Return a script that tells the stage what the visitor asked for, before the server answers."""
    dispatch = f"document.dispatchEvent(new CustomEvent('specviz:{what}'))"
    return f"(...values) => {{ {dispatch}; return values.slice(0, {n_inputs}); }}"
