"""Where the nodes of a tree are drawn: root left, parents centred over their children, no two nodes at one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TreeLayout:
    """Depth (from the left) and line (from the top) of each node, and the number of lines."""

    depths: list[int]
    lines: list[float]
    n_lines: int


def lay_out_tree(parents: Sequence[int]) -> TreeLayout:
    """Lay out a tree given by the parent of each node; parents precede children, -1 is the root's.

    Every leaf gets a line of its own, so that labels right of the leaves have room; an inner node is centred between
    its first and last child. Children keep their order, so the picture depends on the tree alone.
    """
    children: list[list[int]] = [[] for _ in parents]
    depths = [0] * len(parents)
    for node, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(node)
            depths[node] = depths[parent] + 1
    lines = [0.0] * len(parents)
    leaves = [node for node in _walk_depth_first(children, parents) if not children[node]]
    for line, leaf in enumerate(leaves):
        lines[leaf] = float(line)
    for node in reversed(range(len(parents))):
        if children[node]:
            lines[node] = round((lines[children[node][0]] + lines[children[node][-1]]) / 2, 2)
    return TreeLayout(depths, lines, len(leaves))


def _walk_depth_first(children: Sequence[Sequence[int]], parents: Sequence[int]) -> list[int]:
    order = []
    stack = [node for node, parent in enumerate(parents) if parent < 0]
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(reversed(children[node]))
    return order
