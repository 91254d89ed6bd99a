"""The mask of a pass, from the tensor that the layers used."""

from __future__ import annotations

import base64

import numpy as np
import torch

from specviz.decoding.turn import Turn
from specviz.mask_trace import MaskColumn, MaskRow, MaskRule, MaskTrace, RuleName, list_rows
from specviz.target.model import Target
from specviz.text import TextCodec, piece_of

N_RECENT = 48  # prefix columns that are kept one by one


def record_mask(turn: Turn, target: Target, full: bool) -> MaskTrace:
    """Return the mask's rule, and with a full record of a step after the prefill its cells too."""
    codec: TextCodec = target.tokenizer
    rule = _rule(turn, None if target.windows.mixed else target.windows.window)
    if not full or turn.index == 0:
        return MaskTrace(rule=rule)
    rows = [_labelled(row, turn, codec) for row in list_rows(rule)]
    first_column = max(0, rule.prefix - N_RECENT)
    visible = _logical_columns(turn)  # (R, P + S + R)
    recent = [
        MaskColumn(kind="prefix", label=piece_of(codec, turn.prefix_ids[i])) for i in range(first_column, rule.prefix)
    ]
    soft = [MaskColumn(kind="soft_prompt", label=f"soft {slot}", slot=slot) for slot in range(1, rule.s + 1)]
    own = [MaskColumn(kind=row.kind, label=row.label, node=row.node, slot=row.slot) for row in rows]
    return MaskTrace(
        rows=rows,
        columns=[*recent, *soft, *own],
        first_column=first_column,
        earlier_visible=visible[:, :first_column].sum(axis=1).tolist(),
        bits=base64.b64encode(np.packbits(visible[:, first_column:]).tobytes()).decode("ascii"),
        rule=rule,
    )


def _rule(turn: Turn, window: int | None) -> MaskRule:
    layout = turn.layout
    name: RuleName
    if layout.k == 0:
        name = "tree" if layout.n_nodes > 1 else "causal"
    elif layout.kind == "contemplate":
        name = "contemplate"
    else:
        name = "lookahead_causal" if layout.causal_slots else "lookahead_diagonal"
    return MaskRule(
        name=name,
        prefix=turn.n_cached,
        parents=list(layout.parents),
        k=layout.k,
        s=turn.n_soft,
        pending=layout.n_pending,
        carriers=None if layout.carriers is None else list(layout.carriers),
        window=window,
    )


def _logical_columns(turn: Turn) -> np.ndarray:
    """Return (R, P + S + R) booleans: physical columns put in the trace's order, other rows' padding left out."""
    return turn.mask[: turn.layout.n_rows, order_columns(turn).to(turn.mask.device)].cpu().numpy()


def order_columns(turn: Turn) -> torch.Tensor:
    """Return the physical columns (P + S + R,) in the trace's order."""
    n_rows, n_soft = turn.layout.n_rows, turn.n_soft
    base = turn.mask.shape[1] - n_rows - turn.n_padding
    return torch.tensor([*range(n_soft, n_soft + turn.n_cached), *range(n_soft), *range(base, base + n_rows)])


def _labelled(row: MaskRow, turn: Turn, codec: TextCodec) -> MaskRow:
    """Give a row of a token the token's text; slots keep their names."""
    if row.kind == "candidate":
        token_id = turn.proposal.tree.token_ids[row.node or 0]
    elif row.kind == "prefix":
        token_id = turn.prefix_ids[row.position or 0]
    else:
        return row
    return row.model_copy(update={"label": piece_of(codec, token_id)})
