"""Rows that are trained through the frozen target: contemplate tokens and lookahead slots behind chosen anchors.

Two passes instead of one of N + K rows, which is the same because the text never sees the added rows: the first runs
the text alone and keeps its keys and values; the second runs only the added rows against them, with gradients. All
sequences of a batch lie one after the other, without padding; attention goes text by text. Columns: the soft rows,
all texts, the added rows:

    soft   text 1   text 2   added           (two texts of two tokens; one row behind token 1 of the
    1 1    1 0      0 0      1 0              first, one behind token 2 of the second)
    1 1    0 0      1 1      0 1

Letters: S soft rows, N tokens of all texts, A added rows, G groups of K, H hidden, F width of the features,
Hkv key/value heads, D width of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from specviz.errors import SpecVizError
from specviz.target.attention import Block, in_blocks
from specviz.target.cache import SoftRows
from specviz.target.hidden import Hidden
from specviz.target.model import Target


class GraphCache(Cache):
    """What stands before a pass, a (keys, values) pair a layer or nothing, and what the pass writes, graph included."""

    def __init__(self, n_layers: int, before: SoftRows | None = None) -> None:
        self._layers = [_GraphLayer(before[layer] if before else None) for layer in range(n_layers)]
        super().__init__(layers=list(self._layers))

    @property
    def written(self) -> SoftRows:
        """The keys and values (1, Hkv, R, D) of the pass, layer by layer."""
        return [layer.written for layer in self._layers]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._layers[layer_idx].get_seq_length()


class _GraphLayer(CacheLayerMixin):
    is_sliding = False
    written: tuple[Tensor, Tensor]

    def __init__(self, before: tuple[Tensor, Tensor] | None) -> None:
        super().__init__()
        self._before = before
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        return

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        self.written = (key_states, value_states)
        if self._before is None:
            return self.written
        keys, values = self._before
        return torch.cat([keys, key_states], dim=2), torch.cat([values, value_states], dim=2)

    def get_seq_length(self) -> int:
        return 0 if self._before is None else self._before[0].shape[2]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        return -1


@dataclass(frozen=True)
class Texts:
    """Texts that the target has read: keys and values (1, Hkv, N, D) a layer, and where each text starts."""

    rows: SoftRows
    starts: tuple[int, ...]

    @property
    def n_tokens(self) -> int:
        return self.rows[0][0].shape[2]


@dataclass(frozen=True)
class Anchors:
    """Where added rows stand: text and place in it, (G,) each; the rows of a group see the text up to its anchor."""

    texts: Tensor
    places: Tensor

    def __len__(self) -> int:
        return len(self.texts)

    def split(self, n_groups: int) -> list[Anchors]:
        """Return the anchors in their order, at most `n_groups` in each part."""
        parts = zip(self.texts.split(n_groups), self.places.split(n_groups), strict=True)
        return [Anchors(texts, places) for texts, places in parts]


@torch.no_grad()
def read_texts(target: Target, texts: Sequence[Tensor]) -> Texts:
    """Run each text (L,) through the target and keep what its rows leave in the cache."""
    if target.windows.window is not None and max(map(len, texts)) >= target.windows.window:
        raise SpecVizError(f"Texts longer than this target's window of {target.windows.window} cannot be trained on.")
    read = [run_alone(target, target.embed(ids)) for ids in texts]
    lengths = [0, *(len(ids) for ids in texts)]
    joined = [
        (torch.cat([rows[layer][0] for rows in read], dim=2), torch.cat([rows[layer][1] for rows in read], dim=2))
        for layer in range(target.n_layers)
    ]
    return Texts(joined, tuple(torch.tensor(lengths).cumsum(0)[:-1].tolist()))


def run_added(
    target: Target,
    texts: Texts,
    anchors: Anchors,
    embeds: Tensor,
    soft: SoftRows | None = None,
    causal: bool = True,
    feature_layers: tuple[int, ...] | None = None,
) -> Hidden:
    """Run groups of rows (G, K, H) behind their anchors; slot i (1-based) stands i places behind its anchor.

    Returns states and features of (1, G * K) rows with their graph.
    """
    n_groups, k = embeds.shape[:2]
    positions = (anchors.places[:, None] + torch.arange(1, k + 1, device=embeds.device)).reshape(1, -1)
    n_soft = soft[0][0].shape[2] if soft else 0
    mask = added_mask(texts, anchors, k, n_soft, causal).to(embeds.device)[None, None]
    before = _before(soft, texts.rows)
    cache = GraphCache(target.n_layers, before)
    rows = embeds.reshape(1, n_groups * k, -1).to(target.dtype)
    with in_blocks(text_blocks(texts, anchors, k, n_soft)):
        return target.forward_with_graph(rows, positions, mask, cache, feature_layers)


def added_mask(texts: Texts, anchors: Anchors, k: int, n_soft: int, causal: bool) -> Tensor:
    """Return (A, S + N + A): soft rows, the own text up to the anchor, and the own group."""
    device = anchors.places.device
    starts = torch.tensor(texts.starts, device=device)[anchors.texts]  # (G,)
    columns = torch.arange(texts.n_tokens, device=device)
    text = (columns >= starts[:, None]) & (columns <= (starts + anchors.places)[:, None])  # (G, N)
    group = torch.ones(k, k, dtype=torch.bool, device=device)
    group = group.tril() if causal else torch.eye(k, dtype=torch.bool, device=device)
    own = torch.block_diag(*[group] * len(anchors)).bool()
    soft = torch.ones(len(own), n_soft, dtype=torch.bool, device=device)
    return torch.cat([soft, text.repeat_interleave(k, dim=0), own], dim=1)


def text_blocks(texts: Texts, anchors: Anchors, k: int, n_soft: int) -> list[Block]:
    """Return a block for each text that anchors stand in: soft rows, the text up to the last anchor, the added rows."""
    numbers, counts = (part.tolist() for part in torch.unique_consecutive(anchors.texts, return_counts=True))
    ends = torch.tensor(counts).cumsum(0).tolist()
    blocks = []
    for text, end, count in zip(numbers, ends, counts, strict=True):
        rows = slice((end - count) * k, end * k)
        start = n_soft + texts.starts[text]
        seen = slice(start, start + int(anchors.places[end - count : end].max()) + 1)
        first = n_soft + texts.n_tokens
        blocks.append(Block(rows, (slice(0, n_soft), seen, slice(first + rows.start, first + rows.stop))))
    return blocks


def _before(soft: SoftRows | None, rows: SoftRows) -> SoftRows:
    if soft is None:
        return rows
    return [
        (torch.cat([s_keys, keys], dim=2), torch.cat([s_values, values], dim=2))
        for (s_keys, s_values), (keys, values) in zip(soft, rows, strict=True)
    ]


def run_alone(target: Target, embeds: Tensor) -> SoftRows:
    """Run rows (R, H) causally with nothing before them, at positions 0 to R - 1; return their keys and values.

    So a text is read, and a soft prompt, with its graph where gradients are wanted.
    """
    n_rows = len(embeds)
    mask = torch.ones(1, 1, n_rows, n_rows, dtype=torch.bool, device=embeds.device).tril()
    cache = GraphCache(target.n_layers)
    target.forward_with_graph(
        embeds[None].to(target.dtype), torch.arange(n_rows, device=embeds.device)[None], mask, cache
    )
    return cache.written
