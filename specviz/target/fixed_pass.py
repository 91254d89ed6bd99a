"""Passes of few fixed shapes, so that a CUDA graph can hold one.

A pass over a handful of rows launches hundreds of small kernels, and on a GPU launching them takes longer than running
them. A graph launches them at once, but only for one shape and over the same memory: so rows are padded to a rung of
`ROW_RUNGS`, a row attends to the whole capacity of the cache under a mask, and inputs are copied into tensors that
stay.

Letters: B sequences, R rows, N rows padded, C columns in use, M columns of capacity, H hidden.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from specviz.target.cache import RowCache
from specviz.target.hidden import Hidden
from specviz.target.replayed import Replayed

ROW_RUNGS = (1, 8, 16, 32, 48, 64, 96, 128)

Forward = Callable[[Tensor, Tensor, Tensor], Hidden]  # embeds (B, N, H), positions (B, N), mask (B, 1, N, M)


class PassShape(NamedTuple):
    """What must agree for one graph to serve two passes."""

    n_batch: int
    n_rows: int
    n_columns: int
    feature_layers: tuple[int, ...]


def fits(embeds: Tensor, cache: RowCache) -> bool:
    """Return whether a pass (B, R, H) has a fixed shape: its rows are few and the cache has its memory."""
    return cache.is_allocated and embeds.shape[1] <= ROW_RUNGS[-1]


def run_fixed(
    forward: Forward, embeds: Tensor, positions: Tensor, mask: Tensor, cache: RowCache, layers: tuple[int, ...]
) -> Hidden:
    """Run a pass in its fixed shape and return what it would have returned in its own: states of the R rows alone.

    The second pass of a shape is captured where `cache.capture` is set, later ones are replayed.
    """
    n_batch, n_rows = embeds.shape[:2]
    n_padded = ROW_RUNGS[bisect_left(ROW_RUNGS, n_rows)]
    cache.reserve(cache.base + n_padded)
    shape = PassShape(n_batch, n_padded, cache.capacity, layers)
    fixed = cache.passes.get(shape)
    if fixed is None:
        fixed = cache.passes[shape] = FixedPass(forward, embeds, shape)
    return fixed.run(embeds, positions, mask, cache)


class FixedPass:
    """One shape of a pass: inputs that stay where they are, and, once captured, what replays the kernels."""

    def __init__(self, forward: Forward, like: Tensor, shape: PassShape) -> None:
        n_batch, n_rows, n_columns, _ = shape
        self._forward = forward
        self._embeds = like.new_zeros(n_batch, n_rows, like.shape[2])
        self._positions = torch.zeros(n_batch, n_rows, dtype=torch.long, device=like.device)
        self._mask = torch.zeros(n_batch, 1, n_rows, n_columns, dtype=torch.bool, device=like.device)
        self._columns = torch.zeros(n_rows, dtype=torch.long, device=like.device)
        self._replayed: Replayed[Hidden] = Replayed()

    def run(self, embeds: Tensor, positions: Tensor, mask: Tensor, cache: RowCache) -> Hidden:
        """Run the rows (B, R, H); the result holds no memory that a later pass overwrites."""
        self._fill(embeds, positions, mask, cache.base)
        hidden = self._replayed.run(lambda: self._run(cache), cache.capture)
        rows = slice(embeds.shape[1])
        features = None if hidden.features is None else hidden.features[:, rows].clone()
        return Hidden(hidden.last[:, rows].clone(), mask, features)

    def _run(self, cache: RowCache) -> Hidden:
        with cache.writing_at(self._columns):
            return self._forward(self._embeds, self._positions, self._mask)

    def _fill(self, embeds: Tensor, positions: Tensor, mask: Tensor, base: int) -> None:
        """Copy a pass in. Rows of padding see themselves alone: a row that sees nothing would be NaN, and stay so."""
        n_rows, n_padded = embeds.shape[1], len(self._columns)
        for fixed, given in ((self._embeds, embeds), (self._positions, positions)):
            fixed.zero_()
            fixed[:, :n_rows] = given
        self._columns.copy_(torch.arange(base, base + n_padded))
        self._mask.zero_()
        self._mask[:, :, :n_rows, : mask.shape[-1]] = mask
        self._mask[:, :, range(n_rows, n_padded), range(base + n_rows, base + n_padded)] = True
