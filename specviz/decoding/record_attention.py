"""The attention weights of one row, as the layers computed them.

Letters: P cached prefix, S soft prompt, R rows.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from specviz.decoding.record_mask import order_columns
from specviz.decoding.turn import Turn


def record_attention(turn: Turn) -> dict[str, Any] | None:
    """Return the probed row with its weights over the trace's columns (P + S + R,), or None where none was probed.

    `mean` and `max` are over all layers and heads, in three digits: a weight that is not exactly zero stays so.
    """
    probe, batch_row = turn.attention, turn.batch_row
    if probe is None or probe.largest is None or probe.error is None:
        return None
    if probe.row >= turn.layout.n_rows:  # in a batch, a row that is padding here
        return None
    order = order_columns(turn).to(probe.largest.device)
    return {
        "row": probe.row,
        "mean": _round_all(probe.mean[batch_row, order]),
        "max": _round_all(probe.largest[batch_row, order]),
        "error": float(f"{probe.error[batch_row]:.3g}"),
        "n_layers": len(probe.means),
    }


def _round_all(weights: Tensor) -> list[float]:
    return [float(f"{weight:.3g}") for weight in weights.tolist()]
