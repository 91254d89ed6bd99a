"""The traces that the page may ask about, by handle."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from specviz.trace import BatchTrace, RunTrace
from specviz.ui.packing import runs_of
from specviz.ui.trace_file import read_trace_file

MOST_KEPT = 16
MOST_READ = 4
MAX_BYTES = 64 * 2**20
RECORDED = "recorded/"

Runs = list[RunTrace]


class MissingTraceError(LookupError):
    """The server does not hold the trace that a handle stands for."""


class TraceShelf:
    """Holds the traces that were asked about last; recordings are read again where they were put away.

    A handle is a secret of the visitor who has it, but for `recorded/NAME`, which everybody may ask about.
    """

    def __init__(self, recordings: dict[str, Path] | None = None, max_bytes: int = MAX_BYTES) -> None:
        self.recordings, self.max_bytes = recordings or {}, max_bytes
        self._kept: OrderedDict[str, Callable[[], Runs]] = OrderedDict()
        self._read: OrderedDict[str, Runs] = OrderedDict()

    def hold(self, handle: str, load: Callable[[], Runs]) -> None:
        """Answer for the runs that `load` gives, which may still grow."""
        _add(self._kept, handle, load, MOST_KEPT)

    def keep(self, trace: RunTrace | BatchTrace) -> str:
        """Keep a trace and return its handle."""
        handle, runs = secrets.token_urlsafe(16), runs_of(trace)
        self.hold(handle, lambda: runs)
        return handle

    def runs(self, handle: str) -> Runs:
        """Return the rows behind a handle; raise MissingTraceError where they are gone."""
        name = handle.removeprefix(RECORDED)
        if handle.startswith(RECORDED) and name in self.recordings:
            return self._read_recording(name)
        if handle not in self._kept:
            raise MissingTraceError(handle)
        self._kept.move_to_end(handle)
        return self._kept[handle]()

    def _read_recording(self, name: str) -> Runs:
        if name not in self._read:
            _add(self._read, name, runs_of(read_trace_file(self.recordings[name], self.max_bytes)), MOST_READ)
        self._read.move_to_end(name)
        return self._read[name]


def _add(entries: OrderedDict, key: str, value: object, most: int) -> None:
    entries[key] = value
    while len(entries) > most:
        entries.popitem(last=False)
