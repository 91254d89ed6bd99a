"""The record of a run, to the last digit, for whoever asks: the inspector, a saved file, a page to take along.

It travels apart from the steps that are drawn: a step on request while a run goes on, all of them after its end.
"""

from __future__ import annotations

from typing import Any

from specviz.figures import EXTRA_NODE, explain_node, explain_token
from specviz.figures.draft_tree import find_extra_token
from specviz.trace import RunTrace, StepTrace


def record_steps(run: RunTrace, first: int, last: int) -> list[dict[str, Any]]:
    """Return the steps from `first` up to but not including `last`.

    Each is `{"step"}`, its JSON as Python writes it, and `{"why"}`, a sentence for each node by index and for the
    token that the target added (`EXTRA_NODE`).
    """
    following = {step.index: step for step in run.steps}
    return [
        {"step": step.model_dump_json(), "why": explain_nodes(step, following.get(step.index + 1))}
        for step in run.steps[first:last]
    ]


def explain_nodes(step: StepTrace, next_step: StepTrace | None) -> dict[str, str]:
    """Say of every node of a step, and of the target's own token, why it was taken or not."""
    sentences = {str(node.idx): explain_node(step, node.idx, next_step) for node in step.nodes}
    extra = find_extra_token(step)
    return sentences if extra is None else sentences | {str(EXTRA_NODE): explain_token(extra)}
