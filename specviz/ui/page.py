"""The page: controls on the left, the stage on the right, and what happens between them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from specviz.trace import RunTrace
from specviz.ui.assets import ASSETS
from specviz.ui.backend import Backend, Decode
from specviz.ui.controls import Controls, build_controls
from specviz.ui.endpoints import add_endpoints
from specviz.ui.link import read_link
from specviz.ui.live import StageValue
from specviz.ui.recorded import file_value, stream_upload
from specviz.ui.request import VisitorLimits
from specviz.ui.run_events import PRIVATE, connect_run, shown
from specviz.ui.shelf import RECORDED, TraceShelf
from specviz.ui.stage import build_stage
from specviz.ui.trace_file import list_recordings, read_trace_file
from specviz.ui.words import language_of, translate_page

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
        with gr.Row(equal_height=False):
            with gr.Column(scale=1, min_width=330, elem_id="controls"):
                gr.Markdown(INTRODUCTION, elem_id="introduction")
                _build_opener(page)
                controls = build_controls(backend, limits, _first_run(shelf))
                upload = gr.UploadButton(
                    "Load a trace file", file_types=[".json", ".gz"], type="filepath", size="sm", elem_id="load-trace"
                )
                gr.DuplicateButton("Duplicate this Space", visible="SPACE_ID" in os.environ, elem_id="duplicate")
            with gr.Column(scale=3, min_width=320):
                stage = build_stage(_first_value(shelf), shelf)
        connect_run(controls, stage, backend, decode, shelf, limits)
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
