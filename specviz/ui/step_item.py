"""One step as the page draws it: small on the wire, complete on the screen.

It leaves out what only the inspector reads (`record.py` gives that on request, to the last digit), names each field
of the nodes once, and writes a mask's cells as runs: 60 nodes take about 2 kB.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from specviz.figures import PlotlyDict, explain_step, mask_figure, routing_figure, tree_figure
from specviz.trace import NodeTrace, StepTrace

NODE_FIELDS = ("parent", "depth", "token_id", "piece", "bytes", "status")
FIRST_LETTER = ord("a")


def step_item(row: int, step: StepTrace, pieces: Sequence[str], n_hidden: int = 0) -> dict[str, Any]:
    """Describe one step of a row: what happened, figures and sentence.

    `pieces` are those of the text before it; its last `n_hidden` characters belong to a stop text and are not shown.
    """
    return {
        "kind": "step",
        "row": row,
        "hidden": n_hidden,
        "step": outline_step(step),
        "figures": step_figures(step, pieces),
        "sentence": explain_step(step),
    }


def outline_step(step: StepTrace) -> dict[str, Any]:
    """Return what the page shows of a step without being asked; `nodes` is a table of columns."""
    kept = {"index", "prefix_len", "accepted", "committed", "n_rows", "kv"}
    return step.model_dump(mode="json", include=kept) | {
        "nodes": {name: _column(step.nodes, name) for name in NODE_FIELDS},
        "times_ms": {name: round(value, 2) for name, value in step.times_ms.model_dump().items()},
        "routing": [{"site": each.site, "node": each.node, "selected": each.selected} for each in step.routing],
    }


def step_figures(step: StepTrace, pieces: Sequence[str]) -> dict[str, Any]:
    """Return the bare figures of a step by the name of their pane; a pane without data has none."""
    return {
        "tree": tree_figure(step, theme=None),
        "mask": shorten_mask(mask_figure(step, pieces, theme=None)),
        "routing": routing_figure(step, theme=None) if step.routing else None,
    }


def shorten_mask(figure: PlotlyDict) -> PlotlyDict:
    """Write each row of the cells as runs, and leave out the columns that are named like the rows.

    A run is a letter, `a` for code 0, and a count: `a46c1h59`. The block of earlier columns, one cell a row, is named
    like the rows too; its cells are one line of runs, its texts pairs of count and text. The scripts undo all of it
    (`mask_cells.js`).
    """
    earlier, cells = figure["data"]
    x, y = cells["x"], cells["y"]
    named = x[: len(x) - len(y)] if x[len(x) - len(y) :] == y else x
    short = cells | {"x": named, "z": [_write_runs(line) for line in cells["z"]]}
    return figure | {"data": [_shorten_earlier(earlier), short]}


def _shorten_earlier(earlier: PlotlyDict) -> PlotlyDict:
    texts = [[len(list(run)), text] for text, run in groupby(line[0] for line in earlier["text"])]
    return earlier | {"y": [], "z": _write_runs([line[0] for line in earlier["z"]]), "text": texts}


def _write_runs(codes: Sequence[int]) -> str:
    return "".join(f"{chr(FIRST_LETTER + code)}{len(list(run))}" for code, run in groupby(codes))


def _column(nodes: Sequence[NodeTrace], name: str) -> list[Any]:
    return [getattr(node, name) for node in nodes]
