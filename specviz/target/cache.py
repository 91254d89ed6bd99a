"""The key/value cache: preallocated, written by rows, compacted to the accepted rows in place.

Columns: S soft-prompt rows first, then the prefix of each batch row, then the rows of the pass in
hand, which start at the longest prefix. A prefix column j always holds position j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

SoftRows = list[tuple[Tensor, Tensor]]  # a (keys, values) pair a layer, each (1, Hkv, S, D)
Capture = Callable[[Callable[[], Any]], Callable[[], Any]]  # of a pass, to what replays it


class RowCache(Cache):
    """Keys and values of B prefixes and of the rows of one pass, for every layer of a model.

    `passes` holds what passes of fixed shape keep between them (`fixed_pass.py`), for as long as the memory is where
    it was; `capture` is what makes a graph of one.
    """

    def __init__(
        self,
        n_layers: int,
        n_batch: int,
        capacity: int,
        soft: SoftRows | None = None,
        capture: Capture | None = None,
    ) -> None:
        self.capture = capture
        self.passes: dict[Any, Any] = {}
        self.columns: Tensor | None = None
        self.capacity = capacity + (soft[0][0].shape[2] if soft else 0)
        self.n_soft = soft[0][0].shape[2] if soft else 0
        self.lengths = [0] * n_batch
        self._rows = [_RowLayer(self) for _ in range(n_layers)]
        super().__init__(layers=list(self._rows))
        for layer, rows in zip(self._rows, soft or [], strict=False):
            layer.write_soft(*rows, n_batch)

    @property
    def base(self) -> int:
        """Column where the rows of the next pass begin."""
        return self.n_soft + max(self.lengths)

    @property
    def is_allocated(self) -> bool:
        """Whether a pass has been here."""
        return bool(self._rows) and self._rows[0].is_initialized

    def reserve(self, n_columns: int) -> None:
        """Make room for so many columns; doubles where the capacity was too small."""
        if n_columns <= self.capacity:
            return
        self.capacity = max(n_columns, 2 * self.capacity)
        self.passes.clear()
        for layer in self._rows:
            layer.grow()

    @contextmanager
    def writing_at(self, columns: Tensor) -> Iterator[None]:
        """Let the pass inside write its rows at columns (R,) and attend to the whole capacity."""
        self.columns = columns
        try:
            yield
        finally:
            self.columns = None

    @torch.inference_mode()
    def keep(self, rows: Sequence[Sequence[int]]) -> None:
        """Keep of the last pass, for each batch row, the given row indices in their order.

        They become the continuation of that batch row's prefix; everything else of the pass is
        forgotten. Raises IndexError for a row that the pass did not write.
        """
        base = self.base
        for batch_row, kept in enumerate(rows):
            start = self.n_soft + self.lengths[batch_row]
            in_place = start == base and list(kept) == list(range(len(kept)))
            if kept and not in_place:
                for layer in self._rows:
                    layer.move(batch_row, [base + row for row in kept], start)
        for batch_row, kept in enumerate(rows):
            self.lengths[batch_row] += len(kept)

    @torch.inference_mode()
    def select(self, batch_rows: Sequence[int]) -> None:
        """Keep only these batch rows, in this order."""
        self.lengths = [self.lengths[row] for row in batch_rows]
        self.passes.clear()
        for layer in self._rows:
            layer.select(batch_rows)

    def rows(self) -> SoftRows:
        """Return what the first batch row's prefix holds, a (keys, values) pair a layer, each (1, Hkv, N, D)."""
        columns = slice(self.n_soft, self.n_soft + self.lengths[0])
        return [(layer.keys[:1, :, columns].clone(), layer.values[:1, :, columns].clone()) for layer in self._rows]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the columns in use before a pass (transformers asks for it)."""
        return self.base


class _RowLayer(CacheLayerMixin):
    """One layer's buffers (B, Hkv, capacity, D)."""

    is_sliding = False
    is_croppable = True
    keys: Tensor
    values: Tensor

    def __init__(self, owner: RowCache) -> None:
        super().__init__()
        self._owner = owner

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.dtype, self.device = key_states.dtype, key_states.device
        self.keys = self._buffer(key_states)
        self.values = self._buffer(value_states)
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write the rows of a pass (B, Hkv, R, D) and return all columns in use."""
        columns = self._owner.columns
        if columns is not None:
            self.keys.index_copy_(2, columns, key_states)
            self.values.index_copy_(2, columns, value_states)
            return self.keys, self.values
        start = self._owner.base
        end = start + key_states.shape[2]
        self._owner.reserve(end)
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.keys[:, :, start:end] = key_states
        self.values[:, :, start:end] = value_states
        return self.keys[:, :, :end], self.values[:, :, :end]

    def write_soft(self, keys: Tensor, values: Tensor, n_batch: int) -> None:
        self.lazy_initialization(keys.expand(n_batch, -1, -1, -1), values.expand(n_batch, -1, -1, -1))
        self.keys[:, :, : keys.shape[2]] = keys
        self.values[:, :, : values.shape[2]] = values

    def move(self, batch_row: int, columns: list[int], start: int) -> None:
        for buffer in (self.keys, self.values):
            buffer[batch_row, :, start : start + len(columns)] = buffer[batch_row, :, columns]

    def select(self, batch_rows: Sequence[int]) -> None:
        self.keys, self.values = self.keys[list(batch_rows)], self.values[list(batch_rows)]

    def get_seq_length(self) -> int:
        return self._owner.base

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._owner.base + query_length, 0

    def get_max_length(self) -> int:
        return -1

    def _buffer(self, states: Tensor) -> Tensor:
        n_batch, n_heads, _, width = states.shape
        # Zeros and not empty memory: a masked column is multiplied by 0, and 0 * NaN is NaN.
        return torch.zeros(n_batch, n_heads, self._owner.capacity, width, dtype=states.dtype, device=states.device)

    def grow(self) -> None:
        """Take the owner's new capacity."""
        if not self.is_initialized:
            return
        old_keys, old_values = self.keys, self.values
        self.keys, self.values = self._buffer(old_keys), self._buffer(old_values)
        self.keys[:, :, : old_keys.shape[2]] = old_keys
        self.values[:, :, : old_values.shape[2]] = old_values
