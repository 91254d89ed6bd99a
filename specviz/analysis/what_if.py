"""What a recorded step would have given under other settings, without a model.

The draft's probabilities are recorded, and so are the target's choices: after the same text the target takes the
same token, whatever tree was drafted. So another tree can be made of the recorded drafts and walked again.
What the record cannot tell is said in a sentence, not guessed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specviz.analysis.drafted import Drafted, list_drafted
from specviz.analysis.regrow import Change, NotRecordedError, grow_slots, prune_tree
from specviz.sentence import say
from specviz.trace import StepTrace, TokenTrace

SLOT_RULES = ("lookahead_diagonal", "lookahead_causal")


@dataclass(frozen=True)
class Outcome:
    """What the step would have given. COMPUTED.

    `tree` is the root and the drafts that would have been sent; `accepted` are those on the target's path, and
    `extra` is the target's own token behind them. `unknown` is a sentence where the record does not tell.
    """

    tree: tuple[Drafted, ...] = ()
    accepted: tuple[Drafted, ...] = ()
    extra: TokenTrace | None = None
    unknown: str = ""

    @property
    def n_tokens(self) -> int | None:
        """Tokens that the step would have committed; None where the record does not tell."""
        return None if self.unknown else len(self.accepted) + (self.extra is not None)


def change_step(
    step: StepTrace, change: Change, settings: dict[str, Any], following: Sequence[TokenTrace] | None = None
) -> Outcome:
    """Return the outcome of a step under a change; `settings` are those of its run.

    `following` are the tokens that the answer holds after this step, to its end: in an exact run they are the
    target's choices along a path that the changed tree may follow further. None: not at hand.
    """
    if step.index == 0 or len(step.nodes) == 1:
        return Outcome(unknown=say("Nothing was drafted in this step."))
    try:
        if takes_unverified(step):
            return _take_again(step, change, settings)
        tree = grow_slots(step, change, settings) if has_slots(step) else prune_tree(step, change, settings)
    except NotRecordedError as error:
        return Outcome(unknown=error.sentence)
    return _walk(tree, step.committed, following)


def describe_change(step: StepTrace, settings: dict[str, Any]) -> Change:
    """Return what the step itself ran with, to change from; None for what it does not use."""
    if takes_unverified(step):
        return Change(threshold=settings.get("threshold"))
    if has_slots(step):
        return Change(len(step.nodes), settings.get("k"), settings.get("candidates"), settings.get("threshold"))
    return Change(len(step.nodes), settings.get("depth"), settings.get("tree_top_k"))


def has_slots(step: StepTrace) -> bool:
    """Return whether slots of the target drafted, and not a head."""
    return step.mask.rule is not None and step.mask.rule.name in SLOT_RULES


def takes_unverified(step: StepTrace) -> bool:
    """Return whether the step committed tokens without the target's word."""
    return any(token.source == "unverified" for token in step.committed)


def _take_again(step: StepTrace, change: Change, settings: dict[str, Any]) -> Outcome:
    """Take the slots' tokens again: in order, while they are probable enough."""
    slots = [token for token in list_drafted(step) if token.depth > 0]
    lowest, was = change.threshold or 0.0, settings.get("threshold") or 0.0
    if lowest < was and len(slots) < (settings.get("k") or 0):
        return Outcome(
            unknown=say(
                "The record ends at the first slot below {threshold}: how probable it was is not in it.",
                threshold=f"{was:g}",
            )
        )
    taken = tuple(itertools.takewhile(lambda token: token.prob >= lowest, slots))
    own = next(token for token in step.committed if token.source != "unverified")
    cut = {node.idx for node in step.nodes if node.status == "cut"}  # behind the end of the answer, taken or not
    return Outcome(taken, tuple(token for token in taken if token.node not in cut), own)


def _walk(tree: list[Drafted], committed: Sequence[TokenTrace], following: Sequence[TokenTrace] | None) -> Outcome:
    """Follow the target's path through a tree until no draft has its token."""
    here, accepted = tree[0], list[Drafted]()
    for token in [*committed, *(following or ())]:
        matching = [child for child in tree if child.depth == here.depth + 1 and child.token_id == token.token_id]
        child = next((child for child in matching if child.parent == here.place), None)
        if child is None and any(child.parent is None for child in matching):
            return Outcome(
                tuple(tree), tuple(accepted), unknown=say("The parent of a draft with this token is not recorded.")
            )
        if child is None:
            return Outcome(tuple(tree), tuple(accepted), token)
        accepted.append(child)
        here = child
    ended = following is not None  # then the answer itself ends here
    unknown = "" if ended else say("All recorded tokens of the step would be drafted; what follows is not at hand.")
    return Outcome(tuple(tree), tuple(accepted), unknown=unknown)
