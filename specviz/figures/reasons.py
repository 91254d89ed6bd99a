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
from specviz.sentence import say


@dataclass(frozen=True)
class Reason:
    """One reason for a cell; `colour` is empty for masked cells."""

    name: str
    sentence: str
    label: str = ""
    colour: str = ""


REASONS: tuple[Reason, ...] = (
    Reason("context", say("Committed text before this row: every row may read it."), say("context"), SKY_COLOUR),
    Reason(
        "ancestor",
        say("It lies on this row's own path, so it is part of this row's past."),
        say("ancestor"),
        ACCEPTED_COLOUR,
    ),
    Reason("self", say("Every row sees itself."), say("self"), GREY_COLOUR),
    Reason(
        "own_node",
        say("The added row hangs behind this path: it may read its own node and the node's ancestors."),
        say("own node's path"),
        BONUS_COLOUR,
    ),
    Reason(
        "earlier_slot",
        say("An earlier slot of the same group: with causal slots a slot may read those before it."),
        say("earlier slot"),
        UNVERIFIED_COLOUR,
    ),
    Reason(
        "soft_prompt",
        say("Soft prompt: a learned column that added rows alone (contemplate tokens or slots) may read."),
        say("soft prompt"),
        CORRECTION_COLOUR,
    ),
    Reason("visible", say("Visible; the trace has no rule that says why."), say("visible"), ACCEPTED_COLOUR),
    Reason(
        "against_rule",
        say("Recorded as visible, although the rule of this mask hides it: a leak."),
        say("against the rule"),
        REJECTED_COLOUR,
    ),
    Reason("hidden_future", say("It comes after this row: reading it would be looking ahead.")),
    Reason("hidden_branch", say("Another branch of the tree: it is not on this row's path.")),
    Reason(
        "hidden_added",
        say(
            "An added row (slot or contemplate token): real rows never see one, so their output stays the target's own."
        ),
    ),
    Reason("hidden_other_group", say("It hangs behind another node: groups do not see each other.")),
    Reason("hidden_later_slot", say("A later slot of the same group: slots do not look ahead.")),
    Reason("hidden_diagonal", say("Diagonal slots, the seed's setting: slots of a group do not see each other.")),
    Reason(
        "hidden_soft_prompt",
        say("Soft prompt: added rows alone (contemplate tokens or slots) may read it; this is not one."),
    ),
    Reason("hidden_window", say("Further back than the target's sliding window reaches.")),
    Reason("hidden", say("Masked; the trace has no rule that says why.")),
    Reason("hidden_against_rule", say("Recorded as masked, although the rule of this mask shows it.")),
)

CODES: dict[str, int] = {reason.name: code for code, reason in enumerate(REASONS)}
FIRST_HIDDEN = CODES["hidden_future"]


def reason_sentences() -> dict[int, str]:
    """Return the plain sentence of every cell code."""
    return {code: reason.sentence for code, reason in enumerate(REASONS)}


def mask_reasons() -> list[dict[str, Any]]:
    """Return, by code, `{name, label, visible, sentence, html}` for the page; `html` is for plotly's hover."""
    return [
        {
            "name": reason.name,
            "label": reason.label,
            "visible": code < FIRST_HIDDEN,
            "sentence": reason.sentence,
            "html": wrap_html(reason.sentence),
        }
        for code, reason in enumerate(REASONS)
    ]
