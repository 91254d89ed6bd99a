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
from specviz.ui.words import ENGLISH, read_tables


def stream_upload(
    shelf: TraceShelf,
    trace: RunTrace | BatchTrace,
    name: str,
    interval: float = SECONDS_BETWEEN_MESSAGES,
    language: str = ENGLISH,
) -> Iterator[StageValue]:
    """Yield stage values that show a visitor's own trace."""
    handle = shelf.keep(trace)
    items = packing.trace_items(shelf.runs(handle), "loaded", handle, name)
    run, stream = uuid.uuid4().hex, packing.ItemStream(language)
    for n, group in enumerate(pace(items, interval)):
        yield stage_value(run, n, stream.pack(group))


def pack_recording(shelf: TraceShelf, name: str, language: str = ENGLISH) -> bytes:
    """Return all items of a recording, packed."""
    handle = f"{RECORDED}{name}"
    return packing.ItemStream(language).pack(packing.trace_items(shelf.runs(handle), "recorded", handle, name))


def file_value(shelf: TraceShelf, name: str) -> dict[str, Any]:
    """Return a stage value that points to files with a packed recording, one a language.

    It is in the page's first bytes, before anybody knows who will read it.
    """
    folder = Path(tempfile.mkdtemp(prefix="specviz-"))
    files = {language: _write_packed(folder, shelf, name, language) for language in (ENGLISH, *read_tables())}
    return {"run": uuid.uuid4().hex, "n": 0, "packed": "", "files": files}


def _write_packed(folder: Path, shelf: TraceShelf, name: str, language: str) -> dict[str, Any]:
    path = folder / f"{name}.{language}.packed"
    path.write_bytes(pack_recording(shelf, name, language))
    return gr.FileData(path=str(path)).model_dump()
