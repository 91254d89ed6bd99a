"""Traces as files: the recordings that come with the page, and what a visitor brings."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from specviz.errors import SpecVizError
from specviz.trace import BatchTrace, RunTrace, from_json

SUFFIXES = (".json", ".json.gz")


def list_recordings(folder: Path) -> dict[str, Path]:
    """Return the recordings in a folder by name, in order; none where there is no folder."""
    found = (path for suffix in SUFFIXES for path in folder.glob(f"*{suffix}"))
    return {path.name.removesuffix(".gz").removesuffix(".json"): path for path in sorted(found)}


def title_recording(name: str) -> str:
    """Return how a recording is called on the page: `03-lookahead-tree` is "Lookahead tree"."""
    number, _, rest = name.partition("-")
    words = (rest if number.isdigit() and rest else name).replace("-", " ")
    return words[:1].upper() + words[1:]


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
