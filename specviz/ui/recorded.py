"""Whole traces on the stage: the recordings that come with the page, and what a visitor loads."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from specviz.trace import BatchTrace, RunTrace
from specviz.ui import packing
from specviz.ui.live import StageValue, stage_value
from specviz.ui.pacing import SECONDS_BETWEEN_MESSAGES, pace
from specviz.ui.shelf import RECORDED, TraceShelf


def stream_upload(
    shelf: TraceShelf, trace: RunTrace | BatchTrace, name: str, interval: float = SECONDS_BETWEEN_MESSAGES
) -> Iterator[StageValue]:
    """Yield stage values that show a visitor's own trace."""
    handle = shelf.keep(trace)
    yield from _stream_items(packing.trace_items(shelf.runs(handle), "loaded", handle, name), interval)


def pack_recording(shelf: TraceShelf, name: str) -> bytes:
    """Return all items of a recording, packed."""
    handle = f"{RECORDED}{name}"
    return packing.ItemStream().pack(packing.trace_items(shelf.runs(handle), "recorded", handle, name))


def file_value(shelf: TraceShelf, name: str) -> dict[str, Any]:
    """Return a stage value that points to a file with a packed recording: it is in the page's first bytes."""
    path = Path(tempfile.mkdtemp(prefix="specviz-")) / f"{name}.packed"
    path.write_bytes(pack_recording(shelf, name))
    return {"run": uuid.uuid4().hex, "n": 0, "packed": "", "file": gr.FileData(path=str(path)).model_dump()}


def _stream_items(items: Iterator[packing.Item], interval: float) -> Iterator[StageValue]:
    run, stream = uuid.uuid4().hex, packing.ItemStream()
    for n, group in enumerate(pace(items, interval)):
        yield stage_value(run, n, stream.pack(group))
