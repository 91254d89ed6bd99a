"""Traces from files: the recordings that come with the page, and what a visitor loads."""

from __future__ import annotations

import gzip
import json
import tempfile
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from specviz.errors import SpecVizError
from specviz.trace import BatchTrace, RunTrace, from_json
from specviz.ui import packing
from specviz.ui.live import StageValue, stage_value
from specviz.ui.pacing import SECONDS_BETWEEN_MESSAGES, pace

SUFFIXES = (".json", ".json.gz")


def list_recordings(folder: Path) -> dict[str, Path]:
    """Return the recordings in a folder by name, in order; none where there is no folder."""
    found = (path for suffix in SUFFIXES for path in folder.glob(f"*{suffix}"))
    return {path.name.removesuffix(".gz").removesuffix(".json"): path for path in sorted(found)}


def read_trace_file(path: Path, max_bytes: int) -> RunTrace | BatchTrace:
    """Read a trace, gzipped or not; raise SpecVizError where it is not one or is longer than `max_bytes`."""
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            with gzip.open(path) as file:
                raw = file.read(max_bytes + 1)
    except (OSError, EOFError, zlib.error):
        raise SpecVizError(f"The file {path.name} could not be read as a trace.") from None
    if len(raw) > max_bytes:
        raise SpecVizError(f"The trace {path.name} is longer than the {max_bytes // 2**20} MB that this page reads.")
    return from_json(raw)


def stream_trace(
    trace: RunTrace | BatchTrace, origin: packing.Origin, name: str, interval: float = SECONDS_BETWEEN_MESSAGES
) -> Iterator[StageValue]:
    """Yield stage values that show a whole trace, the first steps at once."""
    run = uuid.uuid4().hex
    for n, group in enumerate(pace(packing.trace_items(trace, origin, name), interval)):
        yield stage_value(run, n, group)


def file_value(trace: RunTrace | BatchTrace, name: str) -> dict[str, Any]:
    """Return a stage value that points to a file with the packed trace: it is in the page's first bytes."""
    packed = [packing.pack(item) for item in packing.trace_items(trace, "recorded", name)]
    folder = Path(tempfile.mkdtemp(prefix="specviz-"))
    path = folder / f"{name}.packed.json"
    path.write_text(json.dumps(packed), encoding="utf-8")
    return {"run": uuid.uuid4().hex, "n": 0, "items": [], "file": gr.FileData(path=str(path)).model_dump()}
