"""The page: controls on the left, the stage on the right, and what happens between them."""

from __future__ import annotations

import html
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gradio as gr

from specviz.errors import SpecVizError
from specviz.trace import RunTrace
from specviz.ui.assets import ASSETS
from specviz.ui.backend import Backend, Decode
from specviz.ui.controls import Controls, build_controls
from specviz.ui.endpoints import MODEL_QUEUE, add_endpoints
from specviz.ui.link import read_link
from specviz.ui.live import StageValue, StopSwitch, stream_run
from specviz.ui.recorded import file_value, stream_upload
from specviz.ui.request import RunRequest, VisitorLimits, make_request
from specviz.ui.shelf import RECORDED, TraceShelf
from specviz.ui.stage import build_stage
from specviz.ui.trace_file import list_recordings, read_trace_file
from specviz.ui.words import language_of, translate_error, translate_page

INTRODUCTION = """
# SpecViz
Speculative decoding, step by step: what was drafted, what the target accepted, and the attention mask that made
it one pass.
"""

OPEN_CONTROLS = """() => {
  const isOpen = document.querySelector('#controls').classList.toggle('is-open');
  document.querySelector('#open-controls').setAttribute('aria-expanded', String(isOpen));
}"""
MARK_CLOSED = "() => document.querySelector('#open-controls')?.setAttribute('aria-expanded', 'false')"
SECONDS_TO_END = 10.0
PRIVATE: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}


def build_page(
    backend: Backend,
    decode: Decode | None = None,
    limits: VisitorLimits | None = None,
    recordings: Path = ASSETS / "traces",
) -> gr.Blocks:
    """Build the page over an engine; `decode` replaces its `stream` where that must run elsewhere (ZeroGPU)."""
    limits, decode = limits or VisitorLimits(), decode or backend.stream
    shelf = TraceShelf(list_recordings(recordings), limits.trace_bytes)
    with gr.Blocks(title="SpecViz", fill_width=True, analytics_enabled=False) as page:
        switch = gr.State(StopSwitch())
        with gr.Row(equal_height=False):
            with gr.Column(scale=1, min_width=330, elem_id="controls"):
                gr.Markdown(INTRODUCTION, elem_id="introduction")
                _build_opener(page)
                controls = build_controls(backend, limits, _first_run(shelf))
                upload = gr.UploadButton(
                    "Load a trace file", file_types=[".json", ".gz"], type="filepath", size="sm", elem_id="load-trace"
                )
            with gr.Column(scale=3, min_width=320):
                stage = build_stage(_first_value(shelf), shelf)
        _connect_run(controls, stage, switch, backend, decode, shelf, limits)
        _connect_upload(upload, stage, shelf)
        _connect_link(page, controls)
        add_endpoints(backend, decode, limits)
    page.queue(max_size=limits.queue, default_concurrency_limit=4)
    translate_page(page)
    return page


def _build_opener(page: gr.Blocks) -> None:
    """A narrow screen shows the controls only when they are asked for (`assets/page.css`)."""
    opener = gr.Button("Your own prompt and settings", size="sm", elem_id="open-controls")
    opener.click(None, js=OPEN_CONTROLS, api_visibility="private")
    page.load(None, js=MARK_CLOSED, api_visibility="private")


def _first_run(shelf: TraceShelf) -> RunTrace | None:
    first = next(iter(shelf.recordings), None)
    return shelf.runs(f"{RECORDED}{first}")[0] if first else None


def _first_value(shelf: TraceShelf) -> dict[str, Any] | None:
    first = next(iter(shelf.recordings), None)
    return file_value(shelf, first) if first else None


def _connect_run(
    controls: Controls,
    stage: gr.HTML,
    switch: gr.State,
    backend: Backend,
    decode: Decode,
    shelf: TraceShelf,
    limits: VisitorLimits,
) -> None:
    """Run checks at once, outside the model's queue, then decodes in it; Stop ends a run or takes it off the queue."""

    def request_of(values: Sequence[Any]) -> RunRequest:
        prompts, fields = controls.read(values)
        return make_request(prompts, fields, backend, limits)

    def check(request: gr.Request, flag: StopSwitch, *values: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        with shown(language_of(request)):
            request_of(values)
        flag.requested = False
        return gr.update(interactive=False), gr.update(interactive=True)

    def decode_live(request: gr.Request, flag: StopSwitch, *values: Any) -> Iterator[StageValue]:
        language = language_of(request)
        yield from stream_run(decode, request_of(values), flag, shelf, limits.wall_seconds, language=language)

    inputs = [switch, *controls.components]
    buttons = [controls.run, controls.stop]
    checked = controls.run.click(check, inputs, buttons, concurrency_limit=None, **PRIVATE)
    running = checked.success(
        decode_live,
        inputs,
        stage,
        js=_announce("waiting", len(inputs)),
        concurrency_limit=1,
        concurrency_id=MODEL_QUEUE,
        **PRIVATE,
    )
    running.then(_reset_buttons, None, buttons, js=_announce("over"), concurrency_limit=None, **PRIVATE)
    stopping = controls.stop.click(request_stop, [switch], None, js=_announce("stopping", 1), queue=False, **PRIVATE)
    stopping.then(None, None, None, cancels=[running])


def request_stop(flag: StopSwitch) -> None:
    """Ask a run to end after the step in hand, and wait until it has; one that still waits for its turn has not begun.

    The run is cancelled after this returns: too early, and the page would miss its last steps.
    """
    flag.requested = True
    deadline = time.monotonic() + SECONDS_TO_END
    while flag.running and time.monotonic() < deadline:
        time.sleep(0.02)


def _reset_buttons() -> tuple[dict[str, Any], dict[str, Any]]:
    return gr.update(interactive=True), gr.update(interactive=False)


def _connect_upload(upload: gr.UploadButton, stage: gr.HTML, shelf: TraceShelf) -> None:
    def open_upload(request: gr.Request, path: str) -> Iterator[StageValue]:
        language = language_of(request)
        with shown(language):
            trace = read_trace_file(Path(path), shelf.max_bytes)
        yield from stream_upload(shelf, trace, Path(path).name, language=language)

    upload.upload(open_upload, upload, stage, **PRIVATE)


def _connect_link(page: gr.Blocks, controls: Controls) -> None:
    """Show what a link to a run says; the stage offers to run it."""

    def fill(request: gr.Request) -> list[dict[str, Any]]:
        return controls.fill(*read_link(request.query_params.multi_items()))

    page.load(fill, None, [controls.several, *controls.components], concurrency_limit=None, **PRIVATE)


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
