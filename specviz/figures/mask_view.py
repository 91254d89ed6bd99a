"""What of a mask is shown: all columns of the step, the last prefix columns, and the earlier ones as a count.

Letters: R shown rows, C shown columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specviz.figures import cells
from specviz.figures.cells import Axis, Codes, Flags, Indices
from specviz.figures.labels import LEARNED, label_piece, name_learned
from specviz.figures.reasons import FIRST_HIDDEN
from specviz.trace import MaskTrace, NodeTrace, StepTrace


@dataclass(frozen=True)
class MaskView:
    """A windowed mask: `codes` (R, C), and for each row how many of the `n_earlier` folded columns it sees."""

    rows: Axis
    columns: Axis
    codes: Codes
    earlier_visible: Indices
    n_earlier: int
    n_earlier_rows: int


def view_mask(mask: MaskTrace, n_recent: int) -> MaskView:
    """Window a mask to the last `n_recent` prefix rows and columns; raise ValueError where bits and axes disagree."""
    all_rows, all_columns = _make_axes(mask)
    kept_rows = _keep_recent(all_rows, n_recent)
    rows = all_rows.take(kept_rows)
    columns, codes = _code_rows(mask, all_rows, all_columns, kept_rows)
    kept = _keep_recent(columns, n_recent)
    visible = codes < FIRST_HIDDEN  # (R, all recorded columns)
    return MaskView(
        rows,
        columns.take(kept),
        codes[:, kept],
        _count_earlier(mask, visible, kept, kept_rows),
        (mask.first_column if mask.bits else 0) + len(columns) - len(kept),
        len(all_rows) - len(rows),
    )


def label_rows(view: MaskView, step: StepTrace, pieces: Sequence[str]) -> list[str]:
    """Return a unique label for each row."""
    return _label_axis(view.rows, _nodes_by_idx(step), pieces)


def label_columns(view: MaskView, step: StepTrace, pieces: Sequence[str]) -> list[str]:
    """Return a unique label for each column."""
    return _label_axis(view.columns, _nodes_by_idx(step), pieces)


def _make_axes(mask: MaskTrace) -> tuple[Axis, Axis]:
    if mask.rule is None:
        return cells.make_recorded_axes(mask)
    rows = cells.make_rows(mask.rule)
    return rows, cells.make_columns(mask.rule, rows)


def _code_rows(mask: MaskTrace, all_rows: Axis, all_columns: Axis, kept_rows: Indices) -> tuple[Axis, Codes]:
    rows = all_rows.take(kept_rows)
    expected = cells.code_cells(mask.rule, rows, all_columns) if mask.rule else None
    if mask.bits is None:
        nothing = np.zeros((len(rows), len(all_columns)), np.int8)
        return all_columns, nothing if expected is None else expected
    first = mask.first_column if mask.rule else 0  # recorded axes are windowed already
    columns = all_columns.take(np.arange(first, len(all_columns)))
    visible = cells.unpack_mask(mask, len(all_rows), len(columns))[kept_rows]
    return columns, cells.code_recorded(visible, None if expected is None else expected[:, first:])


def _keep_recent(axis: Axis, n_recent: int) -> Indices:
    is_prefix = axis.kind == cells.PREFIX
    n_folded = max(0, int(is_prefix.sum()) - n_recent)
    folded = np.flatnonzero(is_prefix)[:n_folded]
    return np.setdiff1d(np.arange(len(axis)), folded)


def _count_earlier(mask: MaskTrace, visible: Flags, kept: Indices, kept_rows: Indices) -> Indices:
    folded = np.setdiff1d(np.arange(visible.shape[1]), kept)
    counts = visible[:, folded].sum(axis=1)
    if mask.bits and mask.earlier_visible:
        counts = counts + np.array(mask.earlier_visible, dtype=np.int64)[kept_rows]
    return counts


def _nodes_by_idx(step: StepTrace) -> dict[int, NodeTrace]:
    return {node.idx: node for node in step.nodes}


def _label_axis(axis: Axis, nodes: dict[int, NodeTrace], pieces: Sequence[str]) -> list[str]:
    entries = zip(axis.kind.tolist(), axis.node.tolist(), axis.slot.tolist(), axis.position.tolist(), strict=True)
    return [_label_entry(*entry, nodes=nodes, pieces=pieces) for entry in entries]


def _label_entry(
    kind: int, node: int, slot: int, position: int, *, nodes: dict[int, NodeTrace], pieces: Sequence[str]
) -> str:
    """Name one row or column; the number after the piece keeps equal pieces apart on a category axis."""
    if (name := cells.KINDS[kind]) in LEARNED:
        return name_learned(name, node, slot)
    if kind == cells.CANDIDATE:
        return f"{_label_node(node, position, nodes, pieces)} #{node}"
    return f"{_label_position(position, pieces)} ·{position}"


def _label_node(node: int, position: int, nodes: dict[int, NodeTrace], pieces: Sequence[str]) -> str:
    if node not in nodes:
        return _label_position(position, pieces)
    found = nodes[node]
    return label_piece(found.piece, 8, token_id=found.token_id, raw_bytes=found.bytes)


def _label_position(position: int, pieces: Sequence[str]) -> str:
    return label_piece(pieces[position], 8) if 0 <= position < len(pieces) else "token"
