"""The largest few of many values, row by row; of equal ones the lower index stands first.

Letters: R rows, V values, W values a block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

BLOCK = 64


class Largest(NamedTuple):
    """Values and indices, (R, n) each, the largest first."""

    values: Tensor
    indices: Tensor


def largest(rows: Tensor, n: int) -> Largest:
    """Return the `n` largest of each row (R, V), as many as there are where V is less.

    `topk` says nothing of equal values, which 16-bit logits are full of, and on a CPU it copies every
    row to pairs; here one pass finds a bound that only a few values reach, and these few are sorted.
    """
    n = min(n, rows.shape[-1])
    if rows.device.type == "cpu":
        return _largest_above_bound(rows, n)
    best = rows.sort(dim=-1, descending=True, stable=True)
    return Largest(best.values[:, :n], best.indices[:, :n])


def argmaxes(rows: Tensor) -> list[int]:
    """Return the index of each row's largest value (R, V), the lowest of equal ones.

    On a CPU numpy's is several times faster than torch's.
    """
    best = rows.numpy().argmax(axis=-1) if rows.device.type == "cpu" else rows.argmax(dim=-1)
    places: list[int] = best.tolist()
    return places


def _largest_above_bound(rows: Tensor, n: int) -> Largest:
    bounds = _bounds(rows, n)
    values = np.empty((len(rows), n), dtype=np.float32)
    indices = np.empty((len(rows), n), dtype=np.int64)
    for place, (row, bound) in enumerate(zip(rows.numpy(), bounds, strict=True)):
        reaching = np.flatnonzero(row >= bound)
        indices[place] = reaching[np.argsort(-row[reaching], kind="stable")[:n]]
        values[place] = row[indices[place]]
    return Largest(torch.from_numpy(values), torch.from_numpy(indices))


def _bounds(rows: Tensor, n: int) -> list[float]:
    """Return for each row (R, V) a bound that its `n` largest values reach: the n-th largest of blocks' maxima."""
    n_blocks = rows.shape[1] // BLOCK
    if n_blocks < n:
        return [-np.inf] * len(rows)
    blocks = rows[:, : n_blocks * BLOCK].reshape(len(rows), BLOCK, n_blocks)  # (R, W, V / W)
    return blocks.amax(dim=1).topk(n, dim=-1).values[:, -1].tolist()
