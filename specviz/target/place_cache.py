"""The key/value cache of plain batched decoding: B places that are filled and refilled each on its own.

Unlike the row cache, a place's next token is written at that place's own end, so that nothing is
ever moved: column j of a place always holds position j. Letters: B places, N prompt, C columns, D head width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from specviz.target.cache import SoftRows


class PlaceCache(Cache):
    """Keys and values of B unrelated texts, for every layer of a model; one new token a place and pass."""

    n_soft = 0

    def __init__(self, n_layers: int, n_places: int, capacity: int) -> None:
        self.lengths = [0] * n_places
        self._places = [_PlaceLayer(self, capacity) for _ in range(n_layers)]
        super().__init__(layers=list(self._places))

    @property
    def n_columns(self) -> int:
        """Columns that the next pass attends to, its own included."""
        return max(self.lengths) + 1

    @torch.inference_mode()
    def fill(self, place: int, rows: SoftRows) -> None:
        """Begin a place anew with a prompt's keys and values, a pair a layer, each (1, Hkv, N, D)."""
        for layer, (keys, values) in zip(self._places, rows, strict=True):
            layer.fill(place, keys, values)
        self.lengths[place] = rows[0][0].shape[2] if rows else 0

    def positions(self, device: torch.device) -> Tensor:
        """Return the positions (B, 1) of the next pass."""
        return torch.tensor(self.lengths, device=device)[:, None]

    def mask(self, device: torch.device) -> Tensor:
        """Return the mask (B, 1, 1, C) of the next pass: each place sees its own text and its new token."""
        columns = torch.arange(self.n_columns, device=device)
        return (columns <= self.positions(device))[:, None, None]

    def advance(self, places: list[int]) -> None:
        """Keep the token that the last pass wrote in these places; elsewhere it is written over."""
        for place in places:
            self.lengths[place] += 1

    @torch.inference_mode()
    def select(self, places: Sequence[int]) -> None:
        """Keep these places alone, in this order; the others' texts are gone."""
        self.lengths = [self.lengths[place] for place in places]
        for layer in self._places:
            layer.select(places)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the columns in use before a pass (transformers asks for it)."""
        return max(self.lengths)


class _PlaceLayer(CacheLayerMixin):
    """One layer's buffers (B, Hkv, capacity, D)."""

    is_sliding = False
    is_croppable = False
    keys: Tensor
    values: Tensor

    def __init__(self, owner: PlaceCache, capacity: int) -> None:
        super().__init__()
        self._owner = owner
        self._capacity = capacity

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.dtype, self.device = key_states.dtype, key_states.device
        self.keys, self.values = self._buffer(key_states), self._buffer(value_states)
        self.is_initialized = True

    def fill(self, place: int, keys: Tensor, values: Tensor) -> None:
        if not self.is_initialized:
            self.lazy_initialization(keys, values)
        n_prompt = keys.shape[2]
        self.keys[place, :, :n_prompt] = keys[0]
        self.values[place, :, :n_prompt] = values[0]

    def select(self, places: Sequence[int]) -> None:
        if self.is_initialized:
            kept = torch.tensor(places, device=self.device)
            self.keys, self.values = self.keys[kept], self.values[kept]

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write the pass's token (B, Hkv, 1, D) at each place's end and return all columns in use."""
        places = torch.arange(len(self._owner.lengths), device=self.device)
        ends = torch.tensor(self._owner.lengths, device=self.device)
        self.keys[places, :, ends] = key_states[:, :, 0]
        self.values[places, :, ends] = value_states[:, :, 0]
        n_columns = self._owner.n_columns
        return self.keys[:, :, :n_columns], self.values[:, :, :n_columns]

    def get_seq_length(self) -> int:
        return self._owner.get_seq_length()

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._owner.n_columns, 0

    def get_max_length(self) -> int:
        return -1

    def _buffer(self, states: Tensor) -> Tensor:
        _, n_heads, _, width = states.shape
        # Zeros and not empty memory: a masked column is multiplied by 0, and 0 * NaN is NaN.
        shape = (len(self._owner.lengths), n_heads, self._capacity, width)
        return torch.zeros(shape, dtype=states.dtype, device=states.device)
