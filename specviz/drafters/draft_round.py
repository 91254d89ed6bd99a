"""One round of the head: the root's row, then level after level on the head's own outputs (EAGLE, `cnets.py`).

Where its rows stand in the draft's cache a round asks of a window. `SlicedWindow` shows the columns in use alone, which
is the least work. `FixedWindow` shows the whole capacity under a mask and holds places in tensors: then all rounds of
one depth have one shape, and a CUDA graph can hold a round. A round launches a hundred small kernels for little work.

Letters: K nodes of a level, R rows, T tree columns so far, M columns of capacity, H hidden of the draft,
Hkv key/value heads, D width of a head.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from specviz.drafters.draft_tree import DraftedRound, Frontier, grow_tree
from specviz.drafters.eagle3_head import FIRST_COLUMN, Angles, CacheView, DraftCache, DraftHead
from specviz.target.replayed import Replayed

if TYPE_CHECKING:
    from specviz.drafters.eagle3 import Eagle3Drafter


class Window(Protocol):
    """Where the rows of a round stand, and what they see of the draft's cache."""

    cache: DraftCache

    def angles(self, level: int, like: Tensor) -> Angles:
        """Return the angles, (1, D) each, that the rows of a level share; the root's level is 0."""

    def write(self, n_before: int, keys: Tensor, values: Tensor) -> None:
        """Write tree rows (Hkv, R, D) behind the `n_before` that the round has written already."""

    def view(self, seen: Tensor | None, gate: Tensor | None) -> CacheView:
        """Return all verified columns and, of the T tree columns, those `seen` (R, T); None before the first."""


class SlicedWindow:
    """The columns in use."""

    def __init__(self, head: DraftHead, cache: DraftCache) -> None:
        self._rotary, self.cache = head.rotary, cache

    def angles(self, level: int, like: Tensor) -> Angles:
        return self._rotary.at(self.cache.length - 1 + level, 1, like)

    def write(self, n_before: int, keys: Tensor, values: Tensor) -> None:
        self.cache.write(self.cache.end + n_before, keys, values)

    def view(self, seen: Tensor | None, gate: Tensor | None) -> CacheView:
        return CacheView(self.cache.end + (0 if seen is None else seen.shape[1]), seen, gate)


class FixedWindow:
    """The whole capacity; `end` (1,) is the column behind the verified rows, and may change between two runs."""

    def __init__(self, tables: Angles, cache: DraftCache, end: Tensor) -> None:
        self._tables, self.cache, self._end = tables, cache, end

    def angles(self, level: int, like: Tensor) -> Angles:
        cosines, sines = self._tables
        position = self._end - FIRST_COLUMN - 1 + level
        return cosines[position], sines[position]

    def write(self, n_before: int, keys: Tensor, values: Tensor) -> None:
        columns = self._end + torch.arange(n_before, n_before + keys.shape[1], device=keys.device)
        self.cache.keys.index_copy_(1, columns, keys)
        self.cache.values.index_copy_(1, columns, values)

    def view(self, seen: Tensor | None, gate: Tensor | None) -> CacheView:
        n_columns = self.cache.keys.shape[1]
        verified = torch.arange(FIRST_COLUMN, n_columns, device=self._end.device)[None] < self._end  # (1, M - 1)
        if seen is None:
            return CacheView(n_columns, verified, gate)
        tree = self._end - FIRST_COLUMN + torch.arange(seen.shape[1], device=self._end.device)
        return CacheView(n_columns, verified.repeat(len(seen), 1).index_copy_(1, tree, seen), gate)


def draft_round(
    drafter: Eagle3Drafter, window: Window, last: tuple[Tensor, Tensor], depth: int, gate: Tensor | None
) -> DraftedRound:
    """Draft at most `depth` levels behind the last verified row, of which `last` is inputs (1, 2H) and state (1, H)."""
    inputs, state = last
    fed, normed = drafter.head.read(inputs, state, window.angles(0, state), window.cache, window.view(None, gate))
    levels = Levels(drafter, window, fed, gate)
    shape = replace(drafter.shape, depth=depth)
    return grow_tree(drafter.head.log_probs(normed)[0], levels.expand, shape, drafter.vocabulary)


class Levels:
    """Runs one level after the other on the head's own features; each node sees its ancestors and itself."""

    def __init__(self, drafter: Eagle3Drafter, window: Window, fed: Tensor, gate: Tensor | None) -> None:
        self._drafter, self._head, self._window, self._gate = drafter, drafter.head, window, gate
        self._states = fed  # (K, H)
        self._seen = torch.zeros(1, 0, dtype=torch.bool, device=fed.device)  # (K, T)

    def expand(self, frontier: Frontier) -> Tensor:
        """Return the log-probabilities (K, N) after the nodes of a frontier."""
        window, states = self._window, self._states[frontier.parent_rows]
        own = torch.eye(len(states), dtype=torch.bool, device=states.device)
        n_before = self._seen.shape[1]
        self._seen = torch.cat([self._seen[frontier.parent_rows], own], dim=1)
        inputs = self._head.inputs(self._drafter.embed(frontier.token_ids), states)
        angles = window.angles(frontier.level, states)
        window.write(n_before, *self._head.midlayer.self_attn.keys_values(inputs, angles))
        view = window.view(self._seen, self._gate)
        self._states, normed = self._head.read(inputs, states, angles, window.cache, view)
        return self._head.log_probs(normed)


class FixedRounds:
    """The rounds of one sequence in fixed shapes: one for each depth, with and without the future token.

    They hold as long as the cache's memory stays where it is.
    """

    def __init__(self, drafter: Eagle3Drafter, cache: DraftCache) -> None:
        self._drafter, self._cache = drafter, cache
        self._rounds: dict[tuple[int, bool], FixedRound] = {}
        self._n_columns = 0

    def draft(self, last: tuple[Tensor, Tensor], depth: int, gate: Tensor | None) -> DraftedRound:
        """Draft a round; nothing of it lies in memory that a later one overwrites."""
        shape = self._drafter.shape
        self._cache.reserve(self._cache.end + (depth - 1) * min(shape.top_k, self._drafter.vocabulary.n_draft))
        if self._n_columns != self._cache.keys.shape[1]:
            self._rounds.clear()
            self._n_columns = self._cache.keys.shape[1]
        key = depth, gate is None
        if key not in self._rounds:
            self._rounds[key] = FixedRound(self._drafter, self._cache, last, depth, gate)
        return self._rounds[key].draft(last, gate)


class FixedRound:
    """One shape of a round: inputs that stay where they are, and, once captured, what replays the kernels."""

    def __init__(
        self,
        drafter: Eagle3Drafter,
        cache: DraftCache,
        like: tuple[Tensor, Tensor],
        depth: int,
        gate: Tensor | None,
    ) -> None:
        self._drafter, self._depth, self._cache = drafter, depth, cache
        self._last = like[0].clone(), like[1].clone()
        self._gate = None if gate is None else gate.clone()
        self._end = torch.zeros(1, dtype=torch.long, device=like[0].device)
        tables = drafter.head.rotary.at(0, cache.keys.shape[1] + depth, like[1])
        self._window = FixedWindow(tables, cache, self._end)
        self._replayed: Replayed[DraftedRound] = Replayed()

    def draft(self, last: tuple[Tensor, Tensor], gate: Tensor | None) -> DraftedRound:
        for fixed, given in zip(self._last, last, strict=True):
            fixed.copy_(given)
        if self._gate is not None and gate is not None:
            self._gate.copy_(gate)
        self._end.fill_(self._cache.end)
        return self._replayed.run(self._draft, self._drafter.target.capture).copied()

    def _draft(self) -> DraftedRound:
        return draft_round(self._drafter, self._window, self._last, self._depth, self._gate)
