"""The cells of a mask as small integer codes, for all rows and columns at once.

`mask_trace.explain_cell` answers for one cell and is the definition; this module says the same of a whole matrix
in under a millisecond, since the page draws a mask ten times a second. A test holds the two together.

Letters: R rows, C columns, P cached prefix, T tree nodes.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specviz.figures.reasons import CODES, FIRST_HIDDEN
from specviz.mask_trace import Kind
from specviz.trace import MaskColumn, MaskRow, MaskRule, MaskTrace

Codes = NDArray[np.int8]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

PREFIX, SOFT_PROMPT, CANDIDATE, LOOKAHEAD, CONTEMPLATE = range(5)
KINDS: tuple[Kind, ...] = ("prefix", "soft_prompt", "candidate", "lookahead", "contemplate")


@dataclass(frozen=True)
class Axis:
    """Rows or columns as arrays; `index` counts rows of the pass and is -1 for cached columns."""

    kind: Indices
    node: Indices
    slot: Indices
    position: Indices
    index: Indices

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, chosen: Indices) -> Axis:
        """Return the axis of some entries only."""
        return Axis(*(values[chosen] for values in (self.kind, self.node, self.slot, self.position, self.index)))


def make_rows(rule: MaskRule) -> Axis:
    """Return the rows of a rule: the prefix rows of this pass, the tree nodes, the groups of added rows."""
    depths = _depths(rule.parents)
    first_root = rule.prefix + rule.pending - 1
    carriers = range(len(rule.parents)) if rule.carriers is None else rule.carriers
    added = CONTEMPLATE if rule.name == "contemplate" else LOOKAHEAD
    entries = [(PREFIX, -1, 0, rule.prefix + i) for i in range(rule.pending - 1)]
    entries += [(CANDIDATE, node, 0, first_root + depth) for node, depth in enumerate(depths)]
    entries += [
        (added, node, slot, first_root + depths[node] + slot) for node in carriers for slot in range(1, rule.k + 1)
    ]
    table = np.array(entries, dtype=np.int64).reshape(-1, 4)  # (R, 4)
    return Axis(table[:, 0], table[:, 1], table[:, 2], table[:, 3], np.arange(len(table)))


def make_columns(rule: MaskRule, rows: Axis) -> Axis:
    """Return the columns of a rule: the cached prefix, the soft prompt, then one column for each row."""
    p, s = rule.prefix, rule.s
    none = np.full(p + s, -1, dtype=np.int64)
    return Axis(
        np.concatenate([np.repeat([PREFIX, SOFT_PROMPT], [p, s]), rows.kind]),
        np.concatenate([none, rows.node]),
        np.concatenate([np.zeros(p, np.int64), np.arange(1, s + 1), rows.slot]),
        np.concatenate([np.arange(p), none[:s], rows.position]),
        np.concatenate([none, rows.index]),
    )


def make_recorded_axes(mask: MaskTrace) -> tuple[Axis, Axis]:
    """Return the axes of a mask without a rule, from its recorded rows and columns."""
    return _recorded_axis(mask.rows), _recorded_axis(mask.columns, mask.first_column)


def code_cells(rule: MaskRule, rows: Axis, columns: Axis) -> Codes:
    """Return the reason of every cell as the rule gives it, (R, C)."""
    q_kind, q_node, q_slot = rows.kind[:, None], rows.node[:, None], rows.slot[:, None]
    k_kind, k_node, k_slot = columns.kind[None], columns.node[None], columns.slot[None]
    above = _ancestors(rule.parents)  # (T, T), [node, ancestor]
    q_safe, k_safe = np.maximum(q_node, 0), np.maximum(k_node, 0)
    is_past, is_later = above[q_safe, k_safe], above[k_safe, q_safe]
    cached = columns.index[None] < 0
    q_real = q_kind == CANDIDATE
    earlier = cached | (columns.index[None] < rows.index[:, None])
    cases: list[tuple[Flags, str]] = [
        ((k_kind == SOFT_PROMPT) & ((q_kind == LOOKAHEAD) | (q_kind == CONTEMPLATE)), "soft_prompt"),
        (np.broadcast_to(k_kind == SOFT_PROMPT, q_kind.shape[:1] + k_kind.shape[1:]), "hidden_soft_prompt"),
        (rows.index[:, None] == columns.index[None], "self"),
        ((k_kind == PREFIX) & earlier, "context"),
        ((k_kind == PREFIX) & ~earlier, "hidden_future"),
        ((q_kind == PREFIX) & (k_kind == CANDIDATE), "hidden_future"),
        ((q_kind == PREFIX) & (k_kind != CANDIDATE), "hidden_added"),
        ((k_kind == CANDIDATE) & is_past & q_real, "ancestor"),
        ((k_kind == CANDIDATE) & is_past & ~q_real, "own_node"),
        ((k_kind == CANDIDATE) & is_later, "hidden_future"),
        (np.broadcast_to(k_kind == CANDIDATE, is_past.shape), "hidden_branch"),
        (np.broadcast_to(q_real, is_past.shape), "hidden_added"),
        (q_node != k_node, "hidden_other_group"),
        (k_slot > q_slot, "hidden_later_slot"),
        (np.full(is_past.shape, rule.name == "lookahead_diagonal"), "hidden_diagonal"),
    ]
    codes = np.select([flags for flags, _ in cases], [CODES[name] for _, name in cases], CODES["earlier_slot"])
    return _apply_window(rule, rows, columns, codes.astype(np.int8))


def code_recorded(visible: Flags, expected: Codes | None) -> Codes:
    """Return the codes of a recorded matrix: the rule's reason where rule and record agree, else a flag, (R, C)."""
    if expected is None:
        return np.where(visible, CODES["visible"], CODES["hidden"]).astype(np.int8)
    agrees = visible == (expected < FIRST_HIDDEN)
    flags = np.where(visible, CODES["against_rule"], CODES["hidden_against_rule"])
    return np.where(agrees, expected, flags).astype(np.int8)


def unpack_mask(mask: MaskTrace, n_rows: int, n_columns: int) -> Flags:
    """Return the recorded bits, (R, C); raise ValueError where they do not fill the matrix."""
    packed = np.frombuffer(base64.b64decode(mask.bits or ""), dtype=np.uint8)
    if len(packed) * 8 < n_rows * n_columns:
        raise ValueError(f"mask of {n_rows} x {n_columns} cells has only {len(packed) * 8} bits")
    return np.unpackbits(packed, count=n_rows * n_columns).reshape(n_rows, n_columns).astype(bool)


def _apply_window(rule: MaskRule, rows: Axis, columns: Axis, codes: Codes) -> Codes:
    if rule.window is None:
        return codes
    windowed = np.isin(codes, [CODES[name] for name in ("context", "ancestor", "own_node", "earlier_slot")])
    outside = rows.position[:, None] - columns.position[None] >= rule.window
    return np.where(windowed & outside, CODES["hidden_window"], codes).astype(np.int8)


def _recorded_axis(entries: Sequence[MaskRow | MaskColumn], first_column: int = 0) -> Axis:
    def column(values: list[int]) -> Indices:
        return np.array(values, dtype=np.int64)

    return Axis(
        column([KINDS.index(entry.kind) for entry in entries]),
        column([-1 if entry.node is None else entry.node for entry in entries]),
        column([entry.slot or 0 for entry in entries]),
        np.arange(len(entries)) + first_column,
        np.arange(len(entries)),
    )


def _depths(parents: list[int]) -> list[int]:
    depths: list[int] = []
    for parent in parents:
        depths.append(0 if parent < 0 else depths[parent] + 1)
    return depths


def _ancestors(parents: list[int]) -> Flags:
    above = np.eye(len(parents), dtype=bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            above[node] |= above[parent]
    return above
