"""The attention mask of one pass as plain data: row = query, column = key.

Letters: P cached prefix tokens, S soft-prompt slots, C committed rows run again or for the first time
(the last of them is the root), T tree nodes (root included), K added rows behind a node.

Column order: P prefix | S soft prompt | C - 1 prefix rows of this pass | T candidates | groups of K.
Row order: the same without the cached part.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["prefix", "candidate", "lookahead", "contemplate", "soft_prompt"]
ADDED: frozenset[Kind] = frozenset({"lookahead", "contemplate"})  # rows behind a node; they alone see the soft prompt
RuleName = Literal["causal", "tree", "lookahead_diagonal", "lookahead_causal", "contemplate"]
CellReason = Literal[
    "self",
    "context",
    "ancestor",
    "own_node",
    "earlier_slot",
    "soft_prompt",
    "hidden_future",
    "hidden_branch",
    "hidden_added",
    "hidden_other_group",
    "hidden_later_slot",
    "hidden_diagonal",
    "hidden_soft_prompt",
    "hidden_window",
]


class _Record(BaseModel):
    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class MaskRow(_Record):
    """One query row. `node` is the tree node that the row is, or hangs behind; `slot` counts from 1."""

    kind: Kind
    label: str
    node: int | None = None
    slot: int | None = None
    position: int | None = None


class MaskColumn(_Record):
    """One key column."""

    kind: Kind
    label: str
    node: int | None = None
    slot: int | None = None


class MaskRule(_Record):
    """How a mask is built, in a few numbers; `expand_rule` gives the matrix.

    `prefix` is P, `pending` is C, `parents` has T entries (-1 for the root), `k` is K, `s` is S;
    `carriers` are the nodes that carry a group (None: all of them); `window` is the sliding
    window in positions, where every layer has one.
    """

    name: RuleName
    prefix: int
    parents: list[int]
    k: int = 0
    s: int = 0
    pending: int = 1
    carriers: list[int] | None = None
    window: int | None = None


class MaskTrace(_Record):
    """The mask that the forward pass used.

    `bits` is base64 of row-major bits, most significant first, over the columns from
    `first_column` on; `earlier_visible` counts, for each row, the visible columns before it.
    With `bits` None the mask is what `expand_rule(rule)` gives.
    """

    rows: list[MaskRow] = Field(default_factory=list)
    columns: list[MaskColumn] = Field(default_factory=list)
    first_column: int = 0
    earlier_visible: list[int] = Field(default_factory=list)
    bits: str | None = None
    rule: MaskRule | None = None

    def matrix(self) -> list[list[bool]]:
        """Return the recorded cells, (rows, columns); expands the rule where there are no bits."""
        if self.bits is None:
            return expand_rule(self.rule, self.first_column).matrix() if self.rule else []
        return unpack_bits(self.bits, len(self.rows), len(self.columns))


def expand_rule(rule: MaskRule, first_column: int = 0) -> MaskTrace:
    """Expand a rule to rows, columns and bits over the columns from `first_column` on.

    A chain of two drafts with one diagonal slot behind each node, over one prefix token::

        MaskRule(name="lookahead_diagonal", prefix=1, parents=[-1, 0, 1], k=1)

                    x0 r  c1 c2 s0 s1 s2
        root        1  1  .  .  .  .  .
        candidate 1 1  1  1  .  .  .  .
        candidate 2 1  1  1  1  .  .  .
        slot of r   1  1  .  .  1  .  .
        slot of c1  1  1  1  .  .  1  .
        slot of c2  1  1  1  1  .  .  1
    """
    columns, rows = list(_columns(rule)), list_rows(rule)
    reasons = _Reasons(rule)
    cells = [[reasons.visible(row, column) for column in range(len(columns))] for row in range(len(rows))]
    return MaskTrace(
        rows=rows,
        columns=columns[first_column:],
        first_column=first_column,
        earlier_visible=[sum(line[:first_column]) for line in cells],
        bits=pack_bits([line[first_column:] for line in cells]),
        rule=rule,
    )


def list_rows(rule: MaskRule) -> list[MaskRow]:
    """Return the rows of a pass in order: pending tokens, nodes, added rows; without the cells."""
    return list(_rows(rule))


def explain_cell(rule: MaskRule, row: int, column: int) -> CellReason:
    """Say why `row` sees `column` or not; both are indices into the full, unwindowed mask."""
    return _Reasons(rule).reason(row, column)


def pack_bits(cells: list[list[bool]]) -> str:
    """Pack a matrix row-major, most significant bit first, and encode it in base64."""
    bits = "".join("1" if cell else "0" for line in cells for cell in line)
    padded = bits.ljust(-(-len(bits) // 8) * 8, "0")
    return base64.b64encode(bytes(int(padded[i : i + 8], 2) for i in range(0, len(padded), 8))).decode("ascii")


def unpack_bits(packed: str, n_rows: int, n_columns: int) -> list[list[bool]]:
    """Undo `pack_bits`; raise ValueError where the bits do not fill the matrix."""
    bits = "".join(f"{byte:08b}" for byte in base64.b64decode(packed))
    if len(bits) < n_rows * n_columns:
        raise ValueError(f"mask of {n_rows} x {n_columns} cells has only {len(bits)} bits")
    return [[bit == "1" for bit in bits[i * n_columns : (i + 1) * n_columns]] for i in range(n_rows)]


def _groups(rule: MaskRule) -> Iterator[tuple[int, int]]:
    """Yield (node, slot) of every added row, in row order; slots count from 1."""
    carriers = range(len(rule.parents)) if rule.carriers is None else rule.carriers
    for node in carriers:
        for slot in range(1, rule.k + 1):
            yield node, slot


def _rows(rule: MaskRule) -> Iterator[MaskRow]:
    depths = depths_of(rule.parents)
    root_position = rule.prefix + rule.pending - 1
    for i in range(rule.pending - 1):
        yield MaskRow(kind="prefix", label=f"token {rule.prefix + i}", position=rule.prefix + i)
    for node, depth in enumerate(depths):
        label = "root" if node == 0 else f"node {node}"
        yield MaskRow(kind="candidate", label=label, node=node, position=root_position + depth)
    kind: Kind = "contemplate" if rule.name == "contemplate" else "lookahead"
    for node, slot in _groups(rule):
        label = f"contemplate {node}" if kind == "contemplate" else f"slot {slot} of {node}"
        yield MaskRow(kind=kind, label=label, node=node, slot=slot, position=root_position + depths[node] + slot)


def _columns(rule: MaskRule) -> Iterator[MaskColumn]:
    for i in range(rule.prefix):
        yield MaskColumn(kind="prefix", label=f"token {i}")
    for slot in range(1, rule.s + 1):
        yield MaskColumn(kind="soft_prompt", label=f"soft {slot}", slot=slot)
    for row in _rows(rule):
        yield MaskColumn(kind=row.kind, label=row.label, node=row.node, slot=row.slot)


def depths_of(parents: Sequence[int]) -> list[int]:
    """Return the depth of every node; a parent of -1 marks the root, and parents precede children."""
    depths: list[int] = []
    for parent in parents:
        depths.append(0 if parent < 0 else depths[parent] + 1)
    return depths


class _Reasons:
    """Answers for every cell of one rule why it is visible or hidden."""

    def __init__(self, rule: MaskRule) -> None:
        self.rule = rule
        self.rows = list_rows(rule)
        self.n_cached = rule.prefix + rule.s
        self.ancestors = _ancestors(rule.parents)

    def visible(self, row: int, column: int) -> bool:
        return not self.reason(row, column).startswith("hidden")

    def reason(self, row: int, column: int) -> CellReason:
        query = self.rows[row]
        if column < self.rule.prefix:
            return self._in_window(query, column, "context")
        if column < self.n_cached:
            return "soft_prompt" if query.kind in ADDED else "hidden_soft_prompt"
        return self._reason_in_pass(row, column - self.n_cached)

    def _reason_in_pass(self, row: int, key_row: int) -> CellReason:
        query, key = self.rows[row], self.rows[key_row]
        if row == key_row:
            return "self"
        if key.kind == "prefix":
            return self._in_window(query, key.position, "context") if key_row < row else "hidden_future"
        if query.kind == "prefix":
            return "hidden_future" if key.kind == "candidate" else "hidden_added"
        if key.kind == "candidate":
            return self._reason_for_node(query, key)
        return self._reason_for_slot(query, key)

    def _reason_for_node(self, query: MaskRow, key: MaskRow) -> CellReason:
        if key.node not in self.ancestors[query.node or 0]:
            return "hidden_future" if query.node in self.ancestors[key.node or 0] else "hidden_branch"
        return self._in_window(query, key.position, "ancestor" if query.kind == "candidate" else "own_node")

    def _reason_for_slot(self, query: MaskRow, key: MaskRow) -> CellReason:
        if query.kind == "candidate":
            return "hidden_added"
        if query.node != key.node:
            return "hidden_other_group"
        if (key.slot or 0) > (query.slot or 0):
            return "hidden_later_slot"
        if self.rule.name == "lookahead_diagonal":
            return "hidden_diagonal"
        return self._in_window(query, key.position, "earlier_slot")

    def _in_window(self, query: MaskRow, key_position: int | None, reason: CellReason) -> CellReason:
        window = self.rule.window
        inside = window is None or (query.position or 0) - (key_position or 0) < window
        return reason if inside else "hidden_window"


def _ancestors(parents: list[int]) -> list[frozenset[int]]:
    """Return, for each node, the set of its ancestors and itself."""
    sets: list[frozenset[int]] = []
    for node, parent in enumerate(parents):
        above = sets[parent] if parent >= 0 else frozenset()
        sets.append(above | {node})
    return sets
