"""Why a row may see a column: the cells' codes, their sentences and their colours.

A code is the position in `REASONS`. Codes below `FIRST_HIDDEN` are visible cells, each kind with a colour;
from `FIRST_HIDDEN` on the cell is masked and drawn blank. Names are those of `mask_trace.explain_cell`, and three more:
`visible` and `hidden` where the trace has no rule, `against_rule` where the recorded cell is not what its rule says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specviz.figures.labels import wrap_html
from specviz.figures.palette import (
    ACCEPTED_COLOUR,
    BONUS_COLOUR,
    CORRECTION_COLOUR,
    GREY_COLOUR,
    REJECTED_COLOUR,
    SKY_COLOUR,
    UNVERIFIED_COLOUR,
)


@dataclass(frozen=True)
class Reason:
    """One reason for a cell; `colour` is empty for masked cells."""

    name: str
    sentence: str
    label: str = ""
    colour: str = ""


REASONS: tuple[Reason, ...] = (
    Reason("context", "Committed text before this row: every row may read it.", "context", SKY_COLOUR),
    Reason(
        "ancestor", "It lies on this row's own path, so it is part of this row's past.", "ancestor", ACCEPTED_COLOUR
    ),
    Reason("self", "Every row sees itself.", "self", GREY_COLOUR),
    Reason(
        "own_node",
        "The added row hangs behind this path: it may read its own node and the node's ancestors.",
        "own node's path",
        BONUS_COLOUR,
    ),
    Reason(
        "earlier_slot",
        "An earlier slot of the same group: with causal slots a slot may read those before it.",
        "earlier slot",
        UNVERIFIED_COLOUR,
    ),
    Reason(
        "soft_prompt",
        "Soft prompt: a learned column that contemplate rows alone may read.",
        "soft prompt",
        CORRECTION_COLOUR,
    ),
    Reason("visible", "Visible; the trace has no rule that says why.", "visible", ACCEPTED_COLOUR),
    Reason(
        "against_rule",
        "Recorded as visible, although the rule of this mask hides it: a leak.",
        "against the rule",
        REJECTED_COLOUR,
    ),
    Reason("hidden_future", "It comes after this row: reading it would be looking ahead."),
    Reason("hidden_branch", "Another branch of the tree: it is not on this row's path."),
    Reason(
        "hidden_added",
        "An added row (slot or contemplate token): real rows never see one, so their output stays the target's own.",
    ),
    Reason("hidden_other_group", "It hangs behind another node: groups do not see each other."),
    Reason("hidden_later_slot", "A later slot of the same group: slots do not look ahead."),
    Reason("hidden_diagonal", "Diagonal slots, the seed's setting: slots of a group do not see each other."),
    Reason("hidden_soft_prompt", "Soft prompt: only contemplate rows may read it, and this row is not one."),
    Reason("hidden_window", "Further back than the target's sliding window reaches."),
    Reason("hidden", "Masked; the trace has no rule that says why."),
    Reason("hidden_against_rule", "Recorded as masked, although the rule of this mask shows it."),
)

CODES: dict[str, int] = {reason.name: code for code, reason in enumerate(REASONS)}
FIRST_HIDDEN = CODES["hidden_future"]


def reason_sentences() -> dict[int, str]:
    """Return the plain sentence of every cell code."""
    return {code: reason.sentence for code, reason in enumerate(REASONS)}


def mask_reasons() -> list[dict[str, Any]]:
    """Return, by code, `{name, visible, sentence, html}` as plain values for the page; `html` is for plotly's hover."""
    return [
        {
            "name": reason.name,
            "visible": code < FIRST_HIDDEN,
            "sentence": reason.sentence,
            "html": wrap_html(reason.sentence),
        }
        for code, reason in enumerate(REASONS)
    ]
