"""What travels to the stage: small items, packed into one stream for each run.

An item is a dict with a `kind`: `start` (a run begins), `step` (`step_item.py`), `metrics` (of a row so far), `finish`
(the run is over, whatever the reason) or `failed` (a sentence). Trace heads travel as JSON text inside the item, so
that a saved trace holds every number as Python wrote it (a seed may exceed 2**53).
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, cast

from specviz.figures import seed_drawing_figure, what_runs_figure
from specviz.metrics import compute_metrics
from specviz.settings import SlotAttention
from specviz.trace import BatchTrace, RunTrace
from specviz.ui.link import write_link
from specviz.ui.step_item import step_item
from specviz.ui.words import ENGLISH, translate_values

SEED_TOKENS = 4  # tokens of text in the drawing, as in the report

Item = dict[str, Any]
Origin = Literal["live", "recorded", "loaded"]


class ItemStream:
    """Packs the items of one run as lines of JSON in one zlib stream, whose parts can be read as they come.

    Each step is much like the one before it: packed together they take a third of what each takes alone.
    Sentences are said in `language`.
    """

    def __init__(self, language: str = ENGLISH) -> None:
        self._deflate, self._language = zlib.compressobj(9), language

    def pack(self, items: Iterable[Item]) -> bytes:
        """Return the next part of the stream; an empty line ends it."""
        text = "".join(f"{write_json(translate_values(item, self._language))}\n" for item in items) + "\n"
        packed = self._deflate.compress(text.encode("utf-8", "surrogatepass"))
        return packed + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def write_json(value: Any) -> str:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def write_base64(packed: bytes) -> str:
    """Return bytes as text."""
    return base64.b64encode(packed).decode("ascii")


def start_item(
    runs: Sequence[RunTrace], origin: Origin, handle: str, name: str = "", prompts: Sequence[str] = ()
) -> Item:
    """Announce the runs of a trace, one a row.

    `handle` is what the page asks by (`shelf.py`); `name` says which recording or file it is; `prompts` are those
    of a live run as they were typed, for its link.
    """
    return {
        "kind": "start",
        "origin": origin,
        "handle": handle,
        "name": name,
        "link": write_link(prompts, runs[0]) if prompts else [],
        "heads": [head_text(run) for run in runs],
        "seed": seed_figures(runs[0]),
    }


def metrics_item(row: int, run: RunTrace) -> Item:
    """Give the metrics of a row, as far as it has come."""
    return {"kind": "metrics", "row": row, "values": compute_metrics(run)}


def finish_item(runs: Sequence[RunTrace], message: str = "") -> Item:
    """End the runs with their final heads; `message` says why where it was not the model's own end."""
    return {"kind": "finish", "heads": [head_text(run) for run in runs], "message": message}


def failed_item(message: str) -> Item:
    """Say in a sentence why nothing ran."""
    return {"kind": "failed", "message": message}


def head_text(run: RunTrace) -> str:
    """Return a run without its steps, as JSON text."""
    return run.model_dump_json(exclude={"steps"})


def seed_figures(run: RunTrace) -> dict[str, Any] | None:
    """Return the mask of Lookahead Attention as its report prints it, and what runs; None for other methods."""
    k = run.settings.get("k")
    if run.method != "lookahead" or not k:
        return None
    slot_attention = run.settings.get("slot_attention") or "diagonal"
    return {
        "drawing": seed_drawing_figure(SEED_TOKENS, k, printed="drawing", theme=None),
        "formula": seed_drawing_figure(SEED_TOKENS, k, printed="formula", theme=None),
        "runs": what_runs_figure(SEED_TOKENS, k, cast(SlotAttention, slot_attention), theme=None),
    }


def trace_items(runs: Sequence[RunTrace], origin: Origin, handle: str, name: str = "") -> Iterator[Item]:
    """Yield the items of whole runs, in the order in which the page shows them."""
    yield start_item(runs, origin, handle, name)
    for run in runs:
        pieces = [token.piece for token in run.prompt]
        n_left = len(run.text)
        for step in run.steps:
            n_characters = sum(len(token.piece) for token in step.committed)
            yield step_item(run.row, step, pieces, max(0, n_characters - n_left))
            pieces += [token.piece for token in step.committed]
            n_left = max(0, n_left - n_characters)
    yield finish_item(runs)


def runs_of(trace: RunTrace | BatchTrace) -> list[RunTrace]:
    """Return the runs of a trace, numbered by row, each with its metrics."""
    runs = trace.batch if isinstance(trace, BatchTrace) else [trace]
    return [
        run.model_copy(update={"row": row, "metrics": run.metrics or compute_metrics(run)})
        for row, run in enumerate(runs)
    ]
