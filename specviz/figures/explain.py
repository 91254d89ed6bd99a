"""Plain sentences about a node, a token and a step, in the words of the trace's own definitions.

The sentences are plain text: whitespace and controls of model text are made visible, nothing is escaped.
Put them into a page with `textContent`; figures escape them for plotly.
"""

from __future__ import annotations

from collections.abc import Callable

from specviz.figures.draft_tree import find_extra_token, find_taken_token, is_slot_token, quote_token, takes_unverified
from specviz.figures.labels import format_prob, show_piece
from specviz.figures.palette import STATUSES
from specviz.sentence import say, say_both, say_count
from specviz.trace import LateVerdict, NodeTrace, StepTrace, TokenTrace

_SOURCES = {
    "prompt": say("{token} belongs to the prompt."),
    "target": say("{token} is the target's own next token{where}, without a draft."),
    "draft": say("{token} was drafted and accepted{where}{node}: the target takes the same token there."),
    "correction": say("{token} is the target's correction{where}: none of the drafted tokens there matched."),
    "bonus": say("{token} is a bonus{where}: the target's next token where no draft was left to judge."),
    "unverified": say("{token} was taken from the draft{where}{node} without the target's word."),
}
_ADDED = {
    "correction": say("the target added the correction {token}; {total}"),
    "bonus": say("the target added the bonus {token}; {total}"),
    "target": say("the target added its own next token {token}; {total}"),
}


def explain_node(step: StepTrace, node_idx: int, next_step: StepTrace | None = None) -> str:
    """Say why a node was accepted, rejected, never judged, cut or taken unverified, with its numbers.

    `next_step` is where the target's late word on an unverified node stands.
    Raises KeyError where the step has no such node.
    """
    node = next((node for node in step.nodes if node.idx == node_idx), None)
    if node is None:
        raise KeyError(node_idx)
    late = _find_verdict(step, node, next_step)
    return say_both(say_both(explain_verdict(step, node), _tell_evidence(node)), _tell_late(node, late))


def explain_verdict(step: StepTrace, node: NodeTrace) -> str:
    """Say why a node has its status, without its numbers."""
    return _EXPLAINERS[node.status](step, node, {other.idx: other for other in step.nodes})


def explain_token(token: TokenTrace) -> str:
    """Say where a token of the prompt or of the answer came from."""
    where = "" if token.step is None else say(" in step {step}", step=token.step)
    node = "" if token.node is None else say(" (node {node})", node=token.node)
    return _SOURCES[token.source].fill(token=quote_token(token), where=where, node=node)


def explain_step(step: StepTrace) -> str:
    """Narrate a step in one sentence."""
    if step.index == 0:
        told = _list_tokens(step.committed)
        return say("Prefill: the target reads the prompt and gives the first token{tokens}.", tokens=told)
    drafted = [node for node in step.nodes if node.status != "root"]
    if not drafted:
        given = say_count(len(step.committed), "{n} token", "{n} tokens") + _list_tokens(step.committed)
        return say("Step {step}: one target pass without a draft gives {given}.", step=step.index, given=given)
    draft, commit = _narrate_draft(step, drafted), _narrate_commit(step)
    return say("Step {step}: {draft}, and {commit}", step=step.index, draft=draft, commit=commit)


def _narrate_draft(step: StepTrace, drafted: list[NodeTrace]) -> str:
    if takes_unverified(step):
        n_taken = sum(node.status == "unverified" for node in drafted)
        slots = say_count(len(drafted), "{n} slot token", "{n} slot tokens")
        return say("{taken} of {slots} taken without the target's word", taken=n_taken, slots=slots)
    n_judged = sum(node.status in ("accepted", "rejected") for node in drafted)
    return say(
        "of {drafts} the target judged {judged} and accepted {accepted}",
        drafts=say_count(len(drafted), "{n} drafted token", "{n} drafted tokens"),
        judged=n_judged,
        accepted=len(step.accepted),
    )


def _narrate_commit(step: StepTrace) -> str:
    extra = find_extra_token(step)
    n_cut = sum(node.status == "cut" for node in step.nodes)
    total = say(
        "{tokens} committed{listed}{cut}.",
        tokens=say_count(len(step.committed), "{n} token", "{n} tokens"),
        listed=_list_tokens(step.committed),
        cut=say(", {n} more cut by the end of the run", n=n_cut) if n_cut else "",
    )
    if extra is None:
        return say("the target added none; {total}", total=total)
    return _ADDED[extra.source].fill(token=quote_token(extra), total=total)


def _explain_root(step: StepTrace, node: NodeTrace, nodes: dict[int, NodeTrace]) -> str:
    return say("Root: {token} is the last committed token; the draft starts behind it.", token=quote_token(node))


def _explain_accepted(step: StepTrace, node: NodeTrace, nodes: dict[int, NodeTrace]) -> str:
    behind = _name_parent(node, nodes)
    return say("Accepted: behind {parent} the target took {token} too.", parent=behind, token=quote_token(node))


def _explain_rejected(step: StepTrace, node: NodeTrace, nodes: dict[int, NodeTrace]) -> str:
    behind, taken = _name_parent(node, nodes), find_taken_token(step, node.parent)
    if taken is None:
        return say(
            "Rejected: {parent} was reached, and the target took another token than {token} there.",
            parent=behind,
            token=quote_token(node),
        )
    own, other = _quote_apart(node, taken)
    return say(
        "Rejected: {parent} was reached, and there the target took {taken}, not {token}.",
        parent=behind,
        taken=other,
        token=own,
    )


def _explain_unreached(step: StepTrace, node: NodeTrace, nodes: dict[int, NodeTrace]) -> str:
    parent = nodes.get(node.parent)
    behind = _name_parent(node, nodes)
    if parent is not None and parent.status in ("accepted", "root", "cut"):
        why = say("the run ended before a token behind {parent} was committed", parent=behind)
    else:
        state = "" if parent is None else say(" (itself {status})", status=STATUSES[parent.status].label)
        why = say("its parent {parent}{state} was not reached", parent=behind, state=state)
    return say("Never judged: {why}, so this is no verdict on {token}.", why=why, token=quote_token(node))


def _explain_cut(step: StepTrace, node: NodeTrace, nodes: dict[int, NodeTrace]) -> str:
    quoted = quote_token(node)
    end = say("the run ended before it (end of text, token budget, stop text or context), so it was not committed")
    if is_slot_token(node):
        return say("Cut: {token} would have been taken without the target's word, but {end}.", token=quoted, end=end)
    return say("Cut: {token} matched the target's token, but {end}.", token=quoted, end=end)


def _explain_unverified(step: StepTrace, node: NodeTrace, nodes: dict[int, NodeTrace]) -> str:
    return say("Unverified: {token} was taken without the target's word.", token=quote_token(node))


def _find_verdict(step: StepTrace, node: NodeTrace, next_step: StepTrace | None) -> LateVerdict | None:
    if next_step is None or node.status != "unverified":
        return None
    return next((late for late in next_step.late if (late.step, late.node) == (step.index, node.idx)), None)


def _tell_late(node: NodeTrace, late: LateVerdict | None) -> str:
    if node.status != "unverified":
        return ""
    if late is None:
        return say("The next pass tells what the target would have chosen.")
    agrees = late.target_argmax == node.token_id
    other = f"“{show_piece(late.argmax_piece, token_id=late.target_argmax)}”"
    return say(
        "One pass later the target would have chosen {choice} (target probability {prob}, rank {rank} for this token).",
        choice=say("it too") if agrees else other,
        prob=format_prob(late.target_prob),
        rank=late.target_rank + 1,
    )


_EXPLAINERS: dict[str, Callable[[StepTrace, NodeTrace, dict[int, NodeTrace]], str]] = {
    "root": _explain_root,
    "accepted": _explain_accepted,
    "rejected": _explain_rejected,
    "unreached": _explain_unreached,
    "cut": _explain_cut,
    "unverified": _explain_unverified,
}


def _name_parent(node: NodeTrace, nodes: dict[int, NodeTrace]) -> str:
    return quote_token(nodes[node.parent]) if node.parent in nodes else say("its parent")


def _quote_apart(one: NodeTrace, other: NodeTrace | TokenTrace) -> tuple[str, str]:
    """Quote two tokens, with their ids where they look the same."""
    quoted = quote_token(one), quote_token(other)
    if quoted[0] != quoted[1]:
        return quoted
    return f"{quoted[0]} (id {one.token_id})", f"{quoted[1]} (id {other.token_id})"


def _tell_evidence(node: NodeTrace) -> str:
    """Give a judged node's probabilities; a node that was not judged has the draft's alone."""
    if node.status == "root":
        return ""
    draft = _prob_text(node.draft_prob)
    if node.status in ("unreached", "unverified") or is_slot_token(node):
        return say("Draft probability {draft}.", draft=draft)
    return say(
        "Draft probability {draft}, target probability {target}{rank}.",
        draft=draft,
        target=_prob_text(node.target_prob),
        rank=_tell_rank(node),
    )


def _prob_text(prob: float | None) -> str:
    return say("not recorded") if prob is None else format_prob(prob)


def _tell_rank(node: NodeTrace) -> str:
    return "" if node.target_rank is None else say(", rank {rank} for the target", rank=node.target_rank + 1)


def _list_tokens(tokens: list[TokenTrace]) -> str:
    shown = " ".join(quote_token(token, 12) for token in tokens[:6])
    return say(": {tokens}", tokens=f"{shown}{' …' if len(tokens) > 6 else ''}") if shown else ""
