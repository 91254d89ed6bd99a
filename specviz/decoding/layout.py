"""What rides in a pass for one sequence, and in which row.

Rows: C committed rows that are not in the cache yet (the last is the root), T - 1 drafted nodes,
then a group of K added rows behind each carrying node. The order is the same in masks and traces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from specviz.mask_trace import depths_of

AddedKind = Literal["lookahead", "contemplate"]


@dataclass(frozen=True)
class RowLayout:
    """Counts and parents of one sequence's rows; hashable, so that masks can be built once."""

    parents: tuple[int, ...]
    n_pending: int = 1
    k: int = 0
    kind: AddedKind = "lookahead"
    causal_slots: bool = True
    carriers: tuple[int, ...] | None = None

    @property
    def n_nodes(self) -> int:
        return len(self.parents)

    @property
    def n_real(self) -> int:
        """Committed rows and drafted nodes."""
        return self.n_pending + self.n_nodes - 1

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """The nodes that carry a group of added rows."""
        if self.k == 0:
            return ()
        return tuple(range(self.n_nodes)) if self.carriers is None else self.carriers

    @property
    def n_added(self) -> int:
        return self.k * len(self.groups)

    @property
    def n_rows(self) -> int:
        return self.n_real + self.n_added

    @cached_property
    def depths(self) -> tuple[int, ...]:
        return tuple(depths_of(self.parents))

    def node_row(self, node: int) -> int:
        """Return the row of a node."""
        return self.n_pending - 1 + node

    def node_rows(self) -> slice:
        """Return the rows of all nodes, the root first."""
        return slice(self.n_pending - 1, self.n_real)

    def group_rows(self, node: int) -> slice | None:
        """Return the rows of the group behind a node, or None where it carries none."""
        if node not in self.groups:
            return None
        start = self.n_real + self.k * self.groups.index(node)
        return slice(start, start + self.k)

    def kept_rows(self, accepted: Sequence[int]) -> list[int]:
        """Return the rows that stay in the cache: all committed ones and the accepted nodes."""
        return [*range(self.n_pending), *(self.node_row(node) for node in accepted)]

    def positions(self, n_cached: int) -> list[int]:
        """Return the position of every row: a node of depth d sits d behind the root, slot i sits i behind its node."""
        root = n_cached + self.n_pending - 1
        pending = list(range(n_cached, root))
        nodes = [root + depth for depth in self.depths]
        added = [root + self.depths[node] + slot for node in self.groups for slot in range(1, self.k + 1)]
        return pending + nodes + added
