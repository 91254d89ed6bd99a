"""What travels to the stage: small items, each one packed string.

An item is a dict with a `kind`: `start` (a run begins), `step`, `metrics` (of a row so far), `finish`
(the run is over, whatever the reason) or `failed` (a sentence). Trace heads travel as JSON text inside
the item, so that a saved trace holds every number as Python wrote it (a seed may exceed 2**53).
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

from specviz.figures import (
    explain_step,
    mask_figure,
    routing_figure,
    seed_drawing_figure,
    tree_figure,
    what_runs_figure,
)
from specviz.metrics import compute_metrics
from specviz.settings import SlotAttention
from specviz.trace import BatchTrace, RunTrace, StepTrace

SEED_TOKENS = 4  # tokens of text in the drawing, as in the report

Item = dict[str, Any]
Origin = Literal["live", "recorded", "loaded"]


def pack(item: Item) -> str:
    """Pack an item: base64 of zlib of its JSON."""
    text = json.dumps(item, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"), 6)).decode("ascii")


def unpack(packed: str) -> Item:
    """Undo `pack`."""
    item: Item = json.loads(zlib.decompress(base64.b64decode(packed)))
    return item


def start_item(runs: Sequence[RunTrace], origin: Origin, name: str = "") -> Item:
    """Announce the runs of a trace, one a row; `name` says which recording or file it is."""
    return {
        "kind": "start",
        "origin": origin,
        "name": name,
        "heads": [head_text(run) for run in runs],
        "seed": seed_figures(runs[0]),
    }


def step_item(row: int, step: StepTrace, pieces: Sequence[str], n_hidden: int = 0) -> Item:
    """Describe one step of a row: its record, figures and sentence.

    `pieces` are those of the text before it; its last `n_hidden` characters belong to a stop text and are not shown.
    """
    return {
        "kind": "step",
        "row": row,
        "hidden": n_hidden,
        "step": step.model_dump(mode="json"),
        "figures": step_figures(step, pieces),
        "sentence": explain_step(step),
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


def step_figures(step: StepTrace, pieces: Sequence[str]) -> dict[str, Any]:
    """Return the bare figures of a step by the name of their pane; a pane without data has none."""
    return {
        "tree": tree_figure(step, theme=None),
        "mask": mask_figure(step, pieces, theme=None),
        "routing": routing_figure(step, theme=None) if step.routing else None,
    }


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


def trace_items(trace: RunTrace | BatchTrace, origin: Origin, name: str = "") -> Iterator[Item]:
    """Yield the items of a whole trace, in the order in which the page shows them."""
    runs = runs_of(trace)
    yield start_item(runs, origin, name)
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
