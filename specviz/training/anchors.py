"""Anchor token sampling and future prediction replication (ConFu seed; `algorithms.md` 2.3 of the design).

A contemplate token stands behind an anchor, a token of the text; its prediction serves the draft rows from the anchor's
own on, `window` of them: rows see their latest anchor alone, and rows that no anchor serves are out of the loss.

    rows       0 1 2 3 4 5 6
    anchors      x       x        window 3
    served by  - 1 1 1 - 5 5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.training.unroll import Span


@dataclass(frozen=True)
class AnchorConfig:
    """One anchor in `stride` rows, at a random place in each stride; each serves `window` rows."""

    stride: int = 4
    window: int = 4


@dataclass(frozen=True)
class AnchorPlan:
    """Each anchor's sequence and draft row in it, (A,); `serving` (R,) is each row's anchor or -1."""

    sequences: Tensor
    rows: Tensor
    serving: Tensor


def sample_anchors(spans: Sequence[Span], config: AnchorConfig, draws: Sequence[torch.Generator]) -> AnchorPlan:
    """Choose anchors in each sequence by its own draw, and assign the rows.

    The first stride's anchor is among the rows 0 to stride - 1. A sequence that is shorter than a stride has its one
    anchor anywhere: a step, or a process's share of one, may consist of such sequences alone and needs an anchor.
    """
    sequences, rows, serving = [], [], []
    n_anchors = 0
    for sequence, (span, draw) in enumerate(zip(spans, draws, strict=True)):
        n_rows = span.rows.stop - span.rows.start
        strides = torch.arange(0, max(n_rows, 1), config.stride)
        reach = min(config.stride, max(n_rows, 1))
        chosen = strides + torch.randint(reach, (len(strides),), generator=draw)
        chosen = chosen[chosen < n_rows]
        sequences.append(torch.full((len(chosen),), sequence))
        rows.append(chosen)
        serving.append(serve_rows(chosen, n_rows, config.window, n_anchors))
        n_anchors += len(chosen)
    return AnchorPlan(torch.cat(sequences), torch.cat(rows), torch.cat(serving))


def serve_rows(anchors: Tensor, n_rows: int, window: int, first: int = 0) -> Tensor:
    """Return (R,): the number of the latest of the ascending `anchors` (A,) that still serves a row, or -1."""
    latest = torch.searchsorted(anchors, torch.arange(n_rows), right=True) - 1  # (R,)
    place = anchors[latest.clamp(min=0)] if len(anchors) else latest
    served = (latest >= 0) & (torch.arange(n_rows) - place < window)
    return torch.where(served, latest + first, -1)


def routing_places(plan: AnchorPlan, max_lag: int, draws: Sequence[torch.Generator]) -> Tensor:
    """Return (A,): the row whose features route the contemplate token, `lag` rows before the anchor's, or -1.

    Lags are drawn by each sequence's own draw.

    While decoding, the embedding is chosen before the pass, by the last node of the round before; the lag
    imitates that. Row 0 is the prompt's last token: the prefill's own anchor has no round before it (-1),
    and no anchor is routed by an earlier token.
    """
    n_anchors = torch.bincount(plan.sequences, minlength=len(draws)).tolist()
    lags = [torch.randint(1, max_lag + 1, (n,), generator=draw) for n, draw in zip(n_anchors, draws, strict=True)]
    return torch.where(plan.rows == 0, -1, (plan.rows - torch.cat(lags)).clamp(min=0))
